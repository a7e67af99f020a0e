"""Settled intents put into the store, looks at publications, and moves of time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.content.selection import text_hash
from dragoman.kernel.identity import key_hash
from dragoman.model.documents import Text
from dragoman.model.scopes import System
from dragoman.store.acts import publications, steering
from dragoman.store.rows import executions, manifests, requests, standings, texts
from dragoman.store.rows import intents as intent_rows
from dragoman.store.schema import effects as effect_tables
from dragoman.store.schema import publishing as tables
from dragoman.store.schema import site as site_tables
from dragoman.store.transaction import Row, Tx

PROJECT = "00000000-0000-7000-8000-00000000feed"

_TABLES = {
    "plans": tables.plans,
    "plan_steps": tables.plan_steps,
    "executions": tables.executions,
    "steps": tables.publication_steps,
    "commands": tables.publication_commands,
    "requests": tables.publication_requests,
    "snapshots": tables.snapshots,
    "attempts": effect_tables.attempts,
    "effects": effect_tables.effects,
    "history": effect_tables.history,
    "entries": site_tables.entries,
}


def add_manifest(tx: Tx, settings: Mapping[str, Any], workspace: str = "default") -> str:
    """A manifest with these frozen settings; its id."""
    manifest_id = tx.new_id()
    row = {
        "id": manifest_id,
        "workspace": workspace,
        "project_id": PROJECT,
        "actor": "mia",
        "request_id": manifest_id,
        "request_fingerprint": "0" * 64,
        "settings": json.dumps(dict(settings)),
        "phase": "open",
        "total": 0,
        "total_known": True,
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    tx.insert(site_tables.manifests, [row])
    return manifest_id


def end_manifest(tx: Tx, manifest_id: str) -> None:
    """As if its last intent had settled."""
    tx.update(site_tables.manifests, {"id": manifest_id}, {"phase": "ended", "completed_at": tx.now})


def set_clock_back(tx: Tx) -> None:
    """As if whoever asked for publications had a clock an hour behind."""
    asked = tables.publication_requests
    tx.touched(sa.update(asked).values(created_at=asked.c.created_at - 3_600_000_000))


def block(tx: Tx, manifest_id: str) -> dict[str, Any]:
    """The publication block of a manifest's status; its executions' counts are those of their steps."""
    manifest = manifests.find(tx, System(), manifest_id)
    assert manifest is not None
    assert standings.differences(tx, manifest_id) == []
    return publications.publication_of(tx, manifest)


def settle(
    tx: Tx,
    manifest_id: str,
    ordinal: int,
    document: str,
    locale: str,
    results: Mapping[str, tuple[Text, Text | None]],
) -> str:
    """One settled intent; `results` are source and translation by block key, None for a failed field."""
    intent_id = tx.new_id()
    failed = any(translation is None for _, translation in results.values())
    intent = {
        "id": intent_id,
        "workspace": "default",
        "manifest_id": manifest_id,
        "project_id": PROJECT,
        "shard": 0,
        "ordinal": ordinal,
        "document": document,
        "locale": locale,
        "pair_hash": intent_rows.active_key(manifest_id, document, locale),
        "state": "failed" if failed else "completed",
        "completed_at": tx.now,
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    tx.insert(site_tables.intents, [intent])
    put_results(tx, intent_id, results)
    return intent_id


def put_results(tx: Tx, intent_id: str, results: Mapping[str, tuple[Text, Text | None]]) -> None:
    """Results of one intent, as settlement writes them."""
    rows = [
        {
            "intent_id": intent_id,
            "key_hash": key_hash(key),
            "field_key": key,
            "source_hash": text_hash(source),
            "text": translation if isinstance(translation, str) else _forms(translation),
            "plural": not isinstance(source, str),
            "via": "ai",
            "generation": 1,
            "code": "checks_failed" if translation is None else "",
            "check_name": "",
            "message": "",
        }
        for key, (source, translation) in results.items()
    ]
    texts.replace_results(tx, rows)


def _forms(translation: Mapping[str, str] | None) -> str | None:
    return None if translation is None else json.dumps(dict(translation))


def reopen(tx: Tx, intent_id: str, state: str) -> None:
    """Move an intent, as retry and settlement do."""
    tx.touched(
        sa.update(site_tables.intents)
        .where(site_tables.intents.c.id == intent_id)
        .values(state=state, generation=site_tables.intents.c.generation + 1)
    )


def ask(tx: Tx, manifest_id: str, intent_ids: Sequence[str]) -> None:
    """A publication request, as settlement writes it."""
    manifest = tx.first(sa.select(site_tables.manifests).where(site_tables.manifests.c.id == manifest_id))
    assert manifest is not None
    assert requests.write(tx, manifest, intent_ids, asked=True)


def ask_for_all(tx: Tx, manifest_id: str) -> None:
    """The request of somebody who wants all published that has settled."""
    manifest = manifests.find(tx, System(), manifest_id)
    assert manifest is not None
    requests.write_for_all(tx, manifest)


def cancel(tx: Tx, manifest_id: str) -> None:
    """As its owner does."""
    steering.cancel_manifest(tx, System(), manifest_id, "mia")


def rows(tx: Tx, name: str) -> list[Row]:
    """All rows of a table, in the order of their keys."""
    table = _TABLES[name]
    return tx.all(sa.select(table).order_by(*table.primary_key.columns))


def forget_everything(tx: Tx) -> None:
    """Delete every row that publishing has made."""
    for table in _TABLES.values():
        tx.touched(sa.delete(table))


def put_in_state(tx: Tx, name: str, state: str) -> None:
    """Put every row of a table into a state."""
    tx.touched(sa.update(_TABLES[name]).values(state=state))


def tamper(tx: Tx) -> None:
    """Change what a frozen plan writes to."""
    tx.touched(sa.update(tables.plan_steps).values(target="elsewhere.json"))


def claim_at(tx: Tx, column: str, microseconds: int) -> int:
    """Claim commands so long before their due time, or their lease's end; how many were got."""
    tx.touched(sa.update(tables.publication_commands).values({column: tx.now + microseconds}))
    return len(executions.claim_commands(tx, "host/boot/7/7", 60, 5))


def put_off(tx: Tx, execution_id: str) -> None:
    """As if an execution were due in a while only."""
    tx.touched(
        sa.update(tables.publication_commands)
        .where(tables.publication_commands.c.execution_id == execution_id)
        .values(due_at=tx.now + 60_000_000)
    )


def make_due(tx: Tx) -> None:
    """As if the time of everything that waits had come."""
    for table, column in (
        (tables.publication_commands, "due_at"),
        (tables.publication_requests, "next_attempt_at"),
    ):
        tx.touched(sa.update(table).where(table.c[column].is_not(None)).values({column: tx.now}))


def end_leases(tx: Tx) -> None:
    """As if every holder had been gone for a while."""
    for table in (tables.publication_commands, tables.publication_requests):
        held = table.c.lease_expires_at.is_not(None)
        tx.touched(sa.update(table).where(held).values(lease_expires_at=tx.now - 1))


def select_otherwise(tx: Tx, intent_id: str) -> None:
    """As if its fields had been selected by another rule when it was prepared."""
    table = site_tables.intents
    tx.touched(sa.update(table).where(table.c.id == intent_id).values(selection_fingerprint="f" * 64))
