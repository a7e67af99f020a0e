"""Desks for whole runs: on SQLite, and on each of the three databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surfaces.cli.desk import Desk, sit_down


@pytest.fixture
def desk(tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """An empty working tree and a fresh SQLite file outside of it."""
    return sit_down(tmp_path / "tree", sqlite_url, monkeypatch)


@pytest.fixture
def any_desk(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The same, on each kind of database in turn."""
    return sit_down(tmp_path / "tree", database_url, monkeypatch)
