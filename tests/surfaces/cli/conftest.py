"""A desk for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surfaces.cli.desk import Desk, sit_down


@pytest.fixture
def desk(tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """An empty working tree and a fresh SQLite file outside of it."""
    return sit_down(tmp_path / "tree", sqlite_url, monkeypatch)
