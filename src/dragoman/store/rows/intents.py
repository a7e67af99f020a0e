"""Rows of `intents`: one (document, locale) pair of a manifest.

`next_attempt_at` is set exactly while the site has work to do: pending and not parked, preparing, or
prepared and in no submission. Callers lock the shards before a move and recount them after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.backoff import delay_seconds
from dragoman.kernel.errors import LeaseLost
from dragoman.kernel.identity import key_hash
from dragoman.kernel.limits import RETRY_FIRST_SECONDS, RETRY_MAX_SECONDS, SHARD_INTENTS
from dragoman.machines.tables import INTENT
from dragoman.model.intents import DueIntent, Preparation
from dragoman.model.walks import Met
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_INTENTS = tables.intents

_PREPARE = (
    sa.update(_INTENTS)
    .where(
        _INTENTS.c.id == sa.bindparam("intent"),
        _INTENTS.c.generation == sa.bindparam("seen_generation"),
        _INTENTS.c.state == sa.bindparam("seen_state"),
    )
    .values(
        state="prepared",
        prepared=sa.bindparam("envelope"),
        key_map=sa.bindparam("keys"),
        source_fingerprint=sa.bindparam("source"),
        selection_fingerprint=sa.bindparam("chosen"),
        fields_total=sa.bindparam("fields"),
        next_attempt_at=sa.bindparam("now"),
        updated_at=sa.bindparam("now"),
    )
)

_REOPEN = (
    sa.update(_INTENTS)
    .where(
        _INTENTS.c.id == sa.bindparam("intent"),
        _INTENTS.c.generation == sa.bindparam("seen_generation"),
        _INTENTS.c.state == "failed",
    )
    .values(
        state="pending",
        generation=sa.bindparam("next_generation"),
        generation_attempt_count=0,
        last_event_sequence=0,
        retryable=False,
        submission_id=None,
        remote_job_id=None,
        error_code=None,
        error_message=None,
        completed_at=None,
        active_key=sa.bindparam("pair"),
        blocked_by=sa.bindparam("holder"),
        parked_for=sa.bindparam("parked"),
        next_attempt_at=sa.bindparam("due"),
        updated_at=sa.bindparam("now"),
    )
)


def active_key(project_id: str, document: str, locale: str) -> str:
    """What only one open intent may hold."""
    return key_hash(project_id, document, locale)


def last_ordinal(tx: Tx, manifest_id: str) -> int:
    """The highest ordinal that is expanded; -1 where none is."""
    found = tx.scalar(sa.select(sa.func.max(_INTENTS.c.ordinal)).where(_INTENTS.c.manifest_id == manifest_id))
    return -1 if found is None else int(found)


def ordinals(tx: Tx, manifest_id: str, among: Sequence[int]) -> set[int]:
    """Which of these ordinals have an intent."""
    mine = (_INTENTS.c.manifest_id == manifest_id, _INTENTS.c.ordinal.in_(list(among)))
    return {row.ordinal for row in tx.all(sa.select(_INTENTS.c.ordinal).where(*mine))}


def insert_pairs(tx: Tx, manifest: Row, pairs: Sequence[tuple[int, str, str]]) -> None:
    """Make the intents of these pairs. One whose pair another open intent holds waits for it, parked.

    A canary's are held, whoever holds their pair, until its sample is chosen.
    """
    rows = [_fresh(tx, manifest, *pair) for pair in pairs]
    if tx.insert_new(_INTENTS, rows, ("active_key",)) == len(rows):
        return
    holders = _holders(tx, [row["active_key"] for row in rows])
    taken = [row for row in rows if holders.get(row["active_key"]) != row["id"]]
    for row in taken:
        row.update(
            parked_for=row["parked_for"] or "pair",
            blocked_by=holders[row["active_key"]],
            active_key=None,
            next_attempt_at=None,
        )
    tx.insert(_INTENTS, taken)


def _holders(tx: Tx, keys: Sequence[Any]) -> dict[str, str]:
    found = tx.all(
        sa.select(_INTENTS.c.active_key, _INTENTS.c.id).where(_INTENTS.c.active_key.in_(list(keys)))
    )
    return {row.active_key: row.id for row in found}


def _fresh(tx: Tx, manifest: Row, ordinal: int, document: str, locale: str) -> dict[str, Any]:
    return {
        "id": tx.new_id(),
        "workspace": manifest.workspace,
        "manifest_id": manifest.id,
        "project_id": manifest.project_id,
        "shard": ordinal // SHARD_INTENTS,
        "ordinal": ordinal,
        "document": document,
        "locale": locale,
        "pair_hash": key_hash(document, locale),
        "state": INTENT.initial,
        "parked_for": "held" if manifest.canary_limit else "",
        "blocked_by": None,
        "active_key": active_key(manifest.project_id, document, locale),
        "next_attempt_at": None if manifest.canary_limit else tx.now,
        "created_at": tx.now,
        "updated_at": tx.now,
    }


def due(tx: Tx, manifest_id: str, shard: int, state: str, limit: int) -> list[Row]:
    """Intents of a shard in one state that are due now, in ordinal order."""
    return tx.all(
        sa.select(_INTENTS)
        .where(
            _INTENTS.c.manifest_id == manifest_id,
            _INTENTS.c.shard == shard,
            _INTENTS.c.state == state,
            _INTENTS.c.next_attempt_at <= tx.now,
        )
        .order_by(_INTENTS.c.ordinal)
        .limit(limit)
    )


def in_state(tx: Tx, manifest_id: str, shard: int, state: str) -> list[Row]:
    """A shard's intents in one state."""
    return tx.all(
        sa.select(_INTENTS).where(
            _INTENTS.c.manifest_id == manifest_id, _INTENTS.c.shard == shard, _INTENTS.c.state == state
        )
    )


