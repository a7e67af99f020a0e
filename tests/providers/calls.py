"""One question, and ways to put it to a provider in front of a real server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any, TypeVar

from dragoman.content.locales import choose_code
from dragoman.model.completions import CompletionRequest, PromptItem, ProviderAnswer
from dragoman.providers.chat import ChatProvider
from dragoman.providers.prices import Flat
from dragoman.providers.vendors import ANY, Vendor
from tests.doubles.chat_server import ChatServer, Script

T = TypeVar("T")
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

QUESTION = CompletionRequest(
    "en",
    "de",
    (PromptItem("k2", "Save ⟦1⟧"), PromptItem("a7", "Cancel"), PromptItem("q9", "Message list")),
    tone="plain",
)
KEY = "sk-a-secret-of-a-good-length"
NOWHERE = "http://127.0.0.1:9/v1"
"""For providers that are never to send."""


def make_chat(
    url: str = NOWHERE, vendor: Vendor = ANY, key: str | None = KEY, *, priced: bool = True
) -> ChatProvider:
    tariff = Flat(Decimal("0.15"), Decimal("0.60"))
    return ChatProvider(
        "stub", "stub-1", url, lambda: key, choose_code, priced=priced, tariff=tariff, vendor=vendor
    )


def status(code: int, body: Any = "", **headers: str) -> dict[str, Any]:
    """The act of answering with a bare status."""
    return {"act": "status", "status": code, "body": body, "headers": headers}


def one_call(
    script: Script, *, vendor: Vendor = ANY, deadline_seconds: float = 20.0
) -> tuple[ProviderAnswer, int, ChatProvider]:
    """One send to a scripted server: the answer, how many requests the server saw, and the provider."""

    async def run() -> tuple[ProviderAnswer, int, ChatProvider]:
        async with ChatServer(script) as server:
            provider = make_chat(server.url, vendor)
            return await send(provider, deadline_seconds), len(server.calls), provider

    return asyncio.run(run())


async def send(provider: ChatProvider, deadline_seconds: float = 20.0) -> ProviderAnswer:
    return await closing(provider, provider.send(provider.render(QUESTION), "attempt-1", deadline_seconds))


async def closing(provider: ChatProvider, waited: Awaitable[T]) -> T:
    answer = await waited
    await provider.close()
    return answer


async def against(serve: Serve, *, scheme: str = "http", deadline_seconds: float = 20.0) -> ProviderAnswer:
    """One send to a server that speaks bytes."""
    gone = asyncio.Event()

    async def to_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(to_the_end, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        answer = await send(make_chat(f"{scheme}://127.0.0.1:{port}/v1"), deadline_seconds)
        await gone.wait()
        return answer
