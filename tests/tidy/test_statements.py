"""Statements are built from values, never from text: nobody's words become SQL."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.paths import SOURCE
from tests.tidy.source import dotted, modules, within

_TAKES_SQL = frozenset(
    (
        "text",
        "literal_column",
        "execute",
        "executemany",
        "exec_driver_sql",
        "executescript",
        "query",
        "change",
    )
)
"""Calls whose first argument a server reads as SQL."""


def formatted(tree: ast.Module) -> Iterator[str]:
    """Where text that was put together while the program ran reaches such a call."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args or _name(node.func) not in _TAKES_SQL:
            continue
        if not _is_fixed(node.args[0]):
            yield f"line {node.lineno}: {ast.unparse(node.args[0])[:60]}"


def _name(called: ast.expr) -> str:
    """The last name of what is called, or of a value."""
    return called.attr if isinstance(called, ast.Attribute) else dotted(called)


def _is_fixed(argument: ast.expr) -> bool:
    """Whether nothing but what stands in the program can be in it: constants are written in capitals.

    A plain name is a statement that was made before.
    """
    match argument:
        case ast.JoinedStr():
            places = [part.value for part in argument.values if isinstance(part, ast.FormattedValue)]
            return all(_name(place).lstrip("_").isupper() for place in places)
        case ast.BinOp():
            return not any(
                isinstance(part, ast.JoinedStr | ast.Constant) for part in (argument.left, argument.right)
            )
        case ast.IfExp():
            return _is_fixed(argument.body) and _is_fixed(argument.orelse)
        case ast.Call():
            return _name(argument.func) not in ("format", "join", "replace", "format_map")
    return True


def test_no_statement_is_put_together_from_text() -> None:
    """[M-311] values are bound, and table and column names come from the schema."""
    store = [module for module in modules(SOURCE) if within(module.name, "store")]
    found = [f"{module.name}: {line}" for module in store for line in formatted(module.tree)]
    assert store
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        'tx.all(sa.text(f"SELECT {name}"))',
        'sa.text("SELECT * FROM x WHERE a = \'" + name + "\'")',
        'session.execute("SELECT %s" % name)',
        'connection.exec_driver_sql("SELECT {}".format(name))',
        "sa.literal_column(f\"'{document}'\")",
        'session.query(" ".join(words), ())',
    ],
)
def test_the_rule_sees_what_it_is_for(line: str) -> None:
    assert list(formatted(ast.parse(line)))
    assert not list(formatted(ast.parse('NAME = "x"\nsa.text(f"SELECT {NAME}")\nsa.text("SELECT :a")')))
