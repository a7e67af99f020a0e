"""Locales: one spelling inside, CLDR's plurals and direction, and codes that never switch script."""

from __future__ import annotations

import gettext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content import locales
from dragoman.kernel.errors import LocaleError


@pytest.mark.parametrize(
    ("written", "tag"),
    [
        ("pt_br", "pt-BR"),
        ("zh_hant", "zh-Hant"),
        ("ZH-hant-tw", "zh-Hant-TW"),
        ("iw", "he"),
        ("spa", "es"),
        ("sr-latn", "sr-Latn"),
        ("de-AT-1901", "de-AT-1901"),
        ("es-419", "es-419"),
        ("en-XA", "en-XA"),
    ],
)
def test_every_spelling_of_a_locale_becomes_one(written: str, tag: str) -> None:
    assert locales.canonical(written) == tag
    assert locales.canonical(tag) == tag


@pytest.mark.parametrize(
    "bad",
    ["", " ", "e", "xx", "zz-ZZ", "english", "pt-rBR", "en-XYZ", "de-", "-de", "de--AT", "und", "mul", "root",
     "x-foo", "sr@latin", "C", "de AT", "de\n", "ｄｅ", "fr/../..", "de-" + "a" * 80, "zh-Fooo"],
)  # fmt: skip
def test_what_is_no_locale_is_refused_with_its_place(bad: str) -> None:
    with pytest.raises(LocaleError) as refusal:
        locales.canonical(bad, "--to")
    assert refusal.value.code == "unsupported_locale"
    assert refusal.value.place == "--to"
    assert "--to" in refusal.value.message


@given(st.text(max_size=20))
def test_any_text_is_either_a_locale_or_refused(text: str) -> None:
    try:
        tag = locales.canonical(text)
    except LocaleError:
        return
    assert locales.canonical(tag) == tag


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("en", "en-GB", True),
        ("sr", "sr-Latn", False),
        ("zh", "zh-CN", True),
        ("zh-TW", "zh-Hant", True),
        ("zh", "zh-Hant", False),
        ("no", "nb", True),
        ("de", "nl", False),
    ],
)
def test_a_language_is_the_same_within_one_script(one: str, other: str, same: bool) -> None:
    assert locales.same_language(one, other) is same


def test_direction_follows_the_script() -> None:
    assert [locales.direction(tag) for tag in ("ar", "he", "fa-AF", "pa-PK", "ur", "ckb")] == ["rtl"] * 6
    assert [locales.direction(tag) for tag in ("de", "pa", "ja", "az", "ar-Latn")] == ["ltr"] * 5


@pytest.mark.parametrize(
    ("locale", "categories"),
    [
        ("en", "one other"),
        ("pl", "one few many other"),
        ("ru", "one few many other"),
        ("ar", "zero one two few many other"),
        ("ja", "other"),
        ("zh-Hant", "other"),
        ("sl", "one two few other"),
        ("fr-CA", "one many other"),
        ("pt-PT", "one many other"),
        ("tlh", "other"),
    ],
)
def test_plural_categories_are_cldrs_in_cldrs_order(locale: str, categories: str) -> None:
    assert locales.plural_categories(locale) == tuple(categories.split())


@pytest.mark.parametrize(
    ("locale", "categories"),
    [
        ("en", "one other"),
        ("ru", "one few many"),
        ("pl", "one few many"),
        ("cs", "one few other"),
        ("ar", "zero one two few many other"),
        ("ja", "other"),
        ("es", "one many other"),
        ("pt-BR", "one many other"),
        ("sl", "one two few other"),
        ("lv", "zero one other"),
        ("tlh", "other other"),
    ],
)
def test_each_gettext_index_has_its_category(locale: str, categories: str) -> None:
    rule = locales.gettext_plural(locale)
    assert rule.categories == tuple(categories.split())
    assert rule.nplurals == len(rule.categories)
    assert rule.header == f"nplurals={rule.nplurals}; plural={rule.formula};"


@pytest.mark.parametrize(
    "locale", ["en", "ru", "ar", "fr", "pt", "pt-PT", "ja", "ga", "sl", "cy", "lt", "mt"]
)
def test_a_gettext_rule_and_cldr_agree_on_every_small_number(locale: str) -> None:
    rule = locales.gettext_plural(locale)
    index_of = gettext.c2py(rule.formula)
    agreed = [rule.categories[index_of(n)] == locales.plural_category(locale, n) for n in range(120)]
    assert all(agreed)


