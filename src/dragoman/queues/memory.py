"""A queue inside one process. What is lost with the process, the sweep finds in the database."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from dragoman.kernel.errors import QueueClosed

_Act = Callable[[], Awaitable[None]]


class MemoryQueue:
    """Job ids in order of arrival, each at most once; one that is given back goes to the tail."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, None] = OrderedDict()
        self._arrival = asyncio.Condition()
        self._closed = False

    async def enqueue(self, job_id: str) -> None:
        """Say that a job is due. Raises `QueueClosed` once closed."""
        async with self._arrival:
            self._refuse_when_closed()
            self._waiting.setdefault(job_id)
            self._arrival.notify_all()  # one waiter that is canceled as it is told would keep it to itself

    async def dequeue(self) -> tuple[str, _Act, _Act]:
        """Wait for a job id: `(job_id, ack, nack)`. Raises `QueueClosed` once closed, also while it waits."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: self._waiting or self._closed)
            self._refuse_when_closed()
            job_id, _ = self._waiting.popitem(last=False)

        async def ack() -> None:
            """Done with: it was taken out when it was handed over."""

        async def nack() -> None:
            """Put it at the tail; a queue that was closed meanwhile has no use for it."""
            if not self._closed:
                await self.enqueue(job_id)

        return job_id, ack, nack

    async def close(self) -> None:
        """Forget what waits and end every consumer's waiting; a second close does nothing."""
        async with self._arrival:
            self._closed = True
            self._waiting.clear()
            self._arrival.notify_all()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise QueueClosed("the queue is closed")
