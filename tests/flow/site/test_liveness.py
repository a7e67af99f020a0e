"""Nothing hangs on a hint, a process or a first try: what is durable is found, and tried by the rule."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.kernel.errors import QueueError, SourceError
from dragoman.kernel.limits import RETRIES_PER_GENERATION
from dragoman.model.effects import Answer
from dragoman.store.acts import expanding
from dragoman.store.schema import effects
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx
from tests.doubles.engines import event
from tests.flow.site.rows import intents_of, make_telling_due
from tests.flow.site.stage import Stage, catalogue, stage
from tests.flow.site.test_pausing import UNREACHED, make_resending_due

UNHEARD = Answer("TIMEOUT_UNKNOWN", code="PROVIDER_TIMEOUT_UNKNOWN", message="no answer in time")
UNREAD = Answer("INVALID_RESPONSE_UNKNOWN", b'{"job_id": "', 201, "PROVIDER_RESPONSE_INVALID")
PAIRS = [("a.json", "de"), ("a.json", "fr")]
DOCUMENTS = {"a.json": catalogue(hello="Hello")}


def submission_row(tx: Tx) -> Row:
    """The only submission."""
    (row,) = tx.all(sa.select(tables.submissions))
    return row


def history_of(tx: Tx) -> list[str]:
    """Every action on record, in order."""
    return [row.action for row in tx.all(sa.select(effects.history.c.action).order_by(effects.history.c.at))]


def let_a_minute_pass(tx: Tx) -> None:
    """As if what waits to be enumerated were due for a minute and a second."""
    waiting = sa.update(tables.manifests).where(tables.manifests.c.phase == "enumerating")
    tx.touched(waiting.values(next_attempt_at=tx.now - 61_000_000))


async def delayed(site: Stage, manifest_id: str) -> bool:
    """Whether status says that nobody comes to the work."""
    status = await site.views.status("default", manifest_id)
    return bool(status["health"]["scheduling_delayed"])


def test_a_wake_up_that_is_lost_or_fails_loses_no_manifest(database_url: str) -> None:
    """[M-082, M-083, M-084, M-198] it is answered as durable, and whoever looks next finds it due."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:

            async def fail() -> None:
                raise QueueError("nobody can be woken")

            site.admission._wake = fail
            admitted = await site.admit(PAIRS)
            assert admitted.how == "created"
            assert not await delayed(site, admitted.manifest_id)
            await site.database.run(let_a_minute_pass)
            assert await delayed(site, admitted.manifest_id), "and status says so"
            await site.step_all()
            assert not await delayed(site, admitted.manifest_id)
            [body] = site.engine.submissions()
            await site.deliver(event(body, "job-1"))
            assert await site.counts(admitted.manifest_id) == {"completed": 2}
            assert "wait" not in await site.database.read(history_of), "no attempt was spent on it"

    asyncio.run(play())


def test_two_wake_ups_at_once_are_one_claim(database_url: str) -> None:
    """[M-079, M-081] the lease decides; who comes second leaves."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            await site.admit(PAIRS)
            claims = [
                site.database.run(expanding.claim_enumerating_manifest, f"host/boot/{number}/1")
                for number in range(6)
            ]
            found = [claimed for claimed in await asyncio.gather(*claims) if claimed is not None]
            assert len(found) == 1

    asyncio.run(play())


def test_a_request_id_means_the_same_after_a_restart(database_url: str) -> None:
    """[M-118, M-337] T10, F7: another process, another connection, the same manifest; equal posts at once."""

    async def ask(times: int) -> set[tuple[str, int]]:
        async with stage(database_url, DOCUMENTS) as site:
            answers = await asyncio.gather(*(site.admit(PAIRS) for _ in range(times)))
            return {(answer.manifest_id, answer.total) for answer in answers}

    first = asyncio.run(ask(20))
    assert len(first) == 1
    assert asyncio.run(ask(50)) == first


def test_automatic_tries_are_five_each_later_than_the_last(database_url: str) -> None:
    """[M-194, M-195, M-197] min(30·2^(n−1), 3600) seconds and a little more; every try stays on record."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            site.engine.weather = [UNREACHED] * RETRIES_PER_GENERATION
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.step_all()
            for attempt in range(1, RETRIES_PER_GENERATION):
                row = await site.database.read(submission_row)
                waits = (row.next_attempt_at - row.updated_at) / 1_000_000
                least = min(30 * 2 ** (attempt - 1), 3600)
                assert (row.state, row.attempt_count) == ("retry_wait", attempt)
                assert least <= waits <= 2 * least
                await site.database.run(make_resending_due)
                assert await site.submitting.resend_step() == 1
            assert await site.counts(manifest) == {"failed": 2}
            [failure, _] = (await site.views.failures("default", manifest))["items"]
            assert (failure["code"], failure["retryable"]) == ("backend_unavailable", True)
            assert len(site.engine.bodies) == RETRIES_PER_GENERATION
            assert len(set(site.engine.bodies)) == 1, "the same bytes each time"

    asyncio.run(play())


