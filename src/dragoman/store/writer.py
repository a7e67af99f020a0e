"""How acts become commits: threads put waiting acts into one physical transaction and answer after it.

Each act of a group stands in a savepoint of its own: one that raises is undone alone, and its error goes to
its caller alone. A group that the server undid is handed back act by act, each to run alone. Whoever waits
for an act whose commit was cut off gets `CommitUnknown`. What an act does is none of this module's knowledge.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Literal

from dragoman.kernel import limits
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import CommitUnknown, StoreError
from dragoman.kernel.identity import Chance
from dragoman.store.failures import RolledBack, Verdict, describe, stated
from dragoman.store.servers import Server
from dragoman.store.sessions import Session
from dragoman.store.timekeeping import DatabaseTime
from dragoman.store.transaction import Tx


@dataclass(slots=True, eq=False)
class Call:
    """One act that somebody waits for, and what came of it."""

    act: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    urgent: bool = False
    alone: bool = False
    result: Any = None
    error: BaseException | None = None


class Tally:
    """What a database has done so far, for bench and metrics; threads share it.

    `commits` changed rows for acts that were not all urgent, `urgent_commits` for urgent ones only; `empty`
    changed nothing; `undone` were rolled back whole.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.acts = self.commits = self.urgent_commits = self.empty = self.undone = 0

    def count(
        self, kind: Literal["acts", "commits", "urgent_commits", "empty", "undone"], by: int = 1
    ) -> None:
        """Raise one of the numbers."""
        with self._lock:
            setattr(self, kind, getattr(self, kind) + by)


class Transaction:
    """One physical transaction on a session: any number of acts, then one commit."""

    def __init__(
        self, session: Session, place: str, now: Callable[[], int], chance: Chance, tally: Tally
    ) -> None:
        self._session = session
        self._place = place
        self._now = now
        self._chance = chance
        self._tally = tally

    def carry_out(self, first: Call, more: Callable[[], Call | None]) -> list[Call]:
        """Run acts until `more` gives none, commit, and give back all of them with their results or errors.

        An error with verdict LOST leaves the session unusable: `is_lost` says so.
        """
        taken: list[Call] = []
        kept: list[Call] = []
        self.is_lost = False
        self._wrote = False
        try:
            self._begin()
            call: Call | None = first
            while call is not None:
                taken.append(call)
                self._run(call, kept)
                call = more()
        except Exception as error:  # noqa: BLE001 - every caller is answered, whatever went wrong
            self._fail(taken or [first], error, self._session.judge(error))
            return taken or [first]
        self._tally.count("acts", len(taken))
        if kept:
            self._commit(kept)
        else:
            self._undo()
        return taken

    def _begin(self) -> None:
        self._session.begin_writing()
        self._instant = self._now()

    def _run(self, call: Call, kept: list[Call]) -> None:
        """Run one act. What only it caused stays with it; what undid the whole transaction is raised."""
        if kept:
            self._session.savepoint()
        tx = Tx(self._session, self._instant, self._chance)
        try:
            call.result = call.act(tx, *call.args, **call.kwargs)
        except Exception as error:
            verdict = self._session.judge(error)
            if verdict in (Verdict.ROLLED_BACK, Verdict.LOST):
                raise
            call.error = error if verdict is None else stated(verdict, error, self._place)
            if kept:
                self._session.undo_act()
            else:
                self._session.rollback()
                self._begin()
        else:
            kept.append(call)
            self._wrote = self._wrote or tx.wrote
        finally:
            tx.end()

    def _commit(self, kept: list[Call]) -> None:
        try:
            self._session.commit()
        except Exception as error:  # noqa: BLE001 - every caller is answered, whatever went wrong
            verdict = self._session.judge_commit(error)
            if verdict is Verdict.LOST:
                self.is_lost = True
                said = f"the database at {self._place} was lost while committing: {describe(error)}"
                for call in kept:
                    call.error = CommitUnknown(said)
            else:
                self._fail(kept, error, verdict)
            return
        urgent = all(call.urgent for call in kept)
        self._tally.count("empty" if not self._wrote else "urgent_commits" if urgent else "commits")

    def _fail(self, calls: list[Call], error: Exception, verdict: Verdict | None) -> None:
        """The whole transaction is undone: whoever has no error of his own yet gets this one."""
        self._tally.count("undone")
        self.is_lost = verdict is Verdict.LOST
        if not self.is_lost:
            self._undo()
        for call in calls:
            if call.error is not None:
                continue
            if verdict in (Verdict.ROLLED_BACK, Verdict.LOST):
                call.error = RolledBack(verdict, stated(verdict, error, self._place).message)
            else:
                call.error = error if verdict is None else stated(verdict, error, self._place)

    def _undo(self) -> None:
        try:
            self._session.rollback()
        except Exception as error:
            if self._session.judge(error) is None:
                raise
            self.is_lost = True


