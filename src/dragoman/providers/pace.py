"""At most so many requests a second to one account. Shared ground of this room, no member of it.

Requests are spaced evenly, first come, first served; all providers of an account in this process share one.
Counts by the loop's clock, which is virtual in the simulation.
"""

from __future__ import annotations

import asyncio


class Pace:
    """Turns of one account. Raises `ValueError` for a rate that is none."""

    def __init__(self, per_second: float) -> None:
        if per_second <= 0:
            raise ValueError("a rate is a number above 0")
        self._gap_seconds = 1 / per_second
        self._next = 0.0

    async def turn(self, deadline_seconds: float) -> float | None:
        """Wait for the next turn: how long that took, or None at once where it comes after the deadline."""
        now = asyncio.get_running_loop().time()
        at = max(self._next, now)
        if at - now >= deadline_seconds:
            return None
        self._next = at + self._gap_seconds
        if at > now:
            await asyncio.sleep(at - now)
        return at - now
