"""Lost answers: asked about first, paid for again within a bound, else held; late ones are not forgotten."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.kernel.limits import RESEND_CALLS_MIN
from tests.flow.engine.world import (
    HOME,
    Hurried,
    Process,
    Stalled,
    World,
    accepted_calls,
    numbered,
    rehearsal,
    world,
)

pytestmark = pytest.mark.anyio


async def _parked(here: World, job_id: str) -> str:
    view = await here.view(job_id)
    assert view["status"] == "queued"
    return str(view["parked_for"])


async def test_a_lost_answer_of_a_free_provider_is_asked_for_again_after_a_while(database_url: str) -> None:
    """Unpriced is PROVIDER_IDEMPOTENT: the same bytes again by the retry rule, no approval, nothing held."""
    provider = rehearsal(script=["lost", "answer"])
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["parked"]
        assert await _parked(here, accepted.job_id) == "provider"
        [call] = await here.rows("calls")
        assert call.next_attempt_at is not None
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert [call.body for call in provider.calls] == [provider.calls[0].body] * 2
        assert await here.rows("approvals") == []
        assert [row.state for row in await here.rows("effects")] == ["SUCCEEDED"]


async def test_a_lost_answer_that_was_paid_is_bought_once_more_and_shown_at_risk(database_url: str) -> None:
    """The default: one resend a call, under an approval of the policy; the lost one stays reserved."""
    provider = rehearsal(script=["lost", "answer"], microusd_per_token=3)
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["parked"]
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        [approval] = await here.rows("approvals")
        assert (approval.kind, approval.by) == ("policy:resend", "policy")
        assert approval.used_at is not None
        lost, sent = sorted(await here.rows("attempts"), key=lambda row: row.number)
        assert (lost.outcome, sent.outcome, sent.resend) == ("CONNECTION_UNKNOWN", "SUCCEEDED", True)
        usage = (await here.view(accepted.job_id))["usage"]
        assert usage["at_risk"] == {"tokens": lost.reserved_tokens, "microusd": lost.reserved_microusd}
        await here.assert_money_is_true()


async def test_a_call_that_is_lost_twice_is_held(database_url: str) -> None:
    """Each lost call once more at most: then the job waits for a person, and its fields stay open."""
    provider = rehearsal(script=["lost", "answer", "lost"], microusd_per_token=3)
    async with world(database_url, provider) as here:
        options = {"batch_size": 1, "concurrency": 1}
        accepted = await here.accept({"a": {"t": "Hello", "u": "World"}}, options=options)
        await Process(here).drain()
        await here.hasten()
        await Process(here).drain()
        await here.hasten()
        assert await Process(here).drain() == ["parked"]
        assert await _parked(here, accepted.job_id) == "unknown"
        assert (await here.view(accepted.job_id))["next_attempt_at"] is None
        assert sorted(row.state for row in await here.rows("calls")) == ["closed", "held"]
        [held] = await here.jobs.held(HOME, "manifest-1")
        assert (held["job_id"], held["fields"]) == (accepted.job_id, 1)
        usage = (await here.view(accepted.job_id))["usage"]
        assert held["at_risk"] == usage["at_risk"] != {"tokens": 0, "microusd": 0}
        await here.hasten()
        assert await Process(here).drain() == []
        assert accepted_calls(provider) == 3
        assert await here.rows("outbox") == []
        await here.assert_money_is_true()


async def test_a_person_lets_a_held_call_go(database_url: str) -> None:
    """The release is an approval that is used once, and is audited; a second loss holds again."""
    provider = rehearsal(script=["lost", "lost", "answer"], microusd_per_token=3)
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        await Process(here).drain()
        await here.hasten()
        assert await Process(here).drain() == ["parked"]
        assert await _parked(here, accepted.job_id) == "unknown"
        assert await here.controls.release(HOME, "manifest-1", "ada", "looked at the bill") == 1
        assert await Process(here).drain() == ["parked"]
        await here.hasten()
        assert await Process(here).drain() == ["parked"]
        assert await _parked(here, accepted.job_id) == "unknown"
        assert await here.controls.release(HOME, "manifest-1", "ada", "again") == 1
        assert await Process(here).drain() == ["completed"]
        assert [row.kind for row in await here.rows("approvals")] == ["retry", "retry"]
        assert all(row.used_at for row in await here.rows("approvals"))
        assert [row.action for row in await here.rows("history")] == ["release_held_calls"] * 2


async def test_unlimited_money_lets_held_calls_go_and_holds_no_more(database_url: str) -> None:
    """`--on-unknown resend:unlimited` lifts the bound for present and later losses."""
    provider = rehearsal(script=["lost", "lost", "lost", "answer"], microusd_per_token=3)
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        for _ in range(3):
            await Process(here).drain()
            await here.hasten()
        assert await _parked(here, accepted.job_id) == "unknown"
        await here.put(revision=1, on_unknown="resend:unlimited")
        assert await Process(here).drain() == ["parked"]
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert accepted_calls(provider) == 4
        assert (await here.view(accepted.job_id))["usage"]["via_ai"] == 1
        await here.assert_money_is_true()


async def test_resends_of_a_client_job_stay_within_its_bound(database_url: str) -> None:
    """The larger of twenty calls and five per cent, over all jobs and workers of the client job together."""
    provider = rehearsal(weather={"lost": 1.0}, microusd_per_token=1)
    async with world(database_url, provider) as here:
        options = {"batch_size": 1, "concurrency": 8}
        for number in range(3):
            await here.accept({"a": numbered(10, f"Words of {'abc'[number]}")}, options=options)
        for _ in range(3):
            await asyncio.gather(*(Process(here).drain() for _ in range(3)))
            await here.hasten()
        assert len(await here.rows("approvals")) == RESEND_CALLS_MIN
        assert accepted_calls(provider) == 30 + RESEND_CALLS_MIN
        assert [row.state for row in await here.rows("calls")] == ["held"] * 30
        await here.assert_money_is_true()


async def test_what_the_provider_kept_is_asked_for_and_never_bought_again(database_url: str) -> None:
    """Unknown is asked about before it is paid again: the answer found is used, its money booked once."""
    provider = rehearsal(script=["lost"], microusd_per_token=3, askable=True)
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["completed"]
        assert accepted_calls(provider) == 1
        [attempt] = await here.rows("attempts")
        assert attempt.outcome == "CONNECTION_UNKNOWN"
        [inquiry] = await here.rows("reconciliations")
        assert inquiry.disposition == "PROVIDER_FOUND_AND_LINKED"
        [effect] = await here.rows("effects")
        assert effect.state == "SUCCEEDED"
        usage = (await here.view(accepted.job_id))["usage"]
        assert usage["paid"]["tokens"] > 0
        assert usage["at_risk"]["tokens"] == 0
        await here.assert_money_is_true()


async def test_asking_in_vain_is_written_down_as_well(sqlite_url: str) -> None:
    """One row an inquiry, also for `still unknown`."""
    provider = rehearsal(script=["lost"], microusd_per_token=3)
    async with world(sqlite_url, provider) as here:
        await here.accept({"a": {"t": "Hello"}})
        await Process(here).drain()
        assert [row.disposition for row in await here.rows("reconciliations")] == ["UNKNOWN_MANUAL_REVIEW"]


async def test_a_late_answer_settles_the_call_that_still_waits_for_it(database_url: str) -> None:
    """ACCEPTED_LATE: a held call's own answer comes after all; it is used, and its job goes on by itself."""
    slow = Stalled(microusd_per_token=2)
    async with world(database_url, slow) as here:
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        sleeper = Process(here)
        claimed = await sleeper.dispatch.take()
        assert claimed is not None
        working = asyncio.create_task(sleeper.translation.work(claimed))
        await here.until(lambda: len(slow.calls) == 1)
        await here.abandon()
        assert await Process(here).drain() == ["parked"]
        assert await _parked(here, accepted.job_id) == "unknown"
        slow.release.set()
        assert await working == "lost"
        assert await Process(here).drain() == ["completed"]
        assert accepted_calls(slow) == 1
        [attempt] = await here.rows("attempts")
        [used] = await here.rows("ai_usage")
        assert (attempt.outcome, used.wasted) == ("ACCEPTED_LATE", False)
        await here.assert_money_is_true()