@pytest.mark.parametrize("unheard", [UNHEARD, UNREAD], ids=["unheard", "unread"])
def test_what_the_engine_may_have_is_never_given_up(database_url: str, unheard: Answer) -> None:
    """[M-156] however long it is away afterwards: it alone knows whether it works on that already."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            site.engine.weather = [unheard, *[UNREACHED] * (2 * RETRIES_PER_GENERATION)]
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.step_all()
            while site.engine.weather:
                await site.database.run(make_resending_due)
                assert await site.submitting.resend_step() == 1
                assert (await site.database.read(submission_row)).state == "retry_wait"
            await site.database.run(make_resending_due)
            assert await site.submitting.resend_step() == 1
            assert await site.counts(manifest) == {"queued": 2}
            assert len(site.engine.jobs) == 1
            assert len(set(site.engine.bodies)) == 1, "the same bytes each time"

    asyncio.run(play())


def test_what_nobody_wants_any_more_is_given_up_after_the_usual_tries(database_url: str) -> None:
    """Also where the engine may have it: it is told of the cancel, and is waited for no longer."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            site.engine.weather = [UNHEARD, *[UNREACHED] * RETRIES_PER_GENERATION]
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.step_all()
            assert (await site.steering.cancel("default", manifest, "mia")).told
            while (await site.database.read(submission_row)).state == "retry_wait":
                await site.database.run(make_resending_due)
                assert await site.submitting.resend_step() == 1
            assert len(site.engine.bodies) == RETRIES_PER_GENERATION
            assert await site.counts(manifest) == {"failed": 2}

    asyncio.run(play())


def test_an_engine_that_names_a_time_is_not_asked_before_it(database_url: str) -> None:
    """[M-195] Retry-After goes before the rule where it is later."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            busy = Answer("REJECTED", status=429, code="backend_rate_limited", retry_after_seconds=500.0)
            site.engine.weather = [busy]
            await site.admit(PAIRS)
            await site.step_all()
            row = await site.database.read(submission_row)
            assert row.next_attempt_at - row.updated_at >= 500_000_000

    asyncio.run(play())


def make_pending_due(tx: Tx) -> None:
    """As if the wait of what is to be prepared were over."""
    tx.touched(
        sa.update(tables.intents).where(tables.intents.c.state == "pending").values(next_attempt_at=tx.now)
    )
    tx.touched(sa.update(tables.shards).values(prepare_due_at=tx.now, prepare_served_at=0))


def test_a_source_that_cannot_be_read_is_tried_five_times_a_generation(database_url: str) -> None:
    """[M-194, M-195, M-196] later each time; then its pairs fail, and a person may begin a new generation."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS[:1])).manifest_id
            await site.enumeration.step()
            site.source.away = [SourceError("gone for a moment") for _ in range(6)]
            for number in range(1, 5):
                assert await site.preparing.step() == 1
                [row] = await site.database.read(intents_of, manifest)
                assert (row.state, row.error_code) == ("pending", "source_unavailable")
                assert (row.generation_attempt_count, row.attempt_count) == (number, number)
                first = 30_000_000 * 2 ** (number - 1)
                assert first <= row.next_attempt_at - row.updated_at <= first * 1.1
                assert await site.preparing.step() == 0
                await site.database.run(make_pending_due)
            await site.preparing.step()
            [row] = await site.database.read(intents_of, manifest)
            assert (row.state, row.error_code, bool(row.retryable)) == ("failed", "retry_exhausted", True)
            assert await site.steering.retry("default", manifest, "mia") == 1
            await site.preparing.step()
            [row] = await site.database.read(intents_of, manifest)
            assert (row.generation, row.generation_attempt_count, row.attempt_count) == (2, 1, 6)

    asyncio.run(play())


def test_a_cancel_whose_answer_cannot_be_read_is_told_once_more(database_url: str) -> None:
    """The engine may have heard it; it is not known to have."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.step_all()
            tell = site.engine.control

            async def mumble(*asked: Any) -> Answer:
                await tell(*asked)
                return UNREAD

            site.engine.control = mumble  # type: ignore[method-assign,assignment]
            assert not (await site.steering.cancel("default", manifest, "mia")).told
            site.engine.control = tell  # type: ignore[method-assign]
            await site.database.run(make_telling_due)
            assert await site.steering.telling_step() == 1
            assert [told for told, _ in site.engine.controls] == [manifest] * 2
            await site.database.run(make_telling_due)
            assert await site.steering.telling_step() == 0

    asyncio.run(play())
