"""What a process holds of the rows that it claimed: its leases, and who renews them.

All leases of a process are renewed in one act per tick; one that another took, or whose local time is over,
tells its holder to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from dragoman.kernel import metrics
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import StoreError
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import LEASE_MARGIN_SECONDS, RENEW_SHARE, SWEEP_SECONDS
from dragoman.store.acts import leasing
from dragoman.store.database import Database

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
        self._taken = asyncio.Event()

    def hold(self, table: str, key: tuple[str | int, ...], fence: int, lease_seconds: float) -> Lease:
        """Renew this lease from now on. `key` is the primary key of the row in `table`."""
        until = self._clock.monotonic() + lease_seconds
        held = Lease(table, key, fence, lease_seconds, until, self._clock)
        self._held.add(held)
        self._taken.set()
        return held

    def drop(self, lease: Lease) -> None:
        """Renew it no more (released, finished or lost)."""
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
