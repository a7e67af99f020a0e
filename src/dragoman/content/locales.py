"""Locales: one spelling inside, the caller's on disk, and CLDR's answers about each.

Promises that a tag which `canonical` lets through is well formed, names a real language and has one spelling.
Plural categories, text direction and fallbacks come from CLDR. Knows no provider and no file layout.
"""

from __future__ import annotations

import gettext as _gettext
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.localedata import locale_identifiers
from babel.messages.plurals import PLURALS
from langcodes import Language

from dragoman.kernel import limits
from dragoman.kernel.errors import LocaleError

_WELL_FORMED = re.compile(
    r"[a-z]{2,3}(-[a-z]{3})?(-[a-z]{4})?(-([a-z]{2}|\d{3}))?(-([a-z\d]{5,8}|\d[a-z\d]{3}))*"
    r"(-[a-wyz\d](-[a-z\d]{2,8})+)*(-x(-[a-z\d]{1,8})+)?",
    re.ASCII | re.IGNORECASE,
)
_NO_LANGUAGE = frozenset({"und", "mul", "mis", "zxx", "root"})
_SAME = {"no": "nb", "cmn": "zh", "arb": "ar"}
"""Two codes in use for one language; the right one is compared."""

_CATEGORIES = ("zero", "one", "two", "few", "many", "other")
_RIGHT_TO_LEFT = frozenset(
    ("Adlm", "Arab", "Aran", "Hebr", "Mand", "Mend", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa", "Yezi")
)
_SAMPLE = (*range(201), 1_000, 1_001, 1_002, 1_005, 10_000, 100_000, 1_000_000, 2_000_000, 5_000_000)


_POSIX_SCRIPTS = {"Latn": "@latin", "Cyrl": "@cyrillic", "Deva": "@devanagari", "Arab": "@arabic"}
_ANDROID_LEGACY = {"he": "iw", "id": "in", "yi": "ji"}


class _Full(NamedTuple):
    language: str
    script: str
    region: str


class GettextPlural(NamedTuple):
    """A gettext plural rule: `nplurals`, the C expression over `n`, and the CLDR category of each index."""

    nplurals: int
    formula: str
    categories: tuple[str, ...]

    @property
    def header(self) -> str:
        """The value of a PO file's `Plural-Forms`."""
        return f"nplurals={self.nplurals}; plural={self.formula};"


@lru_cache(maxsize=1024)
def _parsed(tag: str) -> Language:
    return Language.get(tag)


def canonical(tag: str, place: str = "") -> str:
    """The one BCP 47 spelling of a tag; `_` counts as `-`, case does not matter, `iw` becomes `he`.

    Raises `LocaleError`, naming `place`, for an ill-formed tag or an unknown language, script or region.
    """
    where = f" at {place}" if place else ""
    spelled = tag.replace("_", "-")
    if len(tag) > limits.LOCALE_CHARS_MAX or not _WELL_FORMED.fullmatch(spelled):
        raise LocaleError(
            f"{tag[: limits.LOCALE_CHARS_MAX]!r}{where} is not a locale: write it like `de` or `pt-BR`",
            place=place,
        )
    language = _parsed(spelled)
    if (language.language or "und") in _NO_LANGUAGE or language.extlangs or not language.is_valid():
        raise LocaleError(f"{tag!r}{where} names no language, script or region that is known", place=place)
    return language.to_tag()


def same_language(one: str, other: str) -> bool:
    """Whether two locales share language and script, so that equal texts are no missing translation."""
    return _full(one)[:2] == _full(other)[:2]


def equivalent(one: str, other: str) -> bool:
    """Whether two tags mean one locale by CLDR's likely subtags (`en` and `en-US`, `zh-TW` and `zh-Hant`)."""
    return _full(one) == _full(other)


@lru_cache(maxsize=8192)
def spelled_locale(name: str) -> str:
    """The tag that a file's or folder's name spells, empty where it spells none.

    Names on disk are guesses: only languages that CLDR describes count, so that `min` and `raw` are words.
    """
    posix, _, modifier = name.partition("@")
    script = next((code for code, tail in _POSIX_SCRIPTS.items() if tail == f"@{modifier}"), "")
    language, *rest = posix.replace("_", "-").split("-")
    spelled = "-".join((language, script, *rest) if script else (language, *rest))
    if (modifier and not script) or not (len(language) == 2 or language.lower() in _described()):
        return ""
    return _readable(spelled)


def direction(locale: str) -> str:
    """`rtl` or `ltr`, by the locale's script."""
    return "rtl" if _full(locale).script in _RIGHT_TO_LEFT else "ltr"


@lru_cache(maxsize=256)
def english_name(locale: str) -> str:
    """What a locale's language is called in English; the tag itself where CLDR does not say."""
    found = _cldr(locale)
    return (found.get_language_name("en") if found else None) or locale


def script(locale: str) -> str:
    """The ISO 15924 code of the script that a locale is written in (`Latn`, `Hant`); empty for none."""
    return _full(locale).script


def plural_categories(locale: str) -> tuple[str, ...]:
    """The cardinal categories that CLDR has for the locale, in CLDR's order; the last is always `other`."""
    found = _cldr(locale)
    return _in_order(found.plural_form.tags if found else ())


def ordinal_categories(locale: str) -> tuple[str, ...]:
    """The ordinal categories (1st, 2nd …) of the locale, in the same order."""
    found = _cldr(locale)
    return _in_order(found.ordinal_form.tags if found else ())


def _in_order(tags: Collection[str]) -> tuple[str, ...]:
    return tuple(category for category in _CATEGORIES if category in tags or category == "other")


def plural_sample(locale: str) -> Mapping[str, frozenset[int]]:
    """The categories that whole numbers up to 200 come in, and which numbers those are."""
    met: dict[str, set[int]] = {}
    for number in range(201):
        met.setdefault(plural_category(locale, number), set()).add(number)
    return {category: frozenset(numbers) for category, numbers in met.items()}


def plural_category(locale: str, number: int) -> str:
    """The cardinal category that CLDR gives a whole number in this locale."""
    found = _cldr(locale)
    return str(found.plural_form(number)) if found else "other"


@lru_cache(maxsize=256)
def gettext_plural(locale: str) -> GettextPlural:
    """The gettext plural rule for new PO files in this locale: `(nplurals, formula, categories by index)`.

    Categories are CLDR's, found by sampling: `ru` gives three forms one, few and many, never `other`.
    """
    found = _cldr(locale)
    names = (str(found), found.language) if found else ()
    count, formula = next((PLURALS[name] for name in names if name in PLURALS), (2, "(n != 1)"))
    return GettextPlural(count, formula, gettext_categories(locale, count, formula))


@lru_cache(maxsize=256)
def gettext_categories(locale: str, nplurals: int, formula: str) -> tuple[str, ...]:
    """The CLDR category that each index of a file's own `Plural-Forms` stands for in this locale.

    An index that no sampled number reaches is `other`. Raises `ValueError` for a formula that is not C.
    """
    index_of: Callable[[int], int] = _gettext.c2py(formula)
    met: dict[int, Counter[str]] = {}
    for number in _SAMPLE:
        met.setdefault(index_of(number), Counter())[plural_category(locale, number)] += 1
    return tuple(met[i].most_common(1)[0][0] if i in met else "other" for i in range(nplurals))


def choose_code(locale: str, declared: Mapping[str, str] | Collection[str]) -> str | None:
    """The provider's code for a locale out of those it declares, None where it has none.

    `declared` maps BCP 47 tags to codes, or is the codes themselves. The region may be one that CLDR implies
    (`zh-Hant` → `zh-TW`) or descends from (`es-MX` → `es-419`), or be left out (`de-AT` → `de`). The script
    never changes (`zh-Hant` is not `zh`, `sr-Latn` not `sr`), nor does one region speak for another.
    """
    known = declared if isinstance(declared, Mapping) else {code: code for code in declared}
    offers = {tag: code for spelled, code in known.items() if (tag := _readable(spelled))}
    wanted = canonical(locale)
    if wanted in offers:
        return offers[wanted]
    for step in _lineage(wanted):
        for tag, code in offers.items():
            if _full(tag) == step:
                return code
    for tag, code in offers.items():
        if _parsed(tag).territory is None and _full(tag)[:2] == _full(wanted)[:2]:
            return code
    return None


def spellings(locale: str) -> tuple[str, ...]:
    """How files and folders on disk may spell a locale: the tag itself first, then each ecosystem's way."""
    ways = (locale, gettext_spelling(locale), android_spelling(locale), apple_spelling(locale))
    spelled = [*ways, *(way.lower() for way in ways), *(way.replace("-", "_") for way in ways)]
    return tuple(dict.fromkeys(spelled))


def gettext_spelling(locale: str) -> str:
    """As GNU gettext writes it: `pt_BR`, `sr@latin`, `zh_TW`."""
    language = _parsed(locale)
    name, region = language.language or "", language.territory
    if name == "zh" and language.script:
        region = region or _full(locale)[2]
    tail = _POSIX_SCRIPTS.get(language.script or "", "") if name != "zh" else ""
    return f"{name}_{region}{tail}" if region else f"{name}{tail}"


def android_spelling(locale: str) -> str:
    """As an Android resource qualifier: `pt-rBR`, `b+sr+Latn`, `iw`."""
    language = _parsed(locale)
    if language.script or language.variants:
        return "b+" + locale.replace("-", "+")
    name = _ANDROID_LEGACY.get(language.language or "", language.language or "")
    return f"{name}-r{language.territory}" if language.territory else name


def apple_spelling(locale: str) -> str:
    """As an `.lproj` folder: `zh-Hans`, `zh-Hant-HK`, `pt-BR`; Chinese has its script, no usual region."""
    language = _parsed(locale)
    if language.language != "zh" or language.script:
        return locale
    script = f"zh-{_full(locale).script}"
    return script if equivalent(script, locale) else f"{script}-{language.territory}"


def _readable(code: str) -> str:
    try:
        return canonical(code)
    except LocaleError:
        return ""  # a code of the provider's own making is reached through a declared mapping only


@lru_cache(maxsize=1)
def _described() -> frozenset[str]:
    """The language codes that CLDR has data for."""
    return frozenset(identifier.partition("_")[0] for identifier in locale_identifiers())


def _lineage(tag: str) -> Iterator[_Full]:
    """The locale itself and its ancestors by CLDR's explicit parents, within one language and script."""
    step: str | None = tag
    while step and _full(step)[:2] == _full(tag)[:2]:
        yield _full(step)
        language, script, region = _full(step)
        parents = get_global("parent_exceptions")
        parent = parents.get(f"{language}_{region}") or parents.get(f"{language}_{script}_{region}")
        step = parent.replace("_", "-") if parent and _parsed(step).territory else None


@lru_cache(maxsize=1024)
def _full(tag: str) -> _Full:
    """Language, script and region, with CLDR's likely ones filled in."""
    likely = _parsed(tag).maximize()
    language = likely.language or ""
    return _Full(_SAME.get(language, language), likely.script or "", likely.territory or "")


@lru_cache(maxsize=256)
def _cldr(tag: str) -> Locale | None:
    """CLDR's data for a locale, or for its language where the region has none."""
    explicit = _parsed(tag)
    language = _full(tag).language
    for parts in (
        (language, explicit.script, explicit.territory),
        (language, explicit.script),
        (language, explicit.territory),
        (language,),
        (explicit.language,),
    ):
        try:
            return Locale.parse("_".join(part for part in parts if part), resolve_likely_subtags=False)
        except (UnknownLocaleError, ValueError):
            continue
    return None
