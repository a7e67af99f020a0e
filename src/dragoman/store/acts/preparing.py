"""Transactions of preparation: due intents are taken under their shard's lease, and what came of each is
recorded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from dragoman.kernel.clock import seconds
from dragoman.kernel.identity import key_hash
from dragoman.kernel.limits import RETRIES_PER_GENERATION
from dragoman.model.intents import DueIntent, Preparation, ShardWork
from dragoman.model.memories import Library, Shelf
from dragoman.model.scopes import System, Workspace
from dragoman.store.acts import moving, remembering
from dragoman.store.rows import claims, entries, field_sums, intents, manifests, shards, texts
from dragoman.store.transaction import Row, Tx


def claim_due_intents(tx: Tx, owner: str, limit: int) -> ShardWork | None:
    """Lease one due shard and take its due intents into `preparing`, in ordinal order.

    Intents that a vanished holder of the shard left in `preparing` go back first: only one lease works a
    shard.
    """
    claimed = claims.claim_shard(tx, "prepare_due_at", owner)
    if claimed is None:
        return None
    manifest = manifests.find(tx, System(), claimed.manifest_id)
    if manifest is None:
        return None
    _return_abandoned(tx, claimed)
    rows = intents.due(tx, claimed.manifest_id, claimed.shard, "pending", limit)
    moving.move(tx, rows, "claim")
    shards.recount(tx, claimed.manifest_id, [claimed.shard])
    if not rows:
        claims.release_shard(tx, claimed.manifest_id, claimed.shard, claimed.fence)
        return None
    return ShardWork(
        workspace=claimed.workspace,
        manifest_id=claimed.manifest_id,
        shard=claimed.shard,
        fence=claimed.fence,
        settings=json.loads(manifest.settings),
        intents=tuple(intents.as_due(row, manifest.actor, "preparing") for row in rows),
    )


def _return_abandoned(tx: Tx, shard: Row) -> None:
    abandoned = intents.in_state(tx, shard.manifest_id, shard.shard, "preparing")
    moving.move(tx, abandoned, "lease_expired", next_attempt_at=tx.now)


def known_entries(tx: Tx, work: ShardWork) -> dict[tuple[str, str], dict[str, Row]]:
    """What is on record of the targets of these intents: (document, locale) → key hash → entry."""
    known: dict[tuple[str, str], dict[str, Row]] = {}
    pairs = [(intent.document, intent.locale) for intent in work.intents]
    for row in texts.entries(tx, work.intents[0].project_id, pairs):
        known.setdefault((row.document, row.locale), {})[row.key_hash] = row
    return known


def library(tx: Tx, work: ShardWork) -> Library:
    """What translations of these intents are asked to keep to, as far as this side knows."""
    shelf = Shelf(str(work.settings.get("project", "")), str(work.settings["source_locale"]))
    locales = sorted({intent.locale for intent in work.intents})
    return remembering.library(tx, Workspace(work.workspace), shelf, locales)


def record_preparations(tx: Tx, work: ShardWork, outcomes: Sequence[Preparation], jitter: float) -> bool:
    """Write down what preparing came to, give the shard back; True when this ended the manifest.

    `jitter` (0 to 1) spreads retries. Raises `LeaseLost` under a stale fence, or when an intent has moved on:
    then nothing is written.
    """
    claims.hold_shard(tx, work.manifest_id, work.shard, work.fence)
    moving.prepare(tx, [outcome for outcome in outcomes if outcome.outcome == "prepare"])
    for outcome in outcomes:
        _record(tx, outcome, jitter)
    quiet = [outcome.intent for outcome in outcomes if outcome.outcome == "nothing_to_do"]
    moving.move(tx, quiet, "nothing_to_do", error_code="up_to_date")
    texts.add_seen(tx, [row for outcome in outcomes for row in _seen(tx, outcome)])
    for intent, relabeled in [(outcome.intent, outcome.relabeled) for outcome in outcomes]:
        place = entries.Place(intent.workspace, intent.project_id, intent.document, intent.locale)
        entries.relabel(tx, place, relabeled)
    worked = {outcome.intent.id for outcome in outcomes}
    left = [intent for intent in work.intents if intent.id not in worked]
    moving.move(tx, left, "lease_expired", next_attempt_at=tx.now)
    prepared = [outcome.intent.ordinal for outcome in outcomes if outcome.outcome == "prepare"]
    field_sums.recount(tx, work.manifest_id, prepared)
    ended = shards.recount(tx, work.manifest_id, [work.shard])
    claims.release_shard(tx, work.manifest_id, work.shard, work.fence)
    return ended


def _record(tx: Tx, outcome: Preparation, jitter: float) -> None:
    """What came of an intent that was not prepared."""
    intent = outcome.intent
    if outcome.outcome == "all_protected":
        moving.move(tx, [intent], "all_protected", error_code="target_protected")
    elif outcome.outcome == "refuse":
        moving.refuse(tx, intent, outcome.code, outcome.message)
    elif outcome.outcome == "wait":
        _retry_or_fail(tx, outcome, jitter)


def _retry_or_fail(tx: Tx, outcome: Preparation, jitter: float) -> None:
    intent = outcome.intent
    attempt = intent.generation_attempt_count + 1
    if attempt >= RETRIES_PER_GENERATION:
        moving.refuse(tx, intent, "retry_exhausted", outcome.message)
        return
    delay_seconds = intents.retry_delay_seconds(attempt, jitter, outcome.retry_after_seconds)
    moving.move(
        tx,
        [intent],
        "lease_expired",
        generation_attempt_count=attempt,
        attempt_count=intent.attempt_count + 1,
        next_attempt_at=tx.now + seconds(delay_seconds),
        error_code=outcome.code,
        error_message=outcome.message,
    )


def _seen(tx: Tx, outcome: Preparation) -> list[dict[str, object]]:
    intent: DueIntent = outcome.intent
    return [
        {
            "project_id": intent.project_id,
            "document_hash": key_hash(intent.document),
            "locale": intent.locale,
            "key_hash": text.key_hash,
            "workspace": intent.workspace,
            "document": intent.document,
            "source_hash": text.source_hash,
            "written_hash": text.written_hash,
            "origin": "imported",
            "basis": "",
            "manifest_id": None,
            "updated_at": tx.now,
        }
        for text in outcome.seen
    ]
