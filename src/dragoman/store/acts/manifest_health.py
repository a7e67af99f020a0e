"""How a manifest's work is doing: what is due, since when, who let go of it, and what last went wrong.

Asked of shards, submissions and jobs, never of the intents, so that a manifest of a million answers as fast
as a small one. It only tells: nothing is claimed by what it says.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.errors import sanitize
from dragoman.machines.tables import JOB, SUBMISSION
from dragoman.store.schema import engine, site
from dragoman.store.transaction import Row, Tx

_SHARDS, _SUBMISSIONS, _JOBS = site.shards, site.submissions, engine.jobs


class Health(NamedTuple):
    """Instants in microseconds; `oldest_due_at` is None where nothing is due now."""

    next_due_at: int | None
    oldest_due_at: int | None
    stale_claims: int
    error_code: str
    error_message: str


def health(tx: Tx, manifest: Row) -> Health:
    """What is due of a manifest by itself: while it rests, only that the engine hears of it."""
    dues = [manifest.control_due_at]
    if not manifest.paused:
        dues += [manifest.next_attempt_at, *_shards_due(tx, manifest), *_elsewhere_due(tx, manifest)]
    next_due_at = min((int(due) for due in dues if due is not None), default=None)
    is_due = next_due_at is not None and next_due_at <= tx.now
    code, message = _last_error(tx, manifest)
    return Health(next_due_at, next_due_at if is_due else None, _stale(tx, manifest), code, message)


def _shards_due(tx: Tx, manifest: Row) -> list[int | None]:
    asked = sa.select(
        sa.func.min(_SHARDS.c.prepare_due_at).label("prepare"),
        sa.func.min(_SHARDS.c.submit_due_at).label("submit"),
    )
    row = tx.first(asked.where(_SHARDS.c.manifest_id == manifest.id))
    return [] if row is None else [row.prepare, row.submit]


def _elsewhere_due(tx: Tx, manifest: Row) -> list[int | None]:
    return [
        tx.scalar(sa.select(sa.func.min(table.c.next_attempt_at)).where(*where))
        for table, where in _work(manifest)
    ]


def _work(manifest: Row) -> list[tuple[sa.Table, list[sa.ColumnElement[bool]]]]:
    """Submissions, and the jobs of an engine on this database, that have not ended."""
    ours = [_SUBMISSIONS.c.manifest_id == manifest.id, _SUBMISSIONS.c.state.in_(sorted(SUBMISSION.open))]
    theirs = [
        _JOBS.c.workspace == manifest.workspace,
        _JOBS.c.client_job_id == manifest.id,
        _JOBS.c.state.in_(sorted(JOB.open)),
    ]
    return [(_SUBMISSIONS, ours), (_JOBS, theirs)]


def _stale(tx: Tx, manifest: Row) -> int:
    """How many claims ran out without anybody having taken the work over."""
    ran_out = [
        (table, [*where, table.c.lease_expires_at <= tx.now])
        for table, where in [(_SHARDS, [_SHARDS.c.manifest_id == manifest.id]), *_work(manifest)]
    ]
    counts = [
        tx.scalar(sa.select(sa.func.count()).select_from(table).where(*where)) for table, where in ran_out
    ]
    own = manifest.lease_expires_at is not None and manifest.lease_expires_at <= tx.now
    return sum(int(count) for count in counts) + own


def _last_error(tx: Tx, manifest: Row) -> tuple[str, str]:
    """The newest error among the manifest's own and those of its submissions; empty where there is none."""
    if manifest.error_code:
        return manifest.error_code, sanitize(manifest.error_message or "")
    failed: sa.Select[Any] = (
        sa.select(_SUBMISSIONS.c.error_code, _SUBMISSIONS.c.error_message)
        .where(_SUBMISSIONS.c.manifest_id == manifest.id, _SUBMISSIONS.c.error_code.is_not(None))
        .order_by(_SUBMISSIONS.c.updated_at.desc())
        .limit(1)
    )
    row = tx.first(failed)
    return (row.error_code, sanitize(row.error_message or "")) if row is not None else ("", "")
