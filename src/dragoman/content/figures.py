"""Numbers in prose, compared across locales: `1,000.5` in English is `1.000,5` in German.

Promises leniency where a spelling can be read in two ways, and none where it cannot. Knows nothing of
placeholders: it is given words only.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from babel import Locale, UnknownLocaleError
from babel.numbers import get_decimal_symbol

_SPACES = "\u00a0\u202f\u2009 "
_ARABIC = "\N{ARABIC DECIMAL SEPARATOR}\N{ARABIC THOUSANDS SEPARATOR}"
_FIGURE = re.compile(
    rf"(?P<hour>\d{{1,2}})(?::(?P<minute>\d\d))?[{_SPACES}]?(?P<half>[aApP])\.?[mM]\b"
    rf"|\d{{1,3}}(?:[{_SPACES}'’]\d{{3}})+(?![\d])(?:[.,]\d+)?|\d+(?:[.,{_ARABIC}]\d+)*"
)
_RUN = re.compile(rf"\d(?:[\d.,:'’{_SPACES}{_ARABIC}]*(?:\d|[aApP]\.?[mM]\b))?")
"""One or more figures, found fast: most are plain digits."""
_BEFORE_FOREIGN_DIGITS = "\u065f"
"""The first digit of another script is U+0660."""
_MAYBE_FOREIGN = re.compile(rf"[^\0-{_BEFORE_FOREIGN_DIGITS}]")
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
_SPELLED_OUT_MAX = 12
_ROUND = frozenset((20, 30, 40, 50, 60, 70, 80, 90, 100, 1_000, 10_000, 1_000_000, 1_000_000_000))
_MAGNITUDE = re.compile(
    r"\b(?:hundred|thousand|[mb]illion|trillion|lakh|crore|dozen|mil|mio|mrd|mln|mld|tis|тыс|млн|млрд)|[万萬億亿千百만억]",
    re.IGNORECASE,
)
"""Where a text counts in words of size, its figures may differ and mean the same."""

_COMPARED_MAX = 400

_Figure = tuple[str, frozenset[str]]
"""A figure as it is written, and the values that it may have, in plain digits."""


class Written(NamedTuple):
    """A text in Western digits, and the figures in it as they are written."""

    text: str
    figures: list[str]


def written_figures(text: str) -> Written:
    """What `changed_figures` compares first; a source's can be kept for all of its translations."""
    western = _western(text)
    return Written(western, _spelled(western))


def changed_figures(
    given: Written, target: str, source_locale: str, target_locale: str
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Figures that the target lacks, figures that it has too many, and whether that is surely wrong.

    It is not sure where a lacking or added small number may be spelled out, or sizes stand in words.
    """
    target = _western(target)
    if given.figures == _spelled(target):  # what came back as it was can be read as in the source
        return (), (), False
    source = given.text
    wanted = list(_figures(source, (source_locale, source_locale)))
    found = list(_figures(target, (target_locale, source_locale)))
    spare = Counter(values for _, values in wanted) & Counter(values for _, values in found)
    found = list(_without(found, Counter(spare)))[:_COMPARED_MAX]
    lost: list[_Figure] = []
    for figure in list(_without(wanted, Counter(spare)))[:_COMPARED_MAX]:
        match = next((other for other in found if figure[1] & other[1]), None)
        if match is None:
            lost.append(figure)
        else:
            found.remove(match)
    sure = bool(lost and found) or any(not _may_be_spelled_out(values) for _, values in (*lost, *found))
    if _MAGNITUDE.search(source) or _MAGNITUDE.search(target):
        sure = False
    return tuple(raw for raw, _ in lost), tuple(raw for raw, _ in found), sure


def _without(figures: list[_Figure], spare: Counter[frozenset[str]]) -> Iterator[_Figure]:
    for figure in figures:
        if spare[figure[1]] > 0:
            spare[figure[1]] -= 1
        else:
            yield figure


def _western(text: str) -> str:
    if text.isascii() or not _MAYBE_FOREIGN.search(text):
        return text
    return _FOREIGN_DIGIT.sub(_digit, text)


def _spelled(text: str) -> list[str]:
    return [
        figure
        for run in _RUN.findall(text)
        for figure in ((run,) if run.isdigit() else [match[0] for match in _FIGURE.finditer(run)])
    ]


def _figures(text: str, locales: tuple[str, str]) -> Iterator[_Figure]:
    for match in _FIGURE.finditer(text):
        if match["half"]:
            hour = int(match["hour"]) % 12 + (12 if match["half"] in "pP" else 0)
            yield match[0], frozenset((str(int(match["hour"])), str(hour)))
            if match["minute"]:
                yield match["minute"], frozenset((str(int(match["minute"])),))
            continue
        marks = {_ARABIC[0], *map(decimal_mark, locales)}
        values = {value for mark in marks if (value := _value(match[0], mark))}
        if values:
            yield match[0], frozenset(values)
        else:  # a date, a version: each of its parts counts
            yield from (
                (part, frozenset((part.lstrip("0") or "0",))) for part in re.findall(r"\d+", match[0])
            )


def _value(raw: str, decimal: str) -> str:
    """A figure's value under one decimal mark; empty where it cannot be read so."""
    whole, mark, fraction = raw.partition(decimal)
    groups = re.split(r"\D", whole)
    if mark and not fraction.isdigit():
        return ""
    if len(groups) > 1 and not (len(groups[-1]) == 3 and all(len(group) in (2, 3) for group in groups[1:])):
        return ""
    digits = "".join(groups).lstrip("0") or "0"
    fraction = fraction.rstrip("0")
    return f"{digits}.{fraction}" if fraction else digits


def _digit(foreign: re.Match[str]) -> str:
    return str(unicodedata.decimal(foreign[0]))


def _may_be_spelled_out(values: frozenset[str]) -> bool:
    return any(
        value.isdigit() and len(value) <= 10 and (int(value) <= _SPELLED_OUT_MAX or int(value) in _ROUND)
        for value in values
    )


@lru_cache(maxsize=256)
def decimal_mark(locale: str) -> str:
    """The sign between whole and fraction in a locale's figures, in Western or the locale's own digits."""
    try:
        return get_decimal_symbol(Locale.parse(locale, sep="-"))
    except (UnknownLocaleError, ValueError):
        return "."
