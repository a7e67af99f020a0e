"""SubRip and WebVTT: what is no text stays, and no translation ends its cue early."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import srt  # type: ignore[import-untyped]
import webvtt
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.subrip import SubRip
from dragoman.content.formats.webvtt import WebVtt
from dragoman.content.protection import protect, restore
from dragoman.kernel.errors import DragomanError
from dragoman.model.contracts import Format
from dragoman.model.documents import Document
from tests.content.real_files import case, corpus

CUE = "1\n00:00:01,000 --> 00:00:02,000\n"


def source(data: bytes | str, form: Format | None = None) -> Document:
    data = data.encode() if isinstance(data, str) else data
    form = form or (WebVtt() if b"WEBVTT" in data[:10] else SubRip())
    return open_document(form, "a", data, "source", "en")


def texts(document: Document) -> dict[str, str]:
    return {block.key: block.text for block in document.blocks}


def written(document: Document, values: dict[str, str]) -> bytes:
    form: Format = WebVtt() if document.format == "webvtt" else SubRip()
    return render(form, None, document, values, "de").data


def library(name: str, data: bytes) -> list[str]:
    text = data.decode("utf-8-sig").replace("\r\n", "\n")
    if name.endswith(".srt"):
        return [cue.content for cue in srt.parse(text) if cue.content.strip()]
    return [cue.raw_text for cue in webvtt.from_buffer(io.StringIO(text)).captions]


@pytest.mark.parametrize("file", corpus("subs"))
def test_real_files_are_read_as_other_libraries_read_them_and_stay_themselves(file: Path) -> None:
    data = file.read_bytes()
    document = source(data)
    assert list(texts(document).values()) == library(file.name, data)
    assert written(document, texts(document)) == data
    pseudo = {key: f"[{text} ×]" for key, text in texts(document).items()}
    result = written(document, pseudo)
    assert texts(source(result)) == pseudo
    assert library(file.name, result) == list(pseudo.values())
    for key, text in pseudo.items():
        result = result.replace(text.encode(), texts(document)[key].encode(), 1)
    assert result == data


def test_an_empty_cue_is_no_text_and_keeps_its_number_and_lines() -> None:
    """[S04]"""
    given, expected = case("S04", "srt")
    document = source(given)
    first, second = document.blocks
    assert (first.text, second.text) == ("<i>Hi</i> {\\an8}there", "Bye")
    shown = protect(first.text, first.syntax)
    assert shown.text == "⟦1⟧Hi⟦/1⟧ ⟦2⟧there"
    german = restore(shown, "⟦1⟧Hallo⟦/1⟧ ⟦2⟧da")
    assert written(document, {first.key: german, second.key: "Tschüss"}) == expected


def test_styles_comments_identifiers_settings_and_short_times_stay() -> None:
    """[O13]"""
    given, expected = case("O13", "vtt")
    document = source(given)
    first, second = document.blocks
    assert (first.key, second.key) == ("intro", "00:03.000")
    assert first.note.startswith("keep me\n")
    shown = protect(first.text, first.syntax)
    german = restore(
        shown, shown.text.replace("Who said", "Wer hat").replace("that", "das").replace("?", " gesagt?")
    )
    assert written(document, {first.key: german, second.key: "Zwei\n\nZeilen\n"}) == expected


@pytest.mark.parametrize("head", ["", "WEBVTT\n\n"])
def test_an_empty_line_is_taken_out_of_a_translation_and_an_arrow_refused(head: str) -> None:
    """[O13] Both would end the cue."""
    text = head + CUE.replace(",", "." if head else ",") + "One\n\nnext\n00:00:03.000 --> 00:00:04.000\nTwo\n"
    document = source(text)
    key = document.blocks[0].key
    result = written(document, texts(document) | {key: "\nEins\r\n \r\n\nzwei\n"}).decode()
    assert "\nEins\nzwei\n" in result
    with pytest.raises(DragomanError, match="cannot hold `-->`"):
        written(document, texts(document) | {key: "A --> B"})


def test_a_text_that_an_empty_line_cuts_is_one_text_in_subrip_and_is_healed() -> None:
    text = f"{CUE}One\n\ntwo\n\n2\n00:00:03,000 --> 00:00:04,000\n\nlate\n"
    document = source(text)
    assert texts(document) == {"00:00:01,000": "One\n\ntwo", "00:00:03,000": "late"}
    assert written(document, texts(document)) == text.encode()
    result = written(document, {"00:00:01,000": "Eins\n\nzwei", "00:00:03,000": "spät"})
    assert result.decode() == f"{CUE}Eins\nzwei\n\n2\n00:00:03,000 --> 00:00:04,000\n\nspät\n"


def test_cues_without_an_empty_line_between_them_are_told_apart() -> None:
    text = f"{CUE}One\n2\n00:00:03,000 --> 00:00:04,000\n2024\n"
    assert texts(source(text)) == {"00:00:01,000": "One", "00:00:03,000": "2024"}


def test_keys_are_unique_and_do_not_move_with_numbers() -> None:
    text = f"{CUE}One\n\n{CUE}Two\n\n9\n00:00:03,000 --> 00:00:04,000\nThree\n"
    assert list(texts(source(text))) == ["00:00:01,000", "00:00:01,000/2", "00:00:03,000"]
    text = "WEBVTT\n\na/b\n00:01.000 --> 00:02.000\nOne\n\na/b\n00:02.000 --> 00:03.000\nTwo\n"
    assert list(texts(source(text))) == ["a~1b", "a~1b/2"]


def test_the_neighbours_texts_are_the_context_and_the_width_is_noted() -> None:
    cue = CUE.replace
    text = f"{CUE}One\n\n{cue(':01', ':03')}Two\nlines\n\n{cue(':01', ':05')}Three\n"
    one, two, three = source(text).blocks
    assert (one.context, two.context, three.context) == (
        "after: Two lines", "before: One\nafter: Three", "before: Two lines",
    )  # fmt: skip
    assert "42 characters (16 in Chinese" in one.note


def test_voices_and_times_inside_a_text_are_protected() -> None:
    shown = protect("<v.loud Roger O'Neil>Who <00:19.000>said <c.red>that</c>?", "html")
    assert shown.text == "⟦1⟧Who ⟦2⟧said ⟦3⟧that⟦/3⟧?"
    assert dict(shown.markers) == {"1": "<v.loud Roger O'Neil>", "2": "<00:19.000>", "3": "<c.red>"}


def test_what_a_webvtt_player_does_not_show_is_no_text() -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\nOne\n\norphan\nlines\n\nNOTE\na --- b\n\nREGION\nid:x\n"
    assert list(texts(source(text)).values()) == ["One"]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_any_translation_reads_back_without_its_empty_lines_or_is_refused(value: str) -> None:
    for text in (
        f"{CUE}One\n\n2\n00:00:03,000 --> 00:00:04,000\nTwo\n",
        "WEBVTT\n\n00:01.000 --> 00:02.000\nOne\n",
    ):
        document = source(text)
        key = document.blocks[0].key
        try:
            result = written(document, texts(document) | {key: value})
        except DragomanError:
            refused = "-->" in value or not value.strip()
            assert refused
            continue
        assert len(source(result).blocks) == len(document.blocks)
