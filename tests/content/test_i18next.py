"""i18next: which keys are a plural together, and what becomes of them in another locale."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content import locales
from dragoman.content.documents import choose_format, render
from dragoman.content.formats.i18next import I18next
from dragoman.content.prompting import plural_sources
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Text
from dragoman.wiring import catalogue
from tests.content.real_files import case, corpus
from tests.content.rewriting import Rewriting, values

RUSSIAN = Rewriting(I18next(), "ru")
CATEGORIES = ("zero", "one", "two", "few", "many", "other")
TAGS = """\
{
  "tags_zero": "No tags",
  "tags_one": "{{count}} tag",
  "tags_other": "{{count}} tags",
  "friend_male": "A boyfriend",
  "max_one": "Max One"
}
"""
FORMS = {
    "=0": "Нет",
    "one": "{{count}} тег",
    "few": "{{count}} тега",
    "many": "{{count}} тегов",
    "other": "тега",
}


def to(locale: str, source_locale: str = "en") -> Rewriting:
    return replace(RUSSIAN, locale=locale, source_locale=source_locale)


def written(source: Mapping[str, object], translations: Mapping[str, Text], locale: str) -> dict[str, object]:
    result: dict[str, object] = json.loads(to(locale).first(json.dumps(source, indent=2), translations))
    return result


def test_case_o07_a_plural_grows_and_zero_contexts_and_names_are_kept() -> None:
    """[O07] In CLDR's order; the same file comes of a target that lacks the forms, or all of them."""
    given_file, expected = case("O07", "json")
    assert list(values(RUSSIAN.source(given_file))) == ["tags_other", "friend_male", "max_one"]
    wanted = values(RUSSIAN.target(expected))
    assert RUSSIAN.first(given_file, wanted).encode() == expected
    assert RUSSIAN.again(given_file, expected, wanted).encode() == expected
    assert RUSSIAN.again(given_file, given_file, wanted).encode() == expected
    assert RUSSIAN.again(given_file, RUSSIAN.first(given_file, {}), wanted).encode() == expected


def test_growth_is_told_as_such_and_under_the_plurals_key() -> None:
    source = RUSSIAN.source(TAGS)
    edits = render(RUSSIAN.format, None, source, {"tags_other": FORMS}, "ru").edits
    assert [(edit.kind, edit.text) for edit in edits if edit.key == "tags_other"] == [
        ("value", "Нет"),
        ("value", "{{count}} тег"),
        ("plural", ',\n  "tags_few": "{{count}} тега"'),
        ("plural", ',\n  "tags_many": "{{count}} тегов"'),
        ("value", "тега"),
    ]


@pytest.mark.parametrize(
    ("source", "keys"),
    [
        ({"a_one": "x", "a_other": "y"}, {"a_other": {"one": "x", "other": "y"}}),
        ({"a_other": "{{count}} y"}, {"a_other": {"other": "{{count}} y"}}),
        ({"reason_other": "Other"}, {"reason_other": "Other"}),
        ({"max_one": "x", "max_two": "y"}, {"max_one": "x", "max_two": "y"}),
        ({"a_zero": "x", "a_other": "y"}, {"a_other": {"=0": "x", "other": "y"}}),
        ({"a_male_one": "x", "a_male_other": "y"}, {"a_male_other": {"one": "x", "other": "y"}}),
        ({"p_ordinal_two": "x", "p_ordinal_other": "y"}, {"p_ordinal_other": {"two": "x", "other": "y"}}),
        ({"a_one": {"b": "x"}, "a_other": "y"}, {"a_one/b": "x", "a_other": "y"}),
        ({"a": {"b/c_one": "x", "b/c_other": "y"}}, {"a/b~1c_other": {"one": "x", "other": "y"}}),
        ({"_one": "x", "_other": "y"}, {"_one": "x", "_other": "y"}),
    ],
)  # fmt: skip
def test_a_plural_is_where_a_sibling_other_is(source: dict[str, object], keys: dict[str, Text]) -> None:
    assert values(RUSSIAN.source(json.dumps(source))) == keys


