"""Qt Linguist: messages, states, and plurals by Qt's own table."""

from __future__ import annotations

import gettext
from collections.abc import Mapping
from pathlib import Path

import pytest

from dragoman.content.catalogues import qt_plurals
from dragoman.content.documents import choose_format, open_document, render
from dragoman.content.formats.qt_linguist import QtLinguist
from dragoman.content.protection import protect
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Document, Text
from dragoman.wiring import catalogue
from tests.content.real_files import case, corpus

QT = QtLinguist()
FISH = {"one": "%n ryba", "few": "%n ryby", "many": "%n ryb", "other": "%n ryby"}


def ts(*messages: str, language: str = "pl") -> str:
    said = f' language="{language}"' if language else ""
    inside = "".join(f"    {message}\n" for message in messages)
    return (
        f'<?xml version="1.0"?>\n<!DOCTYPE TS>\n<TS version="2.1"{said}>\n<context>\n    <name>W</name>\n'
        f"{inside}</context>\n</TS>\n"
    )


def message(source: str, rest: str = '<translation type="unfinished"></translation>', said: str = "") -> str:
    return f"<message{said}><source>{source}</source>{rest}</message>"


def numerus(*forms: str, said: str = "") -> str:
    inside = "".join(f"<numerusform>{form}</numerusform>" for form in forms)
    return message("%n fish", f"<translation{said}>{inside}</translation>", ' numerus="yes"')


def source(text: str) -> Document:
    return open_document(QT, "a.ts", text.encode(), "source", "en")


def target(text: str, locale: str = "pl") -> Document:
    return open_document(QT, "a.ts", text.encode(), "target", locale)


def written(text: str, values: Mapping[str, Text], base: str | None = None, locale: str = "pl") -> str:
    stands = target(base, locale) if base is not None else None
    return render(QT, stands, source(text), values, locale).data.decode()


def values_of(document: Document) -> dict[str, Text]:
    return {block.key: block.value for block in document.blocks}


def test_s01_polish_has_three_forms_in_qt() -> None:
    """[S01] Byte for byte: forms in one line, as the first stands, and nothing unfinished any more."""
    given, expected = case("S01", "ts")
    values = {
        "W/%n apple(s)": {"one": "%n jabłko", "few": "%n jabłka", "many": "%n jabłek", "other": "%n jabłka"}
    }
    document = open_document(QT, "a.ts", given, "source", "en")
    standing = open_document(QT, "a.ts", given, "target", "pl")
    for base in (None, standing):
        assert render(QT, base, document, values, "pl").data == expected


def test_s01_in_small() -> None:
    """[S01] The same shape, always run."""
    done = written(ts(numerus("", said=' type="unfinished"')), {"W/%n fish": FISH})
    assert done == ts(numerus("%n ryba", "%n ryby", "%n ryb"))


def test_forms_stand_on_lines_where_the_file_has_them_so() -> None:
    text = ts(numerus("").replace("<numerus", "\n      <numerus"))
    grown = written(text, {"W/%n fish": FISH})
    assert (
        "\n      <numerusform>%n ryba</numerusform>\n      <numerusform>%n ryby</numerusform>\n      <n"
        in grown
    )
    bare = ts(message("%n fish", '\n        <translation type="unfinished"></translation>', ' numerus="yes"'))
    fresh = written(bare, {"W/%n fish": FISH})
    assert "<translation>\n            <numerusform>%n ryba</numerusform>\n" in fresh
    assert "ryb</numerusform>\n        </translation>" in fresh


def test_forms_too_many_are_taken_away() -> None:
    text = ts(numerus("a", "b", "c"), language="ja")
    assert written(text, {"W/%n fish": {"other": "d"}}, text, "ja") == ts(numerus("d"), language="ja")


@pytest.mark.parametrize(
    ("locale", "names"),
    [
        ("pl", ("one", "few", "many")),
        ("ru", ("one", "few", "many")),
        ("cs", ("one", "few", "other")),
        ("sk", ("one", "few", "other")),
        ("ar", ("zero", "one", "two", "few", "many", "other")),
        ("ja", ("other",)),
        ("zh-Hant-TW", ("other",)),
        ("tr", ("other",)),
        ("de", ("one", "other")),
        ("fr", ("one", "other")),
        ("pt-BR", ("one", "other")),
        ("lv", ("one", "other", "zero")),
        ("sl", ("one", "two", "few", "other")),
        ("mt", ("one", "few", "many", "other")),
        ("gd", ("one", "two", "few", "other")),
        ("cy", ("zero", "one", "=2", "many", "other")),
        ("xh", ("one", "other")),
    ],
)
def test_each_form_stands_for_a_category(locale: str, names: tuple[str, ...]) -> None:
    assert qt_plurals.rule(locale).names == names


def test_portuguese_of_brazil_counts_zero_with_one() -> None:
    def form(locale: str, number: int) -> int:
        formula = qt_plurals.rule(locale).header.partition("plural=")[2].rstrip(";")
        return int(gettext.c2py(formula)(number))

    assert [form("pt-BR", number) for number in (0, 1, 2)] == [0, 0, 1]
    assert [form("pt", number) for number in (0, 1, 2)] == [1, 0, 1]


