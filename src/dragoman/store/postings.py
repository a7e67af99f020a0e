"""Which texts hold a gram, packed: one whole number each, sorted, many to a row.

A number is the tag of the gram (12 bits), the length of the text (12) and the text (40), so that the texts
of one gram whose lengths lie in a band stand side by side. The low bits of a gram name its bucket, the next
ones its tag: grams that agree in both are taken for one, which costs a search a candidate now and then. Of a
gram that very many texts hold only so many are kept: it tells little. Knows no database.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from dragoman.kernel.limits import (
    FUZZY_CANDIDATES,
    GRAM_BUCKETS,
    GRAM_TEXTS,
    LIKE_CHARS_MAX,
    POSTINGS_PER_QUERY,
)
from dragoman.model.memories import Query, Segment

_SEGMENT_BITS, _CHARS_BITS = 40, 12
_TAG_AT = _SEGMENT_BITS + _CHARS_BITS
_TAGS = 1 << (64 - _TAG_AT)
_SEGMENT = (1 << _SEGMENT_BITS) - 1


def bucket_of(gram: int) -> int:
    """The row that a gram is looked for in."""
    return gram % GRAM_BUCKETS


def spread(segments: Iterable[Segment]) -> dict[int, list[int]]:
    """Bucket → the postings of these texts."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for one in segments:
        text = (len(one.source) << _SEGMENT_BITS) + one.segment
        for gram in one.grams:
            found[gram % GRAM_BUCKETS].append((gram // GRAM_BUCKETS % _TAGS << _TAG_AT) + text)
    return found


def merged(packed: bytes, new: Sequence[int]) -> bytes:
    """A row with these postings put in, as far as their grams are not full."""
    there = _unpacked(packed)
    kept = new if len(there) + len(new) <= GRAM_TEXTS else _fitting(there, new)
    whole = array("Q", sorted([*there, *kept]))
    if sys.byteorder == "big":
        whole.byteswap()
    return whole.tobytes()


def candidates(query: Query, rows: Mapping[int, Sequence[bytes]]) -> list[int]:
    """The texts that share the most rare grams with a query, out of the rows of its buckets.

    The rarest gram comes first; those that so many texts hold that the measure is full are not looked at.
    """
    if query.chars_min > LIKE_CHARS_MAX:
        return []
    longest = min(query.chars_max, LIKE_CHARS_MAX)
    lists = [
        found
        for gram in query.grams
        if (found := _within(rows.get(gram % GRAM_BUCKETS, ()), gram, query.chars_min, longest))
    ]
    lists.sort(key=len)
    weights: dict[int, float] = {}
    left = POSTINGS_PER_QUERY
    for found in lists:
        weight = (3 + len(found)) ** -0.5
        for posting in found[:left]:
            segment = posting & _SEGMENT
            weights[segment] = weights.get(segment, 0.0) + weight
        left -= len(found)
        if left <= 0:
            break
    return sorted(weights, key=weights.__getitem__, reverse=True)[:FUZZY_CANDIDATES]


def _within(rows: Sequence[bytes], gram: int, shortest: int, longest: int) -> list[int]:
    tag = gram // GRAM_BUCKETS % _TAGS << _TAG_AT
    first, behind = tag + (shortest << _SEGMENT_BITS), tag + ((longest + 1) << _SEGMENT_BITS)
    found: list[int] = []
    for packed in rows:
        there = memoryview(packed).cast("Q") if sys.byteorder == "little" else _unpacked(packed)
        start = bisect_left(there, first)
        end = bisect_left(there, behind, start)
        if end > start:
            found += there[start:end]
    return found


def _fitting(there: array[int], new: Sequence[int]) -> list[int]:
    kept: list[int] = []
    counts: dict[int, int] = {}
    for posting in new:
        tag = posting >> _TAG_AT
        count = counts.get(tag)
        if count is None:
            count = bisect_left(there, (tag + 1) << _TAG_AT) - bisect_left(there, tag << _TAG_AT)
        if count < GRAM_TEXTS:
            kept.append(posting)
        counts[tag] = count + 1
    return kept


def _unpacked(packed: bytes) -> array[int]:
    there = array("Q", packed)
    if sys.byteorder == "big":
        there.byteswap()
    return there
