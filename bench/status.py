"""How long the status of a manifest of a million intents takes, against counting its intents anew.

The manifest is half-way: most intents have ended, were bought and published, some steps met conflicts, some
run. The peer is the cheapest honest recount: one aggregate over an index that holds all it needs, in the same
database, on the same connection. All that the status says is also counted anew, once, and must be the same.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from bench.measures import Spread, Table, ratio
from bench.places import fresh
from bench.status_rows import WORKSPACE, seed
from dragoman.flow.site.views import Views
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.limits import FAILURES_PAGE, SHARD_INTENTS
from dragoman.store.database import Database
from dragoman.store.schema import engine, publishing, site
from dragoman.store.transaction import Tx
from dragoman.wiring.sourcing import source_of

_DATABASES = ("sqlite", "postgresql", "mariadb")
_INTENTS = 1_000_000
_LOOKS = 50


def bench(runs: int, scale: float) -> list[Table]:
    """Medians of every run, ratios run by run."""
    intents = max(SHARD_INTENTS, round(_INTENTS * scale))
    rows = []
    for kind in _DATABASES:
        ours, cpu, recount = [], [], []
        with fresh(kind) as url:
            manifest_id = seed(url, intents)
            for _ in range(runs):
                looked, used, counted = asyncio.run(measured(url, manifest_id))
                ours.append(looked)
                cpu.append(used)
                recount.append(counted)
        status, peer = Spread(tuple(ours)), Spread(tuple(recount))
        spent = str(Spread(tuple(cpu)))
        rows.append((kind, f"{intents:,}", str(status), spent, str(peer), str(ratio(peer, status))))
    heads = (
        "database",
        "intents",
        "status, ms",
        "our CPU, ms",
        "recount over a covering index, ms",
        "× as fast",
    )
    note = (
        "The whole status: counters, fields, money, publication, health; equal to the recount in every run."
    )
    return [Table("The status of a large manifest", heads, rows, note)]


async def measured(url: str, manifest_id: str, looks: int = _LOOKS) -> tuple[float, float, float]:
    """Median milliseconds of a look, its CPU on our side, and those of a recount; they must say the same."""
    database = await Database.open(url, clock=SystemClock(), chance=SystemChance())
    try:
        views = Views(database, source_of)
        shown = await views.status(WORKSPACE, manifest_id)
        counted = await database.read(_recount, manifest_id)
        assert {name: shown["counts"][name] for name in counted} == counted, (shown, counted)
        await database.read(_refuse_other_sums, shown)
        before = time.process_time()
        took = [await _timed(views.status(WORKSPACE, manifest_id)) for _ in range(looks)]
        cpu = (time.process_time() - before) / looks * 1e3
        recounts = [await _timed(database.read(_recount, manifest_id)) for _ in range(max(3, looks // 10))]
        return statistics.median(took), cpu, statistics.median(recounts)
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


def _refuse_other_sums(tx: Tx, shown: Mapping[str, Any]) -> None:
    """A status that says other than all rows together has no speed."""
    intents, steps, usage = site.intents, publishing.publication_steps, engine.ai_usage
    mine = sa.and_(intents.c.manifest_id == shown["manifest_id"])
    fields = [sa.func.sum(intents.c[name]).label(name) for name in shown["fields"]]
    (counted,) = tx.all(sa.select(*fields).where(mine))
    assert shown["fields"] == counted._asdict(), (shown["fields"], counted)
    (paid,) = tx.all(sa.select(sa.func.sum(usage.c.total_tokens).label("tokens")))
    assert shown["cost"]["paid_tokens"] == paid.tokens, (shown["cost"], paid)
    by_state = sa.select(
        steps.c.state, sa.func.count().label("number"), sa.func.sum(steps.c.units_written).label("written")
    ).group_by(steps.c.state)
    rows = tx.all(by_state)
    stand = shown["publication"]
    assert stand["steps"] == {row.state.lower(): row.number for row in rows}, (stand, rows)
    assert stand["written"] == sum(row.written for row in rows), (stand, rows)
    assert len(stand["problems"]) == FAILURES_PAGE, stand