def look(session: Session, place: str, now: int, chance: Chance, call: Call) -> bool:
    """Run one reading function in a snapshot that is dropped afterwards; whether the session is good."""
    try:
        session.begin_reading()
        tx = Tx(session, now, chance)
        try:
            call.result = call.act(tx, *call.args, **call.kwargs)
        finally:
            tx.end()
        session.rollback()
    except Exception as error:  # noqa: BLE001 - the caller is answered, whatever went wrong
        verdict = session.judge(error)
        if verdict in (Verdict.ROLLED_BACK, Verdict.LOST):
            call.error = RolledBack(verdict, stated(verdict, error, place).message)
        else:
            call.error = error if verdict is None else stated(verdict, error, place)
        if verdict is not Verdict.LOST:
            with contextlib.suppress(Exception):
                session.rollback()
                return True
        return False
    return True


@dataclass(slots=True, eq=False)
class _Waiting:
    """A call, and the task that waits for it."""

    call: Call
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


@dataclass(slots=True)
class _Seat:
    """What one thread holds: a connection, the calls it is at, and one that could not share a transaction."""

    session: Session | None = None
    losses: int = 0
    """How many connections the crew had lost when this one was made."""
    batch: list[_Waiting] = field(default_factory=list)
    carried: _Waiting | None = None
    is_left: bool = False


