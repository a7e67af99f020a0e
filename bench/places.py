"""Databases for one measurement each: fresh, of random name, dropped at the end."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dragoman.wiring.settings import FILE
from tests.doubles.databases import ServerDatabase, SqliteFiles


@contextlib.contextmanager
def fresh(kind: str) -> Iterator[str]:
    """The URL of an empty database with all our tables."""
    with folder() as place:
        if kind == "sqlite":
            yield SqliteFiles(place).fresh(place)
            return
        database = ServerDatabase(kind)
        try:
            yield database.fresh(place)
        finally:
            database.drop()


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A project root on the disk that the working tree is on; temporary folders may lie in memory."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as name:
        Path(name, FILE).touch()
        yield Path(name)
