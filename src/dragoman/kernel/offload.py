"""Where pure work goes that would hold the event loop for more than 50 ms: parsing, rendering, fuzzy search.

The work touches no transaction, no clock and no shared state: so threads and the simulation's inline form
give the same answers. What is bound for the journal in the calling task is bound in the thread as well.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Offload(Protocol):
    """Runs a pure function somewhere and awaits its answer."""

    async def call(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `fn` returns; what it raises is raised here."""
        ...

    def close(self) -> None:
        """Wait for what runs and take nothing more."""
        ...


class ThreadOffload:
    """A few threads, so that the loop stays free; work beyond their number waits in order.

    A caller that is canceled stops waiting; work that already runs goes on to its end, and nobody hears.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(threads or os.cpu_count() or 1, thread_name_prefix="offload")

    async def call(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `fn` returns, from a thread."""
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: context.run(fn, *args, **kwargs)
        )

    def close(self) -> None:
        """Wait for what runs, drop what waits, take nothing more."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class InlineOffload:
    """The same at once and in place: no thread, no switch, for the simulation and for one-shot commands."""

    async def call(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `fn` returns, before anything else runs."""
        return fn(*args, **kwargs)

    def close(self) -> None:
        """Nothing is held."""
