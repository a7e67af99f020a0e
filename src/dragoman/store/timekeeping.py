"""The database's time between two looks at it: an offset to the local monotonic clock.

The offset is measured every ten seconds. Every process that shares a database reads one time, so leases and
due times mean the same to all. Time never runs backwards within a process: where a measurement says less than
was already told, it stands still until that is past.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from dragoman.kernel.clock import Clock, seconds
from dragoman.kernel.limits import CLOCK_SYNC_SECONDS


class DatabaseTime:
    """Instants of one database, in microseconds UTC; threads share it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._offset: int | None = None
        self._measured_at = 0.0
        self._told = 0

    @property
    def is_due(self) -> bool:
        """Whether the database's clock is to be looked at again."""
        return self._offset is None or self._clock.monotonic() - self._measured_at >= CLOCK_SYNC_SECONDS

    def measure(self, ask: Callable[[], int]) -> None:
        """Ask the database once; its answer is taken for the middle of the time that the asking took."""
        before = self._clock.monotonic()
        sample = ask()
        after = self._clock.monotonic()
        with self._lock:
            self._offset = sample - seconds((before + after) / 2)
            self._measured_at = after

    def now(self) -> int:
        """The database's time now, as far as is known; before the first measurement the host's."""
        if self._offset is None:
            return self._tell(self._clock.now())
        return self._tell(self._offset + seconds(self._clock.monotonic()))

    def _tell(self, instant: int) -> int:
        with self._lock:
            self._told = max(self._told, instant)
            return self._told


class HostTime(DatabaseTime):
    """The time of an embedded database, which is its host's."""

    @property
    def is_due(self) -> bool:
        """Never: the host's clock is read each time."""
        return False
