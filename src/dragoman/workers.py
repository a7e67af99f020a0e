"""The loops: claim, one bounded step, settle, again. And what all of them share: lease renewal, waking,
draining.

A loop that did something runs again at once; one that found nothing waits to be woken, or for its poll.
Poll is the contract: every wake may be lost. Whatever a step raises is written down, and the loop goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from dragoman.kernel import metrics, processes
from dragoman.kernel.errors import CommitUnknown, DragomanError, Halted, StoreError
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import IDLE_POLL_SECONDS
from dragoman.store.acts import leasing
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper

_log = logger(__name__)
_STORE_PAUSE_SECONDS = 1.0

Step = Callable[[], Awaitable[int]]


@dataclass(slots=True)
class Loop:
    """One step, run again and again. `copies` run side by side."""

    name: str
    step: Step
    poll_seconds: float = IDLE_POLL_SECONDS
    copies: int = 1
    wakes: bool = True
    """Whether work done here may have made work for other loops."""
    listens: bool = False
    """Whether the step itself waits for somebody else's hint: such a loop is never counted as busy."""
    woken: bool = True
    """Whether the work of other loops concerns it; else it keeps to its poll."""
    mends: bool = False
    """Whether it looks at once when the database has failed somebody: it frees what that left behind."""
    drain: Callable[[], None] | None = None
    """Called when the process is to stop, so that a running step ends sooner."""


@dataclass(slots=True)
class _State:
    event: asyncio.Event = field(default_factory=asyncio.Event)
    busy: bool = True
    failing_since: float | None = None
    """Time of the event loop at which the first of these failures in a row came."""
    error: DragomanError | None = None


class Workers:
    """Runs loops until told to stop. `wake` makes all of them look at once; `idle` says that none finds
    anything.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        keeper.doubted = self._mend
        self._states: list[tuple[Loop, _State]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._listening: set[str] = set()
        self.trouble: StoreError | None = None
        """What the database said when it last failed a step, whose work waits for the end of its lease."""

    def start(self, loops: Sequence[Loop]) -> None:
        """Start these loops, and the renewal of leases, in the running event loop."""
        self._stopping = False
        self._tasks = [asyncio.create_task(self._keeper.run(), name="renewal")]
        self._listening = {loop.name for loop in loops if loop.listens}
        for loop in loops:
            for _ in range(loop.copies):
                state = _State()
                self._states.append((loop, state))
                self._tasks.append(asyncio.create_task(self._run(loop, state), name=loop.name))

    async def hint(self) -> None:
        """`wake` for those who await."""
        self.wake()

    def wake(self) -> None:
        """Let every loop look now."""
        for loop, state in self._states:
            if loop.woken or self._stopping:
                state.busy = not loop.listens
                state.event.set()

    def _mend(self) -> None:
        for loop, state in self._states:
            if loop.mends:
                state.event.set()

    @property
    def idle(self) -> bool:
        """Whether every loop has looked since it was last woken and found nothing."""
        return not any(state.busy for _, state in self._states)

    @property
    def settled(self) -> bool:
        """Whether they are idle, and nothing waits to be let go after a failure of the database."""
        return self.idle and not self._keeper.in_doubt

    def stuck(self, seconds: float) -> DragomanError | None:
        """What a loop has not got over for so long; None where nothing has."""
        now = asyncio.get_running_loop().time()
        for _, state in self._states:
            if state.failing_since is not None and now - state.failing_since >= seconds:
                return state.error
        return None

    async def stop(self, grace_seconds: float = 10.0) -> None:
        """Claim nothing more, let running steps end within the grace, cancel the others, free the leases."""
        self._stopping = True
        for loop, _ in self._states:
            if loop.drain is not None:
                loop.drain()
        self.wake()
        for task in self._tasks[1:]:
            if task.get_name() in self._listening:
                task.cancel()  # it holds nothing, and what it waited for stays in the queue
        steps = [task for task in self._tasks[1:] if task.get_name() not in self._listening]
        if steps:
            await asyncio.wait(steps, timeout=grace_seconds)
        for task in reversed(self._tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._tasks:
            await self._keeper.let_go()
        self._tasks, self._states = [], []

    async def _run(self, loop: Loop, state: _State) -> None:
        while not self._stopping:
            state.event.clear()
            state.busy = not loop.listens
            if await self._step(loop, state):
                if loop.wakes:
                    self.wake()
                continue
            if state.event.is_set():
                continue
            state.busy = False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(state.event.wait(), loop.poll_seconds)

    async def _step(self, loop: Loop, state: _State) -> int:
        began = asyncio.get_running_loop().time()
        done, result = await self._try(loop, state)
        duration = asyncio.get_running_loop().time() - began
        metrics.step_ended(loop.name, result, duration)
        if result != "idle":
            _log.debug("step ended", step=loop.name, result=result, done=done, duration=duration)
        if result == "failed":
            await asyncio.sleep(_STORE_PAUSE_SECONDS)
        return done

    async def _try(self, loop: Loop, state: _State) -> tuple[int, metrics.Result]:
        """One step: what it says that it has done, and what came of it."""
        try:
            done = await loop.step()
        except (Halted, CommitUnknown) as error:
            _log.info("step gave way", step=loop.name, code=error.code, reason=error.message)
            if isinstance(error, StoreError):
                self.trouble = error
                self._keeper.doubt()
            return 1, "gave_way"
        except StoreError as error:
            if state.failing_since is None:
                _log.warning("the database cannot be used now", step=loop.name, code=error.code)
            self.trouble = error
            self._keeper.doubt()
            self._fail(state, error)
        except Exception as error:  # noqa: BLE001 - a failing step must not end its loop: the row stays due
            _log.exception("step failed", step=loop.name)
            self._fail(state, DragomanError(f"{loop.name}: {type(error).__name__}: {error}"))
        else:
            if done or not loop.woken:  # one that found nothing may only have lost its work to a lease
                state.failing_since = None
            return done, "worked" if done else "idle"
        return 0, "failed"

    @staticmethod
    def _fail(state: _State, error: DragomanError) -> None:
        state.error = error
        if state.failing_since is None:
            state.failing_since = asyncio.get_running_loop().time()


async def free_vanished(database: Database) -> int:
    """Let go at once what processes of this host held that run no more; how many leases."""
    owners = await database.read(leasing.lease_owners)
    gone = [owner for owner in owners if processes.is_gone(owner)]
    return await database.run(leasing.free_gone_owners, gone) if gone else 0
