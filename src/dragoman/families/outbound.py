"""One HTTP request a send, and what is known after it. Shared ground of this room, no member of it.

No retries, no redirects, no cookies, no proxy of the environment. Unless it is told otherwise it connects to
public addresses only, and looks at the address that the socket really goes to, so that a name which resolves
otherwise a moment later leads nowhere. What may have happened is never called failed.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from types import SimpleNamespace

import aiohttp
from aiohttp import (
    ClientHandlerType,
    ClientMiddlewareType,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    TraceConfig,
)

from dragoman.kernel import limits
from dragoman.kernel.errors import sanitize
from dragoman.model.effects import Answer

AddressInfo = tuple[int, int, int, str, tuple[object, ...]]

CODES: Mapping[str, str] = {
    "SUCCEEDED": "",
    "NOT_STARTED": "PROVIDER_NOT_REACHED",
    "REJECTED": "PROVIDER_REJECTED",
    "TIMEOUT_UNKNOWN": "PROVIDER_TIMEOUT_UNKNOWN",
    "CONNECTION_UNKNOWN": "PROVIDER_CONNECTION_UNKNOWN",
    "INVALID_RESPONSE_UNKNOWN": "PROVIDER_RESPONSE_INVALID",
}
"""The code that goes with an outcome where nothing more exact is known."""

STATUSES: Sequence[tuple[Collection[int], str, str]] = (
    (range(200, 300), "SUCCEEDED", ""),
    ((408, 504), "TIMEOUT_UNKNOWN", "PROVIDER_TIMEOUT_UNKNOWN"),
    ((429,), "REJECTED", "PROVIDER_RATE_LIMITED"),
    (range(300, 500), "REJECTED", "PROVIDER_REJECTED"),
)
"""What a status means; first match wins, and what no row takes is CONNECTION_UNKNOWN."""

_EXCEPTIONS: Sequence[tuple[type[BaseException], str]] = (
    (aiohttp.ClientConnectorError, "NOT_STARTED"),
    (aiohttp.ConnectionTimeoutError, "NOT_STARTED"),
    (aiohttp.InvalidURL, "NOT_STARTED"),
    (TimeoutError, "TIMEOUT_UNKNOWN"),
)

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_OF_ONE_NETWORK = ipaddress.IPv6Network("64:ff9b:1::/48")
_IPV4_COMPATIBLE = ipaddress.IPv6Network("::/96")


@dataclass(slots=True)
class Exchange:
    """How far one request came.

    `status` is None where no head of an answer came; header names are lower case.
    """

    connected: bool = False
    status: int | None = None
    headers: Mapping[str, str] | None = None
    body: bytes = b""
    error: Exception | None = None

    @property
    def whole(self) -> bool:
        """Whether the answer came to its end, within the bytes that were allowed."""
        return self.status is not None and self.error is None


class Outbound:
    """The connections of one member. `idle_seconds` 0 makes a fresh connection for every send."""

    def __init__(self, *, allow_private: bool, answer_bytes_max: int, idle_seconds: float = 0) -> None:
        self._allow_private = allow_private
        self._answer_bytes_max = answer_bytes_max
        self._idle_seconds = idle_seconds
        self._session: ClientSession | None = None

    async def exchange(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        deadline_seconds: float,
    ) -> Exchange:
        """One request within an overall deadline. Raises nothing that the outside did."""
        journey = Exchange()
        try:
            async with asyncio.timeout(deadline_seconds):
                await self._send(journey, method, url, headers, body)
        except (aiohttp.ClientError, OSError) as trouble:  # TimeoutError is an OSError
            journey.error = trouble
        return journey

    async def close(self) -> None:
        """Release all connections; a second close does nothing."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(
        self, journey: Exchange, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> None:
        sent = {"Accept-Encoding": "identity", **headers}
        async with self._opened().request(
            method,
            url,
            data=body,
            headers=sent,
            allow_redirects=False,
            trace_request_ctx=journey,
            middlewares=(_once(),),
        ) as response:
            journey.headers = {name.lower(): value for name, value in response.headers.items()}
            journey.status = response.status
            while len(journey.body) < self._answer_bytes_max:
                piece = await response.content.read(self._answer_bytes_max - len(journey.body))
                if not piece:
                    return
                journey.body += piece
            if not response.content.at_eof():
                journey.error = aiohttp.ClientPayloadError("the answer is larger than any that is read")
                response.close()

    def _opened(self) -> ClientSession:
        """The session, made in the loop that first sends."""
        if self._session is None:
            trace = TraceConfig()
            trace.on_connection_create_end.append(_connected)
            trace.on_connection_reuseconn.append(_connected)
            connector = TCPConnector(
                limit=0,
                ttl_dns_cache=None,
                use_dns_cache=False,
                force_close=not self._idle_seconds,
                socket_factory=self._socket,
                keepalive_timeout=self._idle_seconds or None,
            )
            self._session = ClientSession(
                connector=connector,
                cookie_jar=DummyCookieJar(),
                auto_decompress=False,
                timeout=ClientTimeout(total=None, sock_connect=limits.OUTBOUND_CONNECT_SECONDS),
                trace_configs=[trace],
            )
        return self._session

    def _socket(self, info: AddressInfo) -> socket.socket:
        """The socket for an address that a connection is about to be made to, or a refusal."""
        family, kind, protocol, _, address = info
        if not self._allow_private and not is_public(str(address[0])):
            raise OSError(errno.EACCES, f"{address[0]} is not a public address, and no setting allows it")
        return socket.socket(family, kind, protocol)