@pytest.mark.parametrize("locale", ["ar", "pl", "fr", "ja", "lv", "cy", "he", "en"])
def test_every_locale_gets_its_own_categories_and_no_other(locale: str) -> None:
    """From what the product asks for: forms that the locale has not are gone, `_zero` is there in all."""
    asked = plural_sources({"=0": "none", "one": "{{count}} a", "other": "{{count}} b"}, locale)
    found = written(json.loads(TAGS), {"tags_other": dict(asked)}, locale)
    forms = [name for name in CATEGORIES if name in locales.plural_categories(locale) or name == "zero"]
    assert [name for name in found if name.startswith("tags")] == [f"tags_{form}" for form in forms]
    kept = to(locale).target(json.dumps(found))
    again = to(locale).again(TAGS, json.dumps(found), values(kept))
    assert again == json.dumps(found)


def test_an_explicit_zero_is_not_put_in_the_place_of_a_form_for_ten() -> None:
    """In Latvian `_zero` serves 0, 10, 11 …; in Arabic 0 alone."""
    forms = {
        "=0": "none",
        "zero": "{{count}} z",
        "one": "i",
        "two": "ii",
        "few": "f",
        "many": "m",
        "other": "o",
    }
    assert written(json.loads(TAGS), {"tags_other": forms}, "lv")["tags_zero"] == "{{count}} z"
    assert written(json.loads(TAGS), {"tags_other": forms}, "ar")["tags_zero"] == "none"


def test_a_zero_without_a_translation_of_its_own_speaks_as_its_number_does() -> None:
    forms = {name: text for name, text in FORMS.items() if name != "=0"}
    assert written(json.loads(TAGS), {"tags_other": forms}, "ru")["tags_zero"] == "{{count}} тегов"
    standing = '{"tags_zero": "Пусто", "tags_one": "тег", "tags_other": "тега"}'
    source = '{"tags_one": "{{count}} tag", "tags_other": "{{count}} tags"}'
    assert (
        json.loads(RUSSIAN.again(source, standing, {"tags_other": forms}))["tags_zero"] == "{{count}} тегов"
    )


def test_forms_of_a_source_with_more_than_the_target_are_taken_out() -> None:
    source = '{\n  "a_one": "x",\n  "a_few": "y",\n  "a_many": "z",\n  "a_other": "w",\n  "b": "q"\n}'
    german = to("de", "ru")
    assert german.first(source, {"a_other": {"one": "X", "other": "W"}, "b": "Q"}) == (
        '{\n  "a_one": "X",\n  "a_other": "W",\n  "b": "Q"\n}'
    )


def test_from_one_form_to_many_and_back() -> None:
    japanese = '{"a": "x", "n_other": "{{count}}個"}'
    polish = to("pl", "ja").first(japanese, {"n_other": {"one": "i", "few": "f", "many": "m", "other": "o"}})
    assert polish == '{"n_one": "i", "n_few": "f", "n_many": "m", "n_other": "o"}'
    assert to("ja", "pl").first(polish, {"n_other": {"other": "個"}}) == '{"n_other": "個"}'
    assert (
        to("ja", "pl").again(polish, '{"n_other": "個"}', {"n_other": {"other": "箇"}}) == '{"n_other": "箇"}'
    )


def test_ordinals_take_the_ordinal_categories_of_the_locale() -> None:
    places = {f"p_ordinal_{name}": name for name in ("one", "two", "few", "other")}
    forms = {"one": "{{count}}-й", "few": "f", "many": "m", "other": "{{count}}-й"}
    assert written(places, {"p_ordinal_other": forms}, "ru") == {"p_ordinal_other": "{{count}}-й"}
    assert list(written(places, {"p_ordinal_other": forms}, "it")) == ["p_ordinal_many", "p_ordinal_other"]


def test_a_plural_of_a_target_grows_in_place_and_a_lost_one_stays() -> None:
    target = '{\r\n\t"old_one" : "i",\r\n\t"old_other" : "o",\r\n\t"tags_other" : "тега",\r\n\t"x" : "y"\r\n}'
    source = RUSSIAN.source(TAGS)
    rendered = render(RUSSIAN.format, RUSSIAN.target(target), source, {"tags_other": FORMS}, "ru")
    assert rendered.data.decode() == (
        '{\r\n\t"tags_zero" : "Нет",\r\n\t"tags_one" : "{{count}} тег",\r\n'
        '\t"tags_few" : "{{count}} тега",\r\n\t"tags_many" : "{{count}} тегов",\r\n'
        '\t"old_one" : "i",\r\n\t"old_other" : "o",\r\n\t"tags_other" : "тега",\r\n\t"x" : "y"\r\n}'
    )
    assert rendered.lost == ("old_other", "x")


