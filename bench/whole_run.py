"""One run of the whole path: `python -m bench.whole_run URL FOLDER INTENTS [--publish none] [--acts] …`.

One process, as `dragoman serve` runs it: admission, then every loop of every role until the manifest has
ended and is published. The folder holds one-field documents already. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.children import cpu_seconds, peak_megabytes, tell
from bench.documents import LOCALES, names
from bench.watching import WatchedDatabase
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.offload import ThreadOffload
from dragoman.kernel.processes import collect_less_often
from dragoman.store.database import Database
from dragoman.store.servers import Options
from dragoman.wiring.rounds import ROLES, loops
from dragoman.wiring.services import Services, assemble
from dragoman.wiring.settings import load

_LOOK_SECONDS = 0.25
_ACTS_SHOWN = 16


async def run(asked: argparse.Namespace) -> None:
    """Admit, work, measure."""
    settings = load(
        Path(asked.folder),
        database_url=asked.url,
        group_commit=asked.group_commit,
        provider="pseudo",
        jobs_per_process=asked.jobs,
    )
    clock, chance = SystemClock(), SystemChance()
    options = Options(group_commit=settings.group_commit)
    kind = WatchedDatabase if asked.acts else Database
    database = await kind.open(asked.url, clock=clock, chance=chance, options=options)
    collect_less_often()  # as every process of ours does when it opens its services
    services = assemble(settings, database, clock, chance, ThreadOffload())
    services.workers.start(loops(services, ROLES))
    used, began = cpu_seconds(), time.perf_counter()
    await worked(services, names(asked.intents // len(LOCALES)), asked.publish)
    took, used = time.perf_counter() - began, cpu_seconds() - used
    tally = database.tally
    await services.close()
    tell(
        seconds=took,
        intents_per_second=asked.intents / took,
        cpu_ms_per_intent=used / asked.intents * 1e3,
        commits_per_hundred=tally.commits / asked.intents * 100,
        acts_per_hundred=tally.acts / asked.intents * 100,
        empty_commits=tally.empty,
        undone=tally.undone,
        peak_megabytes=peak_megabytes(),
        acts=_table(database, used) if isinstance(database, WatchedDatabase) else None,
    )


async def worked(services: Services, documents: Sequence[str], publish: str) -> None:
    """Have one manifest of these documents in all locales worked to its end. Refuses one that failed."""
    pairs = [{"document": name, "locale": locale} for name in documents for locale in LOCALES]
    request = {"request_id": documents[0], "project": "bench", "publish": publish, "pairs": pairs}
    admitted = await services.admission.admit(services.caller("bench"), request)
    workspace = services.settings.workspace
    while True:
        status = await services.views.status(workspace, admitted.manifest_id)
        if status["completed_at"] and status["publication"]["state"] not in ("queued", "running"):
            break
        await asyncio.sleep(_LOOK_SECONDS)
    _refuse_anything_else(status, len(pairs), publish)


def _refuse_anything_else(status: Mapping[str, Any], intents: int, publish: str) -> None:
    """A run that did not do its work has no speed."""
    counts, publication = status["counts"], status["publication"]
    if counts["completed"] != intents or publication["problems"]:
        raise RuntimeError(f"not every intent was completed: {counts}, {publication}")
    if publish == "auto" and publication["steps"].get("succeeded") != intents:
        raise RuntimeError(f"not everything was published: {publication}")


def _table(database: WatchedDatabase, used: float) -> list[tuple[str, int, float, float, float]]:
    """Act, times, CPU ms, wall ms, share of the process's CPU in percent; the most expensive first."""
    spent = sorted(database.spent.items(), key=lambda one: -one[1].cpu_seconds)
    return [
        (name, one.times, one.cpu_seconds * 1e3, one.wall_seconds * 1e3, one.cpu_seconds / used * 100)
        for name, one in spent[:_ACTS_SHOWN]
    ]


def main() -> None:
    """Run once; with `--profile` the event loop's thread is profiled, to the error output."""
    parser = argparse.ArgumentParser(prog="python -m bench.whole_run", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("folder")
    parser.add_argument("intents", type=int)
    parser.add_argument("--publish", choices=("auto", "none"), default="auto")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--group-commit", action="store_true")
    parser.add_argument("--acts", action="store_true")
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    if not asked.profile:
        asyncio.run(run(asked))
        return
    profile = cProfile.Profile()
    profile.runcall(asyncio.run, run(asked))
    pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    main()
