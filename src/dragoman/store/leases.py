"""Leases with fences, once for all tables: who works on a row, until when, and the integer that proves it.

A claim sets owner and expiry and raises the fence by one; every later write names that fence in its WHERE. No
row under a live lease is ever claimed, whatever `ready` says. Times are the database's. A key is the primary
key's value, or a tuple of its values in the table's order.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.clock import seconds
from dragoman.store.transaction import Row, Tx

Key = Any


def claim(
    tx: Tx,
    table: sa.Table,
    *,
    ready: sa.ColumnElement[bool],
    order: Sequence[sa.ColumnElement[Any]],
    limit: int,
    owner: str,
    lease_seconds: float,
    set_: Mapping[str, Any] | None = None,
) -> list[Row]:
    """Lease up to `limit` ready rows, first in `order` first, and give them as they now stand, in that order.

    `order` are ascending columns, and an index must give that order: else a second worker finds nothing on
    MariaDB. `set_` moves other columns with the claim. Rows that another worker claims now are passed over.
    """
    is_free = sa.or_(table.c.lease_expires_at.is_(None), table.c.lease_expires_at <= tx.now)
    change = {"lease_owner": owner, "lease_expires_at": tx.now + seconds(lease_seconds), **(set_ or {})}
    if tx.dialect == "postgresql":
        return _claim_at_once(tx, table, sa.and_(ready, is_free), order, limit, change)
    wanted = sa.select(*_keys(table)).where(ready, is_free).order_by(*order).limit(limit)
    if tx.dialect == "mysql" and tx.skips_locked:
        wanted = wanted.with_for_update(skip_locked=True)
    keys = [tuple(row) for row in tx.all(wanted)]
    if not tx.skips_locked:
        keys = [key for key in keys if _claim_one(tx, table, sa.and_(ready, is_free), key, change)]
    elif keys:
        among = _one_or_all(table).in_(_given(table, keys))
        tx.touched(sa.update(table).where(among).values({"fence": table.c.fence + 1, **change}))
    if not keys:
        return []
    rows = {_key_of(table, row): row for row in tx.all(_chosen(table), {"lease_keys": _given(table, keys)})}
    return [rows[key] for key in keys]


def held(table: sa.Table, key: Key, fence: int | sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """The condition under which a holder may write: this row, under this fence."""
    return sa.and_(_is(table, key), table.c.fence == fence)


def renew(tx: Tx, table: sa.Table, leases: Sequence[tuple[Key, int]], lease_seconds: float) -> list[Key]:
    """Prolong many leases of one table at once; the keys whose lease is lost."""
    if not leases:
        return []
    keys = sorted({_tuple(key) for key, _ in leases})
    rows = tx.all(_fences(table), {"lease_keys": _given(table, keys)})
    fences = {_key_of(table, row): row.fence for row in rows}
    kept = [(key, fence) for key, fence in leases if fences.get(_tuple(key)) == fence]
    if kept:
        values = {
            "lease_keys": _given(table, [_tuple(key) for key, _ in kept]),
            "lease_until": tx.now + seconds(lease_seconds),
        }
        tx.touched(_prolonging(table), values)
    return [key for key, fence in leases if fences.get(_tuple(key)) != fence]


def release(tx: Tx, table: sa.Table, key: Key, fence: int, set_: Mapping[str, Any] | None = None) -> bool:
    """End a lease and set other columns with it; False under a stale fence, and then nothing is written."""
    names = [column.name for column in _keys(table)]
    mine = {**dict(zip(names, _tuple(key), strict=True)), "fence": fence}
    return tx.update(table, mine, {"lease_owner": None, "lease_expires_at": None, **(set_ or {})}) == 1


def owners(tx: Tx, table: sa.Table) -> list[str]:
    """All who hold leases of this table."""
    return [row[0] for row in tx.all(_owners(table))]


def standing(tx: Tx, table: sa.Table, owner: str) -> list[tuple[tuple[Any, ...], int]]:
    """Key and fence of every lease of this owner."""
    return [(_key_of(table, row), row.fence) for row in tx.all(_standing(table), {"lease_of": owner})]


def free(tx: Tx, table: sa.Table, key: Key, fence: int, owner: str) -> bool:
    """Let one lease of this owner run out now; False where it stands no more under this fence."""
    names = [column.name for column in _keys(table)]
    theirs = {**dict(zip(names, _tuple(key), strict=True)), "fence": fence, "lease_owner": owner}
    return tx.update(table, theirs, {"lease_owner": None, "lease_expires_at": tx.now}) == 1


def free_gone(tx: Tx, table: sa.Table, gone: Sequence[str]) -> int:
    """Let the leases of owners provably gone run out now; how many. The next claim raises the fence."""
    if not gone:
        return 0
    return tx.touched(_freeing(table), {"lease_gone": list(gone), "lease_until": tx.now})


def _claim_at_once(
    tx: Tx,
    table: sa.Table,
    ready: sa.ColumnElement[bool],
    order: Sequence[sa.ColumnElement[Any]],
    limit: int,
    change: Mapping[str, Any],
) -> list[Row]:
    """PostgreSQL: pick, lock and update in one statement, whose rows come back in no order."""
    places = [column.label(f"place_{n}") for n, column in enumerate(order)]
    picked = (
        sa.select(*_keys(table), *places)
        .where(ready)
        .order_by(*order)
        .limit(limit)
        .with_for_update(of=table, skip_locked=True)
        .cte("picked")
    )
    taken = (
        sa.update(table)
        .where(*[table.c[column.name] == picked.c[column.name] for column in _keys(table)])
        .values({"fence": table.c.fence + 1, **change})
        .returning(table, *[picked.c[place.name] for place in places])
    )
    rows = tx.all(taken)
    width = len(table.columns)
    return sorted(rows, key=lambda row: [(value is None, value) for value in tuple(row)[width:]])


def _claim_one(
    tx: Tx, table: sa.Table, ready: sa.ColumnElement[bool], key: tuple[Any, ...], change: Mapping[str, Any]
) -> bool:
    """Servers without SKIP LOCKED: whoever updates the row first has it."""
    statement = sa.update(table).where(_is(table, key), ready).values({"fence": table.c.fence + 1, **change})
    return tx.touched(statement) == 1


def _keys(table: sa.Table) -> list[sa.Column[Any]]:
    return list(table.primary_key.columns)


def _tuple(key: Key) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _key_of(table: sa.Table, row: Row) -> tuple[Any, ...]:
    return tuple([getattr(row, column.name) for column in _keys(table)])


def _is(table: sa.Table, key: Key) -> sa.ColumnElement[bool]:
    """The row of this key."""
    return sa.and_(*[column == part for column, part in zip(_keys(table), _tuple(key), strict=True)])


def _one_or_all(table: sa.Table) -> sa.ColumnElement[Any]:
    """What stands left of IN: the key's only column, or all of them."""
    keys = _keys(table)
    return keys[0] if len(keys) == 1 else sa.tuple_(*keys)


