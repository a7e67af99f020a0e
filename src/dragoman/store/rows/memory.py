"""Rows of `memory` and `trials`: what a project has translated before, and what it has tried in vain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.model.memories import Known, Place, Remembered, Shelf
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx
from dragoman.store.wording import read, written

_MEMORY, _TRIALS = tables.memory, tables.trials

_KEY = ("workspace", "project", "source_locale", "target_locale", "source_hash", "context_hash")
_HERE = sa.and_(
    _MEMORY.c.workspace == sa.bindparam("ws"),
    _MEMORY.c.project == sa.bindparam("in_project"),
    _MEMORY.c.source_locale == sa.bindparam("from_locale"),
    _MEMORY.c.target_locale == sa.bindparam("to_locale"),
)
_EXACT = sa.select(
    _MEMORY.c.source_hash,
    _MEMORY.c.context_hash,
    _MEMORY.c.text,
    _MEMORY.c.plural,
    _MEMORY.c.origin,
    _MEMORY.c.basis,
).where(_HERE, _MEMORY.c.source_hash.in_(sa.bindparam("hashes", expanding=True)))
_COUNT_ANEW = sa.text("ANALYZE memory, memory_segments, memory_grams")
_BEHIND = sa.or_(
    _MEMORY.c.source_hash > sa.bindparam("after_source"),
    sa.and_(
        _MEMORY.c.source_hash == sa.bindparam("after_source"),
        _MEMORY.c.context_hash > sa.bindparam("after_context"),
    ),
)
_PAGE = (
    sa.select(_MEMORY)
    .where(_HERE, _MEMORY.c.source_hash >= sa.bindparam("after_source"), _BEHIND)
    .order_by(_MEMORY.c.source_hash, _MEMORY.c.context_hash)
    .limit(sa.bindparam("most"))
)
_COUNTS = (
    sa.select(
        _MEMORY.c.source_locale, _MEMORY.c.target_locale, _MEMORY.c.origin, sa.func.count().label("number")
    )
    .where(_MEMORY.c.workspace == sa.bindparam("ws"), _MEMORY.c.project == sa.bindparam("in_project"))
    .group_by(_MEMORY.c.source_locale, _MEMORY.c.target_locale, _MEMORY.c.origin)
    .order_by(_MEMORY.c.source_locale, _MEMORY.c.target_locale, _MEMORY.c.origin)
)
_MADE = (
    "source", "text", "plural", "syntax", "origin", "basis",
    "job_id", "model", "prompt_version", "validator_version", "updated_at",
)  # fmt: skip
_RENEW = (
    sa.update(_MEMORY)
    .where(
        _HERE,
        _MEMORY.c.source_hash == sa.bindparam("old_source_hash"),
        _MEMORY.c.context_hash == sa.bindparam("old_context_hash"),
    )
    .values({name: sa.bindparam(f"new_{name}") for name in _MADE})
)
_RENEW_STALE = _RENEW.where(_MEMORY.c.origin == "ai", _MEMORY.c.basis != sa.bindparam("new_basis"))
_RENEW_UNSEEN = _RENEW.where(_MEMORY.c.origin != "person")
_ANY_TRIAL = sa.select(_TRIALS.c.trial_key).where(_TRIALS.c.workspace == sa.bindparam("ws")).limit(1)
_TRIED = (
    sa.select(_TRIALS.c.trial_key, sa.func.count().label("jobs"))
    .where(
        _TRIALS.c.workspace == sa.bindparam("ws"),
        _TRIALS.c.trial_key.in_(sa.bindparam("keys", expanding=True)),
    )
    .group_by(_TRIALS.c.trial_key)
)


def count_anew(tx: Tx) -> None:
    """Tell PostgreSQL how large the tables of the memory have grown; the others see that by themselves.

    It counts a table a minute after it grew, or never where autovacuum is off. Until then it takes the memory
    of a locale pair for one row, and reads all of it for every page of look-ups.
    """
    if tx.dialect == "postgresql":
        tx.touched(_COUNT_ANEW)


def exact(tx: Tx, workspace: str, place: Place, source_hashes: Sequence[str]) -> dict[str, list[Known]]:
    """Source hash → what is remembered of it, in whatever context, for one page of hashes."""
    found: dict[str, list[Known]] = {}
    rows = tx.tuples(_EXACT, {**_at(workspace, place), "hashes": source_hashes})
    for source_hash, context_hash, text, plural, origin, basis in rows:
        known = Known(context_hash, read(text, True) if plural else text, origin, basis)
        if source_hash in found:
            found[source_hash].append(known)
        else:
            found[source_hash] = [known]
    return found


Made = tuple[str, Place, Remembered]
"""A translation, and in which workspace and place it is to be remembered."""


def keep(tx: Tx, made: Sequence[Made]) -> int:
    """Remember translations by AI; how many were new.

    One that was made from something else is replaced; what a person or a file says stays as it is.
    """
    in_order = [one for _, one in sorted({_key(one): one for one in made}.items())]
    new = _insert(tx, in_order)
    if new < len(in_order):
        tx.touched_each(_RENEW_STALE, [_renewal(tx, *one) for one in in_order])
    return new


def _key(made: Made) -> tuple[str, ...]:
    """All who write several rows lock them in this order."""
    workspace, place, one = made
    return (workspace, *place, one.source_hash, one.context_hash)


def take_in(tx: Tx, workspace: str, place: Place, given: Sequence[Remembered]) -> int:
    """Remember translations that come from elsewhere; how many were new. Only what a person says stays."""
    new = _insert(tx, [(workspace, place, one) for one in given])
    if new < len(given):
        last = {(one.source_hash, one.context_hash): one for one in given}
        tx.touched_each(_RENEW_UNSEEN, [_renewal(tx, workspace, place, one) for one in last.values()])
    return new


def page(tx: Tx, workspace: str, place: Place, after: tuple[str, str], limit: int) -> list[Remembered]:
    """The memory of a locale pair in order of its keys, behind a (source hash, context hash)."""
    source, context = after
    values = {
        **_at(workspace, place),
        "after_source": source,
        "after_context": context,
        "most": limit,
    }
    return [_remembered(row) for row in tx.all(_PAGE, values)]


def counts(tx: Tx, workspace: str, project: str) -> list[Row]:
    """How many translations there are, by locale pair and origin."""
    return tx.all(_COUNTS, {"ws": workspace, "in_project": project})


def tried(tx: Tx, workspace: str, trial_keys: Sequence[str]) -> Mapping[str, int]:
    """Trial key → in how many jobs it has failed, for one page of keys; those never tried are left out."""
    if not trial_keys:
        return {}
    return {row.trial_key: row.jobs for row in tx.all(_TRIED, {"ws": workspace, "keys": trial_keys})}


def has_trials(tx: Tx, workspace: str) -> bool:
    """Whether anything was ever tried in vain in a workspace."""
    return tx.first(_ANY_TRIAL, {"ws": workspace}) is not None


def note_trials(tx: Tx, workspace: str, job_id: str, trial_keys: Iterable[str]) -> None:
    """Write down that these fields have failed for good in this job."""
    rows = [
        {"workspace": workspace, "trial_key": key, "job_id": job_id, "created_at": tx.now}
        for key in sorted(set(trial_keys))
    ]
    tx.insert_new(_TRIALS, rows, ("workspace", "trial_key", "job_id"))


def _insert(tx: Tx, made: Sequence[Made]) -> int:
    rows = [
        {
            "workspace": workspace,
            "project": place.project,
            "source_locale": place.source_locale,
            "target_locale": place.target_locale,
            "source_hash": one.source_hash,
            "context_hash": one.context_hash,
            "created_at": one.created_at or tx.now,
            **_made(tx, one),
        }
        for workspace, place, one in made
    ]
    return tx.insert_new(_MEMORY, rows, _KEY)


def _renewal(tx: Tx, workspace: str, place: Place, one: Remembered) -> dict[str, Any]:
    return {
        **_at(workspace, place),
        "old_source_hash": one.source_hash,
        "old_context_hash": one.context_hash,
        **{f"new_{name}": value for name, value in _made(tx, one).items()},
    }


def _made(tx: Tx, one: Remembered) -> dict[str, Any]:
    return {
        "source": written(one.source),
        "text": written(one.text),
        "plural": not isinstance(one.text, str),
        "syntax": one.syntax,
        "origin": one.origin,
        "basis": one.basis,
        "job_id": one.job_id,
        "model": one.model,
        "prompt_version": one.prompt_version,
        "validator_version": one.validator_version,
        "updated_at": one.updated_at or tx.now,
    }


def _remembered(row: Row) -> Remembered:
    return Remembered(
        source_hash=row.source_hash,
        context_hash=row.context_hash,
        source=read(row.source, row.plural),
        text=read(row.text, row.plural),
        syntax=row.syntax or "none",
        origin=row.origin,
        basis=row.basis,
        job_id=row.job_id,
        model=row.model,
        prompt_version=row.prompt_version,
        validator_version=row.validator_version,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _at(workspace: str, place: Place) -> dict[str, Any]:
    return {
        "ws": workspace,
        "in_project": place.project,
        "from_locale": place.source_locale,
        "to_locale": place.target_locale,
    }


def shelves(tx: Tx, workspace: str, project: str) -> list[Shelf]:
    """The source locales that a project has translations from."""
    found = sa.select(_MEMORY.c.source_locale).distinct()
    rows = tx.all(found.where(_MEMORY.c.workspace == workspace, _MEMORY.c.project == project))
    return [Shelf(project, row.source_locale) for row in rows]
