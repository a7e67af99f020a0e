"""The engine's last step: every ended job's event is signed and sent to whoever asked, until it arrives.

One slow endpoint delays no other: sends go on side by side, no place has more than its share of them, and a
place that comes free is filled while the slow ones are still under way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import DragomanError
from dragoman.kernel.limits import (
    IDLE_POLL_SECONDS,
    OUTBOX_LEASE_SECONDS,
    OUTBOX_PER_ENDPOINT,
    STEP_SECONDS,
)
from dragoman.ledger.acting import Ledger
from dragoman.store.acts import delivering
from dragoman.store.acts.delivering import Delivering
from dragoman.store.keeping import Keeper

_Flight = asyncio.Task[None]


class Delivery:
    """Sends what is due.

    `per_endpoint` bounds sends at a time to one host.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        keeper: Keeper,
        per_endpoint: int = OUTBOX_PER_ENDPOINT,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._keeper = keeper
        self._per_endpoint = per_endpoint

    async def step(self, limit: int) -> int:
        """Send what is due, at most `limit` at a time, until nothing is due or the step's time is over.

        Gives how many attempts ended. An error of one send is raised once the others have ended.
        """
        until = self._clock.monotonic() + STEP_SECONDS
        flights: dict[_Flight, str] = {}
        errors: list[DragomanError] = []
        ended = 0
        try:
            while True:
                if not errors and self._clock.monotonic() < until:
                    await self._fill(flights, limit)
                if not flights:
                    break
                done, _ = await asyncio.wait(
                    flights, timeout=IDLE_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                ended += len(done)
                errors += [error for flight in done if (error := _failure(flight))]
                for flight in done:
                    del flights[flight]
        finally:
            await _ground(flights)
        if errors:
            raise errors[0]
        return ended

    async def _fill(self, flights: dict[_Flight, str], limit: int) -> None:
        """Begin due sends while there is room, never more to one place than its share."""
        while room := limit - len(flights):
            sends = Counter(flights.values())
            busy = [place for place, number in sends.items() if number >= self._per_endpoint]
            most = max((number for place, number in sends.items() if place not in busy), default=0)
            begun = await self._keeper.claim(
                delivering.begin_deliveries, self._keeper.owner, min(room, self._per_endpoint - most), busy
            )
            for due in begun:
                lease = self._keeper.hold("outbox", (due.outbox_id,), due.fence, OUTBOX_LEASE_SECONDS)
                flights[self._keeper.work(lease, self._send(due))] = due.place
            if not begun:
                return

    async def _send(self, due: Delivering) -> None:
        await self._ledger.deliver(
            "webhook", due.outgoing, delivering.settle_delivery, (due.outbox_id, due.fence)
        )


def _failure(flight: _Flight) -> DragomanError | None:
    """What kept a send from being settled; its lease brings it back.

    Anything but an error of ours is raised.
    """
    error = flight.exception()
    if error is not None and not isinstance(error, DragomanError):
        raise error
    return error


async def _ground(flights: Iterable[_Flight]) -> None:
    """End what still flies, as the end of this process would."""
    for flight in flights:
        flight.cancel()
    await asyncio.gather(*flights, return_exceptions=True)
