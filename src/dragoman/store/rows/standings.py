"""Where the intents of a manifest stand with their publication: asked of executions, and of a step only where
its execution runs at this moment or where it is named in the answer.

The newest step of an intent counts. An execution that does not run holds the counts of its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.machines.tables import STEP
from dragoman.store.columns import is_set
from dragoman.store.schema import publishing as tables
from dragoman.store.tables_publishing import STEP_COUNTS, UNIT_COUNTS
from dragoman.store.transaction import Row, Tx

_EXECUTIONS, _STEPS, _PLANNED = tables.executions, tables.publication_steps, tables.plan_steps
_STATES = dict(zip(STEP_COUNTS, sorted(STEP.states), strict=True))

_LOOKED_AT = 500
"""How many executions are asked for their steps at once."""
_BAD = ("FAILED", "CONFLICT", "UNKNOWN")
_CANCELED = "canceled"
"""Why an execution failed whose steps nobody misses: who cancels wants nothing more of it."""

_MINE = (
    _EXECUTIONS.c.workspace == sa.bindparam("ws"),
    _EXECUTIONS.c.manifest_id == sa.bindparam("manifest"),
)
_WHAT = (_EXECUTIONS.c.state, _EXECUTIONS.c.direction, _EXECUTIONS.c.error_code)
_STORED = (
    sa.select(
        *_WHAT,
        sa.func.count().label("executions"),
        *(sa.func.sum(_EXECUTIONS.c[name]).label(name) for name in (*STEP_COUNTS, *UNIT_COUNTS)),
    )
    .where(*_MINE)
    .group_by(*_WHAT)
)
_NEWEST = _EXECUTIONS.join(
    _STEPS, sa.and_(_STEPS.c.execution_id == _EXECUTIONS.c.id, is_set(_STEPS.c.newest))
)
_LIVE = (
    sa.select(
        _EXECUTIONS.c.direction,
        _STEPS.c.state,
        sa.func.count().label("number"),
        *(sa.func.sum(_STEPS.c[name]).label(name) for name in UNIT_COUNTS),
    )
    .select_from(_NEWEST)
    .where(*_MINE, _EXECUTIONS.c.state == "RUNNING")
    .group_by(_EXECUTIONS.c.direction, _STEPS.c.state)
)
_COUNTED_BAD = sum((_EXECUTIONS.c[f"steps_{state.lower()}"] for state in _BAD), sa.literal(0))


_CODE = sa.func.coalesce(_EXECUTIONS.c.error_code, "")
_NAMED = (
    sa.select(
        *_STEPS.c,
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
_NOT_RUN = sa.and_(_EXECUTIONS.c.state == "FAILED", _CODE != _CANCELED)
_RESTS = _EXECUTIONS.c.state != "RUNNING"


class _Kind(NamedTuple):
    """How steps of a kind are found: first the executions, by their counts or because they run, then these
    steps of theirs.
    """

    told: sa.Select[Any]
    steps: sa.Select[Any]


def _kind(counts: sa.ColumnElement[bool], states: Sequence[str], steps: sa.ColumnElement[bool]) -> _Kind:
    told = sa.select(_EXECUTIONS.c.id).where(*_MINE, _RESTS, counts).order_by(_EXECUTIONS.c.id)
    mine = _STEPS.c.execution_id.in_(sa.bindparam("executions", expanding=True))
    named = _NAMED.where(mine, _STEPS.c.state.in_(states), steps)
    return _Kind(told.limit(sa.bindparam("most")), named.limit(sa.bindparam("most")))


_RUNNING = sa.select(_EXECUTIONS.c.id).where(*_MINE, _EXECUTIONS.c.state == "RUNNING")
_NOT_IN_PLACE = _kind(
    sa.or_(_COUNTED_BAD > 0, sa.and_(_NOT_RUN, _EXECUTIONS.c.steps_pending > 0)),
    [*_BAD, STEP.initial],
    sa.or_(_STEPS.c.state.in_(_BAD), _NOT_RUN),
)
_LEFT_UNITS = _kind(_EXECUTIONS.c.units_left > 0, ["SUCCEEDED"], _STEPS.c.units_left > 0)


class Standing(NamedTuple):
    """`steps` counts the newest step of each intent by state; the units are those of forward steps."""

    executions: dict[str, int]
    steps: dict[str, int]
    written: int
    left: int
    taken_back: bool
    troubled: bool
    """Whether a step ended badly, nobody knows its end, or it was never run because others failed."""


def of_manifest(tx: Tx, workspace: str, manifest_id: str) -> Standing:
    """Where all intents of a manifest stand."""
    here = {"ws": workspace, "manifest": manifest_id}
    stored = tx.all(_STORED, here)
    runs: dict[str, int] = {}
    for row in stored:
        runs[row.state] = runs.get(row.state, 0) + row.executions
    parts = [
        (row.direction, state, getattr(row, name), not_run(row) if state == STEP.initial else state in _BAD)
        for row in stored
        if row.state != "RUNNING"
        for name, state in _STATES.items()
    ]
    units = [(row.direction, row.units_written, row.units_left) for row in stored if row.state != "RUNNING"]
    if "RUNNING" in runs:
        live = tx.all(_LIVE, here)
        parts += [(row.direction, row.state, row.number, row.state in _BAD) for row in live]
        units += [(row.direction, row.units_written, row.units_left) for row in live]
    steps: dict[str, int] = {}
    for _, state, number, _ in parts:
        if number:
            steps[state] = steps.get(state, 0) + number
    return Standing(
        executions=runs,
        steps=steps,
        written=sum(written for direction, written, _ in units if direction == "forward"),
        left=sum(left for direction, _, left in units if direction == "forward"),
        taken_back=any(direction == "backward" and number for direction, _, number, _ in parts),
        troubled=any(number and bad for _, _, number, bad in parts),
    )


def not_run(execution: Row) -> bool:
    """Whether the steps of an execution that were never begun are missed."""
    return bool(execution.state == "FAILED" and execution.error_code != _CANCELED)


def not_in_place(tx: Tx, workspace: str, manifest_id: str, limit: int) -> list[Row]:
    """Newest steps of intents that ended badly, whose end nobody knows, or that were never run; each with
    document, locale and target, and its execution's error.
    """
    return _find(tx, _NOT_IN_PLACE, workspace, manifest_id, limit)


def left_units(tx: Tx, workspace: str, manifest_id: str, limit: int) -> list[Row]:
    """Newest steps of intents that succeeded and left units: their source had moved, or a person's stood."""
    return _find(tx, _LEFT_UNITS, workspace, manifest_id, limit)


