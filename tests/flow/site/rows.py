"""Looks at rows, and moves of time, for tests of the site."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.store.schema import site as tables
from dragoman.store.transaction import Tx


def intent_count(tx: Tx, manifest_id: str) -> int:
    """How many intents a manifest has."""
    where = tables.intents.c.manifest_id == manifest_id
    return int(tx.scalar(sa.select(sa.func.count().label("number")).where(where)))


def make_inquiries_due(tx: Tx) -> None:
    """As if a minute had passed for every accepted submission."""
    tx.touched(sa.update(tables.submissions).values(reconcile_at=tx.now))
