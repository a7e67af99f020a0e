"""Leases are renewed in time, and loops look when they are to; on virtual time, over the real store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dragoman.kernel import metrics
from dragoman.store.schema import metadata
from dragoman.store.transaction import Tx
from dragoman.wiring.services import Services
from dragoman.workers import Loop
from tests.simulation.settings import CALM
from tests.simulation.world import World

_REQUESTS = metadata.tables["publication_requests"]


def visit(folder: Path, play: Callable[[Services], Coroutine[Any, Any, None]]) -> None:
    """One process of a quiet world."""
    World(CALM, folder).visit(play)


def lease(tx: Tx, name: str, owner: str, lease_seconds: int) -> None:
    """A row that this owner has leased under fence 1."""
    row = {"id": name, "workspace": "w", "manifest_id": "m", "intents": "[]", "state": "pending",
           "created_at": tx.now, "updated_at": tx.now, "lease_owner": owner, "fence": 1,
           "lease_expires_at": tx.now + lease_seconds * 1_000_000}  # fmt: skip
    tx.insert(_REQUESTS, [row])


def take_away(tx: Tx, name: str) -> None:
    """Somebody else claims the row."""
    here = sa.update(_REQUESTS).where(_REQUESTS.c.id == name)
    tx.touched(here.values(fence=2, lease_owner="somebody else"))


def test_a_short_lease_taken_beside_a_long_one_is_renewed_in_its_own_time(tmp_path: Path) -> None:
    async def play(services: Services) -> None:
        keeper = services.keeper
        renewing = asyncio.create_task(keeper.run())
        await services.database.run(lease, "long", keeper.owner, 300)
        long = keeper.hold("publication_requests", ("long",), 1, 300)
        await asyncio.sleep(1)
        await services.database.run(lease, "short", keeper.owner, 10)
        short = keeper.hold("publication_requests", ("short",), 1, 10)
        least = 10.0
        for _ in range(600):
            await asyncio.sleep(0.1)
            least = min(least, short.left_seconds())
        assert least > 0, "work under it never had to stop"
        assert not short.lost
        assert not long.lost
        renewing.cancel()

    visit(tmp_path, play)


def test_a_lease_that_somebody_else_took_is_lost_and_the_others_are_kept(tmp_path: Path) -> None:
    async def play(services: Services) -> None:
        keeper = services.keeper
        renewing = asyncio.create_task(keeper.run())
        lost_before = metrics.number("dragoman_leases_lost_total", table="publication_requests")
        held = {}
        for name in ("kept", "taken"):
            await services.database.run(lease, name, keeper.owner, 30)
            held[name] = keeper.hold("publication_requests", (name,), 1, 30)
        await services.database.run(take_away, "taken")
        await asyncio.sleep(120)
        assert held["taken"].lost
        assert held["taken"].left_seconds() == 0
        assert held["kept"].left_seconds() > 0
        lost = metrics.number("dragoman_leases_lost_total", table="publication_requests")
        assert lost - lost_before == 1
        renewing.cancel()

    visit(tmp_path, play)


def test_work_of_one_loop_wakes_those_that_it_concerns_and_no_others(tmp_path: Path) -> None:
    """A loop that keeps to its poll writes nothing each time that something else was done."""

    async def play(services: Services) -> None:
        looks = {"worker": 0, "woken": 0, "clockwork": 0}
        work = 5

        def step(name: str) -> Callable[[], Coroutine[Any, Any, int]]:
            async def look() -> int:
                nonlocal work
                looks[name] += 1
                await asyncio.sleep(1)
                if name == "worker" and work:
                    work -= 1
                    return 1
                return 0

            return look

        services.workers.start(
            [
                Loop("worker", step("worker"), 60),
                Loop("woken", step("woken"), 60),
                Loop("clockwork", step("clockwork"), 60, woken=False),
            ]
        )
        await asyncio.sleep(30)
        assert services.workers.idle
        assert looks["worker"] >= 6
        assert looks["woken"] >= 2
        assert looks["clockwork"] == 1
        await asyncio.sleep(60)
        assert looks["clockwork"] == 2
        await services.workers.stop()

    visit(tmp_path, play)
