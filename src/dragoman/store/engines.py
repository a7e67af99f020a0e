"""SQLAlchemy engines for work on the schema: migrations, their checks, and the tests' own databases.

Ordinary transactions never pass here (`servers.py`). On SQLite a transaction takes the write lock when it
begins. A MariaDB server is told from MySQL by asking it, whatever the URL calls it, because their collations
differ.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from dragoman.kernel.limits import MIGRATION_LOCK_SECONDS
from dragoman.store.servers import Options, Server, mysql_connection, server_of, tune


def engine_of(url: str, options: Options | None = None) -> sa.Engine:
    """An engine without a pool for the database behind `url`. Dispose of it when done."""
    server = server_of(url, options)
    target = server.url
    if target.get_backend_name() == "sqlite":
        return _sqlite(target)
    if target.get_backend_name() == "postgresql":
        return _let_in(server, sa.create_engine(target, poolclass=NullPool, isolation_level="READ COMMITTED"))
    asked = _let_in(server, sa.create_engine(target.set(drivername="mysql+pymysql"), poolclass=NullPool))
    with asked.connect() as connection:
        is_mariadb = "mariadb" in str(connection.scalar(sa.text("SELECT VERSION()"))).lower()
    family = "mariadb" if is_mariadb else "mysql"
    made = sa.create_engine(
        target.set(drivername=f"{family}+pymysql"), poolclass=NullPool, isolation_level="READ COMMITTED"
    )
    return _let_in(server, made)


def _let_in(server: Server, engine: sa.Engine) -> sa.Engine:
    @sa.event.listens_for(engine, "do_connect")
    def _sign_in(dialect: sa.Dialect, _record: Any, arguments: Any, named: dict[str, Any]) -> Any:
        named.update(server.let_in(named))
        if dialect.driver != "pymysql":
            return None  # as the dialect connects
        driver: Any = dialect.loaded_dbapi
        return mysql_connection(driver)(*arguments, **named)

    return engine


def _sqlite(target: sa.URL) -> sa.Engine:
    engine = sa.create_engine(target, poolclass=NullPool, connect_args={"timeout": MIGRATION_LOCK_SECONDS})

    @sa.event.listens_for(engine, "connect")
    def _set(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None
        tune(connection, "FULL")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
