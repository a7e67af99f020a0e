"""An account at a server, as every HTTP protocol of this room needs it. Shared ground, no member of it.

Holds the address, the vendor, the key's reader, price, codes and connections.
Promises that a call is one request, and that a key is in a header only, in no answer that leaves here. Knows
no protocol.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypedDict, Unpack

from dragoman.kernel import limits
from dragoman.kernel.errors import DragomanError
from dragoman.model.completions import ProviderAnswer, Usage
from dragoman.providers import exchange, failures, keys, vendors
from dragoman.providers.codes import Choose, LocaleCodes
from dragoman.providers.prices import Free, Halved, Tariff, listed
from dragoman.providers.wire import Wire

KeyReader = Callable[[], str | Awaitable[str | None] | None]
"""Gives the key at the moment of need. May raise `DragomanError`: then nothing is sent."""


_BYTES_PER_TOKEN = 4
_CHARACTERS_PER_TOKEN = 3
_FRAME_TOKENS = 40  # of a reply, beside its texts


class Options(TypedDict, total=False):
    """What may be said about an account beside its address.

    `priced` defaults to whether the address is public, `tariff` to the price table's for `price_model` (the
    model itself). `vendor` defaults to the address's. `locales` are the codes that the model serves, none
    meaning all. `connections` is the most at a time, `extra` goes into every request's body, `halved` says
    that calls go out as batches, at half the price.
    """

    priced: bool | None
    tariff: Tariff | None
    price_model: str
    account: str
    vendor: vendors.Vendor | None
    locales: Collection[str]
    connections: int
    output_tokens_max: int
    extra: Mapping[str, object]
    halved: bool


class Hosted:
    """One account at one server, for one model."""

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str,
        key_reader: KeyReader,
        choose_code: Choose,
        **options: Unpack[Options],
    ) -> None:
        self.url = vendors.checked_url(base_url)
        self.vendor = options.get("vendor") or vendors.vendor_of(self.url)
        self.name = name
        self.model = model
        self.account = options.get("account") or f"{name}@{self.url.authority}"
        priced = options.get("priced")
        self.priced = not vendors.is_private(self.url) if priced is None else priced
        price_model = options.get("price_model") or model
        known = options.get("tariff") or _listed(price_model, self.vendor) if self.priced else Free()
        self.price_known = known is not None
        """False for a priced model that neither settings nor table know: its money counts as nothing."""
        full: Tariff = known or Free()
        self._tariff: Tariff = Halved(full) if options.get("halved") else full
        self.codes = LocaleCodes(name, choose_code, options.get("locales", ()))
        self.output_tokens_max = options.get("output_tokens_max", limits.PROVIDER_OUTPUT_TOKENS_MAX)
        self._key_reader = key_reader
        self._extra = options.get("extra", {})
        self._wire = Wire(options.get("connections", limits.PROVIDER_CONNECTIONS))

    def body(self, members: Mapping[str, object]) -> bytes:
        """A request's bytes: the members in the order given, and what the settings add to them."""
        return exchange.compact(_merged(members, self._extra)).encode()

    def usage(
        self,
        prompt: int,
        output: int,
        *,
        cached: int = 0,
        written: int = 0,
        total: int = 0,
        created_seconds: int = 0,
    ) -> Usage:
        """The provider's counts with their price. `cached` and `written` are parts of `prompt`."""
        cached = min(cached, prompt)
        microusd = self._tariff.microusd(
            prompt, output, cached, created_seconds, min(written, prompt - cached)
        )
        return Usage(prompt, output, cached, total or prompt + output, microusd, self._tariff.snapshot)

    def worst(self, prompt: int, output: int) -> tuple[int, int]:
        """(tokens, micro-USD) of a call at its worst: nothing cached, or all of it written to a cache."""
        dearest = max(
            self._tariff.microusd(prompt, output), self._tariff.microusd(prompt, output, written=prompt)
        )
        return prompt + output, dearest

    def likely(self, body: bytes, characters: int) -> tuple[int, int]:
        """(tokens, micro-USD) of a usual call: about four bytes a token, an answer as long as the texts."""
        prompt, output = len(body) // _BYTES_PER_TOKEN, characters // _CHARACTERS_PER_TOKEN + _FRAME_TOKENS
        return prompt + output, self._tariff.microusd(prompt, output)

    async def call(
        self,
        method: str,
        url: str,
        body: bytes | None,
        deadline_seconds: float,
        headers: Mapping[str, str] | None = None,
    ) -> ProviderAnswer:
        """One request, and what it came to. Raises nothing that the outside did."""
        if self._wire.closed:
            return failures.not_started(f"{self.name} is closed")
        end = asyncio.get_running_loop().time() + deadline_seconds
        try:
            key = await self._key()
        except DragomanError as error:
            return failures.not_started(error.message)
        if key is None:
            return failures.not_started(f"{self.name} has no usable key", "provider_credentials_missing")
        left_seconds = end - asyncio.get_running_loop().time()
        sent = await self._wire.send(method, url, self._headers(key, headers or {}), body, left_seconds)
        read_error = failures.compatible_envelope if self.vendor is vendors.ANY else failures.envelope
        return keys.without(key, failures.judge(sent, self.vendor.known_headers, read_error))

    async def close(self) -> None:
        """Release connections; nothing is sent any more."""
        await self._wire.close()

    async def _key(self) -> str | None:
        """The key, '' where none is needed; None where it is missing or no header can hold it."""
        read = self._key_reader()
        key = ((await read if inspect.isawaitable(read) else read) or "").strip()
        return key if keys.is_usable(key) and (key or not self.priced) else None

    def _headers(self, key: str, more: Mapping[str, str]) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "dragoman",
            **self.vendor.headers,
            **more,
        }
        if key:
            headers[self.vendor.key_header] = self.vendor.key_scheme + key
        return headers


def parsed(answer: bytes) -> dict[str, object] | None:
    """An answer's object, None where it is none."""
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _listed(model: str, vendor: vendors.Vendor) -> Tariff | None:
    found = (listed(model, table) for table in vendor.price_tables or (None,))
    return next((tariff for tariff in found if tariff is not None), None)


def _merged(members: Mapping[str, object], extra: Mapping[str, object]) -> dict[str, object]:
    merged = dict(members)
    for name, value in extra.items():
        mine = merged.get(name)
        both = isinstance(mine, Mapping) and isinstance(value, Mapping)
        merged[name] = _merged(mine, value) if both else value  # type: ignore[arg-type]  # both are mappings
    return merged
