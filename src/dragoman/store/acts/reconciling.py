"""Transactions of reconciliation: whose turn it is, and what the engine says while it still works."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from dragoman.kernel.errors import sanitize
from dragoman.kernel.limits import RECONCILE_AGE_SECONDS
from dragoman.model.intents import LOCAL
from dragoman.store.acts import moving
from dragoman.store.rows import shards, submissions
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Tx

_INTENTS = tables.intents


class Inquiry(NamedTuple):
    """An accepted submission that the engine is to be asked about."""

    submission_id: str
    workspace: str
    manifest_id: str
    remote_job_id: str
    error_code: str
    """What went wrong when it was last asked about; empty where nothing did."""


def due_inquiries(
    tx: Tx, limit: int, age_seconds: float = RECONCILE_AGE_SECONDS, engine: str = LOCAL
) -> list[Inquiry]:
    """Submissions accepted so long ago and not settled; each one's next turn moves on, so that none starves
    another.
    """
    return [
        Inquiry(row.id, row.workspace, row.manifest_id, row.remote_job_id, row.error_code or "")
        for row in submissions.due_for_inquiry(tx, limit, age_seconds, engine)
    ]


def give_turns_back(tx: Tx, submission_ids: Sequence[str]) -> None:
    """These were not asked about: they are due now, before all that were."""
    submissions.come_first(tx, submission_ids)


def note_answer(tx: Tx, submission_id: str, code: str, message: str) -> None:
    """What went wrong when the engine was asked, for who looks at the manifest's health; '' for nothing."""
    submissions.note_error(tx, submission_id, code, sanitize(message))


def note_parking(tx: Tx, submission_id: str, parked_for: str) -> None:
    """What the engine says that a job waits for; '' for nothing."""
    submissions.note_parking(tx, submission_id, parked_for)


def mark_processing(tx: Tx, submission_id: str) -> int:
    """The engine works on this submission: its queued intents show it; how many moved."""
    where = (_INTENTS.c.submission_id == submission_id, _INTENTS.c.state == "queued")
    found = tx.all(sa.select(_INTENTS.c.shard, _INTENTS.c.manifest_id).where(*where).distinct())
    if not found:
        return 0
    manifest_id = found[0].manifest_id
    touched = {row.shard for row in found}
    shards.lock(tx, manifest_id, touched)
    queued = tx.all(sa.select(_INTENTS).where(*where))
    moving.move(tx, queued, "start")
    shards.recount(tx, manifest_id, touched)
    return len(queued)
