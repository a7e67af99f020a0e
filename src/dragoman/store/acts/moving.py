"""How intents move: from what their mover saw, and into history. No act but through here moves one.

Who calls this has locked the shards first and recounts them afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.kernel.errors import CODES, sanitize
from dragoman.model.intents import DueIntent, Preparation
from dragoman.store.rows import history, intents
from dragoman.store.transaction import Row, Tx


def move(tx: Tx, seen: Iterable[Row | DueIntent], event: str, **values: Any) -> None:
    """Move intents by one event, as they were seen, and append that to their history.

    Raises `LeaseLost` where one of them has moved on since: then nothing may be written.
    """
    moved = list(seen)
    if "error_message" in values:
        values["error_message"] = sanitize(values["error_message"] or "") or None
    intents.move(tx, moved, event, **values)
    history.of_moves(tx, moved, event, values)


def prepare(tx: Tx, outcomes: Sequence[Preparation]) -> None:
    """Give intents their envelopes. Raises `LeaseLost` like `move`."""
    intents.prepare(tx, outcomes)
    history.of_moves(tx, [outcome.intent for outcome in outcomes], "prepare")


def reopen(tx: Tx, seen: Sequence[Row]) -> None:
    """Open a new generation of failed intents. Raises `LeaseLost` like `move`."""
    intents.reopen(tx, seen)
    for generation in sorted({row.generation for row in seen}):
        alike = [row for row in seen if row.generation == generation]
        fresh = {"generation": generation + 1, "generation_attempt_count": 0}
        history.of_moves(tx, alike, "retry", fresh)


def refuse(tx: Tx, intent: Row | DueIntent, code: str, message: str) -> None:
    """Fail one intent with a code. Raises `LeaseLost` like `move`."""
    move(
        tx,
        [intent],
        "refuse",
        error_code=code,
        error_message=message,
        retryable=CODES[code].retryable,
        attempt_count=intent.attempt_count + 1,
        generation_attempt_count=intent.generation_attempt_count + 1,
    )
