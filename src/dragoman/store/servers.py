"""The three databases: how a URL becomes one of them, and how a connection to it is set.

SQLite: WAL, `synchronous=FULL`, one host. MariaDB and MySQL: READ COMMITTED for the session, strict SQL mode.
Waits for locks, silent servers and transactions left open are bounded. Passwords appear in no message:
`place` is the URL without it.
"""

from __future__ import annotations

import functools
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from dragoman.kernel import limits
from dragoman.kernel.errors import SettingsError
from dragoman.store.failures import Verdict, judge_mysql, judge_postgres, judge_sqlite
from dragoman.store.sessions import MysqlSession, PostgresSession, Session, SqliteSession
from dragoman.store.statements import Compilations

_SQLITE_MIN = (3, 35)  # RETURNING
_SQLITE = SQLiteDialect_pysqlite(dbapi=sqlite3)


@dataclass(frozen=True, slots=True)
class Options:
    """What may be set about a database; `group_commit` concerns servers, SQLite always does it."""

    group_commit: bool = False
    writers: int = limits.WRITERS
    readers: int = limits.READERS
    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    busy_seconds: float = limits.SQLITE_BUSY_SECONDS
    password: Callable[[], str] | None = None
    """Gives the password of each new connection, in place of the URL's, and encryption is then demanded
    unless the URL says otherwise. Raises `StoreError`.
    """


class Server:
    """One database, from which sessions are opened. `place` names it in messages."""

    has_clock = True
    encrypted: ClassVar[Mapping[str, object]] = {}
    """What makes the driver refuse a connection that others can read."""

    def __init__(self, url: sa.URL, options: Options) -> None:
        self.url = url
        self.options = options
        self.place = url.render_as_string(hide_password=True)
        self.writers = options.writers
        self.groups = options.group_commit

    def connect(self, reading: bool) -> Session:
        """Open a session. Raises the driver's error."""
        raise NotImplementedError

    def let_in(self, named: Mapping[str, object]) -> dict[str, Any]:
        """The driver's arguments, with the password that is in force now."""
        if self.options.password is None:
            return dict(named)
        return {**self.encrypted, **named, "password": self.options.password()}

    def judge(self, error: BaseException) -> Verdict | None:
        """What an error of `connect` means; None where it is not the driver's."""
        raise NotImplementedError


