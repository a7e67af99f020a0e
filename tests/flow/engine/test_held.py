"""A job is worked by who holds what it needs: a provider's key, or the address that a command line gave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from dragoman.families.completion import Completion
from dragoman.flow.engine.acceptance import Acceptance
from dragoman.flow.engine.dispatch import Dispatch
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.errors import CallerError, SettingsError
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.limits import LANES_PER_CLAIM
from dragoman.kernel.offload import InlineOffload
from dragoman.model.contracts import Provider
from dragoman.model.scopes import System
from dragoman.store.acts import examining, leasing, readiness
from dragoman.store.keeping import Keeper
from dragoman.store.rows import lanes
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Tx
from dragoman.wiring.rounds import opened
from dragoman.wiring.services import Services
from dragoman.wiring.settings import ProviderSettings, Settings
from tests.flow.engine.world import PRINCIPAL, Process, World, rehearsal, submission, world

pytestmark = pytest.mark.anyio

NAME = "openai@0123456789ab"
OURS, THEIRS = "OUR_KEY", "THEIR_KEY"


def bring_deadline(tx: Tx) -> None:
    tx.touched(sa.update(tables.jobs).values(deadline_at=tx.now - 1))


def given(here: World) -> Dispatch:
    """A process that was given the address."""
    keeper = Keeper(here.database, SystemClock(), "test/boot/given/0")
    return Dispatch(here.database, here.queue, keeper, System(), holds=[NAME])


def keyed(here: World) -> None:
    """Two providers, each with its key."""
    here.needs.update(ours=OURS, theirs=THEIRS)


def two_providers() -> tuple[Provider, Provider]:
    return rehearsal(name="ours"), rehearsal(name="theirs")


async def ask(here: World, provider: str, workspace: str = "home") -> str:
    options = {"provider_config": provider}
    return (await here.accept({"a": {"t": "Hello"}}, options=options, workspace=workspace)).job_id


async def states(here: World) -> dict[str, str]:
    return {row.id: row.state for row in await here.rows("jobs")}


async def announce(here: World, *references: str, role: str = "engine") -> None:
    """A worker elsewhere shows that it lives, and what it holds."""
    seen = {"id": f"w{role}", "role": role, "host": "far", "release": "0"}
    await here.database.run(leasing.see_worker, {**seen, "credentials": json.dumps(references)})


async def test_a_job_waits_for_a_process_that_has_its_address(database_url: str) -> None:
    """Accepted anywhere, claimed there only; others behind it are not kept waiting, and doctor tells."""
    async with world(database_url, rehearsal()) as here:
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"provider_config": NAME})
        other = await here.accept({"a": {"t": "World"}}, workspace="third")
        assert await Process(here).drain() == ["completed"]
        assert (await here.view(accepted.job_id))["status"] == "queued"
        assert [job.state for job in await here.rows("jobs") if job.id == other.job_id] == ["completed"]
        told = await here.database.read(examining.findings)
        assert any(NAME in one["problem"] and "--base-url" in one["remedy"] for one in told)
        claimed = await given(here).take()
        assert claimed is not None
        assert claimed.job_id == accepted.job_id


async def test_a_job_past_its_time_is_ended_by_anybody(sqlite_url: str) -> None:
    async with world(sqlite_url, rehearsal()) as here:
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"provider_config": NAME})
        await here.database.run(bring_deadline)
        assert await Process(here).drain() == ["failed"]
        assert (await here.view(accepted.job_id))["code"] == "provider_unknown"


async def test_two_workers_with_different_keys_each_work_their_own(database_url: str) -> None:
    """In one workspace, mixed: neither takes what it has no key for, and both together leave nothing."""
    async with world(database_url, *two_providers()) as here:
        keyed(here)
        jobs = [await ask(here, provider) for provider in ("theirs", "ours", "theirs", "ours")]
        assert await Process(here).drain() == []
        assert await Process(here, holds=[OURS]).drain() == ["completed"] * 2
        assert list((await states(here)).values()).count("queued") == 2
        assert (await states(here))[jobs[0]] == "queued"
        assert await Process(here, holds=[THEIRS]).drain() == ["completed"] * 2


async def test_what_a_vanished_worker_left_is_taken_up_by_who_has_the_key(database_url: str) -> None:
    """Also a lease that ran out: it counts as a start of nobody who could not have started it."""
    async with world(database_url, *two_providers()) as here:
        keyed(here)
        job = await ask(here, "theirs")
        assert await Process(here, holds=[THEIRS]).dispatch.take() is not None
        await here.abandon()
        assert await Process(here, holds=[OURS]).dispatch.take() is None
        again = await Process(here, holds=[THEIRS]).dispatch.take()
        assert again is not None
        assert again.job_id == job
        assert [row.starts for row in await here.rows("jobs")] == [1]


async def test_lanes_that_only_others_can_work_keep_nobody_waiting(database_url: str) -> None:
    """More of them than one claim looks at stand in front: who has none of their keys gets by in one claim,
    and they keep their turns.
    """
    async with world(database_url, *two_providers()) as here:
        keyed(here)
        for number in range(LANES_PER_CLAIM + 2):
            await ask(here, "theirs", workspace=f"w{number:02}")
        mine = [await ask(here, "ours", workspace="xeno") for _ in range(2)]
        await here.database.run(_send_to_the_back, "xeno")
        before = {row.workspace: (row.ready_at, row.served_at) for row in await here.rows("lanes")}
        us = Process(here, holds=[OURS])
        for job in mine:
            claimed = await us.dispatch.take()
            assert claimed is not None
            assert claimed.job_id == job
        assert await us.dispatch.take() is None
        after = {row.workspace: (row.ready_at, row.served_at) for row in await here.rows("lanes")}
        assert {name: after[name] for name in before if name != "xeno"} == {
            name: turn for name, turn in before.items() if name != "xeno"
        }
        claimed = await Process(here, holds=[THEIRS]).dispatch.take()
        assert claimed is not None
        assert claimed.workspace.startswith("w")


def _send_to_the_back(tx: Tx, workspace: str) -> None:
    tx.touched(
        sa.update(tables.lanes)
        .where(tables.lanes.c.workspace == workspace, tables.lanes.c.role == lanes.ENGINE)
        .values(served_at=1)
    )


async def test_a_job_handed_on_needs_the_key_of_who_goes_on(database_url: str) -> None:
    """Refused by its own provider it goes to the next that the worker can use, and waits for that key."""
    refusing = rehearsal(name="ours", script=["spend_limit"])
    async with world(database_url, refusing, rehearsal(name="theirs")) as here:
        keyed(here)
        here.fallbacks["ours"] = ("theirs",)
        job = await ask(here, "ours")
        us = Process(here, holds=[OURS])
        claimed = await us.dispatch.take()
        assert claimed is not None
        await us.translation.work(claimed)
        [row] = await here.rows("jobs")
        assert (row.state, row.provider, row.needs) == ("queued", "theirs", THEIRS)
        assert await us.drain() == []
        assert await Process(here, holds=[THEIRS]).drain() == ["completed"]
        assert (await states(here)) == {job: "completed"}


async def test_a_message_about_a_job_of_others_is_let_go(sqlite_url: str) -> None:
    """It takes no room where nobody can do what it says."""
    async with world(sqlite_url, *two_providers()) as here:
        keyed(here)
        await ask(here, "theirs")
        assert not await Process(here, holds=[OURS]).dispatch.listen()
        await ask(here, "theirs")
        assert await Process(here, holds=[THEIRS]).dispatch.listen()


def _without_keys(here: World) -> Acceptance:
    """The door of a process whose environment holds no key."""
    makers: dict[str, Callable[[str], Provider]] = {"theirs": _keyless}
    completion = Completion(makers, "theirs", needs={"theirs": THEIRS})
    asked = completion.resolve, completion.need
    return Acceptance(here.database, here.queue, *asked, InlineOffload(), SystemChance())


def _keyless(_model: str) -> Provider:
    raise SettingsError("provider theirs needs its key", "provider_credentials_missing")


async def test_a_door_without_a_key_takes_work_for_who_announces_it(database_url: str) -> None:
    """Where no living engine says that it holds the key, nobody could do the work, and it is refused."""
    async with world(database_url, *two_providers()) as here:
        keyed(here)
        door = _without_keys(here)
        body = submission({"a": {"t": "Hello"}}, options={"provider_config": "theirs"})
        await announce(here, OURS)
        await announce(here, THEIRS, role="site")
        with pytest.raises(SettingsError) as refused:
            await door.accept(PRINCIPAL, "home", "docs", body, local=True)
        assert refused.value.code == "provider_credentials_missing"
        await announce(here, OURS, THEIRS)
        accepted = await door.accept(PRINCIPAL, "home", "docs", body, local=True)
        assert await Process(here, holds=[THEIRS]).drain() == ["completed"]
        assert (await states(here)) == {accepted.job_id: "completed"}


async def test_a_worker_takes_by_the_keys_of_its_environment(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole process: what it claims and what it announces are the keys that it was started with."""
    providers = {"house": ProviderSettings(protocol="pseudo", key_variable="HOUSE_KEY", requires_key=True)}
    settings = Settings(
        database_url=database_url, root=tmp_path, state_folder=tmp_path / "s", providers=providers
    )
    monkeypatch.setenv("HOUSE_KEY", "k")
    async with world(database_url) as here:
        async with opened(settings, roles=()) as door:
            for name, workspace in (("house", "home"), ("pseudo", "third")):
                body = submission({"a": {"t": "Hello"}}, options={"provider_config": name})
                await door.acceptance.accept(PRINCIPAL, workspace, "docs", body, local=True)
        monkeypatch.delenv("HOUSE_KEY")
        async with opened(settings, roles=("engine",)):
            await _ended(here, "third")
        assert {row.workspace: row.state for row in await here.rows("jobs")}["home"] == "queued"
        monkeypatch.setenv("HOUSE_KEY", "k")
        async with opened(settings, roles=("engine",)):
            await _ended(here, "home")
        assert "HOUSE_KEY" in await here.database.read(readiness.held_by_engines)


