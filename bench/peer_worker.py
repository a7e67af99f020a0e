"""One procrastinate worker; its jobs do nothing: `python -m bench.peer_worker URL CONCURRENCY`."""

from __future__ import annotations

import asyncio
import sys

import procrastinate
import sqlalchemy as sa

from bench.children import done, ready

QUEUE = "bench"
TASK = "nothing"


def application(url: str) -> procrastinate.App:
    """The app over a PostgreSQL database; its one task is `TASK`."""
    conninfo = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=conninfo))

    @app.task(name=TASK, queue=QUEUE)
    async def nothing(number: int) -> None:
        return None

    return app


async def drain(url: str, concurrency: int) -> None:
    """Work until nothing is left."""
    app = application(url)
    async with app.open_async():
        ready()
        await app.run_worker_async(
            queues=[QUEUE], concurrency=concurrency, wait=False, install_signal_handlers=False
        )
        done()


if __name__ == "__main__":
    asyncio.run(drain(sys.argv[1], int(sys.argv[2])))
