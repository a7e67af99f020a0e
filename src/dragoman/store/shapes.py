"""Statements that differ in names only, each made once: building one costs far more than running it.

Their values come by name: `where_<column>` and `new_<column>` for an UPDATE, the columns' own names for an
INSERT.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from dragoman.kernel.limits import STATEMENTS_KEPT


@lru_cache(maxsize=STATEMENTS_KEPT)
def updating(
    table: sa.Table, where: tuple[str, ...], lists: frozenset[str], values: tuple[str, ...]
) -> sa.Update:
    """UPDATE of `values` where columns equal, or for `lists` are among, what is given."""
    conditions = [
        table.c[name].in_(sa.bindparam(f"where_{name}", expanding=True))
        if name in lists
        else table.c[name] == sa.bindparam(f"where_{name}")
        for name in where
    ]
    return sa.update(table).where(*conditions).values({name: sa.bindparam(f"new_{name}") for name in values})


@lru_cache(maxsize=STATEMENTS_KEPT)
def inserting(table: sa.Table) -> sa.Insert:
    """A plain INSERT."""
    return sa.insert(table)


@lru_cache(maxsize=STATEMENTS_KEPT)
def inserting_new(dialect: str, table: sa.Table, conflict: tuple[str, ...]) -> sa.Insert:
    """An INSERT that passes over rows whose `conflict` columns stand already; not on MariaDB and MySQL."""
    maker = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return maker(table).on_conflict_do_nothing(index_elements=list(conflict))


@lru_cache(maxsize=STATEMENTS_KEPT)
def upserting(dialect: str, table: sa.Table, key: tuple[str, ...], update: tuple[str, ...]) -> Any:
    """An INSERT that gives the row under `key` the new values of the columns `update`."""
    if dialect == "mysql":
        fresh = mysql.insert(table)
        return fresh.on_duplicate_key_update({name: fresh.inserted[name] for name in update})
    maker = sqlite.insert if dialect == "sqlite" else postgresql.insert
    offered = maker(table)
    return offered.on_conflict_do_update(
        index_elements=list(key), set_={name: offered.excluded[name] for name in update}
    )
