"""Lost answers of real protocols: what a vendor has kept is found, what nobody can be asked about is held."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.flow.engine.translation import calls
from dragoman.flow.engine.translation.gate import Rates
from tests.conformance.protocols import PROTOCOLS
from tests.doubles.responses_server import ResponsesServer
from tests.doubles.scripted_server import Act, Script, ScriptedServer
from tests.flow.engine.world import HOME, Life, Process, World, world

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "PROVIDER_POLL_SECONDS", (0.01,))


@contextlib.asynccontextmanager
async def engine(url: str, protocol: str, *acts: Act) -> AsyncIterator[tuple[World, Any]]:
    """An engine in front of one vendor's double."""
    spoken = PROTOCOLS[protocol]
    server: ScriptedServer
    async with (
        spoken.server(Script(acts=acts, known_headers=spoken.proves)) as server,
        world(url, spoken.connect(server.url)) as here,
    ):
        yield here, server


@pytest.mark.parametrize("protocol", ["openai", "azure"])
async def test_a_lost_answer_that_the_vendor_stored_is_recovered_and_the_provider_took_one_call(
    database_url: str, protocol: str
) -> None:
    """Acceptance: stored under `metadata.attempt_id`, found in the list of stored chats after the loss."""
    async with engine(database_url, protocol, "lost") as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        assert await Process(here).drain() == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}
        assert len(server.calls) == 1
        [attempt] = await here.rows("attempts")
        [inquiry] = await here.rows("reconciliations")
        assert (attempt.outcome, inquiry.disposition) == ("CONNECTION_UNKNOWN", "PROVIDER_FOUND_AND_LINKED")
        usage = (await here.view(accepted.job_id))["usage"]
        assert usage["paid"]["tokens"] > 0
        assert usage["at_risk"]["tokens"] == 0
        assert await here.rows("approvals") == []
        await here.assert_money_is_true()


@pytest.mark.parametrize("protocol", ["openai", "azure"])
async def test_an_answer_lost_with_its_process_is_recovered_by_the_next_one(
    database_url: str, protocol: str
) -> None:
    """Killed between the provider's answer and the transaction that would have kept it."""
    async with engine(database_url, protocol) as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        await Process(here, Life(after=("after send", 1))).drain_until_killed()
        assert len(server.calls) == 1
        await here.abandon()
        assert await Process(here).drain() == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}
        assert len(server.calls) == 1
        await here.assert_money_is_true()


@pytest.mark.parametrize("protocol", ["anthropic", "gemini", "responses"])
async def test_a_lost_answer_that_nobody_can_be_asked_about_is_held_at_risk_and_released_by_a_person(
    database_url: str, protocol: str
) -> None:
    """Acceptance: no time lets it go, only the money policy or a person."""
    async with engine(database_url, protocol, "lost") as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        assert await Process(here).drain() == ["parked"]
        for _ in range(3):
            await here.hasten()
            await Process(here).drain()
        view = await here.view(accepted.job_id)
        assert (view["status"], view["parked_for"], view["next_attempt_at"]) == ("queued", "unknown", None)
        assert view["usage"]["at_risk"]["tokens"] > 0
        assert view["usage"]["at_risk"]["microusd"] > 0
        assert len(server.calls) == 1
        await here.assert_money_is_true()
        assert await here.controls.release(HOME, "manifest-1", "ada", "looked at the bill") == 1
        assert await Process(here).drain() == ["completed"]
        assert len(server.calls) == 2
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}
        await here.assert_money_is_true()


async def test_a_key_that_may_not_look_leaves_a_lost_call_to_the_policy(sqlite_url: str) -> None:
    """A restricted key: nobody asks for ever; the answer is bought once more, and shown at risk."""
    async with engine(sqlite_url, "openai", "lost") as (here, server):
        server.hides_answers = True
        accepted = await here.accept({"a": {"t": "Hello"}})
        await Process(here).drain()
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert len(server.calls) == 2
        assert (await here.view(accepted.job_id))["usage"]["at_risk"]["tokens"] > 0
        await here.assert_money_is_true()


