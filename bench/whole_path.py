"""The whole path of many intents, beside a peer that does nothing with as many jobs, in the same run.

Ours: admitted in one request, expanded, prepared, submitted, accepted, translated by `pseudo` (which answers
at once), judged, delivered, settled and, where it says so, published with `dry-run:v1`; every row durable.
The peer: procrastinate claims and finishes jobs whose function returns at once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from bench import documents
from bench.children import measured
from bench.measures import Spread, Table, ratio
from bench.peer_queue import CONCURRENCY, drained_per_second
from bench.places import folder, fresh

_NOTHING = ("", "", "", "")
INTENTS = 2_000
JOBS = 2_000


class Case(NamedTuple):
    """One way to run the whole path."""

    name: str
    kind: str
    publish: str
    flags: tuple[str, ...] = ()


CASES = (
    Case("SQLite, published", "sqlite", "auto"),
    Case("SQLite, not published", "sqlite", "none"),
    Case("PostgreSQL, published", "postgresql", "auto"),
    Case("PostgreSQL, not published", "postgresql", "none"),
    Case("PostgreSQL, group commit, published", "postgresql", "auto", ("--group-commit",)),
    Case("PostgreSQL, group commit, not published", "postgresql", "none", ("--group-commit",)),
)


def bench(runs: int, scale: float) -> list[Table]:
    """Intents and jobs a second, commits per hundred intents, and what the acts cost."""
    intents, jobs = _whole_thousands(INTENTS * scale), _whole_thousands(JOBS * scale)
    peers: dict[int, list[float]] = {1: [], 2: []}
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for _ in range(runs):
        for processes, rates in peers.items():
            rates.append(drained_per_second(jobs, processes))
        for case in CASES:
            told[case.name].append(_run(case, intents))
    return [_rates(peers, told, intents, jobs), *(_acts(case, intents) for case in (CASES[0], CASES[2]))]


def _rates(
    peers: dict[int, list[float]], told: dict[str, list[dict[str, Any]]], intents: int, jobs: int
) -> Table:
    peer = {processes: Spread(tuple(rates)) for processes, rates in peers.items()}
    rows: list[list[object]] = [
        [f"procrastinate, processes: {processes}", rate, ratio(rate, peer[1]), *_NOTHING]
        for processes, rate in peer.items()
    ]
    for name, runs in told.items():
        rate = _spread(runs, "intents_per_second")
        rows.append(
            [
                name,
                rate,
                ratio(rate, peer[1]),
                _spread(runs, "cpu_ms_per_intent"),
                _spread(runs, "commits_per_hundred"),
                _spread(runs, "acts_per_hundred"),
                _spread(runs, "peak_megabytes"),
            ]
        )
    return Table(
        f"Whole path of {intents:,} one-field intents beside {jobs:,} jobs that do nothing",
        ["", "a second", "× peer", "CPU ms an intent", "commits per 100", "acts per 100", "peak MB"],
        rows,
        f"One process of ours; procrastinate with concurrency {CONCURRENCY} a process on PostgreSQL. The "
        "ratio is to procrastinate's one process. Commits are physical and changed rows; renewals are apart.",
    )


def _acts(case: Case, intents: int) -> Table:
    """One more run with a stopwatch in every act."""
    told = _run(case, intents, "--acts")
    rows = [
        [f"`{name}`", times, f"{cpu:,.0f}", f"{wall:,.0f}", f"{cpu / times:.2f}", f"{share:.1f}"]
        for name, times, cpu, wall, share in told["acts"]
    ]
    inside = sum(share for *_, share in told["acts"])
    return Table(
        f"What takes the time: {case.name}",
        ["act", "times", "CPU ms", "wall ms", "CPU ms each", "% of CPU"],
        rows,
        f"{told['cpu_ms_per_intent']:.2f} ms of CPU an intent; {inside:.0f} % of it in acts, the rest on the "
        "event loop and in threads that read, parse and check. Wall time waits for locks and for the GIL.",
    )


def _run(case: Case, intents: int, *more: str) -> dict[str, Any]:
    with folder() as place, fresh(case.kind) as url:
        documents.write(place, intents // len(documents.LOCALES))
        return measured("whole_run", url, place, intents, "--publish", case.publish, *case.flags, *more)


def _spread(runs: list[dict[str, Any]], name: str) -> Spread:
    return Spread(tuple(run[name] for run in runs))


def _whole_thousands(number: float) -> int:
    return max(1_000, round(number / 1_000) * 1_000)
