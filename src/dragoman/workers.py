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
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import CommitUnknown, DragomanError, Halted, StoreError
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import IDLE_POLL_SECONDS, LEASE_MARGIN_SECONDS, RENEW_SHARE, SWEEP_SECONDS
from dragoman.store.acts import leasing
from dragoman.store.database import Database

_log = logger(__name__)
_STORE_PAUSE_SECONDS = 1.0

Step = Callable[[], Awaitable[int]]


@dataclass(slots=True, eq=False)
class Held:
    """A lease of this process; see `model.contracts.Lease`."""

    table: str
    key: tuple[str | int, ...]
    fence: int
    lease_seconds: float
    until: float
    clock: Clock
    lost: bool = False

    def left_seconds(self) -> float:
        """Seconds until work under this lease must have stopped; 0 where it is lost."""
        return 0.0 if self.lost else self.until - self.clock.monotonic() - LEASE_MARGIN_SECONDS


class Keeper:
    """Renews all leases of the process in one act per tick, at a third of the shortest lease."""

    def __init__(self, database: Database, clock: Clock, owner: str) -> None:
        self.owner = owner
        self._database = database
        self._clock = clock
        self._held: set[Held] = set()
        self._taken = asyncio.Event()

    def hold(self, table: str, key: tuple[str | int, ...], fence: int, lease_seconds: float) -> Held:
        """Renew this lease from now on."""
        until = self._clock.monotonic() + lease_seconds
        held = Held(table, key, fence, lease_seconds, until, self._clock)
        self._held.add(held)
        self._taken.set()
        return held

    def drop(self, lease: object) -> None:
        """Renew it no more."""
        self._held.discard(lease)

    async def renew(self) -> None:
        """Prolong everything held; what another holder took is marked lost."""
        held = [lease for lease in self._held if not lease.lost]
        if not held:
            return
        began = self._clock.monotonic()
        asked = [(lease.table, lease.key, lease.fence, lease.lease_seconds) for lease in held]
        lost = set(await self._database.run(leasing.renew_leases, asked))
        for lease in held:
            if (lease.table, lease.key) in lost:
                lease.lost = True
                metrics.lease_lost(lease.table)
            else:
                lease.until = began + lease.lease_seconds

    async def let_go(self) -> None:
        """Free what still stands under this process's name, now that nothing of it works any more."""
        with contextlib.suppress(StoreError):  # else the next process of this host does it, or time
            await self._database.run(leasing.free_gone_owners, [self.owner])

    async def run(self) -> None:
        """Renew for ever. A lease that is taken meanwhile may have to be renewed sooner than the others."""
        while True:
            self._taken.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._taken.wait(), self._rest_seconds())
                continue
            try:
                await self.renew()
            except StoreError as error:
                _log.warning("leases could not be renewed", code=error.code)
                await asyncio.sleep(_STORE_PAUSE_SECONDS)

    def _rest_seconds(self) -> float:
        """How long until a third of the first lease is over."""
        now = self._clock.monotonic()
        due = [held.until - held.lease_seconds * (1 - RENEW_SHARE) for held in self._held if not held.lost]
        return max(0.0, min(due, default=now + SWEEP_SECONDS) - now)


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

    @property
    def idle(self) -> bool:
        """Whether every loop has looked since it was last woken and found nothing."""
        return not any(state.busy for _, state in self._states)

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
            self.trouble = error if isinstance(error, StoreError) else self.trouble
            return 1, "gave_way"
        except StoreError as error:
            if state.failing_since is None:
                _log.warning("the database cannot be used now", step=loop.name, code=error.code)
            self.trouble = error
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
