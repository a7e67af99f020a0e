"""From a SQLAlchemy Core statement to what a driver runs: text, parameters and rows, compiled once each.

SQLAlchemy writes the SQL; its own execution layer is left out, because it costs 30 µs a statement beside the
5 µs that SQLite needs. Statements of the same shape share one compilation, whatever their values. One that
stands as a constant and takes its values by `bindparam` costs 10 µs; one built at each call costs what
SQLAlchemy needs to build it, 80 µs for a SELECT and 180 µs for an UPDATE: what runs often is a constant. The
list of an IN is padded to the next power of two, so that a handful of texts serves all lengths. Python-side
column defaults are not run.
"""

from __future__ import annotations

import functools
import keyword
import operator
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import sqlalchemy as sa

from dragoman.kernel.limits import IN_LIST_MAX, STATEMENTS_KEPT

Values = Mapping[str, Any]
Process = Callable[[Any], Any]


class Row(Protocol):
    """One row: by name, by position, unpacked, or as a dict."""

    def __getattr__(self, name: str) -> Any:
        """The column of this name or label."""
        ...

    def __getitem__(self, index: int) -> Any:
        """The column at this place."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """The columns in order."""
        ...

    def __len__(self) -> int:
        """How many columns there are."""
        ...

    def _asdict(self) -> dict[str, Any]:
        """Name to value."""
        ...


class _Slot:
    """Stands for the n-th value of a statement while its compilation is asked where each value goes."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.value = self.effective_value = self


class _Text(NamedTuple):
    """The SQL for lists of given lengths, and which value goes where in it."""

    sql: str
    names: list[str]
    processes: list[tuple[int, Process]]
    parts: Mapping[str, Sequence[str]]


class Bound(NamedTuple):
    """What a driver is given: SQL, and its positional parameters with their names."""

    sql: str
    names: list[str]
    parameters: list[Any]


class Prepared:
    """One statement in one dialect's words; `column_keys` names the columns of a plain INSERT."""

    def __init__(
        self, statement: Any, cache_key: Any, dialect: sa.Dialect, column_keys: list[str] | None = None
    ) -> None:
        self._compiled = statement.compile(dialect=dialect, cache_key=cache_key, column_keys=column_keys)
        self._fixed: dict[str, Any] = {}
        self._places: list[tuple[str, int]] = []
        self._processes: dict[str, Process] = {}
        self._lists: list[str] = []
        slots = [_Slot(place) for place in range(len(cache_key.bindparams) if cache_key else 0)]
        drawn = self._compiled.construct_params(None, extracted_parameters=slots, _check=False)
        for bind, name in self._compiled.bind_names.items():
            self._learn(bind, name, drawn[name], dialect)
        self._names = set(self._compiled.bind_names.values())
        self._texts: dict[tuple[int, ...], _Text] = {}
        self.rows = _reader(statement, dialect)

    def _learn(self, bind: sa.BindParameter[Any], name: str, drawn: Any, dialect: sa.Dialect) -> None:
        """Where the value of one parameter comes from, and what the driver wants done with it."""
        if isinstance(drawn, _Slot):
            self._places.append((name, drawn.place))
        elif not bind.required:
            self._fixed[name] = bind.effective_value
        process = bind.type.dialect_impl(dialect).bind_processor(dialect)
        if process is not None:
            self._processes[name] = process
        if bind.expanding:
            self._lists.append(name)

    def bind(self, cache_key: Any, values: Values | None) -> Bound:
        """SQL and positional parameters: the statement's own values, and `values` for the open ones."""
        given = self._own(cache_key)
        if values:
            given.update(values)
        if given.keys() != self._names:
            missing, unknown = sorted(self._names - given.keys()), sorted(given.keys() - self._names)
            raise TypeError(f"the statement lacks the values {missing} and does not know {unknown}")
        lengths: tuple[int, ...] = ()
        if self._lists:
            given.update({name: _padded(given[name]) for name in self._lists})
            lengths = tuple([len(given[name]) for name in self._lists])
        text = self._texts.get(lengths) or self._expand(lengths, given)
        for whole, parts in text.parts.items():
            flat = given[whole]
            if flat and isinstance(flat[0], tuple):
                flat = [part for value in flat for part in value]
            given.update(zip(parts, flat, strict=True))
        parameters = [given[name] for name in text.names]
        for place, process in text.processes:
            parameters[place] = process(parameters[place])
        return Bound(text.sql, text.names, parameters)

    def bind_each(
        self, cache_key: Any, rows: Sequence[Values]
    ) -> tuple[str, list[str], Sequence[Sequence[Any]]]:
        """The same for rows of the same names: SQL, the parameters' names, and the parameters of each row."""
        first = self.bind(cache_key, rows[0])
        if self._lists:
            bound = [first, *[self.bind(cache_key, row) for row in rows[1:]]]
            return first.sql, first.names, [one.parameters for one in bound]
        named = rows[0].keys()
        for row in rows:
            if row.keys() != named:
                raise TypeError(
                    f"rows of one statement have the same names, not {sorted(row.keys() ^ named)}"
                )
        own = {name: value for name, value in self._own(cache_key).items() if name not in named}
        given = [{**own, **row} for row in rows] if own else rows
        drawn = self._draw(first.names, given)
        processes = self._texts[()].processes
        if not processes:
            return first.sql, first.names, drawn
        parameters = [*map(list, drawn)]
        for place, process in processes:
            for one in parameters:
                one[place] = process(one[place])
        return first.sql, first.names, parameters

    @staticmethod
    def _draw(names: Sequence[str], rows: Sequence[Values]) -> Sequence[Sequence[Any]]:
        """The values of these names out of each row, in their order."""
        if len(names) < 2:
            return [[row[name] for name in names] for row in rows]
        return list(map(operator.itemgetter(*names), rows))

    def _own(self, cache_key: Any) -> dict[str, Any]:
        """The statement's own values."""
        own = dict(self._fixed)
        for name, place in self._places:
            bound = cache_key.bindparams[place]
            if not bound.required:
                own[name] = bound.effective_value
        return own

    def _expand(self, lengths: tuple[int, ...], given: Values) -> _Text:
        """The text for lists of these lengths, made once."""
        state = self._compiled.construct_expanded_state(given)
        whole_of = {part: whole for whole, parts in state.parameter_expansion.items() for part in parts}
        wholes = [whole_of.get(name, name) for name in state.positiontup]
        processes = [(n, self._processes[name]) for n, name in enumerate(wholes) if name in self._processes]
        text = _Text(state.statement, list(state.positiontup), processes, dict(state.parameter_expansion))
        self._texts[lengths] = text
        return text


