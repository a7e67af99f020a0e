"""Apertium behind its HTTP service, APY: pairs of `/listPairs`, texts in one `POST /translate`. Free.

The service takes one text a request. It gets one HTML text in which each of ours stands in a numbered tag of
its own, markers and signs of markup as tags; texts come back by their numbers. What the service leaves out of
a long request (it cuts after ten pieces) is asked for again in halves. See `apertium` for the installed
program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from urllib.parse import urlencode

from dragoman.kernel import limits
from dragoman.model.completions import CompletionRequest, ProviderAnswer, Reply
from dragoman.providers import exchange, failures, markup, positions
from dragoman.providers.codes import Choose, LocaleCodes
from dragoman.providers.text_server import TextServer

Pair = tuple[str, str]
"""Source and target as Apertium names them: ISO 639-3, perhaps with a region: `("eng", "spa")`."""

_ITEM = re.compile(r"<q(\d+)>(.*?)</q\1>", re.DOTALL)
_TEXT = re.compile(r'"translatedText"\s*:\s*"')
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class ApertiumHttpProvider:
    """One service and the pairs that it has (`read_pairs`)."""

    priced = False
    askable = False
    texts_max: int | None = None

    def __init__(
        self,
        name: str,
        base_url: str,
        choose_code: Choose,
        pairs: Collection[Pair],
        *,
        account: str = "",
        connections: int = limits.PROVIDER_CONNECTIONS,
    ) -> None:
        self._server = TextServer(
            name, base_url, lambda: None, read_error=read_error, connections=connections
        )
        self.name = name
        self.model = "apertium"
        self.account = account or f"{name}@{self._server.url.authority}"
        self._pairs = frozenset(pairs)
        self._choose = choose_code

    def target_code(self, locale: str) -> str:
        """Apertium's code for a locale that some pair translates into. Raises `LocaleError`."""
        return self._codes({target for _, target in self._pairs}).code(locale)

    def render(self, request: CompletionRequest) -> bytes:
        """The form's fields as JSON, which `send` puts on as a form. Raises `LocaleError`."""
        source = self._codes({source for source, _ in self._pairs}).code(request.source_locale)
        reachable = {target for start, target in self._pairs if start == source}
        target = self._codes(reachable).code(request.target_locale)
        texts = [markup.to_tags(item.text, xml=False) for item in request.items]
        together = "".join(f"<p><q{place}>{text}</q{place}></p>" for place, text in enumerate(texts))
        form = {"langpair": f"{source}|{target}", "format": "html", "markUnknown": "no", "q": together}
        places = positions.Places(tuple(item.id for item in request.items), sum(map(len, texts)))
        return positions.framed(places, exchange.compact(form).encode())

    def reserve(self, body: bytes) -> tuple[int, int]:
        """Every character that is sent to be translated."""
        return positions.opened(body)[0].characters, 0

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """One POST."""
        places, question = positions.opened(body)
        form = urlencode(json.loads(question)).encode()
        return await self._server.post(
            "/translate", places, lambda _key: (form, _FORM), attempt_id, deadline_seconds
        )

    def read(self, answer: bytes) -> Reply:
        """The texts under their ids, also of an answer that broke off. Never raises."""
        found = positions.unframed(answer)
        if found is None:
            return Reply((), "unreadable")
        places, body = found
        usage = positions.by_characters(places.characters)
        said = failures.error_body(body).get("responseData")
        together = said.get("translatedText") if isinstance(said, dict) else None
        whole = isinstance(together, str)
        texts = _items(
            together if isinstance(together, str) else exchange.broken_string(body, _TEXT), len(places.ids)
        )
        known = [
            (places.ids[place], markup.from_tags(text, xml=False)) for place, text in sorted(texts.items())
        ]
        pairs = exchange.pairs([{"id": name, "text": text} for name, text in known])
        if not whole:
            return Reply(pairs, "unreadable", usage)
        return Reply(pairs, "complete" if len(texts) == len(places.ids) else "length", usage)

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """Nothing is kept; the same question has the same answer."""
        return None

    async def close(self) -> None:
        """Release connections; nothing is sent any more."""
        await self._server.close()

    def _codes(self, offered: Collection[str]) -> LocaleCodes:
        return LocaleCodes(self.name, self._choose, offered)


def read_pairs(body: bytes) -> frozenset[Pair]:
    """The pairs that `GET /listPairs` names. Raises `ValueError`."""
    said = json.loads(body)
    listed = said.get("responseData") if isinstance(said, dict) else None
    if not isinstance(listed, list):
        raise ValueError("no list of pairs")
    named = (
        (one.get("sourceLanguage"), one.get("targetLanguage")) for one in listed if isinstance(one, dict)
    )
    return frozenset((start, end) for start, end in named if isinstance(start, str) and isinstance(end, str))


def read_error(body: bytes) -> Mapping[str, object] | None:
    """APY's error body: status `error`, `message`, `explanation`."""
    said = failures.error_body(body)
    if said.get("status") != "error":
        return None
    return {"message": " ".join(str(said[part]) for part in ("message", "explanation") if part in said)}


def _items(together: str, count: int) -> dict[int, str]:
    """Place → text, of those that stand there once."""
    found: dict[int, str] = {}
    doubled: set[int] = set()
    for item in _ITEM.finditer(together):
        place = int(item[1])
        if place in found:
            doubled.add(place)
        if place < count:
            found[place] = item[2]
    return {place: text for place, text in found.items() if place not in doubled}
