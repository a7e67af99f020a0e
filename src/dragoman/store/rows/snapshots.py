"""Rows of `snapshots`: what stood at a target just before the first write of a step, and what was written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.model.publications import Snapshot, Written, WrittenUnit
from dragoman.store.schema import publishing as tables
from dragoman.store.transaction import Row, Tx

_SNAPSHOTS = tables.snapshots

_OF_STEP = sa.select(_SNAPSHOTS).where(_SNAPSHOTS.c.step_key == sa.bindparam("step"))
_OF_STEPS = sa.select(_SNAPSHOTS).where(_SNAPSHOTS.c.step_key.in_(sa.bindparam("steps", expanding=True)))
_FORGET = sa.delete(_SNAPSHOTS).where(_SNAPSHOTS.c.step_key == sa.bindparam("step"))
_REMEMBER = (
    sa.update(_SNAPSHOTS)
    .where(_SNAPSHOTS.c.step_key == sa.bindparam("step"), _SNAPSHOTS.c.entries.is_(None))
    .values(entries=sa.bindparam("kept"))
)


def keep(tx: Tx, workspace: str, step_key: str, target: str, snapshot: Snapshot) -> None:
    """Write a snapshot down, or put it in the place of one whose write never came about."""
    written = snapshot.written
    row = {
        "step_key": step_key,
        "workspace": workspace,
        "target": target,
        "existed": snapshot.body is not None,
        "body": snapshot.body,
        "written_fingerprint": snapshot.written_fingerprint,
        "written": json.dumps(
            {
                "units": [[unit.key_hash, unit.source_hash, unit.written_hash] for unit in written.units],
                "left": written.left,
                "whole": written.whole,
                "base": written.base,
                "edits": [dict(edit) for edit in written.edits],
                "lost": list(written.lost),
            },
            ensure_ascii=False,
        ),
        "created_at": tx.now,
    }
    changed = ("existed", "body", "written_fingerprint", "written", "created_at")
    tx.upsert(_SNAPSHOTS, row, ("step_key",), changed)


def find(tx: Tx, step_key: str) -> Snapshot | None:
    """The snapshot of a step."""
    row = _row(tx, step_key)
    return None if row is None else _snapshot(row)


def of_steps(tx: Tx, step_keys: Sequence[str]) -> dict[str, Snapshot]:
    """The snapshots of these steps, by key."""
    return {row.step_key: _snapshot(row) for row in tx.all(_OF_STEPS, {"steps": list(step_keys)})}


def _snapshot(row: Row) -> Snapshot:
    written = json.loads(row.written)
    units = tuple(WrittenUnit(*unit) for unit in written["units"])
    return Snapshot(
        row.body if row.existed else None,
        row.written_fingerprint,
        Written(
            units,
            written["left"],
            written["whole"],
            written["base"],
            tuple(written["edits"]),
            tuple(written["lost"]),
        ),
    )


def remember_entries(tx: Tx, step_key: str, entries: list[dict[str, Any]]) -> None:
    """Keep what was on record of the step's units before it; the first word stands."""
    tx.touched(_REMEMBER, {"step": step_key, "kept": json.dumps(entries)})


def remembered_entries(tx: Tx, step_key: str) -> list[dict[str, Any]] | None:
    """What was on record before the step; None where it never succeeded."""
    row = _row(tx, step_key)
    return None if row is None or row.entries is None else json.loads(row.entries)


def forget(tx: Tx, step_key: str) -> None:
    """Drop the snapshot of a step that wrote nothing."""
    tx.touched(_FORGET, {"step": step_key})


def _row(tx: Tx, step_key: str) -> Row | None:
    return tx.first(_OF_STEP, {"step": step_key})
