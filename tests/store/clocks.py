"""Hosts whose clocks do what a test needs."""

from __future__ import annotations

from dragoman.kernel.clock import SystemClock, seconds


class HandClock:
    """A host whose clocks a test turns by hand."""

    def __init__(self, wall: int = 0, monotonic: float = 0.0) -> None:
        self.wall = wall
        self.ticks = monotonic

    def now(self) -> int:
        return self.wall

    def monotonic(self) -> float:
        return self.ticks


class SkewedClock(SystemClock):
    """A host whose clock is an hour fast."""

    def now(self) -> int:
        return super().now() + seconds(3600)


class StillClock(SystemClock):
    """No time passes, so that no group is cut short because its test was slow."""

    def monotonic(self) -> float:
        return 0.0
