"""How acts become commits in a world: on its one database, at once, with a point before and after each.

The transactions are those of `store.writer`. A process that groups its commits serves its line of acts one
group after the other, as SQLite's writer thread does; one that does not commits each act apart, as a pool of
connections does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dragoman.kernel.identity import Chance
from dragoman.store.failures import Verdict
from dragoman.store.sessions import SqliteSession
from dragoman.store.writer import Call, Tally, Transaction, look
from tests.simulation.faults import COMMIT, Kind
from tests.simulation.processes import Killed, Process

PLACE = "the simulation"
GROUP_MAX = 8


class CommitCut(Exception):
    """The connection broke while COMMIT was under way."""


class CommitUndone(Exception):
    """The database undid the transaction."""


class FaultySession(SqliteSession):
    """A connection whose next commit may fail as the world's plan has it."""

    mood: Kind | None = None

    def commit(self) -> None:
        """Commit, or not, and say so, or not."""
        mood, self.mood = self.mood, None
        if mood in ("commit unmade", "rolled back"):
            self.rollback()
            raise CommitUndone if mood == "rolled back" else CommitCut
        super().commit()
        if mood == "commit lost":
            raise CommitCut

    def judge_commit(self, error: BaseException) -> Verdict | None:
        """What the world did is judged as a server's error would be."""
        if isinstance(error, CommitCut):
            return Verdict.LOST
        if isinstance(error, CommitUndone):
            return Verdict.ROLLED_BACK
        return super().judge_commit(error)


class Ground(Protocol):
    """The database under all processes of a world."""

    session: FaultySession
    groups: bool

    def carry_out(self, process: Process, calls: Sequence[Call], transaction: Callable[[], object]) -> bool:
        """Run one transaction, or one read, and look at what it left; whether it changed rows."""
        ...

    def tell(self, process: Process, text: str) -> None:
        """Write down that something became true."""
        ...


@dataclass(slots=True, eq=False)
class _Waiting:
    call: Call
    future: asyncio.Future[Any]


class InlineWriter:
    """The writing side of one process."""

    def __init__(self, ground: Ground, process: Process, chance: Chance, tally: Tally) -> None:
        self._ground = ground
        self._process = process
        self._chance = chance
        self._tally = tally
        self._line: deque[_Waiting] = deque()
        self._is_served = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def perform(self, call: Call) -> Any:
        """Wait for the act's commit. Raises its error; a process that dies meanwhile never hears of it."""
        if self._process.dead:
            raise Killed(name_of(call))
        waiting = _Waiting(call, asyncio.get_running_loop().create_future())
        if not self._ground.groups:
            self._start([waiting])
        else:
            (self._line.appendleft if call.urgent else self._line.append)(waiting)
            if not self._is_served:
                self._is_served = True
                self._start(None)
        return await waiting.future

    async def close(self) -> None:
        """Nothing is held."""

    def _start(self, batch: list[_Waiting] | None) -> None:
        task = asyncio.create_task(self._work(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, batch: list[_Waiting] | None) -> None:
        """Commit one act apart, or work the line off."""
        try:
            if batch is not None:
                await self._commit(batch)
                return
            while self._line:
                await self._commit([])
            self._is_served = False
        except Killed:
            """Whoever waits is as dead as this."""

    async def _commit(self, batch: list[_Waiting]) -> None:
        """One physical transaction: of the given act, or of those that wait in line when its turn comes."""
        head = batch[0].call if batch else self._line[0].call
        fault = await self._process.point(f"before {name_of(head)}", COMMIT)
        batch = batch or self._next_group()
        if not batch:
            return
        self._ground.session.mood = fault
        calls = [waiting.call for waiting in batch]
        names = " + ".join(map(name_of, calls))
        wrote = self._ground.carry_out(self._process, calls, lambda: self._transact(calls))
        self._ground.session.mood = None
        if wrote:
            self._ground.tell(self._process, f"committed {names}")
        await self._process.point(f"after {names}")
        _answer(batch)

    def _next_group(self) -> list[_Waiting]:
        """Acts at the head of the line that may share a transaction; whoever waits no more is passed over."""
        group: list[_Waiting] = []
        while self._line and len(group) < GROUP_MAX and not (group and self._line[0].call.alone):
            waiting = self._line.popleft()
            if not waiting.future.cancelled():
                group.append(waiting)
                if waiting.call.alone:
                    break
        return group

    def _transact(self, calls: Sequence[Call]) -> None:
        rest = iter(calls[1:])
        transaction = Transaction(
            self._ground.session, PLACE, self._process.time.now, self._chance, self._tally
        )
        transaction.carry_out(calls[0], lambda: next(rest, None))


class InlineReader:
    """The reading side of one process."""

    def __init__(self, ground: Ground, process: Process, chance: Chance) -> None:
        self._ground = ground
        self._process = process
        self._chance = chance

    async def perform(self, call: Call) -> Any:
        """Read at once; a point before and after."""
        await self._process.point(f"before reading {name_of(call)}")
        wrote = self._ground.carry_out(
            self._process,
            [call],
            lambda: look(self._ground.session, PLACE, self._process.time.now(), self._chance, call),
        )
        if wrote:
            raise AssertionError(f"{name_of(call)} was to read, and has written")
        await self._process.point(f"after reading {name_of(call)}")
        if call.error is not None:
            raise call.error
        return call.result

    async def close(self) -> None:
        """Nothing is held."""


def name_of(call: Call) -> str:
    """What an act is called in the story."""
    return str(getattr(call.act, "__name__", call.act)).lstrip("_")


def _answer(batch: Sequence[_Waiting]) -> None:
    for waiting in batch:
        if waiting.future.done():
            continue
        if waiting.call.error is not None:
            waiting.future.set_exception(waiting.call.error)
        else:
            waiting.future.set_result(waiting.call.result)
