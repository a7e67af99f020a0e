"""OpenAI's Responses API. In the background where the vendor keeps responses: made by one short request, then
fetched by id.

The answer to `send` is then the response's id, with the outcome still unknown: the ledger commits it, and
whoever holds the job fetches, also after this process has died. Only the short request itself can leave an
attempt that nobody can ask about, since responses are not listed. `store` is said outright: without it a
response in the background is gone after some ten minutes. Servers that keep nothing are asked in the
foreground.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Unpack
from urllib.parse import quote

from dragoman.model.completions import CompletionRequest, Finish, ProviderAnswer, Reply, Usage
from dragoman.providers import briefing, exchange, failures, vendors
from dragoman.providers.codes import Choose
from dragoman.providers.hosted import Hosted, KeyReader, Options, parsed

_WORKING = frozenset({"queued", "in_progress"})
_UNWORKED = frozenset({"failed", "cancelled"})
_TOO_FAST = "rate_limit_exceeded"
_REFUSAL_CODES = frozenset({"invalid_prompt", "content_policy_violation", "content_filter"})
_TEXT = re.compile(r'"text"\s*:\s*"')


class ResponsesProvider:
    """One account at one server, for one model. `keep_answers` false keeps everything in the foreground."""

    reads_examples = True

    askable = False
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
        **options: Unpack[Options],
    ) -> None:
        self._hosted = Hosted(name, model, base_url, key_reader, choose_code, **options)
        address = str(self._hosted.url).rstrip("/")
        self._url = f"{address}/responses"
        self.name = name
        self.model = model
        self.account = self._hosted.account
        self.priced = self._hosted.priced
        self.price_known = self._hosted.price_known
        self._background = keep_answers and self.priced and self._hosted.vendor.keeps_answers

    def target_code(self, locale: str) -> str:
        """The tag under which the model is asked for a locale. Raises `LocaleError`."""
        return self._hosted.codes.code(locale)

    def render(self, request: CompletionRequest) -> bytes:
        """The body without attempt metadata: standing words first, question last. Raises `LocaleError`."""
        codes = self._hosted.codes
        source, target = codes.source(request.source_locale), codes.code(request.target_locale)
        shape = {
            "type": "json_schema",
            "name": briefing.SCHEMA_NAME,
            "strict": True,
            "schema": briefing.SCHEMA,
        }
        return self._hosted.body(
            {
                "model": self.model,
                "text": {"format": shape},
                "instructions": briefing.instructions(request),
                "input": [{"role": "user", "content": exchange.question(request, source, target)}],
                "max_output_tokens": briefing.output_tokens(
                    request, self._hosted.output_tokens_max, thinks=vendors.may_think(self.model)
                ),
            }
        )

    def reserve(self, body: bytes) -> tuple[int, int]:
        """Worst case: a token is a byte at least, and the answer with its thoughts comes to its cap."""
        return self._hosted.worst(len(body), int(json.loads(body)["max_output_tokens"]))

    def expect(self, body: bytes, characters: int) -> tuple[int, int]:
        """A usual call, without any cache."""
        return self._hosted.likely(body, characters)

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """One POST. In the background the answer is the response's id, to be fetched."""
        kept: Mapping[str, object] = {"metadata": {"attempt_id": attempt_id}, "store": self._background}
        if self._background:
            kept = {"background": True, **kept}
        answer = await self._call(
            "POST", self._url, exchange.spliced(body, kept), attempt_id, deadline_seconds
        )
        if answer.outcome != failures.SUCCEEDED:
            return replace(answer, provider_ref="")  # a request's id is none that could be fetched
        return _ended_or_working(answer)

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """Responses are found by their own id only; see `fetch`."""
        return None

    async def fetch(self, reference: str, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """One look at a response; its answer, once it has ended. None where none is there (any more)."""
        url = f"{self._url}/{quote(reference, safe='')}"
        seen = await self._call("GET", url, None, attempt_id, deadline_seconds)
        if seen.outcome == failures.REJECTED and seen.status == 404:
            return None
        if seen.outcome != failures.SUCCEEDED:
            return failures.unclear(seen, reference)
        return _ended_or_working(seen)

    async def cancel(self, reference: str, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """Ask the provider to stop work in the background; what it has used so far is paid for."""
        url = f"{self._url}/{quote(reference, safe='')}/cancel"
        return await self._call("POST", url, b"", attempt_id, deadline_seconds)

    def read(self, answer: bytes) -> Reply:
        """Parse kept bytes, also of an answer that broke off. Never raises."""
        said = parsed(answer)
        if said is None:
            return Reply(exchange.read_items(exchange.broken_string(answer, _TEXT))[0], "unreadable")
        output = said.get("output")
        messages = [
            part
            for message in (output if isinstance(output, list) else [])
            if isinstance(message, dict) and isinstance(message.get("content"), list)
            for part in message["content"]
            if isinstance(part, dict)
        ]
        items, whole = exchange.read_items(exchange.joined(messages, "text", but="refusal"))
        refused = any(part.get("type") == "refusal" for part in messages)
        return Reply(items, "refused" if refused else _finish(said, whole), self._usage(said))

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
        details = counted.get("input_tokens_details")
        return self._hosted.usage(
            exchange.tokens(counted.get("input_tokens")),
            exchange.tokens(counted.get("output_tokens")),
            cached=exchange.tokens(details.get("cached_tokens")) if isinstance(details, dict) else 0,
            total=exchange.tokens(counted.get("total_tokens")),
            created_seconds=exchange.tokens(said.get("created_at")),
        )


def _ended_or_working(answer: ProviderAnswer) -> ProviderAnswer:
    """An answer whose response is still being worked on is unknown, and names the response; one that ended
    unworked is to be sent again, as a batch of that kind is.
    """
    said = parsed(answer.body or b"") or {}
    reference, status = str(said.get("id") or ""), said.get("status")
    if status in _WORKING:
        return failures.working(reference, answer.status)
    if status in _UNWORKED and not said.get("usage"):
        return _unworked(said, reference) or replace(answer, provider_ref=reference)
    return replace(answer, provider_ref=reference)


def _unworked(said: Mapping[str, object], reference: str) -> ProviderAnswer | None:
    """What an unworked response, which counts no tokens, came to; None where its content is refused."""
    error = said.get("error")
    told = error if isinstance(error, dict) else {}
    code, message = (
        told.get("code"),
        f"the response is {said.get('status')}: {told.get('message') or 'no word'}",
    )
    if code in _REFUSAL_CODES:
        return None
    unworked = failures.unworked(reference, message)
    if code != _TOO_FAST:
        return unworked
    return replace(unworked, outcome=failures.REJECTED, status=429, code="PROVIDER_RATE_LIMITED")


def _finish(said: Mapping[str, object], whole: bool) -> Finish:
    """How a response ended; one that failed after it was counted brings no answer, and never will."""
    details, error = said.get("incomplete_details"), said.get("error")
    reason = details.get("reason") if isinstance(details, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    if reason == "content_filter" or code in _REFUSAL_CODES:
        return "refused"
    if reason == "max_output_tokens":
        return "length"
    return "complete" if whole and said.get("status") == "completed" else "unreadable"
