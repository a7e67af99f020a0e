"""One process of a world: its life, its tasks' way through points, and its death."""

from __future__ import annotations

import asyncio
import contextlib
from contextvars import ContextVar
from typing import Literal, Protocol

from dragoman.store.timekeeping import HostTime
from tests.simulation.faults import Kind
from tests.simulation.virtual import HostClock

Side = Literal["site", "engine", "both"]
"""Whose a process is; where site and engine share a database, everybody's."""

_MOMENT_SECONDS = 1e-6
"""Less than this is no time: the loop rounds it away."""


class Killed(BaseException):
    """Not an Exception: no handler of the system may act after it, as after kill -9."""


class Fate(Protocol):
    """What decides over the points of a world."""

    clock: HostClock

    def strike(self, process: Process, label: str, can: tuple[Kind, ...]) -> Kind | None:
        """Count a point, tell it in the story, and give the fault that strikes there."""
        ...

    def delay_seconds(self) -> float:
        """How long others may move before this one goes on."""
        ...

    def pause_seconds(self, process: Process) -> float:
        """How long a process that is stopped stands still, if nobody thaws it before."""
        ...


class Process:
    """What a killed process takes with it: its tasks. Every door that they use asks whether it lives."""

    def __init__(self, fate: Fate, name: str, number: int, side: Side = "both") -> None:
        self.name = name
        self.side = side
        self.owner = f"simulated/boot/{number}/{number}"
        self.gone = asyncio.Event()
        self.died_at = 0.0
        self.time = HostTime(fate.clock)
        self._fate = fate
        self.missed_a_commit = False
        self._still_until = 0.0
        self._thawed = asyncio.Event()

    async def point(self, label: str, can: tuple[Kind, ...] = ()) -> Kind | None:
        """One numbered point: the process may end or stand still here, and others may move.

        Gives the fault, one of `can`, that the caller has to carry out.
        """
        await self._stand_still()
        kind = self.cross(label, can)
        await asyncio.sleep(self._fate.delay_seconds())
        await self._stand_still()
        return kind

    def cross(self, label: str, can: tuple[Kind, ...] = ()) -> Kind | None:
        """A point in code that cannot wait. The one at which a process is killed is its last."""
        if self.dead:
            raise Killed(label)
        kind = self._fate.strike(self, label, can)
        if kind == "kill":
            self.die()
            raise Killed(label)
        if kind == "pause":
            self._thawed.clear()
            self._still_until = self._now + self._fate.pause_seconds(self)
        return kind if kind in can else None

    def die(self) -> None:
        """From now on every door is shut."""
        self.gone.set()
        self.died_at = self._now

    def thaw(self) -> None:
        """Go on."""
        self._still_until = 0.0
        self._thawed.set()

    @property
    def is_still(self) -> bool:
        """Whether it lives and is stopped."""
        return not self.dead and self._now < self._still_until

    @property
    def dead(self) -> bool:
        """Whether it was killed."""
        return self.gone.is_set()

    @property
    def _now(self) -> float:
        return self._fate.clock.monotonic()

    async def _stand_still(self) -> None:
        while not self.dead and (rest_seconds := self._still_until - self._now) > _MOMENT_SECONDS:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._thawed.wait(), rest_seconds)
        if self.dead:
            raise Killed(self.name)


HERE: ContextVar[Process] = ContextVar("HERE")
"""The process that the running task belongs to."""
