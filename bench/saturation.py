"""Whether one process keeps a provider busy that takes 200 ms an answer, and what a call costs it."""

from __future__ import annotations

from typing import Any

from bench import documents
from bench.children import helper, measured
from bench.measures import Spread, Table, ratio
from bench.places import folder, fresh
from bench.provider_calls import FIELDS

ANSWER_SECONDS = 0.2
IN_FLIGHT = (50, 400)
_ROUNDS = 20
_ENGINE_CALLS = 1_000
_DATABASES = ("sqlite", "postgresql")


def bench(runs: int, scale: float) -> list[Table]:
    """The chat provider beside bare aiohttp on the same server; then the engine over it."""
    return [_provider(runs, scale), _engine(runs, scale), _processes(runs, scale)]


def _provider(runs: int, scale: float) -> Table:
    rows = []
    for in_flight in IN_FLIGHT:
        ideal = in_flight / ANSWER_SECONDS
        told: dict[str, list[dict[str, Any]]] = {"bare": [], "ours": []}
        for _ in range(runs):
            for kind, runs_of_kind in told.items():
                with helper("chat_double", ANSWER_SECONDS) as url:
                    calls = int(in_flight * _ROUNDS * scale)
                    runs_of_kind.append(measured("provider_calls", kind, url, in_flight, calls))
        bare = _share(told["bare"], ideal)
        for kind, name in (("bare", "bare aiohttp"), ("ours", "ChatProvider")):
            reached = _share(told[kind], ideal)
            row = [name, in_flight, f"{ideal:,.0f}", reached, ratio(reached, bare)]
            rows.append([*row, _spread(told[kind], "cpu_ms")])
    heads = ["client", "in flight", "ideal calls/s", "% of ideal", "× bare aiohttp", "CPU ms a call"]
    return Table(
        f"Provider calls, {ANSWER_SECONDS * 1e3:.0f} ms answers, {FIELDS} fields a call", heads, rows
    )


def _engine(runs: int, scale: float) -> Table:
    """Claims, ledger, provider, checks and rows: all that a call costs the engine."""
    rows = []
    calls = max(200, int(_ENGINE_CALLS * scale))
    for kind in _DATABASES:
        for in_flight in IN_FLIGHT:
            ideal = in_flight / ANSWER_SECONDS
            told = [_engine_run(kind, in_flight, calls) for _ in range(runs)]
            rows.append(
                [
                    kind,
                    in_flight,
                    f"{ideal:,.0f}",
                    _spread(told, "calls_per_second"),
                    _share(told, ideal),
                    _spread(told, "cpu_ms"),
                    _spread(told, "commits_per_call"),
                ]
            )
    heads = [
        "database",
        "in flight",
        "ideal calls/s",
        "calls/s",
        "% of ideal",
        "CPU ms a call",
        "commits a call",
    ]
    return Table(f"The engine over the same server, {calls:,} calls of {FIELDS} fields", heads, rows)


def _processes(runs: int, scale: float) -> Table:
    """Two engine processes on one database beside one, each new: what they compile at first counts."""
    rows = []
    calls = max(200, int(_ENGINE_CALLS * scale))
    for kind in _DATABASES:
        told = {
            count: [_engine_run(kind, IN_FLIGHT[0], calls, count) for _ in range(runs)] for count in (1, 2)
        }
        alone = _spread(told[1], "calls_per_second")
        for count, measures in told.items():
            reached = _spread(measures, "calls_per_second")
            rows.append([kind, count, reached, ratio(reached, alone), _spread(measures, "cpu_ms")])
    heads = ["database", "processes", "calls/s", "× one process", "CPU ms a call, of all"]
    return Table(f"Engine processes side by side, {IN_FLIGHT[0]} in flight together", heads, rows)


def _engine_run(kind: str, in_flight: int, calls: int, processes: int = 1) -> dict[str, Any]:
    with folder() as place, fresh(kind) as url, helper("chat_double", ANSWER_SECONDS) as base_url:
        documents.write(place, calls // len(documents.LOCALES), FIELDS)
        return measured("engine_run", url, place, base_url, in_flight, calls, processes)


def _share(told: list[dict[str, Any]], ideal: float) -> Spread:
    return Spread(tuple(run["calls_per_second"] / ideal * 100 for run in told))


def _spread(told: list[dict[str, Any]], name: str) -> Spread:
    return Spread(tuple(run[name] for run in told))
