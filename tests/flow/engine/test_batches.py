"""Jobs at speed `batch`: one batch a call, one payment, whatever dies, is lost, expires or is canceled.

Batches are polled at due times of the database, which `hasten` brings about: nobody waits for real.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import BATCH_DEADLINE_SECONDS, BATCH_POLL_SECONDS_MAX, RETRY_FIRST_SECONDS
from dragoman.store.schema import engine as engine_tables
from dragoman.store.transaction import Tx
from tests.conformance.protocols import BATCHES
from tests.doubles.scripted_server import Act, Script
from tests.flow.engine.world import HOME, Life, Process, World, world

pytestmark = pytest.mark.anyio

BATCH = {"speed": "batch", "on_unknown": "hold"}


@contextlib.asynccontextmanager
async def engine(url: str, vendor: str, *acts: Act) -> AsyncIterator[tuple[World, Any]]:
    """An engine in front of one vendor's double."""
    spoken = BATCHES[vendor]
    async with (
        spoken.server(Script(acts=acts, known_headers=True)) as server,
        world(url, spoken.plain(server.url), batchers=[spoken.connect(server.url)]) as here,
    ):
        yield here, server
        await here.assert_money_is_true()


async def ended(here: World, server: Any) -> list[str]:
    """What becomes of everything once the batches have ended."""
    server.hasten()
    await here.hasten()
    return await Process(here).drain()


@pytest.mark.parametrize("vendor", sorted(BATCHES))
async def test_each_group_is_one_batch_one_effect_and_one_price(database_url: str, vendor: str) -> None:
    """Of class PROVIDER_QUERY_RECONCILABLE, its id committed, at half the price; parked between looks."""
    async with engine(database_url, vendor) as (here, server):
        texts = {"t": "Hello", "u": "World", "v": "Bye"}
        accepted = await here.accept({"a": texts}, options={**BATCH, "batch_size": 2})
        assert await Process(here).drain() == ["parked"]
        assert (len(server.calls), server.looks) == (2, 0)
        assert (await here.view(accepted.job_id))["parked_for"] == "provider"
        assert {row.provider_ref for row in await here.rows("attempts")} == set(server.batches)
        assert {row.idempotency for row in await here.rows("effects")} == {"PROVIDER_QUERY_RECONCILABLE"}
        [job] = await here.rows("jobs")
        assert job.deadline_at - job.created_at == BATCH_DEADLINE_SECONDS * 1_000_000
        await here.hasten()
        assert await Process(here).drain() == ["parked"]
        assert await ended(here, server) == ["completed"]
        assert await here.texts(accepted.job_id) == {key: f"fr {text}" for key, text in texts.items()}
        assert len(server.calls) == 2
        usage = (await here.view(accepted.job_id))["usage"]
        assert (usage["at_risk"]["tokens"], usage["paid"]["tokens"] > 0) == (0, True)
        assert {row.prices for row in await here.rows("ai_usage")} == {"settings 1/4 batch"}


@pytest.mark.parametrize("vendor", sorted(BATCHES))
async def test_a_batch_outlives_the_process_that_made_it(database_url: str, vendor: str) -> None:
    """Killed once its id was committed, then while it looked: one batch, one payment."""
    async with engine(database_url, vendor) as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        assert await Process(here).drain() == ["parked"]
        await here.hasten()
        await Process(here, Life(after=("before ask", 1))).drain_until_killed()
        await here.abandon()
        assert await ended(here, server) == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}
        assert (len(server.calls), len(await here.rows("ai_usage"))) == (1, 1)


@pytest.mark.parametrize("vendor", sorted(BATCHES))
async def test_a_batch_whose_id_died_with_its_process_is_found_again(database_url: str, vendor: str) -> None:
    """Killed between the vendor's answer and the transaction that would have kept it."""
    async with engine(database_url, vendor) as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        await Process(here, Life(after=("after send", 1))).drain_until_killed()
        await here.abandon()
        assert await Process(here).drain() == ["parked"]
        known = {row.provider_ref for row in await here.rows("attempts")}
        assert known == ({"batch_1"} if vendor == "openai" else {""})
        assert (await here.view(accepted.job_id))["parked_for"] == "provider"
        assert await ended(here, server) == ["completed"]
        assert (len(server.calls), len(await here.rows("ai_usage"))) == (1, 1)
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}


