"""Hosted vendors as data, and which addresses nobody bills. Shared ground of this room, no member of it.

A vendor is configuration over a protocol: the headers that prove its answers, the one that carries its key,
whether it keeps answers that can be asked for. Knows no protocol.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from yarl import URL

from dragoman.kernel import limits
from dragoman.kernel.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Vendor:
    """One hosted vendor, or the nameless server behind any other address.

    `price_tables` are its names in the price table, the nearest first, `known_headers` (lower case) are on
    each of its own answers, `key_scheme` stands before the key in `key_header`, `headers` go with every
    request, `keeps_answers` says that an answer can be found by our metadata or by its id, `output_cap` is
    the chat request's member that bounds the answer's tokens, `thinks` says that what a model thinks counts
    towards that bound (see `may_think`), `per_second` how many requests it takes,
    `batches` says that it takes batches of calls at half the price.
    """

    price_tables: tuple[str, ...] = ()
    known_headers: tuple[str, ...] = ()
    key_header: str = "Authorization"
    key_scheme: str = "Bearer "
    headers: Mapping[str, str] = field(default_factory=dict)
    keeps_answers: bool = False
    output_cap: str = "max_tokens"
    thinks: bool = False
    per_second: float | None = None
    batches: bool = False


OPENAI = Vendor(
    ("openai",),
    ("x-request-id",),
    keeps_answers=True,
    output_cap="max_completion_tokens",
    thinks=True,
    batches=True,
)
AZURE = Vendor(
    ("azure", "openai"),
    ("x-request-id", "apim-request-id"),
    key_header="api-key",
    key_scheme="",
    keeps_answers=True,
    output_cap="max_completion_tokens",
    thinks=True,
    per_second=limits.AZURE_REQUESTS_PER_SECOND,
)
AZURE_BY_IDENTITY = replace(AZURE, key_header="Authorization", key_scheme="Bearer ")
"""The same, under a managed identity's token."""
ANTHROPIC = Vendor(
    ("anthropic",),
    ("request-id",),
    key_header="x-api-key",
    key_scheme="",
    headers={"anthropic-version": "2026-10-21"},
    batches=True,
)
GEMINI = Vendor(("google",), key_header="x-goog-api-key", key_scheme="")
"""Documents no header of its own: its answers are known by their error envelope."""
ANY = Vendor()

_PLAIN_MODELS = ("gpt-3", "gpt-4", "chatgpt-4")

HOSTS: Sequence[tuple[str, Vendor]] = (
    ("api.openai.com", OPENAI),
    (".openai.azure.com", AZURE),
    (".services.ai.azure.com", AZURE),
    (".cognitiveservices.azure.com", AZURE),
    ("api.anthropic.com", ANTHROPIC),
    ("generativelanguage.googleapis.com", GEMINI),
)
"""Host names, and suffixes that begin with a dot."""


def checked_url(base_url: str) -> URL:
    """The base URL of a server. Raises `SettingsError` unless it is plain http(s) without credentials."""
    try:
        url = URL(base_url.rstrip("/"))
        plain = url.scheme in ("http", "https") and bool(url.host) and not (url.query_string or url.fragment)
    except ValueError:
        plain = False
    if not plain or url.user or url.password:
        raise SettingsError(
            "a provider's base URL must be http(s)://host[:port][/path] and hold no credentials"
        )
    return url


def vendor_of(url: URL) -> Vendor:
    """The vendor that answers at this address."""
    host = url.host or ""
    for name, vendor in HOSTS:
        if host == name or (name.startswith(".") and host.endswith(name)):
            return vendor
    return ANY


def may_think(model: str) -> bool:
    """Whether a model of OpenAI's may think before it answers: all but the oldest, and all of other names.

    Room for thoughts is not for nothing: rates count a request by the most that its answer may have.
    """
    return not model.startswith(_PLAIN_MODELS)


def is_private(url: URL) -> bool:
    """Whether an address is loopback or private, so that what answers there is our own and costs nothing.

    Names count when no public name can look so: `localhost`, anything below it, and names without a dot.
    """
    host = url.host or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith(".localhost") or "." not in host
