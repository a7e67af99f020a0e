"""Pseudo-localization: shows what is not translatable yet, and how a longer language would fit.

Letters get accents, texts grow by about a third and stand in brackets; markers stay as they are. In this
process, deterministic, free. A text with a `max_length` keeps to it: without growth and brackets if need be.
"""

from __future__ import annotations

import json

from dragoman.model.completions import CompletionRequest, ProviderAnswer, Reply, Usage
from dragoman.providers import exchange, failures
from dragoman.providers.codes import Choose, LocaleCodes

_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ACCENTED = "ÅƁÇÐÉƑĜĤÎĴĶĻṀÑÖÞǪŔŠŢÛṼŴẊÝŽåƀçðéƒĝĥîĵķļɱñöþǫŕšţûṽŵẋýž"
_ACCENTS = str.maketrans(_PLAIN, _ACCENTED)
_GROWTH = 0.3
_FILLER = "·"


def pseudo(text: str, max_length: int | None = None) -> str:
    """`Save ⟦1⟧` as `[Šåṽé ⟦1⟧ ··]`; letters only where that would be longer than `max_length` characters."""
    accented, visible, at = [], 0, 0
    for marker in exchange.MARKER.finditer(text):
        accented += [text[at : marker.start()].translate(_ACCENTS), marker.group()]
        visible += marker.start() - at
        at = marker.end()
    accented.append(text[at:].translate(_ACCENTS))
    visible += len(text) - at
    letters = "".join(accented)
    grown = f"[{letters} {_FILLER * max(1, round(visible * _GROWTH))}]"
    return letters if max_length is not None and len(grown) > max_length else grown


class PseudoProvider:
    """The provider that needs nothing: the embedded default."""

    priced = False
    askable = False
    texts_max: int | None = None

    def __init__(self, name: str, choose_code: Choose) -> None:
        self.name = name
        self.model = "pseudo"
        self.account = name
        self._codes = LocaleCodes(name, choose_code)

    def target_code(self, locale: str) -> str:
        """Any locale, under its own name. Raises `LocaleError` for what is none."""
        return self._codes.code(locale)

    def render(self, request: CompletionRequest) -> bytes:
        """The question itself."""
        source, target = self._codes.code(request.source_locale), self._codes.code(request.target_locale)
        return exchange.question(request, source, target).encode()

    def reserve(self, body: bytes) -> tuple[int, int]:
        """A token is a byte at least; no text grows to more than four times its bytes."""
        return 5 * len(body), 0

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """Answers at once."""
        asked = json.loads(body)["items"]
        items = [(item["id"], pseudo(item["text"], item.get("max_length"))) for item in asked]
        usage = Usage(len(body) // 4, sum(len(text) for _, text in items) // 4)
        return ProviderAnswer(failures.SUCCEEDED, body=exchange.answer(items, usage), status=200)

    def read(self, answer: bytes) -> Reply:
        """The reply in kept bytes. Never raises."""
        return exchange.read_answer(answer)

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """Nothing is kept; the same question has the same answer."""
        return None

    async def close(self) -> None:
        """Nothing is held."""
