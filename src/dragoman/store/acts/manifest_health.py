"""How a manifest's work is doing: what is due, since when, who let go of it, and what last went wrong.

Asked of shards, submissions and jobs, never of the intents, so that a manifest of a million answers as fast
as a small one. It only tells: nothing is claimed by what it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.errors import sanitize
from dragoman.machines.tables import JOB
from dragoman.store.schema import engine, site
from dragoman.store.transaction import Row, Tx

_SUBMISSIONS, _JOBS = site.submissions, engine.jobs

_MY_SUBMISSIONS = _SUBMISSIONS.c.manifest_id == sa.bindparam("manifest")
_MY_JOBS = (_JOBS.c.workspace == sa.bindparam("ws"), _JOBS.c.client_job_id == sa.bindparam("manifest"))
_OPEN = (
    sa.select(
        sa.func.min(_SUBMISSIONS.c.next_attempt_at).label("due"),
        sa.func.coalesce(
            sa.func.sum(sa.case((_SUBMISSIONS.c.lease_expires_at <= sa.bindparam("now"), 1), else_=0)), 0
        ).label("stale"),
    )
    .where(_MY_SUBMISSIONS, _SUBMISSIONS.c.next_attempt_at >= 0)  # null unless open: the index holds these
    .subquery("open_submissions")
)
_NEWEST_FAILED = (
    sa.select(_SUBMISSIONS.c.id)
    .where(_MY_SUBMISSIONS, _SUBMISSIONS.c.error_code > "")
    .order_by(_SUBMISSIONS.c.updated_at.desc())
    .limit(1)
    .scalar_subquery()
)
_JOB_DUE = {
    state: sa.select(_JOBS.c.next_attempt_at)
    .where(*_MY_JOBS, _JOBS.c.state == state, _JOBS.c.next_attempt_at >= 0)
    .order_by(_JOBS.c.next_attempt_at)
    .limit(1)
    .scalar_subquery()
    .label(state)
    for state in sorted(JOB.open)
}
_STALE_JOBS = (
    sa.select(sa.func.count())
    .where(*_MY_JOBS, _JOBS.c.state == "processing", _JOBS.c.lease_expires_at <= sa.bindparam("now"))
    .scalar_subquery()
)
_WORK = sa.select(
    _OPEN.c.due.label("submission"),
    _OPEN.c.stale.label("stale_submissions"),
    *_JOB_DUE.values(),
    _STALE_JOBS.label("stale_jobs"),
    _NEWEST_FAILED.label("failed_id"),
)
"""The earliest due submission, and of an engine on this database the earliest due job of each open state, by
an index alone; in one statement, since a status is mostly round trips.
"""
_FAILED = sa.select(_SUBMISSIONS.c.error_code, _SUBMISSIONS.c.error_message).where(
    _SUBMISSIONS.c.id == sa.bindparam("id")
)


class Health(NamedTuple):
    """Instants in microseconds; `oldest_due_at` is None where nothing is due now."""

    next_due_at: int | None
    oldest_due_at: int | None
    stale_claims: int
    error_code: str
    error_message: str


def health(tx: Tx, manifest: Row, sums: Mapping[str, Any]) -> Health:
    """What is due of a manifest by itself: while it rests, only that the engine hears of it.

    `sums` are what its shards sum up to.
    """
    here = {"manifest": manifest.id, "ws": manifest.workspace, "now": tx.now}
    (work,) = tx.all(_WORK, here)
    stale = int(manifest.lease_expires_at is not None and manifest.lease_expires_at <= tx.now)
    stale += sums["stale_claims"] + work.stale_submissions + work.stale_jobs
    dues = [manifest.next_attempt_at, manifest.retry_asked_at, sums["prepare_due_at"], sums["submit_due_at"]]
    dues += [work.submission, *(getattr(work, state) for state in _JOB_DUE)]
    dues = [manifest.control_due_at, *([] if manifest.paused else dues)]
    next_due_at = min((int(due) for due in dues if due is not None), default=None)
    is_due = next_due_at is not None and next_due_at <= tx.now
    code, message = _last_error(tx, manifest, work.failed_id)
    return Health(next_due_at, next_due_at if is_due else None, stale, code, message)


def _last_error(tx: Tx, manifest: Row, submission_id: str | None) -> tuple[str, str]:
    """The newest error among the manifest's own and those of its submissions; empty where there is none."""
    row: Row | None = manifest if manifest.error_code else None
    if row is None and submission_id:
        row = tx.first(_FAILED, {"id": submission_id})
    return (row.error_code, sanitize(row.error_message or "")) if row is not None else ("", "")
