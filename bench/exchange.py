"""The memory's files: how long a TMX and a CSV take into the memory and out of it, and in how much memory."""

from __future__ import annotations

from typing import Any

from bench.children import measured
from bench.measures import Spread, Table
from bench.places import folder, fresh

UNITS = 100_000
_KINDS = ("sqlite", "postgresql", "mariadb")


def bench(runs: int, scale: float) -> list[Table]:
    """Each file into a database of its own, and out again; a process for each."""
    count = int(UNITS * scale)
    told: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with folder() as place:
        size = measured("exchange_run", "make", place, count)["bytes"]
        for _ in range(runs):
            for kind in _KINDS:
                for file in ("m.tmx", "m.csv"):
                    with fresh(kind) as url:
                        run = measured("exchange_run", "time", url, place / file, count)
                        told.setdefault((kind, file), []).append(run)
    heads = ["database", "file", "in, CPU s", "in, peak MB more", "out, CPU s", "out, peak MB more"]
    names = ("in_cpu_seconds", "in_megabytes", "out_cpu_seconds", "out_megabytes")
    rows = [
        [kind, file, *[Spread(tuple(float(run[name]) for run in some)) for name in names]]
        for (kind, file), some in told.items()
    ]
    note = (
        f"The TMX has {size:,} bytes. In: checked, kept and made findable. Peak: resident memory "
        "of the process above what it had after one small file; SQLite's own page caches, 64 MB "
        "in all, are in it. CPU: without a server's."
    )
    return [Table(f"A memory of {count:,} units in files", heads, rows, note)]
