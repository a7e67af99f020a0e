"""The product's promise: the only way to do anything to the outside world.

    transaction 1   `begin` writes the effect (if new) and an attempt STARTED, with fence, deadline and
    fingerprint the call        with nothing open; the last look at the deadline stands right beside the
    send transaction 2   `settle` writes the attempt's outcome, keeps the answer, and whatever the owner
    settles with it

A process that dies in between leaves STARTED, and whoever takes over asks; it never resends blindly. An
answer that comes to a worker whose fence is stale is still written down: the ledger never forgets money.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from dragoman.kernel import metrics
from dragoman.kernel.clock import MICROSECONDS
from dragoman.kernel.errors import CommitUnknown, StoreError
from dragoman.kernel.limits import SETTLE_PAUSES_SECONDS
from dragoman.model.contracts import Family
from dragoman.model.effects import Answer, Outgoing
from dragoman.store.database import Database

T = TypeVar("T")
S = TypeVar("S")


class Ledger:
    """Acts through registered families; names none of them."""

    def __init__(self, database: Database, families: Mapping[str, Family]) -> None:
        self._database = database
        self._families = families

    async def act(
        self,
        family: str,
        begin: Callable[..., Outgoing | S],
        begin_args: tuple[Any, ...],
        settle: Callable[..., T],
        settle_args: tuple[Any, ...] = (),
        answered: Callable[[Answer], object] | None = None,
    ) -> T | S:
        """Begin, send once, settle. What `begin` answers instead of an `Outgoing` is handed back: nothing
        was sent.

        `settle` is called as `settle(tx, outgoing, answer, *settle_args)`; `answered` hears at once that the
        outside has had its turn.
        """
        outgoing = await self._database.run(begin, *begin_args)
        if not isinstance(outgoing, Outgoing):
            return outgoing
        return await self.deliver(family, outgoing, settle, settle_args, answered=answered)

    async def deliver(
        self,
        family: str,
        outgoing: Outgoing,
        settle: Callable[..., T],
        settle_args: tuple[Any, ...] = (),
        look_ahead: Callable[[], Awaitable[Any]] | None = None,
        answered: Callable[[Answer], object] | None = None,
    ) -> T:
        """Send an attempt that an earlier transaction of this very process has begun, then settle it.

        `look_ahead` is awaited in between, for what `settle` is to begin in the same transaction: its answer
        is the last argument. It raises nothing, for the answer of the outside is still to be written down.
        """
        began = asyncio.get_running_loop().time()
        answer = await self._send(self._families[family], outgoing)
        if answered is not None:
            answered(answer)
        metrics.attempt_ended(family, answer.outcome, asyncio.get_running_loop().time() - began)
        if look_ahead is not None:
            settle_args = (*settle_args, await look_ahead())
        for pause_seconds in SETTLE_PAUSES_SECONDS:
            try:
                return await self._database.run(settle, outgoing, answer, *settle_args)
            except CommitUnknown:
                raise
            except StoreError:  # what may be paid for is not let go because the database is away for a moment
                await asyncio.sleep(pause_seconds)
        return await self._database.run(settle, outgoing, answer, *settle_args)

    async def inquire(self, family: str, outgoing: Outgoing, deadline_seconds: float) -> Answer | None:
        """Ask what became of an attempt; None where nothing can be asked or nothing is known."""
        return await self._families[family].inquire(outgoing, deadline_seconds)

    async def _send(self, family: Family, outgoing: Outgoing) -> Answer:
        left_seconds = (outgoing.deadline_at - self._database.now()) / MICROSECONDS
        if left_seconds <= 0:
            return Answer(
                outcome="NOT_STARTED", code="PROVIDER_NOT_REACHED", message="the deadline had passed"
            )
        return await family.deliver(outgoing, left_seconds)
