"""Who touches the database: transactions stand in `store/acts`, and each table is filled in one place."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.tidy.rules import ACTS, PACKAGE
from tests.tidy.source import Module, dotted, modules, within

_DATABASES = frozenset({"database", "_database"})


def problems(root: Path) -> list[str]:
    """One line for each broken rule in the package at `root`."""
    house = modules(root)
    outside = [module for module in house if not within(module.name, "store")]
    return [
        *(f"{m.full_name}:{line}: {complaint}" for m in outside for line, complaint in _transactions(m)),
        *_filled_twice(house),
    ]


def _transactions(module: Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parameters = (*node.args.posonlyargs, *node.args.args)
            if any(parameter.arg == "tx" for parameter in parameters):
                yield node.lineno, f"{node.name} takes a transaction: it belongs into {ACTS}"
        if isinstance(node, ast.Call) and _is_a_door(node.func) and node.args:
            act = module.resolve(node.args[0])
            ours = act.startswith(f"{PACKAGE}.")
            if isinstance(node.args[0], ast.Lambda) or (ours and not within(act, f"{PACKAGE}.{ACTS}")):
                yield node.lineno, f"hands {act or 'a lambda'} to the database: only what lies in {ACTS} is"


def _is_a_door(function: ast.expr) -> bool:
    """Whether this is `database.run` or `database.read`, by whatever path the database is reached."""
    *owners, method = dotted(function).split(".")
    return method in {"run", "read"} and bool(owners) and owners[-1] in _DATABASES


def _filled_twice(house: list[Module]) -> Iterator[str]:
    places: dict[str, set[str]] = defaultdict(set)
    for module in house:
        if within(module.name, "store.rows") or within(module.name, ACTS):
            for table in _filled(module):
                places[table].add(module.full_name)
    for table, where in sorted(places.items()):
        if len(where) > 1:
            yield f"rows are added to {table} in several places: {', '.join(sorted(where))}"


def _filled(module: Module) -> Iterator[str]:
    """Tables that a module adds rows to by `tx.insert(table, …)`, seen through its constants."""
    constants = _constants(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and dotted(node.func).endswith("tx.insert") and node.args:
            table = dotted(node.args[0])
            yield constants.get(table, table).rpartition(".")[2]


def _constants(module: Module) -> Mapping[str, str]:
    return {
        target.id: dotted(node.value)
        for node in module.tree.body
        if isinstance(node, ast.Assign) and dotted(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
