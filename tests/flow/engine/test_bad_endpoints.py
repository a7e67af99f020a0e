"""F9: bad endpoints, for real: sockets, the engine's own transport, and a healthy one beside them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from dragoman.families.webhook import HttpTransport, Webhook
from dragoman.flow.engine.delivery import Delivery
from dragoman.kernel.clock import MICROSECONDS, SystemClock
from dragoman.ledger.acting import Ledger
from dragoman.store.keeping import Keeper
from tests.doubles.databases import opened
from tests.flow.engine.outbox_rows import event_row, put_event

_SECRET = "whsec of the endpoints"
_RETRY_AFTER_SECONDS = 1800
_EVENTS = 8


class Endpoints:
    """One server under several addresses of the loopback: each is an endpoint of its own."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.released = asyncio.Event()
        self.port = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        kind = request.path.strip("/")
        self.seen[kind] += 1
        await request.read()
        match kind:
            case "hang":
                await self.released.wait()
            case "gone":
                return web.Response(status=410)
            case "busy":
                return web.Response(status=429, headers={"Retry-After": str(_RETRY_AFTER_SECONDS)})
            case "moved":
                return web.Response(
                    status=302, headers={"Location": f"http://169.254.169.254:{self.port}/inside"}
                )
            case "reset":
                assert request.transport is not None
                request.transport.abort()
        return web.Response()

    def url(self, kind: str) -> str:
        last = ("good", "hang", "gone", "busy", "moved", "reset").index(kind) + 1
        return f"http://127.0.0.{last}:{self.port}/{kind}"


@asynccontextmanager
async def endpoints() -> AsyncIterator[Endpoints]:
    made = Endpoints()
    application = web.Application()
    application.router.add_post("/{kind}", made.answer)
    application.router.add_get("/{kind}", made.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "0.0.0.0", 0).start()
    made.port = runner.addresses[0][1]
    try:
        yield made
    finally:
        made.released.set()
        await runner.cleanup()


def test_a_healthy_endpoint_is_served_while_others_hang_break_and_refuse(database_url: str) -> None:
    """F9: the healthy one gets all its events while one hangs; 410 disables; never earlier than Retry-After;
    a redirect to 169.254.169.254 is not followed; a reset after the body is unknown and comes again.
    """

    async def play() -> None:
        async with endpoints() as net, opened(database_url) as database:
            transport = HttpTransport(allow_private=True)
            webhook = Webhook({"http": transport}, lambda kept, job_id: _SECRET, database.now)
            keeper = Keeper(database, SystemClock(), "host/boot/1/1")
            delivery = Delivery(Ledger(database, {"webhook": webhook}), SystemClock(), keeper)
            kinds = ("hang", "gone", "busy", "moved", "reset")
            bad = {
                kind: await database.run(put_event, net.url(kind), 100 + number)
                for number, kind in enumerate(kinds)
            }
            good = [
                await database.run(put_event, net.url("good"), number) for number in range(1, _EVENTS + 1)
            ]
            step = asyncio.create_task(delivery.step(10))
            async with asyncio.timeout(20):
                while {(await database.read(event_row, one)).state for one in good} != {"delivered"}:
                    await asyncio.sleep(0.01)
            assert not step.done(), "the hanging one is still under way"
            assert net.seen["hang"] == 1
            net.released.set()
            await step
            await transport.close()
            rows = {kind: await database.read(event_row, one) for kind, one in bad.items()}
            assert (rows["gone"].state, rows["gone"].response_status) == ("dead", 410)
            late = await database.run(put_event, net.url("gone"), 200)
            assert (await database.read(event_row, late)).state == "dead", "the endpoint is disabled"
            busy = rows["busy"]
            assert busy.next_attempt_at >= busy.last_attempt_at + _RETRY_AFTER_SECONDS * MICROSECONDS
            assert (rows["moved"].state, rows["moved"].response_status) == ("pending", 302)
            assert (rows["reset"].state, rows["reset"].response_status) == ("pending", None)
            assert (rows["hang"].state, net.seen["inside"]) == ("delivered", 0)
            assert net.seen["reset"] == 1, "one send an attempt"

    asyncio.run(play())
