"""Entries of the same moment share one call of at most ten, and every one of them gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from dragoman.kernel.errors import QueueError
from dragoman.kernel.limits import QUEUE_BATCH

Entry = Mapping[str, Any]
Send = Callable[[Sequence[Entry]], Awaitable[Mapping[str, str]]]
"""Sends numbered entries; gives the code of each that failed, by its `Id`. Raises `QueueError` for all."""


class Batches:
    """One kind of call. What waits while a call is under way goes with the next one."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: list[tuple[Entry, asyncio.Future[str]]] = []
        self._sending: asyncio.Task[None] | None = None

    async def put(self, entry: Entry) -> str:
        """Send an entry: the code of its failure, empty where it went well. Raises `QueueError`.

        Whoever is canceled while it waits has sent it all the same.
        """
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, answer))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all(), name="queue batches")
        return await answer

    async def finish(self) -> None:
        """Wait until everything is sent or has failed."""
        if self._sending is not None:
            await asyncio.wait({self._sending})

    async def _send_all(self) -> None:
        await asyncio.sleep(0)  # who runs in this turn of the loop comes along
        while self._waiting:
            batch, self._waiting = self._waiting[:QUEUE_BATCH], self._waiting[QUEUE_BATCH:]
            numbered = [{**entry, "Id": str(number)} for number, (entry, _) in enumerate(batch)]
            try:
                failed = await self._send(numbered)
            except QueueError as error:
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for number, (_, answer) in enumerate(batch):
                if not answer.done():
                    answer.set_result(failed.get(str(number), ""))