def _find(tx: Tx, kind: _Kind, workspace: str, manifest_id: str, limit: int) -> list[Row]:
    here = {"ws": workspace, "manifest": manifest_id}
    told = tx.all(kind.told, here | {"most": limit}) + tx.all(_RUNNING, here)
    ids = sorted(row.id for row in told)
    found: list[Row] = []
    for first in range(0, len(ids), _LOOKED_AT):
        page = {"executions": ids[first : first + _LOOKED_AT], "most": limit - len(found)}
        found += tx.all(kind.steps, page)
        if len(found) >= limit:
            break
    return found


def differences(tx: Tx, manifest_id: str) -> list[str]:
    """The executions of a manifest, none of which runs, whose counts are not those of their steps."""
    steps = [
        sa.func.coalesce(sa.func.sum(sa.case((_STEPS.c.state == state, 1), else_=0)), 0).label(name)
        for name, state in _STATES.items()
    ]
    units = [sa.func.coalesce(sa.func.sum(_STEPS.c[name]), 0).label(name) for name in UNIT_COUNTS]
    still = sa.and_(_EXECUTIONS.c.manifest_id == manifest_id, _EXECUTIONS.c.state != "RUNNING")
    stored = tx.all(sa.select(_EXECUTIONS).where(still))
    counted = sa.select(_STEPS.c.execution_id, *steps, *units).select_from(_NEWEST).where(still)
    true = {row.execution_id: row for row in tx.all(counted.group_by(_STEPS.c.execution_id))}
    return [row.id for row in stored if _numbers(row) != _numbers(true.get(row.id))]


def _numbers(row: Row | None) -> list[int]:
    return [getattr(row, name) if row is not None else 0 for name in (*STEP_COUNTS, *UNIT_COUNTS)]
