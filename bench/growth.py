"""Whether an intent costs more in a large manifest than in a small one: one process, one after the other.

A first small manifest warms everything up and is not counted. Then manifests of growing size go the whole
path, each over documents of its own; what the earlier ones left in the tables stays.
"""

from __future__ import annotations

from bench import documents
from bench.children import measured
from bench.measures import Spread, Table, ratio
from bench.places import folder, fresh

_SIZES = (1_000, 20_000)
_CASES = (
    ("SQLite, published", "sqlite", "auto"),
    ("SQLite, not published", "sqlite", "none"),
    ("PostgreSQL, published", "postgresql", "auto"),
)


def bench(runs: int, scale: float) -> list[Table]:
    """CPU an intent and peak memory, by the size of the manifest."""
    sizes = [_SIZES[0], *(max(2 * _SIZES[0], round(size * scale)) for size in _SIZES[1:])]
    rows = []
    for name, kind, publish in _CASES:
        told = [_run(kind, publish, sizes) for _ in range(runs)]
        small = Spread(tuple(run[0]["cpu_ms"] for run in told))
        for place, size in enumerate(sizes):
            cpu = Spread(tuple(run[place]["cpu_ms"] for run in told))
            peak = Spread(tuple(run[place]["peak_megabytes"] for run in told))
            rows.append([name, f"{size:,}", cpu, ratio(cpu, small), peak])
    heads = ["", "intents", "CPU ms an intent", "× the small one", "peak MB"]
    return [Table("What an intent costs by the size of its manifest", heads, rows)]


def _run(kind: str, publish: str, sizes: list[int]) -> list[dict[str, float]]:
    with folder() as place, fresh(kind) as url:
        documents.write(place, (_SIZES[0] + sum(sizes)) // len(documents.LOCALES))
        counted: list[dict[str, float]] = measured(
            "growth_run", url, place, "--publish", publish, _SIZES[0], *sizes
        )["manifests"][1:]
        return counted