async def test_a_worker_leaves_jobs_to_those_whose_settings_name_the_provider(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holding the key is not enough; a door that does not know the name takes the work while another does."""
    monkeypatch.setenv("HOUSE_KEY", "k")
    keyed_one = ProviderSettings(protocol="pseudo", key_variable="HOUSE_KEY", requires_key=True)
    ours = {"house": keyed_one, "free": ProviderSettings(protocol="pseudo")}
    theirs = {"villa": keyed_one}

    def settings(providers: dict[str, ProviderSettings]) -> Settings:
        folder = tmp_path / "s"
        return Settings(database_url=database_url, root=tmp_path, state_folder=folder, providers=providers)

    async def send(door: Services, name: str) -> None:
        body = submission({"a": {"t": "Hello"}}, options={"provider_config": name})
        await door.acceptance.accept(PRINCIPAL, name, "docs", body, local=True)

    async with world(database_url) as here:
        async with opened(settings(theirs), roles=()) as stranger:
            with pytest.raises(CallerError) as refused:
                await send(stranger, "house")
            assert refused.value.code == "provider_unknown"
            async with opened(settings(ours), roles=()) as knows:
                await send(knows, "house")
                told = await here.database.read(examining.findings)
                assert [
                    "[providers.house]" in one["remedy"] for one in told if "jobs wait" in one["problem"]
                ] == [True]
                await announce(here, *knows.holds)
            await send(stranger, "free")
        async with opened(settings(theirs), roles=("engine",)) as stranger:
            await send(stranger, "villa")
            await _ended(here, "villa")
        states = {row.workspace: row.state for row in await here.rows("jobs")}
        assert states == {"house": "queued", "free": "queued", "villa": "completed"}
        async with opened(settings(ours), roles=("engine",)):
            await _ended(here, "house")
            await _ended(here, "free")
        told = await here.database.read(examining.findings)
        assert not [one for one in told if "jobs wait" in one["problem"]]


async def _ended(here: World, workspace: str) -> None:
    async with asyncio.timeout(20):
        while {row.workspace: row.state for row in await here.rows("jobs")}[workspace] != "completed":
            await asyncio.sleep(0.02)


async def test_doctor_lists_jobs_that_nobody_can_claim(database_url: str) -> None:
    """Those whose key no living worker announces, by the key's name, and no others."""
    async with world(database_url, *two_providers()) as here:
        keyed(here)
        for provider in ("ours", "theirs", "theirs"):
            await ask(here, provider)
        await announce(here, OURS)
        told = [one for one in await here.database.read(examining.findings) if "jobs wait" in one["problem"]]
        assert len(told) == 1
        assert "2 jobs" in told[0]["problem"]
        assert THEIRS in told[0]["problem"]
        assert THEIRS in told[0]["remedy"]
        await announce(here, OURS, THEIRS)
        assert not [
            one for one in await here.database.read(examining.findings) if "jobs wait" in one["problem"]
        ]
