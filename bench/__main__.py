"""`python -m bench [name…] [--runs 3] [--scale 1.0]`: measure, and print Markdown tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from bench import (
    admission,
    catalogues,
    command_line,
    exchange,
    fairness,
    growth,
    memory,
    saturation,
    status,
    whole_path,
)
from bench.measures import Table, machine, weather

BENCHES: Mapping[str, Callable[[int, float], list[Table]]] = {
    "whole_path": whole_path.bench,
    "saturation": saturation.bench,
    "fairness": fairness.bench,
    "admission": admission.bench,
    "command_line": command_line.bench,
    "catalogues": catalogues.bench,
    "memory": memory.bench,
    "exchange": exchange.bench,
    "status": status.bench,
    "growth": growth.bench,
}


def main() -> None:
    """Measure what is named, everything by default."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHES, []], metavar="name", help=", ".join(BENCHES))
    parser.add_argument("--runs", type=int, default=3, help="how often each is measured (3)")
    parser.add_argument("--scale", type=float, default=1.0, help="more or less work a run than usual (1.0)")
    asked = parser.parse_args()
    print(machine())
    for name in asked.names or BENCHES:
        before = weather()
        tables = BENCHES[name](asked.runs, asked.scale)
        print(f"\n## {name}\n\nWeather before: {before}; after: {weather()}; {asked.runs} runs.")
        for table in tables:
            print(f"\n{table}", flush=True)


if __name__ == "__main__":
    main()
