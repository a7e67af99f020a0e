"""Where the intents of a manifest stand with their publication: asked of sums over executions, and of a step
only where its execution runs at this moment or where it is named in the answer.

The newest step of an intent counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.machines.tables import STEP
from dragoman.store import publication_sums
from dragoman.store.columns import is_set
from dragoman.store.schema import publishing as tables
from dragoman.store.tables_publishing import STEP_COUNTS, UNIT_COUNTS
from dragoman.store.transaction import Row, Tx

_EXECUTIONS, _STEPS, _PLANNED = tables.executions, tables.publication_steps, tables.plan_steps
_BAD = publication_sums.STEPS_IN_TROUBLE
_STATES = dict(zip(STEP_COUNTS, sorted(STEP.states), strict=True))

_LOOKED_AT = 500
"""How many executions are asked for their steps at once."""

_MINE = (
    _EXECUTIONS.c.workspace == sa.bindparam("ws"),
    _EXECUTIONS.c.manifest_id == sa.bindparam("manifest"),
)
_OF_EXECUTION = sa.and_(_STEPS.c.execution_id == _EXECUTIONS.c.id, is_set(_STEPS.c.newest))
_NEWEST = _EXECUTIONS.join(_STEPS, _OF_EXECUTION)
_LIVE = (
    sa.select(
        _EXECUTIONS.c.id,
        _EXECUTIONS.c.direction,
        _STEPS.c.state,
        sa.func.count(_STEPS.c.state).label("number"),
        *(sa.func.coalesce(sa.func.sum(_STEPS.c[name]), 0).label(name) for name in UNIT_COUNTS),
    )
    .select_from(_EXECUTIONS.outerjoin(_STEPS, _OF_EXECUTION))
    .where(*_MINE, _EXECUTIONS.c.state == "RUNNING")
    .group_by(_EXECUTIONS.c.id, _EXECUTIONS.c.direction, _STEPS.c.state)
)
"""The newest steps of what runs; one row without a state for an execution that has none."""
_CODE = sa.func.coalesce(_EXECUTIONS.c.error_code, "")
_NAMED = (
    sa.select(
        *(_STEPS.c[name] for name in ("execution_id", "ordinal", "direction", "state", "units_left")),
        *(_STEPS.c[name] for name in ("error_code", "error_message")),
        *(_PLANNED.c[name] for name in ("document", "locale", "target")),
        _EXECUTIONS.c.error_code.label("execution_code"),
    )
    .select_from(
        _NEWEST.join(
            _PLANNED,
            sa.and_(_PLANNED.c.plan_id == _EXECUTIONS.c.plan_id, _PLANNED.c.ordinal == _STEPS.c.ordinal),
        )
    )
    .order_by(_STEPS.c.execution_id, _STEPS.c.ordinal)
)
_RUNNING = sa.select(_EXECUTIONS.c.id).where(*_MINE, _EXECUTIONS.c.state == "RUNNING")


def _told(counts: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """The executions whose counts tell that they have steps of a kind."""
    told = sa.select(_EXECUTIONS.c.id, _EXECUTIONS.c.state, _CODE.label("code")).where(*_MINE, counts)
    return told.order_by(_EXECUTIONS.c.id).limit(sa.bindparam("most"))


def _of_them(*steps: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Steps of a kind of these executions."""
    mine = _STEPS.c.execution_id.in_(sa.bindparam("executions", expanding=True))
    return _NAMED.where(mine, *steps).limit(sa.bindparam("most"))


def _by_state(states: Sequence[str]) -> sa.Select[Any]:
    """Steps of few among the many of their executions; MariaDB would read them all, were it not told."""
    few = _of_them(_STEPS.c.state.in_(states))
    for dialect in ("mysql", "mariadb"):
        few = few.with_hint(_STEPS, "FORCE INDEX (ix_publication_steps_state)", dialect)
    return few


_TROUBLED = _told(is_set(_EXECUTIONS.c.troubled))
_ENDED_BADLY, _NOT_RUN = _by_state(_BAD), _by_state([STEP.initial])
_LEAVING = _told(_EXECUTIONS.c.units_left > 0)
_LEFT = _of_them(_STEPS.c.state == "SUCCEEDED", _STEPS.c.units_left > 0)


class Standing(NamedTuple):
    """`steps` counts the newest step of each intent by state; the units are those of forward steps."""

    running: Sequence[str]
    """The executions that run."""
    queued: bool
    steps: dict[str, int]
    written: int
    left: int
    taken_back: bool
    troubled: bool
    """Whether a step ended badly, nobody knows its end, or it was never run because others failed."""


