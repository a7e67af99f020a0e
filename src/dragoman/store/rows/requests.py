"""Rows of `publication_requests`: these intents are settled, put them in place.

Planning takes them by manifest. A request for all names none: it goes through the manifest, a plan at a time;
so does one that is *backward*, by which what stands is taken back, from the newest plan to the oldest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.machines.tables import REQUEST
from dragoman.store import leases
from dragoman.store.schema import publishing as tables
from dragoman.store.transaction import Row, Tx

_REQUESTS = tables.publication_requests

_MINE = (
    _REQUESTS.c.workspace == sa.bindparam("ws"),
    _REQUESTS.c.manifest_id == sa.bindparam("manifest"),
)
_WAITING = sa.select(_REQUESTS.c.id).where(*_MINE, _REQUESTS.c.state == REQUEST.initial).limit(1)
_GIVEN_UP = sa.select(_REQUESTS).where(
    *_MINE,
    _REQUESTS.c.state == REQUEST.next(REQUEST.initial, "give_up"),
    _REQUESTS.c.error_code != "canceled",
)


def write(tx: Tx, manifest: Row, intent_ids: Sequence[str], asked: bool = False) -> bool:
    """One request for these intents, where the manifest publishes by itself or somebody `asked` for it.

    A canceled one publishes nothing by itself.
    """
    by_itself = not manifest.canceled and json.loads(manifest.settings).get("publish") == "auto"
    if not intent_ids or not (asked or by_itself):
        return False
    _insert(tx, manifest.workspace, manifest.id, intent_ids, state=REQUEST.initial, next_attempt_at=tx.now)
    return True


def write_for_all(tx: Tx, manifest: Row) -> None:
    """One request for all that has settled when its turn comes."""
    _insert(tx, manifest.workspace, manifest.id, (), state=REQUEST.initial, next_attempt_at=tx.now, behind=-1)


def write_backward(tx: Tx, manifest: Row, plan_id: str) -> None:
    """One request to take back what stands of the plans that are older than this one."""
    asked = {"direction": "backward", "plan_id": plan_id, "next_attempt_at": tx.now}
    _insert(tx, manifest.workspace, manifest.id, (), state=REQUEST.initial, **asked)


def claim_backward(tx: Tx, owner: str, lease_seconds: float) -> Row | None:
    """Lease the request to take back that has been due longest."""
    rows = _lease(tx, _due(tx, "backward"), owner, lease_seconds, 1)
    return rows[0] if rows else None


def claim(tx: Tx, owner: str, lease_seconds: float, limit: int) -> list[Row]:
    """Lease the request that has been due longest, and what else of its manifest is due."""
    due = _due(tx, "forward")
    first = _lease(tx, due, owner, lease_seconds, 1)
    if not first:
        return []
    beside = sa.and_(due, _REQUESTS.c.manifest_id == first[0].manifest_id)
    return first + _lease(tx, beside, owner, lease_seconds, limit - 1)


def _due(tx: Tx, direction: str) -> sa.ColumnElement[bool]:
    return sa.and_(
        _REQUESTS.c.state == REQUEST.initial,
        _REQUESTS.c.next_attempt_at <= tx.now,
        _REQUESTS.c.direction == direction,
    )


def _lease(tx: Tx, ready: sa.ColumnElement[bool], owner: str, lease_seconds: float, limit: int) -> list[Row]:
    return leases.claim(
        tx,
        _REQUESTS,
        ready=ready,
        order=[_REQUESTS.c.next_attempt_at],
        limit=limit,
        owner=owner,
        lease_seconds=lease_seconds,
    )


def hold(tx: Tx, requests: Sequence[tuple[str, int]]) -> bool:
    """Lock claimed requests; False when one of them is no longer ours or no longer open."""
    held = [
        tx.first(
            sa.select(_REQUESTS.c.id)
            .where(leases.held(_REQUESTS, request_id, fence), _REQUESTS.c.state == REQUEST.initial)
            .with_for_update()
        )
        for request_id, fence in requests
    ]
    return all(row is not None for row in held)


def move(tx: Tx, requests: Sequence[tuple[str, int]], **values: Any) -> None:
    """Set columns of held requests, and give them back."""
    for request_id, fence in requests:
        leases.release(tx, _REQUESTS, request_id, fence, {"updated_at": tx.now, **values})


def ask_again(tx: Tx, workspace: str, manifest_id: str, intent_ids: Sequence[str], **values: Any) -> None:
    """One more request, for intents that an earlier one could not bring into a plan."""
    _insert(tx, workspace, manifest_id, intent_ids, **values)


def narrow(tx: Tx, request_id: str, fence: int, intent_ids: Sequence[str]) -> None:
    """Leave in a held request only the intents that are still to be planned."""
    tx.touched(
        sa.update(_REQUESTS)
        .where(leases.held(_REQUESTS, request_id, fence))
        .values(intents=json.dumps(sorted(intent_ids)))
    )


def go_on(tx: Tx, request_id: str, fence: int, behind: int) -> None:
    """Let a held request for all go on behind this ordinal, at once."""
    leases.release(
        tx,
        _REQUESTS,
        request_id,
        fence,
        {"behind": behind, "next_attempt_at": tx.now, "updated_at": tx.now},
    )


def end_open(
    tx: Tx, workspace: str, manifest_id: str, code: str, directions: Sequence[str] = ("forward",)
) -> int:
    """End what of a manifest waits to be planned, whoever holds it; how many."""
    return tx.touched(
        sa.update(_REQUESTS)
        .where(
            _of(workspace, manifest_id),
            _REQUESTS.c.state == REQUEST.initial,
            _REQUESTS.c.direction.in_(list(directions)),
        )
        .values(
            state=REQUEST.next(REQUEST.initial, "give_up"),
            fence=_REQUESTS.c.fence + 1,
            lease_owner=None,
            lease_expires_at=None,
            next_attempt_at=None,
            error_code=code,
            updated_at=tx.now,
        )
    )


def waiting(tx: Tx, workspace: str, manifest_id: str) -> bool:
    """Whether something of a manifest waits to be planned."""
    return tx.first(_WAITING, {"ws": workspace, "manifest": manifest_id}) is not None


def given_up(tx: Tx, workspace: str, manifest_id: str) -> list[Row]:
    """Requests of a manifest that no plan came of, but for those that somebody canceled."""
    return tx.all(_GIVEN_UP, {"ws": workspace, "manifest": manifest_id})


def _of(workspace: str, manifest_id: str) -> sa.ColumnElement[bool]:
    return sa.and_(_REQUESTS.c.workspace == workspace, _REQUESTS.c.manifest_id == manifest_id)


def _insert(tx: Tx, workspace: str, manifest_id: str, intent_ids: Sequence[str], **values: Any) -> None:
    row = {
        "id": tx.new_id(),
        "workspace": workspace,
        "manifest_id": manifest_id,
        "intents": json.dumps(sorted(intent_ids)),
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    tx.insert(_REQUESTS, [row | values])
