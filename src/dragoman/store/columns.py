"""Column recipes shared by the tables: required, optional, counted, and columns that hold a state."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from dragoman.machines.machine import Machine
from dragoman.store.portable import Count, Flag, Instant, LongText, Word


def required(name: str, kind: TypeEngine[Any] | type[TypeEngine[Any]], **options: Any) -> sa.Column[Any]:
    """A column that is never null."""
    return sa.Column(name, kind, nullable=False, **options)


def optional(name: str, kind: TypeEngine[Any] | type[TypeEngine[Any]]) -> sa.Column[Any]:
    """A column that may be null."""
    return sa.Column(name, kind, nullable=True)


def counted(*names: str) -> tuple[sa.Column[Any], ...]:
    """Whole numbers that begin at 0."""
    return tuple(sa.Column(name, Count, nullable=False, server_default="0") for name in names)


def flag(name: str) -> sa.Column[Any]:
    """A flag that begins unset."""
    return sa.Column(name, Flag, nullable=False, server_default="0")


def word(name: str, chars_max: int) -> sa.Column[Any]:
    """Short text that is never null and begins empty."""
    return sa.Column(name, Word(chars_max), nullable=False, server_default="")


def state(machine: Machine, name: str = "state") -> tuple[sa.schema.SchemaItem, ...]:
    """A state column of a machine, with its CHECK."""
    return (
        sa.Column(name, Word(32), nullable=False),
        sa.CheckConstraint(machine.check_sql(name), name=f"{name}_known"),
    )


def failure() -> tuple[sa.Column[Any], ...]:
    """Code and sanitized message of the last error; null where there is none."""
    return optional("error_code", Word(64)), optional("error_message", Word(500))


def stamps() -> tuple[sa.Column[Any], ...]:
    """When a row was made and last changed."""
    return required("created_at", Instant), required("updated_at", Instant)


def json_text(name: str) -> sa.Column[Any]:
    """JSON that we wrote, never null."""
    return required(name, LongText)


def is_set(column: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """The condition that a flag is set; `sa.true()` means something else to a small integer."""
    return column == True  # noqa: E712 - a column, not a truth value
