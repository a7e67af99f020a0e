"""Which schema this program speaks, and how a database's version compares with it. Imports no Alembic."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from dragoman.kernel.errors import StoreError

VERSION_TABLE = "alembic_version"
DIRECTORY = Path(__file__).with_name("migrations")
_FILE = re.compile(r"r(\d{4})_\w+\.py")

Standing = Literal["current", "older", "newer"]


def head() -> str:
    """The newest revision of this program: four digits, `0000` where there is none."""
    found = [match[1] for path in (DIRECTORY / "versions").iterdir() if (match := _FILE.fullmatch(path.name))]
    return max(found, default="0000")


def standing(version: str | None) -> Standing:
    """How a database of this version stands to the program; None is a database without tables of ours."""
    if version == head():
        return "current"
    return "newer" if version is not None and version > head() else "older"


def refuse_other(version: str | None, place: str) -> None:
    """Raise `StoreError` unless the database speaks this program's schema."""
    match standing(version):
        case "newer":
            raise StoreError(
                f"the database at {place} has schema {version}, this program knows {head()}", "database_newer"
            )
        case "older":
            raise StoreError(
                f"the database at {place} has schema {version or 'none'}, {head()} is needed",
                "schema_unavailable",
            )
