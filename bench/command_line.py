"""How long a person waits for the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench.measures import Spread, Table, ratio
from bench.places import folder

_LOCALES = "fr,de"
_UNWANTED = ("DRAGOMAN_", "OPENAI_", "PYTHONDONTWRITEBYTECODE")


def bench(runs: int, scale: float) -> list[Table]:
    """`dragoman --help` beside an empty Python, and the demo's translation with the embedded default.

    Modules are compiled already, as an installation leaves them.
    """
    command = str(Path(sys.executable).with_name("dragoman"))
    empty, asked, demo = [], [], []
    with folder() as compiled:
        _seconds([command, "--help"], Path.cwd(), compiled)
        _demo_seconds(command, compiled)
        for _ in range(runs):
            empty.append(_seconds([sys.executable, "-c", "pass"], Path.cwd(), compiled))
            asked.append(_seconds([command, "--help"], Path.cwd(), compiled))
            demo.append(_demo_seconds(command, compiled))
    python, ours, translated = Spread(tuple(empty)), Spread(tuple(asked)), Spread(tuple(demo))
    rows = [
        ["python -c pass", python, "1"],
        ["dragoman --help", ours, ratio(ours, python)],
        [f"dragoman translate examples --to {_LOCALES}", translated, ratio(translated, python)],
    ]
    return [Table("The command line", ["command", "seconds", "× python -c pass"], rows)]


def _demo_seconds(command: str, compiled: Path) -> float:
    """The demo in a fresh working tree, its database made anew."""
    with folder() as place:
        shutil.copytree("examples", place / "examples")
        asked = ["--to", _LOCALES, "--out", "build/{path}.{locale}{ext}", "--provider", "pseudo"]
        return _seconds([command, "translate", "examples", *asked], place, compiled)


def _seconds(command: list[str], place: Path, compiled: Path) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_UNWANTED)}
    environment["PYTHONPYCACHEPREFIX"] = str(compiled)
    began = time.perf_counter()
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}{done.stdout}")
    return took
