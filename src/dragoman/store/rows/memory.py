"""Rows of `memory` and `trials`: what a project has translated before, and what it has tried in vain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from dragoman.model.documents import Text
from dragoman.model.jobs import Job, Memorable
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Tx
from dragoman.store.wording import read, written

_MEMORY, _TRIALS = tables.memory, tables.trials

_KEY = ("workspace", "project", "source_locale", "target_locale", "source_hash", "context_hash")
_EXACT = sa.select(_MEMORY.c.source_hash, _MEMORY.c.context_hash, _MEMORY.c.text, _MEMORY.c.plural).where(
    _MEMORY.c.workspace == sa.bindparam("ws"),
    _MEMORY.c.project == sa.bindparam("in_project"),
    _MEMORY.c.source_locale == sa.bindparam("source"),
    _MEMORY.c.target_locale == sa.bindparam("target"),
    _MEMORY.c.source_hash.in_(sa.bindparam("hashes", expanding=True)),
)
_TRIED = (
    sa.select(_TRIALS.c.trial_key, sa.func.count().label("jobs"))
    .where(
        _TRIALS.c.workspace == sa.bindparam("ws"),
        _TRIALS.c.trial_key.in_(sa.bindparam("keys", expanding=True)),
    )
    .group_by(_TRIALS.c.trial_key)
)


def exact(tx: Tx, job: Job, target_locale: str, source_hashes: Sequence[str]) -> dict[tuple[str, str], Text]:
    """(source hash, context hash) → translation, for one page of source hashes, of the job's own project."""
    values = {
        "ws": job.workspace,
        "in_project": job.project,
        "source": job.source_locale,
        "target": target_locale,
        "hashes": source_hashes,
    }
    return {(row.source_hash, row.context_hash): read(row.text, row.plural) for row in tx.all(_EXACT, values)}


def keep(tx: Tx, job: Job, memorable: Iterable[Memorable]) -> None:
    """Remember translations by AI; what is known already stays as it is."""
    rows = [
        {
            "workspace": job.workspace,
            "project": job.project,
            "source_locale": job.source_locale,
            "target_locale": one.target_locale,
            "source_hash": one.source_hash,
            "context_hash": one.context_hash,
            "source": written(one.source),
            "text": written(one.text),
            "plural": not isinstance(one.text, str),
            "origin": "ai",
            "created_at": tx.now,
        }
        for one in memorable
    ]
    tx.insert_new(_MEMORY, rows, _KEY)


def tried(tx: Tx, workspace: str, trial_keys: Sequence[str]) -> Mapping[str, int]:
    """Trial key → in how many jobs it has failed, for one page of keys; those never tried are left out."""
    if not trial_keys:
        return {}
    return {row.trial_key: row.jobs for row in tx.all(_TRIED, {"ws": workspace, "keys": trial_keys})}


def note_trials(tx: Tx, workspace: str, job_id: str, trial_keys: Iterable[str]) -> None:
    """Write down that these fields have failed for good in this job."""
    rows = [
        {"workspace": workspace, "trial_key": key, "job_id": job_id, "created_at": tx.now}
        for key in sorted(set(trial_keys))
    ]
    tx.insert_new(_TRIALS, rows, ("workspace", "trial_key", "job_id"))
