"""The engine alone, kept busy: `python -m bench.engine_run URL FOLDER BASE_URL IN_FLIGHT CALLS PROCESSES`
prints JSON.

Everything up to acceptance is done beforehand. Texts like others are not looked for (`bench memory` measures
that). Then only the translation loop runs: claims, leases, the
ledger, the provider's calls, the checks and every row that they leave. The folder holds documents of 20
fields already.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import sqlalchemy as sa

from bench.children import cpu_seconds, side_by_side, tell
from bench.documents import LOCALES, names
from bench.provider_calls import FIELDS
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.limits import BATCH_SIZE, CONCURRENCY_MAX
from dragoman.kernel.offload import ThreadOffload
from dragoman.kernel.processes import collect_less_often
from dragoman.machines.tables import JOB
from dragoman.store.database import Database
from dragoman.store.schema import engine as tables
from dragoman.store.servers import Options
from dragoman.store.transaction import Tx
from dragoman.wiring.rounds import loops
from dragoman.wiring.services import Services, assemble
from dragoman.wiring.settings import ProviderSettings, load

_LOOK_SECONDS = 0.05
OPEN = sa.select(sa.func.count()).where(tables.jobs.c.state.in_(sorted(JOB.open)))
_CALLS = sa.select(sa.func.count()).select_from(tables.calls)


async def opened(url: str, folder: str, base_url: str, in_flight: int) -> Services:
    """The parts of a process that keeps so many calls in flight."""
    settings = load(
        Path(folder),
        database_url=url,
        providers={
            "double": ProviderSettings(
                protocol="chat", model="m", base_url=base_url, priced=False, examples=False
            )
        },
        calls_per_process=in_flight,
        jobs_per_process=2 + 2 * in_flight // CONCURRENCY_MAX,
        submit_per_step=20,
        prepare_per_step=500,
    )
    collect_less_often()  # as every process of ours does when it opens its services
    clock, chance = SystemClock(), SystemChance()
    options = Options(group_commit=settings.group_commit)
    database = await Database.open(url, clock=clock, chance=chance, options=options)
    return assemble(settings, database, clock, chance, ThreadOffload())


async def run(url: str, folder: str, base_url: str, in_flight: int, calls: int, processes: int) -> None:
    """Prepare, then measure."""
    services = await opened(url, folder, base_url, in_flight)
    database = services.database
    await _submit_all(services, calls * BATCH_SIZE // FIELDS)
    if processes > 1:
        told = await asyncio.to_thread(side_by_side, processes, url, folder, base_url, in_flight // processes)
        took, used = max(one["seconds"] for one in told), sum(one["cpu_seconds"] for one in told)
        made = await database.read(count, _CALLS)
        await services.close()
        tell(calls=made, calls_per_second=made / took, cpu_ms=used / made * 1e3)
        return
    services.workers.start([loop for loop in loops(services, ["engine"]) if loop.name == "translate"])
    used, began, commits = cpu_seconds(), time.perf_counter(), database.commits
    while await database.read(count, OPEN):
        await asyncio.sleep(_LOOK_SECONDS)
    took, used = time.perf_counter() - began, cpu_seconds() - used
    made = await database.read(count, _CALLS)
    await services.close()
    tell(
        calls=made,
        calls_per_second=made / took,
        cpu_ms=used / made * 1e3,
        commits_per_call=(database.commits - commits) / made,
    )


async def _submit_all(services: Services, intents: int) -> None:
    """Everything until the engine has accepted each intent."""
    services.workers.start(loops(services, ["site"]))
    pairs = [(name, locale) for name in names(intents // len(LOCALES)) for locale in LOCALES]
    frozen = {
        "source_locale": "en",
        "mode": "missing",
        "provider": "double",
        "root": str(services.settings.root),
        "publish": "none",
        "partial": "auto",
        "batch_size": BATCH_SIZE,
        "concurrency": CONCURRENCY_MAX,
    }
    admitted = await services.admission.admit_pairs(
        services.caller("bench"), "bench", "engine", sorted(pairs), frozen
    )
    while True:
        status = await services.views.status(services.settings.workspace, admitted.manifest_id)
        counts = status["counts"]
        if counts["queued"] + counts["processing"] == counts["total"]:
            break
        if counts["failed"] or counts["skipped"]:
            raise RuntimeError(f"not everything was submitted: {counts}")
        await asyncio.sleep(_LOOK_SECONDS)
    await services.workers.stop()


def count(tx: Tx, counting: sa.Select[int]) -> int:
    return int(tx.scalar(counting))


if __name__ == "__main__":
    _, url, folder, base_url, in_flight, calls, processes = sys.argv
    asyncio.run(run(url, folder, base_url, int(in_flight), int(calls), int(processes)))
