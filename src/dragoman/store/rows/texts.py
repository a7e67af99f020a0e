"""Rows of `results` and `entries`: what was translated, and what we know of every target text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.identity import key_hash
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_RESULTS, _ENTRIES = tables.results, tables.entries

_OF_INTENTS = sa.select(_RESULTS).where(_RESULTS.c.intent_id.in_(sa.bindparam("intents", expanding=True)))
_ENTRIES_OF = sa.select(_ENTRIES).where(
    _ENTRIES.c.project_id == sa.bindparam("project"),
    _ENTRIES.c.document_hash.in_(sa.bindparam("documents", expanding=True)),
    _ENTRIES.c.locale.in_(sa.bindparam("locales", expanding=True)),
)
_GOOD = {"memory": "via_memory", "ai": "via_ai", "passed": "passed_through"}
"""Whence a field's text came → the count of an intent that it belongs to."""
_TALLY = ("fields_total", "fields_failed", *_GOOD.values(), "in_review")


def replace_results(tx: Tx, rows: Sequence[dict[str, Any]]) -> None:
    """Write results; a later generation replaces only the fields that it asked for."""
    if not rows:
        return
    by_intent: dict[str, list[str]] = {}
    for row in rows:
        by_intent.setdefault(row["intent_id"], []).append(row["key_hash"])
    for intent_id in _with_results(tx, list(by_intent)):
        hashes = by_intent[intent_id]
        tx.touched(
            sa.delete(_RESULTS).where(_RESULTS.c.intent_id == intent_id, _RESULTS.c.key_hash.in_(hashes))
        )
    tx.insert(_RESULTS, rows)


def _with_results(tx: Tx, intent_ids: Sequence[str]) -> list[str]:
    """Which of these intents have results already, of an earlier generation or part."""
    rows = tx.all(sa.select(_RESULTS.c.intent_id).distinct().where(_RESULTS.c.intent_id.in_(intent_ids)))
    return [row.intent_id for row in rows]


def results(tx: Tx, intent_ids: Sequence[str]) -> list[Row]:
    """All results of these intents."""
    return tx.all(_OF_INTENTS, {"intents": list(intent_ids)})


def failed_keys(tx: Tx, intent_ids: Sequence[str]) -> list[Row]:
    """The results that are failures."""
    return tx.all(
        sa.select(_RESULTS).where(_RESULTS.c.intent_id.in_(list(intent_ids)), _RESULTS.c.code != "")
    )


def tallies(tx: Tx, intent_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """How the fields of each intent ended: failed, via memory, via ai, passed through; and in review."""
    ended = (_RESULTS.c.intent_id, _RESULTS.c.via, _RESULTS.c.code, _RESULTS.c.review)
    rows = tx.all(
        sa.select(*ended, sa.func.count().label("number"))
        .where(_RESULTS.c.intent_id.in_(intent_ids))
        .group_by(*ended)
    )
    found = {intent_id: dict.fromkeys(_TALLY, 0) for intent_id in intent_ids}
    for row in rows:
        tally = found[row.intent_id]
        tally["fields_total"] += row.number
        name = "fields_failed" if row.code else _GOOD.get(row.via)
        if name:
            tally[name] += row.number
        if row.review:
            tally["in_review"] += row.number
    return found


def entries(tx: Tx, project_id: str, pairs: Iterable[tuple[str, str]]) -> list[Row]:
    """What is known of the targets of these (document, locale) pairs."""
    wanted = [(key_hash(document), locale) for document, locale in pairs]
    documents = sorted({document for document, _ in wanted})
    locales = sorted({locale for _, locale in wanted})
    rows = tx.all(_ENTRIES_OF, {"project": project_id, "documents": documents, "locales": locales})
    asked = set(wanted)
    return [row for row in rows if (row.document_hash, row.locale) in asked]


def add_seen(tx: Tx, rows: Sequence[dict[str, Any]]) -> None:
    """Entries for target texts met for the first time (origin `imported`); known ones stay as they are."""
    if rows:
        tx.insert_new(_ENTRIES, rows, ("project_id", "document_hash", "locale", "key_hash"))