async def test_a_late_answer_nobody_waits_for_is_booked_as_wasted(database_url: str) -> None:
    """The job was canceled meanwhile: the money is written down, the text is not used."""
    slow = Stalled(microusd_per_token=2)
    async with world(database_url, slow) as here:
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        sleeper = Process(here)
        claimed = await sleeper.dispatch.take()
        assert claimed is not None
        working = asyncio.create_task(sleeper.translation.work(claimed))
        await here.until(lambda: len(slow.calls) == 1)
        await here.abandon()
        await Process(here).drain()
        await here.controls.cancel(HOME, accepted.job_id, "ada")
        slow.release.set()
        assert await working == "lost"
        [used] = await here.rows("ai_usage")
        assert used.wasted
        assert (await here.view(accepted.job_id))["status"] == "canceled"
        assert await here.rows("memory") == []
        await here.assert_money_is_true()


async def test_a_provider_that_is_not_reached_costs_nothing_and_is_tried_again(database_url: str) -> None:
    """NOT_STARTED: retried by the rule, its reserve given back at once."""
    provider = rehearsal(script=["unreachable", "answer"], microusd_per_token=2)
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["parked"]
        usage = (await here.view(accepted.job_id))["usage"]
        assert usage["reserved"]["tokens"] == usage["at_risk"]["tokens"] == 0
        await here.assert_money_is_true()
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert [row.outcome for row in sorted(await here.rows("attempts"), key=lambda row: row.number)] == [
            "NOT_STARTED",
            "SUCCEEDED",
        ]