@pytest.mark.parametrize("vendor", sorted(BATCHES))
async def test_a_batch_that_was_never_made_is_held_for_a_person(sqlite_url: str, vendor: str) -> None:
    """Not found proves nothing: the money policy decides, as for every lost call."""
    async with engine(sqlite_url, vendor, "close") as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        assert await Process(here).drain() == ["parked"]
        await here.hasten()
        assert await Process(here).drain() == ["parked"]
        view = await here.view(accepted.job_id)
        assert (view["parked_for"], view["usage"]["at_risk"]["tokens"] > 0) == ("unknown", True)
        assert await here.controls.release(HOME, "manifest-1", "ada", "looked at the bill") == 1
        assert await Process(here).drain() == ["parked"]
        assert await ended(here, server) == ["completed"]
        assert len(server.calls) == 2


@pytest.mark.parametrize("vendor", sorted(BATCHES))
async def test_an_expired_batch_is_sent_again_and_nothing_of_it_is_paid(
    database_url: str, vendor: str
) -> None:
    """Expired and not worked is known: no approval is needed, and no money stays at risk."""
    async with engine(database_url, vendor, "expire") as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        await Process(here).drain()
        assert await ended(here, server) == ["parked"]
        view = await here.view(accepted.job_id)
        assert (view["usage"]["at_risk"]["tokens"], view["usage"]["reserved"]["tokens"]) == (0, 0)
        assert [row.outcome for row in await here.rows("attempts")] == ["ABSENT"]
        assert [row.state for row in await here.rows("effects")] == ["FAILED_RETRYABLE"]
        await here.hasten()
        assert await Process(here).drain() == ["parked"]
        assert await ended(here, server) == ["completed"]
        assert (len(server.calls), await here.rows("approvals")) == (2, [])
        assert len(await here.rows("ai_usage")) == 1


async def test_a_job_that_fails_has_what_is_paid_for_first(database_url: str) -> None:
    """The key is refused while a batch is under way: the job ends when that has, with its texts and price."""
    denied: Act = {"act": "status", "status": 401, "body": {"error": {"message": "wrong key"}}}
    async with engine(database_url, "openai", "translate", denied) as (here, server):
        options = {**BATCH, "batch_size": 1, "concurrency": 1}
        accepted = await here.accept({"a": {"t": "Hello", "u": "World"}}, options=options)
        assert await Process(here).drain() == ["parked"]
        assert await ended(here, server) == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}
        assert (await here.failures(accepted.job_id))["u"]["code"] == "provider_rejected"
        assert (await here.view(accepted.job_id))["usage"]["at_risk"]["tokens"] == 0
        assert (len(server.calls), len(await here.rows("ai_usage"))) == (2, 1)


async def test_no_money_left_is_heard_from_within_a_batch(database_url: str) -> None:
    """The account is left alone, as after a plain call, and whoever is next in line goes on."""
    code = {"message": "no", "code": "insufficient_quota"}
    act: Act = {"act": "line_error", "status": 429, "body": {"error": code}}
    async with engine(database_url, "openai", act) as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        await Process(here).drain()
        assert await ended(here, server) == ["parked"]
        [pause] = await here.rows("pauses")
        assert pause.code == "PROVIDER_SPEND_LIMIT"
        assert pause.until > here.database.now() + 3_500_000_000
        await here.hasten(pauses=False)
        assert await Process(here).drain() == ["parked"]
        assert (len(server.calls), await here.rows("ai_usage")) == (1, [])
        await here.hasten()
        assert await Process(here).drain() == ["parked"]
        assert await ended(here, server) == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}


@pytest.mark.parametrize("vendor", sorted(BATCHES))
async def test_a_refused_request_fails_its_texts_and_costs_nothing(database_url: str, vendor: str) -> None:
    act = {"act": "line_error", "status": 400, "type": "invalid_request_error"}
    async with engine(database_url, vendor, {**act, "body": {"error": {"message": "no"}}}) as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        await Process(here).drain()
        assert await ended(here, server) == ["completed"]
        failures = await here.failures(accepted.job_id)
        assert failures["t"]["code"] == "provider_rejected"
        assert (len(server.calls), await here.rows("ai_usage")) == (1, [])


async def test_a_refused_content_is_asked_for_apart_in_batches_of_its_own(sqlite_url: str) -> None:
    refused = {
        "act": "line_error",
        "status": 400,
        "body": {"error": {"message": "no", "code": "content_filter"}},
    }
    async with engine(sqlite_url, "openai", refused) as (here, server):
        accepted = await here.accept({"a": {"t": "Hello", "u": "World"}}, options=BATCH)
        await Process(here).drain()
        assert await ended(here, server) == ["parked"]
        assert await ended(here, server) == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello", "u": "fr World"}
        assert (len(server.calls), len(await here.rows("ai_usage"))) == (3, 2)


@pytest.mark.parametrize("vendor", sorted(BATCHES))
async def test_a_cancel_stops_the_batch_and_waits_to_know_its_price(database_url: str, vendor: str) -> None:
    """Parked, it is worked once more: the vendor is told, and what it says ends the money's risk."""
    async with engine(database_url, vendor) as (here, server):
        server.works = 50
        accepted = await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        assert await Process(here).drain() == ["parked"]
        await here.controls.cancel(HOME, accepted.job_id, "ada")
        assert await Process(here).drain() == ["parked"]
        assert server.canceled == list(server.batches)
        [told] = [row for row in await here.rows("effects") if row.family == "withdrawal"]
        assert (told.state, told.attempt_count) == ("SUCCEEDED", 1)
        await here.hasten()
        assert await Process(here).drain() == ["canceled"]
        view = await here.view(accepted.job_id)
        assert (view["status"], view["usage"]["at_risk"]["tokens"]) == ("canceled", 0)
        assert len(server.calls) == 1


async def test_a_canceled_batch_whose_id_was_lost_is_found_and_stopped(sqlite_url: str) -> None:
    async with engine(sqlite_url, "openai") as (here, server):
        server.works = 50
        accepted = await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        await Process(here, Life(after=("after send", 1))).drain_until_killed()
        await here.abandon()
        await here.controls.cancel(HOME, accepted.job_id, "ada")
        for end in (["parked"], ["parked"], ["canceled"]):
            assert await Process(here).drain() == end
            await here.hasten()
        assert server.canceled == ["batch_1"]
        assert (await here.view(accepted.job_id))["usage"]["at_risk"]["tokens"] == 0


async def test_a_canceled_manifest_stops_its_batches(sqlite_url: str) -> None:
    """A batch that had ended by then is paid for and kept; the other one is stopped."""
    async with engine(sqlite_url, "openai") as (here, server):
        server.works = 50
        first = await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        second = await here.accept({"a": {"t": "World"}}, options=BATCH)
        assert await Process(here).drain() == ["parked", "parked"]
        server._left["batch_1"] = 0
        await here.put(revision=9, canceled=True)
        await Process(here).drain()
        await here.hasten()
        await Process(here).drain()
        statuses = [(await here.view(one.job_id))["status"] for one in (first, second)]
        assert statuses == ["completed", "canceled"]
        assert (len(server.calls), len(await here.rows("ai_usage"))) == (2, 1)


async def test_a_pause_takes_no_time_from_a_batch(database_url: str) -> None:
    async with engine(database_url, "openai") as (here, server):
        accepted = await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        await Process(here).drain()
        [before] = await here.rows("jobs")
        await here.put(revision=1, paused=True)
        await here.put(revision=2, paused=False)
        [after] = await here.rows("jobs")
        assert after.deadline_at >= before.deadline_at
        assert await Process(here).drain() == ["parked"]
        assert await ended(here, server) == ["completed"]
        assert await here.texts(accepted.job_id) == {"t": "fr Hello"}


async def test_a_cancel_does_not_wait_for_ever(sqlite_url: str) -> None:
    """A vendor that never says that a batch has ended holds the job until its deadline, and no longer."""
    async with engine(sqlite_url, "openai") as (here, server):
        server.works = server.winds_down = 10_000
        accepted = await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        await Process(here).drain()
        await here.controls.cancel(HOME, accepted.job_id, "ada")
        assert await Process(here).drain() == ["parked"]
        await here.database.run(_expire_jobs)
        await here.hasten()
        assert await Process(here).drain() == ["canceled"]
        assert (await here.view(accepted.job_id))["usage"]["at_risk"]["tokens"] > 0


def _expire_jobs(tx: Tx) -> None:
    tx.touched(sa.update(engine_tables.jobs).values(deadline_at=tx.now))


async def test_looks_at_a_batch_grow_apart(sqlite_url: str) -> None:
    """A quarter of its age, between half a minute and ten."""
    async with engine(sqlite_url, "openai") as (here, server):
        server.works = 10_000
        await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        process = Process(here)
        await process.drain()
        pauses = []
        for age_seconds in (1, 400, 10_000):
            call: Any = SimpleNamespace(batched=True, due_at=here.database.now() - age_seconds * 10**6)
            work: Any = SimpleNamespace(is_unwanted=False)
            pauses.append(round(process.translation._calls._pause_seconds(work, call)))
        assert pauses == [RETRY_FIRST_SECONDS, 100, BATCH_POLL_SECONDS_MAX]


async def test_a_provider_without_batches_refuses_the_speed_at_its_place(sqlite_url: str) -> None:
    async with world(sqlite_url) as here:
        with pytest.raises(CallerError) as refused:
            await here.accept({"a": {"t": "Hello"}}, options=BATCH)
        assert (refused.value.place, refused.value.code) == ("$.options.speed", "invalid_request")
        assert await here.rows("jobs") == []
