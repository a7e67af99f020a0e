"""OpenAI-compatible chat completions: one request, one group of texts.

Promises that a request is the same bytes for the same question, that the stable part comes first (so that
prefix caches work), that the last user message is the question and nothing else, and that keys are in headers
only. Serves OpenAI, Azure OpenAI, Ollama, vLLM, LM Studio and gateways alike: what differs is data in
`vendors`. Azure's deployments are spoken to at their own path where an `api_version` with a date is given,
else at `/v1`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, Unpack
from urllib.parse import quote, urlencode

from yarl import URL

from dragoman.model.completions import CompletionRequest, ProviderAnswer, Reply, Usage
from dragoman.providers import briefing, exchange, failures, vendors
from dragoman.providers.codes import Choose
from dragoman.providers.hosted import Hosted, KeyReader, Options, parsed

ReplyFormat = Literal["schema", "object", "none"]
"""How a server is told to answer in JSON: by a strict schema, as any object, or in words alone."""

_REPLY_FORMATS: Mapping[ReplyFormat, Mapping[str, object]] = {
    "schema": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": briefing.SCHEMA_NAME, "strict": True, "schema": briefing.SCHEMA},
        }
    },
    "object": {"response_format": {"type": "json_object"}},
    "none": {},
}
_FIRST_AZURE_VERSION_THAT_STORES = "2024-10-01"
_UNDATED = frozenset({"v1", "preview", "latest"})
"""Versions of Azure's v1 address, which needs none named and has no deployments in its path."""
_CONTENT = re.compile(r'"content"\s*:\s*"')