class SqliteServer(Server):
    """A file on this host. One process writes at a time; the others wait for it."""

    has_clock = False

    def __init__(self, url: sa.URL, options: Options) -> None:
        super().__init__(url, options)
        if not url.database or url.database == ":memory:":
            raise SettingsError("a SQLite database is a file: give it as sqlite:///path/to/file.db")
        if sqlite3.sqlite_version_info < _SQLITE_MIN:
            raise SettingsError(f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or newer is needed")
        self.place = url.database
        self.writers = 1
        self.groups = True
        self._path = url.database
        self._compilations = _compilations(_SQLITE)

    def connect(self, reading: bool) -> Session:
        """Open the file; a reader cannot write by mistake."""
        connection = sqlite3.connect(
            self._path, timeout=self.options.busy_seconds, isolation_level=None, cached_statements=512
        )
        tune(connection, self.options.synchronous)
        if reading:
            connection.execute("PRAGMA query_only=ON")
            connection.execute("PRAGMA cache_size=-8192")  # the system has its pages in memory, too
        return SqliteSession(connection, sqlite3, self._compilations)

    def judge(self, error: BaseException) -> Verdict | None:
        """By SQLite's result code."""
        return judge_sqlite(error)


def tune(connection: sqlite3.Connection, synchronous: str) -> None:
    """Set what every connection to a SQLite file is set to."""
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    if journal not in ("wal", "memory"):
        connection.execute("PRAGMA journal_mode=WAL")
    for statement in (
        "PRAGMA synchronous=FULL" if synchronous == "FULL" else "PRAGMA synchronous=NORMAL",
        "PRAGMA fullfsync=ON",  # where fsync alone does not reach the disk (macOS)
        "PRAGMA foreign_keys=ON",
        "PRAGMA cache_size=-32768",
        "PRAGMA temp_store=MEMORY",
        "PRAGMA journal_size_limit=67108864",
        "PRAGMA wal_autocheckpoint=4000",  # pages: what a few calls change in turn is copied back once
    ):
        connection.execute(statement)


class PostgresServer(Server):
    """PostgreSQL through psycopg 3."""

    encrypted: ClassVar[Mapping[str, object]] = {"sslmode": "require"}

    def __init__(self, url: sa.URL, options: Options) -> None:
        super().__init__(url, options)
        self._dialect, self._driver = _driver(url.drivername, "postgres", "numeric_dollar")
        self._compilations = _compilations(self._dialect)

    def connect(self, reading: bool) -> Session:
        """Connect, and bound how long locks are waited for and transactions may stand idle."""
        arguments, named = self._dialect.create_connect_args(self.url)
        named = {"connect_timeout": limits.CONNECT_SECONDS, "application_name": "dragoman", **named}
        connection = self._driver.connect(*arguments, **self.let_in(named), autocommit=True)
        connection.prepared_max = 500
        session = PostgresSession(connection, self._driver, self._compilations)
        session.execute(
            f"SET lock_timeout = '{limits.LOCK_WAIT_SECONDS}s';"
            f"SET idle_in_transaction_session_timeout = '{limits.IDLE_TRANSACTION_SECONDS}s';"
            "SET TIME ZONE 'UTC'"
        )
        return session

    def judge(self, error: BaseException) -> Verdict | None:
        """By SQLSTATE."""
        return judge_postgres(error, self._driver)


class MysqlServer(Server):
    """MariaDB ≥ 10.6 or MySQL 8 through PyMySQL; on older ones rows are claimed one by one."""

    encrypted: ClassVar[Mapping[str, object]] = {"ssl_verify_cert": True, "ssl_verify_identity": True}

    def __init__(self, url: sa.URL, options: Options) -> None:
        super().__init__(url, options)
        self._dialect, self._driver = _driver(url.drivername, "mysql", "format")
        self._compilations = _compilations(self._dialect)

    def connect(self, reading: bool) -> Session:
        """Connect, set isolation and strictness, and bound the waits."""
        arguments, named = self._dialect.create_connect_args(self.url)
        silence = {
            "read_timeout": limits.IDLE_TRANSACTION_SECONDS,
            "write_timeout": limits.IDLE_TRANSACTION_SECONDS,
        }
        named = {"connect_timeout": limits.CONNECT_SECONDS, **silence, **named, "charset": "utf8mb4"}
        connection = mysql_connection(self._driver)(*arguments, **self.let_in(named), autocommit=True)
        version = str(connection.get_server_info())
        session = MysqlSession(connection, self._driver, self._compilations, skips_locked(version))
        session.execute(
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
            if reading
            else "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
        )
        session.execute(
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY',"
            f" time_zone = '+00:00', innodb_lock_wait_timeout = {limits.LOCK_WAIT_SECONDS}"
        )
        if "mariadb" in version.lower():
            session.execute(f"SET SESSION idle_transaction_timeout = {limits.IDLE_TRANSACTION_SECONDS}")
        return session

    def judge(self, error: BaseException) -> Verdict | None:
        """By error number."""
        return judge_mysql(error, self._driver)


@functools.cache
def mysql_connection(driver: Any) -> Any:
    """PyMySQL's class of connections, but for one thing. Where a URL says nothing of encryption it offers one
    that checks no certificate, and reads all those of the system for it at every connect: 20 ms of CPU. Here
    a process does so once. What checks certificates reads them each time, since they may have changed.
    """

    class Connection(driver.connections.Connection):  # type: ignore[misc]
        _unchecked: ClassVar[Any] = None

        def _create_ssl_ctx(self, asked: Any) -> Any:
            if asked:
                return super()._create_ssl_ctx(asked)
            if Connection._unchecked is None:
                Connection._unchecked = super()._create_ssl_ctx(asked)
            return Connection._unchecked

    return Connection


def skips_locked(version: str) -> bool:
    """Whether a MariaDB or MySQL of this version knows SKIP LOCKED."""
    numbers = re.findall(r"(\d+)\.(\d+)\.\d+", version)  # 5.5.5-10.11.19-MariaDB says the old name first
    major, minor = map(int, numbers[-1] if numbers else (0, 0))
    return (major, minor) >= ((10, 6) if "mariadb" in version.lower() else (8, 0))


@functools.cache
def _driver(drivername: str, extra: str, paramstyle: str) -> tuple[sa.Dialect, Any]:
    """SQLAlchemy's dialect of that name and its driver module, one for all databases of a process."""
    url = sa.make_url(f"{drivername}://")
    kind: Any = url.get_dialect()
    try:
        driver = kind.import_dbapi()
    except ImportError:
        message = f"the driver for {url.get_backend_name()} is missing: pip install 'dragoman[{extra}]'"
        raise SettingsError(message) from None
    return kind(dbapi=driver, paramstyle=paramstyle), driver


@functools.cache
def _compilations(dialect: sa.Dialect) -> Compilations:
    """What was prepared for a dialect serves each database that is opened after; it costs 1 ms and more."""
    return Compilations(dialect)


def server_of(address: str, options: Options | None = None) -> Server:
    """The server behind a URL: `sqlite:///file`, `postgresql://…`, `mariadb://…` or `mysql://…`."""
    try:
        url = sa.make_url(address)
    except sa.exc.ArgumentError:
        raise SettingsError(
            "the database URL cannot be read: give sqlite:///file or postgresql://…"
        ) from None
    options = options or Options()
    match url.get_backend_name():
        case "sqlite":
            return SqliteServer(url.set(drivername="sqlite"), options)
        case "postgresql" | "postgres":
            return PostgresServer(url.set(drivername="postgresql+psycopg"), options)
        case "mysql" | "mariadb" as family:
            return MysqlServer(url.set(drivername=f"{family}+pymysql"), options)
        case other:
            raise SettingsError(
                f"{other} is no database that Dragoman knows: sqlite, postgresql, mariadb or mysql"
            )
