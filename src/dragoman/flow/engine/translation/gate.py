"""How many calls are under way at once: in this process, and to each account that is rate limited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Gate:
    """One a process, for all jobs of all its workers."""

    def __init__(self, calls_per_process: int, calls_per_account: int | None = None) -> None:
        self._process = asyncio.Semaphore(calls_per_process)
        self._calls_per_account = calls_per_account or calls_per_process
        self._accounts: dict[str, asyncio.Semaphore] = {}
        self.is_closed = False
        """Whether the process is to stop: what waits for a place begins nothing when it gets one."""

    def close(self) -> None:
        """Let no further call begin; those under way go on to their end."""
        self.is_closed = True

    @asynccontextmanager
    async def slot(self, account: str) -> AsyncIterator[None]:
        """Wait for a place among the calls of this account and of this process, and keep it."""
        mine = self._accounts.setdefault(account, asyncio.Semaphore(self._calls_per_account))
        async with mine, self._process:
            yield
