"""Family `webhook`: one signed event to the address that a job was asked with.

The outbox row gives a delivery id and frozen bytes, the same at every attempt; timestamp and signature are
new each time. Whoever receives it knows repeats by the id, so an attempt whose end nobody knows is sent
again. Which way an event goes is said by the scheme of its URL: `local:` to the site in this process, else
HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from dragoman.families.outbound import Outbound, judge, meaning, unanswered
from dragoman.kernel import limits, signing
from dragoman.kernel.clock import MICROSECONDS
from dragoman.kernel.errors import CODES, DragomanError, SettingsError, sanitize
from dragoman.model.contracts import WebhookTransport
from dragoman.model.effects import Answer, Idempotency, Outgoing

LOCAL_URL = "local:callbacks"
"""The callback URL of jobs whose site lives on this very database."""

_JSON = {"Content-Type": "application/json", "User-Agent": "dragoman-webhook"}


class LocalTransport:
    """Hands events to the site in this process: the same bytes and headers that HTTP would carry.

    `receive` takes body and headers and gives the HTTP status that the site answers.
    """

    def __init__(self, receive: Callable[[bytes, Mapping[str, str]], Awaitable[int]]) -> None:
        self._receive = receive

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], deadline_seconds: float
    ) -> Answer:
        """One call. An error of the site's is the status that its HTTP door would answer."""
        try:
            async with asyncio.timeout(deadline_seconds):
                status = await self._receive(body, headers)
        except TimeoutError as late:
            return unanswered(late, connected=True)
        except DragomanError as error:
            status = CODES[error.code].status
        outcome, code = meaning(status)
        return Answer(outcome, status=status, code=code, message="" if not code else f"HTTP {status}")

    async def close(self) -> None:
        """Nothing is held."""


class HttpTransport:
    """Posts events. Redirects are failures; of an answer the status counts, and only a little is read.

    Private, link-local and other addresses that are not public are refused unless `allow_private`.
    """

    def __init__(self, *, allow_private: bool = False) -> None:
        self._outbound = Outbound(
            allow_private=allow_private, answer_bytes_max=limits.WEBHOOK_ANSWER_BYTES_MAX
        )

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], deadline_seconds: float
    ) -> Answer:
        """One request under a total deadline."""
        return judge(
            await self._outbound.exchange(
                "POST", url, headers=headers, body=body, deadline_seconds=deadline_seconds
            )
        )

    async def close(self) -> None:
        """Release connections."""
        await self._outbound.close()


class Webhook:
    """Signs and posts. `facts`: url, secret (as kept: `local` or sealed), job_id, delivery_id, event.

    `secret_of(kept, job_id)` gives the secret itself and raises `SettingsError` where it cannot be had;
    `now` is database time in microseconds.
    """

    name = "webhook"
    idempotency: Idempotency = "PROVIDER_IDEMPOTENT"

    def __init__(
        self,
        transports: Mapping[str, WebhookTransport],
        secret_of: Callable[[str, str], str],
        now: Callable[[], int],
    ) -> None:
        self._transports = transports
        self._secret_of = secret_of
        self._now = now

    async def deliver(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """Exactly one send, freshly signed."""
        facts = {name: str(value) for name, value in outgoing.facts.items()}
        scheme = facts["url"].partition(":")[0].lower()
        transport = self._transports.get(scheme)
        if transport is None:
            return _not_sent(f"nothing here delivers to an address of scheme {scheme!r}", "invalid_settings")
        try:
            secret = self._secret_of(facts["secret"], facts["job_id"])
            signed = signing.sign(secret, facts["delivery_id"], self._now() // MICROSECONDS, outgoing.body)
        except SettingsError as error:
            return _not_sent(error.message, error.code)
        headers = {**_JSON, signing.EVENT: facts["event"], **signed}
        return await transport.post(facts["url"], outgoing.body, headers, deadline_seconds)

    async def inquire(self, outgoing: Outgoing, deadline_seconds: float) -> Answer | None:
        """A receiver cannot be asked; it is sent the same again."""
        return None


def _not_sent(message: str, code: str) -> Answer:
    return Answer("NOT_STARTED", code=code, message=sanitize(message))
