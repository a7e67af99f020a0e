"""Convergence runs: passes until nothing is wanted, joined, kept over restarts, with the true split."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.kernel.errors import CallerError
from dragoman.model.runs import RunDraft, Started, Trigger
from dragoman.wiring.rounds import opened, start
from dragoman.wiring.services import Services
from dragoman.wiring.settings import Settings


def settings_of(database_url: str, folder: Path, **more: Any) -> Settings:
    """A project of one folder with two target locales."""
    chosen = {"locales": ("de", "fr"), "sources": ("en",), "executor": "files:v1", **more}
    return Settings(database_url=database_url, root=folder, state_folder=folder / ".dragoman", **chosen)


def write(folder: Path, name: str, text: str) -> None:
    """A catalogue of one text, `en/NAME`."""
    path = folder / "en" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'{{"k": "{text}"}}\n')


def draft(push_id: str = "", trigger: Trigger = "manual", **asked: Any) -> RunDraft:
    return RunDraft("default", "docs", "mia", trigger, push_id, asked)


async def begun(services: Services, push_id: str = "", trigger: Trigger = "manual") -> Started:
    started = await services.convergence.start(draft(push_id, trigger))
    assert started is not None
    return started


async def ended(services: Services, run_id: str) -> dict[str, Any]:
    """The report of a run, once it has ended."""
    async with asyncio.timeout(60):
        while (report := await services.convergence.report("default", run_id))["ended_at"] is None:
            await asyncio.sleep(0.02)
    return report


def test_a_run_makes_passes_until_nothing_is_wanted(database_url: str, tmp_path: Path) -> None:
    """[J-097] [J-100] [J-102] [J-103] [J-104] [J-056] complete; memory and AI make the whole; then no run."""
    for name in ("a.json", "b.json"):
        write(tmp_path, name, "Hello there")

    async def play() -> None:
        async with opened(settings_of(database_url, tmp_path)) as services:
            report = await ended(services, (await begun(services)).run_id)
            assert (report["state"], report["last_error"]) == ("complete", None)
            assert [one["wanted"] for one in report["passes"]] == [4]
            fields = report["fields"]
            assert fields["done"] == 4 == fields["via_memory"] + fields["via_ai"]
            assert report["cost"]["paid_usd"] == 0
            assert (tmp_path / "fr" / "a.json").exists()
            assert await services.convergence.start(draft()) is None, "nothing to do"
            write(tmp_path, "a.json", "Good bye")
            again = await ended(services, (await begun(services)).run_id)
            assert again["fields"]["done"] == 2, "what has changed, and no more"
            with pytest.raises(CallerError, match="no run"):
                await services.convergence.report("another", again["run_id"])

    asyncio.run(play())


def test_starts_join_the_run_at_work_and_the_run_of_the_same_push(database_url: str, tmp_path: Path) -> None:
    """[J-098] [J-105] ten starts at once are one run; the same push joins it even when it has ended."""
    write(tmp_path, "a.json", "Hello")

    async def play() -> None:
        async with opened(settings_of(database_url, tmp_path), roles=()) as services:
            starts = await asyncio.gather(*[begun(services, "push-1", trigger="push") for _ in range(10)])
            assert len({one.run_id for one in starts}) == 1
            assert [one.joined for one in starts].count(False) == 1
            assert (await begun(services, "push-2")).run_id == starts[0].run_id
            await start(services)
            report = await ended(services, starts[0].run_id)
            assert (report["state"], report["push_id"], report["trigger"]) == ("complete", "push-1", "push")
            assert (await begun(services, "push-1")).joined
            assert len(report["passes"]) == 1

    asyncio.run(play())


def test_a_run_survives_the_death_of_its_process_at_each_step(database_url: str, tmp_path: Path) -> None:
    """[J-103] begun by one process, its pass admitted by a second, brought to its end by a third."""
    write(tmp_path, "a.json", "Hello")

    async def play() -> None:
        settings = settings_of(database_url, tmp_path)
        async with opened(settings, roles=()) as services:
            run_id = (await begun(services)).run_id
        async with opened(settings, roles=()) as services:
            admit, convergence = services.convergence._admit, services.convergence

            async def dies(*words: Any) -> str:
                await admit(*words)
                raise KeyboardInterrupt

            convergence._admit = dies
            with pytest.raises(KeyboardInterrupt):
                await convergence.step()
            assert (await convergence.report("default", run_id))["passes"] == []
            await services.keeper.let_go()
        async with opened(settings) as services:
            report = await ended(services, run_id)
            assert (report["state"], len(report["passes"]), report["fields"]["done"]) == ("complete", 1, 2)

    asyncio.run(play())


def test_a_run_that_gains_nothing_stops(database_url: str, tmp_path: Path) -> None:
    """[J-104] a document that cannot be read is wanted for ever; the run says so and ends."""
    write(tmp_path, "a.json", "Hello")
    (tmp_path / "en" / "b.json").write_text("{not json")

    async def play() -> None:
        async with opened(settings_of(database_url, tmp_path)) as services:
            report = await ended(services, (await begun(services)).run_id)
            assert report["state"] == "stalled"
            assert [one["failed"] > 0 for one in report["passes"]] == [True] * len(report["passes"])
            assert 1 <= len(report["passes"]) <= 2

    asyncio.run(play())
