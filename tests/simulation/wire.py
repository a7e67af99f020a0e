"""The network between a site and a far engine, where it is nothing but faults.

The cut is below `Outbound.exchange`, where aiohttp would be: deadlines, judgements and everything above are
the product's own, on either side. What arrives is answered by the product's own HTTP app, in a process of the
other side; it stands for the one listener of that side, whichever of its processes takes the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Mapping
from typing import Protocol

import aiohttp

from dragoman.families.outbound import Exchange, Outbound
from dragoman.families.submission import HttpEngine
from dragoman.families.webhook import HttpTransport, Webhook
from dragoman.kernel.limits import ENGINE_ANSWER_BYTES_MAX, WEBHOOK_ANSWER_BYTES_MAX
from dragoman.wiring.services import Services
from tests.simulation.faults import WIRE, Kind
from tests.simulation.listening import Answered, Request
from tests.simulation.processes import Process, Side

ENGINE_URL = "https://engine.example"
SITE_URL = "https://site.example"
CALLBACK_URL = f"{SITE_URL}/v1/callbacks/submission"
_SIDES: Mapping[str, Side] = {ENGINE_URL: "engine", SITE_URL: "site"}

_AWAY_SECONDS = (5.0, 100.0, 100.0, 900.0)
_SLOW_SECONDS = (0.5, 6.0, 40.0, 100.0)
_LATE_SECONDS = (0.1, 20.0, 400.0)
"""After its sender has given it up."""
_ASKED_SECONDS = ("1", "40", "300")
_ILL = (500, 502, 503, 504)


class Rules(Protocol):
    """What a world says about requests between hosts."""

    receiver_says: int

    def leave(self, label: str) -> None:
        """Somebody asks the outside; a problem where a transaction is open."""
        ...

    def tell(self, process: Process, text: str) -> None:
        """Write down what the outside did."""
        ...

    def serving(self, side: Side, request: Request) -> Awaitable[Answered | None] | None:
        """What a process of that side answers, in the end None where it has died over it; None where nobody
        is there.
        """
        ...


class Network:
    """What lies between the hosts of a world."""

    def __init__(self, rules: Rules, dice: random.Random) -> None:
        self.rules = rules
        self.held = 0
        """Requests that nobody waits for any more, and that have not arrived."""
        self.is_over = False
        self._dice = dice
        self._away_until: dict[Side, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def connect(self, process: Process, services: Services) -> None:
        """Lay the wires of one process: its engine's client, and what posts its webhooks."""
        if isinstance(services.engine, HttpEngine):
            services.engine._outbound = Wire(self, process, ENGINE_ANSWER_BYTES_MAX)
        webhook = services.ledger._families["webhook"]
        assert isinstance(webhook, Webhook)
        transport = webhook._transports["https"]
        assert isinstance(transport, HttpTransport)
        transport._outbound = Wire(self, process, WEBHOOK_ANSWER_BYTES_MAX)

    async def carry(self, request: Request, fault: Kind | None, journey: Exchange) -> Answered:
        """To the other side and back. Raises what aiohttp would."""
        side, now = _SIDES[request.origin], asyncio.get_running_loop().time()
        if fault == "away":
            self._away_until[side] = now + self._dice.choice(_AWAY_SECONDS)
        if fault == "refused" or self._away_until.get(side, 0.0) > now:
            raise ConnectionRefusedError("nobody listens there")
        if fault == "late":
            await self._hold_up(request, journey)
        if fault == "slow":
            await asyncio.sleep(self._dice.choice(_SLOW_SECONDS))
        if fault == "twice":
            self._spawn(request, self._dice.choice((0.0, *_SLOW_SECONDS)))
        if fault in ("sent in vain", "busy") or (fault == "gateway" and self._dice.random() < 0.5):
            journey.connected = True
        else:
            answered = await self._deliver(request, journey)
        if fault in ("sent in vain", "answer lost"):
            raise _broken()
        if fault == "busy":
            return Answered(429, {"retry-after": self._dice.choice(_ASKED_SECONDS)}, b"")
        if fault == "gateway":
            return Answered(self._dice.choice(_ILL), {}, b"<html>It was not us</html>")
        return answered

    async def _deliver(self, request: Request, journey: Exchange) -> Answered:
        side = _SIDES[request.origin]
        if side == "site" and self.rules.receiver_says:
            journey.connected = True
            return Answered(self.rules.receiver_says, {}, b"")
        answering = self.rules.serving(side, request)
        if answering is None:
            raise ConnectionRefusedError("nobody lives there")
        journey.connected = True
        answered = await answering
        if answered is None:
            raise _broken()
        return answered

    async def _hold_up(self, request: Request, journey: Exchange) -> None:
        """Let the sender wait in vain; once it has given up, what it sent is on its way again."""
        journey.connected = True
        self.held += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.held -= 1
            if not self.is_over:
                self._spawn(request, self._dice.choice(_LATE_SECONDS))

    def _spawn(self, request: Request, after_seconds: float) -> None:
        """Let a request arrive for whose answer nobody waits."""
        self.held += 1
        task = asyncio.create_task(self._arrive(request, after_seconds))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _arrive(self, request: Request, after_seconds: float) -> None:
        try:
            await asyncio.sleep(after_seconds)
            with contextlib.suppress(OSError, aiohttp.ClientError):
                await self._deliver(request, Exchange())
        finally:
            self.held -= 1


class Wire(Outbound):
    """The connections of one process's member."""

    def __init__(self, network: Network, process: Process, answer_bytes_max: int) -> None:
        super().__init__(allow_private=False, answer_bytes_max=answer_bytes_max)
        self._network = network
        self._process = process

    async def _send(
        self, journey: Exchange, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> None:
        request = Request.to(method, url, headers, body)
        label = f"{method} {request.place}"
        self._network.rules.leave(label)
        fault = await self._process.point(f"before {label}", WIRE)
        answered = await self._network.carry(request, fault, journey)
        self._network.rules.tell(self._process, f"{label}: HTTP {answered.status}")
        await self._process.point(f"after {label}")
        journey.headers, journey.status, journey.body = answered.headers, answered.status, answered.body
        if fault == "cut short":
            journey.body = answered.body[: len(answered.body) // 2]
            raise aiohttp.ClientPayloadError("the answer broke off")
        if len(answered.body) > self._answer_bytes_max:
            raise aiohttp.ClientPayloadError("the answer is larger than any that is read")


def _broken() -> aiohttp.ClientError:
    return aiohttp.ServerDisconnectedError("the connection was lost before an answer came")
