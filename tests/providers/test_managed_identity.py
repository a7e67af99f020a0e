"""Keys that a machine is given: cached, renewed in time, asked for once, and never a reason to pay twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dragoman.content.locales import choose_code
from dragoman.kernel.clock import MICROSECONDS, SystemClock
from dragoman.kernel.errors import OutsideError
from dragoman.kernel.limits import TOKEN_LEFT_SECONDS
from dragoman.providers.chat import ChatProvider
from dragoman.providers.hosted import KeyReader
from dragoman.providers.managed_identity import SCOPE, IdentityTokens, managed_identity
from dragoman.providers.vendors import AZURE_BY_IDENTITY
from tests.doubles.chat_server import ChatServer, Script
from tests.doubles.token_service import TokenService, serving_tokens
from tests.providers.calls import NOWHERE, QUESTION

HOUR_SECONDS = 3_600


@dataclass(frozen=True)
class Given:
    token: str
    expires_on: int


class Machine:
    """An identity on cue, with a clock of its own."""

    def __init__(self) -> None:
        self.now_seconds = 1_000_000
        self.asked: list[str] = []
        self.broken = False

    def now(self) -> int:
        return self.now_seconds * MICROSECONDS

    def get_token(self, scope: str, /) -> Given:
        self.asked.append(scope)
        if self.broken:
            raise ConnectionError("secret detail")
        return Given(f"token-{len(self.asked)}-of-a-good-length", self.now_seconds + HOUR_SECONDS)


def test_a_token_is_kept_until_shortly_before_it_runs_out() -> None:
    """[J-060, J-061]"""
    machine = Machine()
    tokens = IdentityTokens(machine, machine.now)

    async def run() -> list[str]:
        read = [await tokens(), await tokens()]
        machine.now_seconds += HOUR_SECONDS - TOKEN_LEFT_SECONDS
        read.append(await tokens())
        machine.now_seconds += 1
        read.append(await tokens())
        return [token.split("-")[1] for token in read]

    assert asyncio.run(run()) == ["1", "1", "1", "2"]
    assert machine.asked == [SCOPE, SCOPE]
    assert SCOPE == "https://cognitiveservices.azure.com/.default"


def test_all_who_wait_share_one_request() -> None:
    machine = Machine()
    tokens = IdentityTokens(machine, machine.now)

    async def run() -> set[str]:
        return set(await asyncio.gather(*(tokens() for _ in range(20))))

    assert len(asyncio.run(run())) == 1
    assert len(machine.asked) == 1


def test_a_token_that_still_holds_is_used_when_it_cannot_be_renewed() -> None:
    machine = Machine()
    tokens = IdentityTokens(machine, machine.now)

    async def run() -> None:
        first = await tokens()
        machine.broken = True
        machine.now_seconds += HOUR_SECONDS - 1
        assert await tokens() == first
        machine.now_seconds += 1
        with pytest.raises(OutsideError) as refused:
            await tokens()
        assert "secret" not in refused.value.message

    asyncio.run(run())


def azure(url: str, key: KeyReader, **more: Any) -> ChatProvider:
    return ChatProvider(
        "azure", "gpt-4o-mini", url, key, choose_code, priced=True, vendor=AZURE_BY_IDENTITY, **more
    )


def test_without_a_token_nothing_is_sent_and_it_is_tried_again() -> None:
    """[J-060] Before the send: NOT_STARTED, and no reason to give the job up."""
    machine = Machine()
    machine.broken = True
    provider = azure(NOWHERE, IdentityTokens(machine, machine.now))
    answer = asyncio.run(provider.send(provider.render(QUESTION), "attempt-1", 20))
    assert (answer.outcome, answer.code) == ("NOT_STARTED", "PROVIDER_NOT_REACHED")


@pytest.fixture
def token_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenService]:
    with serving_tokens(monkeypatch) as service:
        yield service


def test_the_real_library_asks_for_azures_scope_and_its_token_goes_into_the_header(
    token_service: TokenService,
) -> None:
    """[J-059, J-060, J-093] A user-assigned identity, asked once for two calls; its token is in no answer."""

    async def run() -> None:
        async with ChatServer(Script(known_headers=True)) as server:
            tokens = IdentityTokens(managed_identity("client-7"), SystemClock().now)
            provider = azure(server.url, tokens)
            for attempt in ("attempt-1", "attempt-2"):
                assert (await provider.send(provider.render(QUESTION), attempt, 20)).outcome == "SUCCEEDED"
            await provider.close()
            for seen in server.calls:
                assert seen.headers["authorization"] == "Bearer token-of-the-machine"
                assert "api-key" not in seen.headers

    asyncio.run(run())
    [asked] = token_service.asked
    assert asked["resource"] == "https://cognitiveservices.azure.com"
    assert asked["client_id"] == "client-7"
