"""One engine process among several: `python -m bench.engine_work URL FOLDER BASE_URL IN_FLIGHT` prints JSON.

Says `ready`, waits for the word, and works until no job is open. What it compiles and imports at its first
call counts: it has made none before.
"""

from __future__ import annotations

import asyncio
import sys
import time

from bench.children import cpu_seconds, ready, tell
from bench.engine_run import OPEN, count, opened
from dragoman.wiring.rounds import loops

_LOOK_SECONDS = 0.05


async def run(url: str, folder: str, base_url: str, in_flight: int) -> None:
    """Work with the others, and tell what it took."""
    services = await opened(url, folder, base_url, in_flight)
    ready()
    used, began = cpu_seconds(), time.perf_counter()
    services.workers.start([loop for loop in loops(services, ["engine"]) if loop.name == "translate"])
    while await services.database.read(count, OPEN):
        await asyncio.sleep(_LOOK_SECONDS)
    took, used = time.perf_counter() - began, cpu_seconds() - used
    await services.close()
    tell(seconds=took, cpu_seconds=used)


if __name__ == "__main__":
    _, url, folder, base_url, in_flight = sys.argv
    asyncio.run(run(url, folder, base_url, int(in_flight)))