def test_states_and_what_is_obsolete() -> None:
    text = ts(
        message("a", "<translation>A</translation>"),
        message("b", '<translation type="unfinished">B</translation>'),
        message("c"),
        message("d", '<translation type="obsolete">D</translation>'),
        message("e", '<translation type="vanished">E</translation>'),
        message("f", ""),
    )
    states = {block.key: block.state for block in target(text).blocks}
    assert states == {"W/a": "", "W/b": "fuzzy", "W/c": "untranslated", "W/f": "untranslated"}
    done = written(text, dict.fromkeys(states, "ż"), text)
    assert done.count("<translation>ż</translation>") == 4
    assert 'obsolete">D<' in done
    assert 'vanished">E<' in done
    assert written(text, {"W/b": "B"}, text) == text.replace(' type="unfinished">B', ">B")


def test_translations_into_another_language_are_blanked() -> None:
    text = ts(message("a", "<translation>A</translation>"), message("b"), numerus("x", "y"), language="de_DE")
    done = written(text, {"W/b": "B"})
    assert 'language="pl"' in done
    assert '<source>a</source><translation type="unfinished"></translation>' in done
    assert "<numerusform></numerusform>" in done
    assert 'language="pt_BR"' in written(text, {"W/b": "B"}, locale="pt-BR")
    assert '<TS version="2.1" language="pl">' in written(ts(message("a"), language=""), {"W/a": "A"})


def test_comments_are_context_and_notes_and_tell_messages_apart() -> None:
    about = (
        "<comment>verb</comment><extracomment>One</extracomment><translatorcomment>Two</translatorcomment>"
    )
    text = ts(message("Open", about), message("Open", ""), message("Open/~", "", ' id="x"'))
    first, second, third = source(text).blocks
    assert (first.key, first.context, first.note) == ("W/Open/verb", "W / verb", "One\nTwo")
    assert (second.key, third.key) == ("W/Open", "W/x")
    done = written(text, {"W/Open/verb": "Otwórz"})
    assert "</translatorcomment><translation>Otwórz</translation></message>" in done


def test_placeholders_and_bytes_are_protected() -> None:
    text = ts(message("%1 of %L2 (%n) &lt;b&gt;x&lt;/b&gt;"), message('a<byte value="x1b"/>b %1'))
    first, second = source(text).blocks
    assert protect(first.text, first.syntax).text == "⟦1⟧ of ⟦2⟧ (⟦3⟧) ⟦4⟧x⟦/4⟧"
    assert protect(second.text, second.syntax).text == "a⟦1⟧b ⟦2⟧"
    assert '<translation>ż<byte value="x1b"/></translation>' in written(
        text, {second.key: 'ż<byte value="x1b"/>'}
    )


def test_of_variants_by_length_only_the_translated_one_is_left() -> None:
    both = "<lengthvariant>Long</lengthvariant><lengthvariant>L</lengthvariant>"
    text = ts(message("a", f'<translation variants="yes">{both}</translation>'))
    assert values_of(target(text)) == {"W/a": "Long"}
    assert written(text, {"W/a": "Long"}, text) == text
    done = written(text, {"W/a": "ż"}, text)
    assert '<translation variants="yes"><lengthvariant>ż</lengthvariant></translation>' in done


def test_new_messages_and_contexts_stand_behind_their_neighbours() -> None:
    full = ts(message("a"), message("b"), message("c"))
    more = full.replace("</TS>", "<context>\n    <name>V</name>\n    " + message("d") + "\n</context>\n</TS>")
    values: dict[str, Text] = {key: f"{key} ż" for key in values_of(source(more))}
    assert list(values) == ["W/a", "W/b", "W/c", "V/d"]
    assert written(more, values, ts(message("b"))) == written(more, values)
    rendered = render(QT, target(more), source(ts(message("a"))), {}, "pl")
    assert rendered.lost == ("W/b", "W/c", "V/d")


def test_a_message_without_plural_takes_no_plural() -> None:
    with pytest.raises(DragomanError, match="one text"):
        written(ts(message("a")), {"W/a": {"one": "x", "other": "y"}})


def test_typescript_is_not_of_this_format() -> None:
    assert not QT.detect("a.ts", "export const a: Map<TS> = 1")
    assert QT.detect("a.ts", "<!-- a note --><!DOCTYPE TS []>\n<TS>")
    assert choose_format(catalogue.formats(), "app_de.ts", ts().encode()).name == "qt"


@pytest.mark.parametrize("path", corpus("qt"))
def test_real_files_are_translated_whole_and_stay_as_they_are_without(path: Path) -> None:
    """No-op identical; every message marked and read again by us and, within `render`, by libxml2."""
    data = path.read_bytes()
    document = open_document(QT, path.name, data, "source", "en")
    for locale in ("pl", "ar"):
        values: dict[str, Text] = {
            block.key: f"{block.text}ż" if block.plural is None else {"other": f"{block.text}ż"}
            for block in document.blocks
        }
        done = render(QT, None, document, values, locale)
        read = open_document(QT, path.name, done.data, "target", locale)
        assert {block.state for block in read.blocks} == {""}
        for nothing in ({}, values_of(read)):
            assert render(QT, read, document, nothing, locale).data == done.data
