"""Manifests of given sizes, one after the other: `python -m bench.growth_run URL FOLDER SIZE…`."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from bench.children import cpu_seconds, peak_megabytes, tell
from bench.documents import LOCALES, names
from bench.whole_run import worked
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.offload import ThreadOffload
from dragoman.kernel.processes import collect_less_often
from dragoman.store.database import Database
from dragoman.wiring.rounds import ROLES, loops
from dragoman.wiring.services import assemble
from dragoman.wiring.settings import load


async def run(asked: argparse.Namespace) -> None:
    """Work each; CPU milliseconds an intent, and the peak so far."""
    settings = load(Path(asked.folder), database_url=asked.url, provider="pseudo")
    clock, chance = SystemClock(), SystemChance()
    database = await Database.open(asked.url, clock=clock, chance=chance)
    collect_less_often()  # as every process of ours does when it opens its services
    services = assemble(settings, database, clock, chance, ThreadOffload())
    services.workers.start(loops(services, ROLES))
    told, first = [], 0
    every = names(sum(asked.sizes) // len(LOCALES))
    for size in asked.sizes:
        mine = every[first : first + size // len(LOCALES)]
        first += len(mine)
        used = cpu_seconds()
        await worked(services, mine, asked.publish)
        told.append({"cpu_ms": (cpu_seconds() - used) / size * 1e3, "peak_megabytes": peak_megabytes()})
    await services.close()
    tell(manifests=told)


def main() -> None:
    """Run once."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth_run", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("folder")
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--publish", choices=("auto", "none"), default="auto")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