def retry_delay_seconds(attempt: int, jitter: float, asked_seconds: float | None = None) -> float:
    """When the site tries again: min(30 · 2^(n−1), 3600) seconds and a little more."""
    return delay_seconds(
        attempt,
        first_seconds=RETRY_FIRST_SECONDS,
        max_seconds=RETRY_MAX_SECONDS,
        fraction=jitter,
        asked_seconds=asked_seconds,
    )


def as_due(row: Row, actor: str, state: str) -> DueIntent:
    """The noun that a worker takes away, in the state in which it takes it."""
    return DueIntent(
        id=row.id,
        workspace=row.workspace,
        project_id=row.project_id,
        manifest_id=row.manifest_id,
        shard=row.shard,
        ordinal=row.ordinal,
        document=row.document,
        locale=row.locale,
        state=state,
        generation=row.generation,
        generation_attempt_count=row.generation_attempt_count,
        attempt_count=row.attempt_count,
        actor=actor,
        submission_id=row.submission_id,
        prepared=row.prepared,
        source_fingerprint=row.source_fingerprint,
    )


def move(tx: Tx, seen: Iterable[Row | DueIntent], event: str, **values: Any) -> None:
    """Move intents by one event of the machine, each from the generation and state in which it was seen.

    Raises `LeaseLost` where one has moved on since. Terminal moves let the pair go and end the site's work.
    """
    alike: dict[tuple[int, str], list[str]] = {}
    for one in seen:
        alike.setdefault((one.generation, one.state), []).append(one.id)
    for (generation, state), ids in alike.items():
        target = INTENT.next(state, event)
        if target is None:
            raise ValueError(f"machine intent: {event!r} leads nowhere from {state!r}")
        ended = _ended(tx) if target in INTENT.terminal else {}
        moved = tx.update(
            _INTENTS,
            {"id": ids, "generation": generation, "state": state},
            {"state": target, "updated_at": tx.now, **ended, **values},
        )
        _all_of(len(ids), moved, state)


def _ended(tx: Tx) -> dict[str, Any]:
    return {
        "active_key": None,
        "next_attempt_at": None,
        "parked_for": "",
        "blocked_by": None,
        "prepared": None,
        "completed_at": tx.now,
    }


def _all_of(wanted: int, moved: int, state: str) -> None:
    if moved != wanted:
        raise LeaseLost(f"{wanted - moved} of {wanted} intents are no longer {state} as they were seen")


def prepare(tx: Tx, outcomes: Sequence[Preparation]) -> None:
    """Give intents what was prepared of each: then they are due for submission. Raises `LeaseLost`."""
    rows = [
        {
            "intent": outcome.intent.id,
            "seen_generation": outcome.intent.generation,
            "seen_state": outcome.intent.state,
            "envelope": outcome.prepared,
            "keys": outcome.key_map,
            "source": outcome.source_fingerprint,
            "chosen": outcome.selection_fingerprint,
            "fields": outcome.fields,
            "now": tx.now,
        }
        for outcome in outcomes
    ]
    _all_of(len(rows), tx.touched_each(_PREPARE, rows), "preparing")


def reopen(tx: Tx, rows: Sequence[Row]) -> None:
    """Open a new generation of failed intents: due now, or parked behind whoever has their pair.

    Raises `LeaseLost` where one has moved on since it was seen.
    """
    keys = {row.id: active_key(row.project_id, row.document, row.locale) for row in rows}
    holders = _holders(tx, list(keys.values())) if rows else {}
    opened = [
        {
            "intent": row.id,
            "seen_generation": row.generation,
            "next_generation": row.generation + 1,
            "holder": (holder := holders.get(keys[row.id])),
            "pair": None if holder else keys[row.id],
            "parked": "pair" if holder else "",
            "due": None if holder else tx.now,
            "now": tx.now,
        }
        for row in rows
    ]
    _all_of(len(opened), tx.touched_each(_REOPEN, opened), "failed")


