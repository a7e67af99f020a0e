"""The transaction of acceptance: one submission becomes one job, whoever sends it how often."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from dragoman.kernel.clock import seconds
from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import BATCH_DEADLINE_SECONDS, JOB_DEADLINE_SECONDS
from dragoman.machines.tables import JOB
from dragoman.model.jobs import Accepted, NewJob, Submission
from dragoman.model.scopes import Workspace
from dragoman.store.rows import budgets, controls, job_fields, jobs, lanes
from dragoman.store.transaction import Tx, repeatable

_DEADLINES = {"standard": JOB_DEADLINE_SECONDS, "batch": BATCH_DEADLINE_SECONDS}


@repeatable
def accept_submission(tx: Tx, new: NewJob) -> Accepted:
    """The job of a submission: made, with all its fields and a payload able to enqueue it, or found.

    A budget that it brings bounds its client job from this commit on, unless a control has spoken.
    Raises `CallerError`: not_found where the submission is another principal's, submission_id_conflict where
    it has other content.
    """
    submission = new.submission
    control = controls.ensure(tx, new.workspace, submission.client_job_id)
    waits = control.paused and not control.canceled
    if not jobs.insert(tx, _row(tx, new, due_at=None if waits else tx.now)):
        return _standing(tx, new)
    job_fields.insert(tx, new.id, submission.items, new.fields)
    if not waits:
        lanes.wake(tx, new.workspace, lanes.ENGINE, tx.now)
    if submission.budget is not None and not control.revision:
        budgets.limit_client_job(tx, new.workspace, submission.client_job_id, *submission.budget)
    return Accepted(new.id, True, submission.id, JOB.initial)


def standing_job(tx: Tx, scope: Workspace, submission_id: str, fingerprint: str) -> Accepted | None:
    """The job of a submission with this fingerprint, which names its principal too; None where none is."""
    job = jobs.of_submission(tx, submission_id)
    if job is None or (job.workspace, job.submission_fingerprint) != (scope.id, fingerprint):
        return None
    return Accepted(job.id, False, job.submission_id, job.state)


def _standing(tx: Tx, new: NewJob) -> Accepted:
    job = jobs.of_submission(tx, new.submission.id)
    if job is None or (job.workspace, job.principal) != (new.workspace, new.principal):
        raise CallerError(f"no submission {new.submission.id}", "not_found")
    if job.submission_fingerprint != new.fingerprint:
        raise CallerError(
            f"submission {new.submission.id} was sent with other content before", "submission_id_conflict"
        )
    return Accepted(job.id, False, job.submission_id, job.state)


def _library(submission: Submission) -> str | None:
    """Style and terms that came along; `job_views.load_job` reads them."""
    if not (submission.style or submission.terms):
        return None
    terms = [asdict(term) for term in submission.terms]
    return json.dumps({"style": submission.style, "terms": terms}, ensure_ascii=False)


def _row(tx: Tx, new: NewJob, due_at: int | None) -> dict[str, Any]:
    submission, options = new.submission, new.submission.options
    passed_through = sum(field.passes for field in new.fields)
    payload = {
        "job_id": new.id,
        "submission_id": submission.id,
        "client_job_id": submission.client_job_id,
        "items": len(submission.items),
        "fields": len(new.fields),
    }
    return {
        "id": new.id,
        "workspace": new.workspace,
        "project": new.project,
        "principal": new.principal,
        "submission_id": submission.id,
        "submission_fingerprint": new.fingerprint,
        "client_job_id": submission.client_job_id,
        "source_locale": submission.source_locale,
        "tone": options.tone,
        "options": json.dumps(asdict(options), ensure_ascii=False),
        "provider": options.provider,
        "model": new.model,
        "needs": new.needs,
        "library": _library(submission),
        "callback_url": submission.callback_url,
        "callback_secret": new.callback_secret,
        "queue_payload": json.dumps(payload),
        "state": JOB.initial,
        "items_total": len(submission.items),
        "total_fields": len(new.fields) - passed_through,
        "passed_through": passed_through,
        "next_attempt_at": due_at,
        "deadline_at": tx.now + seconds(_DEADLINES[options.speed]),
        "push_id": options.push_id or None,
        "created_at": tx.now,
        "updated_at": tx.now,
    }
