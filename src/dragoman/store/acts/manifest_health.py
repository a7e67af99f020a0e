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


def _seen(table: sa.Table, dues: tuple[str, ...], *where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """The earliest of some due times, and how many leases ran out."""
    ran_out = sa.case((table.c.lease_expires_at <= sa.bindparam("now"), 1), else_=0)
    earliest = [sa.func.min(table.c[due]).label(f"due_{place}") for place, due in enumerate(dues)]
    return sa.select(*earliest, sa.func.coalesce(sa.func.sum(ran_out), 0).label("stale")).where(*where)


_LOOKS = (
    (
        _seen(
            _SHARDS,
            ("prepare_due_at", "submit_due_at"),
            _SHARDS.c.workspace == sa.bindparam("ws"),
            _SHARDS.c.manifest_id == sa.bindparam("manifest"),
        ),
        2,
    ),
    (
        _seen(
            _SUBMISSIONS,
            ("next_attempt_at",),
            _SUBMISSIONS.c.workspace == sa.bindparam("ws"),
            _SUBMISSIONS.c.manifest_id == sa.bindparam("manifest"),
            _SUBMISSIONS.c.state.in_(sorted(SUBMISSION.open)),
        ),
        1,
    ),
    (
        _seen(
            _JOBS,
            ("next_attempt_at",),
            _JOBS.c.workspace == sa.bindparam("ws"),
            _JOBS.c.client_job_id == sa.bindparam("manifest"),
            _JOBS.c.state.in_(sorted(JOB.open)),
        ),
        1,
    ),
)
"""Shards, submissions, and the jobs of an engine on this database; each with how many due times it tells."""

_FAILED = (
    sa.select(_SUBMISSIONS.c.error_code, _SUBMISSIONS.c.error_message)
    .where(_SUBMISSIONS.c.manifest_id == sa.bindparam("manifest"), _SUBMISSIONS.c.error_code.is_not(None))
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


def health(tx: Tx, manifest: Row) -> Health:
    """What is due of a manifest by itself: while it rests, only that the engine hears of it."""
    stale = int(manifest.lease_expires_at is not None and manifest.lease_expires_at <= tx.now)
    dues = [manifest.next_attempt_at]
    for look, number in _LOOKS:
        row = tx.first(look, {"manifest": manifest.id, "ws": manifest.workspace, "now": tx.now})
        if row is not None:
            dues += [getattr(row, f"due_{place}") for place in range(number)]
            stale += int(row.stale)
    dues = [manifest.control_due_at, *([] if manifest.paused else dues)]
    next_due_at = min((int(due) for due in dues if due is not None), default=None)
    is_due = next_due_at is not None and next_due_at <= tx.now
    code, message = _last_error(tx, manifest)
    return Health(next_due_at, next_due_at if is_due else None, stale, code, message)


def _last_error(tx: Tx, manifest: Row) -> tuple[str, str]:
    """The newest error among the manifest's own and those of its submissions; empty where there is none."""
    row = manifest if manifest.error_code else tx.first(_FAILED, {"manifest": manifest.id})
    return (row.error_code, sanitize(row.error_message or "")) if row is not None else ("", "")