def of_manifest(tx: Tx, workspace: str, manifest_id: str) -> Standing:
    """Where all intents of a manifest stand: by the sums of what rests, and by the steps of what runs."""
    here = {"ws": workspace, "manifest": manifest_id}
    sums = publication_sums.of_manifest(tx, workspace, manifest_id)
    live = tx.all(_LIVE, here)
    parts = [(row.direction, state, getattr(row, name)) for row in sums for name, state in _STATES.items()]
    parts += [(row.direction, row.state, row.number) for row in live]
    steps: dict[str, int] = {}
    for _, state, number in parts:
        if number:
            steps[state] = steps.get(state, 0) + int(number)
    forward = [row for row in (*sums, *live) if row.direction == "forward"]
    return Standing(
        running=sorted({row.id for row in live}),
        queued=any(row.queued for row in sums),
        steps=steps,
        written=sum(int(row.units_written) for row in forward),
        left=sum(int(row.units_left) for row in forward),
        taken_back=any(direction == "backward" and number for direction, _, number in parts),
        troubled=any(row.troubled for row in sums) or any(row.state in _BAD for row in live),
    )


def not_in_place(
    tx: Tx, workspace: str, manifest_id: str, limit: int, running: Sequence[str] | None = None
) -> list[Row]:
    """Newest steps of intents that ended badly, whose end nobody knows, or that were never run; each with
    document, locale and target, and its execution's error. `running` is what runs, where that is known.
    """
    here = {"ws": workspace, "manifest": manifest_id}
    told = tx.all(_TROUBLED, here | {"most": limit})
    failed = [row.id for row in told if row.state == "FAILED" and row.code != publication_sums.CANCELED]
    if running is None:
        running = [row.id for row in tx.all(_RUNNING, here)]
    # one that runs may be told by what it was counted as before
    found = _named(tx, _ENDED_BADLY, {*(row.id for row in told), *running}, limit)
    found += _named(tx, _NOT_RUN, failed, limit)
    return sorted(found, key=lambda row: (row.execution_id, row.ordinal))[:limit]


def left_units(tx: Tx, workspace: str, manifest_id: str, limit: int) -> list[Row]:
    """Newest steps of intents that succeeded and left units: their source had moved, or a person's stood."""
    here = {"ws": workspace, "manifest": manifest_id}
    told = tx.all(_LEAVING, here | {"most": limit}) + tx.all(_RUNNING, here)
    return _named(tx, _LEFT, {row.id for row in told}, limit)


def _named(tx: Tx, steps: sa.Select[Any], executions: Iterable[str], limit: int) -> list[Row]:
    """The first steps of a kind, by execution and ordinal."""
    ids = sorted(executions)
    found: list[Row] = []
    for first in range(0, len(ids), _LOOKED_AT):
        found += tx.all(steps, {"executions": ids[first : first + _LOOKED_AT], "most": limit - len(found)})
        if len(found) >= limit:
            break
    return found


def differences(tx: Tx, manifest_id: str) -> list[str]:
    """What is miscounted of a manifest: executions that do not run, and the sums over them."""
    steps = [
        sa.func.coalesce(sa.func.sum(sa.case((_STEPS.c.state == state, 1), else_=0)), 0).label(name)
        for name, state in _STATES.items()
    ]
    units = [sa.func.coalesce(sa.func.sum(_STEPS.c[name]), 0).label(name) for name in UNIT_COUNTS]
    still = sa.and_(_EXECUTIONS.c.manifest_id == manifest_id, _EXECUTIONS.c.state != "RUNNING")
    stored = tx.all(sa.select(_EXECUTIONS).where(still))
    counted = sa.select(_STEPS.c.execution_id, *steps, *units).select_from(_NEWEST).where(still)
    true = {row.execution_id: row for row in tx.all(counted.group_by(_STEPS.c.execution_id))}
    wrong = [f"execution {row.id}" for row in stored if _numbers(row) != _numbers(true.get(row.id))]
    if stored and not publication_sums.agree(tx, stored[0].workspace, manifest_id):
        wrong.append("the sums over its executions")
    return wrong


def _numbers(row: Row | None) -> list[int]:
    return [getattr(row, name) if row is not None else 0 for name in (*STEP_COUNTS, *UNIT_COUNTS)]
