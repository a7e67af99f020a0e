"""Time that passes only when nobody can move, and the clock that processes of a world read."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Mapping
from typing import Any

from dragoman.kernel.clock import seconds

EPOCH = 1_800_000_000_000_000
"""When every world begins, microseconds UTC."""


class Stuck(RuntimeError):
    """Nobody can move, and no timer is set: what waits would wait for ever."""


class _Passage(selectors.BaseSelector):
    """Nothing comes from outside, so waiting for it is letting time pass."""

    def __init__(self) -> None:
        self.now_seconds = 0.0
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._keys[fileobj] = selectors.SelectorKey(fileobj, 0, events, data)
        return self._keys[fileobj]

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("nobody can move and no timer is set")
        self.now_seconds += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer when nobody can move."""

    def __init__(self) -> None:
        self._passage = _Passage()
        super().__init__(self._passage)

    def time(self) -> float:
        """Virtual seconds since the world began."""
        return self._passage.now_seconds


class HostClock:
    """The clocks of the machine that all processes of a world share; somebody may set the wall clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.set_by_seconds = 0.0

    def now(self) -> int:
        """Microseconds since the epoch, UTC, as the wall clock shows it."""
        return EPOCH + seconds(self._loop.time() + self.set_by_seconds)

    def monotonic(self) -> float:
        """Seconds that never run backwards, whatever was done to the wall clock."""
        return self._loop.time()
