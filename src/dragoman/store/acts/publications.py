"""Read-only questions about publications: where a manifest stands, its executions, one of them with steps."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.clock import iso
from dragoman.kernel.errors import CODES, CallerError
from dragoman.kernel.limits import FAILURES_PAGE, PAIRS_MAX
from dragoman.machines.tables import STEP
from dragoman.model.scopes import Scope
from dragoman.store.rows import executions, manifests, plans, requests, standings
from dragoman.store.schema import site
from dragoman.store.transaction import Row, Tx

_INTENTS = site.intents
_LEFT = {
    "forward": "the source of {} of its texts changed meanwhile: not written",
    "backward": "somebody changed {} of its texts since: they are left as they are",
}
"""Why a step that succeeded left texts, by its direction."""


def publication_of(tx: Tx, manifest: Row) -> dict[str, Any]:
    """The publication block of a manifest's status.

    `state`: none, queued, running, in_place, failed, reverted; failed as soon as one intent is not in
    place. `paused`: its owner said so, and nothing is put in place before the resume. `written` and
    `source_moved` count fields, `steps` the newest step of each intent by state; `problems` names at most 25
    that are not in place, or of which nobody knows.
    """
    stand = standings.of_manifest(tx, manifest.workspace, manifest.id)
    problems = _problems(tx, manifest, FAILURES_PAGE, stand.running) if stand.troubled else []
    problems += itertools.islice(_unplanned(tx, manifest), FAILURES_PAGE - len(problems))
    return {
        "state": _state(tx, manifest, stand, bool(problems)),
        "paused": bool(manifest.paused),
        "executor": str(json.loads(manifest.settings).get("executor", "")),
        "written": stand.written,
        "source_moved": stand.left,
        "steps": {state.lower(): number for state, number in stand.steps.items()},
        "problems": problems,
    }


def unpublished(tx: Tx, scope: Scope, manifest_id: str) -> list[dict[str, Any]]:
    """Every intent that is not wholly in place though it has results, and why.

    What `problems` names some of, and also texts whose source moved while they were translated, or that a
    person changed in a shared file before it was reverted.
    """
    manifest = _manifest(tx, scope, manifest_id)
    return [*_problems(tx, manifest, PAIRS_MAX), *_unplanned(tx, manifest), *_left(tx, manifest)]


def _manifest(tx: Tx, scope: Scope, manifest_id: str) -> Row:
    manifest = manifests.find(tx, scope, manifest_id)
    if manifest is None:
        raise CallerError(f"no manifest {manifest_id}", "not_found")
    return manifest


def _state(tx: Tx, manifest: Row, stand: standings.Standing, has_problems: bool) -> str:
    """One word for all of it: work under way first, then what is not well, then what is."""
    if stand.running:
        return "running"
    if stand.queued or requests.waiting(tx, manifest.workspace, manifest.id):
        return "queued"
    if has_problems:
        return "failed"
    if stand.written:
        return "in_place"
    return "reverted" if stand.taken_back else "none"


def _by_state(rows: Sequence[Row]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for row in rows:
        name = row.state.lower()
        counted[name] = counted.get(name, 0) + row.number
    return counted


def _problems(
    tx: Tx, manifest: Row, limit: int, running: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Steps that are not in place, and why; one that was never run has the reason of its execution."""
    return [
        {
            "execution_id": row.execution_id,
            "ordinal": row.ordinal,
            "state": "not_run" if row.state == STEP.initial else row.state.lower(),
            **_place(row),
            **(_said(row) if row.error_code else _said(row, row.execution_code)),
        }
        for row in standings.not_in_place(tx, manifest.workspace, manifest.id, limit, running)
    ]


def _place(row: Row) -> dict[str, Any]:
    return {"document": row.document, "locale": row.locale, "target": row.target}


def _unplanned(tx: Tx, manifest: Row) -> Iterator[dict[str, Any]]:
    """Intents of requests that no plan came of, and that nothing later has put in place."""
    for row in requests.given_up(tx, manifest.workspace, manifest.id):
        for intent in _intents(tx, executions.without_success(tx, json.loads(row.intents))):
            yield {
                "intent_id": intent.id,
                "state": "not_planned",
                "document": intent.document,
                "locale": intent.locale,
                **_said(row),
            }


def _left(tx: Tx, manifest: Row) -> list[dict[str, Any]]:
    return [
        {
            "state": "source_moved" if row.direction == "forward" else "left_alone",
            **_place(row),
            "code": (code := "source_moved" if row.direction == "forward" else "target_conflict"),
            "message": _LEFT[row.direction].format(row.units_left),
            "remedy": CODES[code].remedy,
        }
        for row in standings.left_units(tx, manifest.workspace, manifest.id, PAIRS_MAX)
    ]


def _intents(tx: Tx, ids: Sequence[str]) -> list[Row]:
    return tx.all(
        sa.select(_INTENTS.c.id, _INTENTS.c.document, _INTENTS.c.locale)
        .where(_INTENTS.c.id.in_(list(ids)))
        .order_by(_INTENTS.c.ordinal)
    )


def _said(row: Row, code: str | None = None) -> dict[str, Any]:
    code = code or row.error_code or ""
    return {
        "code": code,
        "message": row.error_message or "",
        "remedy": CODES[code].remedy if code in CODES else "",
    }


def executions_of(
    tx: Tx, scope: Scope, manifest_id: str, before: str = "", limit: int = FAILURES_PAGE
) -> list[dict[str, Any]]:
    """Executions of a manifest, newest first, each with its command and its steps counted by state."""
    manifest = _manifest(tx, scope, manifest_id)
    runs = executions.of_manifest(tx, manifest.workspace, manifest_id, before, limit)
    commands = executions.commands_of(tx, [run.id for run in runs])
    tally = executions.tally(tx, [run.id for run in runs])
    return [
        _shown(run, commands[run.id])
        | {"steps": _by_state([row for row in tally if row.execution_id == run.id])}
        for run in runs
    ]


def execution_of(tx: Tx, scope: Scope, execution_id: str, after: int = 0, limit: int = 100) -> dict[str, Any]:
    """One execution with a page of its steps, upwards from ordinal `after`."""
    run = executions.find(tx, scope, execution_id)
    if run is None:
        raise CallerError(f"no execution {execution_id}", "not_found")
    rows = executions.steps(tx, execution_id, after, limit)
    planned = {
        row.ordinal: _place(row) for row in plans.places(tx, run.plan_id, [row.ordinal for row in rows])
    }
    command = executions.command_of(tx, execution_id)
    return _shown(run, command) | {
        "steps": [
            {
                "ordinal": row.ordinal,
                "step_key": row.step_key,
                "direction": row.direction,
                "state": row.state,
                "attempts": row.attempt_count,
                "units_written": row.units_written,
                "units_left": row.units_left,
                "receipt": None if row.receipt is None else json.loads(row.receipt),
                **planned[row.ordinal],
                **_said(row),
            }
            for row in rows
        ]
    }


def _shown(run: Row, command: Row) -> dict[str, Any]:
    """What history says of an execution: its own state, and who works its command until when."""
    return {
        "id": run.id,
        "plan_id": run.plan_id,
        "manifest_id": run.manifest_id,
        "action": run.action,
        "state": run.state,
        "created_at": iso(run.created_at),
        "ended_at": iso(run.ended_at),
        "command": {
            "state": command.state,
            "due_at": iso(command.due_at),
            "delivery_count": command.delivery_count,
            "lease_owner": command.lease_owner,
            "lease_expires_at": iso(command.lease_expires_at),
            **_said(command),
        },
    }
