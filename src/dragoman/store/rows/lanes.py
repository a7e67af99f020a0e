"""Rows of `lanes`: the workspaces that have work of one role, and whose turn it is.

`ready_at` is when the workspace next has something due. `served_at` is its turn: the lowest comes next. A
turn moves on by one with every claim, by a share of one for a heavier lane, so that all that are at work
stand within one of each other; whoever was away, or alone for long, takes up there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
_LATEST = sa.select(sa.func.max(_LANES.c.served_at)).where(_LANES.c.role == sa.bindparam("of_role"))
_LOCKED = sa.select(_LANES.c.ready_at).where(_HERE).with_for_update()
_REST = sa.update(_LANES).where(_HERE).values(ready_at=sa.bindparam("due"))


def ready(tx: Tx, role: str, limit: int) -> list[Row]:
    """Lanes with work that is due, whose turn comes first first."""
    return tx.all(_READY, {"of_role": role, "now": tx.now, "most": limit})


def ready_where(
    tx: Tx, role: str, limit: int, holds_good: Callable[[sa.ColumnElement[str]], sa.ColumnElement[bool]]
) -> list[Row]:
    """Of those lanes the ones whose workspace meets a condition."""
    chosen = _READY.where(holds_good(_LANES.c.workspace))
    return tx.all(chosen, {"of_role": role, "now": tx.now, "most": limit})


def wake(tx: Tx, workspace: str, role: str, due_at: int) -> None:
    """Say that a workspace has work at `due_at`. Takes the lane's lock, so that `rest` cannot miss it."""
    values = {"ws": workspace, "of_role": role, "due": due_at}
    if not tx.touched(_AWAKE, values):
        tx.insert_new(
            _LANES, [{"workspace": workspace, "role": role, "ready_at": due_at}], ("workspace", "role")
        )
        tx.touched(_AWAKE, values)


def serve(tx: Tx, lane: Row) -> None:
    """Move a lane's turn on, by a share for a heavy one; of what it missed it has one round at most."""
    latest = int(tx.scalar(_LATEST, {"of_role": lane.role}) or 0)
    turn = max(lane.served_at, latest - MICROSECONDS) + MICROSECONDS // max(1, lane.weight)
    tx.touched(_SERVED, {"ws": lane.workspace, "of_role": lane.role, "turn": turn})


def weigh(tx: Tx, role: str, weights: Mapping[str, int]) -> None:
    """Give workspaces their weights, and all others one turn a round."""
    here = sa.update(_LANES).where(_LANES.c.role == role)
    others = here.where(_LANES.c.workspace.not_in(sorted(weights)), _LANES.c.weight != 1)
    tx.touched(others.values(weight=1))
    fresh = [{"workspace": workspace, "role": role} for workspace in sorted(weights)]
    if fresh:
        tx.insert_new(_LANES, fresh, ("workspace", "role"))
    for workspace, weight in sorted(weights.items()):
        tx.touched(here.where(_LANES.c.workspace == workspace).values(weight=weight))


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
