"""Providers of batches against their vendors' doubles: what each end of a batch means, and a lost one's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, TypeVar

import pytest

from dragoman.kernel.identity import SystemChance
from dragoman.model.completions import ProviderAnswer
from dragoman.model.contracts import Fetching, Withdrawing
from dragoman.providers.prices import Flat, Halved, listed
from tests.conformance.protocols import BATCHES, KEY
from tests.doubles.anthropic_batch_server import AnthropicBatchServer
from tests.doubles.openai_batch_server import OpenAIBatchServer
from tests.doubles.scripted_server import Act, Script
from tests.providers.calls import QUESTION

T = TypeVar("T")
IDS = [item.id for item in QUESTION.items]


@pytest.fixture(params=sorted(BATCHES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def vendor(name: str, *acts: Act) -> AsyncIterator[tuple[Any, Any]]:
    spoken = BATCHES[name]
    async with spoken.server(Script(acts=acts, known_headers=True)) as server:
        provider = spoken.connect(server.url)
        yield provider, server
        await provider.close()


def run(work: Callable[[Any, Any], Awaitable[T]], name: str, *acts: Act) -> T:
    async def whole() -> T:
        async with vendor(name, *acts) as (provider, server):
            return await work(provider, server)

    return asyncio.run(whole())


async def made_and_ended(provider: Any, server: Any) -> ProviderAnswer | None:
    sent = await provider.send(provider.render(QUESTION), "attempt-1", 20)
    assert (sent.outcome, sent.body, sent.final) == ("TIMEOUT_UNKNOWN", None, False)
    server.hasten()
    answer: ProviderAnswer | None = await provider.fetch(sent.provider_ref, "attempt-1", 20)
    return answer


def test_a_batch_is_made_by_one_short_request_and_fetched_by_its_id(name: str) -> None:
    async def work(provider: Any, server: Any) -> None:
        assert all(isinstance(provider, contract) for contract in (Fetching, Withdrawing))
        body = provider.render(QUESTION)
        sent = await provider.send(body, "attempt-1", 20)
        reference = sent.provider_ref
        assert reference == next(iter(server.batches))
        looked = await provider.fetch(reference, "attempt-1", 20)
        assert (looked.outcome, looked.provider_ref, looked.final) == ("TIMEOUT_UNKNOWN", reference, False)
        found = await provider.fetch(reference, "attempt-1", 20)
        assert (found.outcome, found.provider_ref, len(server.calls)) == ("SUCCEEDED", reference, 1)
        reply = provider.read(found.body)
        assert ([one for one, _ in reply.items], reply.finish) == (IDS, "complete")
        assert await provider.fetch("batch_of_nobody", "attempt-1", 20) is None

    run(work, name)


def test_a_batch_says_whose_it_is(name: str) -> None:
    async def work(provider: Any, server: Any) -> None:
        body = provider.render(QUESTION)
        await provider.send(body, "attempt-1", 20)
        said = json.loads(server.calls[0].body)
        if isinstance(server, AnthropicBatchServer):
            assert said == {"requests": [{"custom_id": "attempt-1", "params": json.loads(body)}]}
            return
        line = json.loads(server.files[said["input_file_id"]])
        assert (line["custom_id"], line["body"]) == ("attempt-1", json.loads(body))
        assert said["metadata"] == {"attempt_id": "attempt-1"}
        assert server.uploads[0]["purpose"] == "batch"
        assert server.uploads[0]["expires_after[anchor]"] == "created_at"

    run(work, name)


def test_a_batch_costs_half(name: str) -> None:
    spoken = BATCHES[name]
    dear, cheap = spoken.plain(), spoken.connect("http://127.0.0.1:9/v1")
    body = dear.render(QUESTION)
    assert cheap.render(QUESTION) == body
    tokens, microusd = dear.reserve(body)
    assert cheap.reserve(body) == (tokens, -(-microusd // 2))

    async def work(provider: Any, server: Any) -> None:
        answer = await made_and_ended(provider, server)
        assert answer is not None
        full, half = dear.read(answer.body or b"").usage, provider.read(answer.body or b"").usage
        assert (half.microusd, half.total_tokens) == (-(-full.microusd // 2), full.total_tokens)
        assert half.microusd > 0
        assert half.prices == f"{full.prices} batch"

    run(work, name)


@pytest.mark.parametrize("model, vendor_", [("gpt-4o-mini", "openai"), ("claude-haiku-5-5", "anthropic")])
def test_half_is_what_the_price_table_says_of_batches(model: str, vendor_: str) -> None:
    from genai_prices import Usage, calc_price

    full = listed(model, vendor_)
    assert full is not None
    used = Usage(input_tokens=10**6, output_tokens=10**6)
    told = calc_price(used, model, provider_id=vendor_, price_context={"processing": "batch"})
    assert Halved(full).microusd(10**6, 10**6) == told.total_price * 10**6
    assert Halved(Flat(Decimal(1), Decimal(2))).microusd(1, 1) == 2


ENDS: list[tuple[Mapping[str, str], Mapping[str, Any], tuple[str, str, bool]]] = [
    ({"": "expire"}, {}, ("NOT_STARTED", "PROVIDER_NOT_REACHED", True)),
    (
        {"": "line_error"},
        {"status": 400, "type": "invalid_request_error"},
        ("REJECTED", "PROVIDER_REJECTED", True),
    ),
    (
        {"": "line_error"},
        {"status": 429, "type": "rate_limit_error"},
        ("REJECTED", "PROVIDER_RATE_LIMITED", True),
    ),
    ({"": "line_error"}, {"status": 500, "type": "api_error"}, ("NOT_STARTED", "PROVIDER_NOT_REACHED", True)),
    (
        {"": "line_error"},
        {"status": 402, "type": "billing_error"},
        ("REJECTED", "PROVIDER_SPEND_LIMIT", True),
    ),
]


@pytest.mark.parametrize("act, more, meaning", ENDS)
def test_an_ended_batch_says_what_became_of_its_request(
    name: str, act: Mapping[str, str], more: Mapping[str, Any], meaning: tuple[str, str, bool]
) -> None:
    """[J-064] Expired and errored requests are not billed: nothing of them stays unknown."""
    played = {"act": act[""], "body": {"error": {"message": "no", "code": "c"}}, **more}
    answer = run(made_and_ended, name, played)
    assert answer is not None
    assert (answer.outcome, answer.code, answer.final) == meaning
    assert answer.body is None


@pytest.mark.parametrize(
    "code, meaning",
    [
        ("invalid_json_line", ("REJECTED", "PROVIDER_REJECTED", 400)),
        ("model_not_found", ("REJECTED", "PROVIDER_REJECTED", 404)),
        ("token_limit_exceeded", ("REJECTED", "PROVIDER_RATE_LIMITED", 429)),
        ("billing_hard_limit_reached", ("REJECTED", "PROVIDER_SPEND_LIMIT", 400)),
        ("content_policy_violation", ("REJECTED", "content_refused", 400)),
    ],
)
def test_a_batch_that_openai_refuses_as_a_whole_was_never_worked(
    code: str, meaning: tuple[str, str, int]
) -> None:
    answer = run(made_and_ended, "openai", {"act": "invalid", "code": code})
    assert answer is not None
    assert (answer.outcome, answer.code, answer.status) == meaning
    assert answer.final


def test_what_an_expired_batch_had_answered_is_used() -> None:
    answer = run(made_and_ended, "openai", "expire_done")
    assert answer is not None
    assert (answer.outcome, answer.body is not None) == ("SUCCEEDED", True)


def test_results_that_are_gone_leave_it_unknown(name: str) -> None:
    assert run(made_and_ended, name, "vanish") is None


@pytest.mark.parametrize("act", ["refusal", "length"])
def test_an_answer_in_a_batch_ends_as_one_outside_of_it(name: str, act: str) -> None:
    async def work(provider: Any, server: Any) -> str:
        answer = await made_and_ended(provider, server)
        assert answer is not None
        assert answer.outcome == "SUCCEEDED"
        return str(provider.read(answer.body or b"").finish)

    assert run(work, name, act) == {"refusal": "refused"}.get(act, act)


def test_a_canceled_batch_was_not_worked(name: str) -> None:
    async def work(provider: Any, server: Any) -> None:
        server.works = 50
        sent = await provider.send(provider.render(QUESTION), "attempt-1", 20)
        told = await provider.cancel(sent.provider_ref, "attempt-1", 20)
        assert (told.outcome, server.canceled) == ("SUCCEEDED", [sent.provider_ref])
        assert (await provider.fetch(sent.provider_ref, "attempt-1", 20)).outcome == "TIMEOUT_UNKNOWN"
        ended = await provider.fetch(sent.provider_ref, "attempt-1", 20)
        assert (ended.outcome, ended.final) == ("NOT_STARTED", True)

    run(work, name)


@pytest.mark.parametrize("act", ["close", "lost", "cut", "garbage"])
def test_a_batch_whose_id_was_lost_is_unknown_and_is_asked_about(name: str, act: str) -> None:
    """[J-064] Found by its metadata at OpenAI, by the custom id in its results at Anthropic."""
    attempt_id = SystemChance().new_id()

    async def work(provider: Any, server: Any) -> None:
        sent = await provider.send(provider.render(QUESTION), attempt_id, 20)
        assert (sent.outcome, sent.provider_ref) == ("CONNECTION_UNKNOWN", "")
        other = await provider.send(provider.render(QUESTION), SystemChance().new_id(), 20)
        assert other.provider_ref
        if act in ("close", "garbage"):
            server.hasten()
            assert await provider.ask(attempt_id, 20) is None
            return
        early = await provider.ask(attempt_id, 20)
        assert (early.outcome, early.final) == ("TIMEOUT_UNKNOWN", False)
        server.hasten()
        found = await provider.ask(attempt_id, 20)
        assert [one for one, _ in provider.read(found.body).items] == IDS
        assert (found.provider_ref, len(server.calls)) == (next(iter(server.batches)), 2)

    run(work, name, act)


def test_a_batch_of_another_time_is_nobody_elses() -> None:
    async def work(provider: Any, server: Any) -> None:
        await provider.send(provider.render(QUESTION), "attempt-1", 20)
        for batch in server.batches.values():
            batch["created_at"] = "2020-01-01T00:00:00Z"
        assert await provider.ask(SystemChance().new_id(), 20) is None

    run(work, "anthropic")


def test_every_page_of_the_list_is_looked_through(name: str) -> None:
    async def work(provider: Any, server: Any) -> None:
        await provider.send(provider.render(QUESTION), "attempt-1", 20)
        [batch] = server.batches.values()
        for number in range(150):
            later = f"other_{number}"
            server.batches[later] = batch | {"id": later, "metadata": None}
            server._left[later] = 0
            if isinstance(server, AnthropicBatchServer):  # many of one moment, each another attempt's
                [mine] = [json.loads(lines) for key, lines in server.results.items() if key == batch["id"]]
                server.results[later] = json.dumps(mine | {"custom_id": f"attempt-{number + 2}"}).encode()
        server.hasten()
        assert (await provider.ask("attempt-1", 20)).outcome == "SUCCEEDED"

    run(work, name)


def test_pages_of_batches_from_before_the_attempt_are_not_asked_for() -> None:
    attempt_id = SystemChance().new_id()

    async def work(provider: Any, server: Any) -> None:
        await provider.send(provider.render(QUESTION), attempt_id, 20)
        [batch] = server.batches.values()
        old = {"created_at": "2020-01-01T00:00:00Z", "request_counts": {"succeeded": 2}}
        older = {f"old_{number}": batch | {"id": f"old_{number}"} | old for number in range(350)}
        server.batches = older | server.batches
        server._left |= dict.fromkeys(older, 0)
        seen: list[str] = []
        listed = server._told

        def told(said: Mapping[str, Any]) -> Any:
            seen.extend(one["id"] for one in said.get("data", ()))
            return listed(said)

        server._told = told
        server.hasten()
        assert (await provider.ask(attempt_id, 20)).outcome == "SUCCEEDED"
        assert len(seen) == 100

    run(work, "anthropic", {"act": "lost"})


def test_a_key_that_may_make_batches_and_not_list_them_leaves_nothing_to_ask() -> None:
    async def work(provider: Any, server: Any) -> None:
        await provider.send(provider.render(QUESTION), "attempt-1", 20)
        server.hides_answers = True
        assert await provider.ask("attempt-1", 20) is None

    run(work, "openai")


def test_a_file_that_was_not_taken_leaves_nothing_unknown() -> None:
    async def work(provider: Any, server: OpenAIBatchServer) -> None:
        server.refuse_uploads = 1
        sent = await provider.send(provider.render(QUESTION), "attempt-1", 20)
        assert (sent.outcome, len(server.calls)) == ("NOT_STARTED", 0)

    run(work, "openai")


@pytest.mark.parametrize(
    "act, meaning",
    [
        ("slow_down", ("REJECTED", "PROVIDER_RATE_LIMITED")),
        ("spend_limit", ("REJECTED", "PROVIDER_SPEND_LIMIT")),
        ({"act": "status", "status": 500}, ("CONNECTION_UNKNOWN", "PROVIDER_CONNECTION_UNKNOWN")),
    ],
)
def test_a_batch_that_is_not_made_ends_as_a_plain_call_would(
    name: str, act: Any, meaning: tuple[str, str]
) -> None:
    async def work(provider: Any, _server: Any) -> ProviderAnswer:
        answer: ProviderAnswer = await provider.send(provider.render(QUESTION), "attempt-1", 20)
        return answer

    answer = run(work, name, act)
    assert (answer.outcome, answer.code, answer.final) == (*meaning, False)


def test_a_look_that_fails_decides_nothing(name: str) -> None:
    """A refusal of the look is none of the batch: only an ended batch says that."""

    async def work(provider: Any, server: Any) -> None:
        sent = await provider.send(provider.render(QUESTION), "attempt-1", 20)
        await server.stop()
        looked = await provider.fetch(sent.provider_ref, "attempt-1", 2)
        asked = await provider.ask("attempt-1", 2)
        for answer in (looked, asked):
            assert (answer.outcome, answer.final) == ("TIMEOUT_UNKNOWN", False)

    run(work, name)


def test_the_key_is_in_a_header_only(name: str) -> None:
    async def work(provider: Any, server: Any) -> None:
        await provider.send(provider.render(QUESTION), "attempt-1", 20)
        [seen] = server.calls
        assert [header for header, value in seen.headers.items() if KEY in value] == [
            "x-api-key" if name == "anthropic" else "authorization"
        ]
        assert KEY.encode() not in seen.body

    run(work, name)
