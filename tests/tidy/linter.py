"""The same rules for import-linter, which sees what a syntax tree does not: chains and cycles."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.plugins import members
from tests.tidy.rules import DOORS, FLOORS, LAYERS, PACKAGE, PLUGINS, STEPS
from tests.tidy.source import Module, modules, within


def complaints(root: Path, scratch: Path) -> str:
    """What import-linter says of the package at `root`, "" where every contract is kept."""
    config = scratch / "contracts.ini"
    config.write_text(contracts(modules(root)), encoding="utf-8")
    ran = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache", config],
        cwd=scratch,
        env={**os.environ, "PYTHONPATH": str(root.parent), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if ran.returncode == 0 and "contracts: " in ran.stdout.lower() else ran.stdout + ran.stderr


def contracts(house: list[Module]) -> str:
    """The configuration of import-linter, printed from the rules and the modules that there are."""
    names = {module.name for module in house}
    head = f"[importlinter]\nroot_package = {PACKAGE}\ninclude_external_packages = True\n"
    found = (*_layers(names), *_steps(names), *_plugins(house), *_floors(names), *_doors(house))
    cycles = ("No cycles anywhere", "acyclic_siblings", {"ancestors": [PACKAGE]}, "")
    return head + "".join(
        f"\n[importlinter:contract:{number}]\nname = {title}\ntype = {kind}\n"
        + "".join(
            f"{key} =\n" + "".join(f"    {value}\n" for value in values) for key, values in lists.items()
        )
        + f"{more}\n"
        for number, (title, kind, lists, more) in enumerate((*found, cycles))
    )


_Contract = tuple[str, str, dict[str, list[str]], str]


def _layers(names: set[str]) -> Iterator[_Contract]:
    for container, layers in LAYERS.items():
        if container in names:
            lines = [" | ".join(f"({room})" for room in line.split("|")) for line in layers]
            lists = {"containers": [_full(container)], "layers": lines}
            yield f"Imports go down only in {_full(container)}", "layers", lists, "exhaustive = true"


def _steps(names: set[str]) -> Iterator[_Contract]:
    for room, depth in STEPS.items():
        steps = sorted(_full(n) for n in names if within(n, room) and n.count(".") == room.count(".") + depth)
        if steps:
            yield f"The parts of {room} do not know each other", "independence", {"modules": steps}, ""


def _plugins(house: list[Module]) -> Iterator[_Contract]:
    plugins, names = members(house), {module.name for module in house}
    for room in names.intersection(PLUGINS):
        inside = sorted(_full(member) for member in plugins if within(member, room))
        if inside:
            yield f"The members of {room} do not know each other", "independence", {"modules": inside}, ""
        outside = _leaves(house, room, "wiring")
        lists = {"source_modules": outside, "forbidden_modules": [_full(room)]}
        yield f"Only wiring reaches into {room}", "forbidden", lists, "allow_indirect_imports = true"


def _floors(names: set[str]) -> Iterator[_Contract]:
    for floor, upper in FLOORS.items():
        lists = {
            "source_modules": [_full(floor)],
            "forbidden_modules": [_full(room) for room in upper if room in names],
        }
        if floor in names and lists["forbidden_modules"]:
            yield f"{floor} is a lower floor", "forbidden", lists, ""


def _doors(house: list[Module]) -> Iterator[_Contract]:
    for rooms in sorted({*DOORS.values()}):
        powers = [power for power, its in DOORS.items() if its == rooms and _is_a_package(power)]
        lists = {"source_modules": _leaves(house, *rooms), "forbidden_modules": powers}
        if powers:
            yield (
                f"Doors of {', '.join(rooms) or 'no room'}",
                "forbidden",
                lists,
                "allow_indirect_imports = true",
            )


def _is_a_package(power: str) -> bool:
    """import-linter knows what lies outside by its first name, and builtins not at all."""
    return "." not in power and not power.startswith("__")


def _leaves(house: list[Module], *but_in: str) -> list[str]:
    """All modules that are no packages and lie in none of these rooms."""
    return sorted(
        _full(m.name) for m in house if not m.is_package and not any(within(m.name, r) for r in but_in)
    )


def _full(name: str) -> str:
    return f"{PACKAGE}.{name}" if name else PACKAGE