async def test_a_timeout_is_unknown_and_never_a_failure(sqlite_url: str) -> None:
    """No answer before the deadline says nothing about what was done."""
    provider = rehearsal(script=["never"], microusd_per_token=2, kind=Hurried)
    async with world(sqlite_url, provider) as here:
        await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["parked"]
        [attempt] = await here.rows("attempts")
        [effect] = await here.rows("effects")
        assert (attempt.outcome, effect.state) == ("TIMEOUT_UNKNOWN", "UNKNOWN")


async def test_nobody_calls_an_account_that_asked_to_slow_down(database_url: str) -> None:
    """429 with a time: the account is paused in the database, for every job and every process."""
    provider = rehearsal(script=["slow_down"], retry_after_seconds=600.0)
    async with world(database_url, provider) as here:
        options = {"batch_size": 1, "concurrency": 1}
        first = await here.accept({"a": {"t": "Hello", "u": "World"}}, options=options)
        second = await here.accept({"a": {"t": "Third"}})
        assert await Process(here).drain() == ["parked", "parked"]
        assert len(provider.calls) == 1
        assert await _parked(here, first.job_id) == await _parked(here, second.job_id) == "provider"
        [pause] = await here.rows("pauses")
        assert pause.until > here.database.now() + 500_000_000
        await here.hasten()
        assert sorted(await Process(here).drain()) == ["completed", "completed"]


async def test_an_account_without_money_is_left_alone_for_an_hour(sqlite_url: str) -> None:
    """The spend limit parks the job, and is no failure."""
    provider = rehearsal(script=["spend_limit"])
    async with world(sqlite_url, provider) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["parked"]
        assert await _parked(here, accepted.job_id) == "provider"
        [pause] = await here.rows("pauses")
        assert pause.code == "PROVIDER_SPEND_LIMIT"
        assert pause.until > here.database.now() + 3_500_000_000


@pytest.mark.parametrize("move", ["cut", "garbage", "twice"])
async def test_an_answer_that_cannot_be_read_is_kept_paid_and_wasted(sqlite_url: str, move: str) -> None:
    """Its bytes stand beside the attempt before anybody parsed them."""
    provider = rehearsal(script=[move], microusd_per_token=2)
    async with world(sqlite_url, provider) as here:
        accepted = await here.accept({"a": numbered(3)})
        assert await Process(here).drain() == ["completed"]
        assert len(await here.texts(accepted.job_id)) == 3
        answers = {row.attempt_id: bytes(row.body) for row in await here.rows("answers")}
        first = provider.calls[0]
        assert answers[first.attempt_id] == first.answer
        if move != "twice":
            [wasted] = [row for row in await here.rows("ai_usage") if row.wasted]
            assert wasted.attempt_id == first.attempt_id
            assert wasted.total_tokens > 0
        await here.assert_money_is_true()
