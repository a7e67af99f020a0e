"""Rows that mean nothing, in any table, so that a planner has something to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from dragoman.store.portable import Flag

Values = Mapping[str, Callable[[int], Any]]


def filling(table: sa.Table, count: int, values: Values) -> Iterator[dict[str, Any]]:
    """`count` rows: what `values` say by the row's number, and otherwise anything that the columns allow."""
    for number in range(count):
        row = {
            column.name: _anything(column, number)
            for column in table.columns
            if not column.nullable and column.server_default is None
        }
        yield row | {name: value(number) for name, value in values.items()}


def _anything(column: sa.Column[Any], number: int) -> Any:
    kind = column.type
    if isinstance(kind, Flag):
        return False
    if isinstance(kind, sa.Integer):
        return number
    if isinstance(kind, sa.LargeBinary):
        return b"{}"
    if isinstance(kind, sa.CHAR):
        return f"{number:0{kind.length}d}"
    if isinstance(kind, sa.String) and kind.length:
        return f"{column.name[:4]}{number}"[: kind.length]
    return "{}"
