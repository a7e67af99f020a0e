"""Rows of `outbox`: one frozen event for one callback URL, sent until it arrives or its window is over.

The row owns state, lease, bytes and due time; the ledger owns the attempts. `gone_endpoints` are URLs that
have answered 410: nothing is sent there until a person says otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.identity import sha256
from dragoman.kernel.limits import OUTBOX_LEASE_SECONDS
from dragoman.machines.tables import OUTBOX
from dragoman.model.scopes import Scope, Workspace
from dragoman.store import leases
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx

_OUTBOX, _GONE = tables.outbox, tables.gone_endpoints


def add(
    tx: Tx,
    *,
    workspace: str,
    job_id: str,
    sequence: int,
    event: str,
    url: str,
    secret: str,
    payload: bytes,
) -> str:
    """Freeze an event; gives its delivery id. Without a URL it is never due: the site asks instead.

    One for a URL that is gone is dead from the beginning.
    """
    delivery_id = tx.new_id()
    row = {
        "id": delivery_id,
        "workspace": workspace,
        "job_id": job_id,
        "delivery_sequence": sequence,
        "event": event,
        "url": url,
        "secret": secret,
        "payload": payload,
        "state": OUTBOX.initial,
        "next_attempt_at": tx.now if url else None,
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    tx.insert(_OUTBOX, [row])
    if url and _is_gone(tx, workspace, url):
        end_waiting(tx, workspace, url)
    return delivery_id


def claim(tx: Tx, owner: str, limit: int, busy: Collection[str] = ()) -> list[Row]:
    """Lease due rows, those of vanished holders first; none to a `busy` place: a URL up to its path."""
    elsewhere = sa.and_(sa.true(), *[~_is_at(place) for place in sorted(busy)])
    expired, due = _OUTBOX.c.lease_expires_at, _OUTBOX.c.next_attempt_at
    rows: list[Row] = []
    for ready, order in (
        (sa.and_(_OUTBOX.c.state == "delivering", expired < tx.now), expired),
        (sa.and_(_OUTBOX.c.state == "pending", due <= tx.now), due),
    ):
        if len(rows) < limit:
            rows += leases.claim(
                tx,
                _OUTBOX,
                ready=sa.and_(ready, elsewhere),
                order=[order],
                limit=limit - len(rows),
                owner=owner,
                lease_seconds=OUTBOX_LEASE_SECONDS,
                set_={"state": "delivering"},
            )
    return rows


def _is_at(place: str) -> sa.ColumnElement[bool]:
    url = _OUTBOX.c.url
    return sa.or_(url == place, *[url.startswith(place + end, autoescape=True) for end in "/?#"])


def hold(tx: Tx, outbox_id: str, fence: int) -> Row | None:
    """Lock a row that this process delivers; None under a stale fence."""
    mine = sa.and_(leases.held(_OUTBOX, outbox_id, fence), _OUTBOX.c.state == "delivering")
    return tx.first(sa.select(_OUTBOX).where(mine).with_for_update())


def begin(tx: Tx, row: Row) -> None:
    """Count an attempt; the first one opens the window in which the row is sent by itself."""
    tx.touched(
        sa.update(_OUTBOX)
        .where(leases.held(_OUTBOX, row.id, row.fence))
        .values(
            attempt_count=_OUTBOX.c.attempt_count + 1,
            first_attempt_at=row.first_attempt_at or tx.now,
            last_attempt_at=tx.now,
            updated_at=tx.now,
        )
    )


def move(tx: Tx, row: Row, event: str, **values: Any) -> None:
    """Take a held row to what `event` leads to, and end its lease."""
    state = OUTBOX.next("delivering", event)
    leases.release(tx, _OUTBOX, row.id, row.fence, {"state": state, "updated_at": tx.now, **values})


def close_endpoint(tx: Tx, workspace: str, url: str, endpoint: str) -> int:
    """Send nothing to a URL any more, and end what waits to be sent there; how many."""
    row = {"workspace": workspace, "url_hash": sha256(url), "endpoint": endpoint, "created_at": tx.now}
    tx.insert_new(_GONE, [row], ("workspace", "url_hash"))
    return end_waiting(tx, workspace, url)


def open_endpoint(tx: Tx, workspace: str, url: str) -> bool:
    """Let events go to a URL again; False where nothing kept them from it."""
    return tx.touched(sa.delete(_GONE).where(_gone(workspace, url))) == 1


def _is_gone(tx: Tx, workspace: str, url: str) -> bool:
    return tx.first(sa.select(_GONE.c.created_at).where(_gone(workspace, url))) is not None


def _gone(workspace: str, url: str) -> sa.ColumnElement[bool]:
    return sa.and_(_GONE.c.workspace == workspace, _GONE.c.url_hash == sha256(url))


def end_waiting(tx: Tx, workspace: str, url: str) -> int:
    """End what waits to be sent to a URL that is gone; how many."""
    return tx.touched(
        sa.update(_OUTBOX)
        .where(_OUTBOX.c.workspace == workspace, _OUTBOX.c.state == "pending", _OUTBOX.c.url == url)
        .values(
            state="dead",
            next_attempt_at=None,
            dead_at=tx.now,
            error_code="PROVIDER_REJECTED",
            error_message="the endpoint says that it is gone",
            updated_at=tx.now,
        )
    )


def find(tx: Tx, scope: Scope, outbox_id: str, lock: bool = False) -> Row | None:
    """One row within a scope."""
    asked = sa.select(_OUTBOX).where(_OUTBOX.c.id == outbox_id, _within(scope))
    return tx.first(asked.with_for_update() if lock else asked)


def revive(tx: Tx, outbox_id: str) -> None:
    """Make a dead row due, with a new window."""
    tx.touched(
        sa.update(_OUTBOX)
        .where(
            _OUTBOX.c.id == outbox_id,
            _OUTBOX.c.state.in_(sorted(OUTBOX.sources("pending") & OUTBOX.terminal)),
        )
        .values(
            state="pending",
            next_attempt_at=tx.now,
            first_attempt_at=None,
            attempt_count=0,
            dead_at=None,
            updated_at=tx.now,
        )
    )


def page(tx: Tx, scope: Scope, state: str, before: str, limit: int) -> list[Row]:
    """Rows of a scope, newest first, without payload and secret.

    `before` is the last id of the page above.
    """
    shown = [column for column in _OUTBOX.c if column.name not in ("payload", "secret")]
    asked = sa.select(*shown).where(_within(scope))
    if state:
        asked = asked.where(_OUTBOX.c.state == state)
    if before:
        asked = asked.where(_OUTBOX.c.id < before)
    return tx.all(asked.order_by(_OUTBOX.c.id.desc()).limit(limit))


def counts(tx: Tx, scope: Scope) -> Mapping[str, int]:
    """How many rows stand in each state."""
    rows = tx.all(
        sa.select(_OUTBOX.c.state, sa.func.count().label("number"))
        .where(_within(scope))
        .group_by(_OUTBOX.c.state)
    )
    return dict.fromkeys(sorted(OUTBOX.states), 0) | {row.state: row.number for row in rows}


def _within(scope: Scope) -> sa.ColumnElement[bool]:
    return _OUTBOX.c.workspace == scope.id if isinstance(scope, Workspace) else sa.true()
