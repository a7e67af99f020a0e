"""Claims go round the workspaces, by their weights: nobody waits for longer than a round."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from dragoman.model.scopes import System
from dragoman.store.acts import claiming
from dragoman.wiring.rounds import opened
from dragoman.wiring.settings import Settings
from tests.flow.engine.world import Process, World, world

pytestmark = pytest.mark.anyio


async def _take(here: World) -> str:
    claimed = await Process(here).dispatch.take()
    return claimed.workspace if claimed else ""


async def _fill(here: World, workspace: str, jobs: int) -> None:
    for _ in range(jobs):
        await here.accept({"a": {"t": "Hello"}}, workspace=workspace)


async def test_ten_jobs_start_within_one_round_behind_many(database_url: str) -> None:
    """The small workspace's first job is the next or the one after; its ten are through in ten rounds."""
    async with world(database_url) as here:
        await _fill(here, "large", 60)
        for _ in range(20):
            await _take(here)
        await _fill(here, "small", 10)
        turns = [await _take(here) for _ in range(20)]
        assert "small" in turns[:2]
        assert turns.count("small") == 10
        assert await _take(here) == "large"


@pytest.mark.parametrize("seed", range(4))
async def test_whoever_has_work_is_served_within_a_round(sqlite_url: str, seed: int) -> None:
    """Arrivals in any order: between two turns of a workspace with work, no other has more than two."""
    chance = random.Random(seed)
    names = [f"w{n}" for n in range(6)]
    waiting: Counter[str] = Counter()
    since: dict[str, Counter[str]] = {}
    async with world(sqlite_url) as here:
        for _ in range(150):
            if chance.random() < 0.5:
                name = chance.choice(names)
                await _fill(here, name, chance.choice((1, 1, 4)))
                waiting = waiting + Counter({name: (await _standing(here))[name] - waiting[name]})
                since.setdefault(name, Counter())
                continue
            served = await _take(here)
            if not served:
                assert not +waiting
                continue
            waiting[served] -= 1
            for name in [name for name in since if name != served and waiting[name]]:
                since[name][served] += 1
                assert max(since[name].values()) <= 2, (name, since[name])
            since[served] = Counter()


async def _standing(here: World) -> Counter[str]:
    return Counter(row.workspace for row in await here.rows("jobs") if row.state == "queued")


async def test_weights_are_shares_of_the_turns(database_url: str) -> None:
    """Weight five has five turns while each other has one, spread over the round."""
    async with world(database_url) as here:
        await here.database.run(claiming.weigh_workspaces, System(), {"heavy": 5})
        for name in ("heavy", "one", "two"):
            await _fill(here, name, 25)
        turns = [await _take(here) for _ in range(28)]
        counts = Counter(turns)
        assert 19 <= counts["heavy"] <= 21
        assert abs(counts["one"] - counts["two"]) <= 1
        await here.database.run(claiming.weigh_workspaces, System(), {"one": 1})
        even = Counter([await _take(here) for _ in range(12)])
        assert max(even.values()) - min(even.values()) <= 2


async def test_weights_come_from_the_settings(sqlite_url: str, tmp_path: object) -> None:
    """A process that starts with weights writes them down, also for a workspace that has no work yet."""
    settings = Settings.model_validate(
        {
            "database_url": sqlite_url,
            "root": str(tmp_path),
            "state_folder": f"{tmp_path}/state",
            "workspace_weights": {"heavy": 3},
        }
    )
    async with opened(settings, roles=("engine",)):
        pass
    async with world(sqlite_url) as here:
        [lane] = await here.rows("lanes")
        assert (lane.workspace, lane.weight, lane.ready_at) == ("heavy", 3, None)


async def test_who_was_alone_for_long_is_not_made_to_pay_for_it(sqlite_url: str) -> None:
    """Two newcomers do not catch up with a hundred turns that nobody else wanted."""
    async with world(sqlite_url) as here:
        await _fill(here, "alone", 45)
        assert {await _take(here) for _ in range(40)} == {"alone"}
        await _fill(here, "new", 12)
        await _fill(here, "newer", 12)
        turns = [await _take(here) for _ in range(9)]
        assert min(Counter(turns)[name] for name in ("alone", "new", "newer")) >= 2
