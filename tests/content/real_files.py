"""Real files and cases beside the project: read where they are, never copied; absent, their tests skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("DRAGOMAN_SHARED", Path(__file__).parents[2].parent / "shared"))


def corpus(kind: str) -> list[object]:
    """A pytest parameter for each real file of a kind; one skipped parameter where there are none."""
    files = sorted((SHARED / "corpus" / kind).glob("*"))
    if not files:
        return [pytest.param(Path(), marks=pytest.mark.skip(reason=f"no corpus at {SHARED}"), id=kind)]
    return [pytest.param(file, id=file.name) for file in files]


def case(name: str, ending: str) -> tuple[bytes, bytes]:
    """Input and expected bytes of a public case; skips the test where the cases are absent."""
    folder = SHARED / "cases" / "formats"
    if not folder.is_dir():
        pytest.skip(f"no cases at {SHARED}")
    return (folder / f"{name}.in.{ending}").read_bytes(), (folder / f"{name}.expected.{ending}").read_bytes()
