"""Which schema this program speaks, and how a database's version compares with it. Imports no Alembic."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from dragoman.kernel.errors import StoreError

VERSION_TABLE = "alembic_version"
DIRECTORY = Path(__file__).with_name("migrations")
FLOOR_NAME = "schema_floor"
"""The row of `cursors` that says which older programs may go on working on a database's schema."""
_LAST_RELEASE = ""
"""The head of the release before this one, whose programs this schema still serves; none is released yet."""
_FILE = re.compile(r"r(\d{4})_\w+\.py")

Standing = Literal["current", "older", "newer"]


def head() -> str:
    """The newest revision of this program: four digits, `0000` where there is none."""
    found = [match[1] for path in (DIRECTORY / "versions").iterdir() if (match := _FILE.fullmatch(path.name))]
    return max(found, default="0000")


def floor() -> str:
    """The oldest head whose programs may work on this program's schema: it only adds to what they know."""
    return _LAST_RELEASE or head()


def standing(version: str | None, lowest: str = "") -> Standing:
    """How a database of this version stands to the program; None is a database without tables of ours.

    `lowest` is the floor that its migration wrote, '' for none: a newer schema that reaches down to this
    program is as good as its own, so that a release can be taken back after its migration.
    """
    if version == head():
        return "current"
    if version is None or version < head():
        return "older"
    return "current" if lowest and lowest <= head() else "newer"


def refuse_other(version: str | None, lowest: str, place: str) -> None:
    """Raise `StoreError` unless the database speaks this program's schema."""
    match standing(version, lowest):
        case "newer":
            raise StoreError(
                f"the database at {place} has schema {version}, this program knows {head()}", "database_newer"
            )
        case "older":
            raise StoreError(
                f"the database at {place} has schema {version or 'none'}, {head()} is needed",
                "schema_unavailable",
            )
