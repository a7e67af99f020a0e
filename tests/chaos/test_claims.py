"""Open cases F3 and F4: processes that claim from one database while another inserts, seconds on end.

`DRAGOMAN_CHAOS_SECONDS` says how long (4; a minute in `make chaos`). Nobody sees a lock, nothing is claimed
twice, nothing is lost, and who looks for work while there is some finds it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.content import locales
from dragoman.families.completion import Completion
from dragoman.flow.engine.acceptance import Acceptance
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.offload import InlineOffload
from dragoman.providers.rehearsal import RehearsalProvider
from dragoman.queues.memory import MemoryQueue
from dragoman.store.database import Database
from dragoman.store.schema import engine
from dragoman.store.transaction import Tx
from tests.chaos.project import ROOT
from tests.doubles.databases import opened
from tests.flow.engine.world import submission

SECONDS = float(os.environ.get("DRAGOMAN_CHAOS_SECONDS", "4"))
AHEAD = 40
"""So many jobs are there before anybody claims: whoever looks then must find one."""


@contextlib.contextmanager
def claimers(url: str, folder: Path, isolations: list[str]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that claim; each writes its own log, and ends when `stop` is there."""
    command = [sys.executable, "-m", "tests.chaos.claimer", url]
    runs = [
        subprocess.Popen(
            [*command, str(number), str(folder / f"{number}.log"), str(folder / "stop"), isolation],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, isolation in enumerate(isolations)
    ]
    try:
        yield runs
    finally:
        (folder / "stop").touch()
        for run in runs:
            if run.poll() is None:
                run.kill()
            run.communicate()


async def insert(database: Database, seconds: float) -> int:
    """Take jobs in, one after the other, as an API process does; how many. No error is forgiven."""
    vendor = RehearsalProvider("vendor", locales.choose_code)
    completion = Completion({"vendor": lambda model: vendor}, "vendor")
    acceptance = Acceptance(database, MemoryQueue(), completion.resolve, InlineOffload(), SystemChance())
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until or count < AHEAD:
        body = submission({f"r{count}": {"k": "Hello"}})
        await acceptance.accept("site", f"w{count % 3}", "", body, local=True)
        count += 1
        if count > AHEAD:
            await asyncio.sleep(0.005)
    return count


def holdings(folder: Path) -> list[dict[str, Any]]:
    """What every process wrote down."""
    logs = folder.glob("*.log")
    return [json.loads(line) for log in logs for line in log.read_text("utf-8").splitlines()]


def waiting(tx: Tx) -> int:
    """Jobs that nobody holds."""
    free = (engine.jobs.c.state == "queued", engine.jobs.c.lease_owner.is_(None))
    return int(tx.scalar(sa.select(sa.func.count()).where(*free)))


def play(url: str, folder: Path, isolations: list[str]) -> tuple[int, list[dict[str, Any]]]:
    """Insert and claim side by side; how many jobs there are, and who held them when.

    Under our own isolation nobody is told of any lock; under another one what was undone more often than we
    try by ourselves is told, and done again as the workers' loops do it.
    """

    async def story() -> int:
        async with opened(url) as database:
            first = await insert(database, 0)
            with claimers(url, folder, isolations) as runs:
                while len(list(folder.glob("*.log"))) < len(runs):
                    assert all(run.poll() is None for run in runs)
                    await asyncio.sleep(0.01)
                more = await insert(database, SECONDS)
                (folder / "stop").touch()
                said = [await asyncio.to_thread(run.communicate, None, 60) for run in runs]
            assert [run.returncode for run in runs] == [0] * len(runs), [err[-1500:] for _, err in said]
            if "RR" not in isolations:
                assert not [err for _, err in said if err], "somebody was told of a lock"
            assert await database.read(waiting) == first + more, "every job is back, none is lost"
            return first + more

    return asyncio.run(story()), holdings(folder)


def judge(jobs: int, held: list[dict[str, Any]], processes: int, folder: Path) -> None:
    """Nobody held what another held; each fence was given once; all worked, and none stood idle for long."""
    assert not [one for one in held if one["lost"]], "no lease was lost"
    fences = [(one["job"], one["fence"]) for one in held]
    assert len(fences) == len(set(fences)), "a fence was given twice"
    by_job = sorted(held, key=lambda one: (one["job"], one["from"]))
    for before, after in itertools.pairwise(by_job):
        if before["job"] == after["job"]:
            assert before["to"] <= after["from"], "a job had two holders at once"
            assert before["fence"] < after["fence"]
    shares = [len((folder / f"{number}.log").read_text("utf-8").splitlines()) for number in range(processes)]
    assert min(shares) > 0, f"a worker stood idle while {jobs} jobs waited: {shares}"
    assert max(one["idle"] for one in held) < 50, "who looks while rows wait finds one"


@pytest.mark.timeout(300)
def test_four_processes_claim_from_one_file_while_another_inserts(sqlite_url: str, tmp_path: Path) -> None:
    """F3: no "database is locked" to anybody, no double claim."""
    jobs, held = play(sqlite_url, tmp_path, ["RC"] * 4)
    judge(jobs, held, 4, tmp_path)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("isolation", ["RC", "RR"])
def test_six_workers_storm_a_mariadb_while_another_inserts(
    mariadb_url: str, tmp_path: Path, isolation: str
) -> None:
    """F4: deadlocks, lock waits and changed records are run again; nothing is lost, and nobody stands idle.

    RR comes with snapshot isolation where the server knows it, as newer ones have it by themselves: there a
    storm undoes more than three times in a row what RC lets through, which is why our sessions ask for RC.
    """
    jobs, held = play(mariadb_url, tmp_path, [isolation] * 6)
    judge(jobs, held, 6, tmp_path)