def link(tx: Tx, generations: Mapping[str, int], submission_id: str) -> None:
    """Note that a submission carries these generations of prepared intents, which no other one carries.

    Raises `LeaseLost` where one of them has moved on.
    """
    alike: dict[int, list[str]] = {}
    for intent_id, generation in generations.items():
        alike.setdefault(generation, []).append(intent_id)
    carried = {"submission_id": submission_id, "next_attempt_at": None, "updated_at": tx.now}
    for generation, ids in alike.items():
        free = sa.update(_INTENTS).where(
            _INTENTS.c.id.in_(ids),
            _INTENTS.c.generation == generation,
            _INTENTS.c.state == "prepared",
            _INTENTS.c.submission_id.is_(None),
        )
        _all_of(len(ids), tx.touched(free.values(**carried)), "prepared")


def relink(tx: Tx, intent_ids: Sequence[str], before: str, after: str) -> None:
    """Note that another submission carries intents now that one carried which was refused."""
    carried = (_INTENTS.c.id.in_(list(intent_ids)), _INTENTS.c.submission_id == before)
    tx.touched(sa.update(_INTENTS).where(*carried).values(submission_id=after, updated_at=tx.now))


def unknown_pairs(tx: Tx, manifest_id: str, pairs: Sequence[Met]) -> list[Met]:
    """Those of these pairs, each once, of which the manifest has no intent yet."""
    named = {key_hash(pair.document, pair.locale): pair for pair in reversed(pairs)}
    known = tx.all(
        sa.select(_INTENTS.c.pair_hash).where(
            _INTENTS.c.manifest_id == manifest_id, _INTENTS.c.pair_hash.in_(list(named))
        )
    )
    there = {row.pair_hash for row in known}
    return [pair for name, pair in reversed(named.items()) if name not in there]


def of_pair(tx: Tx, manifest_id: str, document: str, locale: str) -> Row | None:
    """The manifest's intent of a pair, if it has one."""
    mine = (_INTENTS.c.manifest_id == manifest_id, _INTENTS.c.pair_hash == key_hash(document, locale))
    return tx.first(sa.select(_INTENTS).where(*mine))


def held_after(tx: Tx, manifest_id: str, ordinal: int, limit: int) -> list[Row]:
    """The next intents that a canary holds, in ordinal order: ordinal, shard, document, locale, and more."""
    return tx.all(
        sa.select(_INTENTS)
        .where(
            _INTENTS.c.manifest_id == manifest_id,
            _INTENTS.c.ordinal > ordinal,
            _INTENTS.c.parked_for == "held",
        )
        .order_by(_INTENTS.c.ordinal)
        .limit(limit)
    )


def settled_behind(tx: Tx, manifest_id: str, ordinal: int, limit: int) -> list[Row]:
    """The next intents, upwards from an ordinal, that have completed or failed: id, ordinal."""
    found: list[Row] = []
    for state in ("completed", "failed"):  # one after the other: an index gives each in this order
        behind = sa.select(_INTENTS.c.id, _INTENTS.c.ordinal).where(
            _INTENTS.c.manifest_id == manifest_id,
            _INTENTS.c.state == state,
            _INTENTS.c.ordinal > ordinal,
        )
        found += tx.all(behind.order_by(_INTENTS.c.ordinal).limit(limit))
    return sorted(found, key=lambda row: row.ordinal)[:limit]


def let_go(tx: Tx, rows: Sequence[Row]) -> None:
    """These are held no more: they are due, or wait for whoever has their pair."""
    free = [row.id for row in rows if row.blocked_by is None]
    blocked = [row.id for row in rows if row.blocked_by is not None]
    for ids, values in (
        (free, {"parked_for": "", "next_attempt_at": tx.now}),
        (blocked, {"parked_for": "pair"}),
    ):
        if ids:
            tx.update(_INTENTS, {"id": ids, "parked_for": "held"}, {**values, "updated_at": tx.now})


def left_out(manifest_id: str) -> sa.ColumnElement[bool]:
    """The condition that a canary left an intent out."""
    return sa.and_(
        _INTENTS.c.manifest_id == manifest_id,
        _INTENTS.c.state == "skipped",
        _INTENTS.c.error_code == "canary_not_sampled",
    )


def count_left_out(tx: Tx, manifest_id: str) -> int:
    """How many pairs a canary left out."""
    return int(tx.scalar(sa.select(sa.func.count().label("number")).where(left_out(manifest_id))))


def left_out_after(tx: Tx, manifest_id: str, ordinal: int, limit: int) -> list[Row]:
    """The next pairs that a canary left out, in its order."""
    return tx.all(
        sa.select(_INTENTS.c.ordinal, _INTENTS.c.document, _INTENTS.c.locale)
        .where(left_out(manifest_id), _INTENTS.c.ordinal > ordinal)
        .order_by(_INTENTS.c.ordinal)
        .limit(limit)
    )
