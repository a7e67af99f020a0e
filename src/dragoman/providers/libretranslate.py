"""LibreTranslate: an array of texts in one `POST /translate`, on one's own server or a hosted one.

Unpriced unless the settings say otherwise. Texts go as `text`. The server unescapes all that it gives back:
where one text holds markers, or what could be unescaped, all go as `html`, with tags for markers and for the
signs of markup. Its languages are
those of `/languages` (`read_languages`). A key is optional; it travels in the body, is spliced in when a
request is sent, and stands in no stored byte.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from decimal import Decimal
from html import unescape

from dragoman.kernel import limits
from dragoman.model.completions import CompletionRequest, ProviderAnswer, Reply
from dragoman.providers import exchange, failures, markup, positions
from dragoman.providers.codes import Choose, LocaleCodes
from dragoman.providers.text_server import KeyReader, TextServer

_MEANT = {"exceeds text limit": "request_too_large", "to get an API key": "api_key_invalid"}
"""What is said under 400: of too many texts or characters for one request, and of a key that is missing."""

Targets = Mapping[str, frozenset[str]]
"""Source code → the codes that it is translated into."""


class LibreTranslateProvider:
    """One server and what it translates. `usd_per_million_characters` is nobody's bill by default."""

    askable = False
    texts_max: int | None = None

    def __init__(
        self,
        name: str,
        base_url: str,
        key_reader: KeyReader,
        choose_code: Choose,
        targets: Targets,
        *,
        account: str = "",
        priced: bool = False,
        usd_per_million_characters: Decimal = Decimal(0),
        connections: int = limits.PROVIDER_CONNECTIONS,
    ) -> None:
        self._server = TextServer(
            name, base_url, key_reader, read_error=read_error, needs_key=priced, connections=connections
        )
        self.name = name
        self.model = "libretranslate"
        self.account = account or f"{name}@{self._server.url.authority}"
        self.priced = priced
        self._price = usd_per_million_characters if priced else Decimal(0)
        self._choose = choose_code
        self._reached = targets

    def target_code(self, locale: str) -> str:
        """The server's code for a locale that some language is translated into. Raises `LocaleError`."""
        return self._codes(frozenset().union(*self._reached.values())).code(locale)

    def render(self, request: CompletionRequest) -> bytes:
        """The request's body, without the key. Raises `LocaleError` for a pair that the server lacks."""
        source = self._codes(tuple(self._reached)).code(request.source_locale)
        target = self._codes(self._reached[source]).code(request.target_locale)
        marked = any(
            markup.has_markers(item.text) or unescape(item.text) != item.text for item in request.items
        )
        texts = [markup.to_tags(item.text, xml=False) if marked else item.text for item in request.items]
        body = {"q": texts, "source": source, "target": target, "format": "html" if marked else "text"}
        places = positions.Places(tuple(item.id for item in request.items), sum(map(len, texts)), marked)
        return positions.framed(places, exchange.compact(body).encode())

    def reserve(self, body: bytes) -> tuple[int, int]:
        """Every character that is sent to be translated."""
        characters = positions.opened(body)[0].characters
        return characters, positions.microusd(characters, self._price)

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """One POST; the key goes into its body."""
        places, question = positions.opened(body)

        def dressed(key: str) -> tuple[bytes, Mapping[str, str]]:
            if not key:
                return question, {}
            return question[:-1] + f',"api_key":{json.dumps(key)}}}'.encode(), {}

        return await self._server.post("/translate", places, dressed, attempt_id, deadline_seconds)

    def read(self, answer: bytes) -> Reply:
        """The texts under their ids, also of an answer that broke off. Never raises."""
        found = positions.unframed(answer)
        if found is None:
            return Reply((), "unreadable")
        places, body = found
        said = failures.error_body(body).get("translatedText")
        whole = isinstance(said, list)
        texts = said if isinstance(said, list) else _broken(body)
        usage = positions.by_characters(places.characters, self._price, "settings")
        return positions.reply(places, [_text(text, places.marked) for text in texts], usage, whole=whole)

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """Nothing is kept; the same question costs another turn of the server's machine only."""
        return None

    async def close(self) -> None:
        """Release connections; nothing is sent any more."""
        await self._server.close()

    def _codes(self, offered: Collection[str]) -> LocaleCodes:
        return LocaleCodes(self.name, self._choose, offered)


def read_languages(body: bytes) -> Targets:
    """What `GET /languages` says: each language, and what it is translated into. Raises `ValueError`."""
    said = json.loads(body)
    if not isinstance(said, list):
        raise ValueError("no list of languages")
    listed = [one for one in said if isinstance(one, dict) and isinstance(one.get("code"), str)]
    every = frozenset(str(one["code"]) for one in listed)
    found: dict[str, frozenset[str]] = {}
    for one in listed:
        targets = one.get("targets")
        reached = (
            frozenset(map(str, targets)) if isinstance(targets, list) else every
        )  # older servers name none
        found[str(one["code"])] = reached - {str(one["code"])}
    return found


def declared_languages(codes: Collection[str]) -> Targets:
    """Languages that the settings name, each translated into every other."""
    return {code: frozenset(codes) - {code} for code in codes}


def read_error(body: bytes) -> Mapping[str, object] | None:
    """LibreTranslate's error body: `error`, a text, which alone tells some errors from others."""
    message = failures.error_body(body).get("error")
    if not isinstance(message, str):
        return None
    return {
        "message": message,
        "code": next((code for words, code in _MEANT.items() if words in message), ""),
    }


def _text(said: object, marked: bool) -> object:
    return markup.from_tags(said, xml=False) if marked and isinstance(said, str) else said


def _broken(body: bytes) -> list[object]:
    return exchange.complete_elements(body.decode("utf-8", "ignore"), "translatedText")
