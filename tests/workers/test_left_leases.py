"""A claim whose answer is lost, and work that the database breaks off: the leases left behind are let go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.flow.site.admission import Caller
from dragoman.kernel.errors import CommitUnknown, StoreError
from dragoman.kernel.limits import JOB_STARTS_MAX, SWEEP_SECONDS
from dragoman.model.runs import RunDraft
from dragoman.store.acts import leasing
from dragoman.store.schema import engine, metadata
from dragoman.store.transaction import Row, Tx
from dragoman.store.writer import Call
from dragoman.wiring.draining import Drained, drain
from dragoman.wiring.rounds import ROLES, loops, opened
from dragoman.wiring.services import Services
from dragoman.wiring.settings import Settings
from tests.simulation.settings import CALM
from tests.simulation.shelves import SHELVES
from tests.simulation.world import World

pytestmark = pytest.mark.anyio

_CLAIMS = {
    "claim_run": "runs",
    "claim_enumerating_manifest": "manifests",
    "claim_due_intents": "shards",
    "claim_prepared_intents": "shards",
    "persist_submissions": "submissions",
    "claim_job": "jobs",
    "begin_deliveries": "outbox",
    "claim_requests": "publication_requests",
    "claim_commands": "publication_commands",
}
"""Every act that leases rows, and the table whose rows it leaves leased."""


class Weather:
    """What befalls the writing side of a database: the answers of named acts are lost, or they fail."""

    def __init__(self, services: Services) -> None:
        self._real: Any = services.database._writer
        services.database._writer = self
        self.lose: list[str] = []
        """Acts whose next commit that gave something goes through, and whose answer is lost."""
        self.fail: list[tuple[str, Exception]] = []
        """Acts that fail so the next time, before anything of them is done."""
        self.hold_back: dict[str, asyncio.Event] = {}
        """Acts whose answer comes only once this happens."""
        self.committed = asyncio.Event()

    async def perform(self, call: Call) -> Any:
        name = call.act.__name__.lstrip("_")
        for planned in [one for one in self.fail if one[0] == name][:1]:
            self.fail.remove(planned)
            raise planned[1]
        result = await self._real.perform(call)
        if name in self.lose and result:
            self.lose.remove(name)
            raise CommitUnknown("the answer was lost")
        if name in self.hold_back and result:
            self.committed.set()
            await self.hold_back[name].wait()
        return result

    async def close(self) -> None:
        await self._real.close()


class House:
    """All loops of one process, each step taken by hand."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.weather = Weather(services)
        self.steps = {loop.name: loop.step for loop in loops(services, ROLES) if not loop.listens}
        self.upkeep = {"sweep", "sweep_jobs", "show_life", "retain", "restore", "reconcile"}

    async def begin(self) -> str:
        """A convergence run: it meets every claim on its way."""
        started = await self.services.convergence.start(RunDraft("default", "docs", "mia", "manual", "", {}))
        assert started is not None
        return started.run_id

    async def work(self) -> None:
        """Step until no loop finds anything; what breaks a step off breaks off that step alone."""
        moved = True
        while moved:
            moved = False
            for name in self.steps.keys() - self.upkeep:
                with suppress(StoreError, ZeroDivisionError):
                    moved |= await self.steps[name]() > 0

    async def sweep(self) -> int:
        return await self.steps["sweep"]()

    async def leases(self) -> list[tuple[str, Any, int]]:
        return await self.services.database.read(leasing.leases_of, self.services.keeper.owner)

    async def looked(self) -> None:
        """A read that began after this one's has ended: the sweep has seen what it looks for."""
        for _ in range(3):
            await self.leases()

    async def job(self) -> Row:
        [row] = await self.services.database.read(rows, engine.jobs)
        return row

    async def ended(self, run_id: str) -> bool:
        return bool((await self.services.convergence.report("default", run_id))["state"] == "complete")

    async def finish(self, run_id: str) -> None:
        """Sweep and work until the run has ended; a run looks again at a time of its own."""
        for _ in range(4):
            await self.sweep()
            await self.steps["sweep_jobs"]()
            await self.services.database.run(bring_runs)
            await self.work()
        assert await self.ended(run_id)


def rows(tx: Tx, table: sa.Table) -> Sequence[Row]:
    return tx.all(sa.select(table))


def bring_runs(tx: Tx) -> None:
    """Let every open run be looked at now."""
    runs = metadata.tables["runs"]
    tx.touched(sa.update(runs).where(runs.c.next_attempt_at.is_not(None)).values(next_attempt_at=tx.now))


@asynccontextmanager
async def house(url: str, folder: Path) -> AsyncIterator[House]:
    (folder / "en").mkdir()
    (folder / "en" / "a.json").write_text('{"k": "Hello"}\n')
    settings = Settings(
        database_url=url,
        root=folder,
        state_folder=folder / ".dragoman",
        locales=("de",),
        sources=("en",),
        executor="files:v1",
    )
    async with opened(settings, roles=()) as services:
        yield House(services)


