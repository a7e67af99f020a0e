"""Rows of `memory_fresh`, `memory_segments` and `memory_grams`: source texts, and how they are found.

How many texts hold a gram is never counted: a search looks at so many of them and no more, and a gram that
fills its measure is taken for a frequent one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.limits import FUZZY_CANDIDATES, GRAM_TEXTS
from dragoman.model.memories import Query, Segment, Shelf
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx

_FRESH, _SEGMENTS, _GRAMS = tables.memory_fresh, tables.memory_segments, tables.memory_grams

_SHELF = ("workspace", "project", "source_locale")
_FREQUENT_WEIGHT = 0.02

_FRESH_PAGE = (
    sa.select(_FRESH.c.source_hash, _FRESH.c.source)
    .where(
        _FRESH.c.workspace == sa.bindparam("ws"),
        _FRESH.c.project == sa.bindparam("in_project"),
        _FRESH.c.source_locale == sa.bindparam("from_locale"),
    )
    .order_by(_FRESH.c.source_hash)
    .limit(sa.bindparam("most"))
)
_DROP_FRESH = sa.delete(_FRESH).where(
    _FRESH.c.workspace == sa.bindparam("ws"),
    _FRESH.c.project == sa.bindparam("in_project"),
    _FRESH.c.source_locale == sa.bindparam("from_locale"),
    _FRESH.c.source_hash.in_(sa.bindparam("hashes", expanding=True)),
)
_TEXTS = sa.select(_SEGMENTS.c.segment, _SEGMENTS.c.source_hash, _SEGMENTS.c.source).where(
    _SEGMENTS.c.workspace == sa.bindparam("ws"),
    _SEGMENTS.c.project == sa.bindparam("in_project"),
    _SEGMENTS.c.source_locale == sa.bindparam("from_locale"),
    _SEGMENTS.c.segment.in_(sa.bindparam("segments", expanding=True)),
)


def add_fresh(tx: Tx, workspace: str, shelf: Shelf, sources: Mapping[str, str]) -> None:
    """Let these source texts (hash → text) be indexed when somebody searches."""
    rows = [
        {**_of(workspace, shelf), "source_hash": source_hash, "source": source}
        for source_hash, source in sources.items()
    ]
    tx.insert_new(_FRESH, rows, (*_SHELF, "source_hash"))


def fresh(tx: Tx, workspace: str, shelf: Shelf, limit: int) -> list[Row]:
    """Source texts that are not indexed yet."""
    return tx.all(_FRESH_PAGE, {**_at(workspace, shelf), "most": limit})


def index(tx: Tx, workspace: str, shelf: Shelf, segments: Sequence[Segment]) -> None:
    """Make these texts findable; the same text twice is one. They are fresh no more."""
    if not segments:
        return
    here = _of(workspace, shelf)
    texts = [
        {**here, "segment": one.segment, "source_hash": one.source_hash, "source": one.source}
        for one in segments
    ]
    tx.insert_new(_SEGMENTS, texts, (*_SHELF, "segment"))
    grams = sorted({(gram, len(one.source), one.segment) for one in segments for gram in one.grams})
    rows = [{**here, "gram": gram, "chars": chars, "segment": segment} for gram, chars, segment in grams]
    tx.insert_new(_GRAMS, rows, (*_SHELF, "gram", "chars", "segment"))
    tx.touched(_DROP_FRESH, {**_at(workspace, shelf), "hashes": [one.source_hash for one in segments]})


def candidates(tx: Tx, workspace: str, shelf: Shelf, query: Query) -> dict[str, str]:
    """Source hash → text, of the texts that share the most rare grams with a query."""
    grams = query.grams
    if not grams:
        return {}
    size = 1 << max(3, (len(grams) - 1).bit_length())
    values: dict[str, Any] = {
        **_at(workspace, shelf),
        "least": query.chars_min,
        "longest": query.chars_max,
        **{f"gram_{at}": grams[min(at, len(grams) - 1)] if at < len(grams) else -1 for at in range(size)},
    }
    found: dict[int, list[int]] = {}
    for gram, segment in tx.all(_postings(size), values):
        found.setdefault(gram, []).append(segment)
    weights: dict[int, float] = {}
    for segments in found.values():
        weight = 1.0 if len(segments) < GRAM_TEXTS else _FREQUENT_WEIGHT
        for segment in segments:
            weights[segment] = weights.get(segment, 0.0) + weight
    best = heapq.nlargest(FUZZY_CANDIDATES, weights, key=weights.__getitem__)
    return texts(tx, workspace, shelf, best)


def texts(tx: Tx, workspace: str, shelf: Shelf, segments: Iterable[int]) -> dict[str, str]:
    """Source hash → text of these segments."""
    listed = list(segments)
    if not listed:
        return {}
    rows = tx.all(_TEXTS, {**_at(workspace, shelf), "segments": listed})
    return {row.source_hash: row.source for row in rows}


@lru_cache(maxsize=8)
def _postings(size: int) -> sa.CompoundSelect[Any]:
    """For each of so many grams the texts that hold it, up to a measure."""
    parts = []
    for at in range(size):
        one = (
            sa.select(_GRAMS.c.gram, _GRAMS.c.segment)
            .where(
                _GRAMS.c.workspace == sa.bindparam("ws"),
                _GRAMS.c.project == sa.bindparam("in_project"),
                _GRAMS.c.source_locale == sa.bindparam("from_locale"),
                _GRAMS.c.gram == sa.bindparam(f"gram_{at}"),
                _GRAMS.c.chars >= sa.bindparam("least"),
                _GRAMS.c.chars <= sa.bindparam("longest"),
            )
            .limit(sa.literal_column(str(GRAM_TEXTS)))
            .subquery(f"of_{at}")
        )
        parts.append(sa.select(one.c.gram, one.c.segment))
    return sa.union_all(*parts)


def _of(workspace: str, shelf: Shelf) -> dict[str, Any]:
    return {"workspace": workspace, "project": shelf.project, "source_locale": shelf.source_locale}


def _at(workspace: str, shelf: Shelf) -> dict[str, Any]:
    return {"ws": workspace, "in_project": shelf.project, "from_locale": shelf.source_locale}
