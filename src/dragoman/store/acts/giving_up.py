"""Transactions by which a person gives up what an engine has lost: jobs that it took and knows no more.

A 404 alone ends nothing: an engine says it as well where the token is another account's. What such a job may
have cost stays unknown until an event of it tells; one that comes late changes nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

from dragoman.kernel.errors import CallerError
from dragoman.model.intents import JOB_LOST, JobEvent
from dragoman.model.scopes import Scope, System
from dragoman.store.acts import settling
from dragoman.store.rows import history, manifests, submissions
from dragoman.store.transaction import Row, Tx

UNKNOWN = "not_found"
"""What stands at a submission of which the engine said that it knows no such job."""
_FIRST = 1


class Lost(NamedTuple):
    """A submission that was accepted as this job, of which the engine has said that it knows none."""

    submission_id: str
    remote_job_id: str


def lost_submissions(
    tx: Tx, scope: Scope, manifest_id: str, actor: str, is_admin: bool, engine: str
) -> list[Lost]:
    """What this engine account was asked about and did not know, a page of it. Raises `CallerError`:
    not_found; not_owner for whoever neither asked for the manifest nor is an administrator; nothing_lost.
    """
    _allowed(tx, scope, manifest_id, actor, is_admin)
    found = submissions.unknown_to(tx, manifest_id, engine, UNKNOWN)
    if not found:
        raise CallerError(f"no job of manifest {manifest_id} is unknown to its engine", "nothing_lost")
    return [Lost(row.id, row.remote_job_id) for row in found]


def give_up(tx: Tx, scope: Scope, manifest_id: str, actor: str, is_admin: bool, submission_id: str) -> int:
    """End what waits for a lost job, and write down who said so; how many intents. What was settled meanwhile
    is left as it is.
    """
    return _end(tx, _allowed(tx, scope, manifest_id, actor, is_admin), submission_id, actor)


def end_canceled(tx: Tx, submission_id: str) -> int:
    """The engine has said again that it knows no such job: where its manifest was canceled, the cancel has
    nothing more to wait for. How many intents ended.
    """
    row = submissions.find(tx, submission_id)
    manifest = manifests.find(tx, System(), row.manifest_id) if row is not None else None
    if manifest is None or not manifest.canceled:
        return 0
    return _end(tx, manifest, submission_id, "reconciliation")


def _allowed(tx: Tx, scope: Scope, manifest_id: str, actor: str, is_admin: bool) -> Row:
    manifest = manifests.find(tx, scope, manifest_id)
    if manifest is None:
        raise CallerError(f"no manifest {manifest_id}", "not_found")
    if manifest.actor != actor and not is_admin:
        raise CallerError(f"manifest {manifest_id} was asked for by somebody else", "not_owner")
    return manifest


def _end(tx: Tx, manifest: Row, submission_id: str, actor: str) -> int:
    """Speak for the job that does not speak any more: its open current generations fail, or are canceled."""
    row = submissions.find(tx, submission_id, lock=True)
    if (
        row is None
        or row.manifest_id != manifest.id
        or row.settled_at is not None
        or row.error_code != UNKNOWN
    ):
        return 0
    message = f"the engine does not know job {row.remote_job_id} any more; what it cost is unknown"
    event = JobEvent(
        submission_id=row.id,
        job_id=row.remote_job_id,
        client_job_id=manifest.id,
        event_sequence=_FIRST,
        status="canceled" if manifest.canceled else "failed",
        items=(),
        code=JOB_LOST,
        message=message,
    )
    settlement = settling.settle_event(tx, event)
    submissions.note_error(tx, row.id, JOB_LOST, message)
    entry = history.Entry(
        workspace=manifest.workspace,
        kind="audit",
        subject=row.id,
        action="give_up",
        before="accepted",
        after="lost",
        actor=actor,
        code=JOB_LOST,
        message=message,
        correlation_id=manifest.id,
    )
    history.append(tx, [entry])
    return settlement.intents
