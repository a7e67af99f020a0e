"""Bringing a database to this program's schema: one migrator at a time, repeatable steps, a last check.

The version is committed only after the live schema was found equal to `schema.py`. On SQLite and PostgreSQL
the whole migration is one transaction; MariaDB and MySQL commit each step by themselves, and a migration that
was cut off is simply run again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext

from dragoman.kernel.errors import StoreError
from dragoman.kernel.identity import sha256
from dragoman.kernel.limits import MIGRATION_LOCK_SECONDS
from dragoman.store.engines import engine_of
from dragoman.store.failures import Verdict, stated
from dragoman.store.portable import MARIADB_COLLATION, MYSQL_COLLATION
from dragoman.store.revisions import DIRECTORY, FLOOR_NAME, VERSION_TABLE, floor, head, refuse_other, standing
from dragoman.store.schema import metadata
from dragoman.store.servers import Options, server_of

__all__ = ["current", "differences", "head", "migrate", "prepare"]

_CURSORS = metadata.tables["cursors"]


def migrate(url: str, options: Options | None = None) -> bool:
    """Bring the database to `head()`; False where it was there already.

    Raises `StoreError`: `database_newer`, or `database_unavailable` when another migration holds the lock for
    more than 30 seconds, or when the result differs from the schema: then the version is not raised.
    """
    with _reached(url, options) as connection, _alone(connection):
        version, lowest = _version(connection)
        if standing(version, lowest) == "newer":
            refuse_other(version, lowest, server_of(url).place)
        if standing(version, lowest) == "current":
            return False
        _upgrade(connection)
        _write_floor(connection)
        found = differences(connection)
        if found:
            raise StoreError(f"the migrated schema differs from the program's: {'; '.join(found[:5])}")
        connection.commit()
    return True


def prepare(url: str, options: Options | None = None) -> None:
    """Before work begins: migrate an embedded database, refuse a server of another schema than ours."""
    if server_of(url).has_clock:
        with _reached(url, options) as connection:
            refuse_other(*_version(connection), server_of(url).place)
    else:
        migrate(url)


def current(url: str, options: Options | None = None) -> str | None:
    """The version of the database; None where it has no tables of ours."""
    with _reached(url, options) as connection:
        return _version(connection)[0]


def differences(connection: sa.Connection) -> list[str]:
    """What of the live schema is not as `schema.py` says, in one line each.

    Compared are tables, columns, types, nullability, defaults, keys, indexes, checks, engines and collations.
    """
    options = {"compare_type": True, "compare_server_default": False}
    context = MigrationContext.configure(connection, opts=options)
    found = [_told(change) for change in compare_metadata(context, metadata)]
    if not found:
        inspector = sa.inspect(connection)
        for table in metadata.sorted_tables:
            found += _wrong_details(table, inspector)
        found += _wrong_storage(connection)
    return found


def _wrong_details(table: sa.Table, inspector: sa.Inspector) -> list[str]:
    """Checks and defaults, which Alembic does not compare alike on all databases."""
    wanted = {str(check.name) for check in table.constraints if isinstance(check, sa.CheckConstraint)}
    standing = {str(check["name"]) for check in inspector.get_check_constraints(table.name)}
    found = [f"check {name} is missing" for name in sorted(wanted - standing)]
    defaults = {column["name"]: _bare(column["default"]) for column in inspector.get_columns(table.name)}
    for column in table.columns:
        default = getattr(column.server_default, "arg", None)
        if defaults[column.name] != default:
            found.append(f"{table.name}.{column.name} has default {defaults[column.name]!r}, not {default!r}")
    return found


def _bare(default: str | None) -> str | None:
    """A reflected default without quotes and cast: `'x'::character varying` is x."""
    if default is None or default == "NULL":
        return None
    quoted = re.fullmatch(r"'(.*)'(?:::[\w ]+)?", default)
    return quoted[1] if quoted else default


def _told(change: Any) -> str:
    """One difference in one line: what would have to be done, and to what."""
    if isinstance(change, list):
        return ", ".join(_told(part) for part in change)
    named = [getattr(part, "name", part) for part in change if isinstance(part, (str, sa.schema.SchemaItem))]
    return " ".join(str(part) for part in named)


def _wrong_storage(connection: sa.Connection) -> list[str]:
    """Tables on MariaDB and MySQL that are not InnoDB with a binary collation."""
    if connection.dialect.name not in ("mysql", "mariadb"):
        return []
    wanted = MARIADB_COLLATION if connection.dialect.name == "mariadb" else MYSQL_COLLATION
    rows = connection.execute(
        sa.text(
            "SELECT table_name, engine, table_collation FROM information_schema.tables"
            " WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'"
        )
    )
    return [
        f"table {name} is {engine} with {collation}"
        for name, engine, collation in rows
        if name in metadata.tables and (engine, collation) != ("InnoDB", wanted)
    ]


def _upgrade(connection: sa.Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(DIRECTORY).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _version(connection: sa.Connection) -> tuple[str | None, str]:
    """The version, and the floor that a newer program's migration wrote."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None, ""
    versions = sa.table(VERSION_TABLE, sa.column("version_num"))
    version: str | None = connection.scalar(sa.select(sa.func.max(versions.c.version_num)))
    if standing(version) != "newer":
        return version, ""
    return version, connection.scalar(sa.select(_CURSORS.c.value).where(_CURSORS.c.name == FLOOR_NAME)) or ""


def _write_floor(connection: sa.Connection) -> None:
    """Say which older programs may go on working here."""
    connection.execute(sa.delete(_CURSORS).where(_CURSORS.c.name == FLOOR_NAME))
    row = {"name": FLOOR_NAME, "value": floor(), "updated_at": 0}
    connection.execute(sa.insert(_CURSORS).values(row))


@contextlib.contextmanager
def _reached(url: str, options: Options | None) -> Iterator[sa.Connection]:
    """A connection to the database, closed without a commit; the driver's errors become ours."""
    server = server_of(url)
    try:
        engine = engine_of(url, options)
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()
    except sa.exc.DBAPIError as error:
        verdict = server.judge(error.orig) if error.orig else None
        if error.orig is None or verdict is None:
            raise
        if verdict is Verdict.ROLLED_BACK:
            raise StoreError(_busy(server.place)) from None
        raise stated(verdict, error.orig, server.place) from None


@contextlib.contextmanager
def _alone(connection: sa.Connection) -> Iterator[None]:
    """Hold the one lock of migrations. SQLite's own write lock was taken when the transaction began."""
    database = connection.engine.url.database or ""
    number = int(sha256("dragoman migration")[:15], 16)
    name = f"dragoman {sha256(database)[:40]}"
    match connection.dialect.name:
        case "postgresql":
            connection.execute(sa.text(f"SET LOCAL lock_timeout = '{MIGRATION_LOCK_SECONDS}s'"))
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})
            yield
        case "mysql" | "mariadb":
            taken = connection.scalar(sa.text("SELECT GET_LOCK(:name, :wait)"), _wait(name))
            if taken != 1:
                raise StoreError(_busy(database))
            yield  # the lock goes with the connection
        case _:
            connection.begin()
            yield


def _wait(name: str) -> dict[str, object]:
    return {"name": name, "wait": MIGRATION_LOCK_SECONDS}


def _busy(place: str) -> str:
    waited = f"after {MIGRATION_LOCK_SECONDS} seconds"
    return f"the database at {place} is locked by another process, still {waited}: wait for it, or end it"
