"""A worker process that only claims: takes a job, renews its lease, gives it back, and writes down when.

    python -m tests.chaos.claimer URL NAME LOG STOP [RC|RR]

It runs until the file STOP is there. Every line of LOG is one holding of a job: its id, the fence, and the
monotonic nanoseconds, which all processes of a machine share, between which it was certainly held. RR is what
an operator's default would be: MariaDB's sessions that write then read one snapshot a transaction, and where
the server knows it, are refused what has changed since.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from dragoman.kernel.clock import SystemClock
from dragoman.kernel.errors import CommitUnknown, StoreError
from dragoman.kernel.identity import SystemChance
from dragoman.model.scopes import System
from dragoman.store.acts import claiming, leasing
from dragoman.store.database import Database
from dragoman.store.servers import MysqlServer
from dragoman.store.sessions import Session

LEASE_SECONDS = 60.0


async def claim(url: str, name: str, log: Path, stop: Path) -> None:
    """Claim until somebody says stop."""
    database = await Database.open(url, clock=SystemClock(), chance=SystemChance())
    owner, idle = f"host/boot/{name}/1", 0
    try:
        with log.open("w", encoding="utf-8") as lines:  # that it is there says: ready
            while not stop.exists():
                claimed = await insist(database, claiming.claim_job, System(), owner, LEASE_SECONDS)
                if claimed is None:
                    idle += 1
                    await asyncio.sleep(0.002)
                    continue
                began = time.monotonic_ns()
                held = ("jobs", (claimed.job_id,), claimed.fence, LEASE_SECONDS)
                lost = await insist(database, leasing.renew_leases, [held])
                ended = time.monotonic_ns()
                await insist(database, claiming.release_job, claimed.job_id, claimed.fence)
                told = {"job": claimed.job_id, "fence": claimed.fence, "from": began, "to": ended}
                lines.write(json.dumps({**told, "lost": bool(lost), "idle": idle}) + "\n")
                idle = 0
    finally:
        await database.close()


async def insist(database: Database, act: Callable[..., Any], *given: Any) -> Any:
    """Run an act, again where the database says that it was undone; each such word is on standard error."""
    while True:
        try:
            return await database.run(act, *given)
        except CommitUnknown:
            raise
        except StoreError as error:
            print(f"undone: {act.__name__}: {error.message}", file=sys.stderr, flush=True)
            await asyncio.sleep(0.01)


def repeatable_read(connect, server: MysqlServer, reading: bool) -> Session:  # type: ignore[no-untyped-def]
    """A connection of an operator who set nothing, or set it so."""
    session: Session = connect(server, reading)
    if not reading:
        session.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if session.query("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'", ()):
            session.execute("SET SESSION innodb_snapshot_isolation = ON")
    return session


def main() -> None:
    """One process."""
    url, name, log, stop, isolation = sys.argv[1:6]
    connect = MysqlServer.connect
    if isolation == "RR":
        patched = mock.patch.object(
            MysqlServer, "connect", lambda server, reading: repeatable_read(connect, server, reading)
        )
        patched.start()
    asyncio.run(claim(url, name, Path(log), Path(stop)))


if __name__ == "__main__":
    main()