class Crew:
    """Threads, each with a connection, that work off one line of waiting acts, the urgent ones first."""

    def __init__(
        self,
        server: Server,
        time: DatabaseTime,
        clock: Clock,
        chance: Chance,
        tally: Tally,
        *,
        reading: bool,
    ) -> None:
        self._server = server
        self._time = time
        self._clock = clock
        self._chance = chance
        self._tally = tally
        self._reading = reading
        self._urgent: deque[_Waiting] = deque()
        self._ordinary: deque[_Waiting] = deque()
        self._tokens: SimpleQueue[bool] = SimpleQueue()  # True: an act is in line; False: a thread is to end
        self._is_closed = False
        self._losses = 0
        count = server.options.readers if reading else server.writers
        self._threads = [
            threading.Thread(target=self._work, name=f"{'read' if reading else 'write'}-{n}", daemon=True)
            for n in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def perform(self, call: Call) -> Any:
        """Wait for an act's turn and its commit. Raises its error, `RolledBack` or `CommitUnknown`."""
        if self._is_closed:
            raise StoreError("the database was closed")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(call, loop, loop.create_future())
        (self._urgent if call.urgent else self._ordinary).append(waiting)
        self._tokens.put(True)
        return await waiting.future

    async def close(self) -> None:
        """Work off what waits, then let the connections go."""
        self._is_closed = True
        for _ in self._threads:
            self._tokens.put(False)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _work(self) -> None:
        """The life of one thread."""
        seat = _Seat()
        while not seat.is_left:
            waiting = self._next(seat)
            if waiting is None:
                continue
            seat.batch = [waiting]
            try:
                self._serve(seat, waiting)
            except Exception as error:  # noqa: BLE001 - a thread that dies would leave its callers waiting for ever
                self._drop(seat)
                for asked in seat.batch:
                    asked.call.error = asked.call.error or error
            _answer(seat.batch)
        self._drop(seat)

    def _next(self, seat: _Seat) -> _Waiting | None:
        """The next act in line; None where its caller left, the line ended, or the clock was due."""
        if seat.carried is not None:
            waiting, seat.carried = seat.carried, None
            return waiting
        try:
            is_act = self._tokens.get(timeout=limits.CLOCK_SYNC_SECONDS if self._server.has_clock else None)
        except Empty:
            self._keep_time(seat)
            return None
        seat.is_left = not is_act
        return self._pop() if is_act else None

    def _pop(self) -> _Waiting | None:
        """The first in line; None where its caller waits no more."""
        try:
            waiting = self._urgent.popleft()
        except IndexError:
            waiting = self._ordinary.popleft()
        return None if waiting.future.cancelled() else waiting

    def _serve(self, seat: _Seat, first: _Waiting) -> None:
        """Carry out one act and, where acts share commits, those that wait behind it."""
        try:
            session = self._connected(seat)
        except Exception as error:  # noqa: BLE001 - the caller is answered, whatever went wrong
            self._lose(seat)
            self._refuse(first.call, error)
            return
        if self._reading:
            if not look(session, self._server.place, self._time.now(), self._chance, first.call):
                self._lose(seat)
            return
        transaction = Transaction(session, self._server.place, self._time.now, self._chance, self._tally)
        started = self._clock.monotonic()

        def more() -> Call | None:
            full = len(seat.batch) >= limits.GROUP_COMMIT_MAX
            if full or first.call.alone or self._clock.monotonic() - started > limits.GROUP_COMMIT_SECONDS:
                return None
            return self._join(seat)

        transaction.carry_out(first.call, more if self._server.groups else _nobody)
        if transaction.is_lost:
            self._lose(seat)

    def _join(self, seat: _Seat) -> Call | None:
        """The next act that waits already and may share the transaction."""
        while True:
            try:
                is_act = self._tokens.get_nowait()
            except Empty:
                return None
            if not is_act:
                self._tokens.put(False)
                return None
            waiting = self._pop()
            if waiting is None:
                continue
            if waiting.call.alone:
                seat.carried = waiting
                return None
            seat.batch.append(waiting)
            return waiting.call

    def _connected(self, seat: _Seat) -> Session:
        """The seat's connection; a new one where another's was lost since this one was made.

        What cuts one has mostly cut all, and an act that met each of them dead would run out of tries.
        """
        if seat.losses != self._losses:
            self._drop(seat)
        if seat.session is None:
            seat.losses = self._losses
            seat.session = self._server.connect(self._reading)
        if self._server.has_clock and self._time.is_due:
            self._time.measure(seat.session.clock)
        return seat.session

    def _refuse(self, call: Call, error: Exception) -> None:
        """No connection can be had."""
        verdict = self._server.judge(error)
        if verdict in (Verdict.LOST, Verdict.ROLLED_BACK):
            call.error = RolledBack(verdict, stated(verdict, error, self._server.place).message)
        else:
            call.error = error if verdict is None else stated(verdict, error, self._server.place)

    def _keep_time(self, seat: _Seat) -> None:
        """Between acts: measure the clock when it is due. A connection that died meanwhile is dropped."""
        if seat.session is None or not self._time.is_due:
            return
        try:
            self._time.measure(seat.session.clock)
        except Exception as error:
            if seat.session.judge(error) is None:
                raise
            self._lose(seat)

    def _lose(self, seat: _Seat) -> None:
        """This connection is of no use any more; those that are as old are tried by nobody."""
        if seat.session is not None and seat.losses == self._losses:
            self._losses += 1
        self._drop(seat)

    def _drop(self, seat: _Seat) -> None:
        session, seat.session = seat.session, None
        if session is not None:
            with contextlib.suppress(Exception):  # it may be half closed already
                session.close()


def _nobody() -> None:
    """No other act shares this transaction."""


def _answer(batch: list[_Waiting]) -> None:
    """Wake all who wait, with one call into each event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}
    for waiting in batch:
        loops.setdefault(waiting.loop, []).append(waiting)
    for loop, answered in loops.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_wake, answered)


def _wake(answered: list[_Waiting]) -> None:
    for waiting in answered:
        if waiting.future.done():
            continue
        if waiting.call.error is not None:
            waiting.future.set_exception(waiting.call.error)
        else:
            waiting.future.set_result(waiting.call.result)
