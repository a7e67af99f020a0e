"""How alike two texts are: what they are found by, and what a likeness is worth.

A text is found by a sample of its grams: of each few neighbours the one with the least checksum, so that two
texts that share a run of characters share its sample too, wherever it stands. A likeness is a percentage of
characters that need no change. Pure, and the same everywhere.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

from rapidfuzz import fuzz, process

from dragoman.content.tokens import tokens
from dragoman.kernel.limits import (
    FUZZY_SCORE_MIN,
    GRAM_CHARS,
    GRAM_CHARS_WIDE,
    GRAM_WINDOW,
    GRAMS_PER_QUERY,
)
from dragoman.model.documents import Syntax
from dragoman.model.memories import Segment

_NARROW, _WIDE = 2 * GRAM_CHARS, 2 * GRAM_CHARS_WIDE
_WIDE_FROM = 0x2E  # the upper half of the first UTF-16 unit of East Asian scripts, and of what is behind
_NUMBER = re.compile(r"\d+(?:[.,\u00a0\u202f'’]\d+)*")


class Alike(NamedTuple):
    """A text that is like another, and how much: 100 is the same."""

    key: str
    score: float


def compared(text: str) -> str:
    """A text as likenesses are measured: composed, without blanks at its ends."""
    return unicodedata.normalize("NFC", text).strip()


def segments(sources: Sequence[tuple[str, str]]) -> list[Segment]:
    """What a search will find these (hash, text) by."""
    return [
        Segment(segment_of(source_hash), source_hash, text, tuple(grams(text)))
        for source_hash, text in ((source_hash, compared(source)) for source_hash, source in sources)
    ]


def segment_of(source_hash: str) -> int:
    """The number under which a source text is indexed: the head of its hash."""
    return int(source_hash[:10], 16)


def grams(text: str) -> list[int]:
    """The sample of a text's grams, in order of their place; each once.

    A gram is shorter where it begins with a character of East Asia, where a word has one or two of them.
    """
    spread = f" {' '.join(text.casefold().split())} ".encode("utf-16-le", "replace")
    last = max(2, len(spread) - _NARROW + 2)
    sums = [
        crc32(spread[at : at + (_WIDE if spread[at + 1] >= _WIDE_FROM else _NARROW)])
        for at in range(0, last, 2)
    ]
    windows = zip(*(sums[at:] for at in range(GRAM_WINDOW)), strict=False)
    return list(dict.fromkeys(map(min, windows))) or [min(sums)]


def asked_grams(text: str) -> list[int]:
    """The same for a search: of a long text evenly spread ones, not more than a search may name."""
    found = grams(text)
    if len(found) <= GRAMS_PER_QUERY:
        return found
    return [found[at * len(found) // GRAMS_PER_QUERY] for at in range(GRAMS_PER_QUERY)]


def band(chars: int, score_min: float = FUZZY_SCORE_MIN) -> tuple[int, int]:
    """The least and the greatest length of a text that can be so much like one of this length."""
    share = score_min / (200 - score_min)
    return math.floor(chars * share), math.ceil(chars / share)


def closest(
    text: str, others: Mapping[str, str], count: int, score_min: float = FUZZY_SCORE_MIN
) -> list[Alike]:
    """The texts most like this one, best first. `others` maps keys to texts."""
    found = process.extract(text, others, scorer=fuzz.ratio, score_cutoff=score_min, limit=count)
    return [Alike(key, score) for _, score, key in found]


def agree(text: str, other: str, syntax: Syntax) -> bool:
    """Whether two texts name the same numbers and hold the same code, so that one may stand for the other."""
    return _facts(text, syntax) == _facts(other, syntax)


def _facts(text: str, syntax: Syntax) -> tuple[Sequence[str], Sequence[str]]:
    pieces = tokens(text, syntax)
    code = sorted(piece.raw for piece in pieces if piece.kind != "text")
    words = " ".join(piece.raw for piece in pieces if piece.kind == "text")
    return code, sorted(_NUMBER.findall(words))
