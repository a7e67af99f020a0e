"""Column types and table options that behave alike on SQLite, PostgreSQL, MariaDB and MySQL.

Text compares byte by byte everywhere: collation "C" on PostgreSQL, a binary NO PAD collation on MariaDB and
MySQL, BINARY on SQLite. Big text and bytes have no 64 KiB ceiling. A flag is 0 or 1 in the table, a bool in
Python. Knows no table of ours.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

MYSQL_COLLATION = "utf8mb4_0900_bin"
MARIADB_COLLATION = "utf8mb4_nopad_bin"
OWNER_CHARS_MAX = 160

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
"""Naming convention for `sa.MetaData`: MySQL wants every CHECK of a database to have its own name."""


def _bytewise(kind: type[sa.String], length: int | None) -> TypeEngine[str]:
    """Text of one kind whose order on PostgreSQL does not hang on the database's locale."""
    return kind(length).with_variant(kind(length, collation="C"), "postgresql")


def Word(chars_max: int) -> TypeEngine[str]:  # noqa: N802 - a type among types
    """Text of at most `chars_max` characters, fit for an index."""
    return _bytewise(sa.String, chars_max)


class Flag(sa.TypeDecorator[bool]):
    """0 or 1, read and written as bool; `table` adds the CHECK. Compare with True, not with `sa.true()`."""

    impl = sa.SmallInteger
    cache_ok = True

    def process_bind_param(self, value: bool | None, dialect: sa.Dialect) -> int | None:
        """bool → 0 or 1."""
        return None if value is None else int(value)

    def process_result_value(self, value: int | None, dialect: sa.Dialect) -> bool | None:
        """0 or 1 → bool."""
        return None if value is None else bool(value)


Instant: TypeEngine[int] = sa.BigInteger()
"""Microseconds since 1970-01-01 UTC."""
Money: TypeEngine[int] = sa.BigInteger()
"""Micro-USD."""
Count: TypeEngine[int] = sa.BigInteger()
"""A whole number of things, also of tokens summed over years."""
Id: TypeEngine[str] = _bytewise(sa.CHAR, 36)
"""A lowercase UUID."""
Hash: TypeEngine[str] = _bytewise(sa.CHAR, 64)
"""SHA-256 in lowercase hexadecimal."""
LongText: TypeEngine[str] = (
    sa.Text()
    .with_variant(sa.Text(collation="C"), "postgresql")
    .with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
)
"""Text of any length, also our JSON; never in an index."""
Bytes: TypeEngine[bytes] = sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
"""Bytes of any length."""


def lease_columns() -> tuple[sa.Column[Any], ...]:
    """The columns that make a table leasable (`leases.py`): fresh ones at each call."""
    return (
        sa.Column("lease_owner", Word(OWNER_CHARS_MAX), nullable=True),
        sa.Column("lease_expires_at", Instant, nullable=True),
        sa.Column("fence", Count, nullable=False, server_default="0"),
    )


def table_options(clustered: bool) -> dict[str, Any]:
    """Engine, charset and collation of every table.

    `clustered` keeps the rows in their primary key on SQLite (WITHOUT ROWID), which pays for rows under
    200 bytes; InnoDB always does.
    """
    return {
        "mysql_engine": "InnoDB",
        "mysql_charset": "utf8mb4",
        "mysql_collate": MYSQL_COLLATION,
        "mariadb_engine": "InnoDB",
        "mariadb_charset": "utf8mb4",
        "mariadb_collate": MARIADB_COLLATION,
        "sqlite_with_rowid": not clustered,
    }


def table(
    name: str, metadata: sa.MetaData, *parts: sa.schema.SchemaItem, clustered: bool = False, **options: Any
) -> sa.Table:
    """A table with our options (`table_options`), and a CHECK for each `Flag`."""
    made = sa.Table(name, metadata, *parts, **table_options(clustered), **options)
    for column in made.columns:
        if isinstance(column.type, Flag):
            rule = sa.column(column.name).in_((sa.literal_column("0"), sa.literal_column("1")))
            made.append_constraint(sa.CheckConstraint(rule, name=f"{column.name}_flag"))
    return made
