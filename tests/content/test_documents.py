from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from dragoman.content.documents import choose_format, explain, open_document, render
from dragoman.content.formats.gettext import GettextCatalogue
from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.content.formats.markdown import MarkdownFormat
from dragoman.content.spans import splice
from dragoman.kernel.errors import CallerError, DragomanError
from dragoman.model.contracts import Format
from dragoman.model.documents import Document, Edit, EditKind, Span, Text, Writing

FORMATS: list[Format] = [GettextCatalogue(), JsonCatalogue(), MarkdownFormat(), MarkdownFormat(mdx=True)]
PO = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "a"\nmsgstr "ä"\n\n#~ msgid "old"\n#~ msgstr "alt"\n'
MD = """\
---
title: One
weight: 1
---

Text with a [link](/here) and `code`.

    indented code

{{< note 1 >}}
"""


def test_an_unknown_format_is_refused_with_all_that_are_known() -> None:
    with pytest.raises(CallerError) as refused:
        choose_format(FORMATS, "image.png")
    assert refused.value.code == "unsupported_format"
    assert "image.png is of no known format" in refused.value.message
    for known in ("gettext (.po .pot)", "json (.json)", "markdown (.md .markdown)", "mdx (.mdx)"):
        assert known in refused.value.message


def test_edits_are_told_in_bytes_of_the_base() -> None:
    data = b'\xef\xbb\xbf{"\xc3\xa4": "\xe2\x80\xa6", "b": "x"}'
    source = open_document(FORMATS[1], "a.json", data, "source", "en")
    rendered = render(FORMATS[1], None, source, {"ä": "…", "b": "ü"}, "de")
    assert explain(rendered.edits) == [
        {"start": 23, "end": 24, "kind": "value", "key": "b", "text": "ü", "encoding": "utf-8"}
    ]
    assert rendered.data == data[:23] + "ü".encode() + data[24:]


def test_a_whole_file_is_rebuilt_from_its_source_whatever_stands_at_the_target() -> None:
    source = open_document(FORMATS[2], "a.md", b"# One\n", "source", "en")
    target = open_document(FORMATS[2], "b.md", b"# Alt\n\nmehr\n", "target", "de")
    rendered = render(FORMATS[2], target, source, {"1/h": "Eins"}, "de")
    assert (rendered.data, rendered.base, rendered.lost) == (b"# Eins\n", "source", ())


@pytest.mark.parametrize("text", ["", "\n\n", "```\ncode\n```\n"])
def test_a_document_without_texts_is_valid_and_becomes_its_own_copy(text: str) -> None:
    source = open_document(FORMATS[2], "a.md", text.encode(), "source", "en")
    assert source.blocks == ()
    assert render(FORMATS[2], None, source, {}, "de").data == text.encode()


def test_nothing_is_written_over_something() -> None:
    source = open_document(FORMATS[2], "a.md", b"\n", "source", "en")
    target = open_document(FORMATS[2], "b.md", b"# Alt\n", "target", "de")
    with pytest.raises(DragomanError) as refused:
        render(FORMATS[2], target, source, {}, "de")
    assert refused.value.code == "would_empty"


def test_a_field_that_is_empty_in_the_source_may_be_empty_unless_the_target_says_something() -> None:
    source = open_document(FORMATS[1], "a.json", b'{"a": "", "b": "x"}', "source", "en")
    assert render(FORMATS[1], None, source, {"a": "", "b": "X"}, "de").data == b'{"a": "", "b": "X"}'
    target = open_document(FORMATS[1], "b.json", b'{"a": "by hand"}', "target", "de")
    with pytest.raises(DragomanError) as refused:
        render(FORMATS[1], target, source, {"a": ""}, "de")
    assert refused.value.code == "would_empty"


def test_texts_without_letters_may_be_missing_from_a_whole_file() -> None:
    source = open_document(FORMATS[2], "a.md", b"| 1 | word |\n|---|---|\n", "source", "en")
    assert render(FORMATS[2], None, source, {"0/td2": "Wort"}, "de").data == b"| 1 | Wort |\n|---|---|\n"