@pytest.mark.parametrize("protocol", ["openai", "anthropic", "gemini"])
async def test_a_wrong_key_ends_the_job_whatever_status_the_vendor_has_for_it(
    sqlite_url: str, protocol: str
) -> None:
    """[J-065] One call, and the job is failed: no text of it is called untranslatable."""
    async with engine(sqlite_url, protocol, "wrong_key") as (here, server):
        fields = {f"t{number}": f"Hello {number}" for number in range(4)}
        accepted = await here.accept({"a": fields}, options={"batch_size": 1, "concurrency": 1})
        assert await Process(here).drain() == ["failed"]
        assert (await here.view(accepted.job_id))["code"] == "provider_rejected"
        assert len(server.calls) == 1


@pytest.mark.parametrize("code", ["server_error", "rate_limit_exceeded"])
async def test_a_response_that_failed_in_the_background_is_sent_again_whole(
    sqlite_url: str, code: str
) -> None:
    async with engine(sqlite_url, "responses", {"act": "failed", "code": code}) as (here, server):
        server.works = 0
        fields = {f"t{number}": f"Hello {number}" for number in range(4)}
        accepted = await here.accept({"a": fields})
        await Process(here).drain()
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert len(await here.texts(accepted.job_id)) == 4
        assert [len(call.texts) for call in server.calls] == [4, 4]
        usage = (await here.view(accepted.job_id))["usage"]
        assert usage["at_risk"]["tokens"] == usage["wasted"]["tokens"] == 0
        await here.assert_money_is_true()


@pytest.mark.parametrize("protocol", ["anthropic", "gemini"])
async def test_the_policy_may_let_a_lost_call_go_once(sqlite_url: str, protocol: str) -> None:
    """The default: one resend a call, under an approval of the policy."""
    async with engine(sqlite_url, protocol, "lost") as (here, server):
        await here.accept({"a": {"t": "Hello"}})
        await Process(here).drain()
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert len(server.calls) == 2
        assert [row.kind for row in await here.rows("approvals")] == ["policy:resend"]


async def test_work_in_the_background_is_fetched_in_one_go(database_url: str) -> None:
    """Its id is committed before anybody waits; one call, one effect, one price."""
    async with engine(database_url, "responses") as (here, server):
        assert isinstance(server, ResponsesServer)
        server.works = 3
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        assert await Process(here).drain() == ["completed"]
        assert (len(server.calls), server.looks) == (1, 4)
        [attempt] = await here.rows("attempts")
        assert attempt.provider_ref == "resp_1"
        assert (await here.view(accepted.job_id))["usage"]["at_risk"]["tokens"] == 0
        await here.assert_money_is_true()


async def test_work_in_the_background_outlives_the_process_that_asked_for_it(database_url: str) -> None:
    """Killed once the id was committed: the next process fetches by it and buys nothing."""
    async with engine(database_url, "responses") as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        await Process(here, Life(after=("before ask", 1))).drain_until_killed()
        assert (len(server.calls), server.looks) == (1, 0)
        await here.abandon()
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert len(server.calls) == 1
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}
        await here.assert_money_is_true()


async def test_work_that_goes_on_past_the_deadline_is_asked_about_again(sqlite_url: str) -> None:
    """Still working is no finding: the job waits for the provider, and nothing is resent or held."""
    async with engine(sqlite_url, "responses") as (here, server):
        server.works = 10_000
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here, call_timeout_seconds=0.2).drain() == ["parked"]
        assert (await here.view(accepted.job_id))["parked_for"] == "provider"
        await here.hasten()
        assert await Process(here, call_timeout_seconds=0.2).drain() == ["parked"]
        server.works = 0
        server._left.clear()
        server._left["resp_1"] = 0
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert len(server.calls) == 1


async def test_a_look_that_breaks_off_finds_nothing(database_url: str) -> None:
    """Half a report on the work is no answer: it is asked for again, and booked once, in full."""
    async with engine(database_url, "responses") as (here, server):
        server.works = 0
        server.bad_looks[:] = ["cut"] * 400
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        assert await Process(here, call_timeout_seconds=1.0).drain() == ["parked"]
        assert (await here.rows("ai_usage"), await here.rows("answers")) == ([], [])
        server.bad_looks.clear()
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}
        assert (len(server.calls), len(await here.rows("ai_usage"))) == (1, 1)
        await here.assert_money_is_true()


