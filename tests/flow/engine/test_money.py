"""Money is reserved before it is spent, and settled to what was used; nobody overspends together."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from dragoman.content.locales import choose_code
from dragoman.kernel.clock import MICROSECONDS, month
from dragoman.kernel.errors import CallerError
from dragoman.model.completions import ProviderAnswer, Reply, Usage
from dragoman.model.scopes import System
from dragoman.providers.rehearsal import RehearsalProvider
from dragoman.store.acts import viewing
from dragoman.store.acts.auditing import money_differences
from dragoman.store.database import Database
from dragoman.store.rows import budgets
from dragoman.store.schema import effects as ledger
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Tx
from tests.flow.engine.world import HOME, Process, World, accepted_calls, numbered, rehearsal, world

pytestmark = pytest.mark.anyio

_WORST_CASE = 10
_DOCUMENTS = 40


class Metered(RehearsalProvider):
    """Every call costs its worst case; `held` is what the client job holds during each call."""

    def __init__(self) -> None:
        super().__init__("rehearsal", choose_code, microusd_per_token=1)
        self.database: Database | None = None
        self.held: list[int] = []

    def reserve(self, body: bytes) -> tuple[int, int]:
        return _WORST_CASE, _WORST_CASE

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        assert self.database is not None
        sums = await self.database.read(budgets_of_client)
        self.held.append(sums.reserved.tokens + sums.spent.tokens)
        return await super().send(body, attempt_id, deadline_seconds)

    def read(self, answer: bytes) -> Reply:
        reply = super().read(answer)
        usage = Usage(_WORST_CASE - 3, 3, 0, _WORST_CASE, _WORST_CASE, "test 1")
        return Reply(reply.items, reply.finish, usage)


def limit_month(tx: Tx, tokens: int) -> None:
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
        await here.database.run(limit_month, 10)
        accepted = await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["parked"]
        view = await here.view(accepted.job_id)
        assert (view["status"], view["parked_for"]) == ("queued", "budget")
        assert view["next_attempt_at"] is not None
        assert provider.calls == []
        assert await here.rows("attempts") == []
        await here.database.run(limit_month, 10**9)
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


async def _of_each_state(here: World) -> dict[tuple[str, str], int]:
    """How many jobs stand in each (state, reason to wait)."""
    rows = await here.rows("jobs")
    kinds = {(row.state, row.parked_for) for row in rows}
    return {kind: sum((row.state, row.parked_for) == kind for row in rows) for kind in kinds}


async def test_forty_documents_and_a_budget_for_ten_of_them(database_url: str) -> None:
    """40 documents of one field, `batch_size` 1, eight workers, a budget of 100 and a worst case of 10.

    Never are more than 100 reserved or spent: 10 are translated, 30 wait with reason `budget`; raising it
    through the controls goes on with those 30 only. [J-082, J-083]
    """
    provider = Metered()
    async with world(database_url, provider) as here:
        provider.database = here.database
        await here.put(revision=1, budget={"tokens": 100})
        for number, text in enumerate(numbered(_DOCUMENTS).values()):
            await here.accept({f"document {number}": {"body": text}}, options={"batch_size": 1})
        await asyncio.gather(*(Process(here).drain() for _ in range(8)))
        assert await _of_each_state(here) == {("completed", ""): 10, ("queued", "budget"): 30}
        assert accepted_calls(provider) == len(provider.held) == 10
        assert max(provider.held) <= 100
        assert await here.database.read(budgets_of_client) == budgets.Held(
            budgets.Sum(), budgets.Sum(100, 100)
        )
        await here.assert_money_is_true()
        done = {row.id for row in await here.rows("jobs") if row.state == "completed"}
        await here.put(revision=2, budget={"tokens": 400})
        ends = await asyncio.gather(*(Process(here).drain() for _ in range(8)))
        assert sorted(end for some in ends for end in some) == ["completed"] * 30
        assert accepted_calls(provider) == _DOCUMENTS
        used = [row.job_id for row in await here.rows("ai_usage")]
        assert len(set(used)) == len(used) == _DOCUMENTS
        assert done <= set(used)
        assert max(provider.held) <= 400
        await here.assert_money_is_true()


async def test_forty_documents_of_one_job_stop_at_the_budget_too(database_url: str) -> None:
    """The same within one job, eight calls at once: ten calls, and thirty more once there is room."""
    provider = Metered()
    async with world(database_url, provider) as here:
        provider.database = here.database
        await here.put(revision=1, budget={"tokens": 100})
        documents = {
            f"document {number}": {"body": text} for number, text in enumerate(numbered(40).values())
        }
        options = {"batch_size": 1, "concurrency": 8}
        job = await here.accept(documents, options=options)
        assert await Process(here).drain() == ["parked", "parked"], "tried again, for its calls are settled"
        view = await here.view(job.job_id)
        assert (view["parked_for"], view["done_fields"], accepted_calls(provider)) == ("budget", 10, 10)
        await here.put(revision=2, budget={"tokens": 400})
        assert await Process(here).drain() == ["completed"]
        assert (accepted_calls(provider), max(provider.held[:10])) == (_DOCUMENTS, 100)
        await here.assert_money_is_true()


def budgets_of_client(tx: Tx) -> budgets.Held:
    return budgets.of_scope(tx, HOME.id, "client_job", "manifest-1")


class Watched(Metered):
    """What status tells of the client job's money during each call."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[dict[str, int]] = []

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        assert self.database is not None
        self.told.append(await self.database.read(viewing.money, HOME.id, "manifest-1"))
        return await super().send(body, attempt_id, deadline_seconds)


