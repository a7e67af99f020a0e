"""Chat completions against a real scripted server: what is sent, and what is read."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from dragoman.content.locales import choose_code
from dragoman.kernel import limits
from dragoman.kernel.errors import LocaleError, SettingsError
from dragoman.model.completions import Usage
from dragoman.providers.chat import ChatProvider
from dragoman.providers.vendors import AZURE, OPENAI
from tests.doubles.chat_server import ChatServer, Script
from tests.providers.calls import KEY, NOWHERE, QUESTION, closing, make_chat, one_call, send, status


def test_the_last_user_message_is_the_question_and_the_stable_part_comes_first() -> None:
    said = json.loads(make_chat().render(QUESTION))
    system, user = said["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert json.loads(user["content"]) == {
        "source_locale": "en",
        "target_locale": "de",
        "items": [
            {"id": "k2", "text": "Save ⟦1⟧"},
            {"id": "a7", "text": "Cancel"},
            {"id": "q9", "text": "Message list"},
        ],
    }
    assert system["content"].endswith("Style: plain")
    assert said["response_format"]["json_schema"]["strict"] is True


def test_the_body_arrives_as_rendered_and_the_attempts_id_in_a_header() -> None:
    async def run() -> None:
        async with ChatServer() as server:
            provider = make_chat(server.url)
            body = provider.render(QUESTION)
            await provider.send(body, "attempt-1", 20)
            await provider.close()
            (seen,) = server.calls
            assert (seen.body, seen.attempt_id) == (body, "attempt-1")
            assert seen.headers["authorization"] == f"Bearer {KEY}"

    asyncio.run(run())


def test_a_vendor_that_keeps_answers_gets_the_id_behind_the_same_frozen_bytes_and_can_be_asked() -> None:
    async def run() -> None:
        async with ChatServer(Script(known_headers=True)) as server:
            provider = make_chat(server.url, OPENAI)
            body = provider.render(QUESTION)
            sent = await provider.send(body, "attempt-1", 20)
            await provider.send(body, "attempt-2", 20)
            first, second = server.calls
            assert first.body.startswith(body[:-1])
            assert first.body.replace(b"attempt-1", b"attempt-2") == second.body
            found = await provider.ask("attempt-1", 20)
            assert found is not None
            assert (found.outcome, found.provider_ref) == ("SUCCEEDED", "chatcmpl-1")
            assert provider.read(found.body or b"") == provider.read(sent.body or b"")
            assert await provider.ask("attempt-3", 20) is None
            await provider.close()

    asyncio.run(run())


def test_an_inquiry_that_fails_is_no_finding() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        provider = make_chat(f"http://127.0.0.1:{held.getsockname()[1]}/v1", OPENAI)
        asked = asyncio.run(closing(provider, provider.ask("attempt-1", 20)))
    assert asked is not None
    assert asked.outcome == "NOT_STARTED"


def test_a_key_that_may_send_and_not_read_leaves_nothing_to_ask() -> None:
    """A restricted key: waiting until it may look would have no end, so the money policy decides."""

    async def run() -> None:
        async with ChatServer(Script(known_headers=True)) as server:
            server.hides_answers = True
            provider = make_chat(server.url, OPENAI)
            sent = await provider.send(provider.render(QUESTION), "attempt-1", 20)
            assert (sent.outcome, len(server.stored)) == ("SUCCEEDED", 1)
            assert await provider.ask("attempt-1", 20) is None
            await provider.close()

    asyncio.run(run())


def test_a_server_that_keeps_nothing_is_not_asked() -> None:
    provider = make_chat()
    assert not provider.askable
    assert asyncio.run(closing(provider, provider.ask("attempt-1", 20))) is None


def test_connections_are_used_again_until_they_have_been_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ports(pause_seconds: float) -> set[int]:
        async with ChatServer() as server:
            provider = make_chat(server.url)
            for attempt in ("attempt-1", "attempt-2"):
                await provider.send(provider.render(QUESTION), attempt, 20)
                await asyncio.sleep(pause_seconds)
            await provider.close()
            return {seen.client_port for seen in server.calls}

    assert len(asyncio.run(ports(0))) == 1
    assert limits.PROVIDER_IDLE_SECONDS <= 5
    monkeypatch.setattr(limits, "PROVIDER_IDLE_SECONDS", 0.01)
    assert len(asyncio.run(ports(0.05))) == 2


def test_a_priced_provider_without_a_key_sends_nothing_and_says_so() -> None:
    for key in (None, "", "two\nlines", "schlüssel"):
        answer = asyncio.run(send(make_chat(NOWHERE, key=key)))
        assert (answer.outcome, answer.code) == ("NOT_STARTED", "provider_credentials_missing")
        assert not key or key not in answer.message


def test_a_key_that_a_server_echoes_is_taken_out_of_message_and_bytes() -> None:
    echo = {"error": {"message": f"wrong key {KEY} given"}}
    for code in (401, 200):
        answer, _, _ = one_call(Script(acts=[status(code, echo)]))
        assert KEY not in answer.message
        assert KEY.encode() not in (answer.body or KEY.encode())


def test_a_word_that_a_local_server_takes_as_its_key_stays_in_the_translations() -> None:
    async def run() -> bytes | None:
        async with ChatServer(Script(dictionary={"Cancel": "Abbrechen"})) as server:
            return (await send(make_chat(server.url, key="Abbrechen"))).body

    assert b"Abbrechen" in (asyncio.run(run()) or b"")


def test_azure_takes_the_key_in_a_header_of_its_own() -> None:
    async def run() -> None:
        async with ChatServer(Script(known_headers=True)) as server:
            await send(make_chat(server.url, AZURE))
            assert server.calls[0].headers["api-key"] == KEY
            assert "authorization" not in server.calls[0].headers

    asyncio.run(run())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.openai.com/v1",
        "ftp://x/v1",
        "http://user:pass@x/v1",
        "http://x/v1?key=1",
        "http:///v1",
        "http://[",
    ],
)
def test_an_address_that_is_none_or_holds_credentials_is_refused(url: str) -> None:
    with pytest.raises(SettingsError) as refused:
        make_chat(url)
    assert "pass" not in refused.value.message


@pytest.mark.parametrize(
    "url, priced",
    [
        ("https://api.openai.com/v1", True),
        ("https://llm.example.com/v1", True),
        ("http://8.8.8.8:8000/v1", True),
        ("http://127.0.0.1:11434/v1", False),
        ("http://[::1]:11434/v1", False),
        ("http://10.1.2.3/v1", False),
        ("http://192.168.7.1/v1", False),
        ("http://localhost:1234/v1", False),
        ("http://ollama:11434/v1", False),
        ("http://localhost.example.com/v1", True),
    ],
)
def test_what_answers_at_home_is_unpriced_unless_said_otherwise(url: str, priced: bool) -> None:
    assert ChatProvider("p", "gpt-4o-mini", url, lambda: None, choose_code).priced is priced
    assert (
        ChatProvider("p", "gpt-4o-mini", url, lambda: None, choose_code, priced=not priced).priced
        is not priced
    )


def test_locales_that_a_server_does_not_list_are_refused_before_any_spend() -> None:
    listed = ("zh", "zh-TW", "pt-PT", "pt-BR", "sr")
    provider = ChatProvider("p", "m", NOWHERE, lambda: None, choose_code, locales=listed)
    assert (provider.target_code("zh-Hant"), provider.target_code("pt-BR")) == ("zh-TW", "pt-BR")
    with pytest.raises(LocaleError):
        provider.target_code("sr-Latn")
    with pytest.raises(LocaleError):
        provider.render(QUESTION)


def test_a_good_answer_is_read_with_its_usage_and_price() -> None:
    answer, _, provider = one_call(Script(dictionary={"Cancel": "Abbrechen"}))
    reply = provider.read(answer.body or b"")
    assert answer.outcome == "SUCCEEDED"
    assert reply.items == (("k2", "de Save ⟦1⟧"), ("a7", "Abbrechen"), ("q9", "de Message list"))
    assert reply.finish == "complete"
    prompt, output = len(provider.render(QUESTION)) // 4, reply.usage.output_tokens
    assert reply.usage.microusd == -(-(prompt * 15 + output * 60) // 100)
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens) == (prompt, prompt // 2)
    assert reply.usage.total_tokens == prompt + output


def test_no_call_costs_more_than_was_reserved_for_it() -> None:
    answer, _, provider = one_call(Script())
    usage = provider.read(answer.body or b"").usage
    tokens, microusd = provider.reserve(provider.render(QUESTION))
    assert 0 < usage.total_tokens <= tokens
    assert 0 < usage.microusd <= microusd


def test_an_unpriced_provider_counts_tokens_and_no_money() -> None:
    provider = make_chat(NOWHERE, priced=False)
    assert provider.reserve(provider.render(QUESTION))[1] == 0
    assert provider.read(_completion("{}", "stop")).usage == Usage(1_000, 100, 400, 1_100, 0)


def test_the_price_table_knows_cached_tokens() -> None:
    provider = ChatProvider("p", "gpt-4o-mini", "https://api.openai.com/v1", lambda: None, choose_code)
    assert provider.price_known
    assert provider.read(_completion("{}", "stop")).usage.microusd == 180
    unheard = ChatProvider("p", "unheard-of", "https://api.openai.com/v1", lambda: None, choose_code)
    assert not unheard.price_known


@pytest.mark.parametrize(
    "act, finish, names",
    [
        ({"act": "omit", "index": 2}, "complete", ["k2", "a7"]),
        ({"act": "duplicate", "index": 0}, "complete", ["k2", "a7", "q9", "k2"]),
        ({"act": "length", "index": 1}, "length", ["k2"]),
        ({"act": "length", "index": 0}, "length", []),
        ("refusal", "refused", []),
        ("stop_filter", "refused", []),
        ({"act": "translate", "content": "I am sorry, no JSON today."}, "unreadable", []),
        (
            {"act": "translate", "content": '```json\n{"items":[{"id":"k2","text":"x"}]}\n```'},
            "complete",
            ["k2"],
        ),
        ({"act": "translate", "content": '{"items":[{"id":"k2","text":"x"},{"id"'}, "unreadable", ["k2"]),
    ],
)
def test_each_way_in_which_an_answer_ends_is_read_as_far_as_it_goes(
    act: Any, finish: str, names: list[str]
) -> None:
    answer, _, provider = one_call(Script(acts=[act]))
    reply = provider.read(answer.body or b"")
    assert (answer.outcome, reply.finish, [name for name, _ in reply.items]) == ("SUCCEEDED", finish, names)
    assert reply.usage.total_tokens > 0


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        b"{}",
        b'{"choices":[]}',
        b'{"choices":[null]}',
        b'{"choices":[{"message":null}]}',
        b'{"choices":[{"message":{"content":7}}]}',
        b'{"choices":{"0":1},"usage":[]}',
        b"[" * 100_000,
        b'{"error":{"message":"behind a 200"}}',
    ],
)
def test_bytes_of_any_kind_are_unreadable_and_nothing_worse(kept: bytes) -> None:
    reply = make_chat().read(kept)
    assert (reply.items, reply.finish) == ((), "unreadable")


def _completion(content: str, finish: str) -> bytes:
    said = {
        "choices": [{"message": {"content": content}, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": 1_000,
            "completion_tokens": 100,
            "prompt_tokens_details": {"cached_tokens": 400},
        },
    }
    return json.dumps(said).encode()
