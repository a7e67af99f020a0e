"""Transactions of enumeration: a manifest is claimed, what was asked for becomes intents, its end is written.

The lease's fence and the cursor stand in every one of them. Only the holder of the fence makes intents, so
their ordinals are dense, and a page that is walked twice makes nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.clock import MICROSECONDS, seconds
from dragoman.kernel.errors import LeaseLost, sanitize
from dragoman.kernel.limits import ENUMERATION_LEASE_SECONDS, LIST_FAILURES_MAX, SHARD_INTENTS
from dragoman.model.scopes import System
from dragoman.model.walks import Met, Place
from dragoman.store import leases
from dragoman.store.acts import moving
from dragoman.store.columns import is_set
from dragoman.store.rows import intents, manifests, shards
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_MANIFESTS = tables.manifests
_HELD_TOLD = 10


class Expansion(NamedTuple):
    """How far the pairs of a manifest are expanded. `canary` says that a sample is to be chosen now."""

    expanded: int
    total: int
    canary: bool = False


class Copied(NamedTuple):
    """How many intents a page of pairs gave, and whether it was the last one."""

    made: int
    ended: bool


class Held(NamedTuple):
    """A manifest that somebody enumerates, and how long ago its lease was taken or renewed."""

    manifest_id: str
    age_seconds: float


def claim_enumerating_manifest(tx: Tx, owner: str) -> Row | None:
    """The next manifest whose enumeration is open, neither canceled nor paused, leased.

    The first claim of all stamps its start.
    """
    claimed = leases.claim(
        tx,
        _MANIFESTS,
        ready=sa.and_(
            _MANIFESTS.c.phase == "enumerating",
            _MANIFESTS.c.next_attempt_at <= tx.now,
            sa.not_(is_set(_MANIFESTS.c.paused)),
            sa.not_(is_set(_MANIFESTS.c.canceled)),
        ),
        order=[_MANIFESTS.c.next_attempt_at, _MANIFESTS.c.id],
        limit=1,
        owner=owner,
        lease_seconds=ENUMERATION_LEASE_SECONDS,
        set_={"started_at": sa.func.coalesce(_MANIFESTS.c.started_at, tx.now)},
    )
    return claimed[0] if claimed else None


def enumerated_by_others(tx: Tx, owner: str) -> list[Held]:
    """What is due and under the live lease of somebody else; a few of the oldest, for the log."""
    others = (
        sa.select(_MANIFESTS.c.id, _MANIFESTS.c.lease_expires_at)
        .where(
            _MANIFESTS.c.phase == "enumerating",
            _MANIFESTS.c.next_attempt_at <= tx.now,
            _MANIFESTS.c.lease_expires_at > tx.now,
            _MANIFESTS.c.lease_owner != owner,
        )
        .order_by(_MANIFESTS.c.next_attempt_at)
        .limit(_HELD_TOLD)
    )
    taken_before = seconds(ENUMERATION_LEASE_SECONDS)
    return [
        Held(row.id, (tx.now - (row.lease_expires_at - taken_before)) / MICROSECONDS)
        for row in tx.all(others)
    ]


def expand_next_pairs(tx: Tx, manifest_id: str, fence: int, limit: int) -> Expansion:
    """Make intents of the next `limit` pairs; the last ones open the manifest and release its lease.

    Raises `LeaseLost` under a stale fence. Repeating it makes nothing twice: the ordinals tell what is there.
    """
    start = intents.last_ordinal(tx, manifest_id) + 1
    shard = start // SHARD_INTENTS
    manifest = _hold(tx, manifest_id, fence, [shard])
    room = min(limit, SHARD_INTENTS - start % SHARD_INTENTS)
    place = Place.parse(manifest.cursor)
    if manifest.promotes:
        rows = intents.left_out_after(tx, manifest.promotes, place.item - 1, room)
        pairs = [(start + index, row.document, row.locale) for index, row in enumerate(rows)]
        place = replace(place, item=rows[-1].ordinal + 1 if rows else place.item)
    else:
        pairs = manifests.pairs_from(tx, manifest_id, start, room)
    if pairs:
        intents.insert_pairs(tx, manifest, pairs)
        shards.recount(tx, manifest_id, [shard])
    expanded = start + len(pairs)
    ended = expanded >= manifest.total
    if ended and manifest.canary_limit:
        place = Place("canary")
    if manifest.promotes or place.phase == "canary":
        manifests.change(tx, manifest_id, cursor=place.text)
    if ended and not manifest.canary_limit:
        _open(tx, manifest, fence, place)
    return Expansion(expanded, manifest.total, ended and bool(manifest.canary_limit))


def restore_missing_pairs(tx: Tx, manifest_id: str, fence: int, start: int, limit: int) -> Expansion:
    """Make the intents anew of those of the next `limit` pairs, from ordinal `start` on, that have none.

    The last ones open the manifest and release its lease. Raises `LeaseLost` under a stale fence.
    """
    shard = start // SHARD_INTENTS
    manifest = _hold(tx, manifest_id, fence, [shard])
    pairs = manifests.pairs_from(tx, manifest_id, start, min(limit, SHARD_INTENTS - start % SHARD_INTENTS))
    there = intents.ordinals(tx, manifest_id, [ordinal for ordinal, _, _ in pairs])
    intents.insert_pairs(tx, manifest, [pair for pair in pairs if pair[0] not in there])
    shards.recount(tx, manifest_id, [shard])
    sample, through = Place.parse(manifest.cursor).sample, start + len(pairs)
    ended, canary = through >= manifest.total, bool(manifest.canary_limit)
    if ended and not canary:
        _open(tx, manifest, fence, Place())
        return Expansion(through, manifest.total)
    place = Place("canary", sample=sample) if ended else Place(again=True, item=through, sample=sample)
    manifests.change(tx, manifest_id, cursor=place.text)
    return Expansion(through, manifest.total, ended)


def copy_missing_pairs(tx: Tx, manifest_id: str, fence: int, limit: int) -> Copied:
    """Make the intents anew of those of the next `limit` pairs of the promoted canary that have none.

    The last ones open the manifest and release its lease. Raises `LeaseLost` under a stale fence.
    """
    manifest = manifests.find(tx, System(), manifest_id)
    if manifest is None:
        raise LeaseLost(f"manifest {manifest_id} is gone")
    after = Place.parse(manifest.cursor).item
    rows = intents.left_out_after(tx, manifest.promotes, after - 1, limit)
    met = [Met(row.document, row.locale) for row in rows]
    ended = len(rows) < limit
    place = Place("done") if ended else Place(again=True, item=rows[-1].ordinal + 1)
    return Copied(record_walk(tx, manifest_id, fence, met, place), ended)


def reopen_incomplete(tx: Tx, limit: int) -> int:
    """Have manifests gone through once more that have fewer intents than they had; how many manifests.

    Nothing of ours removes an intent of an open manifest: this mends what a person or a restored copy did.
    Stored pairs are made again where they were. A scope is walked again, and so is what a promoted canary
    left out; what is met anew comes behind all others. A pair that is gone from there as well is gone, and
    the total says so. A canary keeps its sample; what was in it and is made again under another ordinal is
    left out.
    """
    sums = tables.shards
    made = sa.select(sa.func.coalesce(sa.func.sum(sums.c.intents), 0)).where(
        sums.c.manifest_id == _MANIFESTS.c.id
    )
    fewer = (
        _MANIFESTS.c.phase == "open",
        sa.not_(is_set(_MANIFESTS.c.canceled)),
        made.scalar_subquery() < _MANIFESTS.c.total,
    )
    seen = sa.select(_MANIFESTS.c.id, _MANIFESTS.c.scope, _MANIFESTS.c.cursor, _MANIFESTS.c.promotes)
    found = tx.all(seen.where(*fewer).limit(limit))
    for row in found:
        again = sa.update(_MANIFESTS).where(_MANIFESTS.c.id == row.id, _MANIFESTS.c.phase == "open")
        due = {"phase": "enumerating", "next_attempt_at": tx.now, "updated_at": tx.now}
        tx.touched(again.values({**due, **_from_the_first(row)}))
    return len(found)


def _from_the_first(manifest: Row) -> dict[str, Any]:
    """Where an enumeration that has ended begins once more."""
    sample = Place.parse(manifest.cursor).sample
    if manifest.promotes:
        return {"cursor": Place(again=True).text, "total_known": False}
    if not manifest.scope:
        return {"cursor": Place(again=True, sample=sample).text}
    unknown = {"total_known": False, "gaps": None, "ignored_without_id": 0, "attempt_count": 0}
    return {"cursor": Place(sample=sample).text, **unknown}


def record_walk(
    tx: Tx, manifest_id: str, fence: int, met: Sequence[Met], place: Place, nameless: int = 0
) -> int:
    """Make intents of what a walk met and move the cursor to `place`, in one; how many (at most 100).

    A pair that has its intent is passed over. At `done` the total is fixed and the lease goes. Raises
    `LeaseLost` under a stale fence, which a pause and a cancel make it.
    """
    fresh = intents.unknown_pairs(tx, manifest_id, met) if met else []
    start = intents.last_ordinal(tx, manifest_id) + 1
    touched = sorted({(start + index) // SHARD_INTENTS for index in range(len(fresh))})
    manifest = _hold(tx, manifest_id, fence, touched)
    intents.insert_pairs(
        tx, manifest, [(start + index, pair.document, pair.locale) for index, pair in enumerate(fresh)]
    )
    _refuse_met(tx, manifest_id, [pair for pair in fresh if pair.code])
    shards.recount(tx, manifest_id, touched)
    manifests.change(
        tx,
        manifest_id,
        cursor=place.text,
        total=shards.made(tx, manifest_id),
        attempt_count=0,
        error_code=None,
        error_message=None,
        ignored_without_id=manifest.ignored_without_id + nameless,
    )
    if place.phase == "done":
        _open(tx, manifest, fence, place)
    return len(fresh)


def _refuse_met(tx: Tx, manifest_id: str, met: Sequence[Met]) -> None:
    """Fail the intents of pairs that the walk met and that nobody can work."""
    for pair in met:
        row = intents.of_pair(tx, manifest_id, pair.document, pair.locale)
        if row is not None:
            moving.refuse(tx, row, pair.code, pair.message)


def record_listing_failure(
    tx: Tx,
    manifest_id: str,
    fence: int,
    collection: str,
    code: str,
    message: str,
    after: Place,
    jitter: float,
) -> bool:
    """Keep the cursor and try again later; True when this collection is given up and the walk goes on.

    Given up are listings that failed five times in a row, and what the source says it does not have. Then
    the collection is written down as a gap, with the reason, and the cursor moves to `after`; where documents
    were asked for by name (no `collection`), nothing is written, and the caller makes failures of them.
    Raises `LeaseLost` under a stale fence.
    """
    manifest = _hold(tx, manifest_id, fence, [])
    attempt = manifest.attempt_count + 1
    said = {"error_code": code, "error_message": sanitize(message)[:500]}
    if code == "source_unavailable" and attempt < LIST_FAILURES_MAX:
        delay = seconds(intents.retry_delay_seconds(attempt, jitter))
        _rest(tx, manifest_id, fence, attempt_count=attempt, next_attempt_at=tx.now + delay, **said)
        return False
    if not collection:
        return True
    gaps = json.loads(manifest.gaps or "[]")
    gaps.append({"collection": collection, "code": code, "message": said["error_message"]})
    told = json.dumps(gaps, ensure_ascii=False)
    manifests.change(tx, manifest_id, gaps=told, cursor=after.text, attempt_count=0, **said)
    if after.phase == "done":
        _open(tx, manifest, fence, after)
    return True


def rest_enumeration(tx: Tx, manifest_id: str, fence: int) -> None:
    """Hand a manifest on when the step's time is over: those that wait come before it."""
    _rest(tx, manifest_id, fence, next_attempt_at=tx.now)


