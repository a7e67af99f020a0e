"""Transactions about leases and workers: renewal for a process, release of what vanished owners hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.store import leases
from dragoman.store.rows import executions, jobs, lanes, tenants
from dragoman.store.schema import metadata
from dragoman.store.transaction import Tx, urgent

Key = tuple[str | int, ...]
Held = tuple[str, Key, int]
"""Table, key and fence of a lease."""

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


def leases_of(tx: Tx, owner: str) -> list[Held]:
    """Everything that stands under this owner's name."""
    return [(table.name, *lease) for table in LEASED for lease in leases.standing(tx, table, owner)]


def free_unheld(tx: Tx, owner: str, unheld: Collection[Held], failed: Collection[Held]) -> int:
    """Let go of leases that their owner, who lives, works on no more; how many.

    Work that `failed` of itself counts as begun, as if its worker had vanished. What the database kept from
    beginning or from ending does not: no job is given up for the database's sake.
    """
    return sum(_free(tx, owner, held, held not in failed) for held in sorted(unheld))


def _free(tx: Tx, owner: str, held: Held, is_forgiven: bool) -> bool:
    name, key, fence = held
    if name == "jobs" and is_forgiven:
        job = jobs.standing(tx, str(key[0]), fence, owner)
        if job is not None:
            jobs.give_back(tx, job, due_at=tx.now)
            lanes.wake(tx, job.workspace, lanes.ENGINE, tx.now)
        return job is not None
    freed = leases.free(tx, metadata.tables[name], key, fence, owner)
    if freed and name == "publication_commands" and is_forgiven:
        executions.forgive(tx, str(key[0]), fence)
    return freed


def see_worker(tx: Tx, row: dict[str, Any]) -> None:
    """Write down that a worker lives."""
    tenants.see_worker(tx, row)
