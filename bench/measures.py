"""What a measurement is written down as: spreads, tables, and the weather in which they were taken."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_WITNESSES = (
    "aiohttp",
    "fastapi",
    "procrastinate",
    "psycopg",
    "rfc8785",
    "sqlalchemy",
    "uvicorn",
)
_PROBES = 100
_PROBE_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Spread:
    """Several values of one measure."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    def __str__(self) -> str:
        """`median (min..max)`, with as many digits as the median deserves."""
        return f"{_short(self.median)} ({_short(min(self.values))}..{_short(max(self.values))})"


def ratio(ours: Spread, theirs: Spread) -> Spread:
    """Run by run: ours over theirs, measured side by side."""
    return Spread(tuple(one / other for one, other in zip(ours.values, theirs.values, strict=True)))


@dataclass(frozen=True, slots=True)
class Table:
    """A table in Markdown, and what must be known to read it."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""

    def __str__(self) -> str:
        """Markdown."""
        lines = [f"### {self.title}", ""]
        if self.note:
            lines += [self.note, ""]
        lines += [_line(self.heads), _line(["---"] * len(self.heads)), *map(_line, self.rows)]
        return "\n".join(lines)


def weather() -> str:
    """What an 8 KiB append with fdatasync costs now, median and 90th percentile in µs, and the load."""
    taken = []
    with tempfile.NamedTemporaryFile(dir=Path.cwd()) as file:
        for _ in range(_PROBES):
            file.write(b"x" * _PROBE_BYTES)
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - began) * 1e6)
    taken.sort()
    middle, late = taken[len(taken) // 2], taken[len(taken) * 9 // 10]
    return f"fdatasync {middle:.0f}/{late:.0f} µs, load {os.getloadavg()[0]:.1f}"


def machine() -> str:
    """Cores, Python and the versions of what is compared."""
    known = []
    for name in _WITNESSES:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            known.append(f"{name} missing")
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; " + ", ".join(
        known
    )


def _short(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _line(cells: Sequence[object]) -> str:
    return (
        "| " + " | ".join(str(cell) if not isinstance(cell, float) else _short(cell) for cell in cells) + " |"
    )
