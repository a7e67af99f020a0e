"""What every provider promises, member by member."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.content.locales import choose_code
from dragoman.kernel.errors import LocaleError
from dragoman.model.completions import CompletionRequest, PromptItem, Reply
from dragoman.model.contracts import Provider
from dragoman.providers.apertium import ApertiumProvider, installed_pairs
from dragoman.providers.apertium_http import ApertiumHttpProvider
from dragoman.providers.chat import ChatProvider
from dragoman.providers.deepl import DeepLProvider
from dragoman.providers.libretranslate import LibreTranslateProvider, read_languages
from dragoman.providers.prices import Flat
from dragoman.providers.pseudo import PseudoProvider
from dragoman.providers.rehearsal import RehearsalProvider
from tests.conformance.protocols import batches, protocol, send_and_fetch
from tests.doubles.chat_server import ChatServer
from tests.doubles.text_servers import ApertiumServer, DeepLServer, LibreTranslateServer
from tests.tidy.plugins import members
from tests.tidy.source import modules

T = TypeVar("T")
Sends = Callable[[], int]
Opened = AbstractAsyncContextManager[tuple[Provider, Sends | None]]

KEY = "sk-conformance"
QUESTION = CompletionRequest(
    "en",
    "es",
    (
        PromptItem("k2", "The house has ⟦1⟧ doors."),
        PromptItem("a7", "Hello ⟦1⟧world⟦/1⟧", note="a greeting", markers={"1": "<b>"}),
        PromptItem("q9", "Garden"),
        PromptItem("zz", "Two lines\nof text", max_length=200),
    ),
    tone="plain",
)


@asynccontextmanager
async def chat() -> AsyncIterator[tuple[Provider, Sends | None]]:
    async with ChatServer() as server:
        tariff = Flat(Decimal(1), Decimal(4))
        provider = ChatProvider(
            "chat", "stub-1", server.url, lambda: KEY, choose_code, priced=True, tariff=tariff
        )
        yield provider, lambda: len(server.calls)
        await provider.close()


@asynccontextmanager
async def pseudo() -> AsyncIterator[tuple[Provider, Sends | None]]:
    yield PseudoProvider("pseudo", choose_code), None


@asynccontextmanager
async def rehearsal() -> AsyncIterator[tuple[Provider, Sends | None]]:
    provider = RehearsalProvider("rehearsal", choose_code, microusd_per_token=2)
    yield provider, lambda: len(provider.calls)


@asynccontextmanager
async def apertium() -> AsyncIterator[tuple[Provider, Sends | None]]:
    yield ApertiumProvider("apertium", installed_pairs(), choose_code), None


@asynccontextmanager
async def apertium_http() -> AsyncIterator[tuple[Provider, Sends | None]]:
    async with ApertiumServer() as server:
        provider = ApertiumHttpProvider("apertium-http", server.url, choose_code, server.PAIRS)
        yield provider, lambda: len(server.calls)
        await provider.close()


@asynccontextmanager
async def deepl() -> AsyncIterator[tuple[Provider, Sends | None]]:
    async with DeepLServer() as server:
        provider = DeepLProvider("deepl", server.url, lambda: KEY, choose_code, priced=True)
        yield provider, lambda: len(server.calls)
        await provider.close()


@asynccontextmanager
async def libretranslate() -> AsyncIterator[tuple[Provider, Sends | None]]:
    async with LibreTranslateServer() as server:
        languages = read_languages(json.dumps(server.LANGUAGES).encode())
        provider = LibreTranslateProvider("libretranslate", server.url, lambda: KEY, choose_code, languages)
        yield provider, lambda: len(server.calls)
        await provider.close()


OPENERS: dict[str, Callable[[], Opened]] = {
    "anthropic": lambda: protocol("anthropic"),
    "anthropic_batches": lambda: batches("anthropic"),
    "openai_batches": lambda: batches("openai"),
    "gemini": lambda: protocol("gemini"),
    "responses": lambda: protocol("responses"),
    "chat": chat,
    "pseudo": pseudo,
    "rehearsal": rehearsal,
    "apertium": apertium,
    "apertium_http": apertium_http,
    "deepl": deepl,
    "libretranslate": libretranslate,
}


@pytest.fixture(params=sorted(OPENERS))
def opened(request: pytest.FixtureRequest) -> Callable[[], Opened]:
    if request.param == "apertium" and not shutil.which("apertium") and os.environ.get("CI") != "true":
        pytest.skip("the program apertium is not installed")
    return OPENERS[request.param]


def use(opened: Callable[[], Opened], act: Callable[[Provider], Awaitable[T]]) -> tuple[T, int | None]:
    """What `act` gives with a fresh provider, and how many requests were sent meanwhile."""

    async def run() -> tuple[T, int | None]:
        async with opened() as (provider, sends):
            return await act(provider), sends() if sends else None

    return asyncio.run(run())


async def ask_question(provider: Provider) -> tuple[bytes, Reply]:
    answer = await send_and_fetch(provider, provider.render(QUESTION), "attempt-1")
    assert answer.outcome == "SUCCEEDED", answer.message
    assert answer.body is not None
    return answer.body, provider.read(answer.body)


def test_no_member_escapes_this_suite() -> None:
    house = modules(Path(dragoman.__file__).parent)
    assert {name for name in members(house) if name.startswith("providers.")} == {
        f"providers.{name}" for name in OPENERS
    }


def test_the_same_question_has_the_same_bytes_and_no_key_in_them(opened: Callable[[], Opened]) -> None:
    async def rendered(provider: Provider) -> bytes:
        return provider.render(QUESTION)

    once, sends = use(opened, rendered)
    again, _ = use(opened, rendered)
    assert once == again
    assert KEY.encode() not in once
    assert not sends


def test_each_id_comes_back_once_with_its_markers(opened: Callable[[], Opened]) -> None:
    (_, reply), _ = use(opened, ask_question)
    assert reply.finish == "complete"
    assert [name for name, _ in reply.items] == [item.id for item in QUESTION.items]
    for (_, text), item in zip(reply.items, QUESTION.items, strict=True):
        assert text.strip()
        assert sorted(re.findall(r"⟦/?\d+⟧", text)) == sorted(re.findall(r"⟦/?\d+⟧", item.text))


def test_one_attempt_is_one_send(opened: Callable[[], Opened]) -> None:
    _, sends = use(opened, ask_question)
    assert sends in (1, None)


@pytest.mark.parametrize("locale", ["xx-XX", "not a locale", "", "und", "e"])
def test_what_is_no_locale_is_refused_before_any_send(opened: Callable[[], Opened], locale: str) -> None:
    async def refuse(provider: Provider) -> None:
        for wrong in (
            CompletionRequest("en", locale, QUESTION.items),
            CompletionRequest(locale, "es", QUESTION.items),
        ):
            with pytest.raises(LocaleError):
                provider.render(wrong)
        with pytest.raises(LocaleError) as refused:
            provider.target_code(locale)
        assert refused.value.code == "unsupported_locale"

    _, sends = use(opened, refuse)
    assert not sends


def test_no_call_uses_more_than_was_reserved(opened: Callable[[], Opened]) -> None:
    async def compare(provider: Provider) -> None:
        body = provider.render(QUESTION)
        _, reply = await ask_question(provider)
        tokens, microusd = provider.reserve(body)
        assert 0 < reply.usage.total_tokens <= tokens
        assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.output_tokens
        assert 0 <= reply.usage.microusd <= microusd
        assert (microusd > 0) == provider.priced

    use(opened, compare)


def test_a_cut_answer_loses_its_tail_and_nothing_else(opened: Callable[[], Opened]) -> None:
    async def cut(provider: Provider) -> None:
        body, whole = await ask_question(provider)
        counts = []
        for length in range(len(body)):
            reply = provider.read(body[:length])
            assert reply.items == whole.items[: len(reply.items)]
            assert reply.finish == "unreadable"
            counts.append(len(reply.items))
        assert counts == sorted(counts)
        assert counts[-1] == len(whole.items)

    use(opened, cut)


@given(kept=st.binary() | st.text().map(str.encode))
def test_no_bytes_make_reading_raise(kept: bytes) -> None:
    async def read(provider: Provider) -> Reply:
        return provider.read(kept)

    for name in (
        "pseudo",
        "rehearsal",
        "chat",
        "apertium_http",
        "deepl",
        "libretranslate",
    ):  # apertium reads as pseudo does, and may not be installed
        use(OPENERS[name], read)


def test_an_attempt_that_nobody_made_is_not_found(opened: Callable[[], Opened]) -> None:
    async def ask(provider: Provider) -> object:
        return await provider.ask("attempt-9", 10)

    assert use(opened, ask) == (None, 0) or use(opened, ask) == (None, None)


def test_closing_twice_is_closing_once(opened: Callable[[], Opened]) -> None:
    async def close(provider: Provider) -> None:
        await provider.close()
        await provider.close()

    use(opened, close)
    use(opened, lambda provider: _used_and_closed(provider))


async def _used_and_closed(provider: Provider) -> None:
    await ask_question(provider)
    await provider.close()
    await provider.close()
