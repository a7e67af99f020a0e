"""Rows of `shards`: the counts of at most 10,000 intents, recounted in every transaction that moves one.

Whoever moves intents first locks the touched shards in ascending order, moves, then calls `recount`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from dragoman.machines.tables import INTENT, MANIFEST
from dragoman.store.columns import is_set
from dragoman.store.schema import site as tables
from dragoman.store.tables_site import FIELD_COUNTS
from dragoman.store.transaction import Row, Tx

_SHARDS, _INTENTS, _MANIFESTS = tables.shards, tables.intents, tables.manifests

STATES = ("pending", "preparing", "prepared", "queued", "processing", *sorted(INTENT.terminal))

_SERVED = {"prepare_due_at": "prepare_served_at", "submit_due_at": "submit_served_at"}
"""Due time → when a worker last took the shard for that: it is due no earlier, so that shards take turns."""

_COUNTS = (
    sa.select(
        _INTENTS.c.state,
        sa.func.count().label("number"),
        sa.func.min(_INTENTS.c.next_attempt_at).label("due"),
    )
    .where(
        _INTENTS.c.manifest_id == sa.bindparam("manifest"), _INTENTS.c.shard == sa.bindparam("shard_number")
    )
    .group_by(_INTENTS.c.state)
)
_RETRYABLE = sa.select(sa.func.count()).where(
    _INTENTS.c.manifest_id == sa.bindparam("manifest"),
    _INTENTS.c.shard == sa.bindparam("shard_number"),
    _INTENTS.c.state == "failed",
    is_set(_INTENTS.c.retryable),
)


_TOTALLED = (*STATES, "intents", "retryable_failed", *FIELD_COUNTS)
_TOTALS = sa.select(
    *(sa.func.coalesce(sa.func.sum(_SHARDS.c[name]), 0).label(name) for name in _TOTALLED)
).where(_SHARDS.c.manifest_id == sa.bindparam("manifest"))
_TOTALS_AND_DUE = _TOTALS.add_columns(
    *(sa.func.min(_SHARDS.c[name]).label(name) for name in _SERVED),
    sa.func.coalesce(
        sa.func.sum(sa.case((_SHARDS.c.lease_expires_at <= sa.bindparam("now"), 1), else_=0)), 0
    ).label("stale_claims"),
)


def lock(tx: Tx, manifest_id: str, shards: Iterable[int]) -> None:
    """Lock these shards of one manifest, in ascending order."""
    wanted = sorted(set(shards))
    tx.all(
        sa.select(_SHARDS.c.shard)
        .where(_SHARDS.c.manifest_id == manifest_id, _SHARDS.c.shard.in_(wanted))
        .order_by(_SHARDS.c.shard)
        .with_for_update()
    )


def take_over(tx: Tx, manifest_id: str) -> None:
    """Lock all shards of a manifest and take them from whoever works them: what they hold counts no more."""
    mine = _SHARDS.c.manifest_id == manifest_id
    tx.all(sa.select(_SHARDS.c.shard).where(mine).order_by(_SHARDS.c.shard).with_for_update())
    taken = sa.update(_SHARDS).where(mine)
    tx.touched(taken.values(fence=_SHARDS.c.fence + 1, lease_owner=None, lease_expires_at=None))


def ensure(tx: Tx, workspace: str, manifest_id: str, shard: int) -> None:
    """The shard's row, made if new, and locked."""
    row = {"workspace": workspace, "manifest_id": manifest_id, "shard": shard}
    tx.insert_new(_SHARDS, [row], ("manifest_id", "shard"))
    lock(tx, manifest_id, [shard])


def recount(tx: Tx, manifest_id: str, shards: Iterable[int]) -> bool:
    """Write the true counts and due times of these (locked) shards; True when this ended the manifest."""
    finished = False
    for shard in sorted(set(shards)):
        counts = _count(tx, manifest_id, shard)
        tx.touched(
            sa.update(_SHARDS)
            .where(_SHARDS.c.manifest_id == manifest_id, _SHARDS.c.shard == shard)
            .values({**counts, **_turns(counts)})
        )
        finished = finished or counts["intents"] == sum(counts[state] or 0 for state in INTENT.terminal)
    return finished and end_manifest(tx, manifest_id)


