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
from tests.simulation.faults import CALL, COMMIT, WIRE, one
from tests.simulation.mutants import ALL as MUTANTS
from tests.simulation.recording import Outcome
from tests.simulation.settings import (
    BATCHES,
    CALM,
    FAR,
    FAR_ASKED,
    FAR_CANCELED,
    ONE_FILE,
    Setting,
    far_of_seed,
    of_seed,
)
from tests.simulation.shelves import SHELVES, Shelf, edited
from tests.simulation.world import World

_MEMORY = Path("/dev/shm")
"""Files of worlds live in memory where the system offers that: nobody cuts the power of a world."""

_BESIDE_THE_VENDOR = ("before completion", "after completion", "withdrawal", "start_call", "settle_call",
                      "record_inquiry", "close_call", "cancel_job", "put_control")  # fmt: skip
"""Parts of the names of points, where money is in somebody's hands."""
_BESIDE_THE_WIRE = ("POST", "GET", "PUT", "persist_submissions", "accept_submission", "record_send",
                    "put_control", "finish_job", "begin_deliveries", "keep_receipt", "settle_",
                    "record_control", "mark_processing")  # fmt: skip
"""Parts of the names of points, where one side knows what the other does not."""
_REQUESTS = ("before GET ", "before POST ", "before PUT ")
"""How the points begin at which a request goes out."""

MUTANT_SEEDS_MAX = 100
MUTANT_DRAWS = 8
SHUFFLED_DRAWS = 24


def play(setting: Setting, documents: Mapping[str, bytes] | None = None) -> Outcome:
    """One world, in a folder of its own, with the documents of its shelf or others."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None, prefix="dragoman-") as made:
        folder = Path(made)
        for name, data in (documents or SHELVES[setting.shelf]).items():
            (folder / name).write_bytes(data)
        with _quick():
            return World(setting, folder).play()


@functools.cache
def calm(shelf: Shelf = "usual", is_edited: bool = False, by_run: bool = False) -> Outcome:
    """What comes out where nothing goes wrong, of the documents as they are, or as somebody edits them."""
    documents = SHELVES[shelf]
    return play(
        replace(CALM, shelf=shelf, people=("run",) if by_run else ()),
        edited(documents) if is_edited else documents,
    )


def judged(setting: Setting) -> Outcome:
    """A world, and everything that is wrong with it."""
    people = setting.people
    return compared(play(setting), calm(setting.shelf, "edit" in people, "run" in people))


def exhaustive() -> Iterator[Setting]:
    """Every point of the calm world killed once, every commit and every call spoiled once in each way, and a
    process of two stopped before each commit until the other one has overtaken it. Then what comes after the
    first plan in the world of one file for all locales.
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
    yield from batches()
    yield from wires(FAR)
    yield from wires(FAR_ASKED, ("/jobs/…", "settle_event", "mark_processing"))
    yield from wires(FAR_CANCELED, ("PUT", "control", "cancel"))
    yield from writes_into_one_file()


def batches() -> Iterator[Setting]:
    """Of a world whose calls are batches, and of one that is canceled meanwhile: killed at each point beside
    the vendor or beside what is written of it, and each word of the vendor's lost once.
    """
    for world in (BATCHES, replace(BATCHES, people=("cancel",))):
        calm_one = play(world)
        for number, point in enumerate(calm_one.points, start=1):
            if any(name in point for name in _BESIDE_THE_VENDOR):
                yield world.struck(one("point", number, "kill"))
        for number in range(1, calm_one.places["call"] + 1):
            yield world.struck(one("call", number, "answer lost"))


def writes_into_one_file() -> Iterator[Setting]:
    """From its first plan on: every point killed once, every answer lost once, and a process of two stopped
    before each commit and before each call until the other one has overtaken it.
    """
    alone, pair = ONE_FILE, replace(ONE_FILE, processes=2)
    points = play(alone).points
    for number in range(points.index("before write_plan") + 1, len(points) + 1):
        yield alone.struck(one("point", number, "kill"))
    for number in range(1, play(alone).places["call"] + 1):
        yield alone.struck(one("call", number, "answer lost"))
    yield from stalls(pair, after="write_plan")
    yield from held_calls(pair)


def wires(world: Setting, names: Sequence[str] = ("",)) -> Iterator[Setting]:
    """Of a world whose engine is far: each request over the network spoiled once in each way, and each point
    beside one, or beside what is written of one, killed once; where `names` are given, only such as hold one.
    """
    points = play(world).points
    requests = [point for point in points if point.startswith(_REQUESTS)]
    for (number, request), kind in product(enumerate(requests, start=1), WIRE):
        if any(name in request for name in names):
            yield world.struck(one("wire", number, kind))
    for number, point in enumerate(points, start=1):
        if any(name in point for name in names) and any(name in point for name in _BESIDE_THE_WIRE):
            yield world.struck(one("point", number, "kill"))


def held_calls(setting: Setting) -> Iterator[Setting]:
    """A process of two stopped before each call until another has overtaken it."""
    for number in range(1, play(setting).places["call"] + 1):
        yield setting.struck(one("call", number, "pause"))


def stalls(setting: Setting, act: str = "", after: str = "") -> Iterator[Setting]:
    """The same world, one process stopped before each commit that begins with `act` (or with any) until
    another has overtaken it; from the first act `after` on, where one is named.
    """
    commits = _calm_commits(replace(setting, seed=0))
    for number, head in enumerate(commits, start=1):
        if act in ("", head) and number > (commits.index(after) if after else 0):
            yield setting.struck(one("commit", number, "pause"))


def _calm_commits(setting: Setting) -> Sequence[str]:
    """The first act of each commit, where nothing goes wrong."""
    if (known := str(setting)) not in _COMMITS:
        _COMMITS[known] = play(setting).commits
    return _COMMITS[known]


_COMMITS: dict[str, Sequence[str]] = {}


def seeds(first: int, count: int, far: bool = False) -> Iterator[Setting]:
    """The worlds of so many seeds; `far`: each with a far engine."""
    return map(far_of_seed if far else of_seed, range(first, first + count))


def hunted(settings: Iterable[Setting], goes_on: Callable[[], bool] = lambda: True) -> Iterator[Outcome]:
    """Play worlds one after the other, as long as it `goes_on`."""
    for setting in settings:
        if not goes_on():
            return
        yield judged(setting)


def caught(mutant: str) -> tuple[int, Outcome] | None:
    """In which world, and how, a planted mutant is caught; None where none catches it."""
    calm()
    calm(by_run=True)
    for count, setting in enumerate(worlds_for(mutant), start=1):
        with MUTANTS[mutant].plant():
            outcome = judged(setting)
        if outcome.problems:
            return count, outcome
    return None


def worlds_for(mutant: str) -> Iterator[Setting]:
    """Where a mutant is hunted: in its calm world, where processes overtake each other, and in seeds."""
    planted = MUTANTS[mutant]
    yield planted.world
    if planted.world.is_shuffled:
        yield from (replace(planted.world, seed=draw) for draw in range(SHUFFLED_DRAWS))
    if planted.world.far:
        yield from wires(planted.world)
    for draw, groups in product(range(MUTANT_DRAWS), (True, False)):
        pair = replace(planted.world, seed=draw, processes=2, groups=groups)
        if planted.overtaken_before:
            yield from stalls(pair, planted.overtaken_before)
        if planted.world.shelf == ONE_FILE.shelf:
            yield from held_calls(pair)
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
