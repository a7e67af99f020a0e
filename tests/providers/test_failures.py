"""What is known after each failure of a send: table 1.3, row by row, against a real server."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from typing import Any

import aiohttp
import pytest

from dragoman.content.locales import choose_code
from dragoman.kernel import limits
from dragoman.kernel.errors import CODES
from dragoman.machines import tables
from dragoman.model.completions import ProviderAnswer
from dragoman.providers import failures
from dragoman.providers.chat import ChatProvider
from dragoman.providers.vendors import OPENAI
from tests.doubles.chat_server import ChatServer, Script
from tests.providers.calls import QUESTION, against, make_chat, one_call, send, status

ENVELOPE = {"error": {"message": "no", "type": "t", "code": "c"}}
UNATTRIBUTED = [status(code, "<html>") for code in (400, 401, 402, 403, 404, 413, 422, 429, 503, 529)]
BROKEN = [
    ("close", failures.CONNECTION_UNKNOWN),
    ("reset", failures.CONNECTION_UNKNOWN),
    ("cut", failures.INVALID_RESPONSE_UNKNOWN),
    ({"act": "cut", "share": 0}, failures.INVALID_RESPONSE_UNKNOWN),
    ("garbage", failures.INVALID_RESPONSE_UNKNOWN),
    (status(500, ENVELOPE), failures.CONNECTION_UNKNOWN),
    (status(502, ENVELOPE), failures.CONNECTION_UNKNOWN),
    (status(504, ENVELOPE), failures.TIMEOUT_UNKNOWN),
    (status(408, ENVELOPE), failures.TIMEOUT_UNKNOWN),
    (status(307, "", Location="/v1/chat/completions"), failures.CONNECTION_UNKNOWN),
    *[(act, failures.CONNECTION_UNKNOWN) for act in UNATTRIBUTED],
]


@pytest.mark.parametrize("act, outcome", BROKEN)
def test_what_may_have_been_paid_for_is_unknown_and_was_sent_once(act: Any, outcome: str) -> None:
    answer, seen, _ = one_call(Script(acts=[act]))
    assert (answer.outcome, answer.code, seen) == (outcome, failures.CODES[outcome], 1)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 413, 422])
def test_a_status_with_the_protocols_envelope_is_a_rejection(code: int) -> None:
    answer, seen, _ = one_call(Script(acts=[status(code, ENVELOPE)]))
    assert (answer.outcome, answer.code, answer.status, seen) == ("REJECTED", "PROVIDER_REJECTED", code, 1)
    assert answer.message == f"HTTP {code}: no"


def test_a_hosted_vendors_status_counts_by_its_header_and_by_nothing_else() -> None:
    for known, outcome in ((True, "REJECTED"), (False, "CONNECTION_UNKNOWN")):
        script = Script(acts=[status(404, ENVELOPE)], known_headers=known)
        answer, _, _ = one_call(script, vendor=OPENAI)
        assert answer.outcome == outcome
        assert answer.provider_ref == ("req_1" if known else "")


@pytest.mark.parametrize("code", [429, 503, 529])
def test_an_attributed_slow_down_names_its_time(code: int) -> None:
    act = status(code, ENVELOPE, **{"Retry-After": "7"})
    answer, _, _ = one_call(Script(acts=[act]))
    assert (answer.outcome, answer.code, answer.retry_after_seconds, answer.spend_limit) == (
        "REJECTED",
        "PROVIDER_RATE_LIMITED",
        7.0,
        False,
    )


@pytest.mark.parametrize(
    "act", ["spend_limit", status(402, ENVELOPE), status(400, {"error": {"type": "insufficient_quota"}})]
)
def test_an_empty_account_is_no_slow_down(act: Any) -> None:
    answer, _, _ = one_call(Script(acts=[act]))
    assert (answer.outcome, answer.code, answer.spend_limit) == ("REJECTED", "PROVIDER_SPEND_LIMIT", True)


def test_a_content_filter_error_refuses_the_content() -> None:
    azure = {"error": {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}
    for act in ("content_filter", status(400, azure)):
        answer, _, _ = one_call(Script(acts=[act]))
        assert (answer.outcome, answer.code) == ("REJECTED", "content_refused")


def test_a_server_that_never_answers_leaves_the_attempt_unknown() -> None:
    answer, seen, _ = one_call(Script(acts=["silent"]), deadline_seconds=0.3)
    assert (answer.outcome, answer.code, seen) == ("TIMEOUT_UNKNOWN", "PROVIDER_TIMEOUT_UNKNOWN", 1)


def test_the_bytes_of_a_cut_answer_are_kept_and_its_whole_items_read() -> None:
    whole, _, provider = one_call(Script(dictionary={"Cancel": "Schließen 😀"}))
    assert whole.body
    content = json.loads(whole.body)["choices"][0]["message"]["content"]
    ends = [at + 1 for at, sign in enumerate(content) if sign == "}"][: len(QUESTION.items)]
    begin = whole.body.index(b'"content": "') + len(b'"content": ')
    complete_at = [begin + len(json.dumps(content[:end])) - 1 for end in ends]
    for length in range(begin, complete_at[-1] + 2):  # also in the middle of an escape
        found = provider.read(whole.body[:length]).items
        assert len(found) == sum(at <= length for at in complete_at)
    cut, _, _ = one_call(Script(acts=[{"act": "cut", "content": content, "share": 0.5}]))
    assert cut.body == whole.body[: len(whole.body) // 2]


def test_a_long_answer_that_is_cut_is_kept_to_its_last_byte() -> None:
    content = "x" * 1_000_000
    whole, _, _ = one_call(Script(acts=[{"act": "translate", "content": content}]))
    cut, _, _ = one_call(Script(acts=[{"act": "cut", "content": content, "share": 0.9}]))
    assert whole.body
    assert cut.body == whole.body[: int(len(whole.body) * 0.9)]


def test_a_connection_that_breaks_when_it_is_used_again_leaves_the_attempt_unknown() -> None:
    async def run() -> tuple[list[str], int]:
        async with ChatServer(["translate", "close"]) as server:
            provider = make_chat(server.url)
            body = provider.render(QUESTION)
            answers = [await provider.send(body, attempt, 20) for attempt in ("attempt-1", "attempt-2")]
            await provider.close()
            return [answer.outcome for answer in answers], len({seen.client_port for seen in server.calls})

    assert asyncio.run(run()) == (["SUCCEEDED", "CONNECTION_UNKNOWN"], 1)


def test_a_body_that_stalls_after_its_beginning_is_kept_too() -> None:
    async def stalling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}}}")
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"id": "half')
        await reader.read()

    answer = asyncio.run(against(stalling, deadline_seconds=0.3))
    assert (answer.outcome, answer.body) == ("INVALID_RESPONSE_UNKNOWN", b'{"id": "half')


@pytest.mark.parametrize("spoken", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 2x0 ??\r\n\r\n", b""])
def test_a_server_that_does_not_speak_http_leaves_the_attempt_unknown(spoken: bytes) -> None:
    async def babbling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}}}")
        writer.write(spoken)

    answer = asyncio.run(against(babbling))
    assert answer.outcome == "CONNECTION_UNKNOWN"


def test_a_closed_port_and_an_unknown_name_mean_that_nothing_was_sent() -> None:
    with socket.socket() as held:  # bound and never listening: nobody else can open it meanwhile
        held.bind(("127.0.0.1", 0))
        for url in (f"http://127.0.0.1:{held.getsockname()[1]}/v1", "http://no-such-host.invalid/v1"):
            answer = asyncio.run(send(make_chat(url)))
            assert (answer.outcome, answer.code) == ("NOT_STARTED", "PROVIDER_NOT_REACHED")


def test_a_handshake_that_fails_or_stalls_means_that_nothing_was_sent() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    for server in (plain, mute):
        run = against(server, scheme="https", deadline_seconds=0.3)
        assert asyncio.run(run).outcome == "NOT_STARTED"


def test_waiting_for_a_free_connection_until_the_deadline_means_that_nothing_was_sent() -> None:
    async def run() -> tuple[ProviderAnswer, int]:
        async with ChatServer(["hang"]) as server:
            narrow = ChatProvider(
                "stub", "m", server.url, lambda: "k", choose_code, priced=True, connections=1
            )
            body = narrow.render(QUESTION)
            first = asyncio.create_task(narrow.send(body, "attempt-1", 20))
            await server.received(1)
            second = await narrow.send(body, "attempt-2", 0.05)
            server.release()
            await first
            await narrow.close()
            return second, len(server.calls)

    second, seen = asyncio.run(run())
    assert (second.outcome, seen) == ("NOT_STARTED", 1)


def test_no_time_left_and_a_closed_provider_send_nothing() -> None:
    async def run() -> tuple[list[str], int]:
        async with ChatServer() as server:
            provider = make_chat(server.url)
            late = await provider.send(provider.render(QUESTION), "attempt-1", 0)
            await provider.close()
            closed = await provider.send(provider.render(QUESTION), "attempt-2", 20)
            return [late.outcome, closed.outcome], len(server.calls)

    assert asyncio.run(run()) == (["NOT_STARTED", "NOT_STARTED"], 0)


def test_every_outcome_and_code_of_the_tables_is_one_that_the_house_knows() -> None:
    outcomes = {row.outcome for row in failures.STATUSES} | {outcome for _, outcome in failures.EXCEPTIONS}
    codes = {row.code for row in failures.STATUSES} | {code for code in failures.CODES.values() if code}
    assert outcomes | set(failures.CODES) <= set(tables.ATTEMPT.states)
    assert codes <= set(CODES)


def test_the_exception_table_holds_for_each_class_of_the_client() -> None:
    key = aiohttp.client_reqrep.ConnectionKey("h", 1, False, True, None, None, None)
    refused = aiohttp.ClientConnectorError(key, OSError(111, "refused"))
    tls = aiohttp.ClientConnectorSSLError(key, ssl.SSLError(1, "bad"))
    known: list[tuple[BaseException, str]] = [
        (refused, "NOT_STARTED"),
        (tls, "NOT_STARTED"),
        (aiohttp.ConnectionTimeoutError(), "NOT_STARTED"),
        (aiohttp.ServerDisconnectedError(), "CONNECTION_UNKNOWN"),
        (aiohttp.ClientOSError(104, "reset"), "CONNECTION_UNKNOWN"),
        (aiohttp.ClientPayloadError(), "CONNECTION_UNKNOWN"),
        (aiohttp.SocketTimeoutError(), "TIMEOUT_UNKNOWN"),
        (TimeoutError(), "TIMEOUT_UNKNOWN"),
        (ConnectionResetError(), "CONNECTION_UNKNOWN"),
    ]
    assert [failures.outcome_of(error, connected=True) for error, _ in known] == [o for _, o in known]
    assert {failures.outcome_of(error, connected=False) for error, _ in known} == {"NOT_STARTED"}


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sun, 29 Nov 2026 12:00:30 GMT", "date": "Sun, 29 Nov 2026 12:00:00 GMT"}, 30.0),
        ({"retry-after": "Sun, 29 Nov 2026 12:00:30 GMT"}, None),
        ({"retry-after": "99999999"}, float(limits.PROVIDER_RETRY_AFTER_SECONDS_MAX)),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_the_time_that_a_provider_names(headers: dict[str, str], seconds: float | None) -> None:
    assert failures.retry_after_seconds(headers) == seconds