def _given(table: sa.Table, keys: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What stands right of IN."""
    return [key[0] for key in keys] if len(_keys(table)) == 1 else list(keys)


def _among(table: sa.Table) -> sa.ColumnElement[bool]:
    return _one_or_all(table).in_(sa.bindparam("lease_keys", expanding=True))


@functools.cache
def _chosen(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table).where(_among(table))


@functools.cache
def _fences(table: sa.Table) -> sa.Select[Any]:
    keys = _keys(table)
    return sa.select(*keys, table.c.fence).where(_among(table)).order_by(*keys).with_for_update()


@functools.cache
def _prolonging(table: sa.Table) -> sa.Update:
    return sa.update(table).where(_among(table)).values(lease_expires_at=sa.bindparam("lease_until"))


@functools.cache
def _owners(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table.c.lease_owner).where(table.c.lease_owner.is_not(None)).distinct()


@functools.cache
def _standing(table: sa.Table) -> sa.Select[Any]:
    return sa.select(*_keys(table), table.c.fence).where(table.c.lease_owner == sa.bindparam("lease_of"))


@functools.cache
def _freeing(table: sa.Table) -> sa.Update:
    return (
        sa.update(table)
        .where(table.c.lease_owner.in_(sa.bindparam("lease_gone", expanding=True)))
        .values(lease_owner=None, lease_expires_at=sa.bindparam("lease_until"))
    )