class Compilations:
    """All prepared statements of one dialect; shared by the threads and databases of a process."""

    def __init__(self, dialect: sa.Dialect) -> None:
        self._dialect = dialect
        self._kept: dict[Any, Prepared] = {}

    def bound(self, statement: Any, values: Values | None) -> tuple[Bound, Prepared]:
        """What the driver is given, and the prepared statement, which reads the rows."""
        cache_key = statement._generate_cache_key()
        if cache_key is None:
            prepared = Prepared(statement, None, self._dialect)
        else:
            prepared = self._kept.get(cache_key.key) or self._keep(
                cache_key.key, Prepared(statement, cache_key, self._dialect)
            )
        return prepared.bind(cache_key, values), prepared

    def many(self, statement: Any, rows: Sequence[Values]) -> tuple[str, list[str], Sequence[Sequence[Any]]]:
        """An INSERT for the columns of the first row, those columns, and the parameters of every row."""
        columns = sorted(rows[0])
        key = statement._generate_cache_key().key, *columns
        prepared = self._kept.get(key) or self._keep(key, Prepared(statement, None, self._dialect, columns))
        return prepared.bind_each(None, rows)

    def each(self, statement: Any, rows: Sequence[Values]) -> tuple[str, Sequence[Sequence[Any]]]:
        """An UPDATE or DELETE, and the parameters of every row."""
        cache_key = statement._generate_cache_key()
        prepared = self._kept.get(cache_key.key) or self._keep(
            cache_key.key, Prepared(statement, cache_key, self._dialect)
        )
        sql, _, parameters = prepared.bind_each(cache_key, rows)
        return sql, parameters

    def _keep(self, key: Any, prepared: Prepared) -> Prepared:
        """Remember a compilation; too many shapes and all are forgotten: the common ones come back."""
        if len(self._kept) >= STATEMENTS_KEPT:
            self._kept.clear()
        self._kept[key] = prepared
        return prepared


def _padded(values: Sequence[Any]) -> list[Any]:
    """A list of the next power of two's length; its last value is repeated, which changes no IN."""
    if len(values) > IN_LIST_MAX:
        raise ValueError(f"a list of {len(values)} values in one statement: ask in pages of {IN_LIST_MAX}")
    listed = list(values)
    if listed:
        listed += listed[-1:] * ((1 << (len(listed) - 1).bit_length()) - len(listed))
    return listed


def _fits(name: str) -> bool:
    """Whether a column's name can be a field's; a nameless aggregate reads `None`."""
    return name.isidentifier() and not keyword.iskeyword(name)


@functools.cache
def _row_class(names: tuple[str, ...]) -> Callable[[Sequence[Any]], Row]:
    """What turns a driver's tuple into a row with these names."""
    made = cast("Any", namedtuple)("Row", names)
    return cast("Callable[[Sequence[Any]], Row]", made._make)


def _reader(statement: Any, dialect: sa.Dialect) -> Callable[[Sequence[Sequence[Any]]], list[Row]]:
    """What turns a driver's rows into ours."""
    columns = list(getattr(statement, "exported_columns", ()))
    if not columns:
        return _numbered  # plain text says nothing of its columns
    names = [str(column.key) for column in columns]
    make = _row_class(tuple(name if _fits(name) else f"column_{n}" for n, name in enumerate(names)))
    processes = [(n, process) for n, column in enumerate(columns) if (process := _process(column, dialect))]
    if not processes:
        return lambda rows: list(map(make, rows))

    def read(rows: Sequence[Sequence[Any]]) -> list[Row]:
        listed = [list(row) for row in rows]
        for row in listed:
            for place, process in processes:
                row[place] = process(row[place])
        return list(map(make, listed))

    return read


def _numbered(rows: Sequence[Sequence[Any]]) -> list[Row]:
    """Rows whose columns have no names."""
    return [_row_class(tuple([f"column_{n}" for n in range(len(row))]))(row) for row in rows]


def _process(column: sa.ColumnElement[Any], dialect: sa.Dialect) -> Process | None:
    """What makes a driver's value the same on every database; None where it already is."""
    if isinstance(column.type, sa.Integer) and not isinstance(column, sa.Column) and dialect.name != "sqlite":
        return _whole  # the servers answer a sum of whole numbers with a Decimal
    return column.type.dialect_impl(dialect).result_processor(dialect, None)


def _whole(value: Any) -> int | None:
    """A whole number, whatever the driver calls it."""
    return None if value is None else int(value)