async def test_status_tells_what_calls_under_way_have_reserved(database_url: str) -> None:
    """And nothing of it once they have ended: then it is spent."""
    provider = Watched()
    async with world(database_url, provider) as here:
        provider.database = here.database
        await here.accept({"a": {"t": "Hello"}})
        await Process(here).drain()
        [during] = provider.told
        assert (during["reserved_tokens"], during["reserved_microusd"]) == (_WORST_CASE, _WORST_CASE)
        assert (during["tokens"], during["at_risk_tokens"]) == (0, 0)
        after = await here.database.read(viewing.money, HOME.id, "manifest-1")
        assert (after["reserved_tokens"], after["reserved_microusd"]) == (0, 0)
        assert (after["tokens"], after["at_risk_attempts"]) == (_WORST_CASE, 0)


async def test_a_free_provider_moves_no_budget_and_is_metered_all_the_same(sqlite_url: str) -> None:
    """J-070: usage has its row; the quota is about what is paid for."""
    async with world(sqlite_url, rehearsal()) as here:
        await here.database.run(limit_month, 1)
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
        await here.database.run(limit_month, 1)
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


async def test_a_budget_comes_with_the_first_submission_and_a_control_leads(database_url: str) -> None:
    """What a manifest was admitted with holds from its first job on; a control is not undone by it."""
    provider = rehearsal(microusd_per_token=1)
    async with world(database_url, provider) as here:
        job = await here.accept({"a": {"t": "Hello"}}, budget={"tokens": 10})
        assert await Process(here).drain() == ["parked"]
        await here.put(revision=1, paused=False)
        assert await Process(here).drain() == ["parked"], "a control without a budget leaves it as it is"
        await here.put(revision=2, budget={"tokens": 10**6, "usd": 0.5})
        assert await Process(here).drain() == ["completed"]
        await here.accept({"a": {"t": "Another"}}, budget={"tokens": 10})
        assert await Process(here).drain() == ["completed"]
        assert (await here.view(job.job_id))["status"] == "completed"
        await here.assert_money_is_true()


async def test_a_provider_account_has_a_month_of_its_own(database_url: str) -> None:
    """The scope `provider`: bounded by the settings, for each workspace, whatever its manifests may spend."""
    provider = rehearsal(microusd_per_token=1)
    async with world(database_url, provider) as here:
        here.bounds = {provider.name: (10, None)}
        await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["parked"]
        assert provider.calls == []
        here.bounds = {provider.name: (10_000, 10_000)}
        await here.hasten()
        assert await Process(here).drain() == ["completed"]
        await here.assert_money_is_true()
        held = {row.scope: row.spent_tokens for row in await here.rows("budgets")}
        assert set(held) == {"month", "provider", "client_job"}
        assert len(set(held.values())) == 1


