"""How long the status of a manifest of a million intents takes, against counting its intents anew.

The peer is the cheapest honest recount: one aggregate over an index that holds all it needs, in the same
database, on the same connection. Rows are seeded straight into the tables: what is measured is reading.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from bench.measures import Spread, Table, ratio
from bench.places import fresh
from dragoman.flow.site.views import Views
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance, key_hash
from dragoman.kernel.limits import SHARD_INTENTS
from dragoman.store.database import Database
from dragoman.store.engines import engine_of
from dragoman.store.rows import field_sums, shards
from dragoman.store.schema import site
from dragoman.store.transaction import Tx
from dragoman.wiring.sourcing import source_of

_DATABASES = ("sqlite", "postgresql", "mariadb")
_INTENTS = 1_000_000
_LOOKS = 50
_PAGE = 10_000
_ENDED = 0.7
"""The share of the intents that have ended; the others are queued."""


def bench(runs: int, scale: float) -> list[Table]:
    """Medians of every run, ratios run by run."""
    intents = max(SHARD_INTENTS, round(_INTENTS * scale))
    rows = []
    for kind in _DATABASES:
        ours, recount = [], []
        with fresh(kind) as url:
            manifest_id = seed(url, intents)
            for _ in range(runs):
                looked, counted = asyncio.run(_measured(url, manifest_id))
                ours.append(looked)
                recount.append(counted)
        status, peer = Spread(tuple(ours)), Spread(tuple(recount))
        rows.append((kind, f"{intents:,}", str(status), str(peer), str(ratio(peer, status))))
    heads = ("database", "intents", "status, ms", "recount over a covering index, ms", "× as fast")
    note = (
        "The whole status: counters, fields, money, publication, health; equal to the recount in every run."
    )
    return [Table("The status of a large manifest", heads, rows, note)]


async def _measured(url: str, manifest_id: str) -> tuple[float, float]:
    """Median milliseconds of a look and of a recount; they must say the same."""
    database = await Database.open(url, clock=SystemClock(), chance=SystemChance())
    try:
        views = Views(database, source_of)
        shown = (await views.status("bench", manifest_id))["counts"]
        counted = await database.read(_recount, manifest_id)
        assert {name: shown[name] for name in counted} == counted, (shown, counted)
        looks = [await _timed(views.status("bench", manifest_id)) for _ in range(_LOOKS)]
        recounts = [await _timed(database.read(_recount, manifest_id)) for _ in range(max(3, _LOOKS // 10))]
        return statistics.median(looks), statistics.median(recounts)
    finally:
        await database.close()


async def _timed(asked: Any) -> float:
    began = time.perf_counter()
    await asked
    return (time.perf_counter() - began) * 1e3


def _recount(tx: Tx, manifest_id: str) -> dict[str, int]:
    """The intents of a manifest by state: `ix_intents_failures` holds everything that is asked."""
    table = site.intents
    by_state = sa.select(table.c.state, sa.func.count().label("number")).where(
        table.c.manifest_id == manifest_id
    )
    return {row.state: int(row.number) for row in tx.all(by_state.group_by(table.c.state))}


def seed(url: str, intents: int) -> str:
    """A manifest of so many intents, all expanded, and the rows that sum them up; gives its id."""
    chance, now = SystemChance(), SystemClock().now()
    manifest_id, project_id = chance.new_id(), chance.new_id()
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(
            sa.insert(site.manifests),
            {
                "id": manifest_id, "workspace": "bench", "project_id": project_id, "actor": "bench",
                "request_id": "bench", "request_fingerprint": key_hash("bench"),
                "settings": json.dumps({"executor": "files:v1", "root": "."}), "phase": "open",
                "total": intents, "total_known": True, "created_at": now, "updated_at": now,
            },
        )  # fmt: skip
    for page in _pages(intents):
        rows = [_intent(chance, manifest_id, project_id, ordinal, intents, now) for ordinal in page]
        with engine.begin() as connection:
            connection.execute(sa.insert(site.intents), rows)
    engine.dispose()
    asyncio.run(_summed(url, manifest_id, intents))
    return manifest_id


async def _summed(url: str, manifest_id: str, intents: int) -> None:
    database = await Database.open(url, clock=SystemClock(), chance=SystemChance())
    try:
        for page in _pages(intents):
            await database.run(_sum_up, manifest_id, page)
    finally:
        await database.close()


def _sum_up(tx: Tx, manifest_id: str, ordinals: Sequence[int]) -> None:
    """What the transactions of the product would have left of these intents."""
    shard = ordinals[0] // SHARD_INTENTS
    shards.ensure(tx, "bench", manifest_id, shard)
    field_sums.recount(tx, manifest_id, ordinals)
    shards.recount(tx, manifest_id, [shard])


def _pages(intents: int) -> Iterator[range]:
    for first in range(0, intents, _PAGE):
        yield range(first, min(first + _PAGE, intents))


def _intent(
    chance: SystemChance, manifest_id: str, project_id: str, ordinal: int, intents: int, now: int
) -> dict[str, Any]:
    document, locale = f"guide/section-{ordinal // 5:06}.md", ("de", "fr", "ja", "he", "pt-BR")[ordinal % 5]
    ended = ordinal < intents * _ENDED
    state = "queued" if not ended else "failed" if ordinal % 50 == 0 else "completed"
    return {
        "id": chance.new_id(), "workspace": "bench", "manifest_id": manifest_id, "project_id": project_id,
        "shard": ordinal // SHARD_INTENTS, "ordinal": ordinal, "document": document, "locale": locale,
        "pair_hash": key_hash(document, locale), "state": state,
        "active_key": None if ended else key_hash(project_id, document, locale),
        "fields_total": 12, "via_ai": 9 if ended else 0, "via_memory": 3 if ended else 0,
        "error_code": "checks_failed" if state == "failed" else None, "created_at": now, "updated_at": now,
    }  # fmt: skip
