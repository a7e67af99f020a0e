"""What every store function gets first: one open transaction, its instant, and the few ways to ask.

A `Tx` lives as long as its transaction and raises once that has ended. It knows no table and decides no
commit: `writer.py` begins and ends transactions, and answers their callers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

import sqlalchemy as sa

from dragoman.kernel import limits
from dragoman.kernel.identity import Chance
from dragoman.store.shapes import inserting, inserting_new, updating, upserting
from dragoman.store.statements import Compilations, Row, Values

__all__ = [
    "DialectName",
    "Row",
    "Runner",
    "Tx",
    "Values",
    "is_repeatable",
    "is_urgent",
    "repeatable",
    "urgent",
]

DialectName = Literal["sqlite", "postgresql", "mysql"]
P = ParamSpec("P")
T = TypeVar("T")


class Runner(Protocol):
    """One connection, as far as a transaction needs it: it runs text with positional parameters."""

    compilations: Compilations
    skips_locked: bool

    @property
    def name(self) -> DialectName:
        """Which database it is."""
        ...

    def query(self, sql: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Run one statement and fetch all rows."""
        ...

    def change(self, sql: str, parameters: Sequence[Any]) -> int:
        """Run one statement; how many rows it matched."""
        ...

    def is_duplicate(self, error: Exception) -> bool:
        """Whether the database refused a row because its key stands already."""
        ...

    def change_many(self, sql: str, parameters: Sequence[Sequence[Any]]) -> int:
        """Run one statement once for each row of parameters; how many rows it matched in all."""
        ...

    def fill(self, table: sa.Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
        """Bulk load where the server has a faster way than INSERT; False where it has none for these rows."""
        ...


class Tx:
    """One open transaction. `now` is the database's time in microseconds UTC, read once when it began."""

    __slots__ = ("_runner", "chance", "dialect", "now", "skips_locked", "wrote")

    def __init__(self, runner: Runner, now: int, chance: Chance) -> None:
        self._runner: Runner | None = runner
        self.now = now
        self.chance = chance
        self.dialect: DialectName = runner.name
        self.skips_locked = runner.skips_locked
        self.wrote = False

    def all(self, statement: Any, values: Values | None = None) -> list[Row]:
        """Every row of a SELECT or of a RETURNING; `values` fill its open parameters by name."""
        runner = self._open
        bound, prepared = runner.compilations.bound(statement, values)
        rows = runner.query(bound.sql, bound.parameters)
        if rows and statement.is_dml:
            self.wrote = True
        return prepared.rows(rows)

    def tuples(self, statement: Any, values: Values | None = None) -> Sequence[Sequence[Any]]:
        """Every row of a SELECT as the driver gives it: for text and whole numbers, where that runs often."""
        runner = self._open
        bound, _ = runner.compilations.bound(statement, values)
        return runner.query(bound.sql, bound.parameters)

    def first(self, statement: Any, values: Values | None = None) -> Row | None:
        """The first row, None where there is none."""
        rows = self.all(statement, values)
        return rows[0] if rows else None

    def scalar(self, statement: Any, values: Values | None = None) -> Any:
        """The first column of the first row, None where there is none."""
        rows = self.all(statement, values)
        return rows[0][0] if rows else None

    def touched(self, statement: Any, values: Values | None = None) -> int:
        """How many rows an UPDATE, DELETE or INSERT … SELECT matched; 0 is a normal answer."""
        runner = self._open
        bound, _ = runner.compilations.bound(statement, values)
        count = runner.change(bound.sql, bound.parameters)
        if count:
            self.wrote = True
        return count

    def update(self, table: sa.Table, where: Values, values: Values) -> int:
        """Give these columns these values where columns are as `where` says; how many rows matched.

        A list in `where` means any of its values. Costs as much as a constant, whatever the names are.
        """
        if None in where.values():
            raise ValueError("no row equals NULL")
        lists = frozenset(name for name, value in where.items() if isinstance(value, list))
        statement = updating(table, tuple(where), lists, tuple(values))
        given = {f"where_{name}": value for name, value in where.items()}
        given.update({f"new_{name}": value for name, value in values.items()})
        return self.touched(statement, given)

    def touched_each(self, statement: Any, rows: Sequence[Values]) -> int:
        """Run an UPDATE or DELETE once for each row of values; how many rows it matched in all.

        One trip to the server, and one compilation: the rows differ in values only, and no two match the same
        row of the table.
        """
        if not rows:
            return 0
        runner = self._open
        sql, parameters = runner.compilations.each(statement, rows)
        count = runner.change_many(sql, parameters)
        if count:
            self.wrote = True
        return count

    def insert(self, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows that all name the same columns. A key that stands already is an error."""
        if not rows:
            return
        runner = self._open
        sql, columns, parameters = runner.compilations.many(inserting(table), rows)
        if not runner.fill(table, columns, parameters):
            runner.change_many(sql, parameters)
        self.wrote = True

    def insert_new(self, table: sa.Table, rows: Sequence[Mapping[str, Any]], conflict: Sequence[str]) -> int:
        """Insert the rows whose `conflict` columns (a unique key) are not there yet; how many were new.

        Nothing but a duplicate of that very key is passed over: any other refusal is an error.
        """
        if not rows:
            return 0
        if self.dialect == "mysql":
            return self._insert_missing(table, rows, conflict)
        return self._change_many(inserting_new(self.dialect, table, tuple(conflict)), rows)

    def upsert(
        self, table: sa.Table, row: Mapping[str, Any], key: Sequence[str], update: Sequence[str]
    ) -> None:
        """Insert one row, or give the columns `update` of the one under `key` this row's values."""
        self._change_many(upserting(self.dialect, table, tuple(key), tuple(update)), [row])

    def new_id(self) -> str:
        """A fresh UUIDv7."""
        return self.chance.new_id()

    def end(self) -> None:
        """Whoever still holds this transaction can ask nothing more."""
        self._runner = None

    @property
    def _open(self) -> Runner:
        if self._runner is None:
            raise RuntimeError("this transaction has ended: a store function may not keep its tx")
        return self._runner

    def _change_many(self, statement: Any, rows: Sequence[Mapping[str, Any]]) -> int:
        runner = self._open
        sql, _, parameters = runner.compilations.many(statement, rows)
        count = runner.change_many(sql, parameters)
        if count:
            self.wrote = True
        return count

    def _insert_missing(
        self, table: sa.Table, rows: Sequence[Mapping[str, Any]], conflict: Sequence[str]
    ) -> int:
        """MariaDB and MySQL cannot name the key whose duplicates are passed over: look the keys up first.

        Whoever commits one of them in between makes the INSERT fail whole; then they are looked up again.
        """
        runner = self._open
        columns = [table.c[name] for name in conflict]
        fresh = {tuple([row[name] for name in conflict]): row for row in reversed(rows)}
        for attempt in range(1 + limits.TRANSACTION_RETRIES):
            there = self.all(sa.select(*columns).where(sa.tuple_(*columns).in_(list(fresh))))
            missing = [row for key, row in fresh.items() if key not in {tuple(found) for found in there}]
            runner.change("SAVEPOINT fresh", ())
            try:
                self.insert(table, missing)
            except Exception as error:
                if not runner.is_duplicate(error) or attempt == limits.TRANSACTION_RETRIES:
                    raise
                runner.change("ROLLBACK TO SAVEPOINT fresh", ())
            else:
                return len(missing)
        return 0


_REPEATABLE: set[Callable[..., Any]] = set()
_URGENT: set[Callable[..., Any]] = set()


def repeatable(act: Callable[P, T]) -> Callable[P, T]:
    """Mark an act that may run again after a lost commit: it finds its own row and says "same"."""
    _REPEATABLE.add(act)
    return act


def urgent(act: Callable[P, T]) -> Callable[P, T]:
    """Mark an act that goes before all others that wait: lease renewals."""
    _URGENT.add(act)
    return act


def is_repeatable(act: Callable[..., Any]) -> bool:
    """Whether `@repeatable` marks it."""
    return act in _REPEATABLE


def is_urgent(act: Callable[..., Any]) -> bool:
    """Whether `@urgent` marks it."""
    return act in _URGENT
