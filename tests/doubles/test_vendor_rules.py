"""The doubles refuse what their vendors' documentation forbids: one example of each rule."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from tests.conformance.protocols import BATCHES, PROTOCOLS
from tests.doubles import vendor_rules as rules
from tests.doubles.anthropic_batch_server import AnthropicBatchServer
from tests.doubles.anthropic_server import REMOVED, AnthropicServer
from tests.doubles.chat_server import ChatServer
from tests.doubles.gemini_server import GeminiServer
from tests.doubles.openai_batch_server import OpenAIBatchServer
from tests.doubles.responses_server import ResponsesServer
from tests.doubles.scripted_server import Script, ScriptedServer
from tests.providers.calls import QUESTION


def asked(name: str) -> dict[str, Any]:
    """What our own provider of a protocol sends."""
    said: dict[str, Any] = json.loads(PROTOCOLS[name].connect("http://127.0.0.1:9/v1").render(QUESTION))
    return said


OPEN = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
OPEN_FORMAT = {"format": {"strict": True, "schema": OPEN}}
LINE = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {}}
FILE = {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "3600"}
BATCH: dict[str, Any] = {"input_file_id": "f", "endpoint": "/v1/chat/completions", "completion_window": "24h"}


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"a": "1"}},
        {"store": True, "metadata": {"a": 1}},
        {"store": True, "metadata": {"a": "x" * 513}},
        {"max_length": 3},
        {"messages": [{"role": "machine", "content": "x"}]},
        {"response_format": {"json_schema": {"strict": True, "schema": OPEN}}},
    ],
)
def test_openais_chat(more: dict[str, Any]) -> None:
    said = asked("openai")
    assert not rules.openai_chat(said | {"store": True, "metadata": {"attempt_id": "a"}})
    assert rules.openai_chat(said | more)


def test_a_deployment_of_azures_under_a_version_that_knows_no_store() -> None:
    said = asked("azure") | {"store": True}
    assert not rules.azure_deployment("2025-04-01-preview", said)
    assert "store" in rules.azure_deployment("2024-10-21", said)


@pytest.mark.parametrize(
    "more",
    [
        {"background": True, "store": False},
        {"max_output_tokens": 8},
        {"messages": []},
        {"text": {"format": {"strict": True, "schema": OPEN}}},
    ],
)
def test_openais_responses(more: dict[str, Any]) -> None:
    said = asked("responses")
    assert not rules.openai_responses(said | {"background": True, "store": True})
    assert rules.openai_responses(said | more)


@pytest.mark.parametrize(
    "fields, filename, lines",
    [
        ({"purpose": "fine-tune"}, "a.jsonl", [LINE]),
        ({"expires_after[seconds]": "60"}, "a.jsonl", [LINE]),
        ({}, "a.json", [LINE]),
        ({}, "a.jsonl", []),
        ({}, "a.jsonl", [LINE, LINE]),
        ({}, "a.jsonl", [LINE | {"url": "/chat/completions"}]),
    ],
)
def test_openais_files(fields: Mapping[str, str], filename: str, lines: list[Mapping[str, Any]]) -> None:
    assert not rules.openai_file(FILE, "a.jsonl", [LINE])
    assert rules.openai_file({**FILE, **fields}, filename, lines)


@pytest.mark.parametrize("more", [{"completion_window": "2h"}, {"endpoint": "/v1/responses"}, {"a": "b"}])
def test_openais_batches(more: dict[str, Any]) -> None:
    assert not rules.openai_batch(BATCH, [LINE])
    assert rules.openai_batch(BATCH | more, [LINE])


@pytest.mark.parametrize(
    "more",
    [
        {"temperature": 1},
        {"max_tokens": 0},
        {"response_format": {}},
        {"messages": [{"role": "system", "content": "x"}]},
        {"output_config": {"format": {"type": "json_schema", "schema": OPEN}}},
    ],
)
def test_anthropics_messages(more: dict[str, Any]) -> None:
    said = asked("anthropic")
    assert not rules.anthropic_message(said, REMOVED)
    assert rules.anthropic_message(said | more, REMOVED)
    assert rules.anthropic_batch({"requests": [{"custom_id": "a", "params": said | more}]}, REMOVED)


@pytest.mark.parametrize("names", [[], [""], ["a b"], ["x" * 65], ["a", "a"]])
def test_anthropics_batches(names: list[str]) -> None:
    said = json.loads(BATCHES["anthropic"].plain().render(QUESTION))
    assert not rules.anthropic_batch({"requests": [{"custom_id": "0199-a", "params": said}]})
    assert rules.anthropic_batch({"requests": [{"custom_id": name, "params": said} for name in names]})


def test_headers() -> None:
    assert rules.anthropic_headers({"anthropic-version": "2026-01-01"})
    assert rules.openai_headers({"x-client-request-id": "x" * 513})


@pytest.mark.parametrize(
    "more",
    [
        {"system": "x"},
        {"generationConfig": {"max_tokens": 1}},
        {"generationConfig": {"responseSchema": {"type": "OBJECT"}}},
        {"generationConfig": {"responseMimeType": "application/json", "responseSchema": {"type": "object"}}},
        {"contents": [{"role": "assistant", "parts": []}]},
    ],
)
def test_googles_requests(more: dict[str, Any]) -> None:
    said = asked("gemini")
    assert not rules.gemini_request(said)
    assert rules.gemini_request(said | more)


@pytest.mark.parametrize(
    "more, status",
    [
        ({"target_lang": "XX"}, 400),
        ({"source_lang": "EN-GB"}, 400),
        ({"text": []}, 400),
        ({"text": ["x"] * 51}, 400),
        ({"text": ["x" * 140_000]}, 413),
        ({"formality": "more", "target_lang": "CS"}, 400),
        ({"model_type": "best"}, 400),
        ({"tag_handling_version": "v3"}, 400),
    ],
)
def test_deepls_requests(more: dict[str, Any], status: int) -> None:
    said: dict[str, Any] = {
        "text": ["Hello"],
        "source_lang": "EN",
        "target_lang": "ES",
        "formality": "prefer_more",
    }
    assert rules.deepl_request(said, json.dumps(said).encode()) == (0, "")
    assert rules.deepl_request(said | more, json.dumps(said | more).encode())[0] == status


@pytest.mark.parametrize(
    "double, hosted, status",
    [
        (ChatServer, True, 401),
        (ChatServer, False, 404),
        (ResponsesServer, True, 401),
        (OpenAIBatchServer, True, 401),
        (AnthropicServer, True, 401),
        (AnthropicBatchServer, True, 401),
        (GeminiServer, True, 403),
    ],
)
def test_nobody_is_served_without_a_key(double: type[ScriptedServer], hosted: bool, status: int) -> None:
    """Whoever looks as little as whoever makes; a server of one's own asks nobody who it is."""

    async def run() -> set[int]:
        async with double(Script(known_headers=hosted)) as server, aiohttp.ClientSession() as session:
            asked = (session.get(f"{server.url}/x"), session.post(f"{server.url}/x", json={}))
            return {(await one).status for one in asked}

    assert asyncio.run(run()) == {status}
