"""ARB: messages of Flutter, their attributes, and what ICU makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.content import locales, prompting
from dragoman.content.checks import check
from dragoman.content.formats.arb import ArbCatalogue
from dragoman.content.plurals import split_icu
from dragoman.content.protection import restore
from dragoman.model.documents import Block, Text
from dragoman.model.jobs import Field
from tests.content.real_files import case, corpus
from tests.content.rewriting import Rewriting, values
from tests.doubles.icu import icu

ARB = Rewriting(ArbCatalogue())
CONFLICT = 'Event "{title}" conflicts. Wait {count, plural, one{1 day} other{{count} days}} between events.'
T6 = "{productCount, plural, =1 {You have one product.} other {You have # products.}}"
SOURCE = """\
{
  "@@locale": "en",
  "@@last_modified": "2026-11-29",
  "a": "One",
  "@a": {"description": "First", "context": "menu"},
  "b": "Two {n}",
  "@b": {
    "description": "Second",
    "placeholders": {"n": {"type": "int", "example": "3"}}
  }
}
"""


def pseudo(text: str) -> str:
    return f"{text} ‹ż›"


def translated(message: str, locale: str, words: Mapping[str, str] | None = None) -> str:
    """A message as the product assembles it out of its translated sentences."""
    field = Field(0, locale, message, "icu", "", "", None, "", "")
    said = {
        piece.category: (words or {}).get(piece.source)
        or restore(piece.protected, f"l'{piece.protected.text}'")
        for piece in prompting.pieces(field)
    }
    built = prompting.assembled(field, said)
    assert isinstance(built, str)
    return built


def test_case_o11_a_plural_in_a_sentence_is_spliced_as_it_was_translated() -> None:
    """[O11] One text with both its arguments; `@conflict` stays, `@@locale` follows."""
    given, expected = case("O11", "arb")
    [block] = ARB.source(given).blocks
    assert (block.text, block.syntax, block.plural) == (CONFLICT, "icu", None)
    assert block.note == "Shown on conflict\ntitle: String"
    wanted = values(ARB.target(expected))
    assert ARB.first(given, wanted).encode() == expected
    assert ARB.again(given, expected, wanted).encode() == expected
    assert ARB.again(given, ARB.first(given, {}), wanted).encode() == expected


def test_what_is_told_of_a_text_is_its_note_and_context() -> None:
    first, second = ARB.source(SOURCE).blocks
    assert (first.note, first.context) == ("First", "menu")
    assert second.note == "Second\nn: int, for example 3"


def test_the_locale_is_set_and_nothing_else_with_an_at_sign() -> None:
    expected = SOURCE.replace('"en"', '"pl"').replace("One", "Raz").replace("Two", "Dwa")
    assert ARB.first(SOURCE, {"a": "Raz", "b": "Dwa {n}"}) == expected


@pytest.mark.parametrize(
    ("declared", "locale", "written"),
    [("en", "pt-BR", "pt_BR"), ("en-US", "pt-BR", "pt-BR"), ("pt_BR", "pt-BR", "pt_BR"),
     ("en_US", "zh-Hant", "zh_Hant"), ("iw", "he", "iw")],
)  # fmt: skip
def test_the_locale_is_spelled_as_flutter_names_files(declared: str, locale: str, written: str) -> None:
    arb = replace(ARB, locale=locale)
    assert arb.first(f'{{"@@locale": "{declared}", "a": "b"}}', {"a": "c"}) == (
        f'{{"@@locale": "{written}", "a": "c"}}'
    )


def test_a_file_that_declares_no_locale_gets_none() -> None:
    assert ARB.first('{"a": "b"}', {"a": "c"}) == '{"a": "c"}'


def test_attributes_go_and_come_with_their_text() -> None:
    without = ARB.first(SOURCE, {"a": "Raz"})
    assert "Two" not in without
    assert "@b" not in without
    assert ARB.again(SOURCE, without, {"b": "Dwa {n}"}) == (
        SOURCE.replace('"en"', '"pl"').replace("One", "Raz").replace("Two", "Dwa")
    )


def test_a_target_that_has_texts_without_attributes_gets_none() -> None:
    assert ARB.again(SOURCE, '{\n  "a": "Raz",\n  "old": "stary"\n}\n', {"a": "Raz", "b": "Dwa {n}"}) == (
        '{\n  "a": "Raz",\n  "b": "Dwa {n}",\n  "old": "stary"\n}\n'
    )


def test_of_a_name_that_stands_twice_the_last_counts_and_both_are_written() -> None:
    twice = '{"a": "One", "a": "Uno", "@a": {}, "@a": {"description": "x"}}'
    assert values(ARB.source(twice)) == {"a": "Uno"}
    assert ARB.first(twice, {"a": "Uno"}) == twice
    assert ARB.first(twice, {"a": "Raz"}) == twice.replace("One", "Raz").replace("Uno", "Raz")
    assert ARB.first(twice, {}) == "{}"


@pytest.mark.parametrize("file", corpus("arb"))
def test_real_files_written_with_their_own_texts_are_themselves(file: Path) -> None:
    arb = replace(ARB, locale=file.stem[-2:])
    data = file.read_bytes()
    own = values(arb.source(data))
    assert len(own) > 700
    assert arb.first(data, own).encode() == data
    assert arb.again(data, data, own).encode() == data
    assert arb.again(data, data, {}).encode() == data


@pytest.mark.parametrize("file", corpus("arb"))
def test_real_files_take_a_translation_of_every_text_and_change_nothing_else(file: Path) -> None:
    arb = replace(ARB, locale=file.stem[-2:])
    before = json.loads(file.read_bytes())
    wanted: dict[str, Text] = {
        block.key: pseudo(block.text) for block in arb.source(file.read_bytes()).blocks
    }
    after = json.loads(arb.first(file.read_bytes(), wanted))
    assert after == before | wanted
    assert list(after) == list(before)


def choices(file: Path) -> list[Block]:
    return [block for block in ARB.source(file.read_bytes()).blocks if split_icu(block.text)]


@pytest.mark.parametrize("locale", ["ar", "pl", "fr", "ja"])
@pytest.mark.parametrize("file", corpus("arb"))
def test_icu_reads_every_plural_that_is_rebuilt(file: Path, locale: str) -> None:
    """With the source's arguments, its exact branches and all categories of the locale."""
    found = choices(file)
    assert len(found) == 8
    for block in found:
        built = translated(block.text, locale)
        assert icu().arguments(built, locale) == icu().arguments(block.text)
        before, after = split_icu(block.text), split_icu(built)
        assert before
        assert after
        for old, new in zip(before[0].choices, after[0].choices, strict=True):
            exact = {name for name in old.selectors if name.startswith("=")}
            assert set(new.selectors) == exact | set(locales.plural_categories(locale))


