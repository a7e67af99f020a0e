"""Rows of `lanes`: the workspaces that have work of one role, and whose turn it is.

`ready_at` is when the workspace next has something due. `served_at` is its turn: it moves on by one at every
claim, slower for a heavier lane; whoever was away takes up at the turn of the others, and saves nothing up.
"""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.kernel.clock import MICROSECONDS
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx

_LANES = tables.lanes

ENGINE = "engine"

_HERE = sa.and_(_LANES.c.workspace == sa.bindparam("ws"), _LANES.c.role == sa.bindparam("of_role"))
_READY = (
    sa.select(_LANES)
    .where(_LANES.c.role == sa.bindparam("of_role"), _LANES.c.ready_at <= sa.bindparam("now"))
    .order_by(_LANES.c.served_at)
    .limit(sa.bindparam("most"))
)
_AWAKE = (
    sa.update(_LANES)
    .where(_HERE)
    .values(
        ready_at=sa.case(
            (
                sa.func.coalesce(_LANES.c.ready_at, sa.bindparam("due")) < sa.bindparam("due"),
                _LANES.c.ready_at,
            ),
            else_=sa.bindparam("due"),
        )
    )
)
_SERVED = sa.update(_LANES).where(_HERE).values(served_at=sa.bindparam("turn"))
_LOCKED = sa.select(_LANES.c.ready_at).where(_HERE).with_for_update()
_REST = sa.update(_LANES).where(_HERE).values(ready_at=sa.bindparam("due"))


def ready(tx: Tx, role: str, limit: int) -> list[Row]:
    """Lanes with work that is due, whose turn comes first first."""
    return tx.all(_READY, {"of_role": role, "now": tx.now, "most": limit})


def wake(tx: Tx, workspace: str, role: str, due_at: int) -> None:
    """Say that a workspace has work at `due_at`. Takes the lane's lock, so that `rest` cannot miss it."""
    values = {"ws": workspace, "of_role": role, "due": due_at}
    if not tx.touched(_AWAKE, values):
        tx.insert_new(
            _LANES, [{"workspace": workspace, "role": role, "ready_at": due_at}], ("workspace", "role")
        )
        tx.touched(_AWAKE, values)


def serve(tx: Tx, lane: Row, others: list[Row]) -> None:
    """Move a lane's turn on, to that of the next lane at least."""
    step = MICROSECONDS // max(1, lane.weight)
    following = min((other.served_at for other in others), default=lane.served_at)
    turn = max(lane.served_at, following - step) + step
    tx.touched(_SERVED, {"ws": lane.workspace, "of_role": lane.role, "turn": turn})


def lock(tx: Tx, lane: Row) -> None:
    """Lock a lane before its work is looked for: what is accepted from now on waits, and wakes it again."""
    tx.first(_LOCKED, {"ws": lane.workspace, "of_role": lane.role})


def rest(tx: Tx, lane: Row, due_at: int | None) -> None:
    """Let a (locked) lane sleep until its next work is due."""
    tx.touched(_REST, {"ws": lane.workspace, "of_role": lane.role, "due": due_at})


def sleeping(tx: Tx, role: str, after: str, limit: int) -> list[Row]:
    """Lanes that say they have nothing due, in order of workspace."""
    asleep = sa.or_(_LANES.c.ready_at.is_(None), _LANES.c.ready_at > tx.now)
    page = sa.select(_LANES).where(_LANES.c.role == role, asleep, _LANES.c.workspace > after)
    return tx.all(page.order_by(_LANES.c.workspace).limit(limit))
