"""A job goes on with another provider where its own definitely refuses to serve, and never on doubt."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.content.locales import choose_code
from dragoman.providers.chat import ChatProvider
from dragoman.providers.rehearsal import RehearsalProvider
from dragoman.providers.vendors import OPENAI
from tests.doubles.chat_server import ChatServer, Script
from tests.flow.engine.world import HOME, Hurried, Process, World, numbered, rehearsal, world

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def two(
    url: str, *moves: Any, other: tuple[Any, ...] = (), **how: Any
) -> AsyncIterator[tuple[World, RehearsalProvider, RehearsalProvider]]:
    """An engine whose first provider may hand over to a second one."""
    first = rehearsal(name="first", script=moves, microusd_per_token=2, **how)
    second = rehearsal(name="second", script=other, microusd_per_token=1)
    async with world(url, first, second, rehearsal(name="third", microusd_per_token=1)) as here:
        here.fallbacks.update(first=("second",), second=("first",))
        yield here, first, second


async def _drained(here: World) -> list[str]:
    ends = await Process(here).drain()
    return ends


@pytest.mark.parametrize("move", ["spend_limit", "unreachable"])
async def test_without_money_or_out_of_reach_the_other_goes_on_at_once(database_url: str, move: Any) -> None:
    """What the first has translated stays; the rest is asked of the second, under a price of its own."""
    async with two(database_url, "answer", move, move, move) as (here, first, second):
        options = {"batch_size": 1, "concurrency": 1}
        accepted = await here.accept({"a": {"t": "Hello", "u": "World", "v": "Third"}}, options=options)
        assert await _drained(here) == ["parked", "completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello", "u": "fr World", "v": "fr Third"}
        assert (len(first.accepted), len(second.accepted)) == (1, 2)
        [handed] = [row for row in await here.rows("history") if row.action == "fall_back"]
        assert (handed.before, handed.after) == ("first", "second")
        assert handed.code in ("PROVIDER_SPEND_LIMIT", "PROVIDER_NOT_REACHED")
        assert [row.state for row in await here.rows("calls")] == ["closed"] * len(await here.rows("calls"))
        await here.assert_money_is_true()


async def test_an_account_that_is_known_to_have_no_money_is_not_asked_again(sqlite_url: str) -> None:
    """The pause stands in the database: the next job is handed over before any call."""
    async with two(sqlite_url, "spend_limit") as (here, first, second):
        await here.accept({"a": {"t": "Hello"}})
        await here.accept({"b": {"t": "World"}})
        ends = await _drained(here)
        assert sorted(ends) == ["completed", "completed", "parked", "parked"]
        assert (len(first.calls), len(second.accepted)) == (1, 2)


@pytest.mark.parametrize(
    ("move", "outcome"), [("lost", "CONNECTION_UNKNOWN"), ("never", "TIMEOUT_UNKNOWN")], ids=["lost", "never"]
)
async def test_an_unknown_is_never_handed_over(database_url: str, move: Any, outcome: str) -> None:
    """Somebody may still be owed money: the call is asked about or held, whatever else is refused."""
    async with two(database_url, move, "spend_limit", "spend_limit", kind=Hurried) as (here, _, second):
        options = {"batch_size": 1, "concurrency": 1, "on_unknown": "hold"}
        accepted = await here.accept({"a": {"t": "Hello", "u": "World"}}, options=options)
        assert await Process(here).drain() == ["parked"]
        assert [row.outcome for row in await here.rows("attempts") if row.outcome != "REJECTED"] == [outcome]
        for _ in range(3):
            await here.hasten()
            await Process(here).drain()
        assert second.calls == []
        assert (await here.view(accepted.job_id))["status"] == "queued"
        assert [row for row in await here.rows("history") if row.action == "fall_back"] == []
        await here.assert_money_is_true()


async def test_a_slow_down_is_waited_for(sqlite_url: str) -> None:
    """A rate is no refusal to serve."""
    async with two(sqlite_url, "slow_down") as (here, first, second):
        await here.accept({"a": {"t": "Hello"}})
        assert await _drained(here) == ["parked"]
        await here.hasten()
        assert await _drained(here) == ["completed"]
        assert (len(first.accepted), len(second.calls)) == (1, 0)


async def test_nobody_is_tried_twice_for_one_job(sqlite_url: str) -> None:
    """Both have no money: the job waits for the second one, as it would without others."""
    spent = ("spend_limit",) * 3
    async with two(sqlite_url, *spent, other=spent) as (here, first, second):
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await _drained(here) == ["parked", "parked"]
        view = await here.view(accepted.job_id)
        assert (view["status"], view["parked_for"]) == ("queued", "provider")
        await here.hasten()
        assert await _drained(here) == ["parked"]
        assert (len(first.calls), len(second.calls)) == (1, 2)


async def test_the_list_of_the_provider_that_was_asked_for_counts_to_the_end(sqlite_url: str) -> None:
    """The second one's own others are not this job's; a job that was asked of the second has them."""
    async with two(sqlite_url, "spend_limit", other=("spend_limit",) * 2) as (here, first, second):
        here.fallbacks.update(first=("second",), second=("third",))
        third: Any = here.completion.resolve("third", "")
        await here.accept({"a": {"t": "Hello"}})
        assert await _drained(here) == ["parked", "parked"]
        assert (len(first.calls), len(second.calls), len(third.calls)) == (1, 1, 0)
        await here.hasten()
        await here.accept({"a": {"t": "World"}}, options={"provider_config": "second"})
        assert sorted(await _drained(here)) == ["completed", "parked", "parked"]
        assert [call.body.count(b"World") for call in third.accepted] == [1]


@pytest.mark.parametrize("act", [401, 403, "no key"])
async def test_a_key_that_is_refused_or_missing_is_handed_over(sqlite_url: str, act: Any) -> None:
    """A job that its provider would fail as a whole goes on with the other."""
    refusal = {"act": "status", "status": act, "body": {"error": {"message": "wrong key"}}}
    second = rehearsal(name="second", microusd_per_token=1)
    async with ChatServer(Script(acts=[refusal], known_headers=True)) as server:
        key = None if act == "no key" else "sk-x"
        first = ChatProvider("first", "m", server.url, lambda: key, choose_code, priced=True, vendor=OPENAI)
        async with world(sqlite_url, first, second) as here:
            here.fallbacks["first"] = ("second",)
            accepted = await here.accept({"a": {"t": "Hello"}})
            assert await _drained(here) == ["parked", "completed"]
            assert await here.texts(accepted.job_id) == {"t": "fr Hello"}
            assert len(server.calls) == (act != "no key")
            await here.assert_money_is_true()


async def test_a_text_that_is_refused_is_not_handed_over(sqlite_url: str) -> None:
    """It fails where it is: the other would be asked for what somebody has judged already."""
    async with two(sqlite_url, refuses=["forbidden"]) as (here, _, second):
        accepted = await here.accept({"a": {"t": "Hello", "u": "a forbidden word"}})
        assert await _drained(here) == ["completed"]
        assert len(second.calls) == 0
        assert {f["code"] for f in (await here.failures(accepted.job_id)).values()} == {"content_refused"}


async def test_without_a_chain_everything_is_as_it_was(sqlite_url: str) -> None:
    async with two(sqlite_url, "spend_limit") as (here, _, second):
        here.fallbacks.clear()
        await here.accept({"a": numbered(2)})
        assert await _drained(here) == ["parked"]
        assert len(second.calls) == 0
        assert await here.jobs.held(HOME, "manifest-1") == []
