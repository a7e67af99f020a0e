"""The memory: exact look-ups beside raw SQLite, texts that are alike beside rapidfuzz over all of them."""

from __future__ import annotations

from typing import Any

from bench.children import measured
from bench.measures import Spread, Table, ratio
from bench.places import fresh

SEGMENTS = 100_000
_KINDS = ("sqlite", "postgresql", "mariadb")


def bench(runs: int, scale: float) -> list[Table]:
    """Exact and fuzzy, in one process and database a run; what is compared runs side by side."""
    count = int(SEGMENTS * scale)
    told: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _KINDS}
    for _ in range(runs):
        for kind, runs_of_kind in told.items():
            with fresh(kind) as url:
                runs_of_kind.append(measured("memory_run", url, count))
    return [_exact(told, count), _fuzzy(told, count)]


def _exact(told: dict[str, list[dict[str, Any]]], count: int) -> Table:
    rows = []
    for kind, runs in told.items():
        ours, raw = _spread(runs, "exact_per_second"), _spread(runs, "raw_per_second")
        times = ratio(ours, raw) if kind == "sqlite" else ""
        cpu = [_spread(runs, f"{name}_per_cpu_second") for name in ("exact", "raw")]
        row = [kind, ours, raw if kind == "sqlite" else "", times, _spread(runs, "reads_per_second")]
        rows.append([*row, cpu[0], cpu[1] if kind == "sqlite" else ""])
    heads = [
        "database",
        "look-ups/s, batches of 50",
        "sqlite3, same rows",
        "× sqlite3",
        "one read a batch",
        "look-ups per CPU second",
        "sqlite3 per CPU second",
    ]
    note = (
        "Look-ups of texts that are there, origin and basis with them; many batches in one read, as a job "
        "does it, and one read (a thread's turn) for each batch. CPU: by the time that the process used, "
        "which a busy machine stretches less; a server's own is not in it."
    )
    return Table(f"Exact look-ups among {count:,} translations", heads, rows, note)


def _fuzzy(told: dict[str, list[dict[str, Any]]], count: int) -> Table:
    rows = []
    for kind, runs in told.items():
        ours, brute = _spread(runs, "fuzzy_p50_cpu_ms"), _spread(runs, "brute_p50_cpu_ms")
        rows.append(
            [
                kind,
                _spread(runs, "fuzzy_p50_ms"),
                _spread(runs, "fuzzy_p95_ms"),
                ours,
                _spread(runs, "fuzzy_p95_cpu_ms"),
                _spread(runs, "fuzzy_page_cpu_ms"),
                brute,
                ratio(ours, brute),
                _spread(runs, "recall"),
                _spread(runs, "index_cpu_seconds"),
                _spread(runs, "index_seconds"),
            ]
        )
    heads = [
        "database",
        "p50 ms",
        "p95 ms",
        "p50 CPU ms",
        "p95 CPU ms",
        "CPU ms in pages of 50",
        "rapidfuzz over all, p50 CPU ms",
        "CPU × rapidfuzz",
        "recall",
        "index, CPU s",
        "index, s",
    ]
    note = (
        "Real English sentences; of the queries four fifths are sentences of the memory with one to three "
        "words changed, half of these with two to four typos besides, the rest are new. Recall: of the "
        "queries for which rapidfuzz finds a text of 75 % or more, how many find one here. Our CPU is this "
        "process's, without a server's."
    )
    return Table(f"Alike by 75 % or more, the best of {count:,}", heads, rows, note)


def _spread(runs: list[dict[str, Any]], name: str) -> Spread:
    return Spread(tuple(float(run[name]) for run in runs))
