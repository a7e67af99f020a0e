"""What a process holds of the rows that it claimed: its leases, and who renews them.

All leases of a process are renewed in one act per tick; one that another took, or whose local time is over,
tells its holder to stop. What stands under the process's name while nobody here works on it (the answer of a
claim was lost, or its work was broken off by the database) is found by the sweep and let go.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakSet

from dragoman.kernel import metrics
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import DragomanError, StoreError
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import LEASE_MARGIN_SECONDS, RENEW_SHARE, SWEEP_SECONDS
from dragoman.store.acts import leasing
from dragoman.store.acts.leasing import Held
from dragoman.store.database import Database
from dragoman.store.transaction import Tx

P = ParamSpec("P")
T = TypeVar("T")

_KEEPERS: WeakSet[Keeper] = WeakSet()
"""All of this process: two that hold leases under one name leave each other's alone."""

_log = logger(__name__)
_STORE_PAUSE_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class Lease:
    """A claim that this process holds. Stop when `lost`; send nothing when `left_seconds` is not above 0."""

    table: str
    key: tuple[str | int, ...]
    fence: int
    lease_seconds: float
    until: float
    clock: Clock
    lost: bool = False

    @property
    def held(self) -> Held:
        """What the database knows it by."""
        return self.table, self.key, self.fence

    def left_seconds(self) -> float:
        """Seconds until work under this lease must have stopped; 0 where it is lost."""
        return 0.0 if self.lost else self.until - self.clock.monotonic() - LEASE_MARGIN_SECONDS


class Keeper:
    """Renews all leases of the process in one act per tick, at a third of the shortest lease."""

    def __init__(self, database: Database, clock: Clock, owner: str) -> None:
        self.owner = owner
        self._database = database
        self._clock = clock
        self._held: set[Lease] = set()
        self._failed: set[Held] = set()
        self._doubts = 0
        self.doubted: Callable[[], None] = _nothing
        """Called when the database has failed somebody, so that the sweep looks soon."""
        self._claims: set[asyncio.Event] = set()
        self._taken = asyncio.Event()
        _KEEPERS.add(self)

    async def claim(self, act: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Carry out an act that leases rows to this process. Whoever asked holds what it gave before awaiting
        anything else: else the sweep takes it for left behind.
        """
        ended = asyncio.Event()
        self._claims.add(ended)
        try:
            return await self._database.run(act, *args, **kwargs)
        finally:
            self._claims.discard(ended)
            ended.set()

    def hold(self, table: str, key: tuple[str | int, ...], fence: int, lease_seconds: float) -> Lease:
        """Renew this lease from now on. `key` is the primary key of the row in `table`."""
        until = self._clock.monotonic() + lease_seconds
        held = Lease(table, key, fence, lease_seconds, until, self._clock)
        self._held.add(held)
        self._taken.set()
        return held

    def drop(self, lease: Lease, error: BaseException | None = None) -> None:
        """Renew it no more (released, finished or lost); `error` is what broke its work off."""
        self._held.discard(lease)
        if isinstance(error, StoreError):
            self.doubt()
        elif isinstance(error, Exception) and not isinstance(error, DragomanError):
            self._failed.add(lease.held)

    def work(self, lease: Lease, working: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin work under a lease, which is dropped when it has ended, and where it never came to begin."""
        task = asyncio.create_task(working)
        task.add_done_callback(
            lambda ended: self.drop(lease, None if ended.cancelled() else ended.exception())
        )
        return task

    def doubt(self) -> None:
        """The database has failed somebody here: a lease may stand that nobody works on."""
        self._doubts += 1
        self.doubted()

    @property
    def in_doubt(self) -> bool:
        """Whether the database has failed somebody since the last look at what stands."""
        return self._doubts > 0

    async def free_unheld(self) -> int:
        """Let go of what stands under this process's name and nobody here works on; how many leases.

        What is found may be of a claim whose answer is under way: those are waited for.
        """
        failed, doubts, freed = set(self._failed), self._doubts, 0
        unheld = {*await self._database.read(leasing.leases_of, self.owner)} - self._known
        if unheld:
            for ended in [claim for keeper in self._namesakes for claim in keeper._claims]:
                await ended.wait()
            unheld -= self._known
        if unheld:
            freed = await self._database.run(leasing.free_unheld, self.owner, unheld, self._failed & unheld)
            _log.info("leases that nobody works on were let go", number=freed)
        self._failed -= failed
        self._doubts -= doubts
        return freed

    @property
    def _known(self) -> set[Held]:
        return {lease.held for keeper in self._namesakes for lease in keeper._held}

    @property
    def _namesakes(self) -> list[Keeper]:
        return [keeper for keeper in _KEEPERS if keeper.owner == self.owner]

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


def _nothing() -> None:
    """Nobody sweeps here."""
