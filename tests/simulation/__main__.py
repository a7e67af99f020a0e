"""The command: simulated worlds, so many or for so long.

python -m tests.simulation --seeds 200            the exhaustive pass, 200 seeds, every mutant
python -m tests.simulation --seeds 1 --seed 7     one seed again, with its whole story
python -m tests.simulation --strike point:85:kill the calm world, struck there; `--pair` for two processes,
                                                  `--one-file` for the world of one file for all locales
python -m tests.simulation --seeds 200 --far      the same with a far engine in every one of the seeds
python -m tests.simulation --exhaustive           that pass alone; `--mutants` likewise
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tests.simulation import mutants
from tests.simulation.faults import one
from tests.simulation.hunt import caught, exhaustive, hunted, seeds
from tests.simulation.recording import Outcome
from tests.simulation.settings import BATCHES, CALM, ONE_FILE, Setting, far_of_seed, of_seed

STORY_LINES_MAX = 120
PROBLEMS_RETOLD_MAX = 5
RETOLD_CHARACTERS_MAX = 600
"""Of a problem's end: a traceback says there what went wrong."""
FRESH_SEEDS = 10**9
EXHAUSTIVE_SHARE = 0.5
"""Of a bounded time: so that fresh seeds have their turn on a slow machine, too."""


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 where a world had a problem, or a mutant got away."""
    asked = _asked(arguments)
    started = time.monotonic()

    def until(share: float) -> Callable[[], bool]:
        """Whether the time that a pass may use, as a share of all, is not over."""
        return lambda: not asked.seconds or time.monotonic() - started < asked.seconds * share

    if asked.strike:
        place, number, kind = asked.strike.split(":")
        calm = ONE_FILE if asked.one_file else BATCHES if asked.batches else CALM
        calm = replace(calm, far=asked.far or asked.far_asked, asks_only=asked.far_asked)
        calm = replace(calm, people=(*calm.people, "cancel")) if asked.cancel else calm
        calm = replace(calm, processes=2 if asked.pair else 1, seed=asked.seed or 0)
        return _replay(calm.struck(one(place, int(number), kind)))
    if asked.seed is not None and asked.seeds == 1:
        return _replay((far_of_seed if asked.far else of_seed)(asked.seed))
    every = not (asked.exhaustive or asked.mutants)
    wrong: list[Outcome] = []
    free: list[str] = []
    if asked.exhaustive or every:
        share = EXHAUSTIVE_SHARE if every else 1.0
        wrong += _pass("every point, commit and call", exhaustive(), until(share))
    if every:
        first = asked.seed or (time.time_ns() % FRESH_SEEDS if asked.fresh else 0)
        wrong += _pass(f"seeds from {first}", seeds(first, asked.seeds, asked.far), until(1.0))
    if asked.mutants or every:
        free += _mutants(whole=asked.mutants)
    for outcome in wrong:
        print("\n".join(_retold(outcome)))
    for name in free:
        print(f"no world has caught the mutant: {name}")
    return 1 if wrong or free else 0


def _asked(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="how many seeds")
    parser.add_argument("--seed", type=int, metavar="S", help="the first of them; with --seeds 1 it is told")
    parser.add_argument("--fresh", action="store_true", help="begin with a seed that nobody has played yet")
    parser.add_argument("--seconds", type=float, metavar="T", help="start no further world after so long")
    parser.add_argument("--exhaustive", action="store_true", help="the pass over every point alone")
    parser.add_argument("--mutants", action="store_true", help="the hunt for the planted mutants alone")
    parser.add_argument(
        "--strike", metavar="PLACE:NUMBER:KIND", help="one fault in the calm world, told whole"
    )
    parser.add_argument("--pair", action="store_true", help="with --strike: two processes")
    parser.add_argument("--one-file", action="store_true", help="with --strike: one file for all locales")
    parser.add_argument("--batches", action="store_true", help="with --strike: every call is a batch")
    parser.add_argument("--cancel", action="store_true", help="with --strike: somebody cancels meanwhile")
    parser.add_argument("--far", action="store_true", help="with a far engine, in seeds or in the strike")
    parser.add_argument("--far-asked", action="store_true", help="with --strike: one that calls nobody back")
    return parser.parse_args(arguments)


def _pass(name: str, settings: Iterable[Setting], goes_on: Callable[[], bool]) -> list[Outcome]:
    """Play all; stop at the first problem and tell its story. Gives the world that is wrong, if one is."""
    started, count = time.monotonic(), 0
    for outcome in hunted(settings, goes_on):
        count += 1
        if outcome.problems:
            print(f"{name}: world {count} is wrong")
            print("\n".join(_told(outcome)))
            return [outcome]
    seconds = time.monotonic() - started
    print(f"{name}: {count} worlds are right, {seconds:.0f} s")
    return []


def _mutants(whole: bool) -> list[str]:
    """Plant each mutant, and tell in which world it was caught, `whole` or in a line. Gives those that none
    catches: each is a hole in the checks.
    """
    free = []
    for name in mutants.ALL:
        started = time.monotonic()
        found = caught(name)
        seconds = time.monotonic() - started
        if found is None:
            free.append(name)
            print(f"mutant, {name}: NOT CAUGHT, {seconds:.0f} s")
            continue
        worlds, outcome = found
        print(f"mutant, {name}: caught in world {worlds}, {seconds:.1f} s")
        if whole:
            print(f"    {outcome.setting}\n    {outcome.problems[0].splitlines()[0][:300]}")
    return free


def _replay(setting: Setting) -> int:
    outcome = next(iter(hunted([setting])))
    print("\n".join(_told(outcome, whole=True)))
    return 1 if outcome.problems else 0


def _told(outcome: Outcome, whole: bool = False) -> Iterator[str]:
    """A world as a person reads it."""
    yield str(outcome.setting)
    lines = outcome.story if whole else outcome.story[-STORY_LINES_MAX:]
    if len(lines) < len(outcome.story):
        yield f"    … {len(outcome.story) - len(lines)} lines before"
    yield from (f"    {line}" for line in lines)
    yield from (f"  ! {problem}" for problem in outcome.problems)
    yield _again(outcome.setting) if outcome.problems else "  everything is as it shall be"


def _retold(outcome: Outcome) -> Iterator[str]:
    """A wrong world once more, short: a journal may keep no more than its last lines."""
    yield f"wrong: {outcome.setting}"
    for problem in outcome.problems[:PROBLEMS_RETOLD_MAX]:
        head, _, rest = problem.partition("\n")
        yield "\n".join(filter(None, (f"  ! {head}", rest[-RETOLD_CHARACTERS_MAX:])))
    yield _again(outcome.setting)


def _again(setting: Setting) -> str:
    """The command that plays this world once more."""
    if setting.is_shuffled:
        far = " --far" if setting.far else ""
        return f"  again: python -m tests.simulation --seeds 1 --seed {setting.seed}{far}"
    [((place, number), kind)] = setting.plan.faults.items() or [(("point", 0), "kill")]
    more = " --pair" if setting.processes > 1 else ""
    more += " --one-file" if setting.shelf == ONE_FILE.shelf and not setting.batched else ""
    more += " --batches" if setting.batched else ""
    more += " --far-asked" if setting.asks_only else " --far" if setting.far else ""
    more += f" --seed {setting.seed}" if setting.seed else ""
    more += " --cancel" if "cancel" in setting.people else ""
    return f"  again: python -m tests.simulation --strike '{place}:{number}:{kind}'{more}"


if __name__ == "__main__":
    sys.exit(main())
