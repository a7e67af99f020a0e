"""Checks that a translation is written in its locale's script and language.

Promises an error only where nobody could have meant it: a script that is neither side's. Text in the source's
script or language may be names, a title or a test's pseudo-localization, so that it is a warning. Knows no
words itself (`vocabulary`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from dragoman.content import locales
from dragoman.content.checks.pair import Finding, Pair, Severity, language
from dragoman.content.vocabulary import (
    letters_by_script,
    scripts_in,
    scripts_of,
    telling_characters,
    winner,
)

_AT_HOME = frozenset(("LATIN",))
"""The scripts that are at home everywhere."""
_LETTERS_MIN = 4
_PROSE_LETTERS_MIN = 20
_TELLING_MIN = 3
_KANA_MIN = 12
"""Japanese of so many Chinese characters without any kana is Chinese."""


def script(pair: Pair) -> Iterable[Finding]:
    """The letters are those of the locale; names and code in Latin are at home everywhere."""
    own = _own_scripts(pair.target_locale)
    if not own or pair.is_echo or ("LATIN" in own and pair.is_latin):
        return ()
    met = scripts_in(pair.target_words)
    if (met & own and met - own <= _AT_HOME and "CJK" not in met) or not met:
        return ()
    return _strange_letters(pair, own)


@lru_cache(maxsize=1024)
def _own_scripts(locale: str) -> frozenset[str]:
    return scripts_of(locales.script(locale))


def _strange_letters(pair: Pair, own: frozenset[str]) -> Iterator[Finding]:
    found = letters_by_script(pair.target_words)
    mine = sum(count for name, count in found.items() if name in own)
    known = letters_by_script(pair.source_words)
    strange = {name: count for name, count in found.items() if name not in own and name != "LATIN"}
    foreign = {name: count for name, count in strange.items() if name not in known}
    if foreign:
        name, count = max(foreign.items(), key=lambda item: item[1])
        if count >= _LETTERS_MIN or (mine and count >= 2):
            severity: Severity = "error" if not mine and count >= _LETTERS_MIN else "warning"
            yield Finding("script", severity, f"There are {name.capitalize()} letters in the translation.")
    elif not mine and _is_prose(pair.target_words, sum(found.values())):
        name = max(found, key=lambda name: found[name])
        yield Finding("script", "warning", f"The translation is written in {name.capitalize()} letters only.")
    yield from _east_asian(pair, found["CJK"], found["HIRAGANA"] + found["KATAKANA"])


def _is_prose(words: str, letters: int) -> bool:
    """Whether there is more than names; letters that mostly have marks are pseudo-localized."""
    plain = sum(character.isascii() and character.isalpha() for character in words)
    latin = plain and 2 * plain < letters
    return letters >= _PROSE_LETTERS_MIN and not latin and any(map(str.islower, words.split()))


def _east_asian(pair: Pair, characters: int, kana: int) -> Iterator[Finding]:
    if pair.spoken == "ja" and characters >= _KANA_MIN and not kana:
        yield Finding("script", "warning", "A Japanese text of this length has kana; this reads as Chinese.")
    way = locales.script(pair.target_locale)
    if way not in ("Hans", "Hant"):
        return
    wrong, right = telling_characters(pair.target_words)
    if way == "Hans":
        wrong, right = right, wrong
    if len(wrong) >= _TELLING_MIN and len(wrong) > 3 * len(right):
        shown = "".join(sorted(wrong)[:_PROSE_LETTERS_MIN])
        chinese = language(pair.source_locale) == "zh"
        severity: Severity = "warning" if right or chinese else "error"
        yield Finding("script", severity, f"Characters of the other way to write Chinese: {shown}.")


def wrong_language(pair: Pair) -> Iterable[Finding]:
    """Small words that only another language has; from 20 letters on."""
    text = pair.target_words
    if len(text) < _PROSE_LETTERS_MIN or pair.is_echo:
        return ()
    found = winner(pair.said, pair.spoken, language(pair.source_locale))
    if not found or locales.same_language(pair.source_locale, pair.target_locale):
        return ()
    return (_read_as(found, pair.target_locale),) if sum(map(str.isalpha, text)) >= _PROSE_LETTERS_MIN else ()


@lru_cache(maxsize=1024)
def _read_as(found: str, locale: str) -> Finding:
    said = f"This reads as {locales.english_name(found)}, not as {locales.english_name(locale)}."
    return Finding("language", "warning", said)