def test_a_files_own_plural_header_is_obeyed() -> None:
    assert locales.gettext_categories("es", 2, "n != 1") == ("one", "other")
    assert locales.gettext_categories("fr", 2, "n > 1") == ("one", "other")
    four = "n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2"
    assert locales.gettext_categories("pl", 4, four) == ("one", "few", "many", "other")
    with pytest.raises(ValueError, match="plural"):
        locales.gettext_categories("es", 2, "import os")


T9_CODES = ("zh", "zh-TW", "pt-PT", "pt-BR", "sr")


def test_t9_locale_mapping_never_changes_the_script() -> None:
    assert locales.choose_code("zh-Hant", T9_CODES) == "zh-TW"
    assert locales.choose_code("pt-BR", T9_CODES) == "pt-BR"
    assert locales.choose_code("sr-Latn", T9_CODES) is None
    assert locales.choose_code("zh-Hant", ("zh", "sr")) is None


@pytest.mark.parametrize(
    ("locale", "declared", "code"),
    [
        ("de-AT", ("de",), "de"),
        ("de-AT", ("de-DE",), None),
        ("pt-PT", ("pt-BR",), None),
        ("pt-AO", ("pt-BR", "pt-PT"), "pt-PT"),
        ("es-MX", ("es", "es-419"), "es-419"),
        ("en-AU", ("en-US", "en-GB"), None),
        ("en-AU", {"en-001": "EN-GB", "en-US": "EN-US"}, "EN-GB"),
        ("en", ("EN-GB", "EN-US"), "EN-US"),
        ("zh", ("zh-TW", "zh-CN"), "zh-CN"),
        ("zh-HK", ("zh", "zh-TW"), None),
        ("zh-HK", ("zh", "zh-Hant"), "zh-Hant"),
        ("zh-MO", ("zh-TW", "zh-HK"), "zh-HK"),
        ("zh-Hant", {"zh": "zh", "zh-Hant": "zt"}, "zt"),
        ("zh-Hant", ("zh", "zt"), None),
        ("es", ("eng", "spa"), "spa"),
        ("nb", ("no",), "no"),
        ("nn", ("no", "nb"), None),
        ("sr", ("sr-Cyrl",), "sr-Cyrl"),
        ("ca-valencia", ("ca",), "ca"),
        ("hi-Latn", ("en-IN", "hi"), None),
        ("ja", (), None),
    ],
)
def test_a_providers_code_is_the_callers_locale_or_none(
    locale: str, declared: tuple[str, ...] | dict[str, str], code: str | None
) -> None:
    assert locales.choose_code(locale, declared) == code


def test_each_ecosystems_spelling() -> None:
    assert locales.gettext_spelling("sr-Latn") == "sr@latin"
    assert locales.gettext_spelling("pt-BR") == "pt_BR"
    assert locales.gettext_spelling("zh-Hant") == "zh_TW"
    assert locales.gettext_spelling("uz-Cyrl-UZ") == "uz_UZ@cyrillic"
    assert locales.android_spelling("pt-BR") == "pt-rBR"
    assert locales.android_spelling("sr-Latn") == "b+sr+Latn"
    assert locales.android_spelling("he") == "iw"
    assert locales.apple_spelling("zh-TW") == "zh-Hant"
    assert [locales.apple_spelling(tag) for tag in ("zh", "zh-SG")] == ["zh-Hans", "zh-Hans-SG"]
    assert locales.apple_spelling("zh-HK") == "zh-Hant-HK"
    assert locales.spellings("pt-BR")[:2] == ("pt-BR", "pt_BR")
    assert {"pt-br", "pt-rBR", "pt_br"} <= set(locales.spellings("pt-BR"))


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("pt_BR", "pt-BR"),
        ("pt-br", "pt-BR"),
        ("sr@latin", "sr-Latn"),
        ("zh-Hans", "zh-Hans"),
        ("fil", "fil"),
        ("min", ""),
        ("raw", ""),
        ("ca@valencia", ""),
        ("english", ""),
        ("", ""),
        ("en_", ""),
    ],
)
def test_names_on_disk_spell_known_languages_only(name: str, tag: str) -> None:
    assert locales.spelled_locale(name) == tag


def test_likely_subtags_make_tags_equivalent() -> None:
    assert locales.equivalent("en", "en-US")
    assert locales.equivalent("zh-TW", "zh-Hant")
    assert not locales.equivalent("en", "en-GB")
