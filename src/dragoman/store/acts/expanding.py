"""Transactions of enumeration: a manifest is claimed, its pairs become intents, its end is written down."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from dragoman.kernel.errors import LeaseLost
from dragoman.kernel.limits import SHARD_INTENTS, SHARD_LEASE_SECONDS
from dragoman.store import leases
from dragoman.store.rows import intents, manifests, shards
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_MANIFESTS = tables.manifests


class Expansion(NamedTuple):
    """How far the pairs of a manifest are expanded."""

    expanded: int
    total: int


def claim_enumerating_manifest(tx: Tx, owner: str) -> Row | None:
    """The next manifest whose pairs are not all expanded, leased."""
    claimed = leases.claim(
        tx,
        _MANIFESTS,
        ready=sa.and_(
            _MANIFESTS.c.phase == "enumerating",
            _MANIFESTS.c.next_attempt_at <= tx.now,
        ),
        order=[_MANIFESTS.c.next_attempt_at, _MANIFESTS.c.id],
        limit=1,
        owner=owner,
        lease_seconds=SHARD_LEASE_SECONDS,
    )
    return claimed[0] if claimed else None


def expand_next_pairs(tx: Tx, manifest_id: str, fence: int, limit: int) -> Expansion:
    """Make intents of the next `limit` pairs; the last ones open the manifest and release its lease.

    Raises `LeaseLost` under a stale fence. Repeating it makes nothing twice: the ordinals tell what is there.
    """
    manifest = tx.first(
        sa.select(_MANIFESTS).where(leases.held(_MANIFESTS, (manifest_id,), fence)).with_for_update()
    )
    if manifest is None or manifest.phase != "enumerating":
        raise LeaseLost(f"manifest {manifest_id} is enumerated by somebody else")
    start = intents.last_ordinal(tx, manifest_id) + 1
    room = SHARD_INTENTS - start % SHARD_INTENTS
    pairs = manifests.pairs_from(tx, manifest_id, start, min(limit, room))
    if pairs:
        shard = start // SHARD_INTENTS
        shards.ensure(tx, manifest.workspace, manifest_id, shard)
        intents.insert_pairs(tx, manifest, pairs)
        shards.recount(tx, manifest_id, [shard])
    expanded = start + len(pairs)
    if expanded >= manifest.total:
        _open(tx, manifest_id, fence)
        shards.end_manifest(tx, manifest_id)
    return Expansion(expanded, manifest.total)


def _open(tx: Tx, manifest_id: str, fence: int) -> None:
    values = {"phase": "open", "next_attempt_at": None, "updated_at": tx.now}
    leases.release(tx, _MANIFESTS, (manifest_id,), fence, values)


def rest_enumeration(tx: Tx, manifest_id: str, fence: int) -> None:
    """Hand a manifest on when the step's time is over."""
    leases.release(tx, _MANIFESTS, (manifest_id,), fence, {"updated_at": tx.now})