class ChatProvider:
    """One account at one server, for one model.

    `key_reader` is asked before each send. `keep_answers` lets a vendor that can do so store answers under
    the attempt's id, where `ask` finds them. With an `api_version` the model is the name of a deployment.
    """

    reads_examples = True
    texts_max: int | None = None

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str,
        key_reader: KeyReader,
        choose_code: Choose,
        *,
        keep_answers: bool = True,
        api_version: str = "",
        reply_format: ReplyFormat = "schema",
        **options: Unpack[Options],
    ) -> None:
        dated = "" if api_version in _UNDATED else api_version
        self._hosted = Hosted(name, model, base_url, key_reader, choose_code, **options)
        self._vendor = self._hosted.vendor
        self._thinks = self._vendor.thinks and vendors.may_think(options.get("price_model") or model)
        self._reply_format = _REPLY_FORMATS[reply_format]
        self._create_url, self._list_url = _addresses(self._hosted.url, self._vendor, model, dated)
        self.name = name
        self.model = model
        self.account = self._hosted.account
        self.priced = self._hosted.priced
        self.price_known = self._hosted.price_known
        self.askable = keep_answers and self._vendor.keeps_answers and _stores(dated)

    def target_code(self, locale: str) -> str:
        """The tag under which the model is asked for a locale. Raises `LocaleError`."""
        return self._hosted.codes.code(locale)

    def render(self, request: CompletionRequest) -> bytes:
        """The body without attempt metadata: role and style first, question last. Raises `LocaleError`."""
        codes = self._hosted.codes
        source, target = codes.source(request.source_locale), codes.code(request.target_locale)
        return self._hosted.body(
            {
                "model": self.model,
                **self._reply_format,
                "messages": [
                    {"role": "system", "content": briefing.instructions(request)},
                    {"role": "user", "content": exchange.question(request, source, target)},
                ],
                self._vendor.output_cap: briefing.output_tokens(
                    request, self._hosted.output_tokens_max, thinks=self._thinks
                ),
            }
        )

    def reserve(self, body: bytes) -> tuple[int, int]:
        """Worst case: a token is a byte at least, and the answer is as long as the body allows."""
        return self._hosted.worst(len(body), int(json.loads(body)[self._vendor.output_cap]))

    def expect(self, body: bytes, characters: int) -> tuple[int, int]:
        """A usual call, without any cache."""
        return self._hosted.likely(body, characters)

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """One POST. The attempt's id goes into a header, and into metadata where answers are kept."""
        kept: Mapping[str, object] = {"store": True, "metadata": {"attempt_id": attempt_id}}
        sent_body = exchange.spliced(body, kept) if self.askable else body
        return await self._call("POST", self._create_url, sent_body, attempt_id, deadline_seconds)

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """The kept answer of an attempt; None where answers are not kept or this one is not found (yet)."""
        if not self.askable:
            return None
        url = self._list_url + "?" + urlencode({"metadata[attempt_id]": attempt_id})
        listing = await self._call("GET", url, None, attempt_id, deadline_seconds)
        if failures.is_closed_to_looks(listing):
            return None
        if listing.outcome != failures.SUCCEEDED:
            return listing
        for kept in _listed(listing.body or b""):
            metadata = kept.get("metadata")
            if isinstance(metadata, dict) and metadata.get("attempt_id") == attempt_id:
                return replace(listing, body=json.dumps(kept).encode(), provider_ref=str(kept.get("id", "")))
        return None

    def read(self, answer: bytes) -> Reply:
        """Parse kept bytes, also of an answer that broke off. Never raises."""
        said = parsed(answer)
        if said is None:
            return Reply(exchange.read_items(exchange.broken_string(answer, _CONTENT))[0], "unreadable")
        usage = self._usage(said)
        choices = said.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            return Reply((), "unreadable", usage)
        content = message.get("content")
        items, whole = exchange.read_items(content) if isinstance(content, str) else ((), False)
        if message.get("refusal") or choice.get("finish_reason") == "content_filter":
            return Reply(items, "refused", usage)
        if choice.get("finish_reason") == "length":
            return Reply(items, "length", usage)
        return Reply(items, "complete" if whole else "unreadable", usage)

    async def close(self) -> None:
        """Release connections; nothing is sent any more."""
        await self._hosted.close()

    async def _call(
        self, method: str, url: str, body: bytes | None, attempt_id: str, deadline_seconds: float
    ) -> ProviderAnswer:
        headers = {"X-Client-Request-Id": attempt_id}
        return await self._hosted.call(method, url, body, deadline_seconds, headers)

    def _usage(self, said: Mapping[str, object]) -> Usage:
        used = said.get("usage")
        counted = used if isinstance(used, dict) else {}
        details = counted.get("prompt_tokens_details")
        return self._hosted.usage(
            exchange.tokens(counted.get("prompt_tokens")),
            exchange.tokens(counted.get("completion_tokens")),
            cached=exchange.tokens(details.get("cached_tokens")) if isinstance(details, dict) else 0,
            total=exchange.tokens(counted.get("total_tokens")),
            created_seconds=exchange.tokens(said.get("created")),
        )


def _addresses(url: URL, vendor: vendors.Vendor, model: str, api_version: str) -> tuple[str, str]:
    """Where completions are made, and where stored ones are listed: of Azure, always at its v1."""
    if not api_version:
        bare_azure = vendor in (vendors.AZURE, vendors.AZURE_BY_IDENTITY) and url.path == "/"
        plain = f"{str(url).rstrip('/')}{'/openai/v1' if bare_azure else ''}/chat/completions"
        return plain, plain
    resource = str(url).rstrip("/").removesuffix("/v1").removesuffix("/openai")
    deployment = f"{resource}/openai/deployments/{quote(model, safe='')}"
    version = urlencode({"api-version": api_version})
    return f"{deployment}/chat/completions?{version}", f"{resource}/openai/v1/chat/completions"


def _stores(api_version: str) -> bool:
    """Whether this version of Azure's API takes `store`; those that were released without it refuse it."""
    previews = api_version.endswith("-preview") and api_version >= _FIRST_AZURE_VERSION_THAT_STORES
    return not api_version or previews


def _listed(body: bytes) -> list[dict[str, object]]:
    said = json.loads(body)
    kept = said.get("data") if isinstance(said, dict) else None
    return [one for one in kept if isinstance(one, dict)] if isinstance(kept, list) else []
