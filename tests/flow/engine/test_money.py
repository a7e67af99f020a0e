"""Money is reserved before it is spent, and settled to what was used; nobody overspends together."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from dragoman.kernel.clock import MICROSECONDS, month
from dragoman.kernel.errors import CallerError
from dragoman.model.scopes import System
from dragoman.store.acts.auditing import money_differences
from dragoman.store.rows import budgets
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Tx
from tests.flow.engine.world import HOME, Process, accepted_calls, numbered, rehearsal, world

pytestmark = pytest.mark.anyio


def _limit_month(tx: Tx, tokens: int) -> None:
    row = {"workspace": HOME.id, "monthly_tokens": tokens, "updated_at": tx.now}
    tx.upsert(tables.ai_quotas, row, ("workspace",), ("monthly_tokens", "updated_at"))


async def test_the_reserve_is_taken_before_the_call_and_settled_to_what_was_used(database_url: str) -> None:
    """J-082: the ledger's sums equal a recount, and what was used equals the usage rows."""
    provider = rehearsal(microusd_per_token=7)
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": numbered(30)}, options={"batch_size": 7})
        await Process(here).drain()
        await here.assert_money_is_true()
        used = await here.rows("ai_usage")
        paid = (await here.view(accepted.job_id))["usage"]["paid"]
        assert paid["tokens"] == sum(row.total_tokens for row in used) > 0
        assert paid["microusd"] == sum(row.microusd for row in used) == 7 * paid["tokens"]
        summary = await here.jobs.usage(HOME)
        assert (summary["used"], summary["reserved"]) == (paid["tokens"], 0)
        assert summary["remaining"] == 10_000_000 - paid["tokens"]


async def test_a_job_beyond_the_month_is_parked_and_goes_on_when_there_is_room(database_url: str) -> None:
    """J-083: over its quota a workspace's work waits; it is not failed, and nothing was sent."""
    provider = rehearsal(microusd_per_token=1)
    async with world(database_url, provider) as here:
        await here.database.run(_limit_month, 10)
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["parked"]
        view = await here.view(accepted.job_id)
        assert (view["status"], view["parked_for"]) == ("queued", "budget")
        assert view["next_attempt_at"] is not None
        assert provider.calls == []
        assert await here.rows("attempts") == []
        await here.database.run(_limit_month, 10**9)
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        await here.assert_money_is_true()


async def test_the_budget_of_a_client_job_bounds_all_its_jobs_together(database_url: str) -> None:
    """A budget crosses the contract with the controls; raising it lets the parked jobs go on at once."""
    provider = rehearsal(microusd_per_token=1)
    async with world(database_url, provider) as here:
        await here.put(revision=1, budget={"tokens": 500})
        options = {"batch_size": 1, "concurrency": 4}
        jobs = [await here.accept({"a": numbered(8, words)}, options=options) for words in ("One", "Two")]
        ends = await asyncio.gather(Process(here).drain(), Process(here).drain())
        assert {end for some in ends for end in some} == {"parked"}
        held = await here.database.read(budgets_of_client)
        assert held.spent.tokens + held.reserved.tokens <= 500
        await here.assert_money_is_true()
        await here.put(revision=2, budget=None)
        await Process(here).drain()
        assert [(await here.view(job.job_id))["status"] for job in jobs] == ["completed", "completed"]
        await here.assert_money_is_true()


def budgets_of_client(tx: Tx) -> budgets.Held:
    return budgets.of_scope(tx, HOME.id, "client_job", "manifest-1")


async def test_a_free_provider_moves_no_budget_and_is_metered_all_the_same(sqlite_url: str) -> None:
    """J-070: usage has its row; the quota is about what is paid for."""
    async with world(sqlite_url, rehearsal()) as here:
        await here.database.run(_limit_month, 1)
        await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["completed"]
        [used] = await here.rows("ai_usage")
        assert used.total_tokens > 0
        assert await here.rows("budgets") == []
        summary = await here.jobs.usage(HOME)
        assert (summary["used"], summary["metered"]) == (0, used.total_tokens)


