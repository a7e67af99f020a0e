"""What ten jobs of one workspace wait for, behind thousands of another's."""

from __future__ import annotations

from typing import Any

from bench.children import helper, measured
from bench.fairness_run import SMALL
from bench.measures import Spread, Table, ratio
from bench.places import folder, fresh

ANSWER_SECONDS = 0.1
_LARGE = 2_000
_DATABASES = ("sqlite", "postgresql")


def bench(runs: int, scale: float) -> list[Table]:
    """The small workspace alone, and behind the large one, in turn."""
    large, rows = max(100, int(_LARGE * scale)), []
    for kind in _DATABASES:
        alone, behind = [], []
        for _ in range(runs):
            alone.append(_run(kind, 0))
            behind.append(_run(kind, large))
        rows.append(
            [
                kind,
                _spread(alone, "all_seconds"),
                _spread(behind, "first_seconds"),
                _spread(behind, "all_seconds"),
                ratio(_spread(behind, "all_seconds"), _spread(alone, "all_seconds")),
                _spread(behind, "beside"),
            ]
        )
    heads = ["database", "alone, s", "first job, s", "all ten, s", "× alone", "jobs of the other meanwhile"]
    title = f"{SMALL} jobs of a small workspace behind {large:,} of a large one"
    note = f"One process, 4 jobs at a time, {ANSWER_SECONDS * 1e3:.0f} ms answers. Taking turns costs × 2."
    return [Table(title, heads, rows, note)]


def _run(kind: str, large: int) -> dict[str, Any]:
    with folder() as place, fresh(kind) as url, helper("chat_double", ANSWER_SECONDS) as base_url:
        return measured("fairness_run", url, place, base_url, large)


def _spread(told: list[dict[str, Any]], name: str) -> Spread:
    return Spread(tuple(run[name] for run in told))
