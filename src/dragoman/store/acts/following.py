"""Read-only questions of somebody who waits for a manifest: what is due next, and what was put in place."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from dragoman.machines.tables import COMMAND, INTENT, JOB, OUTBOX, RECEIPT, REQUEST, SUBMISSION
from dragoman.model.scopes import Workspace
from dragoman.store.rows import manifests
from dragoman.store.schema import engine, publishing, site
from dragoman.store.transaction import Row, Tx

_INTENTS, _SUBMISSIONS, _RECEIPTS, _SHARDS = site.intents, site.submissions, site.receipts, site.shards
_JOBS, _OUTBOX = engine.jobs, engine.outbox
_REQUESTS, _PLAN_STEPS = publishing.publication_requests, publishing.plan_steps
_EXECUTIONS, _STEPS = publishing.executions, publishing.publication_steps
_COMMANDS = publishing.publication_commands

_Question = tuple[sa.Column[Any], list[sa.ColumnElement[bool]]]


def next_due(tx: Tx, scope: Workspace, manifest_id: str) -> int | None:
    """The earliest instant at which something of a manifest moves by itself; None where nothing will.

    What waits for money moves when other work of its workspace ends, or when somebody raises a bound. Work
    that another live process holds is due when its lease would end. What waits for a pair moves with the
    manifest that has it; what its owner paused moves when its owner says so.
    """
    manifest = manifests.find(tx, scope, manifest_id)
    if manifest is not None and manifest.paused:
        return None if manifest.control_due_at is None else int(manifest.control_due_at)
    if manifest is not None and manifest.retry_asked_at is not None:
        return int(manifest.retry_asked_at)
    questions = _questions(tx, scope, [manifest_id, *_holders(tx, manifest_id)])
    found = [
        tx.scalar(sa.select(sa.func.min(column).label("due")).where(*where)) for column, where in questions
    ]
    return min((int(due) for due in found if due is not None), default=None)


def _questions(tx: Tx, scope: Workspace, ids: list[str]) -> list[_Question]:
    """Every column that holds a due time of these manifests, and the rows in which it counts."""
    job_ids = sa.select(_JOBS.c.id).where(_JOBS.c.workspace == scope.id, _JOBS.c.client_job_id.in_(ids))
    runs = sa.select(_EXECUTIONS.c.id).where(_EXECUTIONS.c.manifest_id.in_(ids))
    submissions = sa.select(_SUBMISSIONS.c.id).where(_SUBMISSIONS.c.manifest_id.in_(ids))
    return [
        (
            _INTENTS.c.next_attempt_at,
            [_INTENTS.c.manifest_id.in_(ids), _INTENTS.c.state.in_(sorted(INTENT.open))],
        ),
        (_SHARDS.c.lease_expires_at, [_SHARDS.c.manifest_id.in_(ids)]),
        (
            _SUBMISSIONS.c.next_attempt_at,
            [_SUBMISSIONS.c.manifest_id.in_(ids), _SUBMISSIONS.c.state.in_(sorted(SUBMISSION.open))],
        ),
        (
            _JOBS.c.next_attempt_at,
            [
                _JOBS.c.workspace == scope.id,
                _JOBS.c.client_job_id.in_(ids),
                _JOBS.c.state.in_(sorted(JOB.open)),
                sa.or_(_JOBS.c.parked_for != "budget", _JOBS.c.next_attempt_at <= tx.now),
            ],
        ),
        (
            _JOBS.c.lease_expires_at,
            [
                _JOBS.c.workspace == scope.id,
                _JOBS.c.client_job_id.in_(ids),
                _JOBS.c.state == "processing",
            ],
        ),
        (
            _OUTBOX.c.next_attempt_at,
            [_OUTBOX.c.job_id.in_(job_ids), _OUTBOX.c.state.in_(sorted(OUTBOX.open))],
        ),
        (
            _RECEIPTS.c.next_attempt_at,
            [
                _RECEIPTS.c.object_ref.in_(submissions),
                _RECEIPTS.c.state.in_(sorted(RECEIPT.groups["APPLICABLE"])),
            ],
        ),
        (
            _REQUESTS.c.next_attempt_at,
            [_REQUESTS.c.manifest_id.in_(ids), _REQUESTS.c.state.in_(sorted(REQUEST.open))],
        ),
        (
            _COMMANDS.c.due_at,
            [_COMMANDS.c.execution_id.in_(runs), _COMMANDS.c.state.in_(sorted(COMMAND.open))],
        ),
    ]


def _holders(tx: Tx, manifest_id: str) -> list[str]:
    """The manifests that have pairs for which intents of this one wait."""
    holder = _INTENTS.alias("holder")
    rows = tx.all(
        sa.select(holder.c.manifest_id)
        .select_from(_INTENTS.join(holder, _INTENTS.c.blocked_by == holder.c.id))
        .where(_INTENTS.c.manifest_id == manifest_id, _INTENTS.c.parked_for == "pair")
        .distinct()
    )
    return [row.manifest_id for row in rows]


def written_targets(tx: Tx, scope: Workspace, manifest_id: str) -> list[dict[str, Any]]:
    """Every target that a manifest wrote, or would have written in a dry run, and did not take back.

    `target`, `document`, `locale`, `receipt`, and whether it was really `applied`.
    """
    manifest = manifests.find(tx, scope, manifest_id)
    if manifest is None:
        return []
    rows = tx.all(
        sa.select(
            _PLAN_STEPS.c.target,
            _PLAN_STEPS.c.document,
            _PLAN_STEPS.c.locale,
            _STEPS.c.direction,
            _STEPS.c.receipt,
            _STEPS.c.updated_at,
            _STEPS.c.units_written,
        )
        .select_from(_STEPS)
        .join(_EXECUTIONS, _EXECUTIONS.c.id == _STEPS.c.execution_id)
        .join(
            _PLAN_STEPS,
            sa.and_(
                _PLAN_STEPS.c.plan_id == _EXECUTIONS.c.plan_id, _PLAN_STEPS.c.ordinal == _STEPS.c.ordinal
            ),
        )
        .where(_EXECUTIONS.c.manifest_id == manifest_id, _STEPS.c.state == "SUCCEEDED")
        .order_by(_STEPS.c.updated_at)
    )
    latest: dict[str, Any] = {}
    for row in rows:
        latest[row.target] = row
    found = [_written(row) for row in latest.values() if row.direction == "forward"]
    return [one for one in found if one["units"] or not one["applied"]]


def _written(row: Row) -> dict[str, Any]:
    receipt = json.loads(row.receipt or "{}")
    return {
        "target": row.target,
        "document": row.document,
        "locale": row.locale,
        "units": row.units_written,
        "applied": bool(receipt.get("applied", True)),
        "receipt": receipt,
    }