@pytest.mark.parametrize("file", corpus("arb"))
def test_icu_reads_every_message_with_the_arguments_that_protection_finds(file: Path) -> None:
    for block in ARB.source(file.read_bytes()).blocks:
        if not split_icu(block.text):
            field = Field(0, "fr", block.text, "icu", "", "", None, "", "")
            marked = {raw for piece in prompting.pieces(field) for raw in piece.protected.markers.values()}
            found = {raw.strip("{} ") for raw in marked if raw.startswith("{")}
            assert found == set(icu().arguments(block.text))


def test_case_t6_a_message_grows_to_the_locales_categories_and_icu_chooses_by_them() -> None:
    """[T6] `=1` and `other` are never lost: without them the check fails the text."""
    words = {"You have one product.": "Masz jeden produkt.", "You have # products.": "Produkty: #."}
    polish = translated(T6, "pl", words)
    cut = split_icu(polish)
    assert cut
    assert cut[0].choices[0].selectors == ("=1", "one", "few", "many", "other")
    assert [icu().formatted(polish, {"productCount": n}, "pl") for n in (1, 3, 5)] == [
        "Masz jeden produkt.",
        "Produkty: 3.",
        "Produkty: 5.",
    ]
    assert not faults(T6, polish, "pl")
    assert faults(T6, polish.replace("=1 {Masz jeden produkt.} ", ""), "pl") == ["{productCount, plural: =1}"]
    assert faults(T6, polish.replace(" other {Produkty: #.}", ""), "pl")


def test_case_o11_sentences_are_whole_and_icu_reads_them_in_every_branch() -> None:
    """[O11] What a translator is shown is whole sentences; what is built of them is one message."""
    assert [piece.protected.text for piece in prompting.pieces(o11())] == [
        'Event "⟦1⟧" conflicts. Wait 1 day between events.',
        *['Event "⟦1⟧" conflicts. Wait ⟦2⟧ days between events.'] * 3,
    ]
    built = translated(CONFLICT, "pl")
    assert icu().arguments(built, "pl") == ["count", "title"]
    assert icu().formatted(built, {"title": "X", "count": 5}, "pl") == (
        "l'Event \"X\" conflicts. Wait 5 days between events.'"
    )


def o11() -> Field:
    return Field(0, "pl", CONFLICT, "icu", "", "", None, "", "")


def faults(source: str, target: str, locale: str) -> list[str]:
    found = check(source, target, syntax="icu", source_locale="en", target_locale=locale)
    return [lost for finding in found if finding.severity == "error" for lost in finding.missing]


def test_case_o06_an_apostrophe_that_quotes_an_argument_loses_it_and_is_doubled_by_protection() -> None:
    """[O06] ICU itself says so."""
    source, quoted = 'Pick a name like "{example}".', "Kies een naam zoals '{example}'."
    assert set(faults(source, quoted, "nl")) == {"{example}"}
    assert icu().arguments(quoted) == []
    [piece] = prompting.pieces(o11()._replace(target_locale="nl", value=source))
    mended = restore(piece.protected, "Kies een naam zoals '⟦1⟧'.")
    assert mended == "Kies een naam zoals ''{example}''."
    assert icu().formatted(mended, {"example": "Ann"}) == "Kies een naam zoals 'Ann'."
    plain = o11()._replace(syntax="i18next", value="Pick {{example}}")
    [piece] = prompting.pieces(plain)
    assert restore(piece.protected, "Kies '⟦1⟧'") == "Kies '{{example}}'"