async def test_a_job_that_needs_no_paid_call_starts_with_nothing_left(database_url: str) -> None:
    """[J-036, J-081]: the first worst-case reserve must fit; what the memory has needs none."""
    provider = rehearsal(microusd_per_token=1)
    async with world(database_url, provider) as here:
        await here.accept({"a": {"t": "Hello"}})
        await Process(here).drain()
        await here.database.run(_limit_month, 1)
        known = await here.accept({"a": {"t": "Hello", "n": "42"}})
        fresh = await here.accept({"a": {"t": "Something new"}})
        assert sorted(await Process(here).drain()) == ["completed", "parked"]
        assert (await here.view(known.job_id))["status"] == "completed"
        assert (await here.view(fresh.job_id))["parked_for"] == "budget"
        assert accepted_calls(provider) == 1


async def test_one_attempt_is_never_metered_twice(sqlite_url: str) -> None:
    """[J-043, J-044, J-070]: each group is one effect, metered once as it is settled."""
    async with world(sqlite_url, rehearsal(microusd_per_token=1)) as here:
        await here.accept({"a": numbered(6)}, options={"batch_size": 2})
        await Process(here).drain()
        used = [row.attempt_id for row in await here.rows("ai_usage")]
        assert len(used) == len(set(used)) == 3


@pytest.mark.parametrize("said", [{"tokens": 0}, {"usd": 0}, {"tokens": -1}, {"tokens": 1.5}, {"euro": 3}, 5])
async def test_a_budget_of_nothing_is_refused(sqlite_url: str, said: object) -> None:
    """Absent or null is unlimited, 0 is `422`."""
    async with world(sqlite_url) as here:
        with pytest.raises(CallerError, match="budget"):
            await here.put(revision=1, budget=said)


def test_the_period_is_the_calendar_month_in_utc() -> None:
    """J-080: half-open, at its first and last instant."""

    def instant(year: int, month: int, day: int, hour: int = 0) -> int:
        return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp()) * MICROSECONDS

    first, following = instant(2026, 12, 1), instant(2027, 1, 1)
    for moment in (first, following - 1, instant(2026, 12, 17, 13)):
        assert budgets.period(moment) == (first, following)
    assert budgets.period(following)[0] == following
    assert (month(first), month(following - 1), month(following)) == ("2026-12", "2026-12", "2027-01")


async def test_concurrent_jobs_cannot_overspend_together(server_url: str) -> None:
    """J-082: sixteen workers at one month's quota: what is reserved and spent never passes it."""
    provider = rehearsal(microusd_per_token=1)
    async with world(server_url, provider) as here:
        await here.database.run(_limit_month, 4_000)
        for number in range(16):
            fields = numbered(4, f"Job {'abcdefghijklmnop'[number]} with words")
            await here.accept({"a": fields}, options={"batch_size": 1})
        await asyncio.gather(*(Process(here).drain() for _ in range(4)))
        summary = await here.jobs.usage(HOME)
        assert 0 < summary["used"] + summary["reserved"] <= 4_000
        assert accepted_calls(provider) < 64
        await here.assert_money_is_true()


async def test_a_sum_that_is_not_true_is_found(sqlite_url: str) -> None:
    """Law 6 has a checker, and the checker has something to find."""
    async with world(sqlite_url, rehearsal(microusd_per_token=1)) as here:
        await here.accept({"a": {"t": "Hello"}})
        await Process(here).drain()
        await here.assert_money_is_true()
        await here.database.run(_spend_unseen)
        assert len(await here.database.read(money_differences, System())) == 2


def _spend_unseen(tx: Tx) -> None:
    tx.touched(sa.update(tables.budgets).values(spent_tokens=tables.budgets.c.spent_tokens + 1))
