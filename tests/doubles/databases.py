"""Databases of the test run's own: one a kind, random names, emptied between tests, dropped at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import sqlalchemy as sa

from dragoman.kernel.clock import Clock, SystemClock
from dragoman.kernel.identity import Chance, SystemChance
from dragoman.store.database import Database
from dragoman.store.engines import engine_of
from dragoman.store.revisions import VERSION_TABLE, head
from dragoman.store.schema import metadata
from dragoman.store.servers import Options
from tests.doubles.servers import Missing, OwnServer, answers

KINDS = ("sqlite", "postgresql", "mariadb")
_STANDARD = {"postgresql": "postgresql://postgres@127.0.0.1:5432", "mariadb": "mariadb://root@127.0.0.1:3306"}
_SETTING = {"postgresql": "DRAGOMAN_TEST_POSTGRES", "mariadb": "DRAGOMAN_TEST_MARIADB"}
_FIRST = {"postgresql": "postgres", "mariadb": "mysql"}


@contextlib.asynccontextmanager
async def opened(
    url: str,
    clock: Clock | None = None,
    chance: Chance | None = None,
    *,
    any_schema: bool = False,
    **options: object,
) -> AsyncIterator[Database]:
    """An open database, closed at the end; `options` are those of `Options`."""
    database = await Database.open(
        url,
        clock=clock or SystemClock(),
        chance=chance or SystemChance(),
        options=Options(**options),  # type: ignore[arg-type]
        any_schema=any_schema,
    )
    try:
        yield database
    finally:
        await database.close()


def make_schema(url: str, tables: sa.MetaData = metadata) -> None:
    """All tables at once, and the version that says so."""
    engine = engine_of(url)
    with engine.begin() as connection:
        tables.create_all(connection)
        version = sa.Table(
            VERSION_TABLE, sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True)
        )
        version.create(connection)
        connection.execute(version.insert().values(version_num=head()))
    engine.dispose()


class SqliteFiles:
    """Files copied from one that was made once."""

    def __init__(self, folder: Path) -> None:
        self._template = folder / "template.db"

    def fresh(self, folder: Path) -> str:
        """The URL of an empty database with all tables."""
        if not self._template.exists():
            make_schema(f"sqlite:///{self._template}")
        return f"sqlite:///{shutil.copy(self._template, folder / 'dragoman.db')}"

    @contextlib.contextmanager
    def bare(self, folder: Path) -> Iterator[str]:
        """The URL of a file that is not there yet."""
        yield f"sqlite:///{folder / 'bare.db'}"


class ServerDatabase:
    """A database on a server, and the connection that empties it."""

    def __init__(self, kind: str) -> None:
        self._own: OwnServer | None = None
        self._base = sa.make_url(os.environ.get(_SETTING[kind], _STANDARD[kind]))
        self._first = self._url(self._base.database or _FIRST[kind])
        if _SETTING[kind] in os.environ:
            if not answers(self._first):
                raise Missing(f"no {kind} answers at the address that {_SETTING[kind]} names")
        else:
            self._choose(kind)
        self._name = f"dragoman_test_{SystemChance().token(12)}"
        self._emptying: sa.Connection | None = None
        self._command(f"CREATE DATABASE {self._name}")
        make_schema(self._url(self._name))

    def _choose(self, kind: str) -> None:
        """The standard server for a few tests, since it is there; for a worker of a whole run one of its own,
        which waits for no disk.
        """
        standing = answers(self._first)
        if standing and "PYTEST_XDIST_WORKER" not in os.environ:
            return
        try:
            self._own = OwnServer(kind)
        except Missing:
            if not standing:
                raise
        else:
            self._base, self._first = sa.make_url(self._own.url), self._own.url

    def fresh(self, _folder: Path) -> str:
        """The URL of the database, emptied."""
        try:
            self._empty()
        except sa.exc.DBAPIError:  # a test may have cut every connection
            self._let_go()
            self._empty()
        return self._url(self._name)

    def _empty(self) -> None:
        if self._emptying is None:
            self._emptying = engine_of(self._url(self._name)).connect()
        with self._emptying.begin():
            _empty(self._emptying)

    def _let_go(self) -> None:
        if self._emptying is not None:
            self._emptying.close()
            self._emptying = None

    @contextlib.contextmanager
    def bare(self, _folder: Path) -> Iterator[str]:
        """The URL of a database of its own, without any table, dropped afterwards."""
        name = f"{self._name}_bare"
        self._command(f"CREATE DATABASE {name}")
        try:
            yield self._url(name)
        finally:
            self._command(f"DROP DATABASE {name}")

    def drop(self) -> None:
        """Remove the database."""
        self._let_go()
        if self._own is not None:
            self._own.close()
        else:
            self._command(f"DROP DATABASE {self._name}")

    def _url(self, database: str) -> str:
        return self._base.set(database=database).render_as_string(hide_password=False)

    def _command(self, sql: str) -> None:
        engine = engine_of(self._first)
        with engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql(sql)
        engine.dispose()


_TABLES = list(reversed(metadata.sorted_tables))
_HELD = " UNION ALL ".join(
    f"SELECT '{table.name}' FROM (SELECT 1 AS one) AS it WHERE EXISTS (SELECT 1 FROM {table.name})"
    for table in _TABLES
)


def _empty(connection: sa.Connection) -> None:
    """Delete what there is; most tables are empty already."""
    held = {row[0] for row in connection.exec_driver_sql(_HELD)}
    for table in _TABLES:
        if table.name in held:
            connection.execute(table.delete())


class Places:
    """All kinds, each made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._made: dict[str, SqliteFiles | ServerDatabase | Missing] = {"sqlite": SqliteFiles(folder)}

    def find(self, kind: str) -> SqliteFiles | ServerDatabase:
        """Where databases of this kind come from. Raises `Missing`."""
        if kind not in self._made:
            try:
                self._made[kind] = ServerDatabase(kind)
            except Missing as missing:
                self._made[kind] = missing
        place = self._made[kind]
        if isinstance(place, Missing):
            raise place
        return place

    def drop(self) -> None:
        """Remove what was made on servers."""
        for place in self._made.values():
            if isinstance(place, ServerDatabase):
                place.drop()
