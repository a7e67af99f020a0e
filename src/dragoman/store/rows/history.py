"""Rows of `history`: append-only transitions of intents, and the audit of what people did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dragoman.kernel.errors import sanitize
from dragoman.model.intents import DueIntent
from dragoman.store.schema import effects as tables
from dragoman.store.transaction import Row, Tx


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened to one subject."""

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


def of_intents(
    tx: Tx, intents: Iterable[DueIntent | Row], action: str, after: str, code: str = "", message: str = ""
) -> None:
    """Append one history row an intent."""
    append(
        tx,
        (
            Entry(
                workspace=intent.workspace,
                kind="intent",
                subject=intent.id,
                action=action,
                after=after,
                generation=intent.generation,
                attempt=intent.attempt_count,
                code=code,
                message=message,
                correlation_id=intent.manifest_id,
            )
            for intent in intents
        ),
    )
