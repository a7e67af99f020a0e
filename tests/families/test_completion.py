"""The family `completion`: one send through the provider that a call names, and the registry of providers."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.content.locales import choose_code
from dragoman.families.completion import Completion
from dragoman.kernel.errors import CallerError, SettingsError
from dragoman.model.completions import CompletionRequest, PromptItem
from dragoman.model.contracts import Provider
from dragoman.model.effects import Outgoing
from dragoman.providers.rehearsal import RehearsalProvider


def make(model: str) -> Provider:
    return RehearsalProvider("rehearsal", choose_code, askable=True, microusd_per_token=1)


def keyless(model: str) -> Provider:
    raise SettingsError("no key for this provider", "provider_credentials_missing")


def registry() -> Completion:
    return Completion({"rehearsal": make, "keyless": keyless}, "rehearsal")


def outgoing(body: bytes, attempt: str = "attempt-1") -> Outgoing:
    facts = {"provider": "", "model": "rehearsal"}
    return Outgoing(attempt, "effect-1", "home", 1, "rehearsal", 0, body, facts)


def test_the_platform_is_empty_or_platform_and_nothing_else() -> None:
    """J-007, J-058: both spellings reach the default provider."""
    completion = registry()
    assert completion.resolve("", "") is completion.resolve("platform", "")
    with pytest.raises(CallerError) as refused:
        completion.resolve("Platform", "")
    assert refused.value.code == "provider_unknown"


def test_a_provider_is_made_once_whoever_asks_by_whichever_model() -> None:
    """One account, one set of connections: the configured model and its name are the same provider."""
    completion = registry()
    assert completion.resolve("rehearsal", "") is completion.resolve("rehearsal", "rehearsal")


def test_missing_credentials_are_told_by_their_code() -> None:
    """GJ-6."""
    with pytest.raises(SettingsError) as refused:
        registry().resolve("keyless", "")
    assert refused.value.code == "provider_credentials_missing"


def test_a_call_goes_out_once_and_is_asked_about_by_its_attempt() -> None:
    """The attempt's id is the provider's handle."""

    async def story() -> None:
        completion = registry()
        provider = completion.resolve("", "")
        body = provider.render(CompletionRequest("en", "fr", (PromptItem("a", "Hello"),)))
        answer = await completion.deliver(outgoing(body), 5.0)
        assert answer.outcome == "SUCCEEDED"
        found = await completion.inquire(outgoing(body), 5.0)
        assert found is not None
        assert found.body == answer.body
        assert await completion.inquire(outgoing(body, "attempt-2"), 5.0) is None
        await completion.close()

    asyncio.run(story())
