"""What is known after each failure, protocol by protocol: table 1.3 of the study."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from yarl import URL

from dragoman.model.completions import ProviderAnswer, Reply
from dragoman.model.contracts import Provider
from dragoman.providers import failures
from tests.conformance.protocols import KEY, PROTOCOLS, Protocol, send_and_fetch
from tests.doubles.proxy import Deed, Proxy
from tests.doubles.responses_server import ResponsesServer
from tests.doubles.scripted_server import Script, ScriptedServer
from tests.providers.calls import QUESTION

ERRORS = {
    "anthropic": {"type": "error", "error": {"type": "api_error", "message": "no"}, "request_id": "req_x"},
    "gemini": {"error": {"code": 0, "status": "INTERNAL", "message": "no"}},
}
ENVELOPE = {"error": {"message": "no", "type": "server_error", "code": "c"}}
ODD_OBJECTS: list[Any] = [
    {"choices": 1},
    {"content": 1},
    {"content": [1, {"text": 2}]},
    {"candidates": [1]},
    {"candidates": [{"content": []}]},
    {"output": [1, {"content": [2]}]},
    {"output": {"a": 1}},
    {"usage": [], "usageMetadata": 1},
    {"promptFeedback": 7},
]
ODD = [b"", b"null", b"[]", b"{}", b"[" * 50_000, b"\xff", *(json.dumps(odd).encode() for odd in ODD_OBJECTS)]
IDS = [item.id for item in QUESTION.items]


@pytest.fixture(params=sorted(PROTOCOLS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def status(name: str, code: int, **headers: str) -> dict[str, Any]:
    return {"act": "status", "status": code, "body": ERRORS.get(name, ENVELOPE), "headers": headers}


def call(
    spoken: Protocol, act: Any, *, known_headers: bool = True, deadline_seconds: float = 20.0
) -> tuple[ProviderAnswer, Reply, ScriptedServer]:
    """One attempt at a server with one act, what was read of it, and the server."""

    async def run() -> tuple[ProviderAnswer, Reply, ScriptedServer]:
        async with spoken.server(Script(acts=[act], known_headers=known_headers and spoken.proves)) as server:
            provider = spoken.connect(server.url)
            answer = await send_and_fetch(provider, provider.render(QUESTION), "attempt-1", deadline_seconds)
            await provider.close()
            return answer, provider.read(answer.body or b""), server

    return asyncio.run(run())


@pytest.mark.parametrize(
    "act, outcome",
    [
        ("close", failures.CONNECTION_UNKNOWN),
        ("reset", failures.CONNECTION_UNKNOWN),
        ("lost", failures.CONNECTION_UNKNOWN),
        ("cut", failures.INVALID_RESPONSE_UNKNOWN),
        ("garbage", failures.INVALID_RESPONSE_UNKNOWN),
        (500, failures.CONNECTION_UNKNOWN),
        (502, failures.CONNECTION_UNKNOWN),
        (504, failures.TIMEOUT_UNKNOWN),
        (408, failures.TIMEOUT_UNKNOWN),
        (307, failures.CONNECTION_UNKNOWN),
    ],
)
def test_what_may_have_been_paid_for_is_unknown_and_was_sent_once(name: str, act: Any, outcome: str) -> None:
    """[J-064]"""
    known = act != 307
    answer, _, server = call(
        PROTOCOLS[name],
        {"act": "status", "status": act, "body": "<html>" if act == 307 else ERRORS.get(name, ENVELOPE)}
        if isinstance(act, int)
        else act,
        known_headers=known,
    )
    assert (answer.outcome, answer.code, len(server.calls)) == (outcome, failures.CODES[outcome], 1)


def test_a_server_that_never_answers_leaves_the_attempt_unknown(name: str) -> None:
    answer, _, server = call(PROTOCOLS[name], "silent", deadline_seconds=0.3)
    assert (answer.outcome, len(server.calls)) == ("TIMEOUT_UNKNOWN", 1)


def test_a_time_out_after_the_work_is_unknown_until_it_is_asked_about(name: str) -> None:
    spoken = PROTOCOLS[name]

    async def run() -> tuple[ProviderAnswer, ProviderAnswer | None, int]:
        async with spoken.server(Script(acts=["late"], known_headers=spoken.proves)) as server:
            provider = spoken.connect(server.url)
            lost = await provider.send(provider.render(QUESTION), "attempt-1", 0.3)
            found = await provider.ask("attempt-1", 20)
            await provider.close()
            return lost, found, len(server.calls)

    lost, found, calls = asyncio.run(run())
    assert (lost.outcome, calls) == ("TIMEOUT_UNKNOWN", 1)
    assert (found is not None) is spoken.recoverable


@pytest.mark.parametrize("code", [400, 401, 403, 404, 413, 422])
def test_a_refusal_counts_where_the_vendor_has_proved_it(name: str, code: int) -> None:
    spoken = PROTOCOLS[name]
    proved, _, _ = call(spoken, status(name, code))
    assert (proved.outcome, proved.code, proved.status) == ("REJECTED", "PROVIDER_REJECTED", code)
    bare = {"act": "status", "status": code, "body": "<html>nginx</html>"}
    unproved, _, _ = call(spoken, bare, known_headers=False)
    assert unproved.outcome == "CONNECTION_UNKNOWN"
    if spoken.proves:
        enveloped, _, _ = call(spoken, status(name, code), known_headers=False)
        assert enveloped.outcome == "CONNECTION_UNKNOWN"


@pytest.mark.parametrize("act", ["slow_down", 429, 503, 529])
def test_a_slow_down_names_its_time(name: str, act: Any) -> None:
    spoken = PROTOCOLS[name]
    played = (
        {"act": act, "retry_after": 7} if isinstance(act, str) else status(name, act, **{"Retry-After": "7"})
    )
    answer, _, _ = call(spoken, played)
    assert (answer.outcome, answer.code, answer.retry_after_seconds, answer.spend_limit) == (
        "REJECTED",
        "PROVIDER_RATE_LIMITED",
        7.0,
        False,
    )


def test_an_empty_account_is_no_slow_down(name: str) -> None:
    answer, _, _ = call(PROTOCOLS[name], "spend_limit")
    assert (answer.outcome, answer.code, answer.spend_limit) == ("REJECTED", "PROVIDER_SPEND_LIMIT", True)


def test_a_wrong_key_is_told_from_a_wrong_request(name: str) -> None:
    """[J-065] Whatever status the vendor has for it: no other call of the job would fare better."""
    answer, _, _ = call(PROTOCOLS[name], "wrong_key")
    assert (answer.outcome, answer.code, answer.status) == ("REJECTED", "PROVIDER_REJECTED", 401)


@pytest.mark.parametrize("act", ["refusal", "stop_filter", "content_filter"])
def test_a_refusal_of_the_content_is_told_from_a_failure(name: str, act: str) -> None:
    answer, reply, _ = call(PROTOCOLS[name], act)
    refused_as_error = (answer.outcome, answer.code) == ("REJECTED", "content_refused")
    assert refused_as_error or (answer.outcome, reply.finish, reply.items) == ("SUCCEEDED", "refused", ())


@pytest.mark.parametrize(
    "act, finish, names",
    [
        ("translate", "complete", IDS),
        ({"act": "omit", "index": 2}, "complete", IDS[:2]),
        ({"act": "duplicate", "index": 0}, "complete", [*IDS, IDS[0]]),
        ({"act": "length", "index": 1}, "length", IDS[:1]),
        ({"act": "length", "index": 0}, "length", []),
        ({"act": "translate", "content": "Sorry, no JSON today."}, "unreadable", []),
        ({"act": "translate", "content": '{"items":[{"id":"k2","text":"x"},{"id"'}, "unreadable", ["k2"]),
    ],
)
def test_each_way_in_which_an_answer_ends_is_read_as_far_as_it_goes(
    name: str, act: Any, finish: str, names: list[str]
) -> None:
    answer, reply, _ = call(PROTOCOLS[name], act)
    assert (answer.outcome, reply.finish) == ("SUCCEEDED", finish)
    assert [one for one, _ in reply.items] == names
    assert reply.usage.total_tokens > 0
    assert reply.usage.microusd > 0
    assert reply.usage.cached_tokens > 0


@pytest.mark.parametrize("share", [0.2, 0.6, 0.98])
@pytest.mark.parametrize("name", [name for name, spoken in PROTOCOLS.items() if not spoken.background])
def test_the_bytes_of_a_cut_answer_are_kept(name: str, share: float) -> None:
    """Of work in the background nothing is lost by a cut: it is fetched again."""
    whole, _, _ = call(PROTOCOLS[name], "translate")
    cut, reply, _ = call(PROTOCOLS[name], {"act": "cut", "share": share})
    assert whole.body
    assert cut.body == whole.body[: int(len(whole.body) * share)]
    assert reply.finish == "unreadable"


@pytest.mark.parametrize("deed", ["cut_before", "cut_answer"])
def test_what_a_proxy_loses_is_unknown_and_only_what_was_kept_comes_back(name: str, deed: Deed) -> None:
    """[J-064] The provider took one call at most; a vendor that stores answers gives the lost one back."""
    spoken = PROTOCOLS[name]

    async def run() -> tuple[ProviderAnswer, ProviderAnswer | None, int, Reply | None]:
        async with spoken.server(Script(known_headers=spoken.proves)) as server:
            address = URL(server.url)
            proxy = Proxy("127.0.0.1", address.port or 0)
            try:
                provider = spoken.connect(str(address.with_port(proxy.port)).rstrip("/"))
                proxy.on(b"Message list", deed)
                lost = await provider.send(provider.render(QUESTION), "attempt-1", 20)
                found = await provider.ask("attempt-1", 20)
                await provider.close()
            finally:
                await asyncio.to_thread(proxy.close)
            return lost, found, len(server.calls), provider.read(found.body or b"") if found else None

    lost, found, calls, reply = asyncio.run(run())
    assert lost.outcome == "CONNECTION_UNKNOWN"
    assert calls == (deed == "cut_answer")
    assert (found is not None) is (spoken.recoverable and deed == "cut_answer")
    assert reply is None or [one for one, _ in reply.items] == IDS


def test_the_key_goes_into_the_vendors_header_and_comes_back_in_nothing(name: str) -> None:
    spoken = PROTOCOLS[name]
    answer, _, server = call(
        spoken, {"act": "status", "status": 401, "body": {"error": {"message": f"wrong key {KEY}"}}}
    )
    [seen] = server.calls
    assert [header for header, value in seen.headers.items() if KEY in value] == [
        {"azure": "api-key", "anthropic": "x-api-key", "gemini": "x-goog-api-key"}.get(name, "authorization")
    ]
    assert KEY.encode() not in seen.body
    assert KEY not in answer.message
    assert KEY.encode() not in (answer.body or b"")


def test_the_standing_words_come_before_the_question(name: str) -> None:
    spoken = PROTOCOLS[name]
    provider = spoken.connect("http://127.0.0.1:9/v1")
    once, other = (
        provider.render(QUESTION),
        provider.render(type(QUESTION)("en", "fr", QUESTION.items[:1], "plain")),
    )
    words = once.index(b"You translate texts")
    assert words < once.index(b'source_locale\\":') < once.index(b"Message list")
    same = next(at for at, pair in enumerate(zip(once, other, strict=False)) if pair[0] != pair[1])
    assert same > words or name == "gemini"


def provider_of(name: str) -> Provider:
    return PROTOCOLS[name].connect("http://127.0.0.1:9/v1")


@pytest.mark.parametrize("kept", ODD)
def test_bytes_of_any_kind_are_unreadable_and_nothing_worse(name: str, kept: bytes) -> None:
    reply = provider_of(name).read(kept)
    assert (reply.items, reply.finish) == ((), "unreadable")


def test_a_response_in_the_background_is_looked_at_until_it_has_ended() -> None:
    """Its id is the answer to the send; a look that finds it working, or that fails, decides nothing."""
    spoken = PROTOCOLS["responses"]

    async def run() -> None:
        async with ResponsesServer(Script(known_headers=True)) as server:
            server.works = 3
            provider: Any = spoken.connect(server.url)
            sent = await provider.send(provider.render(QUESTION), "attempt-1", 20)
            assert (sent.outcome, sent.provider_ref, sent.body) == ("TIMEOUT_UNKNOWN", "resp_1", None)
            said = json.loads(server.calls[0].body)
            assert (said["background"], said["store"], said["metadata"]) == (
                True,
                True,
                {"attempt_id": "attempt-1"},
            )
            server.bad_looks[:] = ["", "cut", "slow_down", "500"]
            for code in ("", "", "PROVIDER_RATE_LIMITED", ""):
                early = await provider.fetch("resp_1", "attempt-1", 20)
                assert (early.outcome, early.provider_ref) == ("TIMEOUT_UNKNOWN", "resp_1")
                assert (early.body, early.code) == (None, code or "PROVIDER_TIMEOUT_UNKNOWN")
            server.works, server._left["resp_1"] = 0, 0
            found = await provider.fetch("resp_1", "attempt-1", 20)
            assert (found.outcome, server.looks, len(server.calls)) == ("SUCCEEDED", 5, 1)
            assert provider.read(found.body).finish == "complete"
            assert await provider.fetch("resp_9", "attempt-1", 20) is None
            server.forget()
            assert await provider.fetch("resp_1", "attempt-1", 20) is None
            await provider.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "code, meaning",
    [
        ("server_error", ("NOT_STARTED", "PROVIDER_NOT_REACHED", True)),
        ("rate_limit_exceeded", ("REJECTED", "PROVIDER_RATE_LIMITED", True)),
        ("invalid_prompt", ("SUCCEEDED", "", False)),
    ],
)
def test_a_response_that_has_failed_was_not_worked_or_refuses_its_content(
    code: str, meaning: tuple[str, str, bool]
) -> None:
    """It counts no tokens: it is sent again, later where it came too fast; and no text is split for it."""
    answer, reply, _ = call(PROTOCOLS["responses"], {"act": "failed", "code": code})
    assert (answer.outcome, answer.code, answer.final) == meaning
    assert reply.finish == ("refused" if meaning[0] == "SUCCEEDED" else "unreadable")


def test_a_response_that_was_canceled_has_ended_unworked() -> None:
    async def run() -> None:
        async with ResponsesServer(Script(known_headers=True)) as server:
            server.works = 50
            provider: Any = PROTOCOLS["responses"].connect(server.url)
            await provider.send(provider.render(QUESTION), "attempt-1", 20)
            assert (await provider.cancel("resp_1", "attempt-1", 20)).outcome == "SUCCEEDED"
            server._left["resp_1"] = 0
            ended = await provider.fetch("resp_1", "attempt-1", 20)
            assert (ended.outcome, ended.final, server.canceled) == ("NOT_STARTED", True, ["resp_1"])
            await provider.close()

    asyncio.run(run())
