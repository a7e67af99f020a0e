"""What each protocol is sent, word for word, and what its counts mean in money."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest

from dragoman.content.locales import choose_code
from dragoman.model.completions import CompletionRequest, PromptItem, ProviderAnswer
from dragoman.providers import failures
from dragoman.providers.anthropic import AnthropicProvider
from dragoman.providers.chat import ChatProvider
from dragoman.providers.failures import Sent
from dragoman.providers.gemini import GeminiProvider
from dragoman.providers.prices import Flat
from dragoman.providers.responses import ResponsesProvider
from dragoman.providers.vendors import AZURE, OPENAI
from tests.conformance.protocols import PROTOCOLS
from tests.doubles.chat_server import ChatServer, Script
from tests.doubles.scripted_server import ScriptedServer
from tests.providers.calls import KEY, NOWHERE, QUESTION

V1 = "/openai/v1/chat/completions"
TARIFF = Flat(Decimal(1), Decimal(4))


def make(protocol: Any, url: str = NOWHERE, **more: Any) -> Any:
    options = {"priced": True, "tariff": TARIFF, **more}
    return protocol("p", "model-1", url, lambda: KEY, choose_code, **options)


def body(protocol: Any, **more: Any) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(make(protocol, **more).render(QUESTION))
    return said


def answered(double: ScriptedServer, protocol: Any) -> ProviderAnswer:
    """What one call to a server comes to."""

    async def run() -> ProviderAnswer:
        async with double as server:
            provider = make(protocol, server.url)
            answer: ProviderAnswer = await provider.send(provider.render(QUESTION), "attempt-1", 20)
            await provider.close()
            return answer

    return asyncio.run(run())


def test_anthropic_gets_a_cache_breakpoint_a_schema_and_nothing_that_its_version_removed() -> None:
    said = body(AnthropicProvider)
    assert list(said) == ["model", "output_config", "system", "messages", "max_tokens"]
    [standing] = said["system"]
    assert standing["cache_control"] == {"type": "ephemeral"}
    assert standing["text"].endswith("Style: plain")
    assert said["output_config"]["format"]["type"] == "json_schema"
    assert said["output_config"]["format"]["schema"]["additionalProperties"] is False
    assert [message["role"] for message in said["messages"]] == ["user"]


def test_gemini_gets_its_schema_and_its_bound_covers_thoughts() -> None:
    said = body(GeminiProvider)
    config = said["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseSchema"]["properties"]["items"]["items"]["required"] == ["id", "text"]
    assert config["maxOutputTokens"] > 4_096
    assert list(said)[-1] == "contents"


def test_responses_are_stored_only_where_they_are_fetched() -> None:
    async def run() -> list[dict[str, Any]]:
        spoken = PROTOCOLS["responses"]
        async with spoken.server(Script(known_headers=True)) as server:
            for more in ({}, {"keep_answers": False}):
                provider = spoken.connect(server.url, **more)
                await provider.send(provider.render(QUESTION), "attempt-1", 20)
                await provider.close()
            return [json.loads(seen.body) for seen in server.calls]

    kept, not_kept = asyncio.run(run())
    assert (kept["background"], kept["store"]) == (True, True)
    assert ("background" in not_kept, not_kept["store"]) == (False, False)
    assert kept["metadata"] == not_kept["metadata"] == {"attempt_id": "attempt-1"}
    assert kept["text"]["format"]["strict"] is True


@pytest.mark.parametrize(
    "protocol, url, expected",
    [
        (AnthropicProvider, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        (AnthropicProvider, "https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
        (
            GeminiProvider,
            "https://generativelanguage.googleapis.com",
            "https://generativelanguage.googleapis.com/v1beta/models/model-1:generateContent",
        ),
        (ResponsesProvider, "https://api.openai.com/v1", "https://api.openai.com/v1/responses"),
    ],
)
def test_a_vendors_address_is_understood_with_and_without_its_version(
    protocol: Any, url: str, expected: str
) -> None:
    assert make(protocol, url)._url == expected


@pytest.mark.parametrize(
    "url, version, create, listing, askable",
    [
        ("https://a.openai.azure.com", "", V1, V1, True),
        ("https://a.openai.azure.com/openai/v1", "", V1, V1, True),
        ("https://a.openai.azure.com", "preview", V1, V1, True),
        ("https://a.openai.azure.com", "v1", V1, V1, True),
        (
            "https://a.openai.azure.com/",
            "2025-04-01-preview",
            "/openai/deployments/model-1/chat/completions?api-version=2025-04-01-preview",
            V1,
            True,
        ),
        (
            "https://a.openai.azure.com/openai/v1",
            "2024-10-21",
            "/openai/deployments/model-1/chat/completions?api-version=2024-10-21",
            V1,
            False,
        ),
    ],
)
def test_azure_is_one_more_configuration_of_chat(
    url: str, version: str, create: str, listing: str, askable: bool
) -> None:
    """[J-059, J-064] Versions that do not know `store` are not sent it."""
    provider = make(ChatProvider, url, api_version=version)
    assert provider._create_url == "https://a.openai.azure.com" + create
    assert provider._list_url == "https://a.openai.azure.com" + listing
    assert provider.askable is askable


def test_a_deployment_is_called_by_its_version_with_its_key() -> None:
    """[J-064] Azure with an explicit key."""

    async def run() -> None:
        async with ChatServer(Script(known_headers=True)) as server:
            provider = make(ChatProvider, server.url, vendor=AZURE, api_version="2025-04-01-preview")
            assert (await provider.send(provider.render(QUESTION), "attempt-1", 20)).outcome == "SUCCEEDED"
            await provider.close()
            assert server.azure_versions == ["2025-04-01-preview"]
            assert server.calls[0].headers["api-key"] == KEY

    asyncio.run(run())


def test_a_deployment_has_the_price_of_the_model_that_the_settings_name() -> None:
    provider = ChatProvider(
        "azure",
        "our-deployment",
        "https://a.openai.azure.com",
        lambda: KEY,
        choose_code,
        price_model="gpt-4o-mini",
    )
    assert provider.price_known
    assert not ChatProvider(
        "azure", "our-deployment", "https://a.openai.azure.com", lambda: KEY, choose_code
    ).price_known


def test_what_the_settings_add_goes_into_the_body_and_into_what_stands_there() -> None:
    said = body(GeminiProvider, extra={"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}})
    assert said["generationConfig"]["thinkingConfig"] == {"thinkingLevel": "low"}
    assert said["generationConfig"]["maxOutputTokens"] > 0
    assert body(ChatProvider, extra={"reasoning_effort": "none"})["reasoning_effort"] == "none"


@pytest.mark.parametrize("reply_format, kind", [("schema", "json_schema"), ("object", "json_object")])
def test_a_server_without_strict_schemas_is_asked_for_any_object(reply_format: str, kind: str) -> None:
    assert body(ChatProvider, reply_format=reply_format)["response_format"]["type"] == kind
    assert "response_format" not in body(ChatProvider, reply_format="none")


def test_the_bound_of_the_answer_has_the_name_that_the_vendor_knows() -> None:
    assert "max_completion_tokens" in body(ChatProvider, vendor=OPENAI)
    assert "max_tokens" in body(ChatProvider)


def test_anthropic_counts_its_cache_apart_and_writing_to_it_is_dearer() -> None:
    provider = AnthropicProvider(
        "anthropic", "claude-haiku-4-5", "https://api.anthropic.com", lambda: KEY, choose_code
    )
    said = {
        "content": [{"type": "text", "text": '{"items":[]}'}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 100,
            "cache_read_input_tokens": 1_000,
            "cache_creation_input_tokens": 400,
            "output_tokens": 10,
        },
    }
    usage = provider.read(json.dumps(said).encode()).usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.output_tokens) == (1_500, 1_000, 10)
    assert usage.microusd == 100 + 100 + 500 + 50  # a dollar a million; read at a tenth, written at 5/4
    assert usage.prices.startswith("genai-prices")
    reserved = provider.reserve(provider.render(QUESTION))
    assert reserved[1] > len(provider.render(QUESTION)) * 5 // 4


def test_gemini_bills_thoughts_as_output() -> None:
    said = {
        "candidates": [{"content": {"parts": [{"text": '{"items":[]}'}]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 10,
            "thoughtsTokenCount": 40,
            "totalTokenCount": 150,
        },
    }
    usage = make(GeminiProvider).read(json.dumps(said).encode()).usage
    assert (usage.output_tokens, usage.total_tokens, usage.microusd) == (50, 150, 300)


def test_thoughts_are_no_part_of_the_answer() -> None:
    parts = [{"text": "let me think {", "thought": True}, {"text": '{"items":[{"id":"a","text":"b"}]}'}]
    said = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    reply = make(GeminiProvider).read(json.dumps(said).encode())
    assert (reply.items, reply.finish) == ((("a", "b"),), "complete")


@pytest.mark.parametrize(
    "finish", ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"]
)
def test_a_candidate_that_was_stopped_for_its_content_is_a_refusal(finish: str) -> None:
    said = {"candidates": [{"finishReason": finish, "index": 0}]}
    assert make(GeminiProvider).read(json.dumps(said).encode()).finish == "refused"


@pytest.mark.parametrize(
    "reason, finish",
    [
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
        ("tool_use", "unreadable"),
        ("pause_turn", "unreadable"),
        (None, "unreadable"),
    ],
)
def test_each_stop_reason_of_anthropic_has_one_meaning(reason: str | None, finish: str) -> None:
    said = {"content": [{"type": "text", "text": '{"items":[]}'}], "stop_reason": reason}
    assert make(AnthropicProvider).read(json.dumps(said).encode()).finish == finish


@pytest.mark.parametrize(
    "said, seconds",
    [("1s", 1.0), ("6m0s", 360.0), ("20ms", 0.02), ("1h2m3.5s", 3723.5), ("22.5s", 22.5), ("7", 7.0)],
)
def test_durations_are_read_as_vendors_write_them(said: str, seconds: float) -> None:
    assert failures.duration_seconds(said) == pytest.approx(seconds)


@pytest.mark.parametrize("said", ["", "soon", "-3s", "3 s", "1s2", "∞"])
def test_what_is_no_duration_is_refused(said: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        failures.duration_seconds(said)


LIMITED = {"error": {"message": "slow", "code": "rate_limit_exceeded"}}


@pytest.mark.parametrize(
    "status, headers, said, seconds",
    [
        (429, {"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, LIMITED, 360.0),
        (429, {"x-ratelimit-reset-tokens": "6m0s", "retry-after": "2"}, LIMITED, 2.0),
        (429, {"x-ratelimit-reset-tokens": "6m0s", "retry-after-ms": "1500"}, LIMITED, 1.5),
        (429, {"x-ratelimit-reset-tokens": "whenever"}, LIMITED, None),
        (429, {}, LIMITED, None),
        (401, {"x-ratelimit-reset-tokens": "6m0s"}, LIMITED, None),
        (429, {}, {"error": {"details": [{"retryDelay": "10s"}, {"x": 1}, 7]}}, 10.0),
        (429, {}, {"error": {"details": [{"retryDelay": {"seconds": 1}}]}}, None),
    ],
)
def test_the_wait_that_an_answer_asks_for(
    status: int, headers: dict[str, str], said: object, seconds: float | None
) -> None:
    answer = failures.judge(Sent(True, status, headers, json.dumps(said).encode(), True), ())
    assert (answer.outcome, answer.retry_after_seconds) == ("REJECTED", seconds)


@pytest.mark.parametrize(
    "status, message",
    [
        (400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."),
        (400, "You have reached your specified API usage limits. You will regain access on 2026-12-01."),
        (400, "You have reached your specified workspace API usage limits."),
        (429, "Your prepayment credits are depleted. Please go to AI Studio."),
        (429, "Your project has exceeded its monthly spending cap."),
    ],
)
def test_money_is_known_by_its_words_where_the_vendor_has_no_code_for_it(status: int, message: str) -> None:
    said = {"error": {"type": "invalid_request_error", "message": message}}
    answer = failures.judge(Sent(True, status, {}, json.dumps(said).encode(), True), ())
    assert (answer.outcome, answer.code, answer.spend_limit) == ("REJECTED", "PROVIDER_SPEND_LIMIT", True)


@pytest.mark.parametrize(
    "code",
    [
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
    ],
)
def test_each_code_of_openais_for_no_money_stands_for_itself(code: str) -> None:
    """Its type may be the broader `insufficient_quota`, and need not be."""
    said = {"error": {"message": "no", "type": "rate_limit_error", "code": code}}
    answer = failures.judge(
        Sent(True, 429, {"x-ratelimit-reset-tokens": "6m0s"}, json.dumps(said).encode(), True), ()
    )
    assert (answer.code, answer.spend_limit, answer.retry_after_seconds) == (
        "PROVIDER_SPEND_LIMIT",
        True,
        None,
    )


@pytest.mark.parametrize(
    "error, status",
    [
        ({"code": "context_length_exceeded", "type": "invalid_request_error"}, 413),
        ({"code": 400, "details": [{"@type": "x"}, {"reason": "API_KEY_INVALID"}]}, 401),
        ({"code": "invalid_value"}, 400),
    ],
)
def test_a_400_that_others_have_a_status_for_has_that(error: dict[str, object], status: int) -> None:
    """Too much for one request is asked for in halves, a wrong key ends the job: by their statuses."""
    said = json.dumps({"error": {"message": "no", **error}}).encode()
    answer = failures.judge(Sent(True, 400, {}, said, True), ())
    assert (answer.outcome, answer.code, answer.status) == ("REJECTED", "PROVIDER_REJECTED", status)
    assert answer.message == "HTTP 400: no"


@pytest.mark.parametrize(
    "said, message",
    [
        (
            {"error": "'response_format.type' must be 'json_schema'"},
            "'response_format.type' must be 'json_schema'",
        ),
        (
            {"object": "error", "message": "The model does not exist.", "code": 404},
            "The model does not exist.",
        ),
        ({"error": {"message": "model not found", "type": "api_error"}}, "model not found"),
        ({"message": "no upstream"}, ""),
        ({"detail": "Not Found"}, ""),
    ],
)
def test_compatible_servers_spell_their_errors_in_three_ways(said: dict[str, object], message: str) -> None:
    """LM Studio, vLLM before its wrapper, and all others; what stands on the way speaks otherwise."""
    answer = answered(ChatServer([{"act": "status", "status": 404, "body": said}]), ChatProvider)
    assert answer.outcome == ("REJECTED" if message else "CONNECTION_UNKNOWN")
    assert not message or answer.message == f"HTTP 404: {message}"


def test_a_gateway_before_gemini_speaks_otherwise_than_google() -> None:
    act = {"act": "status", "status": 404, "body": {"error": "no healthy upstream"}}
    assert answered(PROTOCOLS["gemini"].server([act]), GeminiProvider).outcome == "CONNECTION_UNKNOWN"


def test_where_thoughts_count_towards_the_bound_it_has_room_for_them() -> None:
    """OpenAI's and Azure's `max_completion_tokens` bounds reasoning too; `max_tokens` of others does not."""
    hosted = body(ChatProvider, vendor=OPENAI)["max_completion_tokens"]
    assert hosted == body(ChatProvider, vendor=AZURE)["max_completion_tokens"]
    assert hosted == body(ResponsesProvider)["max_output_tokens"]
    assert hosted > body(ChatProvider)["max_tokens"] + 4_000


@pytest.mark.parametrize("model", ["gpt-4o-mini", "gpt-4.1", "gpt-3.5-turbo"])
def test_models_that_do_not_think_claim_no_room_for_it_from_the_rates(model: str) -> None:
    """OpenAI and Azure count a request's tokens by the most that its answer may have."""
    named = ChatProvider("p", model, NOWHERE, lambda: KEY, choose_code, vendor=OPENAI, tariff=TARIFF)
    deployed = make(ChatProvider, vendor=AZURE, price_model=model)
    for provider in (named, deployed):
        assert (
            json.loads(provider.render(QUESTION))["max_completion_tokens"] == body(ChatProvider)["max_tokens"]
        )


def test_other_words_of_a_400_are_no_matter_of_money() -> None:
    said = {"error": {"type": "invalid_request_error", "message": "max_tokens: must be at most 8192"}}
    answer = failures.judge(Sent(True, 400, {}, json.dumps(said).encode(), True), ())
    assert (answer.code, answer.spend_limit) == ("PROVIDER_REJECTED", False)


def test_a_text_of_many_bytes_bounds_the_answer_by_the_setting() -> None:
    request = CompletionRequest("en", "de", (PromptItem("a", "x" * 100_000),))
    for protocol, path in (
        (ChatProvider, ("max_tokens",)),
        (GeminiProvider, ("generationConfig", "maxOutputTokens")),
    ):
        said: Any = json.loads(make(protocol, output_tokens_max=9_000).render(request))
        for name in path:
            said = said[name]
        assert said == 9_000
