"""A server that translates texts by position, over HTTP. Shared ground of this room, no member of it.

Holds address, key and connections; makes one attributed call, and keeps the answer behind the line that names
its texts. Promises that a key is sent only, and is in no answer that leaves here. Knows no protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from dragoman.kernel import limits
from dragoman.model.completions import ProviderAnswer
from dragoman.providers import failures, keys, positions, vendors
from dragoman.providers.positions import Places
from dragoman.providers.wire import Wire

KeyReader = Callable[[], str | None]
"""Gives the key at the moment of need; None or an empty one where there is none."""


class TextServer:
    """One account at one server. `known_headers` and `read_error` say which answers are its own."""

    def __init__(
        self,
        name: str,
        base_url: str,
        key_reader: KeyReader,
        *,
        read_error: failures.ReadError,
        known_headers: Collection[str] = (),
        needs_key: bool = False,
        connections: int = limits.PROVIDER_CONNECTIONS,
    ) -> None:
        self.url = vendors.checked_url(base_url)
        self.name = name
        self._key_reader = key_reader
        self._read_error = read_error
        self._known_headers = known_headers
        self._needs_key = needs_key
        self._wire = Wire(connections)

    def key(self) -> str | None:
        """The key, '' where none is needed; None where it is missing or cannot be sent."""
        key = (self._key_reader() or "").strip()
        return key if keys.is_usable(key) and (key or not self._needs_key) else None

    async def post(
        self,
        path: str,
        places: Places,
        dressed: Callable[[str], tuple[bytes, Mapping[str, str]]],
        attempt_id: str,
        deadline_seconds: float,
    ) -> ProviderAnswer:
        """One POST. `dressed` gives body and headers for a key. Raises nothing that the outside did."""
        if self._wire.closed:
            return failures.not_started(f"{self.name} is closed")
        key = self.key()
        if key is None:
            return failures.not_started(f"{self.name} has no usable key", "provider_credentials_missing")
        body, headers = dressed(key)
        standard = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "dragoman",
            "X-Client-Request-Id": attempt_id,
        }
        sent = await self._wire.send(
            "POST", f"{self.url}{path}", {**standard, **headers}, body, deadline_seconds
        )
        answer = failures.judge(sent, self._known_headers, self._read_error)
        return positions.kept(places, keys.without(key, answer))

    async def close(self) -> None:
        """Release connections; nothing is sent any more."""
        await self._wire.close()
