"""Jobs that an engine took and has lost since: a person gives them up, and no cancel waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.flow.site.losses import Losses
from dragoman.kernel.errors import CallerError, OutsideError
from dragoman.model.intents import LOCAL
from dragoman.store.schema import effects
from dragoman.store.transaction import Row, Tx
from tests.doubles.engines import event
from tests.flow.site.stage import Stage, stage
from tests.flow.site.test_moments import let_leases_run_out
from tests.flow.site.test_reconciliation import (
    DOCUMENTS,
    AskedEngine,
    asking,
    make_waiting_due,
    receipts_kept,
    submitted,
    told,
)

USAGE = {"paid": {"tokens": 40, "microusd": 9}, "wasted": {"tokens": 0, "microusd": 0}}


def losses(site: Stage, engine: AskedEngine, account: str = LOCAL) -> Losses:
    return Losses(site.database, engine, lambda: account, site._wake)


async def lost(site: Stage, times: int = 1) -> AskedEngine:
    """The engine, which has been asked so often about all that it took, and knows none of it."""
    engine, reconciliation = asking(site)
    for _ in range(times):
        await site.database.run(make_waiting_due)
        await reconciliation.step()
    return engine


async def nowhere(*_: object) -> Any:
    raise OutsideError("the engine answers HTTP 404", "backend_unavailable")


async def refused(giving_up: Any) -> str:
    with pytest.raises(CallerError) as error:
        await giving_up
    return error.value.code


def audits(tx: Tx) -> list[Row]:
    return tx.all(sa.select(effects.history).where(effects.history.c.action == "give_up"))


async def cost(site: Stage, manifest: str) -> tuple[int, int]:
    """Jobs of which nobody knows what they cost, and tokens that are known."""
    status = await site.views.status("default", manifest)
    return status["cost"]["lost_jobs"], status["cost"]["paid_tokens"]


def test_what_waits_for_a_lost_job_fails_and_may_be_retried_and_its_late_event_is_stale(
    database_url: str,
) -> None:
    """On record with who said so; what it cost is unknown until the event tells, which moves nothing else."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest, body = await submitted(site)
            engine = await lost(site)
            assert await losses(site, engine).give_up("default", manifest, "mia") == (1, 1)
            assert await site.counts(manifest) == {"failed": 1}
            [failure] = (await site.views.failures("default", manifest))["items"]
            assert (failure["code"], failure["retryable"]) == ("job_lost", True)
            assert "paid" in failure["remedy"]
            assert (await told(site, manifest))["code"] == "job_lost"
            [audit] = await site.database.read(audits)
            assert (audit.actor, audit.before, audit.after) == ("mia", "accepted", "lost")
            assert await cost(site, manifest) == (1, 0)
            await site.steering.retry("default", manifest, "mia", None)
            await site.step_all()
            assert await site.counts(manifest) == {"queued": 1}
            assert await site.deliver({**event(body, "job-1"), "usage": USAGE}) == 200
            assert await site.counts(manifest) == {"queued": 1}, "the new generation waits for its own job"
            assert await cost(site, manifest) == (0, 40)
            again = site.engine.submissions()[-1]
            await site.deliver(event(again, "job-2"), "d-2")
            assert await site.counts(manifest) == {"completed": 1}

    asyncio.run(play())


def test_an_event_whose_texts_are_lost_and_given_up_is_closed_without_them(database_url: str) -> None:
    """It came while the engine knew the job; its texts lie behind a link that leads nowhere any more."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest, body = await submitted(site)
            linked = {**event(body, "job-1"), "results": "link", "items": [], "usage": USAGE}
            assert await site.deliver(linked) == 202
            site.engine.items = nowhere  # type: ignore[method-assign,assignment]
            await site.database.run(let_leases_run_out)
            assert await site.callbacks.step() == 1
            assert await site.database.read(receipts_kept) == [("RECEIVED", None)]
            engine = await lost(site)
            assert await losses(site, engine).give_up("default", manifest, "mia") == (1, 1)
            await site.database.run(let_leases_run_out)
            assert await site.callbacks.step() == 1
            assert await site.database.read(receipts_kept) == [("OUT_OF_ORDER", None)]
            assert await cost(site, manifest) == (0, 40)

    asyncio.run(play())


def test_only_what_the_engine_said_that_it_does_not_know_is_given_up(database_url: str) -> None:
    """Asked before, by this account, and asked again now; by its owner or an administrator."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest, body = await submitted(site)
            engine, _ = asking(site)
            assert await refused(losses(site, engine).give_up("default", manifest, "mia")) == "nothing_lost"
            engine = await lost(site)
            giving_up = losses(site, engine).give_up
            assert await refused(giving_up("default", manifest, "eve")) == "not_owner"
            assert await refused(giving_up("elsewhere", manifest, "mia")) == "not_found"
            other = losses(site, engine, "OTHER_TOKEN@https://engine.example")
            assert await refused(other.give_up("default", manifest, "mia")) == "nothing_lost"
            engine.trouble = {"job-1": OutsideError("the engine answers HTTP 503", "backend_unavailable")}
            with pytest.raises(OutsideError):
                await giving_up("default", manifest, "mia")
            engine.trouble, engine.views["job-1"] = {}, event(body, "job-1")
            assert await refused(giving_up("default", manifest, "mia")) == "nothing_lost"
            assert await site.counts(manifest) == {"queued": 1}
            assert await site.database.read(audits) == []
            del engine.views["job-1"]
            assert (await giving_up("default", manifest, "root", is_admin=True)).intents == 1

    asyncio.run(play())


def test_a_canceled_manifest_waits_for_no_job_that_its_engine_has_lost(database_url: str) -> None:
    """Said twice, a turn apart: one early 404 is not absence, and nothing that is still wanted ends so."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest, _ = await submitted(site)
            wanted, _ = await submitted(site, "r-2", "fr")
            await site.steering.cancel("default", manifest, "mia")
            await lost(site)
            assert await site.counts(manifest) == {"queued": 1}
            await lost(site)
            assert await site.counts(manifest) == {"skipped": 1}
            assert await site.counts(wanted) == {"queued": 1}
            assert (await site.views.status("default", manifest))["status"] == "canceled"
            [audit] = await site.database.read(audits)
            assert audit.actor == "reconciliation"
            assert (await cost(site, manifest))[0] == 1

    asyncio.run(play())


def test_a_person_who_gives_up_a_canceled_manifest_ends_it_as_canceled(sqlite_url: str) -> None:
    async def play() -> None:
        async with stage(sqlite_url, DOCUMENTS) as site:
            manifest, _ = await submitted(site)
            engine = await lost(site)
            await site.steering.cancel("default", manifest, "mia")
            assert (await losses(site, engine).give_up("default", manifest, "mia")).intents == 1
            assert await site.counts(manifest) == {"skipped": 1}

    asyncio.run(play())
