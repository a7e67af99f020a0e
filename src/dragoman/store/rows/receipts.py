"""Rows of `receipts`: inbound callbacks, each kept once before it is used."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from dragoman.machines.tables import RECEIPT
from dragoman.model.events import Delivery
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_RECEIPTS = tables.receipts


def keep(tx: Tx, delivery: Delivery) -> Row:
    """The one receipt of a delivery id, made if new; a repeat is counted on it."""
    row = {
        "id": tx.new_id(),
        "workspace": delivery.workspace,
        "family": delivery.family,
        "event_id": delivery.event_id,
        "object_ref": delivery.object_ref,
        "event_sequence": delivery.event_sequence,
        "state": RECEIPT.initial,
        "signature_state": "VALID",
        "fingerprint": delivery.fingerprint,
        "body": delivery.body,
        "next_attempt_at": tx.now,
        "received_at": tx.now,
    }
    where = (
        _RECEIPTS.c.workspace == delivery.workspace,
        _RECEIPTS.c.family == delivery.family,
        _RECEIPTS.c.event_id == delivery.event_id,
    )
    if not tx.insert_new(_RECEIPTS, [row], ("workspace", "family", "event_id")):
        tx.touched(sa.update(_RECEIPTS).where(*where).values(repeats=_RECEIPTS.c.repeats + 1))
    found = tx.first(sa.select(_RECEIPTS).where(*where))
    if found is None:
        raise LookupError(f"receipt {delivery.event_id} vanished inside its transaction")
    return found


def close(tx: Tx, receipt_id: str, event: str, **values: Any) -> bool:
    """Move an open receipt by one event; what is applied keeps no body."""
    sources = [state for state, known, _ in RECEIPT.table if known == event]
    target = next(target for _, known, target in RECEIPT.table if known == event)
    kept: dict[str, Any] = {"state": target, **values}
    if target in RECEIPT.terminal:
        kept |= {"body": None, "next_attempt_at": None, "applied_at": tx.now}
    where = (_RECEIPTS.c.id == receipt_id, _RECEIPTS.c.state.in_(sources))
    return tx.touched(sa.update(_RECEIPTS).where(*where).values(**kept)) == 1


def postpone(tx: Tx, receipt_id: str, due_at: int) -> None:
    """Look at an open receipt again at this instant."""
    tx.touched(
        sa.update(_RECEIPTS)
        .where(_RECEIPTS.c.id == receipt_id, _RECEIPTS.c.state.in_(sorted(RECEIPT.groups["APPLICABLE"])))
        .values(next_attempt_at=due_at, attempt_count=_RECEIPTS.c.attempt_count + 1)
    )


def wake(tx: Tx, workspace: str, object_ref: str) -> None:
    """Make receipts that came early for this submission due now."""
    tx.touched(
        sa.update(_RECEIPTS)
        .where(
            _RECEIPTS.c.workspace == workspace,
            _RECEIPTS.c.object_ref == object_ref,
            _RECEIPTS.c.state.in_(sorted(RECEIPT.groups["APPLICABLE"])),
        )
        .values(next_attempt_at=tx.now)
    )


def due(tx: Tx, limit: int) -> list[Row]:
    """Kept receipts that wait to be applied."""
    return tx.all(
        sa.select(_RECEIPTS)
        .where(
            _RECEIPTS.c.state.in_(sorted(RECEIPT.groups["APPLICABLE"])), _RECEIPTS.c.next_attempt_at <= tx.now
        )
        .order_by(_RECEIPTS.c.next_attempt_at)
        .limit(limit)
    )
