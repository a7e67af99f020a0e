"""Rows of `history`: append-only transitions of intents, and the audit of what people did."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dragoman.kernel.errors import sanitize
from dragoman.machines.tables import INTENT
from dragoman.model.intents import DueIntent
from dragoman.store.schema import effects as tables
from dragoman.store.transaction import Row, Tx

_FACTS = ("remote_job_id", "last_event_sequence", "next_attempt_at")
"""What a move tells beside states and counts: references and times, never texts."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that somebody did to one subject."""

    workspace: str
    kind: str
    subject: str
    action: str
    before: str = ""
    after: str = ""
    actor: str = ""
    generation: int = 0
    attempt: int = 0
    code: str = ""
    message: str = ""
    correlation_id: str = ""


def append(tx: Tx, entries: Iterable[Entry]) -> None:
    """Write entries down; nothing ever changes or removes them but retention."""
    rows = [
        {
            "id": tx.new_id(),
            "workspace": entry.workspace,
            "kind": entry.kind,
            "subject": entry.subject,
            "action": entry.action,
            "before": entry.before,
            "after": entry.after,
            "actor": entry.actor,
            "generation": entry.generation,
            "attempt": entry.attempt,
            "code": entry.code,
            "message": sanitize(entry.message),
            "correlation_id": entry.correlation_id,
            "at": tx.now,
        }
        for entry in entries
    ]
    if rows:
        tx.insert(tables.history, rows)


def of_moves(
    tx: Tx, seen: Sequence[Row | DueIntent], event: str, values: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Append one row an intent that moved by `event`: as it was seen, and with what its move wrote."""
    facts = {name: values[name] for name in _FACTS if values.get(name) is not None}
    told = json.dumps(facts, separators=(",", ":")) if facts else None
    rows = [
        {
            "id": tx.new_id(),
            "workspace": one.workspace,
            "kind": "intent",
            "subject": one.id,
            "action": event,
            "before": one.state,
            "after": INTENT.next(one.state, event),
            "generation": values.get("generation", one.generation),
            "attempt": values.get("attempt_count", one.attempt_count),
            "generation_attempt": values.get("generation_attempt_count", one.generation_attempt_count),
            "submission_id": one.submission_id,
            "code": values.get("error_code") or "",
            "message": values.get("error_message") or "",
            "metadata": told,
            "correlation_id": one.manifest_id,
            "at": tx.now,
        }
        for one in seen
    ]
    tx.insert(tables.history, rows)