class Meddling:
    """A format that also makes one edit of its own; delegates all else."""

    def __init__(self, format: Format, old: str, new: str, kind: EditKind = "metadata") -> None:
        self._format = format
        self._old, self._new, self._kind = old, new, kind
        self.name, self.extensions = format.name, format.extensions
        self.whole, self.shared, self.renames = format.whole, format.shared, format.renames
        self.detect, self.charset, self.read = format.detect, format.charset, format.read
        self.second_opinion = format.second_opinion

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        writing = self._format.write(base, source, translations, locale)
        at = base.text.index(self._old)
        own = Edit(Span(at, at + len(self._old)), self._new, self._kind)
        edits = tuple(sorted((*writing.edits, own), key=lambda edit: edit.span.start))
        return replace(writing, edits=edits, text=splice(base.text, edits))


@pytest.mark.parametrize(
    "format, text, old, new, told",
    [
        (FORMATS[1], '{"a": "x", "n": 12, "l": [true]}', "12", "13", "another value at 'n'"),
        (FORMATS[1], '{"a": "x", "n": 12, "l": [true]}', "true", "null", "another value at 'l/0'"),
        (FORMATS[1], '{"a": "x", "n": 12}', ', "n"', ' "n"', "the result would not read back"),
        (FORMATS[1], '{"a": "x", "b": "y"}', '"y"', '"z"', "'b' reads back as another text, which was not"),
        (FORMATS[1], '{"a": "x", "b": "y"}', '"b"', '"c"', "reads back as another text"),
        (FORMATS[0], PO, "#~ msgid", "#~ msgidx", "an obsolete entry would change"),
        (FORMATS[0], PO, 'msgid "a"', 'msgid "b"', "reads back as another text"),
        (FORMATS[2], MD, "indented", "other", "would turn from 'code_block"),
        (FORMATS[2], MD, "/here", "/there", "reads back as another text"),
        (FORMATS[2], MD, "weight: 1", "weight: 2", "the front matter would change"),
        (FORMATS[2], MD, "note 1", "note 2", "the shortcodes would change"),
        (FORMATS[2], MD, "\n    indented", "\n- indented", "reads back as another text"),
    ],
)
def test_an_edit_of_anything_but_texts_is_found_out(
    format: Format, text: str, old: str, new: str, told: str
) -> None:
    source = open_document(format, "file", text.encode(), "source", "en")
    standing = open_document(format, "file", text.encode(), "target", "de")
    values = {block.key: block.value for block in source.blocks} if format.whole else {}
    with pytest.raises(DragomanError) as refused:
        render(Meddling(format, old, new), standing, source, values, "de")
    assert refused.value.code == "verify_failed"
    assert told in refused.value.message


def test_a_translation_that_would_break_a_link_is_found_out() -> None:
    source = open_document(FORMATS[2], "a.md", MD.encode(), "source", "en")
    good = {"front/title": "Eins", "0/p1": "Text mit `code` und [Verweis](/here)."}
    assert b"title: Eins" in render(FORMATS[2], None, source, good, "de").data
    for bad in ("Text mit `code` und [Verweis](/da).", "Text mit `kode` und [Verweis](/here).", "Text"):
        with pytest.raises(DragomanError, match="the links, code and tags would change"):
            render(FORMATS[2], None, source, good | {"0/p1": bad}, "de")


class Forgetful(Meddling):
    """A format that writes everything but one translation, and does not say so."""

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        some = {key: value for key, value in translations.items() if key != self._old}
        return self._format.write(base, source, some, locale)


def test_a_translation_that_found_no_place_is_missed() -> None:
    source = open_document(FORMATS[1], "a.json", b'{"a": "x", "b": "y"}', "source", "en")
    with pytest.raises(DragomanError, match="the translation of 'b' found no place"):
        render(Forgetful(FORMATS[1], "b", ""), None, source, {"a": "1", "b": "2"}, "de")
