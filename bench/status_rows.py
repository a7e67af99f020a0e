"""The rows of one large manifest that is half-way, as the transactions of the product would have left them.

A job holds a hundred intents, a call twenty of them, a plan two hundred. Seven intents in ten have ended; all
that completed are bought and published, but for some steps that met a person's texts; the last plans run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.clock import MICROSECONDS, SystemClock
from dragoman.kernel.identity import SystemChance, key_hash
from dragoman.kernel.limits import ITEMS_PER_SUBMISSION, PLAN_INTENTS_MAX, SHARD_INTENTS
from dragoman.store import publication_sums
from dragoman.store.database import Database
from dragoman.store.rows import executions, field_sums, shards
from dragoman.store.schema import engine, publishing, site
from dragoman.store.transaction import Tx

WORKSPACE = "bench"
_ENDED = 0.7
_CALL = 20
_RUNNING = 5
"""How many executions run: as many as one process works at a time."""
_CALL_TOKENS = 900
_Rows = dict[sa.Table, list[dict[str, Any]]]


def seed(url: str, intents: int) -> str:
    """A manifest of so many intents, all expanded, and all that belongs to them; gives its id."""
    return asyncio.run(_seeded(url, intents))


async def _seeded(url: str, intents: int) -> str:
    chance, now = SystemChance(), SystemClock().now()
    manifest_id, project_id = chance.new_id(), chance.new_id()
    database = await Database.open(url, clock=SystemClock(), chance=chance)
    try:
        for page in _pages(intents):
            made: _Rows = {site.intents: []}
            if not page.start:
                made[site.manifests] = [_manifest(manifest_id, project_id, intents, now)]
            rows = made[site.intents]
            rows += [_intent(chance, manifest_id, project_id, ordinal, intents, now) for ordinal in page]
            for first in range(0, len(rows), ITEMS_PER_SUBMISSION):
                _work(made, chance, manifest_id, rows[first : first + ITEMS_PER_SUBMISSION], now)
            done = [row for row in rows if row["state"] == "completed"]
            last = page.stop >= intents * _ENDED
            for first in range(0, len(done), PLAN_INTENTS_MAX):
                runs = last and first >= len(done) - _RUNNING * PLAN_INTENTS_MAX
                _publication(made, chance, manifest_id, done[first : first + PLAN_INTENTS_MAX], now, runs)
            await database.run(_put, made)
            await database.run(_sum_up, manifest_id, page)
        await database.run(_sum_up_the_rest, manifest_id)
    finally:
        await database.close()
    return manifest_id


def _put(tx: Tx, made: _Rows) -> None:
    for table, rows in made.items():
        tx.insert(table, rows)


def _pages(intents: int) -> Iterator[range]:
    for first in range(0, intents, SHARD_INTENTS):
        yield range(first, min(first + SHARD_INTENTS, intents))


def _sum_up(tx: Tx, manifest_id: str, ordinals: Sequence[int]) -> None:
    shard = ordinals[0] // SHARD_INTENTS
    shards.ensure(tx, WORKSPACE, manifest_id, shard)
    field_sums.recount(tx, manifest_id, ordinals)
    shards.recount(tx, manifest_id, [shard])


def _sum_up_the_rest(tx: Tx, manifest_id: str) -> None:
    for row in tx.all(
        sa.select(publishing.executions.c.id).where(publishing.executions.c.state != "RUNNING")
    ):
        executions.recount(tx, row.id)
    usage = engine.ai_usage
    slot = sa.func.substr(usage.c.job_id, 36, 1).label("slot")
    sums = sa.select(slot, sa.func.sum(usage.c.total_tokens).label("tokens")).group_by(slot)
    own = {"workspace": WORKSPACE, "client_job_id": manifest_id}
    rows = [{**own, "slot": int(row.slot, 16), "tokens": int(row.tokens)} for row in tx.all(sums)]
    tx.insert(engine.usage_sums, rows)


def _manifest(manifest_id: str, project_id: str, intents: int, now: int) -> dict[str, Any]:
    return {
        "id": manifest_id, "workspace": WORKSPACE, "project_id": project_id, "actor": "bench",
        "request_id": "bench", "request_fingerprint": key_hash("bench"),
        "settings": json.dumps({"executor": "files:v1", "root": "."}), "phase": "open",
        "total": intents, "total_known": True, "created_at": now, "updated_at": now,
    }  # fmt: skip


def _intent(
    chance: SystemChance, manifest_id: str, project_id: str, ordinal: int, intents: int, now: int
) -> dict[str, Any]:
    document, locale = f"guide/section-{ordinal // 5:06}.md", ("de", "fr", "ja", "he", "pt-BR")[ordinal % 5]
    ended = ordinal < intents * _ENDED
    state = "queued" if not ended else "failed" if ordinal % 50 == 0 else "completed"
    return {
        "id": chance.new_id(), "workspace": WORKSPACE, "manifest_id": manifest_id, "project_id": project_id,
        "shard": ordinal // SHARD_INTENTS, "ordinal": ordinal, "document": document, "locale": locale,
        "pair_hash": key_hash(document, locale), "state": state,
        "active_key": None if ended else key_hash(project_id, document, locale),
        "fields_total": 12, "via_ai": 9 if ended else 0, "via_memory": 3 if ended else 0,
        "error_code": "checks_failed" if state == "failed" else None, "created_at": now, "updated_at": now,
    }  # fmt: skip


def _work(
    rows: _Rows, chance: SystemChance, manifest_id: str, intents: Sequence[dict[str, Any]], now: int
) -> None:
    """A submission, its job and its bookings; a job waits for its turn until its intents have ended."""
    submission_id, job_id = chance.new_id(), chance.new_id()
    ended = intents[0]["state"] != "queued"
    made = {"workspace": WORKSPACE, "created_at": now, "updated_at": now}
    rows.setdefault(site.submissions, []).append({
        "id": submission_id, "engine": "local", "manifest_id": manifest_id, "state": "accepted",
        "fingerprint": "0" * 64, "remote_job_id": job_id, **made,
    })  # fmt: skip
    rows.setdefault(engine.jobs, []).append({
        "id": job_id, "project": "bench", "principal": "bench", "submission_id": submission_id,
        "submission_fingerprint": "0" * 64, "client_job_id": manifest_id, "source_locale": "en",
        "options": "{}", "queue_payload": "{}", "state": "completed" if ended else "queued",
        "next_attempt_at": None if ended else now, "deadline_at": now + 3600 * MICROSECONDS, **made,
    })  # fmt: skip
    for _ in range(0, len(intents) if ended else 0, _CALL):
        rows.setdefault(engine.ai_usage, []).append({
            "id": chance.new_id(), "workspace": WORKSPACE, "project": "bench", "job_id": job_id,
            "attempt_id": chance.new_id(), "client_job_id": manifest_id, "model": "m",
            "total_tokens": _CALL_TOKENS, "created_at": now,
        })  # fmt: skip


def _publication(
    rows: _Rows,
    chance: SystemChance,
    manifest_id: str,
    intents: Sequence[dict[str, Any]],
    now: int,
    runs: bool,
) -> None:
    """One execution of these intents; in one of them somebody's own texts stand."""
    execution_id, plan_id = chance.new_id(), chance.new_id()
    made = {"workspace": WORKSPACE, "created_at": now, "updated_at": now}
    rows.setdefault(publishing.executions, []).append({
        "id": execution_id, "plan_id": plan_id, "manifest_id": manifest_id, "action": "execute",
        "direction": "forward", "state": "RUNNING" if runs else "SUCCEEDED",
        "open_key": plan_id if runs else None, "slot": publication_sums.slot_of(execution_id), **made,
    })  # fmt: skip
    for ordinal, intent in enumerate(intents, 1):
        state = "CONFLICT" if ordinal == 7 else "PENDING" if runs and ordinal > 100 else "SUCCEEDED"
        rows.setdefault(publishing.publication_steps, []).append({
            "execution_id": execution_id, "ordinal": ordinal, "step_key": f"{plan_id}:{ordinal}:forward",
            "direction": "forward", "intent_id": intent["id"], "state": state,
            "units_written": 12 if state == "SUCCEEDED" else 0, **made,
        })  # fmt: skip
        rows.setdefault(publishing.plan_steps, []).append({
            "plan_id": plan_id, "ordinal": ordinal, "intent_id": intent["id"], "generation": 1,
            "document": intent["document"], "locale": intent["locale"],
            "target": f"{intent['locale']}/{intent['document']}", "write_fingerprint": "0" * 64,
            "units": "[]",
        })  # fmt: skip
