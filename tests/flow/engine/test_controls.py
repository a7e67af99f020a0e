"""Pause, go on and cancel cross the contract: no attempt starts after the engine has said yes."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.kernel.errors import CallerError
from dragoman.model.jobs import Control
from dragoman.model.scopes import Workspace
from dragoman.store.acts import controlling
from tests.flow.engine.world import HOME, Process, Stalled, accepted_calls, numbered, rehearsal, world

pytestmark = pytest.mark.anyio


async def test_nothing_starts_while_a_client_job_is_paused(database_url: str) -> None:
    """Present and future jobs wait without a due time; going on makes them due at once."""
    provider = rehearsal()
    async with world(database_url, provider) as here:
        present = await here.accept({"a": {"t": "Hello"}})
        assert (await here.put(revision=1, paused=True))["applied"]
        future = await here.accept({"a": {"t": "World"}})
        assert await Process(here).drain() == []
        assert (await Process(here).dispatch.sweep(), provider.calls) == (0, [])
        assert (await here.put(revision=2, paused=False))["applied"]
        assert await Process(here).drain() == ["completed", "completed"]
        assert (await here.view(present.job_id))["status"] == "completed"
        assert (await here.view(future.job_id))["status"] == "completed"


async def test_a_running_job_starts_no_call_after_the_pause_was_acknowledged(database_url: str) -> None:
    """Attempts in flight end and are kept; the rest waits."""
    slow = Stalled()
    async with world(database_url, slow) as here:
        options = {"batch_size": 1, "concurrency": 1}
        accepted = await here.accept({"a": numbered(3)}, options=options)
        process = Process(here)
        working = asyncio.create_task(process.drain())
        await here.until(lambda: len(slow.calls) == 1)
        await here.put(revision=1, paused=True)
        slow.release.set()
        assert await working == ["parked"]
        assert accepted_calls(slow) == 1
        view = await here.view(accepted.job_id)
        assert (view["status"], view["done_fields"]) == ("queued", 1)
        await here.put(revision=2, paused=False)
        await Process(here).drain()
        assert accepted_calls(slow) == 3
        assert len(await here.texts(accepted.job_id)) == 3


async def test_a_lower_or_equal_revision_is_ignored(database_url: str) -> None:
    """Idempotent, and in whatever order they arrive."""
    async with world(database_url) as here:
        assert (await here.put(revision=3, paused=True))["applied"]
        assert not (await here.put(revision=3, paused=False))["applied"]
        assert not (await here.put(revision=2, paused=False))["applied"]
        [control] = await here.rows("controls")
        assert (control.revision, control.paused) == (3, True)


async def test_a_canceled_client_job_ends_all_its_jobs_each_with_one_event(database_url: str) -> None:
    """Queued ones end at once, later ones when they are taken; done work stays in the memory."""
    provider = rehearsal()
    async with world(database_url, provider) as here:
        jobs = [await here.accept({"a": {"t": f"Hello {letter} you"}}) for letter in "abc"]
        await here.put(revision=1, canceled=True)
        later = await here.accept({"a": {"t": "Later"}})
        assert await Process(here).drain() == ["canceled"]
        for job in (*jobs, later):
            view = await here.view(job.job_id)
            assert view["status"] == "canceled"
            assert [item["code"] for item in view["items"]] == ["canceled"]
        assert [row.event for row in await here.rows("outbox")] == ["job.canceled"] * 4
        assert provider.calls == []


async def test_a_running_job_that_is_canceled_keeps_what_was_paid_for(database_url: str) -> None:
    """J-088: no further call; the answer in flight is stored, and the memory has it."""
    slow = Stalled()
    async with world(database_url, slow) as here:
        options = {"batch_size": 1, "concurrency": 1}
        accepted = await here.accept({"a": numbered(3)}, options=options)
        working = asyncio.create_task(Process(here).drain())
        await here.until(lambda: len(slow.calls) == 1)
        view = await here.controls.cancel(HOME, accepted.job_id, "ada")
        assert view["status"] == "processing"
        slow.release.set()
        assert await working == ["canceled"]
        assert accepted_calls(slow) == 1
        assert len(await here.texts(accepted.job_id)) == 1
        assert {failed["code"] for failed in (await here.failures(accepted.job_id)).values()} == {"canceled"}
        assert len(await here.rows("memory")) == 1
        [audit] = await here.rows("history")
        assert (audit.action, audit.actor, audit.subject) == ("cancel_job", "ada", accepted.job_id)


async def test_an_ended_job_stays_as_it_is_when_it_is_canceled(database_url: str) -> None:
    """J-088: a terminal one answers unchanged, and no second event is made."""
    async with world(database_url) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        await Process(here).drain()
        before = await here.view(accepted.job_id)
        assert await here.controls.cancel(HOME, accepted.job_id, "ada") == before
        assert len(await here.rows("outbox")) == 1


async def test_another_workspaces_job_is_not_found(sqlite_url: str) -> None:
    """Law 11: seen, canceled and read by nobody else."""
    async with world(sqlite_url) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        foreign = Workspace("elsewhere")
        for asked in (here.jobs.get, here.jobs.items):
            with pytest.raises(CallerError, match="no "):
                await asked(foreign, accepted.job_id)
        with pytest.raises(CallerError) as refused:
            await here.controls.cancel(foreign, accepted.job_id, "eve")
        assert refused.value.code == "not_found"
        assert (await here.jobs.recent(foreign))["jobs"] == []


async def test_the_sweep_carries_out_a_decision_that_was_only_written_down(sqlite_url: str) -> None:
    """The process died between the control and the jobs: what it woke for comes due all the same."""
    async with world(sqlite_url) as here:
        await here.put(revision=1, paused=True)
        await here.accept({"a": {"t": "Hello"}})
        go_on = Control(2, False, False, "", None, None)
        await here.database.run(controlling.put_control, HOME, "manifest-1", go_on)
        process = Process(here)
        assert await process.drain() == []
        assert await process.dispatch.sweep() == 1
        assert await process.drain() == ["completed"]


async def test_a_race_of_finish_and_cancel_leaves_one_end(database_url: str) -> None:
    """M-234: only one terminal state wins, with one event."""
    async with world(database_url) as here:
        for _ in range(5):
            await here.accept({"a": {"t": "Hello"}})
        jobs = [row.id for row in await here.rows("jobs")]
        await asyncio.gather(
            Process(here).drain(),
            *(here.controls.cancel(HOME, job_id, "ada") for job_id in jobs),
        )
        await Process(here).drain()
        events = await here.rows("outbox")
        assert sorted(event.job_id for event in events) == sorted(jobs)
        assert {row.state for row in await here.rows("jobs")} <= {"completed", "canceled"}


async def test_the_recent_jobs_are_listed_newest_first_by_pages(sqlite_url: str) -> None:
    """J-087: with a cursor for older ones."""
    async with world(sqlite_url) as here:
        made = [(await here.accept({"a": {"t": "Hello"}})).job_id for _ in range(5)]
        first = await here.jobs.recent(HOME, limit=3)
        second = await here.jobs.recent(HOME, first["next_cursor"], limit=3)
        listed = [job["job_id"] for job in [*first["jobs"], *second["jobs"]]]
        assert listed == made[::-1]
        assert second["next_cursor"] == ""
