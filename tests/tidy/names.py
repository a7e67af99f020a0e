"""Names that refuse something: none is vague, none is used twice in a room, none hides what it imports."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.rules import NAMES_THAT_SAY_NOTHING
from tests.tidy.source import Module, modules


def problems(root: Path) -> list[str]:
    """One line for each broken rule in the package at `root`."""
    named = [module for module in modules(root) if not module.is_package]
    return [*_vague(root), *_doubled(named), *_hiding(named)]


def vague(root: Path) -> list[str]:
    """Folders and files under `root` whose names say nothing."""
    return list(_vague(root))


def _vague(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*")):
        if (path.is_dir() or path.suffix == ".py") and path.stem in NAMES_THAT_SAY_NOTHING:
            yield f"{path.relative_to(root)}: a name that says nothing"


def _doubled(named: list[Module]) -> Iterator[str]:
    first: dict[tuple[str, str], str] = {}
    for module in named:
        room = module.name.partition(".")[0]
        earlier = first.setdefault((room, module.base), module.full_name)
        if earlier != module.full_name:
            yield f"{module.full_name}: {earlier} has this name in the same room"


def _hiding(named: list[Module]) -> Iterator[str]:
    for module in named:
        imported = {target.partition(".")[0] for target, _ in module.imports()}
        if module.base in imported & sys.stdlib_module_names:
            yield f"{module.full_name}: named like the standard module that it imports"
