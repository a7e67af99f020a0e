"""A worker dies at any moment: before or after any transaction, on the way out or back of any call."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.flow.engine.world import Life, Process, Stalled, World, accepted_calls, numbered, rehearsal, world

pytestmark = pytest.mark.anyio

TEXTS, SIZE = 12, 5
CALLS = 3
MOMENTS_AT_LEAST = 30


async def _accept(here: World) -> str:
    options = {"batch_size": SIZE, "concurrency": 1}  # so that each call has moments of its own
    accepted = await here.accept({"a": numbered(TEXTS)}, options=options)
    return accepted.job_id


async def _moments(url: str) -> list[str]:
    """The moments of an undisturbed run."""
    async with world(url, rehearsal()) as here:
        await _accept(here)
        process = Process(here)
        await process.drain()
        return process.life.names


async def _assert_it_converged(here: World, job_id: str, name: str) -> None:
    view = await here.view(job_id)
    assert view["status"] == "completed", name
    assert len(await here.texts(job_id)) == TEXTS, name
    assert view["usage"]["via_ai"] == TEXTS, name
    [event] = await here.rows("outbox")
    assert event.event == "job.completed", name
    assert all(call.state == "closed" and call.request is None for call in await here.rows("calls")), name
    await here.assert_money_is_true()


@pytest.mark.parametrize("microusd", [0, 2], ids=["unpriced", "priced"])
async def test_every_moment_can_be_the_last_of_a_worker(
    sqlite_url: str, tmp_path: Path, microusd: int
) -> None:
    """J-046, M-231, the crash boundaries: whoever takes over finishes the job; each repeat is on record."""
    empty, fresh = tmp_path / "empty", Path(sqlite_url.removeprefix("sqlite:///"))
    shutil.copy(fresh, empty)
    moments = await _moments(sqlite_url)
    assert len(moments) >= MOMENTS_AT_LEAST
    for moment, name in enumerate(moments, 1):
        path = shutil.copy(empty, tmp_path / f"{moment}.db")
        provider = rehearsal(microusd_per_token=microusd)
        async with world(f"sqlite:///{path}", provider) as here:
            job_id = await _accept(here)
            await Process(here, Life(moment)).drain_until_killed()
            await here.abandon()
            await Process(here).drain()
            await _assert_it_converged(here, job_id, name)
            attempts = await here.rows("attempts")
            lost = [row for row in attempts if row.outcome == "CONNECTION_UNKNOWN"]
            assert len(attempts) == CALLS + len(lost), name
            assert {call.attempt_id for call in provider.calls} <= {row.id for row in attempts}, name
            approved = await here.rows("approvals")
            assert len(approved) == (len(lost) if microusd else 0), name
            at_risk = (await here.view(job_id))["usage"]["at_risk"]["tokens"]
            assert at_risk == sum(row.reserved_tokens for row in lost), name


@pytest.mark.parametrize("microusd", [0, 2], ids=["unpriced", "priced"])
async def test_a_kill_after_the_commit_of_a_chunk_repeats_no_call(database_url: str, microusd: int) -> None:
    """T12 (b), J-046: four chunks of five, killed once the second is stored: exactly four calls in all."""
    provider = rehearsal(microusd_per_token=microusd)
    async with world(database_url, provider) as here:
        options = {"batch_size": 5, "concurrency": 1}
        accepted = await here.accept({"a": numbered(20)}, options=options)
        await Process(here, Life(after=("after close_call", 2))).drain_until_killed()
        assert accepted_calls(provider) == 2
        await here.abandon()
        assert await Process(here).drain() == ["completed"]
        assert accepted_calls(provider) == 4
        assert len(await here.texts(accepted.job_id)) == 20
        assert len(await here.rows("ai_usage")) == 4
        await here.assert_money_is_true()


@pytest.mark.parametrize("microusd", [0, 2], ids=["unpriced", "priced"])
async def test_a_kill_before_an_answer_is_stored_repeats_one_call_and_says_so(
    database_url: str, microusd: int
) -> None:
    """T12 (a): the second answer is lost with its worker: one repeat, under an approval if priced."""
    provider = rehearsal(microusd_per_token=microusd)
    async with world(database_url, provider) as here:
        options = {"batch_size": 5, "concurrency": 1}
        accepted = await here.accept({"a": numbered(20)}, options=options)
        await Process(here, Life(after=("after send", 2))).drain_until_killed()
        await here.abandon()
        assert await Process(here).drain() == ["completed"]
        assert accepted_calls(provider) == 5
        assert len(await here.texts(accepted.job_id)) == 20
        lost = [row for row in await here.rows("attempts") if row.outcome == "CONNECTION_UNKNOWN"]
        assert len(lost) == 1
        assert len(await here.rows("approvals")) == (1 if microusd else 0)
        assert len(await here.rows("ai_usage")) == 4
        await here.assert_money_is_true()


async def test_a_job_that_kills_its_workers_is_quarantined_after_five_starts(database_url: str) -> None:
    """A poison job ends `gave_up`, with its event; a start counts only when its worker vanished."""
    provider = rehearsal()
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Poison"}})
        for _ in range(6):
            await Process(here, Life(after=("after load_job", 1))).drain_until_killed()
            await here.abandon()
        assert await Process(here).drain() == []
        view = await here.view(accepted.job_id)
        assert (view["status"], view["code"]) == ("failed", "gave_up")
        assert [row.event for row in await here.rows("outbox")] == ["job.failed"]
        assert provider.calls == []


async def test_progress_forgives_the_starts_before_it(sqlite_url: str) -> None:
    """A job that gets on at each start is no poison, however often its workers are killed."""
    async with world(sqlite_url, rehearsal()) as here:
        options = {"batch_size": 1, "concurrency": 1}
        accepted = await here.accept({"a": numbered(9)}, options=options)
        for _ in range(8):
            await Process(here, Life(after=("after close_call", 1))).drain_until_killed()
            await here.abandon()
        assert await Process(here).drain() == ["completed"]
        assert len(await here.texts(accepted.job_id)) == 9


async def test_a_stale_worker_writes_nothing_but_its_paid_answer(database_url: str) -> None:
    """A worker that slept past its lease: its answer is booked as late and wasted, its result refused."""
    slow = Stalled(microusd_per_token=1)
    async with world(database_url, slow) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        sleeper = Process(here)
        claimed = await sleeper.dispatch.take()
        assert claimed is not None
        working = asyncio.create_task(sleeper.translation.work(claimed))
        await here.until(lambda: len(slow.calls) == 1)
        await here.abandon()
        assert await Process(here).drain() == ["completed"]
        slow.release.set()
        assert await working == "lost"
        outcomes = sorted(row.outcome for row in await here.rows("attempts"))
        assert outcomes == ["ACCEPTED_LATE", "SUCCEEDED"]
        usage = (await here.view(accepted.job_id))["usage"]
        used = await here.rows("ai_usage")
        assert [row.wasted for row in sorted(used, key=lambda row: row.wasted)] == [False, True]
        assert usage["via_ai"] == 1
        assert len(await here.rows("outbox")) == 1
        await here.assert_money_is_true()
