"""Google's Gemini API, `generateContent`: one request, one group of texts; nothing can be asked afterwards.

Google documents no header that marks its own answers: a status is its own where the body is its error
envelope. A block of the prompt, and a candidate that ends for safety, recitation or the like, refuse this
content. There is no place for our attempt's id and no key of idempotency: what is lost stays unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Unpack
from urllib.parse import quote

from dragoman.model.completions import CompletionRequest, Finish, ProviderAnswer, Reply, Usage
from dragoman.providers import briefing, exchange
from dragoman.providers.codes import Choose
from dragoman.providers.hosted import Hosted, KeyReader, Options, parsed
from dragoman.providers.vendors import GEMINI

_SCHEMA: Mapping[str, object] = {
    "type": "OBJECT",
    "properties": {
        "items": {
            "type": "ARRAY",
            "items": {
                "type": "OBJECT",
                "properties": {"id": {"type": "STRING"}, "text": {"type": "STRING"}},
                "required": ["id", "text"],
                "propertyOrdering": ["id", "text"],
            },
        }
    },
    "required": ["items"],
}
_FINISHES: Mapping[str, Finish] = {
    "STOP": "complete",
    "MAX_TOKENS": "length",
    "SAFETY": "refused",
    "RECITATION": "refused",
    "LANGUAGE": "refused",
    "BLOCKLIST": "refused",
    "PROHIBITED_CONTENT": "refused",
    "SPII": "refused",
}
"""Finish reasons; what is left over (OTHER, malformed calls) says nothing about the content."""
_TEXT = re.compile(r'"text"\s*:\s*"')


class GeminiProvider:
    """One account at the Gemini API or at a gateway that speaks its protocol, for one model."""

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
        **options: Unpack[Options],
    ) -> None:
        options["vendor"] = options.get("vendor") or GEMINI
        self._hosted = Hosted(name, model, base_url, key_reader, choose_code, **options)
        address = str(self._hosted.url).rstrip("/")
        versioned = address if self._hosted.url.path.strip("/") else address + "/v1beta"
        self._url = f"{versioned}/models/{quote(model, safe='')}:generateContent"
        self.name = name
        self.model = model
        self.account = self._hosted.account
        self.priced = self._hosted.priced
        self.price_known = self._hosted.price_known

    def target_code(self, locale: str) -> str:
        """The tag under which the model is asked for a locale. Raises `LocaleError`."""
        return self._hosted.codes.code(locale)

    def render(self, request: CompletionRequest) -> bytes:
        """The body: standing words first, the question last. Raises `LocaleError`."""
        codes = self._hosted.codes
        source, target = codes.source(request.source_locale), codes.code(request.target_locale)
        cap = briefing.output_tokens(request, self._hosted.output_tokens_max, thinks=True)
        return self._hosted.body(
            {
                "systemInstruction": {"parts": [{"text": briefing.instructions(request)}]},
                "generationConfig": {
                    "responseMimeType": "application/json",
                    "responseSchema": _SCHEMA,
                    "maxOutputTokens": cap,
                },
                "contents": [
                    {"role": "user", "parts": [{"text": exchange.question(request, source, target)}]}
                ],
            }
        )

    def reserve(self, body: bytes) -> tuple[int, int]:
        """Worst case: a token is a byte at least, and the answer with its thoughts comes to its cap."""
        return self._hosted.worst(len(body), int(json.loads(body)["generationConfig"]["maxOutputTokens"]))

    def expect(self, body: bytes, characters: int) -> tuple[int, int]:
        """A usual call, without any cache."""
        return self._hosted.likely(body, characters)

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """One POST of the frozen bytes, whatever the attempt."""
        return await self._hosted.call("POST", self._url, body, deadline_seconds)

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """Answers are kept nowhere where they could be found."""
        return None

    def read(self, answer: bytes) -> Reply:
        """Parse kept bytes, also of an answer that broke off. Never raises."""
        said = parsed(answer)
        if said is None:
            return Reply(exchange.read_items(exchange.broken_string(answer, _TEXT))[0], "unreadable")
        usage = self._usage(said)
        candidates = said.get("candidates")
        candidate = candidates[0] if isinstance(candidates, list) and candidates else None
        if not isinstance(candidate, dict):
            feedback = said.get("promptFeedback")
            blocked = isinstance(feedback, dict) and feedback.get("blockReason")
            return Reply((), "refused" if blocked else "unreadable", usage)
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        items, whole = exchange.read_items(exchange.joined(parts, "text", but="thought"))
        finish = _FINISHES.get(str(candidate.get("finishReason")), "unreadable")
        if finish == "complete" and not whole:
            finish = "unreadable"
        return Reply(items, finish, usage)

    async def close(self) -> None:
        """Release connections; nothing is sent any more."""
        await self._hosted.close()

    def _usage(self, said: Mapping[str, object]) -> Usage:
        """Thoughts are paid for as output; what came from a cache is a part of the prompt."""
        used = said.get("usageMetadata")
        counted = used if isinstance(used, dict) else {}
        prompt, cached, answered, thought, total = (
            exchange.tokens(counted.get(name))
            for name in (
                "promptTokenCount",
                "cachedContentTokenCount",
                "candidatesTokenCount",
                "thoughtsTokenCount",
                "totalTokenCount",
            )
        )
        return self._hosted.usage(prompt, answered + thought, cached=cached, total=total)
