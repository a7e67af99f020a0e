"""Transactions about leases and workers: renewal for a process, release of what vanished owners hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.store import leases
from dragoman.store.rows import tenants
from dragoman.store.schema import metadata
from dragoman.store.transaction import Tx, urgent

Key = tuple[str | int, ...]

LEASED: tuple[sa.Table, ...] = tuple(
    table for table in metadata.sorted_tables if "fence" in table.c and "lease_owner" in table.c
)


@urgent
def renew_leases(tx: Tx, held: Sequence[tuple[str, Key, int, float]]) -> list[tuple[str, Key]]:
    """Prolong everything that this process holds: (table, key, fence, seconds); gives what is lost."""
    lost: list[tuple[str, Key]] = []
    groups: dict[tuple[str, float], list[tuple[Key, int]]] = {}
    for table, key, fence, lease_seconds in held:
        groups.setdefault((table, lease_seconds), []).append((key, fence))
    for (name, lease_seconds), group in sorted(groups.items(), key=lambda item: item[0]):
        gone = leases.renew(tx, metadata.tables[name], group, lease_seconds)
        lost += [(name, key if isinstance(key, tuple) else (key,)) for key in gone]
    return lost


def lease_owners(tx: Tx) -> list[str]:
    """Everybody who holds a lease of anything."""
    return sorted({owner for table in LEASED for owner in leases.owners(tx, table)})


def free_gone_owners(tx: Tx, gone: Sequence[str]) -> int:
    """Let go at once what provably vanished processes hold; how many leases. Their fences are raised by the
    next claim.
    """
    return sum(leases.free_gone(tx, table, gone) for table in LEASED)


def see_worker(tx: Tx, row: dict[str, Any]) -> None:
    """Write down that a worker lives."""
    tenants.see_worker(tx, row)
