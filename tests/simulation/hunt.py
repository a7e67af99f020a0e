"""Passes over many worlds: every point of the calm one, then seeds; each beside what the calm one came to."""

from __future__ import annotations

import functools
import gc
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

from tests.simulation.comparing import compared
from tests.simulation.faults import CALL, COMMIT, one
from tests.simulation.mutants import ALL as MUTANTS
from tests.simulation.settings import CALM, DOCUMENTS, EDITED, Setting, of_seed
from tests.simulation.world import Outcome, World

_MEMORY = Path("/dev/shm")
"""Files of worlds live in memory where the system offers that: nobody cuts the power of a world."""

MUTANT_SEEDS_MAX = 100
MUTANT_DRAWS = 8


def play(setting: Setting, documents: Mapping[str, bytes] = DOCUMENTS) -> Outcome:
    """One world, in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None, prefix="dragoman-") as made:
        folder = Path(made)
        for name, data in documents.items():
            (folder / name).write_bytes(data)
        with _quick():
            return World(setting, folder).play()


@functools.cache
def calm(is_edited: bool = False) -> Outcome:
    """What comes out where nothing goes wrong, of the documents as they are, or as somebody edits them."""
    return play(CALM, {**DOCUMENTS, **EDITED} if is_edited else DOCUMENTS)


def judged(setting: Setting) -> Outcome:
    """A world, and everything that is wrong with it."""
    return compared(play(setting), calm("edit" in setting.people))


def exhaustive() -> Iterator[Setting]:
    """Every point of the calm world killed once, every commit and every call spoiled once in each way, and a
    process of two stopped before each commit until the other one has overtaken it.
    """
    alone, pair = CALM, replace(CALM, processes=2)
    places = calm().places
    for number in range(1, places["point"] + 1):
        yield alone.struck(one("point", number, "kill"))
    for number, kind in product(range(1, places["commit"] + 1), COMMIT):
        yield alone.struck(one("commit", number, kind))
    for number, kind in product(range(1, places["call"] + 1), CALL):
        yield alone.struck(one("call", number, kind))
    yield from stalls(pair)


def stalls(setting: Setting, act: str = "") -> Iterator[Setting]:
    """The same world, one process stopped before each commit that begins with `act` (or with any) until
    another has overtaken it.
    """
    for number, head in enumerate(_calm_commits(setting.processes, setting.groups), start=1):
        if act in ("", head):
            yield setting.struck(one("commit", number, "pause"))


@functools.cache
def _calm_commits(processes: int, groups: bool) -> Sequence[str]:
    """The first act of each commit, where nothing goes wrong."""
    return play(replace(CALM, processes=processes, groups=groups)).commits


def seeds(first: int, count: int) -> Iterator[Setting]:
    """The worlds of so many seeds."""
    return (of_seed(seed) for seed in range(first, first + count))


def hunted(settings: Iterable[Setting], goes_on: Callable[[], bool] = lambda: True) -> Iterator[Outcome]:
    """Play worlds one after the other, as long as it `goes_on`."""
    for setting in settings:
        if not goes_on():
            return
        yield judged(setting)


def caught(mutant: str) -> tuple[int, Outcome] | None:
    """In which world, and how, a planted mutant is caught; None where none catches it."""
    calm()
    for count, setting in enumerate(worlds_for(mutant), start=1):
        with MUTANTS[mutant].plant():
            outcome = judged(setting)
        if outcome.problems:
            return count, outcome
    return None


def worlds_for(mutant: str) -> Iterator[Setting]:
    """Where a mutant is hunted: in the calm world, where processes overtake each other, and in seeds."""
    yield CALM
    if act := MUTANTS[mutant].overtaken_before:
        for draw, groups in product(range(MUTANT_DRAWS), (True, False)):
            yield from stalls(replace(CALM, seed=draw, processes=2, groups=groups), act)
    yield from seeds(0, MUTANT_SEEDS_MAX)


@contextmanager
def _quick() -> Iterator[None]:
    """A world is short: its garbage is collected when it is over."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
