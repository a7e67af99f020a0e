"""What the engine forgets: source texts once delivered, results after a month, answers once used."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from dragoman.flow.upkeep.retention import Retention
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.errors import CallerError
from dragoman.model.scopes import System
from dragoman.store.acts import purging, redriving
from dragoman.store.schema import engine
from dragoman.store.transaction import Tx
from tests.flow.engine.world import HOME, Life, Process, World, world

pytestmark = pytest.mark.anyio

DAY = 24 * 3600 * 1_000_000
TEXTS = {"a": {"t": "Hello", "u": "World"}}
WHERE = "https://site.example/callbacks"


def age(tx: Tx, days: int) -> None:
    """As if all jobs had ended so many days ago."""
    long_ago = tx.now - days * DAY
    tx.touched(sa.update(engine.jobs).values(ended_at=long_ago, created_at=long_ago))


def address(tx: Tx, state: str) -> None:
    """All events go somewhere, and stand so."""
    tx.touched(sa.update(engine.jobs).values(callback_url=WHERE))
    tx.touched(sa.update(engine.outbox).values(url=WHERE, state=state))


async def retain(here: World) -> None:
    """One whole round."""
    retention = Retention(here.database, System(), SystemClock(), 30)
    while await retention.step():
        pass


async def standing(here: World) -> tuple[bool, bool]:
    """Whether source texts, and results, stand."""
    rows = await here.rows("job_fields")
    return any(row.text is not None for row in rows), any(row.result is not None for row in rows)


async def test_source_texts_go_once_the_last_event_has_arrived_and_results_a_month_later(
    database_url: str,
) -> None:
    """[M-095] source texts, then results, then the job with its submission's key; money and effects stay."""
    async with world(database_url) as here:
        accepted = await here.accept(TEXTS, style="Be brief.")
        await retain(here)
        assert await standing(here) == (True, False), "a job at work keeps all it has"
        assert [row.library is not None for row in await here.rows("jobs")] == [True]
        assert await Process(here).drain() == ["completed"]
        for state in ("pending", "delivering", "dead"):
            await here.database.run(address, state)
            await retain(here)
            assert await standing(here) == (True, True), state
        await here.database.run(address, "delivered")
        await retain(here)
        assert await standing(here) == (False, True)
        assert [row.library for row in await here.rows("jobs")] == [None], "style and terms go with them"
        assert await here.texts(accepted.job_id) == {"t": "fr Hello", "u": "fr World"}
        assert (await here.accept(TEXTS)).job_id
        await here.database.run(age, 31)
        before = {name: len(await here.rows(name)) for name in ("effects", "attempts", "ai_usage", "budgets")}
        await retain(here)
        assert accepted.job_id in {row.id for row in await here.rows("jobs")}, "its submission may come again"
        assert (await standing(here))[1] is False
        await here.database.run(age, 61)
        await retain(here)
        assert accepted.job_id not in {row.id for row in await here.rows("jobs")}
        after = {name: len(await here.rows(name)) for name in before}
        assert after == before
        await here.assert_money_is_true()


async def test_answers_go_once_their_call_is_closed_and_stay_while_it_is_open(database_url: str) -> None:
    """[M-299] a paid answer stands until it was used: whoever takes the job over finds it."""
    async with world(database_url) as here:
        await here.accept(TEXTS)
        await Process(here, Life(after=("before close_call", 1))).drain_until_killed()
        assert len(await here.rows("answers")) == 1
        await retain(here)
        assert len(await here.rows("answers")) == 1
        await here.abandon()
        assert await Process(here).drain() == ["completed"]
        await retain(here)
        assert await here.rows("answers") == []
        assert len(await here.rows("ai_usage")) == 1, "bought once"


async def test_a_job_in_quarantine_keeps_its_paid_answer_as_long_as_a_person_may_redrive_it(
    database_url: str,
) -> None:
    """[M-296] a month; then its call is closed, and texts and answer go as any other's."""
    async with world(database_url) as here:
        accepted = await here.accept(TEXTS)
        for _ in range(5):
            await Process(here, Life(after=("before close_call", 1))).drain_until_killed()
            await here.abandon()
        assert await Process(here).drain() == ["failed"]
        await here.database.run(address, "delivered")
        await retain(here)
        assert (await standing(here))[0]
        assert len(await here.rows("answers")) == 1
        await here.database.run(age, 31)
        await retain(here)
        await retain(here)
        assert await standing(here) == (False, False)
        assert await here.rows("answers") == []
        assert [row.state for row in await here.rows("calls")] == ["closed"]
        with pytest.raises(CallerError):
            await here.database.run(redriving.redrive_job, HOME, accepted.job_id, "olga")


async def test_of_a_redrive_and_a_purge_at_once_one_wins(database_url: str) -> None:
    """[M-296] a quarantined job past its time is redriven with its texts, or not at all."""
    async with world(database_url) as here:
        accepted = await here.accept(TEXTS)
        for _ in range(6):
            await Process(here, Life(after=("after load_job", 1))).drain_until_killed()
            await here.abandon()
        await here.database.run(address, "delivered")
        await retain(here)
        assert (await standing(here))[0], "a person may redrive it"
        await here.database.run(age, 31)

        async def redrive() -> str:
            try:
                await here.database.run(redriving.redrive_job, HOME, accepted.job_id, "olga")
            except CallerError as error:
                return error.code
            return "redriven"

        told, _ = await asyncio.gather(
            redrive(), here.database.run(purging.purge_job, System(), accepted.job_id, 30)
        )
        if told == "redriven":
            assert await Process(here).drain() == ["completed"]
        else:
            assert (told, await standing(here)) == ("nothing_to_retry", (False, False))
