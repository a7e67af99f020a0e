"""Rows of `approvals` and `reconciliations`: who let an act be repeated, and what asking about it found.

Append-only, but for the moment at which an approval is used; none is used twice.
"""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.store.schema import effects as tables
from dragoman.store.transaction import Row, Tx

_APPROVALS, _INQUIRIES = tables.approvals, tables.reconciliations

RESEND = "policy:resend"
"""A lost completion is sent once more by the money policy."""
PERSON = "retry"
"""A person has looked, and lets it be sent once more."""


def add(
    tx: Tx,
    *,
    workspace: str,
    effect_id: str,
    kind: str,
    by: str,
    reason: str,
    correlation_id: str,
    used: bool,
) -> None:
    """Write an approval down."""
    row = {
        "id": tx.new_id(),
        "workspace": workspace,
        "effect_id": effect_id,
        "kind": kind,
        "by": by,
        "reason": reason[:255],
        "correlation_id": correlation_id,
        "used_at": tx.now if used else None,
        "created_at": tx.now,
    }
    tx.insert(_APPROVALS, [row])


def of_effect(tx: Tx, workspace: str, effect_id: str) -> list[Row]:
    """The approvals of one effect."""
    mine = sa.select(_APPROVALS).where(
        _APPROVALS.c.workspace == workspace, _APPROVALS.c.effect_id == effect_id
    )
    return tx.all(mine.order_by(_APPROVALS.c.created_at, _APPROVALS.c.id))


def count(tx: Tx, workspace: str, correlation_id: str, kind: str) -> int:
    """How many approvals of a kind one client job has had."""
    mine = sa.select(sa.func.count()).where(
        _APPROVALS.c.workspace == workspace,
        _APPROVALS.c.correlation_id == correlation_id,
        _APPROVALS.c.kind == kind,
    )
    return int(tx.scalar(mine))


def use(tx: Tx, approval_id: str) -> bool:
    """Use an approval; False where it has been used."""
    here = sa.update(_APPROVALS).where(_APPROVALS.c.id == approval_id, _APPROVALS.c.used_at.is_(None))
    return tx.touched(here.values(used_at=tx.now)) == 1


def note_inquiry(
    tx: Tx,
    *,
    workspace: str,
    effect_id: str,
    attempt_id: str,
    disposition: str,
    object_ref: str,
    next_action: str,
    by: str,
) -> None:
    """Write down what asking about an attempt has found, also where that is nothing."""
    row = {
        "id": tx.new_id(),
        "workspace": workspace,
        "effect_id": effect_id,
        "attempt_id": attempt_id,
        "disposition": disposition,
        "object_ref": object_ref[:255],
        "next_action": next_action,
        "by": by,
        "at": tx.now,
    }
    tx.insert(_INQUIRIES, [row])
