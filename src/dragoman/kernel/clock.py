"""The one reader of clocks. Everything else is handed instants (law 9).

Instants are integers: microseconds since 1970-01-01 UTC. `monotonic` seconds measure durations only.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

MICROSECONDS = 1_000_000


class Clock(Protocol):
    """Wall time in microseconds UTC and a monotonic second counter; virtual in the simulation."""

    def now(self) -> int:
        """Microseconds since the epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards; the zero is arbitrary."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> int:
        """Microseconds since the epoch, UTC."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()


def seconds(count: float) -> int:
    """A duration in seconds as microseconds."""
    return round(count * MICROSECONDS)


def iso(instant: int | None) -> str | None:
    """An instant as ISO 8601 with offset; None stays None."""
    if instant is None:
        return None
    return datetime.fromtimestamp(instant / MICROSECONDS, UTC).isoformat(timespec="milliseconds")


def month(instant: int) -> str:
    """The UTC calendar month of an instant, as `2026-11`."""
    return datetime.fromtimestamp(instant / MICROSECONDS, UTC).strftime("%Y-%m")
