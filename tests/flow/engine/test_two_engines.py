"""Two engines, one database server and one queue server: every job once, whatever the queue repeats."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from dragoman.kernel.identity import SystemChance
from dragoman.queues.sqs import SqsQueue
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx
from dragoman.wiring.rounds import opened
from dragoman.wiring.services import Services
from dragoman.wiring.settings import ProviderSettings, Settings
from tests.doubles.chat_server import ChatServer, Script
from tests.flow.engine.world import submission

pytestmark = pytest.mark.anyio

JOBS = 60


async def test_every_job_is_done_once_although_each_message_comes_twice(
    server_url: str, sqs_endpoint: str, tmp_path: Path
) -> None:
    """[J-030, J-031, J-035] Both work, no job is claimed twice, no text is asked for twice, and in the end
    the queue is empty.
    """
    async with ChatServer(Script(seconds=0.02)) as double:
        settings = _settings(server_url, sqs_endpoint, tmp_path, double.url)
        async with opened(settings, ("engine",)) as one, opened(settings, ("engine",)) as two:
            await asyncio.gather(*(_accept((one, two)[number % 2], number) for number in range(JOBS)))
            rows = await _ended(one)
            assert isinstance(one.queue, SqsQueue)
            async with asyncio.timeout(60):
                while await one.queue.depth():
                    await asyncio.sleep(0.05)
        assert {row.state for row in rows} == {"completed"}
        assert {row.fence for row in rows} == {1}
        texts = sorted(text for call in double.calls for text in call.texts)
        assert texts == sorted(f"Text {number}" for number in range(JOBS))


def _settings(url: str, endpoint: str, folder: Path, base_url: str) -> Settings:
    hired = ProviderSettings(protocol="chat", model="test", base_url=base_url, priced=False)
    return Settings(
        database_url=url,
        root=folder,
        state_folder=folder / ".dragoman",
        provider="hired",
        providers={"hired": hired},
        queue="sqs",
        sqs_endpoint=endpoint,
        sqs_poll_seconds=1,
        sqs_queue_prefix=f"two-engines-{SystemChance().token(8)}-",
    )


async def _accept(services: Services, number: int) -> None:
    body = submission({"a": {"t": f"Text {number}"}}, callbackUrl="")
    accepted = await services.acceptance.accept("ada", "default", "docs", body)
    await services.queue.enqueue(accepted.job_id)  # the second message


async def _ended(services: Services) -> Sequence[Row]:
    """The jobs, once all have ended and both engines have let go of what they heard."""
    async with asyncio.timeout(60):
        while True:
            rows = await services.database.read(_jobs)
            if all(row.state not in ("queued", "processing") for row in rows):
                return rows
            await asyncio.sleep(0.05)


def _jobs(tx: Tx) -> list[Row]:
    return tx.all(sa.select(tables.jobs.c.state, tables.jobs.c.fence))
