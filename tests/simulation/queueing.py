"""A queue server of a world: every process has its own end of it, which goes silent when the process dies.

The server repeats messages, gives some again after their deletion, fails, answers late and loses answers, all
by seed. What a dead process has received stays invisible for a lease, as on a real server.
"""

from __future__ import annotations

import asyncio
import random
from types import TracebackType
from typing import Any

from dragoman.kernel.clock import Clock
from dragoman.kernel.identity import Chance
from dragoman.queues.sqs import SqsQueue
from dragoman.store.database import Database
from dragoman.wiring.queueing import Waking
from tests.doubles.sqs import FakeSqs
from tests.simulation.processes import Process
from tests.simulation.settings import Setting

_MOODS = ("ok",) * 12 + ("500", "throttled", "cut", "late")


def server_of(setting: Setting) -> FakeSqs | None:
    """The server of a world; None where every process has a queue of its own."""
    if not setting.has_queue:
        return None
    dice = random.Random(f"queue {setting.seed}")
    return FakeSqs(twice=dice.random() < 0.5, undead=dice.random() < 0.5, mood=lambda: dice.choice(_MOODS))


def end_of(
    server: FakeSqs | None, process: Process, database: Database, clock: Clock, chance: Chance
) -> Waking | None:
    """A process's end of the server's queue; None where there is no server."""
    if server is None:
        return None
    return Waking(SqsQueue(lambda: _Line(server, process), "jobs", chance), database, clock, None)


class _Line:
    """The client that a process holds: once it is dead, nothing goes out and nothing comes in."""

    def __init__(self, server: FakeSqs, process: Process) -> None:
        self._server = server
        self._process = process

    async def __aenter__(self) -> _Line:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __getattr__(self, operation: str) -> Any:
        async def call(**values: Any) -> Any:
            await self._if_alive()
            answer = await getattr(self._server, operation)(**values)
            await self._if_alive()
            return answer

        return call

    async def _if_alive(self) -> None:
        if self._process.dead:
            await asyncio.Event().wait()