def _turns(counts: Mapping[str, int | None]) -> dict[str, sa.ColumnElement[int]]:
    """Due times, put off to the last turn where that is later."""
    put_off: dict[str, sa.ColumnElement[int]] = {}
    for due, served in _SERVED.items():
        turn = _SHARDS.c[served]
        if counts[due] is not None:
            put_off[due] = sa.case((turn > counts[due], turn), else_=sa.literal(counts[due], turn.type))
    return put_off


def _count(tx: Tx, manifest_id: str, shard: int) -> dict[str, int | None]:
    where = {"manifest": manifest_id, "shard_number": shard}
    found = {row.state: row for row in tx.all(_COUNTS, where)}
    counts: dict[str, int | None] = {state: found[state].number if state in found else 0 for state in STATES}
    counts["intents"] = sum(row.number for row in found.values())
    counts["retryable_failed"] = int(tx.scalar(_RETRYABLE, where)) if "failed" in found else 0
    due = [
        found[state].due
        for state in ("pending", "preparing")
        if state in found and found[state].due is not None
    ]
    counts["prepare_due_at"] = min(due, default=None)
    counts["submit_due_at"] = found["prepared"].due if "prepared" in found else None
    return counts


def totals(tx: Tx, manifest_id: str) -> dict[str, int]:
    """The counts of a manifest, intents and fields: the sums over its shards."""
    row = tx.first(_TOTALS, {"manifest": manifest_id})
    return {name: int(getattr(row, name)) for name in _TOTALLED}


def made(tx: Tx, manifest_id: str) -> int:
    """How many intents a manifest has, by the sums over its shards."""
    return totals(tx, manifest_id)["intents"]


def of_manifest(tx: Tx, manifest_id: str) -> list[int]:
    """The numbers of a manifest's shards, upwards."""
    mine = sa.select(_SHARDS.c.shard).where(_SHARDS.c.manifest_id == manifest_id)
    return [row.shard for row in tx.all(mine.order_by(_SHARDS.c.shard))]


def totals_and_due(tx: Tx, manifest_id: str) -> dict[str, Any]:
    """`totals`, the earliest of each due time (None without any), and how many leases have run out."""
    (row,) = tx.all(_TOTALS_AND_DUE, {"manifest": manifest_id, "now": tx.now})
    return row._asdict()


def agree(tx: Tx, manifest_id: str) -> bool:
    """Whether the stored counts of every shard equal a recount."""
    stored = tx.all(sa.select(_SHARDS).where(_SHARDS.c.manifest_id == manifest_id))
    return all(_agrees(row, _count(tx, manifest_id, row.shard)) for row in stored)


def _agrees(row: Row, counts: Mapping[str, int | None]) -> bool:
    """Due times are put off by a recount: a shard that was just claimed still shows the earlier one."""
    for due, served in _SERVED.items():
        earliest, stored = counts[due], getattr(row, due)
        if earliest is None or stored is None:
            if earliest is not stored:
                return False
        elif not earliest <= stored <= max(earliest, int(getattr(row, served))):
            return False
    return all(getattr(row, name) == number for name, number in counts.items() if name not in _SERVED)


def end_manifest(tx: Tx, manifest_id: str) -> bool:
    """End the manifest if all its intents are terminal, its total is known and no retry is under way; True
    only for the one that did it.

    Locks the manifest row after the shards.
    """
    manifest: Row | None = tx.first(
        sa.select(_MANIFESTS.c.total, _MANIFESTS.c.total_known, _MANIFESTS.c.retry_after)
        .where(_MANIFESTS.c.id == manifest_id)
        .with_for_update()
    )
    if manifest is None or not manifest.total_known or manifest.retry_after is not None:
        return False
    sums = totals(tx, manifest_id)
    if sum(sums[state] for state in INTENT.terminal) != manifest.total:
        return False
    ended = (
        sa.update(_MANIFESTS)
        .where(_MANIFESTS.c.id == manifest_id, _MANIFESTS.c.phase.in_(sorted(MANIFEST.open)))
        .values(
            phase="ended",
            completed_at=tx.now,
            updated_at=tx.now,
            resume_key=None,
            next_attempt_at=None,
        )
    )
    return tx.touched(ended) == 1
