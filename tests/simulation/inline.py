"""The real store without threads: an act runs in the task that waits for it, on SQLite in memory.

Only who runs an act, and when, is replaced: statements, savepoints, group commit and the telling of errors
are the store's own. Every act has a switch point before it and one after its commit, where the simulation may
let others run, kill the process, or lose the commit's answer. Processes of one world share the connection;
each has its own `Database` and hooks.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from dragoman.kernel.clock import Clock
from dragoman.kernel.identity import Chance
from dragoman.store.database import Database
from dragoman.store.failures import Verdict
from dragoman.store.sessions import SqliteSession
from dragoman.store.statements import Compilations
from dragoman.store.timekeeping import HostTime
from dragoman.store.writer import Call, Tally, Transaction, look
from tests.doubles.databases import make_schema

Fault = Literal["kept", "undone", "deadlock"]
"""What may become of a commit: done but its answer lost, not done and its answer lost, or a deadlock."""

_COMPILATIONS = Compilations(SQLiteDialect_pysqlite(dbapi=sqlite3))


class Hooks(Protocol):
    """One simulated process, as its database sees it. Whatever a hook raises reaches the waiting task."""

    async def before(self, act: str) -> None:
        """The point before a transaction or a read."""
        ...

    async def after(self, act: str) -> None:
        """The point after its physical commit."""
        ...

    def check(self) -> None:
        """Raise if the process has been killed: what stands in line then never begins."""
        ...

    def shares(self, act: str) -> bool:
        """Whether this act waits for others to share its commit."""
        ...

    def fault(self, acts: Sequence[str]) -> Fault | None:
        """What goes wrong with this commit; None for nothing."""
        ...

    def committed(self, acts: Sequence[str]) -> None:
        """Called right after each physical commit, before anybody is told: the place for invariants."""
        ...


def memory(template: bytes | None = None) -> sqlite3.Connection:
    """A database in memory with all tables, or with what `template` (a serialized database) holds."""
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
    connection.deserialize(_schema() if template is None else template)
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def inline_database(connection: sqlite3.Connection, clock: Clock, chance: Chance, hooks: Hooks) -> Database:
    """The database of one simulated process."""
    time, tally = HostTime(clock), Tally()
    session = _Session(connection, hooks)
    writer = _Writer(session, time.now, chance, tally, hooks)
    return Database(writer, _Reader(session, time.now, chance, hooks), time.now, chance, tally)


class _Lost(Exception):
    """What the driver would raise."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(verdict.value)


class _Session(SqliteSession):
    """A session whose commits may go wrong."""

    def __init__(self, connection: sqlite3.Connection, hooks: Hooks) -> None:
        super().__init__(connection, sqlite3, _COMPILATIONS)
        self._hooks = hooks
        self.acts: list[str] = []

    def commit(self) -> None:
        fault = self._hooks.fault(self.acts)
        if fault in ("undone", "deadlock"):
            self.rollback()
            raise _Lost(Verdict.ROLLED_BACK if fault == "deadlock" else Verdict.LOST)
        super().commit()
        self._hooks.committed(self.acts)
        if fault == "kept":
            raise _Lost(Verdict.LOST)

    def judge(self, error: BaseException) -> Verdict | None:
        return error.verdict if isinstance(error, _Lost) else super().judge(error)

    def judge_commit(self, error: BaseException) -> Verdict | None:
        return error.verdict if isinstance(error, _Lost) else super().judge_commit(error)


class _Writer:
    """Carries acts out one by one, or together with those that stand in line at the same turn of the loop."""

    def __init__(
        self, session: _Session, now: Callable[[], int], chance: Chance, tally: Tally, hooks: Hooks
    ) -> None:
        self._session = session
        self._now = now
        self._chance = chance
        self._tally = tally
        self._hooks = hooks
        self._line: list[tuple[Call, asyncio.Future[None]]] = []

    async def perform(self, call: Call) -> Any:
        """Run one act; its switch points are before it and after its commit."""
        name = name_of(call.act)
        await self._hooks.before(name)
        if not call.alone and self._hooks.shares(name):
            loop = asyncio.get_running_loop()
            turn: asyncio.Future[None] = loop.create_future()
            self._line.append((call, turn))
            if len(self._line) == 1:
                loop.call_soon(self._carry_out_line)
            await turn
        else:
            self._carry_out([call])
        await self._hooks.after(name)
        if call.error is not None:
            raise call.error
        return call.result

    async def close(self) -> None:
        """Nothing waits beyond its task."""

    def _carry_out_line(self) -> None:
        line, self._line = self._line, []
        try:
            self._hooks.check()
        except BaseException as killed:  # noqa: BLE001 - a killed process is no Exception
            for _, turn in line:
                if not turn.done():
                    turn.set_exception(killed)
            return
        waiting = [(call, turn) for call, turn in line if not turn.cancelled()]
        waiting.sort(key=lambda pair: not pair[0].urgent)
        self._carry_out([call for call, _ in waiting])
        for _, turn in waiting:
            turn.set_result(None)

    def _carry_out(self, calls: list[Call]) -> None:
        if not calls:
            return
        self._session.acts = [name_of(call.act) for call in calls]
        transaction = Transaction(self._session, "the simulation", self._now, self._chance, self._tally)
        rest = iter(calls[1:])
        transaction.carry_out(calls[0], lambda: next(rest, None))


class _Reader:
    """Runs reading functions; a write in one of them is refused as on a real reading connection."""

    def __init__(self, session: _Session, now: Callable[[], int], chance: Chance, hooks: Hooks) -> None:
        self._session = session
        self._now = now
        self._chance = chance
        self._hooks = hooks

    async def perform(self, call: Call) -> Any:
        """Run one read; it has a switch point before it."""
        await self._hooks.before(name_of(call.act))
        self._session.execute("PRAGMA query_only=ON")
        look(self._session, "the simulation", self._now(), self._chance, call)
        self._session.execute("PRAGMA query_only=OFF")
        if call.error is not None:
            raise call.error
        return call.result

    async def close(self) -> None:
        """Nothing waits beyond its task."""


def name_of(act: Callable[..., Any]) -> str:
    """How an act is called in a story of events."""
    return str(getattr(act, "__name__", act))


@functools.cache
def _schema() -> bytes:
    """An empty database with all tables, as bytes."""
    folder = tempfile.mkdtemp()
    try:
        make_schema(f"sqlite:///{folder}/template.db")
        with contextlib.closing(sqlite3.connect(f"{folder}/template.db")) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
            return connection.serialize()
    finally:
        shutil.rmtree(folder)
