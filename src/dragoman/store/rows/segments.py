"""Rows of `memory_fresh`, `memory_shelves`, `memory_segments` and `memory_grams`: source texts, and how they
are found.

The postings of a bucket stand in one row for each run of so many texts: a page of texts is put into the rows
of the run that is open. Who indexes holds the shelf's row, so that no posting is lost between two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.limits import BUCKETS_PER_STATEMENT, LIKE_CHARS_MAX, RUN_TEXTS
from dragoman.model.memories import Query, Segment, Shelf
from dragoman.store import postings
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx

_FRESH, _SHELVES = tables.memory_fresh, tables.memory_shelves
_SEGMENTS, _GRAMS = tables.memory_segments, tables.memory_grams

_SHELF = ("workspace", "project", "source_locale")


def _on_shelf(table: sa.Table) -> sa.ColumnElement[bool]:
    return sa.and_(
        table.c.workspace == sa.bindparam("ws"),
        table.c.project == sa.bindparam("in_project"),
        table.c.source_locale == sa.bindparam("from_locale"),
    )


_FRESH_PAGE = (
    sa.select(_FRESH.c.source_hash, _FRESH.c.source)
    .where(_on_shelf(_FRESH))
    .order_by(_FRESH.c.source_hash)
    .limit(sa.bindparam("most"))
)
_DROP_FRESH = sa.delete(_FRESH).where(
    _on_shelf(_FRESH), _FRESH.c.source_hash.in_(sa.bindparam("hashes", expanding=True))
)
_HELD = sa.select(_SHELVES.c.texts).where(_on_shelf(_SHELVES)).with_for_update()
_GROWN = sa.update(_SHELVES).where(_on_shelf(_SHELVES)).values(texts=sa.bindparam("so_many"))
_THERE = sa.select(_SEGMENTS.c.segment).where(
    _on_shelf(_SEGMENTS), _SEGMENTS.c.segment.in_(sa.bindparam("segments", expanding=True))
)
_TEXTS = sa.select(_SEGMENTS.c.segment, _SEGMENTS.c.source_hash, _SEGMENTS.c.source).where(
    _on_shelf(_SEGMENTS), _SEGMENTS.c.segment.in_(sa.bindparam("segments", expanding=True))
)
_IN_BUCKETS = sa.and_(_on_shelf(_GRAMS), _GRAMS.c.bucket.in_(sa.bindparam("buckets", expanding=True)))
_POSTINGS = sa.select(
    _GRAMS.c.bucket,
    sa.type_coerce(_GRAMS.c.postings, sa.types.NullType()).label("postings"),  # as it is: this runs often
).where(_IN_BUCKETS)
_OF_RUN = _POSTINGS.where(_GRAMS.c.run == sa.bindparam("of_run"))
_DROP_OF_RUN = sa.delete(_GRAMS).where(_IN_BUCKETS, _GRAMS.c.run == sa.bindparam("of_run"))


def add_fresh(tx: Tx, workspace: str, shelf: Shelf, sources: Mapping[str, str]) -> None:
    """Let these source texts (hash → text) be indexed when somebody searches; not those too long for it."""
    rows = [
        {**_of(workspace, shelf), "source_hash": source_hash, "source": source}
        for source_hash, source in sources.items()
        if len(source) <= LIKE_CHARS_MAX
    ]
    tx.insert_new(_FRESH, rows, (*_SHELF, "source_hash"))


def fresh(tx: Tx, workspace: str, shelf: Shelf, limit: int) -> list[Row]:
    """Source texts that are not indexed yet."""
    return tx.all(_FRESH_PAGE, {**_at(workspace, shelf), "most": limit})


def index(tx: Tx, workspace: str, shelf: Shelf, segments: Sequence[Segment]) -> None:
    """Make these texts findable; the same text twice is one. They are fresh no more."""
    if not segments:
        return
    here, at = _of(workspace, shelf), _at(workspace, shelf)
    tx.insert_new(_SHELVES, [{**here, "texts": 0}], _SHELF)
    texts = tx.scalar(_HELD, at)
    by_number = {one.segment: one for one in segments}
    for row in tx.all(_THERE, {**at, "segments": list(by_number)}):
        del by_number[row.segment]
    new = list(by_number.values())
    tx.insert(
        _SEGMENTS,
        [
            {**here, "segment": one.segment, "source_hash": one.source_hash, "source": one.source}
            for one in new
        ],
    )
    _post(tx, workspace, shelf, texts // RUN_TEXTS, new)
    tx.touched(_GROWN, {**at, "so_many": texts + len(new)})
    tx.touched(_DROP_FRESH, {**at, "hashes": [one.source_hash for one in segments]})


def _post(tx: Tx, workspace: str, shelf: Shelf, run: int, segments: Sequence[Segment]) -> None:
    """Put texts into the rows of a run."""
    found = postings.spread(segments)
    here, listed = _of(workspace, shelf), sorted(found)
    for start in range(0, len(listed), BUCKETS_PER_STATEMENT):
        buckets = listed[start : start + BUCKETS_PER_STATEMENT]
        of_run = {**_at(workspace, shelf), "of_run": run, "buckets": buckets}
        there = {row.bucket: row.postings for row in tx.all(_OF_RUN, of_run)}
        if there:
            tx.touched(_DROP_OF_RUN, of_run)
        rows = [
            {**here, "bucket": one, "run": run, "postings": postings.merged(there.get(one, b""), found[one])}
            for one in buckets
        ]
        tx.insert(_GRAMS, rows)


def candidates(tx: Tx, workspace: str, shelf: Shelf, queries: Sequence[Query]) -> dict[int, dict[str, str]]:
    """Query → source hash → text, of the texts that share the most rare grams with it; for a few queries."""
    buckets = sorted({postings.bucket_of(gram) for query in queries for gram in query.grams})
    rows: dict[int, list[bytes]] = {}
    for bucket, packed in tx.all(_POSTINGS, {**_at(workspace, shelf), "buckets": buckets}) if buckets else ():
        rows.setdefault(bucket, []).append(packed)
    found = {query.key: postings.candidates(query, rows) for query in queries}
    known = _texts(tx, workspace, shelf, sorted({one for some in found.values() for one in some}))
    return {key: dict(known[segment] for segment in some if segment in known) for key, some in found.items()}


def _texts(tx: Tx, workspace: str, shelf: Shelf, segments: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Segment → its source hash and text."""
    listed = list(segments)
    if not listed:
        return {}
    rows = tx.all(_TEXTS, {**_at(workspace, shelf), "segments": listed})
    return {segment: (source_hash, source) for segment, source_hash, source in rows}


def _of(workspace: str, shelf: Shelf) -> dict[str, Any]:
    return {"workspace": workspace, "project": shelf.project, "source_locale": shelf.source_locale}


def _at(workspace: str, shelf: Shelf) -> dict[str, Any]:
    return {"ws": workspace, "in_project": shelf.project, "from_locale": shelf.source_locale}
