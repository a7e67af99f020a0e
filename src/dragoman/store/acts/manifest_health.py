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

_OPEN_SUBMISSIONS = sa.select(
    sa.func.min(_SUBMISSIONS.c.next_attempt_at).label("due"),
    sa.func.coalesce(
        sa.func.sum(sa.case((_SUBMISSIONS.c.lease_expires_at <= sa.bindparam("now"), 1), else_=0)), 0
    ).label("stale"),
).where(
    _SUBMISSIONS.c.manifest_id == sa.bindparam("manifest"),
    _SUBMISSIONS.c.next_attempt_at >= 0,  # null unless open, so that the index holds these alone
)
_MY_JOBS = (_JOBS.c.workspace == sa.bindparam("ws"), _JOBS.c.client_job_id == sa.bindparam("manifest"))
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
    .label("stale")
)
_OPEN_JOBS = sa.select(*_JOB_DUE.values(), _STALE_JOBS)
"""The jobs of an engine on this database: the earliest due one of each open state, by an index alone."""

_FAILED = (
    sa.select(_SUBMISSIONS.c.error_code, _SUBMISSIONS.c.error_message)
    .where(_SUBMISSIONS.c.manifest_id == sa.bindparam("manifest"), _SUBMISSIONS.c.error_code > "")
    .order_by(_SUBMISSIONS.c.updated_at.desc())
    .limit(1)
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
    here = {"manifest": manifest.id, "now": tx.now}
    stale = int(manifest.lease_expires_at is not None and manifest.lease_expires_at <= tx.now)
    dues = [manifest.next_attempt_at, manifest.retry_asked_at, sums["prepare_due_at"], sums["submit_due_at"]]
    (submissions,) = tx.all(_OPEN_SUBMISSIONS, here)
    (jobs,) = tx.all(_OPEN_JOBS, here | {"ws": manifest.workspace})
    dues += [submissions.due, *(getattr(jobs, state) for state in _JOB_DUE)]
    stale += sums["stale_claims"] + submissions.stale + jobs.stale
    dues = [manifest.control_due_at, *([] if manifest.paused else dues)]
    next_due_at = min((int(due) for due in dues if due is not None), default=None)
    is_due = next_due_at is not None and next_due_at <= tx.now
    code, message = _last_error(tx, manifest)
    return Health(next_due_at, next_due_at if is_due else None, stale, code, message)


def _last_error(tx: Tx, manifest: Row) -> tuple[str, str]:
    """The newest error among the manifest's own and those of its submissions; empty where there is none."""
    row = manifest if manifest.error_code else tx.first(_FAILED, {"manifest": manifest.id})
    return (row.error_code, sanitize(row.error_message or "")) if row is not None else ("", "")
