"""One HTTP request a send, and the facts of what came of it. Shared ground of this room, no member of it.

No retries, no redirects, no cookies. The body is kept as it comes, also when it breaks off. Connections idle
for longer than `limits.PROVIDER_IDLE_SECONDS` are never used again. Knows no protocol and judges nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

import aiohttp
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, TraceConfig

from dragoman.kernel import limits
from dragoman.providers.failures import Sent


@dataclass(slots=True)
class _Journey:
    """How far one request has come; filled in on the way, so that it is still known after an exception."""

    connected: bool = False
    status: int | None = None
    headers: Mapping[str, str] | None = None


class Wire:
    """The connections of one provider. `connections` is the most at a time: no fewer than calls in flight."""

    def __init__(self, connections: int = limits.PROVIDER_CONNECTIONS) -> None:
        self._connections = connections
        self._session: ClientSession | None = None
        self.closed = False

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, deadline_seconds: float
    ) -> Sent:
        """One request within an overall deadline. Raises nothing that the outside did."""
        journey, kept = _Journey(), bytearray()
        error: Exception | None = None
        try:
            async with asyncio.timeout(deadline_seconds):
                await self._exchange(method, url, headers, body, journey, kept)
        except (aiohttp.ClientError, OSError) as trouble:  # TimeoutError is an OSError
            error = trouble
        whole = journey.status is not None and error is None
        return Sent(journey.connected, journey.status, journey.headers, bytes(kept), whole, error)

    async def close(self) -> None:
        """Release all connections; nothing is sent any more. A second close does nothing."""
        self.closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        journey: _Journey,
        kept: bytearray,
    ) -> None:
        async with self._opened().request(
            method, url, data=body, headers=headers, allow_redirects=False, trace_request_ctx=journey
        ) as response:
            journey.headers = {name.lower(): value for name, value in response.headers.items()}
            journey.status = response.status
            async for piece in response.content.iter_any():
                kept += piece
                if len(kept) > limits.PROVIDER_ANSWER_BYTES_MAX:
                    raise aiohttp.ClientPayloadError("the answer is larger than any that we take")

    def _opened(self) -> ClientSession:
        """The session, made in the loop that first sends."""
        if self._session is None:
            trace = TraceConfig()
            trace.on_connection_create_end.append(_connected)
            trace.on_connection_reuseconn.append(_connected)
            self._session = ClientSession(
                connector=TCPConnector(
                    limit=self._connections, keepalive_timeout=limits.PROVIDER_IDLE_SECONDS
                ),
                cookie_jar=DummyCookieJar(),
                timeout=ClientTimeout(total=None, sock_connect=limits.PROVIDER_CONNECT_SECONDS),
                trace_configs=[trace],
            )
        return self._session


async def _connected(_session: ClientSession, context: SimpleNamespace, _parameters: object) -> None:
    context.trace_request_ctx.connected = True
