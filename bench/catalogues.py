"""Reading and writing catalogues beside translate-toolkit, which lives in an environment of its own (GPL)."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from bench.measures import Spread, Table, ratio
from bench.places import folder

_TOOLKIT = Path("build/toolkit")
_PO_ENTRIES = 5_000
_JSON_BYTES = 1_000_000
_WORDS = (
    "file",
    "could",
    "not",
    "be",
    "opened",
    "because",
    "it",
    "is",
    "in",
    "use",
    "by",
    "another",
    "program",
)


def bench(runs: int, scale: float) -> list[Table]:
    """A PO of 5,000 entries and a JSON of 1 MB: read, and every text replaced and written."""
    python = _toolkit()
    rows = []
    with folder() as place:
        for path in (_po(place, scale), _json(place, scale)):
            ours, theirs = [], []
            for _ in range(runs):
                ours.append(_told(sys.executable, "bench/catalogues_ours.py", path))
                theirs.append(_told(python, "bench/catalogues_peer.py", path))
            rows += _rows(path, ours, theirs)
    note = (
        "Ours *written* is `Format.write` and encoding; *verified* is `documents.render`, which reads the "
        "result again by two parsers and proves the edits before anything is given out. The peer verifies "
        "nothing. Peak is what tracemalloc saw above the file's bytes and the translations, in its own run."
    )
    heads = ["file and act", "ours, CPU ms", "translate-toolkit, CPU ms", "× as fast"]
    return [Table("Catalogues", heads, rows, note)]


def _rows(path: Path, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> list[list[object]]:
    def spread(told: list[dict[str, Any]], *acts: str) -> Spread:
        return Spread(tuple(sum(one[act] for act in acts) for one in told))

    size = path.stat().st_size
    rows: list[list[object]] = []
    for label, mine, its in (
        ("read", ("read",), ("read",)),
        ("written", ("write",), ("write",)),
        ("read and written", ("read", "write"), ("read", "write")),
        ("read, written and verified", ("read", "verified"), ("read", "write")),
    ):
        one, other = spread(ours, *mine), spread(theirs, *its)
        rows.append([f"{path.name} ({size:,} bytes), {label}", one, other, ratio(other, one)])
    peak, peer = spread(ours, "peak"), spread(theirs, "peak")
    shown = [Spread(tuple(value / size for value in side.values)) for side in (peak, peer)]
    rows.append([f"{path.name}, peak ÷ file size", *shown, ""])
    return rows


def _toolkit() -> str:
    """The peer's Python; its environment is made once, under build/."""
    python = _TOOLKIT / "bin" / "python"
    if not python.exists():
        venv.create(_TOOLKIT, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "translate-toolkit"], check=True)
    return str(python)


def _told(python: str, script: str, path: Path) -> dict[str, Any]:
    done = subprocess.run([python, script, str(path)], stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _text(number: int) -> str:
    """A sentence of ten words; no two are equal."""
    return " ".join(_WORDS[(number * 7 + at * 3) % len(_WORDS)] for at in range(10)) + f" ({number})"


def _po(place: Path, scale: float) -> Path:
    path = place / "large.po"
    head = 'msgid ""\nmsgstr ""\n"Language: en\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    entries = (
        f'\n#. note {number}\n#: src/file{number % 97}.c:{number}\nmsgid "{_text(number)}"\nmsgstr ""\n'
        for number in range(int(_PO_ENTRIES * scale))
    )
    path.write_text(head + "".join(entries), "utf-8")
    return path


def _json(place: Path, scale: float) -> Path:
    path = place / "large.json"
    texts = {
        f"section{number // 50}.key{number}": _text(number) for number in range(int(_JSON_BYTES * scale / 95))
    }
    path.write_text(json.dumps(texts, indent=2) + "\n", "utf-8")
    return path
