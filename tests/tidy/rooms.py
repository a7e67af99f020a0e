"""Who may import whom, read from the syntax tree: also imports in functions and under TYPE_CHECKING count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.tidy.plugins import members
from tests.tidy.rules import DOORS, FLOORS, INDOORS, LAYERS, PACKAGE, PLUGINS, STEPS
from tests.tidy.source import Module, modules, within


def problems(root: Path) -> list[str]:
    """One line for each broken rule in the package at `root`."""
    house = modules(root)
    plugins = members(house)
    return [
        f"{PACKAGE}.{module.name}:{line}: {complaint}"
        for module in house
        for line, complaint in sorted({*_strangers(module), *_imports(module, plugins), *_doors(module)})
    ]


def _strangers(module: Module) -> Iterator[tuple[int, str]]:
    for container, layers in LAYERS.items():
        part = _part(module.name, container)
        if part and part not in _ranks(layers):
            yield 1, f"a room that nobody declared in {container or PACKAGE}"


def _imports(module: Module, plugins: frozenset[str]) -> Iterator[tuple[int, str]]:
    here = module.name
    for target, line in module.imports():
        package, _, inner = target.partition(".")
        if package == PACKAGE:
            broken = (
                *_upward(here, inner),
                *_sibling(here, inner),
                *_named(here, inner, plugins),
                *_indoors(here, inner),
            )
            yield from ((line, f"imports {inner}: {complaint}") for complaint in broken)


def _upward(here: str, target: str) -> Iterator[str]:
    for container, layers in LAYERS.items():
        mine, other, ranks = _part(here, container), _part(target, container), _ranks(layers)
        if mine in ranks and other in ranks and mine != other and ranks[other] <= ranks[mine]:
            yield "upward" if ranks[other] < ranks[mine] else "sideways"


def _sibling(here: str, target: str) -> Iterator[str]:
    for room, depth in STEPS.items():
        if (
            within(here, room)
            and within(target, room)
            and _step(here, room, depth) != _step(target, room, depth)
        ):
            yield "steps hand over through rows"
    for room, upper in FLOORS.items():
        if within(here, room) and any(within(target, floor) for floor in upper):
            yield "from a lower floor"


def _named(here: str, target: str, plugins: frozenset[str]) -> Iterator[str]:
    if within(here, "wiring"):
        return
    for member in plugins:
        if within(target, member) and not within(here, member):
            yield "only wiring names a member"
    for room in PLUGINS:
        if within(target, room) and not within(here, room):
            yield f"only wiring reaches into {room}"


def _indoors(here: str, target: str) -> Iterator[str]:
    for inner, room in INDOORS.items():
        if within(target, inner) and not within(here, room):
            yield f"{inner} is not seen from outside of {room}"


def _doors(module: Module) -> Iterator[tuple[int, str]]:
    for name, line in (*module.imports(), *module.uses()):
        for power, rooms in DOORS.items():
            if within(name, power) and not any(within(module.name, room) for room in rooms):
                yield line, f"{power} has its door in {', '.join(rooms) or 'no room at all'}"


def _part(name: str, container: str) -> str:
    """The room of `name` directly in `container`, "" where it lies elsewhere."""
    if container and not name.startswith(f"{container}."):
        return ""
    return name.removeprefix(f"{container}." if container else "").partition(".")[0]


def _step(name: str, room: str, depth: int) -> list[str]:
    """The names of the step that `name` belongs to, below `room`."""
    return name.removeprefix(room).split(".")[: depth + 1]


def _ranks(layers: tuple[str, ...]) -> dict[str, int]:
    return {room: rank for rank, line in enumerate(layers) for room in line.split("|")}
