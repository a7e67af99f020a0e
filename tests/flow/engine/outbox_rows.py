"""Events put into the outbox, looks at them, and moves of time, for the tests of delivery."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.kernel.clock import seconds
from dragoman.store.rows import outbox
from dragoman.store.schema import effects as effect_tables
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx

_OUTBOX, _ATTEMPTS = tables.outbox, effect_tables.attempts


def put_event(
    tx: Tx,
    url: str,
    number: int = 1,
    workspace: str = "default",
    event: str = "job.completed",
    secret: str = "local",
) -> str:
    """Freeze one event of a job of its own; its delivery id."""
    return outbox.add(
        tx,
        workspace=workspace,
        job_id=f"00000000-0000-7000-8000-{number:012d}",
        sequence=1,
        event=event,
        url=url,
        secret=secret,
        payload=b'{"event":"%s","n":%d}' % (event.encode(), number),
    )


def event_row(tx: Tx, outbox_id: str) -> Row:
    """One event as it stands."""
    found = tx.first(sa.select(_OUTBOX).where(_OUTBOX.c.id == outbox_id))
    assert found is not None
    return found


def attempts(tx: Tx) -> list[Row]:
    """All attempts, in the order of their numbers."""
    return tx.all(sa.select(_ATTEMPTS).order_by(_ATTEMPTS.c.effect_id, _ATTEMPTS.c.number))


def put_off(tx: Tx, outbox_id: str) -> None:
    """As if one event were due in a while only."""
    later = tx.now + seconds(60)
    tx.touched(sa.update(_OUTBOX).where(_OUTBOX.c.id == outbox_id).values(next_attempt_at=later))


def make_due(tx: Tx) -> None:
    """As if the time of every waiting event had come."""
    tx.touched(
        sa.update(_OUTBOX).where(_OUTBOX.c.next_attempt_at.is_not(None)).values(next_attempt_at=tx.now)
    )


def end_leases(tx: Tx) -> None:
    """As if every holder had been gone for a while."""
    held = _OUTBOX.c.lease_expires_at.is_not(None)
    tx.touched(sa.update(_OUTBOX).where(held).values(lease_expires_at=tx.now - 1))


def age(tx: Tx, window_seconds: float) -> None:
    """As if the first attempt of every event lay so far back."""
    first = tx.now - seconds(window_seconds)
    tx.touched(sa.update(_OUTBOX).values(first_attempt_at=first))
