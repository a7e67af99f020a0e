"""How a shard is leased for one kind of site work; shared by preparation and submission."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.kernel.errors import LeaseLost
from dragoman.kernel.limits import SHARD_LEASE_SECONDS
from dragoman.store import leases
from dragoman.store.columns import is_set
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_SHARDS, _MANIFESTS = tables.shards, tables.manifests


def claim_shard(tx: Tx, due_column: str, owner: str) -> Row | None:
    """Lease the shard that has been due longest, of a manifest that is neither paused nor canceled.

    Its turn is over with that: until it is due again, every shard that waits now comes first.
    """
    due = _SHARDS.c[due_column]
    halted = sa.select(_MANIFESTS.c.id).where(
        _MANIFESTS.c.id == _SHARDS.c.manifest_id,
        sa.or_(is_set(_MANIFESTS.c.paused), is_set(_MANIFESTS.c.canceled)),
    )
    claimed = leases.claim(
        tx,
        _SHARDS,
        ready=sa.and_(
            due <= tx.now,
            ~halted.exists(),
        ),
        order=[due, _SHARDS.c.manifest_id, _SHARDS.c.shard],
        limit=1,
        owner=owner,
        lease_seconds=SHARD_LEASE_SECONDS,
        set_={due_column.replace("_due_", "_served_"): tx.now},
    )
    return claimed[0] if claimed else None


def hold_shard(tx: Tx, manifest_id: str, shard: int, fence: int) -> None:
    """Lock a shard that this process leases; raises `LeaseLost` under a stale fence."""
    held = tx.first(
        sa.select(_SHARDS.c.shard).where(leases.held(_SHARDS, (manifest_id, shard), fence)).with_for_update()
    )
    if held is None:
        raise LeaseLost(f"shard {shard} of manifest {manifest_id} is worked by somebody else")


def release_shard(tx: Tx, manifest_id: str, shard: int, fence: int) -> None:
    """Give a shard back."""
    leases.release(tx, _SHARDS, (manifest_id, shard), fence, {})