@pytest.mark.parametrize("act", _CLAIMS)
async def test_what_a_claim_took_whose_answer_was_lost_is_free_at_the_next_sweep(
    database_url: str, tmp_path: Path, act: str
) -> None:
    async with house(database_url, tmp_path) as here:
        here.weather.lose = [act]
        run_id = await here.begin()
        await here.work()
        assert not here.weather.lose, "the answer was lost"
        assert not await here.ended(run_id), "nobody else works it while the lease stands"
        assert [table for table, _, _ in await here.leases()] == [_CLAIMS[act]]
        assert await here.sweep() == 1
        assert await here.leases() == []
        await here.finish(run_id)
        assert (tmp_path / "de" / "a.json").exists()


async def test_a_send_that_was_taken_up_again_and_lost_again_is_free_too(
    database_url: str, tmp_path: Path
) -> None:
    async with house(database_url, tmp_path) as here:
        here.weather.lose = ["persist_submissions", "begin_due_sends"]
        run_id = await here.begin()
        await here.work()
        await here.sweep()
        await here.work()
        assert not here.weather.lose
        assert [table for table, _, _ in await here.leases()] == ["submissions"]
        await here.finish(run_id)


async def test_a_claim_whose_answer_is_under_way_is_waited_for_and_left_in_peace(
    database_url: str, tmp_path: Path
) -> None:
    """The row stands under this process's name, and nobody here holds it yet."""
    async with house(database_url, tmp_path) as here:
        here.weather.hold_back["claim_job"] = answered = asyncio.Event()
        run_id = await here.begin()
        working = asyncio.create_task(here.work())
        await here.weather.committed.wait()
        [lease] = await here.leases()
        sweeping = asyncio.create_task(here.sweep())
        await here.looked()
        assert await here.leases() == [lease]
        assert not sweeping.done()
        answered.set()
        assert await sweeping == 0
        await working
        await here.finish(run_id)
        assert (await here.job()).fence == lease[2], "it was claimed once"


async def test_what_is_worked_now_is_left_in_peace(database_url: str, tmp_path: Path) -> None:
    async with house(database_url, tmp_path) as here:
        here.weather.hold_back["finish_job"] = ended = asyncio.Event()
        here.weather.hold_back["start_call"] = called = asyncio.Event()
        run_id = await here.begin()
        working = asyncio.create_task(here.work())
        await here.weather.committed.wait()
        [lease] = [one for one in await here.leases() if one[0] == "jobs"]
        assert await here.sweep() == 0
        assert lease in await here.leases()
        called.set()
        ended.set()
        await working
        await here.finish(run_id)
        assert (await here.job()).fence == lease[2]


async def test_a_job_is_never_given_up_for_the_databases_sake(database_url: str, tmp_path: Path) -> None:
    """Broken off more often than a poison job would be: none of these counts as a start."""
    async with house(database_url, tmp_path) as here:
        times = JOB_STARTS_MAX + 2
        here.weather.fail = [("start_call", StoreError("away"))] * times
        here.weather.lose = ["claim_job"]
        run_id = await here.begin()
        for _ in range(times + 1):
            await here.work()
            assert await here.sweep() == 1
        assert not here.weather.fail
        await here.finish(run_id)
        assert ((await here.job()).state, (await here.job()).starts) == ("completed", 0)


async def test_a_job_that_breaks_its_worker_is_given_up_whatever_lives_on(
    database_url: str, tmp_path: Path
) -> None:
    async with house(database_url, tmp_path) as here:
        here.weather.fail = [("start_call", ZeroDivisionError())] * JOB_STARTS_MAX
        await here.begin()
        for _ in range(JOB_STARTS_MAX):
            await here.work()
            assert await here.sweep() == 1
            await here.steps["sweep_jobs"]()
        await here.work()
        assert ((await here.job()).state, (await here.job()).error_code) == ("failed", "gave_up")


async def test_a_delivery_that_the_database_broke_off_is_none_without_progress(
    database_url: str, tmp_path: Path
) -> None:
    commands = metadata.tables["publication_commands"]
    async with house(database_url, tmp_path) as here:
        here.weather.lose = ["claim_commands"]
        run_id = await here.begin()
        await here.work()
        assert await here.sweep() == 1
        [command] = await here.services.database.read(rows, commands)
        assert (command.deliveries_without_progress, command.delivery_count) == (0, 1)
        await here.finish(run_id)


@pytest.mark.parametrize("act", [act for act in _CLAIMS if act != "claim_run"])
def test_a_bounded_run_recovers_before_the_next_sweep_and_ends_its_work(tmp_path: Path, act: str) -> None:
    """On virtual time: who works alone is not idle while leases may have been left behind."""
    world = World(CALM, tmp_path)
    came_to: list[Drained] = []

    async def play(services: Services) -> None:
        services.workers.start(loops(services, ROLES))
        await asyncio.sleep(1)
        Weather(services).lose = [act]
        pairs = [(name, "de") for name in sorted(SHELVES["usual"])]
        await services.admission.admit_pairs(
            Caller("default", "mia"), "docs", "r", pairs, world.people._frozen("all")
        )
        came_to.append(await drain(services, ROLES, 600.0, 20, asyncio.Event()))

    world.visit(play)
    assert [(one.why, one.at_work) for one in came_to] == [("drained", 0)]
    assert came_to[0].seconds < SWEEP_SECONDS
