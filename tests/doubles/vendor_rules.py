"""What vendors refuse of a request, by their documentation: each function gives the reason, '' for none.

OpenAI: API reference of chat completions, responses, files and batches; structured outputs; `metadata` goes
with `store` only, and background work is stored. Anthropic: API reference of messages and message batches,
structured outputs, versions. Google: `generateContent`, `Schema`. DeepL: its OpenAPI, and the guides of tags
and of errors. A double that takes what its vendor refuses
would let us send it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_CHAT = _names(
    """
    model messages response_format store metadata max_completion_tokens reasoning_effort verbosity temperature
    top_p seed service_tier prompt_cache_key safety_identifier stop n tools tool_choice user
    """
)
_RESPONSES = _names(
    """
    model input instructions text store background metadata max_output_tokens reasoning service_tier tools
    prompt_cache_key safety_identifier temperature top_p truncation include tool_choice parallel_tool_calls
    """
)
_BATCH = frozenset({"input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after"})
_ENDPOINTS = frozenset({"/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/completions"})
_FILE_SECONDS = range(3_600, 2_592_000 + 1)
_OUTPUT_TOKENS_MIN = 16
_MESSAGES = _names(
    """
    model messages max_tokens system output_config thinking metadata stop_sequences stream service_tier tools
    tool_choice container context_management cache_control inference_geo
    """
)
_VERSIONS = frozenset({"2023-06-01", "2026-10-21"})
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GEMINI = _names("contents systemInstruction generationConfig safetySettings tools toolConfig cachedContent")
_GENERATION = _names(
    """
    responseMimeType responseSchema responseJsonSchema maxOutputTokens temperature topP topK seed
    stopSequences candidateCount thinkingConfig responseModalities presencePenalty frequencyPenalty
    mediaResolution
    """
)
_SCHEMA = _names(
    """
    type format title description nullable enum items maxItems minItems properties required propertyOrdering
    minProperties maxProperties minLength maxLength pattern example anyOf default minimum maximum
    """
)
_DEEPL_BYTES_MAX = 128 * 1024
_DEEPL_TEXTS_MAX = 50
_DEEPL_MODELS = frozenset({"quality_optimized", "prefer_quality_optimized", "latency_optimized"})
_DEEPL_BOTH = _names(
    "AR BG CS DA DE EL ES ET FI FR HE HU ID IT JA KO LT LV NB NL PL RO RU SK SL SV TH TR UK VI ZH"
)
_DEEPL_SOURCES = _DEEPL_BOTH | {"EN", "PT"}
_DEEPL_TARGETS = _DEEPL_BOTH | _names("EN EN-GB EN-US ES-419 PT PT-BR PT-PT ZH-HANS ZH-HANT")
_DEEPL_FORMAL = _names("DE FR IT ES ES-419 NL PL PT-BR PT-PT JA RU VI")
_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})


def openai_headers(headers: Mapping[str, str]) -> str:
    """The id that a client gives its request: ASCII, and no longer than 512 characters."""
    mine = headers.get("x-client-request-id", "")
    return "" if mine.isascii() and len(mine) <= 512 else "X-Client-Request-Id is invalid"


def openai_chat(said: Mapping[str, Any]) -> str:
    """A body of `POST /v1/chat/completions`."""
    shape = (said.get("response_format") or {}).get("json_schema") or {"schema": {}}
    return _first(
        _unknown(said, _CHAT, "Unrecognized request argument supplied"),
        _missing(said, ("model", "messages")),
        _roles(said["messages"], ("system", "developer", "user", "assistant")),
        _metadata(said, needs_store=True),
        strict_schema(shape["schema"]) if shape.get("strict") else "",
    )


def azure_deployment(version: str, said: Mapping[str, Any]) -> str:
    """The same for a deployment under a version: `store` came with previews from October 2024 on."""
    stores = version.endswith("-preview") and version >= "2024-10-01"
    told = sorted({"store", "metadata"} & set(said))
    if told and not stores:
        return f"Unrecognized request argument supplied: {told[0]}"
    return openai_chat(said)


def openai_responses(said: Mapping[str, Any]) -> str:
    """A body of `POST /v1/responses`."""
    shape = (said.get("text") or {}).get("format") or {"schema": {}}
    return _first(
        _unknown(said, _RESPONSES, "Unknown parameter"),
        _missing(said, ("model", "input")),
        _metadata(said, needs_store=False),
        "Background responses require store=true."
        if said.get("background") and said.get("store") is False
        else "",
        "Invalid 'max_output_tokens'" if said.get("max_output_tokens", 99) < _OUTPUT_TOKENS_MIN else "",
        strict_schema(shape["schema"]) if shape.get("strict") else "",
    )


def openai_file(fields: Mapping[str, Any], filename: str, lines: Sequence[Mapping[str, Any]]) -> str:
    """An upload of `POST /v1/files` for a batch, and its lines."""
    seconds = str(fields.get("expires_after[seconds]", _FILE_SECONDS[0]))
    names = [line.get("custom_id") for line in lines]
    wrong = [line for line in lines if line.get("method") != "POST" or line.get("url") not in _ENDPOINTS]
    return _first(
        "Invalid purpose" if fields.get("purpose") != "batch" else "",
        "Invalid file format for Batch API. Must be .jsonl" if not filename.endswith(".jsonl") else "",
        "Invalid anchor" if fields.get("expires_after[anchor]", "created_at") != "created_at" else "",
        "" if seconds.isdecimal() and int(seconds) in _FILE_SECONDS else "Invalid expires_after.seconds",
        "invalid_url" if wrong or not lines else "",
        "duplicate_custom_id" if len(set(names)) < len(names) or not all(names) else "",
    )


def openai_batch(said: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> str:
    """A body of `POST /v1/batches`, with the lines of its file."""
    return _first(
        _unknown(said, _BATCH, "Unknown parameter"),
        _missing(said, ("input_file_id", "endpoint", "completion_window")),
        "Invalid completion_window" if said["completion_window"] != "24h" else "",
        _metadata(said, needs_store=False),
        "mismatched_endpoint" if any(line["url"] != said["endpoint"] for line in lines) else "",
    )


def strict_schema(schema: Mapping[str, Any], place: str = "()") -> str:
    """A schema in strict mode: every object closed, every property required."""
    if schema.get("type") == "array":
        return strict_schema(schema["items"], f"{place}[]")
    if schema.get("type") != "object":
        return ""
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") is not False:
        return f"Invalid schema: {place}: 'additionalProperties' is required to be supplied and to be false."
    if set(schema.get("required", ())) != set(properties):
        return f"Invalid schema: {place}: 'required' must name every property."
    return _first(*(strict_schema(inner, f"{place}.{name}") for name, inner in properties.items()))


def anthropic_headers(headers: Mapping[str, str]) -> str:
    """The version that every request names."""
    version = headers.get("anthropic-version", "")
    return "" if version in _VERSIONS else f"anthropic-version: {version!r} is not a valid version"


def anthropic_message(said: Mapping[str, Any], removed: Collection[str] = ()) -> str:
    """A body of `POST /v1/messages`; `removed` are the parameters that the version took away."""
    shape = (said.get("output_config") or {}).get("format") or {"type": "json_schema", "schema": {}}
    system = said.get("system")
    blocks = system if isinstance(system, list) else []
    return _first(
        _unknown(said, _MESSAGES - set(removed), "Extra inputs are not permitted"),
        _missing(said, ("model", "max_tokens", "messages")),
        _roles(said["messages"], ("user", "assistant")),
        "max_tokens: must be at least 1" if said["max_tokens"] < 1 else "",
        "system: text blocks only" if any(block.get("type") != "text" for block in blocks) else "",
        "output_config.format: json_schema only" if shape.get("type") != "json_schema" else "",
        _closed(shape["schema"]),
    )


def anthropic_batch(said: Mapping[str, Any], removed: Collection[str] = ()) -> str:
    """A body of `POST /v1/messages/batches`. Of its requests the vendor complains later; here at once."""
    asked = said.get("requests") or []
    names = [str(one.get("custom_id", "")) for one in asked]
    return _first(
        _unknown(said, {"requests"}, "Extra inputs are not permitted"),
        "requests: at least one" if not asked else "",
        "custom_id: wrong pattern" if not all(map(_CUSTOM_ID.fullmatch, names)) else "",
        "custom_id: not unique" if len(set(names)) < len(names) else "",
        *(anthropic_message(one["params"], removed) for one in asked),
    )


def gemini_request(said: Mapping[str, Any]) -> str:
    """A body of `generateContent`."""
    config = said.get("generationConfig") or {}
    return _first(
        _unknown(said, _GEMINI, "Invalid JSON payload received. Unknown name"),
        _unknown(config, _GENERATION, "Invalid JSON payload received. Unknown name"),
        _roles(said.get("contents") or [{}], ("user", "model")),
        _google_schema(config.get("responseSchema") or {"type": "OBJECT"}),
        "responseSchema needs application/json"
        if "responseSchema" in config and config.get("responseMimeType") != "application/json"
        else "",
    )


def deepl_request(said: Mapping[str, Any], body: bytes) -> tuple[int, str]:
    """A JSON body of `POST /v2/translate`: a status and the reason, `(0, "")` for a good one."""
    if len(body) > _DEEPL_BYTES_MAX:
        return 413, "Request Entity Too Large"
    texts = said.get("text")
    bad = [text for text in texts if not isinstance(text, str)] if isinstance(texts, list) else ["no list"]
    wrong = _first(
        "Parameter 'text' not specified." if bad or not texts else "",
        "Too many texts" if len(texts or ()) > _DEEPL_TEXTS_MAX else "",
        _value(said, "target_lang", _DEEPL_TARGETS, needed=True),
        _value(said, "source_lang", _DEEPL_SOURCES, needed="glossary_id" in said),
        _value(said, "formality", {"default", "more", "less", "prefer_more", "prefer_less"}),
        _value(said, "tag_handling", {"xml", "html"}),
        _value(said, "tag_handling_version", {"v1", "v2"}),
        _value(said, "model_type", _DEEPL_MODELS),
        "Value for 'formality' not supported."
        if said.get("formality") in ("more", "less") and said["target_lang"] not in _DEEPL_FORMAL
        else "",
    )
    return (400, wrong) if wrong else (0, "")


def _value(said: Mapping[str, Any], name: str, known: Collection[str], *, needed: bool = False) -> str:
    if name not in said:
        return f"Parameter '{name}' not specified." if needed else ""
    return "" if said[name] in known else f"Value for '{name}' not supported."


def _google_schema(schema: Mapping[str, Any]) -> str:
    return _first(
        _unknown(schema, _SCHEMA, "Invalid JSON payload received. Unknown name"),
        "Invalid value at 'type'" if schema.get("type") not in _TYPES else "",
        *(_google_schema(inner) for inner in schema.get("properties", {}).values()),
        _google_schema(schema["items"]) if "items" in schema else "",
    )


def _closed(schema: Mapping[str, Any]) -> str:
    """Anthropic wants every object closed, and leaves properties optional."""
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    is_open = schema.get("type") == "object" and schema.get("additionalProperties") is not False
    wrong = "For 'object' type, 'additionalProperties' must be explicitly set to false" if is_open else ""
    return _first(wrong, *map(_closed, inner))


def _metadata(said: Mapping[str, Any], *, needs_store: bool) -> str:
    pairs = said.get("metadata") or {}
    fits = all(len(key) <= 64 and isinstance(pairs[key], str) and len(pairs[key]) <= 512 for key in pairs)
    if pairs and needs_store and not said.get("store"):
        return "The 'metadata' parameter is only allowed when 'store' is enabled."
    return "" if fits and len(pairs) <= 16 else "Invalid 'metadata'"


def _roles(messages: Iterable[Mapping[str, Any]], known: Collection[str]) -> str:
    wrong = [message.get("role") for message in messages if message.get("role") not in known]
    return f"Invalid role: {wrong[0]}" if wrong else ""


def _unknown(said: Mapping[str, Any], known: Collection[str], words: str) -> str:
    more = sorted(set(said) - set(known))
    return f"{words}: {more[0]}" if more else ""


def _missing(said: Mapping[str, Any], names: Iterable[str]) -> str:
    lacking = [name for name in names if not said.get(name)]
    return f"Missing required parameter: {lacking[0]}" if lacking else ""


def _first(*reasons: str) -> str:
    return next((reason for reason in reasons if reason), "")
