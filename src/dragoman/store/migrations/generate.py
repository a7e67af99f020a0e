"""Writes revision files: whatever `schema.py` has and the newest revision does not make.

    python -m dragoman.store.migrations.generate MESSAGE    the next revisions
    python -m dragoman.store.migrations.generate --anew     all of them, from nothing (before a release)

A revision never imports `schema.py`, which goes on changing. Each file stays under 500 lines, each function
makes one table. What a revision must do to rows is written into it by hand.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic.autogenerate import api, render
from alembic.operations import ops
from alembic.runtime.migration import MigrationContext

from dragoman.store import portable
from dragoman.store.engines import engine_of
from dragoman.store.migrate import migrate
from dragoman.store.portable import Flag
from dragoman.store.revisions import DIRECTORY, head
from dragoman.store.schema import metadata

_LINES_PER_FILE = 380
_LINES_PER_FUNCTION = 50
_NAMED_TYPES = {
    id(kind): name
    for name in ("Id", "Hash", "Instant", "Money", "Count", "LongText", "Bytes")
    for kind in [getattr(portable, name)]
}
_HEADER = '''"""{message}."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.store.migrations import steps
from dragoman.store.portable import {types}

revision = "{revision}"
down_revision = {down}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """{message}."""
{calls}
'''


def main(arguments: list[str]) -> int:
    """Write the files and name them on standard output."""
    if len(arguments) != 1:
        sys.stderr.write(__doc__ or "")
        return 2
    if arguments[0] == "--anew":
        for path in (DIRECTORY / "versions").glob("r[0-9]*.py"):
            path.unlink()
    message = "the first schema" if arguments[0] == "--anew" else arguments[0].rstrip(".")
    for path in write(message):
        sys.stdout.write(f"{path}\n")
    return 0


def write(message: str) -> Iterator[Path]:
    """Write as many revisions as the changes need."""
    start = int(head())
    for number, functions in enumerate(_files(_functions(_changes())), start + 1):
        revision = f"{number:04d}"
        slug = re.sub(r"\W+", "_", message.lower()).strip("_")[:40]
        path = DIRECTORY / "versions" / f"r{revision}_{slug}.py"
        path.write_text(_text(revision, message, functions), "utf-8")
        yield path


def _changes() -> list[ops.MigrateOperation]:
    """What a database at the newest revision lacks, seen on an SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/head.db"
        if head() != "0000":
            migrate(url)
        engine = engine_of(url)
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            script = api.produce_migrations(context, metadata)
        engine.dispose()
    return list(_flat(script.upgrade_ops.ops if script.upgrade_ops else ()))


def _flat(found: Iterable[Any]) -> Iterator[ops.MigrateOperation]:
    for change in found:
        if isinstance(change, ops.OpContainer):
            yield from _flat(change.ops)
        else:
            yield change


def _functions(changes: list[ops.MigrateOperation]) -> list[tuple[str, list[str]]]:
    """Name and body lines of one function a table, or several where it is long."""
    bodies: dict[str, list[list[str]]] = {}
    for change in changes:
        table = str(getattr(change, "table_name", "") or "schema")
        bodies.setdefault(table, []).append([f"    {line}" for line in _code(change)])
    functions: list[tuple[str, list[str]]] = []
    for table, statements in bodies.items():
        lines: list[str] = []
        part = 0
        for statement in statements:
            if lines and len(lines) + len(statement) > _LINES_PER_FUNCTION:
                functions.append((f"_{table}" + (f"_{part}" if part else ""), lines))
                lines, part = [], part + 1
            lines = lines + statement
        functions.append((f"_{table}" + (f"_{part}" if part else ""), lines))
    return functions


def _files(functions: list[tuple[str, list[str]]]) -> Iterator[list[tuple[str, list[str]]]]:
    held: list[tuple[str, list[str]]] = []
    for function in functions:
        if held and sum(len(lines) + 4 for _, lines in [*held, function]) > _LINES_PER_FILE:
            yield held
            held = []
        held.append(function)
    if held:
        yield held


def _text(revision: str, message: str, functions: list[tuple[str, list[str]]]) -> str:
    body = "".join(f"\n\ndef {name}() -> None:\n" + "\n".join(lines) + "\n" for name, lines in functions)
    types = sorted(set(re.findall(r"\b(Id|Hash|Instant|Money|Count|LongText|Bytes|Flag|Word)\b", body)))
    previous = int(revision) - 1
    return (
        _HEADER.format(
            message=f"{message[:1].upper()}{message[1:]}: {functions[0][0][1:]} to {functions[-1][0][1:]}",
            types=", ".join(types),
            revision=revision,
            down=f'"{previous:04d}"' if previous else None,
            calls="\n".join(f"    {name}()" for name, _ in functions),
        )
        + body
    )


def _code(change: ops.MigrateOperation) -> list[str]:
    """The lines that make one change."""
    if isinstance(change, ops.CreateTableOp):
        return list(_table(metadata.tables[change.table_name]))
    if isinstance(change, ops.CreateIndexOp):
        index = next(i for i in metadata.tables[change.table_name].indexes if i.name == change.index_name)
        return [_index(index)]
    context = api.AutogenContext(MigrationContext.configure(dialect_name="sqlite"), metadata, opts=_opts())
    return [line for op in render.render_op(context, change) for line in op.splitlines()]


def _opts() -> dict[str, Any]:
    return {
        "alembic_module_prefix": "steps.",
        "sqlalchemy_module_prefix": "sa.",
        "user_module_prefix": None,
        "render_item": lambda kind, item, _context: _type(item) if kind == "type" else False,
    }


def _table(table: sa.Table) -> Iterator[str]:
    yield "steps.create_table("
    yield f"    {table.name!r},"
    for column in table.columns:
        yield f"    {_column(column)},"
    for constraint in sorted(table.constraints, key=lambda one: (type(one).__name__, str(one.name))):
        yield from (f"    {line}" for line in _constraint(constraint))
    if not table.dialect_options["sqlite"]["with_rowid"]:
        yield "    clustered=True,"
    yield ")"


def _column(column: sa.Column[Any]) -> str:
    words = [repr(column.name), _type(column.type)]
    if not column.nullable:
        words.append("nullable=False")
    if column.server_default is not None:
        words.append(f"server_default={column.server_default.arg!r}")  # type: ignore[attr-defined]
    if column.autoincrement is False:
        words.append("autoincrement=False")
    return f"sa.Column({', '.join(words)})"


def _type(kind: Any) -> str:
    if id(kind) in _NAMED_TYPES:
        return _NAMED_TYPES[id(kind)]
    if isinstance(kind, Flag):
        return "Flag()"
    if type(kind) is sa.String and kind.length:
        return f"Word({kind.length})"
    raise TypeError(f"{kind!r} is none of the portable types")


def _constraint(constraint: sa.Constraint) -> Iterator[str]:
    name = f"name=steps.f({str(constraint.name)!r})"
    if isinstance(constraint, sa.CheckConstraint):
        rule = str(constraint.sqltext.compile(compile_kwargs={"literal_binds": True}))
        if '"' in rule:
            raise ValueError(f"{constraint.name}: rename the column, quoting differs between databases")
        yield "sa.CheckConstraint("
        yield from (f"    {part!r}" for part in re.findall(r".{1,80}(?:\s|$)", rule))
        yield f"    , {name}"
        yield "),"
        return
    columns = ", ".join(repr(column.name) for column in constraint.columns)  # type: ignore[attr-defined]
    if isinstance(constraint, sa.ForeignKeyConstraint):
        targets = ", ".join(repr(element.target_fullname) for element in constraint.elements)
        yield f"sa.ForeignKeyConstraint([{columns}], [{targets}], {name}),"
    elif columns:
        yield f"sa.{type(constraint).__name__}({columns}, {name}),"


def _index(index: sa.Index) -> str:
    table = index.table
    if table is None:
        raise ValueError(f"index {index.name} has no table")
    columns = [column.name for column in index.columns]
    where = {
        f"{dialect}_where": options["where"]
        for dialect, options in index.dialect_options.items()
        if options.get("where") is not None
    }
    told = "".join(f", {name}=sa.text({str(rule)!r})" for name, rule in where.items())
    unique = ", unique=True" if index.unique else ""
    return f"steps.create_index({index.name!r}, {table.name!r}, {columns!r}{unique}{told})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