def test_forms_that_stood_alone_become_part_of_the_plural() -> None:
    found = RUSSIAN.again(TAGS, '{"tags_one": "старый"}', {"tags_other": FORMS})
    assert values(RUSSIAN.target(found)) == {"tags_other": FORMS}


def test_one_text_serves_all_forms_and_a_plural_needs_its_other() -> None:
    assert set(written(json.loads(TAGS), {"tags_other": "T"}, "ru").values()) == {"T"}
    with pytest.raises(DragomanError, match="has no form `other`"):
        RUSSIAN.first(TAGS, {"tags_other": {"one": "x"}})
    with pytest.raises(DragomanError, match="one text in JSON"):
        RUSSIAN.first(TAGS, {"max_one": {"one": "x", "other": "y"}})


def test_plurals_in_lists_of_objects_keep_their_places() -> None:
    source = '{"steps": [{"n_one": "a", "n_other": "b", "t": "c"}, {"t": "d"}]}'
    forms = {"one": "A", "few": "F", "many": "M", "other": "B"}
    assert RUSSIAN.first(source, {"steps/0/n_other": forms, "steps/1/t": "D"}) == (
        '{"steps": [{"n_one": "A", "n_few": "F", "n_many": "M", "n_other": "B"}, {"t": "D"}]}'
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"a": "{{n}} files"}', "i18next"),
        ('{"a": "see $t(b)"}', "i18next"),
        ('{"a": {"n_one": "x", "n_other": "y"}}', "i18next"),
        ('{"a_one": "x", "b_other": "y"}', "json"),
        ('{"a": "plain"}', "json"),
        ('{"a": {"message": "{{n}}", "description": "x"}}', "json"),
        ('{"a": "{n, plural, one {{{n}}} other {{n}}}"}', "formatjs"),
    ],
)
def test_it_is_known_by_what_it_holds(text: str, name: str) -> None:
    assert choose_format(catalogue.formats(), "locales/en.json", text.encode()).name == name


@pytest.mark.parametrize("file", corpus("json"))
def test_real_files_written_with_their_own_texts_are_themselves(file: Path) -> None:
    data = file.read_bytes()
    own = values(RUSSIAN.source(data))
    assert RUSSIAN.first(data, own).encode() == data
    assert RUSSIAN.again(data, data, own).encode() == data
    marked: dict[str, Text] = {key: f"{value} ‹ж›" for key, value in own.items()}
    assert json.loads(RUSSIAN.first(data, marked)) == marked


NAMES = st.sampled_from(
    [f"{stem}{end}" for stem in ("a", "b") for end in ("", "_male", *map("_{}".format, CATEGORIES))]
)
FILES = st.recursive(
    st.sampled_from(["x", "{{count}} y", "z"]),
    lambda inner: st.dictionaries(NAMES, inner, max_size=7),
    max_leaves=12,
).filter(lambda value: isinstance(value, dict))


@given(FILES, st.sampled_from(["ru", "ja", "ar", "lv", "en"]), st.sampled_from([None, 2]), st.data())
def test_any_plurals_of_any_file_can_be_missing_and_come_later(
    file: dict[str, object], locale: str, indent: int | None, data: st.DataObject
) -> None:
    source = json.dumps(file, indent=indent)
    rewriting = to(locale)
    wanted: dict[str, Text] = {
        key: f"{value}!"
        if isinstance(value, str)
        else {name: f"{text}!" for name, text in plural_sources(value, locale).items()}
        for key, value in values(rewriting.source(source)).items()
    }
    some = {key: value for key, value in wanted.items() if data.draw(st.booleans())}
    partial = rewriting.first(source, some)
    complete = rewriting.again(source, partial, wanted)
    assert json.loads(complete) == json.loads(rewriting.first(source, wanted))
    assert rewriting.again(source, complete, wanted) == complete


def test_a_large_file_shows_itself_late() -> None:
    """Its first interpolation may stand behind many plain texts."""
    large = json.dumps({f"key.{number}": "a text of some words" for number in range(300)} | {"n": "{{n}}"})
    assert len(large) > 10_000
    assert choose_format(catalogue.formats(), "locales/en.json", large.encode()).name == "i18next"
