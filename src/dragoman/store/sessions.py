"""One connection to a database: how it runs statements, and begins, saves and ends a transaction.

SQLite writes under BEGIN IMMEDIATE. PostgreSQL says READ COMMITTED with each BEGIN, MariaDB and MySQL for the
session. A read is a read-only snapshot. A session belongs to one thread.
"""

from __future__ import annotations

import functools
import re
import sqlite3
from collections.abc import Sequence
from typing import Any, ClassVar

import sqlalchemy as sa

from dragoman.kernel import limits
from dragoman.store.failures import Verdict, judge_mysql, judge_postgres, judge_sqlite
from dragoman.store.statements import Compilations
from dragoman.store.transaction import DialectName

_COPY_ROWS_MIN = 20
_ROWS_AT_ONCE = 32
_PLACE = re.compile(r"\$(\d+)")


@functools.lru_cache(maxsize=limits.STATEMENTS_KEPT)
def several(sql: str, rows: int) -> str:
    """PostgreSQL's statement for so many rows of parameters, out of the one for a single row.

    An INSERT gets more VALUES; an UPDATE or a DELETE joins them, so that no two may match the same row.
    """
    if rows == 1:
        return sql
    verb, _, _ = sql.partition(" ")
    if verb == "INSERT":
        head, opening, rest = sql.partition(" VALUES ")
        values, tail = _closed(rest)
        width = len(_PLACE.findall(values))
        return head + opening + ", ".join(_moved(values, at * width) for at in range(rows)) + tail
    head, where, tail = sql.partition(" WHERE ")
    width = max(map(int, _PLACE.findall(sql)))
    columns = ", ".join(f"c{n}" for n in range(1, width + 1))
    casts = {int(place): cast for place, cast in _CAST.findall(sql)}
    one = ", ".join(f"${n}{casts.get(n, '')}" for n in range(1, width + 1))
    values = ", ".join(f"({_moved(one, at * width)})" for at in range(rows))
    joined = "USING" if verb == "DELETE" else "FROM"
    given = f" {joined} (VALUES {values}) AS given ({columns})"
    return _PLACE.sub(r"given.c\1", head) + given + where + _PLACE.sub(r"given.c\1", tail)


_CAST = re.compile(r"\$(\d+)(::[A-Z]+(?:\(\d+\))?)")


def _moved(values: str, by: int) -> str:
    """The same places, so many further on."""
    return _PLACE.sub(lambda place: f"${int(place[1]) + by}", values)