async def test_looks_keep_to_the_rate_and_to_a_time_that_the_provider_names(sqlite_url: str) -> None:
    """A look is a request like others: spaced by the gate, and none inside the window of a 429."""
    async with engine(sqlite_url, "responses") as (here, server):
        here.gates["rates"] = {"model": Rates(requests_per_second=20)}
        server.works = 3
        server.bad_looks[:] = ["", "", "slow_down"]
        await here.accept({"a": {"t": "Hello"}})
        began = asyncio.get_running_loop().time()
        assert await Process(here).drain() == ["parked"]
        assert asyncio.get_running_loop().time() - began > 3 * 0.045
        assert server.looks == 3
        [pause] = await here.rows("pauses")
        assert pause.code == "PROVIDER_RATE_LIMITED"
        await here.hasten(pauses=False)
        assert await Process(here).drain() == ["parked"]
        assert server.looks == 3
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert len(server.calls) == 1


@pytest.mark.parametrize("place", ["parked", "dead"])
async def test_a_canceled_job_has_work_in_the_background_stopped_once(database_url: str, place: str) -> None:
    """The provider is told, by an effect of its own; the job ends when the price is known."""
    async with engine(database_url, "responses") as (here, server):
        server.works = 10_000
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        if place == "parked":
            assert await Process(here, call_timeout_seconds=1.0).drain() == ["parked"]
        else:
            await Process(here, Life(after=("before ask", 1))).drain_until_killed()
            await here.abandon()
        await here.controls.cancel(HOME, accepted.job_id, "ada")
        assert await Process(here).drain() == ["canceled"]
        assert server.canceled == ["resp_1"]
        [told] = [row for row in await here.rows("effects") if row.family == "withdrawal"]
        assert (told.state, told.attempt_count) == ("SUCCEEDED", 1)
        assert (await here.view(accepted.job_id))["usage"]["at_risk"]["tokens"] == 0
        assert len(server.calls) == 1
        await here.assert_money_is_true()


async def test_work_that_has_ended_is_not_stopped_but_kept(sqlite_url: str) -> None:
    """What was paid for is used, though the job was canceled meanwhile."""
    async with engine(sqlite_url, "responses") as (here, server):
        server.works = 10_000
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here, call_timeout_seconds=1.0).drain() == ["parked"]
        server._left["resp_1"] = 0
        await here.controls.cancel(HOME, accepted.job_id, "ada")
        assert await Process(here).drain() == ["completed"]
        assert (server.canceled, await here.texts(accepted.job_id)) == ([], {"t": "fr Hello"})


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
async def test_no_money_left_at_the_vendor_parks_the_job(sqlite_url: str, protocol: str) -> None:
    """A 429 about money is no slow down: the account is left alone for an hour, and nothing has failed."""
    async with engine(sqlite_url, protocol, "spend_limit") as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["parked"]
        view = await here.view(accepted.job_id)
        assert (view["status"], view["parked_for"]) == ("queued", "provider")
        [pause] = await here.rows("pauses")
        assert pause.code == "PROVIDER_SPEND_LIMIT"
        assert pause.until > here.database.now() + 3_500_000_000
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert len(server.calls) == 2
        await here.assert_money_is_true()


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
async def test_a_text_that_the_model_refuses_fails_alone(sqlite_url: str, protocol: str) -> None:
    """By a refusal in the answer: bisected down to the text, the others are translated."""
    spoken = PROTOCOLS[protocol]
    rules = [{"contains": "forbidden", "act": "refusal"}]
    async with (
        spoken.server(Script(rules=rules, known_headers=spoken.proves)) as server,
        world(sqlite_url, spoken.connect(server.url)) as here,
    ):
        accepted = await here.accept({"a": {"t": "Hello", "u": "a forbidden word", "v": "World"}})
        assert await Process(here).drain() == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello", "v": "fr World"}
        failures = await here.failures(accepted.job_id)
        assert {key: field["code"] for key, field in failures.items()} == {"u": "content_refused"}
        await here.assert_money_is_true()
