"""Who works what next: fair between workspaces, oldest first in each, nothing lost without its message."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from dragoman.content.locales import choose_code
from dragoman.kernel.clock import seconds
from dragoman.providers.chat import ChatProvider
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Tx
from tests.flow.engine.world import Life, Process, World, numbered, rehearsal, world

pytestmark = pytest.mark.anyio


async def _take(here: World) -> str:
    claimed = await Process(here).dispatch.take()
    return claimed.workspace if claimed else ""


async def test_a_small_workspace_does_not_wait_behind_a_large_one(database_url: str) -> None:
    """Claims go round the workspaces: one job behind fifty starts within one round."""
    async with world(database_url) as here:
        for _ in range(20):
            await here.accept({"a": {"t": "Hello"}}, workspace="large")
        assert [await _take(here) for _ in range(3)] == ["large"] * 3
        await here.accept({"a": {"t": "Hello"}}, workspace="small")
        await here.accept({"a": {"t": "Hello"}}, workspace="third")
        assert {await _take(here) for _ in range(2)} == {"small", "third"}
        assert [await _take(here) for _ in range(3)] == ["large"] * 3


async def test_workspaces_with_much_work_take_turns(database_url: str) -> None:
    """Nobody is served twice before everybody was served once."""
    async with world(database_url) as here:
        for workspace in ("a", "b", "c"):
            for _ in range(4):
                await here.accept({"a": {"t": "Hello"}}, workspace=workspace)
        turns = [await _take(here) for _ in range(12)]
        assert all(set(turns[start : start + 3]) == {"a", "b", "c"} for start in range(0, 12, 3))
        assert await _take(here) == ""


async def test_a_heavier_lane_is_served_more_often(sqlite_url: str) -> None:
    """Weighted: weight three has three turns to one."""
    async with world(sqlite_url) as here:
        for workspace in ("heavy", "light"):
            for _ in range(12):
                await here.accept({"a": {"t": "Hello"}}, workspace=workspace)
        await here.database.run(_weigh, "heavy", 3)
        turns = [await _take(here) for _ in range(12)]
        assert turns.count("heavy") in (8, 9, 10)


async def test_the_oldest_due_job_of_a_workspace_comes_first(database_url: str) -> None:
    """J-035: in order of their due times."""
    async with world(database_url) as here:
        jobs = [(await here.accept({"a": {"t": f"Hello {letter}"}})).job_id for letter in "abc"]
        taken = [claimed.job_id for _ in jobs if (claimed := await Process(here).dispatch.take())]
        assert taken == jobs


async def test_racing_workers_never_hold_one_job_twice(database_url: str) -> None:
    """J-035: every job is claimed once, and no worker stays idle while others wait."""
    async with world(database_url) as here:
        jobs = {(await here.accept({"a": {"t": "Hello"}})).job_id for _ in range(24)}
        taken = await asyncio.gather(*(_claim_all(here) for _ in range(6)))
        assert sorted(job for some in taken for job in some) == sorted(jobs)


async def _claim_all(here: World) -> list[str]:
    process = Process(here)
    taken: list[str] = []
    while (claimed := await process.dispatch.take()) is not None:
        taken.append(claimed.job_id)
    return taken


async def test_a_live_lease_is_left_alone_and_an_expired_one_is_taken(database_url: str) -> None:
    """J-035: `processing` with an expired lease is claimed again, under a higher fence."""
    async with world(database_url) as here:
        await here.accept({"a": {"t": "Hello"}})
        first = await Process(here).dispatch.take()
        assert first is not None
        assert await Process(here).dispatch.take() is None
        await here.abandon()
        second = await Process(here).dispatch.take()
        assert second is not None
        assert (second.job_id, second.fence) == (first.job_id, first.fence + 1)


async def test_a_lane_sleeps_until_its_next_work_is_due(database_url: str) -> None:
    """A lane without due work costs no look until then; new work wakes it at once."""
    async with world(database_url, rehearsal(script=["unreachable"])) as here:
        await here.accept({"a": {"t": "Hello"}})
        process = Process(here)
        assert await process.drain() == ["parked"]
        [lane] = await here.rows("lanes")
        [job] = await here.rows("jobs")
        assert lane.ready_at == job.next_attempt_at
        await here.accept({"a": {"t": "World"}})
        assert await process.drain() == ["completed"]


async def test_the_sweep_sends_lost_messages_again(sqlite_url: str) -> None:
    """J-029, M-231: a job that has been due for a minute is offered to the queue again, from its own row."""
    async with world(sqlite_url) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        job_id, _, _ = await here.queue.dequeue()
        assert job_id == accepted.job_id
        process = Process(here)
        assert await process.dispatch.sweep() == 0
        await here.database.run(_age, seconds(61))
        assert await process.dispatch.sweep() == 1
        job_id, _, _ = await asyncio.wait_for(here.queue.dequeue(), 5)
        assert job_id == accepted.job_id
        [row] = await here.rows("jobs")
        assert accepted.job_id in row.queue_payload


async def test_the_sweep_wakes_a_lane_that_sleeps_beside_work(sqlite_url: str) -> None:
    """Whatever put it to sleep: work that is due is found by state and time alone."""
    async with world(sqlite_url) as here:
        await here.accept({"a": {"t": "Hello"}})
        await here.database.run(_put_lanes_to_sleep)
        process = Process(here)
        assert await process.drain() == []
        await process.dispatch.sweep()
        assert await process.drain() == ["completed"]


async def test_a_worker_that_stops_gives_its_job_back_at_once(database_url: str) -> None:
    """No start is counted for released work, and the next worker need not wait for a lease."""
    provider = rehearsal(script=["late"], late_seconds=30.0)
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        process = Process(here)
        claimed = await process.dispatch.take()
        assert claimed is not None
        working = asyncio.create_task(process.translation.work(claimed))
        await here.until(lambda: len(provider.calls) == 1)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        [row] = await here.rows("jobs")
        assert (row.state, row.starts, row.lease_owner) == ("queued", 0, None)
        assert await Process(here).drain() == ["completed"]
        assert len(await here.texts(accepted.job_id)) == 1


async def test_an_unknown_provider_fails_the_job_without_a_call(sqlite_url: str) -> None:
    """J-039, J-065: what cannot be resolved any more ends the job with its reason."""
    async with world(sqlite_url) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        await here.database.run(_rename_provider)
        assert await Process(here).drain() == ["failed"]
        view = await here.view(accepted.job_id)
        assert (view["status"], view["code"]) == ("failed", "provider_unknown")
        assert [row.event for row in await here.rows("outbox")] == ["job.failed"]


async def test_a_provider_without_a_key_ends_the_job_at_once(sqlite_url: str) -> None:
    """GJ-6: `provider_credentials_missing` is mended by settings, not by waiting."""
    keyless = ChatProvider("chat", "m", "https://api.example.com/v1", lambda: None, choose_code, priced=True)
    async with world(sqlite_url, keyless) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["failed"]
        view = await here.view(accepted.job_id)
        assert (view["status"], view["code"]) == ("failed", "provider_credentials_missing")
        assert [row.state for row in await here.rows("effects")] == ["CANCELED"]
        await here.assert_money_is_true()


async def test_a_provider_that_stays_away_is_given_up_at_the_jobs_deadline(sqlite_url: str) -> None:
    """A day of bad weather: then the fields fail `provider_unavailable`, retryable by a person."""
    async with world(sqlite_url, rehearsal(weather={"unreachable": 1.0})) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["parked"]
        await here.database.run(_bring_deadline)
        await here.hasten()
        assert await Process(here).drain() == ["failed"]
        view = await here.view(accepted.job_id)
        assert (view["status"], view["code"]) == ("failed", "provider_unavailable")


async def test_a_job_shows_what_it_is_doing(sqlite_url: str) -> None:
    """[J-001..J-006, J-008, J-011..J-022, J-045, J-086]: and progress that a poll sees before the end."""
    async with world(sqlite_url) as here:
        options = {"batch_size": 2, "concurrency": 1, "push_id": "push-7"}
        accepted = await here.accept({"docs/a.md": numbered(6)}, options=options)
        queued = await here.view(accepted.job_id)
        assert (queued["status"], queued["progress"], queued["total_fields"]) == ("queued", 0, 6)
        assert (queued["item_name"], queued["target_locale"], queued["push_id"]) == (
            "docs/a.md",
            "fr",
            "push-7",
        )
        assert (queued["batch_size"], queued["concurrency"], queued["project"]) == (2, 1, "docs")
        assert (queued["job_id"], queued["workspace"], queued["model"]) == (
            accepted.job_id,
            "home",
            "rehearsal",
        )
        assert (queued["provider_config_id"], queued["code"], queued["tokens_used"]) == ("", "", 0)
        await Process(here, Life(after=("after close_call", 2))).drain_until_killed()
        halfway = await here.view(accepted.job_id)
        assert (halfway["status"], halfway["progress"], halfway["done_fields"]) == ("processing", 66, 4)
        assert halfway["created_at"] == queued["created_at"] < halfway["updated_at"]
        assert halfway["tokens_used"] == sum(row.total_tokens for row in await here.rows("ai_usage")) > 0
        await here.abandon()
        await Process(here).drain()
        ended = await here.view(accepted.job_id)
        assert (ended["status"], ended["progress"]) == ("completed", 100)
        assert ended["via_tm"] + ended["usage"]["via_ai"] == ended["done_fields"] == 6


def _bring_deadline(tx: Tx) -> None:
    tx.touched(sa.update(tables.jobs).values(deadline_at=tx.now + 1))


def _weigh(tx: Tx, workspace: str, weight: int) -> None:
    tx.touched(sa.update(tables.lanes).where(tables.lanes.c.workspace == workspace).values(weight=weight))


def _age(tx: Tx, microseconds: int) -> None:
    tx.touched(sa.update(tables.jobs).values(next_attempt_at=tx.now - microseconds))


def _put_lanes_to_sleep(tx: Tx) -> None:
    tx.touched(sa.update(tables.lanes).values(ready_at=None))


def _rename_provider(tx: Tx) -> None:
    [row] = tx.all(sa.select(tables.jobs.c.options))
    named = row.options.replace('"provider": ""', '"provider": "gone"')
    tx.touched(sa.update(tables.jobs).values(options=named))