def _closed(text: str) -> tuple[str, str]:
    """A text that begins with a parenthesis, cut behind the one that closes it."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return text[: at + 1], text[at + 1 :]
    raise ValueError(f"unbalanced: {text}")


class Session:
    """What the three have in common: a DB-API connection in autocommit mode, and one cursor."""

    name: ClassVar[DialectName]
    begin_writing_sql: ClassVar[str]
    begin_reading_sql: ClassVar[str]
    renew_savepoint_sql: ClassVar[tuple[str, ...]] = ("SAVEPOINT act",)
    clock_sql: ClassVar[str]

    def __init__(
        self, connection: Any, driver: Any, compilations: Compilations, skips_locked: bool = True
    ) -> None:
        self.compilations = compilations
        self.skips_locked = skips_locked
        self._connection = connection
        self._driver = driver
        self._cursor = self._make_cursor()
        self._has_savepoint = False

    def query(self, sql: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Run one statement and fetch all rows."""
        self._cursor.execute(sql, parameters)
        rows: Sequence[Sequence[Any]] = self._cursor.fetchall()
        return rows

    def change(self, sql: str, parameters: Sequence[Any]) -> int:
        """Run one statement; how many rows it matched."""
        self._cursor.execute(sql, parameters)
        return int(self._cursor.rowcount)

    def change_many(self, sql: str, parameters: Sequence[Sequence[Any]]) -> int:
        """Run one statement for each row of parameters; how many rows it matched in all."""
        self._cursor.executemany(sql, parameters)
        return int(self._cursor.rowcount)

    def fill(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
        """Bulk load where there is a faster way than INSERT; False where there is none."""
        return False

    def judge(self, error: BaseException) -> Verdict | None:
        """What became of the transaction; None where the error is not the driver's."""
        raise NotImplementedError

    def judge_commit(self, error: BaseException) -> Verdict | None:
        """The same for an error that COMMIT met: LOST means that nobody knows."""
        return self.judge(error)

    def is_duplicate(self, error: Exception) -> bool:
        """Whether a row was refused because its key stands already."""
        raise NotImplementedError

    def execute(self, sql: str) -> None:
        """Run a command without parameters or rows."""
        self._cursor.execute(sql)

    def begin_writing(self) -> None:
        """Open a transaction that may write."""
        self._has_savepoint = False
        self.execute(self.begin_writing_sql)

    def begin_reading(self) -> None:
        """Open a read-only transaction that sees one instant of the database."""
        self.execute(self.begin_reading_sql)

    def savepoint(self) -> None:
        """Mark the place to which the next act would be undone; the earlier mark is dropped."""
        for command in self.renew_savepoint_sql if self._has_savepoint else ("SAVEPOINT act",):
            self.execute(command)
        self._has_savepoint = True

    def undo_act(self) -> None:
        """Undo everything since the last savepoint."""
        self.execute("ROLLBACK TO SAVEPOINT act")

    def commit(self) -> None:
        """Make the transaction's changes last."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """Undo the whole transaction."""
        self.execute("ROLLBACK")

    def clock(self) -> int:
        """The server's clock, microseconds UTC."""
        return int(self.query(self.clock_sql, ())[0][0])

    def close(self) -> None:
        """Let the connection go, whatever state it is in."""
        self._connection.close()

    def _make_cursor(self) -> Any:
        return self._connection.cursor()


class SqliteSession(Session):
    """A connection to one file."""

    name = "sqlite"
    begin_writing_sql = "BEGIN IMMEDIATE"
    begin_reading_sql = "BEGIN"
    renew_savepoint_sql = ("RELEASE SAVEPOINT act", "SAVEPOINT act")

    def judge(self, error: BaseException) -> Verdict | None:
        """By SQLite's result code."""
        return judge_sqlite(error)

    def judge_commit(self, error: BaseException) -> Verdict | None:
        """A write of the log that failed may stand on the disk after all, and come back at the next start."""
        if isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_IOERR:
            return Verdict.LOST
        return judge_sqlite(error)

    def is_duplicate(self, error: Exception) -> bool:
        """By SQLite's extended result code."""
        names = ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY")
        return isinstance(error, sqlite3.IntegrityError) and error.sqlite_errorname in names

    def rollback(self) -> None:
        """Undo the whole transaction, if a full disk has not ended it already."""
        if self._connection.in_transaction:
            self.execute("ROLLBACK")


class PostgresSession(Session):
    """A connection to PostgreSQL; psycopg prepares what it sees often."""

    name = "postgresql"
    begin_writing_sql = "BEGIN ISOLATION LEVEL READ COMMITTED"
    begin_reading_sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    renew_savepoint_sql = ("RELEASE SAVEPOINT act; SAVEPOINT act",)
    clock_sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    def change_many(self, sql: str, parameters: Sequence[Sequence[Any]]) -> int:
        """So many rows in one statement: each costs a tenth of what a statement of its own does."""
        count = at = 0
        while at < len(parameters):
            size = min(1 << (len(parameters) - at).bit_length() - 1, _ROWS_AT_ONCE)
            rows = parameters[at : at + size]
            count += self.change(several(sql, size), [value for row in rows for value in row])
            at += size
        return count

    def fill(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
        """COPY, which takes half the time of INSERT."""
        if len(rows) < _COPY_ROWS_MIN:
            return False
        named = ", ".join(f'"{name}"' for name in columns)
        with self._cursor.copy(f'COPY "{table.name}" ({named}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row(row)
        return True

    def judge(self, error: BaseException) -> Verdict | None:
        """By SQLSTATE, and by whether the connection still stands."""
        verdict = judge_postgres(error, self._driver)
        return Verdict.LOST if verdict and self._connection.closed else verdict

    def is_duplicate(self, error: Exception) -> bool:
        """SQLSTATE 23505."""
        return getattr(error, "sqlstate", None) == "23505"

    def _make_cursor(self) -> Any:
        return self._driver.RawCursor(self._connection)


class MysqlSession(Session):
    """A connection to MariaDB or MySQL. Row counts are rows matched, not rows changed."""

    name = "mysql"
    begin_writing_sql = "START TRANSACTION"
    begin_reading_sql = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
    clock_sql = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"

    def judge(self, error: BaseException) -> Verdict | None:
        """By error number."""
        return judge_mysql(error, self._driver)

    def is_duplicate(self, error: Exception) -> bool:
        """Error 1062."""
        return isinstance(error, self._driver.IntegrityError) and error.args[:1] == (1062,)
