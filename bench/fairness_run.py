"""A small workspace beside a large one: `python -m bench.fairness_run URL FOLDER BASE_URL LARGE` prints JSON.

The large workspace's jobs stand in the queue before the small one's ten come; then the engine's loops run
until the small one is through. Without large jobs the small one is alone.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import sqlalchemy as sa

from bench.children import tell
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance
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

SMALL = 10
_LOOK_SECONDS = 0.005
_TEXTS = 5
_ENDED = sa.select(sa.func.count()).where(tables.jobs.c.state.in_(sorted(JOB.terminal)))


async def run(url: str, folder: str, base_url: str, large: int) -> None:
    """Prepare, then measure."""
    double = ProviderSettings(protocol="chat", model="m", base_url=base_url, priced=False)
    settings = load(Path(folder), database_url=url, provider="double", providers={"double": double})
    clock, chance = SystemClock(), SystemChance()
    options = Options(group_commit=settings.group_commit)
    database = await Database.open(url, clock=clock, chance=chance, options=options)
    collect_less_often()  # as every process of ours does when it opens its services
    services = assemble(settings, database, clock, chance, ThreadOffload())
    await _fill(services, "large", large)
    services.workers.start([loop for loop in loops(services, ["engine"]) if loop.name == "translate"])
    while large and not await database.read(_ended, "large"):
        await asyncio.sleep(_LOOK_SECONDS)
    before, began = await database.read(_ended, "large"), time.perf_counter()
    await _fill(services, "small", SMALL)
    services.workers.wake()
    first = 0.0
    while (ended := await database.read(_ended, "small")) < SMALL:
        first = first or (time.perf_counter() - began if ended else 0.0)
        await asyncio.sleep(_LOOK_SECONDS)
    took = time.perf_counter() - began
    beside = await database.read(_ended, "large") - before
    await services.close()
    tell(first_seconds=first or took, all_seconds=took, beside=beside)


async def _fill(services: Services, workspace: str, jobs: int) -> None:
    for number in range(jobs):
        fields = {f"k{n}": f"Message {number} of {workspace}, line {n}" for n in range(_TEXTS)}
        said = {
            "submissionId": services.chance.new_id(),
            "clientJobId": f"{workspace}-1",
            "sourceLang": "en",
            "items": [{"ref": "a", "targetLang": "fr", "fields": fields}],
        }
        await services.acceptance.accept("bench", workspace, "", json.dumps(said).encode(), local=True)


def _ended(tx: Tx, workspace: str) -> int:
    return int(tx.scalar(_ENDED.where(tables.jobs.c.workspace == workspace)) or 0)


if __name__ == "__main__":
    _, url, folder, base_url, large = sys.argv
    asyncio.run(run(url, folder, base_url, int(large)))