class Unlisted(RehearsalProvider):
    """Bills, and nobody knows how much."""

    def __init__(self) -> None:
        super().__init__("rehearsal", choose_code)
        self.priced = True


async def test_what_nobody_can_price_fits_no_budget_in_money(sqlite_url: str) -> None:
    """A metering error refuses work: a call without a price is not taken for one that costs nothing."""
    provider = Unlisted()
    async with world(sqlite_url, provider) as here:
        await here.put(revision=1, budget={"usd": 100})
        await here.accept({"a": {"t": "Hello"}})
        assert await Process(here).drain() == ["parked"]
        assert provider.calls == []
        await here.put(revision=2, budget={"tokens": 100_000})
        assert await Process(here).drain() == ["completed"]


async def test_what_is_unknown_stays_reserved_in_the_month_it_began(sqlite_url: str) -> None:
    """Nobody gives its reserve back for the time that passes, nor moves it into another month."""
    provider = rehearsal(microusd_per_token=1, script=["lost"])
    async with world(sqlite_url, provider) as here:
        await here.accept({"a": {"t": "Hello"}}, options={"on_unknown": "hold"})
        await Process(here).drain()
        await here.hasten()
        assert await Process(here).drain() == ["parked"]
        await here.database.run(_move_to_last_month)
        await here.assert_money_is_true()
        [month_row] = [row for row in await here.rows("budgets") if row.scope == "month"]
        assert (month_row.scope_key, month_row.spent_tokens) == ("2020-01", 0)
        assert month_row.reserved_tokens > 0
        await here.controls.release(HOME, "manifest-1", "ada", "it is worth it")
        assert await Process(here).drain() == ["completed"]
        await here.assert_money_is_true()
        months = {row.scope_key: row for row in await here.rows("budgets") if row.scope == "month"}
        assert months.pop("2020-01").reserved_tokens == month_row.reserved_tokens
        [this_month] = months.values()
        assert this_month.spent_tokens > 0


def _move_to_last_month(tx: Tx) -> None:
    """As if the attempt had been made in January 2020."""
    now = month(tx.now)
    tx.touched(sa.update(ledger.attempts).values(budget_month="2020-01"))
    for row in tx.all(sa.select(tables.budgets)):
        key = sa.update(tables.budgets).where(tables.budgets.c.scope_key == row.scope_key)
        tx.touched(key.values(scope_key=row.scope_key.replace(now, "2020-01")))


async def test_the_usage_row_names_its_prices(sqlite_url: str) -> None:
    """A price is proved by the list that it was reckoned by, whatever a later list says."""
    provider = Metered()
    async with world(sqlite_url, provider) as here:
        provider.database = here.database
        await here.accept({"a": {"t": "Hello"}})
        await Process(here).drain()
        [used] = await here.rows("ai_usage")
        assert used.prices == "test 1"


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
        await here.database.run(limit_month, 2_000)
        for number in range(16):
            fields = numbered(4, f"Job {'abcdefghijklmnop'[number]} with words")
            await here.accept({"a": fields}, options={"batch_size": 1})
        await asyncio.gather(*(Process(here).drain() for _ in range(4)))
        summary = await here.jobs.usage(HOME)
        assert 0 < summary["used"] + summary["reserved"] <= 2_000
        assert accepted_calls(provider) < 64
        await here.assert_money_is_true()


async def test_a_sum_that_is_not_true_is_found(sqlite_url: str) -> None:
    """Law 6 has a checker, and the checker has something to find."""
    async with world(sqlite_url, rehearsal(microusd_per_token=1)) as here:
        await here.accept({"a": {"t": "Hello"}})
        await Process(here).drain()
        await here.assert_money_is_true()
        await here.database.run(_spend_unseen)
        assert len(await here.database.read(money_differences, System())) == 3


def _spend_unseen(tx: Tx) -> None:
    tx.touched(sa.update(tables.budgets).values(spent_tokens=tables.budgets.c.spent_tokens + 1))
