"""Accounts that say stop, and engines that take only so much: what jobs make of it, over real databases."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.content.locales import choose_code
from dragoman.flow.engine.translation.gate import Rates
from dragoman.kernel.clock import seconds
from dragoman.kernel.errors import OutsideError
from dragoman.providers.deepl import DeepLProvider
from dragoman.store.rows import lanes
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Tx
from tests.doubles.text_servers import Act, DeepLServer
from tests.flow.engine.world import Process, numbered, rehearsal, world

pytestmark = pytest.mark.anyio


async def test_no_process_calls_inside_a_window_that_a_429_named(database_url: str) -> None:
    """[J-066]: two service sets on one database: what one is told keeps the other quiet until that time.

    Nobody is told twice: 24 jobs on four workers cost one refused call.
    """
    told = rehearsal(script=["slow_down"], retry_after_seconds=600.0)
    other = rehearsal()
    async with world(database_url, told) as one, world(database_url, other) as two:
        await one.accept({"a": {"t": "Hello"}})
        assert await Process(one).drain() == ["parked"]
        for number in range(23):
            await two.accept({"a": {"t": f"Hello {number}"}}, workspace=f"w{number % 3}")
        ends = await asyncio.gather(*(Process(where).drain() for where in (one, two, one, two)))
        assert [end for some in ends for end in some] == ["parked"] * 23
        assert (len(told.calls), len(other.calls)) == (1, 0)
        await two.database.run(_pass_time, 599)
        await asyncio.gather(Process(one).drain(), Process(two).drain())
        assert (len(told.calls), len(other.calls)) == (1, 0)
        await two.database.run(_pass_time, 70)  # the time named, and the jitter on it
        after = await asyncio.gather(Process(one).drain(), Process(two).drain())
        assert sorted(end for some in after for end in some) == ["completed"] * 24
        assert len(told.calls) + len(other.calls) == 25


async def test_a_rate_holds_over_all_jobs_of_all_workers(sqlite_url: str) -> None:
    """[J-062]: four workers with a gate in common make no more calls at once than the account allows."""
    provider = rehearsal(answer_seconds=0.01)
    async with world(sqlite_url, provider) as here:
        here.gates = {"rates": {"rehearsal": Rates(calls_at_once=2)}}
        process = Process(here)
        for number in range(6):
            await here.accept({"a": numbered(4, f"Job {number}")}, options={"batch_size": 1})
        watched = _Watched(provider)
        provider.send = watched.send  # type: ignore[method-assign,assignment]
        ends = await asyncio.gather(*(process.drain() for _ in range(4)))
        assert sorted(end for some in ends for end in some) == ["completed"] * 6
        assert watched.most == 2


@contextlib.asynccontextmanager
async def deepl(url: str, acts: Sequence[Act] = ()) -> Any:
    async with DeepLServer(acts) as server:
        provider = DeepLProvider("deepl", server.url, lambda: "k" * 20, choose_code, priced=True)
        async with world(url, provider) as here:
            yield here, server


async def test_a_quota_that_is_used_up_parks_the_run(sqlite_url: str) -> None:
    """DeepL's 456: nothing failed and nothing is called again before an hour has passed."""
    async with deepl(sqlite_url, ["quota"]) as (here, server):
        accepted = await here.accept({"a": numbered(60)}, options={"concurrency": 1, "batch_size": 20})
        assert await Process(here).drain() == ["parked"]
        assert len(server.calls) == 1
        assert (await here.view(accepted.job_id))["parked_for"] == "provider"
        [pause] = await here.rows("pauses")
        assert pause.code == "PROVIDER_SPEND_LIMIT"
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        assert len(await here.texts(accepted.job_id)) == 60
        await here.assert_money_is_true()


async def test_money_of_an_engine_that_bills_characters_is_in_the_ledger(sqlite_url: str) -> None:
    """25 micro-USD a billed character, to the micro-dollar; protected parts come back as they were."""
    async with deepl(sqlite_url) as (here, server):
        accepted = await here.accept(
            {"a": {"t": {"text": "Delete %s files", "syntax": "printf"}, "u": "Garden"}}
        )
        assert await Process(here).drain() == ["completed"]
        texts = await here.texts(accepted.job_id)
        assert texts == {"t": "Deleteé %s filesé", "u": "Gardené"}
        [usage] = await here.rows("ai_usage")
        assert usage.microusd == 25 * sum(map(len, server.calls[0].said["text"]))
        await here.assert_money_is_true()


async def test_a_call_holds_no_more_texts_than_the_engine_takes(sqlite_url: str) -> None:
    """DeepL's 50 texts: groups are smaller than the batch where plural fields have many forms."""
    async with deepl(sqlite_url) as (here, server):
        plural = {"plural": {"one": "{n} file kept", "other": "{n} files kept"}, "syntax": "icu"}
        fields: Mapping[str, Any] = {f"p{n}": plural | {"note": f"number {n}"} for n in range(40)}
        items = [{"ref": "a", "targetLang": "ru", "fields": fields}]
        accepted = await here.accept(items, options={"batch_size": 200})
        assert await Process(here).drain() == ["completed"]
        assert max(len(call.said["text"]) for call in server.calls) <= 50
        assert (await here.view(accepted.job_id))["failed_fields"] == 0


async def test_a_request_that_is_too_large_is_asked_for_in_halves(sqlite_url: str) -> None:
    """413 fails nothing as long as there is something to divide."""
    async with deepl(sqlite_url, ["too_large", "too_large"]) as (here, server):
        accepted = await here.accept({"a": numbered(8)}, options={"concurrency": 1})
        assert await Process(here).drain() == ["completed"]
        assert len(await here.texts(accepted.job_id)) == 8
        assert [len(call.said["text"]) for call in server.calls][:2] == [8, 4]


async def test_a_provider_that_cannot_say_what_it_offers_has_the_job_wait(sqlite_url: str) -> None:
    """Its languages are asked for before any call; a server that is away then is bad weather, no defect."""
    async with world(sqlite_url) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        away = True
        resolve = here.completion.resolve

        def resolved(name: str, model: str, speed: str = "standard") -> Any:
            if away:
                raise OutsideError("nobody answers", "provider_unavailable")
            return resolve(name, model, speed)

        here.completion.resolve = resolved  # type: ignore[method-assign]
        assert await Process(here).drain() == ["parked"]
        assert (await here.view(accepted.job_id))["parked_for"] == "provider"
        away = False
        await here.hasten()
        assert await Process(here).drain() == ["completed"]


class _Watched:
    """The most calls of a provider at a time."""

    def __init__(self, provider: Any) -> None:
        self._send = provider.send
        self._now = 0
        self.most = 0

    async def send(self, *asked: Any) -> Any:
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            return await self._send(*asked)
        finally:
            self._now -= 1


def _pass_time(tx: Tx, count: float) -> None:
    """Everything that is written down was so many seconds ago; jobs come due as if they were woken."""
    earlier = tables.pauses.c.until - seconds(count)
    tx.touched(sa.update(tables.pauses).values(until=earlier))
    tx.touched(sa.update(tables.jobs).values(next_attempt_at=tx.now))
    tx.touched(sa.update(tables.calls).values(next_attempt_at=None))
    for lane in tx.all(sa.select(tables.lanes)):
        lanes.wake(tx, lane.workspace, lanes.ENGINE, tx.now)
