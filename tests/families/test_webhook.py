"""Events over HTTP against a real server on this machine: what is sent, what is refused, what is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from dragoman.families.outbound import Outbound, is_public, retry_after_seconds
from dragoman.families.webhook import HttpTransport, Webhook
from dragoman.kernel import limits, signing
from dragoman.model.effects import Outgoing

SECRET = "a secret of the test suite"
NOW = 1_800_000_000_000_000
BODY = b'{"event":"job.completed"}'


class Site:
    """A receiver that keeps what it gets and answers as it is told."""

    def __init__(self, status: int = 200, **headers: str) -> None:
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.body: bytes = b"thanks"
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.stalls = False

    async def receive(self, request: web.Request) -> web.StreamResponse:
        self.received.append((dict(request.headers), await request.read()))
        if self.stalls:
            await asyncio.Event().wait()
        return web.Response(status=self.status, headers=self.headers, body=self.body)


@asynccontextmanager
async def listening(site: Site) -> AsyncIterator[str]:
    """The site's address."""
    application = web.Application()
    application.router.add_post("/hook", site.receive)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    server = web.TCPSite(runner, "127.0.0.1", 0)
    await server.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}/hook"
    finally:
        await runner.cleanup()


def outgoing(url: str) -> Outgoing:
    facts: dict[str, str | int] = {
        "url": url,
        "secret": "local",
        "job_id": "j",
        "delivery_id": "d-1",
        "event": "job.completed",
    }
    return Outgoing("a", "e", "default", 1, "webhook", NOW, BODY, facts)


async def sent(
    url: str, deadline_seconds: float = 5, allow_private: bool = True
) -> tuple[str, int | None, str]:
    """Outcome, status and code of one delivery."""
    transport = HttpTransport(allow_private=allow_private)
    webhook = Webhook({"http": transport, "https": transport}, lambda kept, job_id: SECRET, lambda: NOW)
    try:
        answer = await webhook.deliver(outgoing(url), deadline_seconds)
    finally:
        await transport.close()
    return answer.outcome, answer.status, answer.code


def test_the_exact_bytes_arrive_with_both_signatures() -> None:
    async def play() -> None:
        site = Site()
        async with listening(site) as url:
            assert await sent(url) == ("SUCCEEDED", 200, "")
        [(headers, body)] = site.received
        assert body == BODY
        signing.verify([SECRET], headers, body, NOW // 1_000_000)
        assert headers["Content-Type"] == "application/json"
        assert headers["X-Dragoman-Event"] == "job.completed"
        assert SECRET not in repr(headers)

    asyncio.run(play())


@pytest.mark.parametrize(
    "status, outcome",
    [
        (204, "SUCCEEDED"),
        (400, "REJECTED"),
        (404, "REJECTED"),
        (410, "REJECTED"),
        (408, "TIMEOUT_UNKNOWN"),
        (500, "CONNECTION_UNKNOWN"),
        (503, "CONNECTION_UNKNOWN"),
        (504, "TIMEOUT_UNKNOWN"),
    ],
)
def test_what_a_status_means(status: int, outcome: str) -> None:
    async def play() -> None:
        async with listening(Site(status)) as url:
            assert (await sent(url))[:2] == (outcome, status)

    asyncio.run(play())


def test_a_redirect_is_a_failure_and_never_followed() -> None:
    async def play() -> None:
        elsewhere = Site()
        async with listening(elsewhere) as other:
            site = Site(302, Location=other)
            async with listening(site) as url:
                assert (await sent(url))[:2] == ("REJECTED", 302)
            assert (len(site.received), len(elsewhere.received)) == (1, 0)

    asyncio.run(play())


def test_an_address_that_is_not_public_is_refused_at_the_socket_unless_allowed() -> None:
    """Also where only a name leads there: what is judged is the address that is connected to."""

    async def play() -> None:
        site = Site()
        async with listening(site) as url:
            for address in (url, url.replace("127.0.0.1", "localhost")):
                outcome, status, code = await sent(address, allow_private=False)
                assert (outcome, status, code) == ("NOT_STARTED", None, "PROVIDER_NOT_REACHED")
            assert site.received == []
            assert (await sent(url.replace("127.0.0.1", "localhost")))[0] == "SUCCEEDED"

    asyncio.run(play())


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::8.8.8.8",
        "::10.0.0.1",
        "2002:7f00:1::",
    ],
)
def test_these_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:8.8.8.8"]
)
def test_these_addresses_are_public(address: str) -> None:
    assert is_public(address)


def test_no_answer_within_the_total_deadline_leaves_the_end_unknown() -> None:
    async def play() -> None:
        site = Site()
        site.stalls = True
        async with listening(site) as url:
            assert await sent(url, 0.2) == ("TIMEOUT_UNKNOWN", None, "PROVIDER_TIMEOUT_UNKNOWN")
        assert len(site.received) == 1

    asyncio.run(play())


def test_of_a_long_answer_only_a_little_is_read() -> None:
    """The status has come, so that it counts; the rest is left where it is."""

    async def play() -> None:
        site = Site()
        site.body = b"x" * (50 * limits.WEBHOOK_ANSWER_BYTES_MAX)
        outbound = Outbound(allow_private=True, answer_bytes_max=limits.WEBHOOK_ANSWER_BYTES_MAX)
        async with listening(site) as url:
            assert await sent(url) == ("SUCCEEDED", 200, "")
            seen = await outbound.exchange("POST", url, headers={}, body=BODY, deadline_seconds=5)
        await outbound.close()
        assert (len(seen.body), seen.whole) == (limits.WEBHOOK_ANSWER_BYTES_MAX, False)

    asyncio.run(play())


def test_nobody_at_the_door_means_that_nothing_was_sent() -> None:
    async def play() -> None:
        async with listening(Site()) as url:
            pass
        assert (await sent(url))[0] == "NOT_STARTED"
        assert (await sent("http://no-such-name.invalid/"))[0] == "NOT_STARTED"
        assert (await sent("ftp://a.example/"))[2] == "invalid_settings"

    asyncio.run(play())


def test_without_a_strong_secret_nothing_is_sent() -> None:
    async def play() -> None:
        site = Site()
        async with listening(site) as url:
            transport = HttpTransport(allow_private=True)
            webhook = Webhook({"http": transport}, lambda kept, job_id: "short", lambda: NOW)
            answer = await webhook.deliver(outgoing(url), 5)
            await transport.close()
        assert (answer.outcome, answer.code) == ("NOT_STARTED", "invalid_settings")
        assert site.received == []

    asyncio.run(play())


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({"retry-after": "120"}, 120),
        ({"retry-after": "99999999999"}, limits.RETRY_AFTER_SECONDS_MAX),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
        (
            {"date": "Tue, 03 Nov 2026 10:00:00 GMT", "retry-after": "Tue, 03 Nov 2026 10:01:00 GMT"},
            60,
        ),
        ({"date": "Tue, 03 Nov 2026 10:00:00 GMT", "retry-after": "Tue, 03 Nov 2026 09:00:00 GMT"}, 0),
        ({"retry-after": "Tue, 03 Nov 2026 10:01:00 GMT"}, None),
    ],
)
def test_how_long_the_other_side_asks_us_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds
