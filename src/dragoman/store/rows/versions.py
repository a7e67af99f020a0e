"""The one row of `alembic_version`: which schema the database has. Also answers where no table of ours is."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.store.revisions import VERSION_TABLE
from dragoman.store.transaction import Tx

_VERSION = sa.table(VERSION_TABLE, sa.column("version_num", sa.String))
_FILE_TABLES = sa.table("sqlite_master", sa.column("name", sa.String))
_SERVER_TABLES = sa.table(
    "tables",
    sa.column("table_name", sa.String),
    sa.column("table_schema", sa.String),
    schema="information_schema",
)


def schema_version(tx: Tx) -> str | None:
    """The revision that migrated this database last; None where none did."""
    return tx.scalar(sa.select(_VERSION.c.version_num)) if _is_there(tx) else None


def _is_there(tx: Tx) -> bool:
    """Asked first, for a query of a missing table would end the transaction on some servers."""
    if tx.dialect == "sqlite":
        where = [_FILE_TABLES.c.name == VERSION_TABLE]
        return bool(tx.scalar(sa.select(sa.func.count()).select_from(_FILE_TABLES).where(*where)))
    here = sa.func.current_schema() if tx.dialect == "postgresql" else sa.func.database()
    where = [_SERVER_TABLES.c.table_name == VERSION_TABLE, _SERVER_TABLES.c.table_schema == here]
    return bool(tx.scalar(sa.select(sa.func.count()).select_from(_SERVER_TABLES).where(*where)))
