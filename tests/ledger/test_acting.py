"""The ledger alone: one begin, one send, one settle, whatever befalls it in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from dragoman.kernel import limits
from dragoman.kernel.errors import CommitUnknown, StoreError
from dragoman.ledger.acting import Ledger
from dragoman.model.contracts import Family
from dragoman.model.effects import Answer, Outgoing
from dragoman.store.database import Database

_SECOND = 1_000_000


class Books:
    """A database that notes what is run, and fails as told."""

    def __init__(self, *troubles: Exception) -> None:
        self.instant = 100 * _SECOND
        self.ran: list[str] = []
        self._troubles = list(troubles)

    def now(self) -> int:
        return self.instant

    async def run(self, act: Callable[..., Any], *args: Any) -> Any:
        self.ran.append(act.__name__)
        if act is settle and self._troubles:
            raise self._troubles.pop(0)
        return act(None, *args)


class Outside:
    """A family that counts its sends."""

    name, idempotency = "outside", "UNKNOWN"

    def __init__(self) -> None:
        self.sends = 0

    async def deliver(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        self.sends += 1
        return Answer("SUCCEEDED", b"paid")


def begin(tx: None, deadline_at: int) -> Outgoing:
    return Outgoing("attempt", "effect", "default", 1, "account", deadline_at, b"body")


def refuse(tx: None) -> str:
    return "not now"


def settle(tx: None, outgoing: Outgoing, answer: Answer) -> tuple[str, bytes | None]:
    return answer.outcome, answer.body


def ledger(books: Books, outside: Outside) -> Ledger:
    return Ledger(cast(Database, books), {"outside": cast(Family, outside)})


def test_what_the_beginning_refuses_is_never_sent() -> None:
    """[E-054, E-057]"""
    books, outside = Books(), Outside()
    assert asyncio.run(ledger(books, outside).act("outside", refuse, (), settle)) == "not now"
    assert (books.ran, outside.sends) == (["refuse"], 0)


def test_nothing_leaves_after_the_deadline_and_that_is_written_down() -> None:
    """[E-090]"""
    books, outside = Books(), Outside()
    came = asyncio.run(ledger(books, outside).act("outside", begin, (books.instant,), settle))
    assert came == ("NOT_STARTED", None)
    assert (books.ran, outside.sends) == (["begin", "settle"], 0)


def test_a_paid_answer_outlives_a_database_that_is_away_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """[E-008] it is sent once and settled when the database is back."""
    monkeypatch.setattr(
        "dragoman.ledger.acting.SETTLE_PAUSES_SECONDS", (0.0,) * len(limits.SETTLE_PAUSES_SECONDS)
    )
    books, outside = Books(StoreError("away"), StoreError("still away")), Outside()
    deadline_at = books.instant + 10 * _SECOND
    assert asyncio.run(ledger(books, outside).act("outside", begin, (deadline_at,), settle)) == (
        "SUCCEEDED",
        b"paid",
    )
    assert (books.ran, outside.sends) == (["begin", "settle", "settle", "settle"], 1)


def test_a_commit_whose_answer_is_lost_is_settled_by_whoever_reads_the_truth() -> None:
    """[E-093] the sender stops as if it had died; it settles nothing twice."""
    books, outside = Books(CommitUnknown("cut")), Outside()
    with pytest.raises(CommitUnknown):
        asyncio.run(ledger(books, outside).act("outside", begin, (books.instant + _SECOND,), settle))
    assert books.ran == ["begin", "settle"]
