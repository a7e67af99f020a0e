"""Anthropic's Messages API: one request, one group of texts, one attempt; nothing can be asked afterwards.

The answer's shape is held by structured outputs (`output_config.format`): newer models refuse a forced tool.
The standing words carry a cache breakpoint; the question comes after it. A status counts as Anthropic's own
only with its `request-id`. No idempotency key exists, no list of messages, and no place for our attempt's id:
an answer that is lost stays unknown. What a model's default thinking costs is bounded by the answer's cap.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Unpack

from dragoman.model.completions import CompletionRequest, Finish, ProviderAnswer, Reply, Usage
from dragoman.providers import briefing, exchange
from dragoman.providers.codes import Choose
from dragoman.providers.hosted import Hosted, KeyReader, Options, parsed
from dragoman.providers.vendors import ANTHROPIC

_FINISHES: Mapping[str, Finish] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
"""Stop reasons; any other one belongs to things that we do not ask for."""
_TEXT = re.compile(r'"text"\s*:\s*"')


class AnthropicProvider:
    """One account at Anthropic or at a gateway that speaks its protocol, for one model."""

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
        options["vendor"] = options.get("vendor") or ANTHROPIC
        self._hosted = Hosted(name, model, base_url, key_reader, choose_code, **options)
        address = str(self._hosted.url).rstrip("/")
        self._url = f"{address if address.endswith('/v1') else address + '/v1'}/messages"
        self.name = name
        self.model = model
        self.account = self._hosted.account
        self.priced = self._hosted.priced
        self.price_known = self._hosted.price_known

    def target_code(self, locale: str) -> str:
        """The tag under which the model is asked for a locale. Raises `LocaleError`."""
        return self._hosted.codes.code(locale)

    def render(self, request: CompletionRequest) -> bytes:
        """The body: standing words up to the cache breakpoint, then the question. Raises `LocaleError`."""
        codes = self._hosted.codes
        source, target = codes.source(request.source_locale), codes.code(request.target_locale)
        standing = {
            "type": "text",
            "text": briefing.instructions(request),
            "cache_control": {"type": "ephemeral"},
        }
        return self._hosted.body(
            {
                "model": self.model,
                "output_config": {"format": {"type": "json_schema", "schema": briefing.SCHEMA}},
                "system": [standing],
                "messages": [{"role": "user", "content": exchange.question(request, source, target)}],
                "max_tokens": briefing.output_tokens(request, self._hosted.output_tokens_max, thinks=True),
            }
        )

    def reserve(self, body: bytes) -> tuple[int, int]:
        """Worst case: a token is a byte at least, written to the cache, and the answer comes to its cap."""
        return self._hosted.worst(len(body), int(json.loads(body)["max_tokens"]))

    def expect(self, body: bytes, characters: int) -> tuple[int, int]:
        """A usual call, without any cache."""
        return self._hosted.likely(body, characters)

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """One POST of the frozen bytes, whatever the attempt."""
        return await self._hosted.call("POST", self._url, body, deadline_seconds)

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """Messages are kept nowhere where they could be found."""
        return None

    def read(self, answer: bytes) -> Reply:
        """Parse kept bytes, also of an answer that broke off. Never raises."""
        said = parsed(answer)
        if said is None:
            return Reply(exchange.read_items(exchange.broken_string(answer, _TEXT))[0], "unreadable")
        items, whole = exchange.read_items(exchange.joined(said.get("content"), "text"))
        finish = _FINISHES.get(str(said.get("stop_reason")), "unreadable")
        if finish == "complete" and not whole:
            finish = "unreadable"
        return Reply(items, finish, self._usage(said))

    async def close(self) -> None:
        """Release connections; nothing is sent any more."""
        await self._hosted.close()

    def _usage(self, said: Mapping[str, object]) -> Usage:
        """Anthropic counts what was read from a cache or written to it apart from the other input."""
        used = said.get("usage")
        counted = used if isinstance(used, dict) else {}
        plain, cached, written, output = (
            exchange.tokens(counted.get(name))
            for name in (
                "input_tokens",
                "cache_read_input_tokens",
                "cache_creation_input_tokens",
                "output_tokens",
            )
        )
        return self._hosted.usage(plain + cached + written, output, cached=cached, written=written)