def _rest(tx: Tx, manifest_id: str, fence: int, **values: object) -> None:
    leases.release(tx, _MANIFESTS, (manifest_id,), fence, {"updated_at": tx.now, **values})


def _hold(tx: Tx, manifest_id: str, fence: int, touched: Sequence[int]) -> Row:
    """The manifest, locked behind the shards that are about to grow. Raises `LeaseLost`."""
    for shard in touched:
        workspace = tx.scalar(sa.select(_MANIFESTS.c.workspace).where(_MANIFESTS.c.id == manifest_id))
        shards.ensure(tx, str(workspace), manifest_id, shard)
    manifest = tx.first(
        sa.select(_MANIFESTS).where(leases.held(_MANIFESTS, (manifest_id,), fence)).with_for_update()
    )
    if manifest is None or manifest.phase != "enumerating" or manifest.canceled:
        raise LeaseLost(f"manifest {manifest_id} is enumerated by somebody else")
    return manifest


def _open(tx: Tx, manifest: Row, fence: int, place: Place) -> None:
    """End the enumeration: the total is what rows say, the lease goes, and no intents at all is an end."""
    known = {} if manifest.total_known else {"total": shards.made(tx, manifest.id)}
    values = {
        "phase": "open",
        "next_attempt_at": None,
        "updated_at": tx.now,
        "total_known": True,
        "cursor": replace(place, phase="done").text,
        **known,
    }
    leases.release(tx, _MANIFESTS, (manifest.id,), fence, values)
    shards.end_manifest(tx, manifest.id)


def enumeration_of(manifest: Row) -> dict[str, Any]:
    """How far the enumeration is, and what it could not list: for who looks at the status."""
    return {
        "phase": Place.parse(manifest.cursor).phase if manifest.phase == "enumerating" else "done",
        "ignored_without_id": manifest.ignored_without_id,
        "unavailable": json.loads(manifest.gaps or "[]"),
    }
