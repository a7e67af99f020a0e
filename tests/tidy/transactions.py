"""Who touches the database: transactions stand in `store/acts`, each table is filled in one place, and
history is never rewritten.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.tidy.rules import ACTS, APPEND_ONLY, PACKAGE, RETENTION
from tests.tidy.source import Module, dotted, modules, within

_ACTS = f"{PACKAGE}.{ACTS}"
_DATABASES = frozenset({"database", "_database"})
_REWRITES = frozenset({"update", "delete", "upsert"})


def problems(root: Path) -> list[str]:
    """One line for each broken rule in the package at `root`."""
    house = modules(root)
    outside = [module for module in house if not within(module.name, "store")]
    return [
        *(f"{m.full_name}:{line}: {complaint}" for m in outside for line, complaint in _transactions(m)),
        *_filled_twice(house),
        *(f"{m.full_name}:{line}: {complaint}" for m in house for line, complaint in _rewritten(m)),
    ]


def _transactions(module: Module) -> Iterator[tuple[int, str]]:
    readers = _takers_of_a_transaction(module)
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        door = _door(node.func)
        handed = [module.resolve(argument) for argument in _arguments(node)]
        if door == "run" and handed:
            act = handed[0]
            if isinstance(node.args[0], ast.Lambda) or (_is_ours(act) and not within(act, _ACTS)):
                yield node.lineno, f"runs {act or 'a lambda'} as a transaction, which only {ACTS} holds"
        elif door != "read":
            for name in readers.intersection(handed):
                yield (
                    node.lineno,
                    f"hands {name} on: a function of a transaction that is no act is only read with",
                )


def _takers_of_a_transaction(module: Module) -> frozenset[str]:
    """Full names of the module's functions that begin with `tx`."""
    return frozenset(
        f"{module.full_name}.{node.name}"
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and node.args.args and node.args.args[0].arg == "tx"
    )


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _door(function: ast.expr) -> str:
    """`run` or `read` where a database is asked, by whatever path it is reached; else ""."""
    *owners, method = dotted(function).split(".")
    return method if owners and owners[-1] in _DATABASES else ""


def _is_ours(name: str) -> bool:
    return within(name, PACKAGE)


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


def _rewritten(module: Module) -> Iterator[tuple[int, str]]:
    """Where a module changes or removes rows of a table to which rows are only added."""
    constants = _constants(module)
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        *_, method = dotted(node.func).split(".")
        table = dotted(node.args[0])
        table = constants.get(table, table).rpartition(".")[2]
        allowed = method == "delete" and within(module.name, RETENTION)
        if method in _REWRITES and table in APPEND_ONLY and not allowed:
            yield node.lineno, f"{method}s rows of {table}, to which rows are only added"


def _constants(module: Module) -> Mapping[str, str]:
    """What the module's own constants stand for, as far as that is a plain name: also in pairs of tuples."""
    found: dict[str, str] = {}
    for node in module.tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            pairs = zip(_parts(target), _parts(node.value), strict=False)
            found |= {dotted(name): dotted(value) for name, value in pairs if dotted(value)}
    return found


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]
