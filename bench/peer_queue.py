"""The peer: procrastinate drains jobs that do nothing, each claimed and finished durably on PostgreSQL.

As its own documentation runs it: psycopg, LISTEN/NOTIFY on, finished jobs kept. Starting up lies outside of
the time, as it does for our own side.
"""

from __future__ import annotations

import asyncio

from procrastinate import types

from bench.children import together
from bench.peer_worker import QUEUE, TASK, application
from bench.places import fresh

CONCURRENCY = 20
_BATCH = 1000


def drained_per_second(jobs: int, processes: int) -> float:
    """Jobs a second, from the first claim until every job is finished."""
    with fresh("postgresql") as url:
        asyncio.run(_fill(url, jobs))
        took = together("peer_worker", processes, url, CONCURRENCY)
        left = asyncio.run(_left(url))
    if left:
        raise RuntimeError(f"procrastinate left {left} jobs")
    return jobs / took


async def _fill(url: str, jobs: int) -> None:
    app = application(url)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for first in range(0, jobs, _BATCH):
            asked: list[types.JSONDict] = [{"number": number} for number in range(first, first + _BATCH)]
            await app.configure_task(TASK, queue=QUEUE).batch_defer_async(*asked)
        await app.connector.execute_query_async("ANALYZE procrastinate_jobs")


async def _left(url: str) -> int:
    app = application(url)
    async with app.open_async():
        row = await app.connector.execute_query_one_async(
            "SELECT count(*) AS left FROM procrastinate_jobs WHERE status <> 'succeeded'"
        )
    return int(row["left"])
