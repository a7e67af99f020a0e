"""One process that keeps calls in flight: `python -m bench.provider_calls {bare|ours} URL IN_FLIGHT CALLS`.

`bare` is an aiohttp session that posts the same bytes and parses the reply: the ceiling. `ours` is the chat
provider with everything that it promises: bytes kept as they come, outcome judged, reply read.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

import aiohttp

from bench.children import cpu_seconds, tell
from dragoman.content.locales import choose_code
from dragoman.model.completions import CompletionRequest, PromptItem
from dragoman.providers.chat import ChatProvider

FIELDS = 20
_DEADLINE_SECONDS = 60.0

Call = Callable[[], Awaitable[None]]


def request() -> CompletionRequest:
    """A group of short interface texts, as they are in catalogues."""
    texts = [f"Message number {number} was moved to the folder that you chose" for number in range(FIELDS)]
    items = tuple(PromptItem(f"k{number}", text) for number, text in enumerate(texts))
    return CompletionRequest("en", "de", items)


def provider(url: str) -> ChatProvider:
    """The chat provider at the double."""
    return ChatProvider("double", "m", url, lambda: None, choose_code, priced=False)


async def bare(url: str, in_flight: int, calls: int) -> None:
    """The ceiling."""
    body = provider(url).render(request())
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:

        async def call() -> None:
            async with session.post(f"{url}/chat/completions", data=body, headers=headers) as response:
                said = json.loads(await response.read())
            assert len(json.loads(said["choices"][0]["message"]["content"])["items"]) == FIELDS

        await measure(call, in_flight, calls)


async def ours(url: str, in_flight: int, calls: int) -> None:
    """The provider, from question to reply."""
    chat = provider(url)
    asked = request()

    async def call() -> None:
        answer = await chat.send(chat.render(asked), "attempt", _DEADLINE_SECONDS)
        assert len(chat.read(answer.body or b"").items) == FIELDS

    await measure(call, in_flight, calls)
    await chat.close()


async def measure(call: Call, in_flight: int, calls: int) -> None:
    """Warm the connections, then keep `in_flight` calls going until all are made."""
    await asyncio.gather(*[call() for _ in range(in_flight)])
    left = iter(range(calls))

    async def keep_calling() -> None:
        for _ in left:
            await call()

    used, began = cpu_seconds(), time.perf_counter()
    await asyncio.gather(*[keep_calling() for _ in range(in_flight)])
    took = time.perf_counter() - began
    tell(calls_per_second=calls / took, cpu_ms=(cpu_seconds() - used) / calls * 1e3)


if __name__ == "__main__":
    _, kind, url, in_flight, calls = sys.argv
    asyncio.run({"bare": bare, "ours": ours}[kind](url, int(in_flight), int(calls)))
