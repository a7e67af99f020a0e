"""Rows of `publication_sums`: what the executions of a manifest that do not run sum up to.

The executions of a manifest share out its slots, so that a status reads as many rows of a million intents as
of ten thousand. Whatever counts an execution counts its slot anew, from the executions and in the same
transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.limits import PUBLICATION_SLOTS
from dragoman.store.columns import is_set
from dragoman.store.schema import publishing as tables
from dragoman.store.tables_publishing import STANDING_COUNTS, STEP_COUNTS, UNIT_COUNTS
from dragoman.store.transaction import Row, Tx

STEPS_IN_TROUBLE = ("FAILED", "CONFLICT", "UNKNOWN")
CANCELED = "canceled"
"""Why an execution failed whose steps nobody misses: who cancels wants no more of it."""

_EXECUTIONS, _SUMS = tables.executions, tables.publication_sums
_KEY = ("workspace", "manifest_id", "direction", "slot")


def _number(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


_WHOLE = {
    **{name: sa.func.sum(_EXECUTIONS.c[name]) for name in (*STEP_COUNTS, *UNIT_COUNTS)},
    "queued": _number(_EXECUTIONS.c.state == "QUEUED"),
    "troubled": _number(is_set(_EXECUTIONS.c.troubled)),
}
_COUNTED = sa.select(
    *(sa.func.coalesce(_WHOLE[name], 0).label(name) for name in STANDING_COUNTS),
).where(
    *(_EXECUTIONS.c[name] == sa.bindparam(f"of_{name}") for name in _KEY), _EXECUTIONS.c.state != "RUNNING"
)
_LOCKED = (
    sa.select(_SUMS.c.slot)
    .where(*(_SUMS.c[name] == sa.bindparam(f"of_{name}") for name in _KEY))
    .with_for_update()
)
_SUMMED = (
    sa.select(
        _SUMS.c.direction,
        *(sa.func.sum(_SUMS.c[name]).label(name) for name in STANDING_COUNTS),
    )
    .where(_SUMS.c.workspace == sa.bindparam("ws"), _SUMS.c.manifest_id == sa.bindparam("manifest"))
    .group_by(_SUMS.c.direction)
)


def is_troubled(execution: Row, counts: Mapping[str, int]) -> bool:
    """Whether a step ended badly, nobody knows its end, or it was never run because others failed."""
    is_missed = execution.state == "FAILED" and execution.error_code != CANCELED
    bad = sum(counts[f"steps_{state.lower()}"] for state in STEPS_IN_TROUBLE)
    return bool(bad or (is_missed and counts["steps_pending"]))


def slot_of(execution_id: str) -> int:
    """The slot of an execution: by chance, so that those that end together seldom meet."""
    return int(execution_id[-4:], 16) % PUBLICATION_SLOTS


def recount(tx: Tx, execution: Row) -> None:
    """Write the true sums of an execution's slot. The slot is held first: two that count the same one would
    each miss what the other has moved.
    """
    key = {name: getattr(execution, name) for name in _KEY}
    here = {f"of_{name}": value for name, value in key.items()}
    if tx.first(_LOCKED, here) is None:
        tx.insert_new(_SUMS, [key], _KEY)
        tx.first(_LOCKED, here)
    (sums,) = tx.all(_COUNTED, here)
    tx.update(_SUMS, key, sums._asdict())


def of_manifest(tx: Tx, workspace: str, manifest_id: str) -> list[Row]:
    """The sums over all slots of a manifest, one row a direction."""
    return tx.all(_SUMMED, {"ws": workspace, "manifest": manifest_id})


def agree(tx: Tx, workspace: str, manifest_id: str) -> bool:
    """Whether the slots of a manifest sum up to what a count of its executions says."""
    mine = (_EXECUTIONS.c.workspace == workspace, _EXECUTIONS.c.manifest_id == manifest_id)
    counted = sa.select(
        _EXECUTIONS.c.direction, *(_WHOLE[name].label(name) for name in STANDING_COUNTS)
    ).where(*mine, _EXECUTIONS.c.state != "RUNNING")
    true = {row.direction: _numbers(row) for row in tx.all(counted.group_by(_EXECUTIONS.c.direction))}
    stored = {row.direction: _numbers(row) for row in of_manifest(tx, workspace, manifest_id)}
    nothing = [0] * len(STANDING_COUNTS)
    return all(stored.get(way, nothing) == true.get(way, nothing) for way in {*true, *stored})


def _numbers(row: Any) -> list[int]:
    return [int(getattr(row, name)) for name in STANDING_COUNTS]
