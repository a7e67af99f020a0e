"""Rows of `cursors`: how far a walk over many rows has come, so that later ones have their turn."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.store.schema import effects as tables
from dragoman.store.transaction import Tx

_CURSORS = tables.cursors


def value(tx: Tx, name: str) -> str:
    """Where the walk stands; empty at its beginning."""
    return str(tx.scalar(sa.select(_CURSORS.c.value).where(_CURSORS.c.name == name)) or "")


def move(tx: Tx, name: str, place: str) -> None:
    """The walk goes on from here; empty is its beginning."""
    row = {"name": name, "value": place, "updated_at": tx.now}
    tx.upsert(_CURSORS, row, ("name",), ("value", "updated_at"))
