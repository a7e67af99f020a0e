"""How a database would find the rows of every statement that an act runs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.identity import SystemChance
from dragoman.store.servers import server_of
from dragoman.store.sessions import Session
from dragoman.store.transaction import DialectName, Tx


class Plan(NamedTuple):
    """One statement and the database's plan for it, as text."""

    dialect: DialectName
    sql: str
    text: str

    @property
    def scans(self) -> bool:
        """Whether it reads a whole table."""
        match self.dialect:
            case "sqlite":
                return any("SCAN" in line and "INDEX" not in line for line in self.text.splitlines())
            case "postgresql":
                return "Seq Scan" in self.text
            case "mysql":
                return "type=ALL" in self.text

    @property
    def sorts(self) -> bool:
        """Whether it puts rows in order itself; an incremental sort begins with the order of an index."""
        match self.dialect:
            case "sqlite":
                return "USE TEMP B-TREE FOR ORDER BY" in self.text
            case "postgresql":
                return re.search(r"^[\s>-]*Sort  \(", self.text, re.MULTILINE) is not None
            case "mysql":
                return "filesort" in self.text


class _Recorder:
    """A session that remembers what it was asked."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.compilations = session.compilations
        self.skips_locked = session.skips_locked
        self.name = session.name
        self.asked: list[tuple[str, Sequence[Any]]] = []

    def query(self, sql: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
        self.asked.append((sql, parameters))
        return self._session.query(sql, parameters)

    def change(self, sql: str, parameters: Sequence[Any]) -> int:
        self.asked.append((sql, parameters))
        return self._session.change(sql, parameters)

    def change_many(self, sql: str, parameters: Sequence[Sequence[Any]]) -> int:
        return self._session.change_many(sql, parameters)

    def is_duplicate(self, error: Exception) -> bool:
        return self._session.is_duplicate(error)

    def fill(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
        return self._session.fill(table, columns, rows)


def plans_of(url: str, now: int, act: Callable[..., Any], *args: Any) -> list[Plan]:
    """Run `act(tx, *args)` at the instant `now`, explain each statement that finds rows, and undo it all.

    On PostgreSQL whole-table scans are priced out, because the tables of tests are small.
    """
    session = server_of(url).connect(reading=False)
    with contextlib.closing(session):
        session.begin_writing()
        if session.name == "postgresql":
            session.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        recorder = _Recorder(session)
        act(Tx(recorder, now, SystemChance()), *args)
        found = [
            Plan(session.name, sql, explain(session, sql, parameters))
            for sql, parameters in recorder.asked
            if sql.split(None, 1)[0] in ("SELECT", "UPDATE", "DELETE", "WITH")
        ]
        session.rollback()
    return found


def explain(session: Session, sql: str, parameters: Sequence[Any]) -> str:
    """The plan of one statement."""
    word = "EXPLAIN QUERY PLAN" if session.name == "sqlite" else "EXPLAIN"
    rows = session.query(f"{word} {sql}", parameters)
    if session.name == "mysql":
        names = ("id", "select_type", "table", "type", "possible", "key", "length", "ref", "rows", "extra")
        told = [" ".join(f"{name}={value}" for name, value in zip(names, row, strict=False)) for row in rows]
        return "\n".join(told)
    return "\n".join(str(row[-1]) for row in rows)


def analyze(url: str, *tables: sa.Table) -> None:
    """Let the planner know what the tables hold."""
    session = server_of(url).connect(reading=False)
    with contextlib.closing(session):
        for table in tables:
            if session.name == "mysql":
                session.query(f"ANALYZE TABLE {table.name}", ())
            else:
                session.execute(f"ANALYZE {table.name}")
