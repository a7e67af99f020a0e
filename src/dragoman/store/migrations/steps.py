"""Schema steps that look before they act, so that a migration killed anywhere is simply run again.

What stands already is left alone; an index of the right name over other columns is made anew. Revisions are
written in these words only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

from dragoman.store.portable import table_options

f = op.f
"""Marks a constraint's name as final: no naming convention is applied to it."""


def create_table(name: str, *parts: sa.schema.SchemaItem, clustered: bool = False) -> None:
    """Make a table with the options that every table of ours has."""
    if not _inspect().has_table(name):
        op.create_table(name, *parts, **table_options(clustered))


def drop_table(name: str) -> None:
    """Remove a table."""
    if _inspect().has_table(name):
        op.drop_table(name)


def create_index(name: str, table: str, columns: Sequence[str], unique: bool = False, **options: Any) -> None:
    """Make an index, or make it anew where it covers other columns."""
    standing = {index["name"]: index for index in _inspect().get_indexes(table)}.get(name)
    if standing is not None:
        if standing["column_names"] == list(columns) and bool(standing["unique"]) == unique:
            return
        op.drop_index(name, table)
    op.create_index(name, table, list(columns), unique=unique, **options)


def drop_index(name: str, table: str) -> None:
    """Remove an index."""
    if any(index["name"] == name for index in _inspect().get_indexes(table)):
        op.drop_index(name, table)


def add_column(table: str, column: sa.Column[Any]) -> None:
    """Add a column; one that is never null needs a server default."""
    if column.name not in _columns(table):
        op.add_column(table, column)


def drop_column(table: str, name: str) -> None:
    """Remove a column."""
    if name in _columns(table):
        op.drop_column(table, name)


def _columns(table: str) -> set[str]:
    return {column["name"] for column in _inspect().get_columns(table)}


def _inspect() -> sa.Inspector:
    return sa.inspect(op.get_bind())
