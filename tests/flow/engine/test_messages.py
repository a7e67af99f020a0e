"""Messages of the queue beside the database that decides: kept while their job waits or is worked,
acknowledged without work where nobody waits for it, and never the only way to a job.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import sqlalchemy as sa

from dragoman.flow.engine.dispatch import Dispatch
from dragoman.kernel.clock import seconds
from dragoman.kernel.errors import QueueError, StoreError
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.limits import QUEUE_LOST_SECONDS
from dragoman.model.scopes import System
from dragoman.queues.sqs import SqsQueue
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Tx
from tests.doubles.sqs import FakeSqs
from tests.flow.engine.world import Process, World, world

pytestmark = pytest.mark.anyio


class Desk:
    """One engine process on a queue of a server."""

    def __init__(self, here: World, server: FakeSqs, held_max: int = 4) -> None:
        self.server = server
        self.queue = SqsQueue(server.connect, "jobs", SystemChance(), poll_seconds=1)
        self.process = Process(here)
        self.dispatch = Dispatch(
            self.process.database, self.queue, self.process.keeper, System(), held_max=held_max
        )

    def deleted(self) -> int:
        return sum(self.server.counted("delete_message_batch"))


@asynccontextmanager
async def desk(here: World, **more: int) -> AsyncIterator[Desk]:
    made = Desk(here, FakeSqs(), **more)
    yield made
    await made.queue.close()


async def _accept(here: World, text: str = "Hello") -> str:
    return (await here.accept({"a": {"t": text}})).job_id


async def test_a_message_is_acknowledged_after_its_job_is_settled(database_url: str) -> None:
    """[J-026, J-049] Never before: until then it is ours, and would come again if we died."""
    async with world(database_url) as here, desk(here) as at:
        job_id = await _accept(here)
        await at.queue.enqueue(job_id)
        assert await at.dispatch.listen()
        claimed = await at.dispatch.take()
        assert claimed is not None
        assert await at.process.translation.work(claimed) == "completed"
        assert (at.deleted(), at.server.waiting(), at.server.visible()) == (0, 1, 0)
        await at.dispatch.settle(claimed.job_id, True)
        assert (at.deleted(), at.server.waiting()) == (1, 0)


async def test_what_was_not_brought_to_an_end_is_given_back(sqlite_url: str) -> None:
    """[J-027] Visible to others at once."""
    async with world(sqlite_url) as here, desk(here) as at:
        job_id = await _accept(here)
        await at.queue.enqueue(job_id)
        await at.dispatch.listen()
        claimed = await at.dispatch.take()
        assert claimed is not None
        await at.dispatch.settle(claimed.job_id, False)
        assert (at.server.waiting(), at.server.visible()) == (1, 1)


async def test_messages_of_ended_live_and_unknown_jobs_are_acknowledged_without_work(
    database_url: str,
) -> None:
    """[J-034, J-035] A duplicate of a job that has ended, that another process has, or that nobody knows."""
    async with world(database_url) as here, desk(here) as at:
        ended = await _accept(here, "Done")
        assert await Process(here).drain() == ["completed"]
        live = await _accept(here, "Live")
        assert await Process(here).dispatch.take() is not None
        for job_id in (ended, live, SystemChance().new_id(), ""):
            await at.queue.enqueue(job_id)
            assert not await at.dispatch.listen()
        assert (at.deleted(), at.server.waiting()) == (4, 0)
        assert [row.fence for row in await here.rows("jobs")] == [1, 1]


async def test_a_job_whose_worker_vanished_is_worth_a_message(database_url: str) -> None:
    """[J-035] Its lease has run out: it waits for somebody."""
    async with world(database_url) as here, desk(here) as at:
        job_id = await _accept(here)
        await Process(here).dispatch.take()
        await here.abandon()
        await at.queue.enqueue(job_id)
        assert await at.dispatch.listen()
        claimed = await at.dispatch.take()
        assert claimed is not None
        assert claimed.job_id == job_id


async def test_what_another_process_took_meanwhile_is_let_go_by_the_sweep(sqlite_url: str) -> None:
    """The message led nowhere here: it is acknowledged, and makes room for the next one."""
    async with world(sqlite_url) as here, desk(here, held_max=1) as at:
        await at.queue.enqueue(await _accept(here))
        assert await at.dispatch.listen()
        await at.queue.enqueue(await _accept(here, "World"))
        crowded = asyncio.create_task(at.dispatch.listen())
        assert await Process(here).drain() == ["completed", "completed"]
        await asyncio.sleep(0)
        assert not crowded.done(), "a process keeps no more messages than it can work jobs"
        await at.dispatch.sweep()
        assert not await crowded
        assert at.server.waiting() == 0


async def test_the_sweep_leaves_messages_of_jobs_that_are_worked_here(sqlite_url: str) -> None:
    """They come again if this process dies."""
    async with world(sqlite_url) as here, desk(here) as at:
        await at.queue.enqueue(await _accept(here))
        await at.dispatch.listen()
        await at.dispatch.take()
        await at.dispatch.sweep()
        assert (at.deleted(), at.server.waiting()) == (0, 1)


async def test_a_message_goes_back_when_the_database_cannot_be_asked(sqlite_url: str) -> None:
    """Whoever can ask it takes the message."""

    class Gone:
        async def read(self, *_: object) -> None:
            raise StoreError("gone")

    async with world(sqlite_url) as here, desk(here) as at:
        await at.queue.enqueue(await _accept(here))
        at.dispatch._database = Gone()  # type: ignore[assignment]
        with pytest.raises(StoreError):
            await at.dispatch.listen()
        assert at.server.visible() == 1


async def test_the_sweep_sends_overdue_and_abandoned_jobs_once_a_minute(database_url: str) -> None:
    """[J-029, M-231] A backlog that nobody has time for must not grow in the queue as well."""
    async with world(database_url) as here, desk(here) as at:
        await _accept(here, "Vanished")
        await Process(here).dispatch.take()
        await here.abandon()
        for text in ("Late", "Later"):
            await _accept(here, text)
        await here.database.run(_age, seconds(QUEUE_LOST_SECONDS + 1))
        assert [await at.dispatch.sweep() for _ in range(3)] == [3, 0, 0]
        assert at.server.waiting() == 3
        assert at.server.counted("send_message_batch") == [3]
        at.dispatch._sent = dict.fromkeys(at.dispatch._sent, here.database.now() - seconds(61))
        assert await at.dispatch.sweep() == 3


async def test_the_sweep_goes_on_beside_a_queue_that_is_down(sqlite_url: str) -> None:
    """[M-349] The poll finds the work; the provider is called once."""
    async with world(sqlite_url) as here, desk(here) as at:
        at.server.down = True
        with pytest.raises(QueueError):
            await at.queue.enqueue("a")
        await _accept(here)
        await here.database.run(_age, seconds(QUEUE_LOST_SECONDS + 1))
        await at.dispatch.sweep()
        assert await at.process.drain() == ["completed"]
        assert len(await here.rows("attempts")) == 1


def _age(tx: Tx, microseconds: int) -> None:
    queued = tables.jobs.c.state == "queued"
    tx.touched(sa.update(tables.jobs).where(queued).values(next_attempt_at=tx.now - microseconds))
