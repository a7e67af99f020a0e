"""Whether new work can be taken: what the database says of schema, workers and oldest due work."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.kernel.clock import MICROSECONDS, seconds
from dragoman.kernel.limits import OLDEST_DUE_SECONDS, WORKER_SEEN_SECONDS
from dragoman.machines import tables as machines
from dragoman.store import revisions
from dragoman.store.columns import is_set
from dragoman.store.rows import cursors, tenants, versions
from dragoman.store.schema import engine, publishing, site
from dragoman.store.transaction import Tx

_MANIFESTS, _SHARDS, _SUBMISSIONS = site.manifests, site.shards, site.submissions


def _moves(manifest_id: sa.Column[str]) -> sa.ColumnElement[bool]:
    """Work of a manifest that its owner paused waits for its owner, and for nobody else."""
    paused = _MANIFESTS.alias("paused")
    return ~sa.select(paused.c.id).where(paused.c.id == manifest_id, is_set(paused.c.paused)).exists()


_DUE = {
    "manifests": (
        _MANIFESTS,
        sa.and_(_MANIFESTS.c.phase.in_(sorted(machines.MANIFEST.open)), ~is_set(_MANIFESTS.c.paused)),
        "next_attempt_at",
    ),
    "steering": (_MANIFESTS, sa.true(), "control_due_at"),
    "preparation": (_SHARDS, _moves(_SHARDS.c.manifest_id), "prepare_due_at"),
    "submission": (_SHARDS, _moves(_SHARDS.c.manifest_id), "submit_due_at"),
    "resending": (
        _SUBMISSIONS,
        sa.and_(
            _SUBMISSIONS.c.state.in_(sorted(machines.SUBMISSION.open)), _moves(_SUBMISSIONS.c.manifest_id)
        ),
        "next_attempt_at",
    ),
    "jobs": (engine.jobs, engine.jobs.c.state.in_(sorted(machines.JOB.open)), "next_attempt_at"),
    "outbox": (engine.outbox, engine.outbox.c.state.in_(sorted(machines.OUTBOX.open)), "next_attempt_at"),
    "planning": (
        publishing.publication_requests,
        publishing.publication_requests.c.state.in_(sorted(machines.REQUEST.open)),
        "next_attempt_at",
    ),
    "publishing": (
        publishing.publication_commands,
        publishing.publication_commands.c.state.in_(sorted(machines.COMMAND.open)),
        "due_at",
    ),
}
"""Kind of work → where it waits, which rows wait, and the column that says since when."""

KINDS = frozenset(_DUE)


def problems(tx: Tx) -> dict[str, str]:
    """Why new work should not be sent here: name → what is wrong. Empty where nothing is."""
    standing = _standing(tx)
    if standing != "current":
        return {"schema_unavailable": f"the database's schema is {standing} than this program's"}
    found = {}
    if not worker_seen(tx):
        found["worker_unavailable"] = f"no worker was seen in the last {WORKER_SEEN_SECONDS} seconds"
    late = overdue(tx)
    if late:
        waits = ", ".join(f"{kind} for {waited_seconds} s" for kind, waited_seconds in late.items())
        found["work_overdue"] = f"due work waits longer than {OLDEST_DUE_SECONDS} seconds: {waits}"
    return found


def schema_is_current(tx: Tx) -> bool:
    """Whether the database has the schema that this program knows, or one that only adds to it."""
    return _standing(tx) == "current"


def _standing(tx: Tx) -> revisions.Standing:
    version = versions.schema_version(tx)
    is_newer = revisions.standing(version) == "newer"
    return revisions.standing(version, cursors.value(tx, revisions.FLOOR_NAME) if is_newer else "")


def worker_seen(tx: Tx) -> bool:
    """Whether a worker lived within the last 150 seconds."""
    seen_at = tenants.last_seen_worker(tx)
    return seen_at is not None and seen_at >= tx.now - seconds(WORKER_SEEN_SECONDS)


def live_engines(tx: Tx) -> list[str]:
    """The processes with the role engine that were seen within the last 150 seconds."""
    return tenants.workers_of(tx, "engine", tx.now - seconds(WORKER_SEEN_SECONDS))


def held_by_engines(tx: Tx) -> list[str]:
    """What the processes with the role engine hold of what jobs need, of those seen within the last 150
    seconds.
    """
    return tenants.announced(tx, "engine", tx.now - seconds(WORKER_SEEN_SECONDS))


def overdue(tx: Tx) -> dict[str, int]:
    """Kinds of due work that nobody has taken for more than three minutes, and for how many seconds."""
    return oldest_due(tx, OLDEST_DUE_SECONDS)


def oldest_due(tx: Tx, age_seconds: int = 0) -> dict[str, int]:
    """Kinds of work that has been due for longer than `age_seconds` and that nobody has taken; for how many
    seconds the oldest.
    """
    late = {}
    for kind, (table, waits, column) in _DUE.items():
        nobody = sa.or_(table.c.lease_expires_at.is_(None), table.c.lease_expires_at <= tx.now)
        is_late = table.c[column] < tx.now - seconds(age_seconds)
        oldest = tx.scalar(sa.select(sa.func.min(table.c[column])).where(waits, nobody, is_late))
        if oldest is not None:
            late[kind] = (tx.now - oldest) // MICROSECONDS
    return late
