"""Who is a member of a room of plug-ins: a module with a class that has every method of its protocol."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from tests.tidy.rules import PACKAGE, PLUGINS
from tests.tidy.source import Module, within

CONTRACTS = f"{PACKAGE}.model.contracts"

_Classes = Mapping[str, tuple[Module, ast.ClassDef]]


def members(house: Iterable[Module]) -> frozenset[str]:
    """Names of all modules that hold a member, relative to the package."""
    classes = _classes(house)
    return frozenset(
        module.name
        for room, protocol in PLUGINS.items()
        for name, (module, _) in classes.items()
        if within(module.name, room)
        and _methods(name, classes) >= _methods(f"{CONTRACTS}.{protocol}", classes) != set()
    )


def implementers(house: Iterable[Module]) -> Mapping[str, frozenset[str]]:
    """Of every protocol of the contracts, the classes of the house that have all its methods and fields."""
    classes = _classes(house)
    offered = {name: _offers(name, classes) for name in classes}
    protocols = {name for name, (module, _) in classes.items() if module.full_name == CONTRACTS}
    return {
        protocol.removeprefix(f"{CONTRACTS}."): frozenset(
            name for name in classes.keys() - protocols if offered[name] >= offered[protocol]
        )
        for protocol in protocols
    }


def _classes(house: Iterable[Module]) -> _Classes:
    return {
        f"{module.full_name}.{node.name}": (module, node)
        for module in house
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }


def _offers(name: str, classes: _Classes) -> set[str]:
    """Names of the methods and fields of a class, its ancestors' and those given to `self` among them."""
    if name not in classes:
        return set()
    module, node = classes[name]
    fields = {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Store)
    }
    own = fields | _methods(name, classes)
    return own.union(*(_offers(module.resolve(base), classes) for base in node.bases))


def _methods(name: str, classes: _Classes) -> set[str]:
    """Names of the methods of a class, its ancestors' among them as far as they are ours."""
    if name not in classes:
        return set()
    module, node = classes[name]
    own = {part.name for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))}
    return own.union(*(_methods(module.resolve(base), classes) for base in node.bases))
