"""Rows of `results` and `entries`: what was translated, and what we know of every target text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.identity import key_hash
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_RESULTS, _ENTRIES = tables.results, tables.entries


def replace_results(tx: Tx, rows: Sequence[dict[str, Any]]) -> None:
    """Write results; a later generation replaces only the fields that it asked for."""
    by_intent: dict[str, list[str]] = {}
    for row in rows:
        by_intent.setdefault(row["intent_id"], []).append(row["key_hash"])
    for intent_id, hashes in by_intent.items():
        tx.touched(
            sa.delete(_RESULTS).where(_RESULTS.c.intent_id == intent_id, _RESULTS.c.key_hash.in_(hashes))
        )
    if rows:
        tx.insert(_RESULTS, rows)


def results(tx: Tx, intent_ids: Sequence[str]) -> list[Row]:
    """All results of these intents."""
    return tx.all(sa.select(_RESULTS).where(_RESULTS.c.intent_id.in_(list(intent_ids))))


def failed_keys(tx: Tx, intent_ids: Sequence[str]) -> list[Row]:
    """The results that are failures."""
    return tx.all(
        sa.select(_RESULTS).where(_RESULTS.c.intent_id.in_(list(intent_ids)), _RESULTS.c.code != "")
    )


def tally(tx: Tx, intent_id: str) -> dict[str, int]:
    """How the fields of an intent ended: failed, via memory, via ai, passed through."""
    rows = tx.all(
        sa.select(_RESULTS.c.via, _RESULTS.c.code, sa.func.count().label("number"))
        .where(_RESULTS.c.intent_id == intent_id)
        .group_by(_RESULTS.c.via, _RESULTS.c.code)
    )
    good = {
        via: sum(row.number for row in rows if not row.code and row.via == via)
        for via in ("memory", "ai", "passed")
    }
    return {
        "fields_total": sum(row.number for row in rows),
        "fields_failed": sum(row.number for row in rows if row.code),
        "via_memory": good["memory"],
        "via_ai": good["ai"],
        "passed_through": good["passed"],
    }


def entries(tx: Tx, project_id: str, pairs: Iterable[tuple[str, str]]) -> list[Row]:
    """What is known of the targets of these (document, locale) pairs."""
    wanted = [(key_hash(document), locale) for document, locale in pairs]
    documents = sorted({document for document, _ in wanted})
    locales = sorted({locale for _, locale in wanted})
    rows = tx.all(
        sa.select(_ENTRIES).where(
            _ENTRIES.c.project_id == project_id,
            _ENTRIES.c.document_hash.in_(documents),
            _ENTRIES.c.locale.in_(locales),
        )
    )
    asked = set(wanted)
    return [row for row in rows if (row.document_hash, row.locale) in asked]


def add_seen(tx: Tx, rows: Sequence[dict[str, Any]]) -> None:
    """Entries for target texts met for the first time (origin `imported`); known ones stay as they are."""
    if rows:
        tx.insert_new(_ENTRIES, rows, ("project_id", "document_hash", "locale", "key_hash"))
