"""Rows of `field_sums`: how the fields of a hundred intents ended, and with them the sums that a shard shows.

A transaction that changes the field counts of intents recounts the hundreds that it touched, from their rows,
and the shards from their hundreds: nothing is added up, and a status of a million intents reads a hundred
rows. Callers hold the lock of the shard.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from dragoman.kernel.limits import FIELD_SUM_INTENTS, SHARD_INTENTS
from dragoman.store.schema import site as tables
from dragoman.store.tables_site import FIELD_COUNTS
from dragoman.store.transaction import Row, Tx

_INTENTS, _SUMS, _SHARDS = tables.intents, tables.field_sums, tables.shards

NAMES = FIELD_COUNTS


def _sums(table: sa.Table) -> list[sa.Label[int]]:
    return [sa.func.coalesce(sa.func.sum(table.c[name]), 0).label(name) for name in NAMES]


_OF_INTENTS = sa.select(*_sums(_INTENTS)).where(
    _INTENTS.c.manifest_id == sa.bindparam("manifest"),
    _INTENTS.c.ordinal >= sa.bindparam("first"),
    _INTENTS.c.ordinal < sa.bindparam("after"),
)
_OF_HUNDREDS = sa.select(*_sums(_SUMS)).where(
    _SUMS.c.manifest_id == sa.bindparam("manifest"),
    _SUMS.c.bucket >= sa.bindparam("first"),
    _SUMS.c.bucket < sa.bindparam("after"),
)


def recount(tx: Tx, manifest_id: str, ordinals: Iterable[int]) -> None:
    """Write the true sums around these intents, of (locked) shards of one manifest."""
    buckets = sorted({ordinal // FIELD_SUM_INTENTS for ordinal in ordinals})
    for bucket in buckets:
        counted = _counted(tx, _OF_INTENTS, manifest_id, bucket * FIELD_SUM_INTENTS, FIELD_SUM_INTENTS)
        row = {"manifest_id": manifest_id, "bucket": bucket, **counted}
        tx.upsert(_SUMS, row, ("manifest_id", "bucket"), NAMES)
    per_shard = SHARD_INTENTS // FIELD_SUM_INTENTS
    for shard in sorted({bucket // per_shard for bucket in buckets}):
        counted = _counted(tx, _OF_HUNDREDS, manifest_id, shard * per_shard, per_shard)
        tx.update(_SHARDS, {"manifest_id": manifest_id, "shard": shard}, counted)


def agree(tx: Tx, manifest_id: str) -> bool:
    """Whether what every shard shows equals a recount of its intents."""
    mine = sa.select(_SHARDS).where(_SHARDS.c.manifest_id == manifest_id)
    return all(
        {name: getattr(shard, name) for name in NAMES}
        == _counted(tx, _OF_INTENTS, manifest_id, shard.shard * SHARD_INTENTS, SHARD_INTENTS)
        for shard in tx.all(mine)
    )


def _counted(tx: Tx, sums: sa.Executable, manifest_id: str, first: int, number: int) -> dict[str, int]:
    return _named(tx.first(sums, {"manifest": manifest_id, "first": first, "after": first + number}))


def _named(row: Row | None) -> dict[str, int]:
    return {name: int(getattr(row, name)) if row is not None else 0 for name in NAMES}
