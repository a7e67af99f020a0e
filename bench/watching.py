"""A database that remembers how long each act and each look took, by name."""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.kernel.identity import Chance
from dragoman.store.database import Database, Performer
from dragoman.store.writer import Call, Tally


@dataclass(slots=True)
class Spent:
    """What all calls of one act took in the database's threads, without their commits."""

    times: int = 0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0


class _Watching:
    """Passes calls on, each act wrapped in a stopwatch that runs in the thread that carries it out."""

    def __init__(self, performer: Performer, spent: Mapping[str, Spent]) -> None:
        self._performer = performer
        self._spent = spent

    async def perform(self, call: Call) -> Any:
        call.act = _timed(call.act, self._spent[call.act.__name__])
        return await self._performer.perform(call)

    async def close(self) -> None:
        await self._performer.close()


class WatchedDatabase(Database):
    """`spent` is act → what it took."""

    def __init__(
        self, writer: Performer, reader: Performer, now: Callable[[], int], chance: Chance, tally: Tally
    ) -> None:
        self.spent: defaultdict[str, Spent] = defaultdict(Spent)
        super().__init__(_Watching(writer, self.spent), _Watching(reader, self.spent), now, chance, tally)


def _timed(act: Callable[..., Any], spent: Spent) -> Callable[..., Any]:
    @functools.wraps(act)
    def timed(*args: Any, **kwargs: Any) -> Any:
        cpu, wall = time.thread_time(), time.perf_counter()
        try:
            return act(*args, **kwargs)
        finally:
            spent.times += 1
            spent.cpu_seconds += time.thread_time() - cpu
            spent.wall_seconds += time.perf_counter() - wall

    return timed