def is_public(address: str) -> bool:
    """Whether an IP address, also one wrapped in another, is reachable from anywhere and no group's."""
    here = ipaddress.ip_address(address.partition("%")[0])
    inner: ipaddress.IPv4Address | None = None
    if isinstance(here, ipaddress.IPv6Address):
        inner = here.ipv4_mapped or here.sixtofour or (here.teredo[1] if here.teredo else None)
        if here in _NAT64_OF_ONE_NETWORK:
            return False
        if here in _NAT64 or (here in _IPV4_COMPATIBLE and int(here) > 1):
            inner = ipaddress.IPv4Address(int(here) & 0xFFFFFFFF)
    if inner is not None:
        return is_public(str(inner))
    return here.is_global and not here.is_multicast


def judge(journey: Exchange) -> Answer:
    """What an exchange came to, by its status alone where one came."""
    if journey.status is None:
        return unanswered(journey.error, journey.connected)
    outcome, code = meaning(journey.status)
    return Answer(
        outcome,
        status=journey.status,
        code=code,
        message="" if outcome == "SUCCEEDED" else f"HTTP {journey.status}",
        retry_after_seconds=retry_after_seconds(journey.headers or {}),
    )


def meaning(status: int) -> tuple[str, str]:
    """Outcome and code of a status."""
    for statuses, outcome, code in STATUSES:
        if status in statuses:
            return outcome, code
    return "CONNECTION_UNKNOWN", CODES["CONNECTION_UNKNOWN"]


def unanswered(error: Exception | None, connected: bool) -> Answer:
    """The answer where none came: not sent as long as no connection stood, unknown from then on."""
    outcome = "CONNECTION_UNKNOWN"
    if not connected:
        outcome = "NOT_STARTED"
    elif error is not None:
        outcome = next((found for kind, found in _EXCEPTIONS if isinstance(error, kind)), outcome)
    return Answer(outcome, code=CODES[outcome], message=sanitize(f"{type(error).__name__}: {error}"))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """How long the other side asks us to wait: a number of seconds, or a date beside its own `Date`."""
    said = headers.get("retry-after", "").strip()
    if not said:
        return None
    if said.isascii() and said.isdecimal():
        return float(min(int(said[:9]), limits.RETRY_AFTER_SECONDS_MAX))
    try:
        wait = parsedate_to_datetime(said) - parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError):
        return None
    return min(max(wait.total_seconds(), 0.0), float(limits.RETRY_AFTER_SECONDS_MAX))


def _once() -> ClientMiddlewareType:
    """Keeps aiohttp from its second try, which it makes by itself where a method is idempotent."""
    sent = False

    async def send(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        nonlocal sent
        if sent:
            raise aiohttp.ServerDisconnectedError("the connection was lost before an answer came")
        sent = True
        return await handler(request)

    return send


async def _connected(_session: ClientSession, context: SimpleNamespace, _parameters: object) -> None:
    context.trace_request_ctx.connected = True
