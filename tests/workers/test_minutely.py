"""No worker stands and nobody is woken: `dragoman run`, once a minute, is enough. On virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman import wiring
from dragoman.flow.site.admission import Caller
from dragoman.model.scopes import System
from dragoman.store.acts import draining, readiness
from dragoman.wiring import rounds
from dragoman.wiring.draining import Drained, drain
from dragoman.wiring.services import Services
from tests.simulation.processes import Process
from tests.simulation.settings import CALM
from tests.simulation.shelves import SHELVES
from tests.simulation.world import World

MINUTES = 5


def test_a_run_each_minute_ends_everything_and_readiness_stays(tmp_path: Path) -> None:
    """[M-341] each is a process of its own, and nobody else works; what is asked for waits for the next."""
    world = World(CALM, tmp_path)
    left: list[int] = []
    unready: list[dict[str, str]] = []

    async def run(number: int) -> int:
        process = Process(world, f"b{number}", number + 2)
        world._known[process.owner] = process
        services = world._assemble(process)
        services.workers.start(rounds.loops(services, rounds.ROLES))
        drained = await drain(services, rounds.ROLES, 50.0, 20, asyncio.Event())
        return drained.at_work

    async def play(api: Services) -> None:
        await run(0)  # whoever ran it was seen: new work may be sent
        pairs = [{"document": name, "locale": locale} for name in SHELVES["usual"] for locale in ("de", "fr")]
        for number in range(1, MINUTES + 1):
            await asyncio.sleep(20)
            await api.admission.admit(Caller("default", "mia"), {"request_id": f"r-{number}", "pairs": pairs})
            await asyncio.sleep(39)
            left.append(len(await api.database.read(draining.at_work, System(), 10)))
            unready.append(await api.database.read(readiness.problems))
            left.append(await run(number))
        await asyncio.sleep(149)
        unready.append(await api.database.read(readiness.problems))

    world.visit(play)
    assert world.problems == []
    assert left == [1, 0] * MINUTES
    assert [problems for problems in unready if problems] == []


def test_a_manifest_that_ends_before_the_first_look_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-086] it was at work when the run began."""
    world = World(CALM, tmp_path)
    told: list[Drained] = []
    monkeypatch.setattr(wiring.draining, "_LOOK_SECONDS", 45.0)

    async def play(api: Services) -> None:
        for number in range(2):
            process = Process(world, f"b{number}", number + 2)
            world._known[process.owner] = process
            services = world._assemble(process)
            services.workers.start(rounds.loops(services, rounds.ROLES))
            told.append(await drain(services, rounds.ROLES, 100.0, 20, asyncio.Event()))
            pairs = [{"document": name, "locale": "de"} for name in SHELVES["usual"]]
            await api.admission.admit(Caller("default", "mia"), {"request_id": f"r-{number}", "pairs": pairs})

    world.visit(play)
    assert [one.ended for one in told] == [0, 1]
