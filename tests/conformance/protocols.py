"""The protocols of language models, each with a scripted server that follows its documentation.

`PROTOCOLS` names every way to speak to a model; `recoverable` ones can be asked about a lost answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dragoman.content.locales import choose_code
from dragoman.model.completions import ProviderAnswer
from dragoman.model.contracts import Fetching, Provider
from dragoman.providers.anthropic import AnthropicProvider
from dragoman.providers.anthropic_batches import AnthropicBatchesProvider
from dragoman.providers.chat import ChatProvider
from dragoman.providers.gemini import GeminiProvider
from dragoman.providers.openai_batches import OpenAIBatchesProvider
from dragoman.providers.prices import Flat
from dragoman.providers.responses import ResponsesProvider
from dragoman.providers.vendors import ANTHROPIC, AZURE, OPENAI, Vendor
from tests.doubles.anthropic_batch_server import AnthropicBatchServer
from tests.doubles.anthropic_server import AnthropicServer
from tests.doubles.chat_server import ChatServer
from tests.doubles.gemini_server import GeminiServer
from tests.doubles.openai_batch_server import OpenAIBatchServer
from tests.doubles.responses_server import ResponsesServer
from tests.doubles.scripted_server import Script, ScriptedServer

KEY = "sk-conformance-of-a-good-length"


@dataclass(frozen=True)
class Protocol:
    """One way to speak to a model. `proves` says that a vendor marks its answers by a header; its double then
    refuses what that vendor refuses.
    """

    server: type[ScriptedServer]
    provider: Callable[..., Provider]
    vendor: Vendor | None = None
    options: tuple[tuple[str, Any], ...] = ()
    recoverable: bool = False
    proves: bool = True
    background: bool = False

    def connect(self, url: str, **more: Any) -> Provider:
        """A provider in front of a server at this address."""
        options: dict[str, Any] = {
            "priced": True,
            "tariff": Flat(Decimal(1), Decimal(4)),
            **({"vendor": self.vendor} if self.vendor else {}),
            **dict(self.options),
            **more,
        }
        return self.provider("model", "stub-1", url, lambda: KEY, choose_code, **options)


PROTOCOLS = {
    "openai": Protocol(ChatServer, ChatProvider, OPENAI, recoverable=True),
    "azure": Protocol(
        ChatServer, ChatProvider, AZURE, (("api_version", "2025-04-01-preview"),), recoverable=True
    ),
    "chat": Protocol(ChatServer, ChatProvider, proves=False),
    "responses": Protocol(ResponsesServer, ResponsesProvider, OPENAI, background=True),
    "responses at home": Protocol(ResponsesServer, ResponsesProvider, proves=False),
    "anthropic": Protocol(AnthropicServer, AnthropicProvider),
    "gemini": Protocol(GeminiServer, GeminiProvider, proves=False),
}


@asynccontextmanager
async def protocol(name: str) -> AsyncIterator[tuple[Provider, Callable[[], int] | None]]:
    """A provider with its server, and how many paid requests that has seen."""
    spoken = PROTOCOLS[name]
    async with spoken.server(Script(known_headers=spoken.proves)) as server:
        if isinstance(server, ResponsesServer):
            server.works = 0
        provider = spoken.connect(server.url)
        yield provider, lambda: len(server.calls)
        await provider.close()


async def send_and_fetch(
    provider: Provider, body: bytes, attempt_id: str, deadline_seconds: float = 60.0
) -> ProviderAnswer:
    """One send, and the answer of work in the background, looked at until it has ended."""
    answer = sent = await provider.send(body, attempt_id, deadline_seconds)
    while answer.outcome == "TIMEOUT_UNKNOWN" and sent.provider_ref and isinstance(provider, Fetching):
        found = await provider.fetch(sent.provider_ref, attempt_id, deadline_seconds)
        if found is None:
            return sent
        answer = found
    return answer


@dataclass(frozen=True)
class Batches:
    """One way to send calls as batches, over the provider whose protocol their requests are written in."""

    server: type[OpenAIBatchServer | AnthropicBatchServer]
    provider: Callable[..., Provider]
    spoken: Callable[..., Provider]
    options: tuple[tuple[str, Any], ...] = ()

    def plain(self, url: str = "http://127.0.0.1:9/v1", **more: Any) -> Provider:
        """The provider of single calls to the same model."""
        vendor = ANTHROPIC if self.server is AnthropicBatchServer else OPENAI
        options = {"priced": True, "tariff": Flat(Decimal(1), Decimal(4)), "vendor": vendor, **more}
        return self.spoken("model", "stub-1", url, lambda: KEY, choose_code, **options)

    def connect(self, url: str) -> Provider:
        """A provider in front of a server at this address."""
        vendor = ANTHROPIC if self.server is AnthropicBatchServer else OPENAI
        return self.provider(
            *("model", "stub-1", url, lambda: KEY, choose_code),
            spoken=self.plain(url, halved=True),
            vendor=vendor,
            priced=True,
            **dict(self.options),
        )


BATCHES = {
    "openai": Batches(OpenAIBatchServer, OpenAIBatchesProvider, ChatProvider),
    "anthropic": Batches(AnthropicBatchServer, AnthropicBatchesProvider, AnthropicProvider),
}


@asynccontextmanager
async def batches(name: str) -> AsyncIterator[tuple[Provider, Callable[[], int] | None]]:
    """The same as `protocol`, through batches that have ended by the first look."""
    spoken = BATCHES[name]
    async with spoken.server(Script(known_headers=True)) as server:
        server.works = 0
        provider = spoken.connect(server.url)
        yield provider, lambda: len(server.calls)
        await provider.close()
