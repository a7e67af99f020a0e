"""What an error of a database driver means for the transaction that met it.

Only what the server itself says was rolled back, and a connection that was lost before COMMIT was sent, may
run again. Messages name constraints and codes, never values: rows may hold secrets and tenants' texts.
"""

from __future__ import annotations

import re
import sqlite3
from enum import Enum
from typing import Any

from dragoman.kernel.errors import StoreError


class Verdict(Enum):
    """What became of the transaction that met the error."""

    ROLLED_BACK = "the server undid it: it may run again"
    LOST = "the connection is gone: what was not committed is undone"
    FOREIGN = "a table or column of ours is missing"
    UNAVAILABLE = "the database cannot do this now: disk full, read only, damaged"
    REFUSED = "the statement or a row is wrong: running it again changes nothing"


class RolledBack(Exception):
    """The transaction was undone by the server or by the loss of its connection; it may run again."""

    def __init__(self, verdict: Verdict, cause: str) -> None:
        self.verdict = verdict
        super().__init__(cause)


_SQLITE_AGAIN = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_SQLITE_UNAVAILABLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_PERM,
}
_POSTGRES_AGAIN = {"40001", "40P01", "55P03"}
_POSTGRES_LOST = re.compile(r"08|57P|53300|25P03")
_POSTGRES_UNAVAILABLE = re.compile(r"53|58|25006|XX|28|3D")
_POSTGRES_FOREIGN = {"42P01", "42703"}
_MYSQL_FOREIGN = {1054, 1146}
_MYSQL_AGAIN = {1213, 1205, 1020}
_MYSQL_LOST = {
    0,
    1040,
    1053,
    1152,
    1158,
    1159,
    1160,
    1161,
    1203,
    1927,
    2002,
    2003,
    2006,
    2013,
    2014,
    2055,
    4031,
}
_MYSQL_UNAVAILABLE = {1021, 1028, 1030, 1044, 1045, 1049, 1114, 1290, 1792, 1836, 2059}
_IDENTIFIER = re.compile(r"(?:key|column|Table|server on|to) '([\w.]+)|`([\w.]+)`", re.ASCII)


def judge_sqlite(error: BaseException) -> Verdict | None:
    """What SQLite meant; None where the error is not the driver's."""
    if not isinstance(error, sqlite3.Error):
        return None
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _SQLITE_AGAIN:
        return Verdict.ROLLED_BACK
    if code in _SQLITE_UNAVAILABLE:
        return Verdict.UNAVAILABLE
    missing = code == sqlite3.SQLITE_ERROR and str(error).startswith(("no such table", "no such column"))
    return Verdict.FOREIGN if missing else Verdict.REFUSED


def judge_postgres(error: BaseException, driver: Any) -> Verdict | None:
    """What PostgreSQL meant; None where the error is not the driver's."""
    if not isinstance(error, driver.Error):
        return None
    state = getattr(error, "sqlstate", None)
    if state is None:
        return Verdict.LOST if isinstance(error, driver.OperationalError) else Verdict.REFUSED
    if state in _POSTGRES_AGAIN:
        return Verdict.ROLLED_BACK
    if _POSTGRES_LOST.match(state):
        return Verdict.LOST
    if _POSTGRES_UNAVAILABLE.match(state):
        return Verdict.UNAVAILABLE
    return Verdict.FOREIGN if state in _POSTGRES_FOREIGN else Verdict.REFUSED


def judge_mysql(error: BaseException, driver: Any) -> Verdict | None:
    """What MariaDB or MySQL meant; None where the error is not the driver's."""
    if not isinstance(error, driver.Error):
        return None
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    if number in _MYSQL_AGAIN:
        return Verdict.ROLLED_BACK
    if number in _MYSQL_LOST:
        return Verdict.LOST
    if number in _MYSQL_UNAVAILABLE:
        return Verdict.UNAVAILABLE
    return Verdict.FOREIGN if number in _MYSQL_FOREIGN else Verdict.REFUSED


def describe(error: BaseException) -> str:
    """Kind, code and constraint of a driver's error. No value of a row: SQLite's messages never hold one."""
    diag = getattr(error, "diag", None)
    if diag is not None and getattr(error, "sqlstate", None):
        named = [error.sqlstate, diag.table_name, diag.column_name, diag.constraint_name]  # type: ignore[attr-defined]
    elif len(error.args) > 1:
        named = [error.args[0], *[a or b for a, b in _IDENTIFIER.findall(str(error.args[1]))]]
    else:
        named = [getattr(error, "sqlite_errorname", None), *str(error).splitlines()[:1]]
    return " ".join([type(error).__name__, *[str(part) for part in named if part]])


def stated(verdict: Verdict, error: BaseException, place: str) -> StoreError:
    """The error that a caller gets for what the driver said at `place` (a URL without its password)."""
    if verdict is Verdict.REFUSED:
        return StoreError(
            f"the database at {place} refused a statement: {describe(error)}", code="internal_error"
        )
    if verdict is Verdict.FOREIGN:
        return StoreError(
            f"the database at {place} is not as expected: {describe(error)}", "schema_unavailable"
        )
    return StoreError(f"the database at {place} cannot be used: {describe(error)}")
