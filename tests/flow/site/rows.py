"""Looks at rows, and moves of time, for tests of the site."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.store.acts import moving
from dragoman.store.rows import shards
from dragoman.store.schema import effects, publishing
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx


def intent_count(tx: Tx, manifest_id: str) -> int:
    """How many intents a manifest has."""
    where = tables.intents.c.manifest_id == manifest_id
    return int(tx.scalar(sa.select(sa.func.count().label("number")).where(where)))


def make_inquiries_due(tx: Tx) -> None:
    """As if a minute had passed for every accepted submission."""
    tx.touched(sa.update(tables.submissions).values(reconcile_at=tx.now))


def make_telling_due(tx: Tx) -> None:
    """As if half a minute had passed for every manifest with a decision that is not told everywhere."""
    waiting = tables.manifests.c.control_due_at.is_not(None)
    tx.touched(sa.update(tables.manifests).where(waiting).values(control_due_at=tx.now))


def publications_asked(tx: Tx, manifest_id: str) -> list[tuple[str, str]]:
    """State and code of every request to publish something of a manifest, in the order of their making."""
    table = publishing.publication_requests
    mine = sa.select(table).where(table.c.manifest_id == manifest_id).order_by(table.c.created_at, table.c.id)
    return [(row.state, row.error_code or "") for row in tx.all(mine)]


def attempts_of(tx: Tx, correlation_id: str) -> list[str]:
    """Outcomes of all attempts made for one manifest, in their order."""
    table = effects.attempts
    mine = sa.select(table.c.outcome).where(table.c.correlation_id == correlation_id)
    return [row.outcome for row in tx.all(mine.order_by(table.c.started_at, table.c.number))]


def manifest_row(tx: Tx, manifest_id: str) -> Row:
    """The manifest as it stands."""
    [row] = tx.all(sa.select(tables.manifests).where(tables.manifests.c.id == manifest_id))
    return row


def envelope_of(tx: Tx, manifest_id: str) -> str | None:
    """What the one intent of a manifest is prepared with."""
    table = tables.intents
    found: str | None = tx.scalar(sa.select(table.c.prepared).where(table.c.manifest_id == manifest_id))
    return found


def states_of(tx: Tx, manifest_id: str) -> dict[tuple[str, str], tuple[str, str]]:
    """State and code of every pair of a manifest."""
    table = tables.intents
    rows = tx.all(sa.select(table).where(table.c.manifest_id == manifest_id))
    return {(row.document, row.locale): (row.state, row.error_code or "") for row in rows}


def all_pairs(tx: Tx, manifest_id: str) -> list[tuple[str, str]]:
    """Every pair of a manifest, one entry an intent, sorted."""
    table = tables.intents
    rows = tx.all(sa.select(table.c.document, table.c.locale).where(table.c.manifest_id == manifest_id))
    return sorted((row.document, row.locale) for row in rows)


def make_listings_due(tx: Tx) -> None:
    """As if the wait after a failed listing were over."""
    waiting = tables.manifests.c.phase == "enumerating"
    tx.touched(sa.update(tables.manifests).where(waiting).values(next_attempt_at=tx.now))


def fail_pending(tx: Tx, manifest_id: str) -> None:
    """Let what waits to be prepared fail, as preparation does it."""
    table = tables.intents
    mine = sa.select(table).where(table.c.manifest_id == manifest_id, table.c.state == "pending")
    shards.lock(tx, manifest_id, [0])
    for row in tx.all(mine):
        moving.refuse(tx, row, "backend_unavailable", "nobody listens")
    shards.recount(tx, manifest_id, [0])


def fail_later(tx: Tx, manifest_id: str, document: str) -> None:
    """As if a document had failed a minute from now."""
    here = {"manifest_id": manifest_id, "document": document}
    assert tx.update(tables.intents, here, {"completed_at": tx.now + 60_000_000}) == 1


def generations_of(tx: Tx, manifest_id: str) -> dict[int, list[str]]:
    """The documents of a manifest by the generation in which they stand."""
    table = tables.intents
    rows = tx.all(sa.select(table).where(table.c.manifest_id == manifest_id).order_by(table.c.document))
    found: dict[int, list[str]] = {}
    for row in rows:
        found.setdefault(row.generation, []).append(row.document.removesuffix(".json"))
    return found


def age_lease(tx: Tx, manifest_id: str, age_seconds: int) -> None:
    """The lease of a manifest was taken so much earlier."""
    mine = tables.manifests.c.id == manifest_id
    earlier = tables.manifests.c.lease_expires_at - age_seconds * 1_000_000
    tx.touched(sa.update(tables.manifests).where(mine).values(lease_expires_at=earlier))


def intents_of(tx: Tx, manifest_id: str) -> list[Row]:
    """All intents of a manifest."""
    return tx.all(sa.select(tables.intents).where(tables.intents.c.manifest_id == manifest_id))
