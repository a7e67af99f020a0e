"""A quarantined job, tried again by a person's word: case F8."""

from __future__ import annotations

import json

import pytest

from dragoman.kernel.errors import CallerError
from dragoman.model.scopes import Workspace
from dragoman.store.acts import finishing, redriving
from tests.flow.engine.world import HOME, Life, Process, World, accepted_calls, rehearsal, world

pytestmark = pytest.mark.anyio


async def _poison(here: World, starts: int = 6) -> None:
    """Every worker that takes the job dies of it."""
    for _ in range(starts):
        await Process(here, Life(after=("after load_job", 1))).drain_until_killed()
        await here.abandon()


async def test_a_quarantined_job_is_redriven_with_a_new_budget_of_starts(database_url: str) -> None:
    """F8: the same id, five new starts, an entry in the audit, and a second event with the next sequence."""
    async with world(database_url) as here:
        accepted = await here.accept({"a": {"t": "Hello", "u": "World"}})
        await _poison(here)
        assert (await here.view(accepted.job_id))["code"] == "gave_up"
        await here.database.run(redriving.redrive_job, HOME, accepted.job_id, "olga")
        queued = await here.view(accepted.job_id)
        assert (queued["status"], queued["code"], queued["failed_fields"]) == ("queued", "", 0)
        await _poison(here, 4)  # so many it may lose again
        assert await Process(here).drain() == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello", "u": "fr World"}
        events = [json.loads(bytes(row.payload)) for row in await here.rows("outbox")]
        told = sorted((event["event_sequence"], event["status"]) for event in events)
        assert told == [(1, "failed"), (2, "completed")]
        assert {event["job_id"] for event in events} == {accepted.job_id}
        await here.assert_money_is_true()


async def test_a_redriven_poison_job_ends_in_quarantine_again(sqlite_url: str) -> None:
    async with world(sqlite_url) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        for _ in range(2):
            await _poison(here)
            view = await here.view(accepted.job_id)
            assert (view["status"], view["code"]) == ("failed", "gave_up")
            await here.database.run(redriving.redrive_job, HOME, accepted.job_id, "olga")
        [row] = await here.rows("jobs")
        assert row.starts == 0


async def test_others_go_on_beside_a_poison_job(sqlite_url: str) -> None:
    """F8: what kills its workers is quarantined, and nothing else of the workspace is."""
    async with world(sqlite_url) as here:
        await here.accept({"a": {"t": "Poison"}})
        await _poison(here, 3)
        well = await here.accept({"a": {"t": "Hello"}})
        await Process(here).drain()
        assert (await here.view(well.job_id))["status"] == "completed"


async def test_only_quarantine_is_left_by_a_redrive(sqlite_url: str) -> None:
    """Not a job that waits, not one that ended otherwise, and nobody else's."""
    async with world(sqlite_url, rehearsal()) as here:
        waiting = await here.accept({"a": {"t": "Hello"}})
        with pytest.raises(CallerError) as refused:
            await here.database.run(redriving.redrive_job, HOME, waiting.job_id, "olga")
        assert refused.value.code == "nothing_to_retry"
        await here.database.run(finishing.cancel_job, HOME, waiting.job_id, "olga")
        with pytest.raises(CallerError):
            await here.database.run(redriving.redrive_job, HOME, waiting.job_id, "olga")
        poison = await here.accept({"a": {"t": "World"}})
        await _poison(here)
        with pytest.raises(CallerError) as foreign:
            await here.database.run(redriving.redrive_job, Workspace("other"), poison.job_id, "olga")
        assert foreign.value.code == "not_found"


async def _lose_workers(here: World, point: str, times: int = 5) -> None:
    """The first worker vanishes with a paid answer, the others when they come to a point."""
    for after in (("after send", 1), *[(point, 1)] * (times - 1)):
        await Process(here, Life(after=after)).drain_until_killed()
        await here.abandon()


@pytest.mark.parametrize("askable", [True, False])
async def test_what_a_poison_job_has_paid_is_asked_about_before_it_ends(
    database_url: str, askable: bool
) -> None:
    """The sixth worker only looks: what is found is taken, and what nobody can tell stays unknown."""
    provider = rehearsal(microusd_per_token=3, askable=askable)
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        await _lose_workers(here, "after load_job")
        assert await Process(here).drain() == ["completed" if askable else "failed"]
        assert (await here.view(accepted.job_id))["code"] == ("" if askable else "gave_up")
        assert accepted_calls(provider) == 1
        [call] = await here.rows("calls")
        assert call.state == ("closed" if askable else "open")
        await here.assert_money_is_true()


async def test_a_poison_job_whose_last_worker_vanishes_as_well_ends_unasked(sqlite_url: str) -> None:
    """If it is the asking that kills, it is done once more and not for ever; the call waits for a redrive."""
    provider = rehearsal(microusd_per_token=3, askable=True)
    async with world(sqlite_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        await _lose_workers(here, "before ask", 6)
        seventh = Process(here)
        assert await seventh.drain() == ["failed"]
        assert "before ask" not in seventh.life.names
        await here.database.run(redriving.redrive_job, HOME, accepted.job_id, "olga")
        assert await Process(here).drain() == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}
        assert accepted_calls(provider) == 1
        await here.assert_money_is_true()


async def test_a_redriven_job_takes_the_answer_that_nobody_had_judged(sqlite_url: str) -> None:
    provider = rehearsal(microusd_per_token=3)
    async with world(sqlite_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        for _ in range(5):
            await Process(here, Life(after=("before close_call", 1))).drain_until_killed()
            await here.abandon()
        assert await Process(here).drain() == ["failed"]
        await here.database.run(redriving.redrive_job, HOME, accepted.job_id, "olga")
        assert await Process(here).drain() == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}
        assert accepted_calls(provider) == 1
        await here.assert_money_is_true()


async def test_a_redriven_job_buys_nothing_anew_that_is_unknown(database_url: str) -> None:
    """The policy for unknown calls holds for it, too: where nothing may be paid twice, the call is held."""
    provider = rehearsal(microusd_per_token=3)
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        await _lose_workers(here, "after load_job")
        assert await Process(here).drain() == ["failed"]
        await here.database.run(redriving.redrive_job, HOME, accepted.job_id, "olga")
        assert await Process(here).drain() == ["parked"]
        assert (await here.view(accepted.job_id))["parked_for"] == "unknown"
        assert [row.state for row in await here.rows("calls")] == ["held"]
        assert accepted_calls(provider) == 1
        await here.assert_money_is_true()
