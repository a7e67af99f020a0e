"""DeepL: texts of one pair in one `POST /v2/translate`, markers as XML tags. Billed by the character.

Promises that locales are mapped before any spend (`en` is asked for as EN-US, never as a variant that nobody
named), that a request holds no more than DeepL's 50 texts (`texts_max`), and that money is counted by DeepL's
own `billed_characters`. Notes go as `context`, which is not billed; a glossary is named by its id only. DeepL
keeps no answers: an unknown outcome cannot be asked about. Not known: whether DeepL bills tags; the reserve
counts them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from types import MappingProxyType

from dragoman.kernel import limits
from dragoman.model.completions import CompletionRequest, ProviderAnswer, Reply, Usage
from dragoman.providers import exchange, failures, markup, positions, vendors
from dragoman.providers.codes import Choose, LocaleCodes
from dragoman.providers.text_server import KeyReader, TextServer

PRO_URL = "https://api.deepl.com"
FREE_URL = "https://api-free.deepl.com"
FREE_KEY_END = ":fx"
"""Keys of free accounts end so, and are valid at the free address only."""

USD_PER_MILLION_CHARACTERS = Decimal(25)
"""List price of the pro plan's use; a price in the settings leads."""

_BOTH = (
    *("ar", "bg", "cs", "da", "de", "el", "es", "et", "fi", "fr", "he", "hu", "id", "it", "ja", "ko", "lt"),
    *("lv", "nb", "nl", "pl", "ro", "ru", "sk", "sl", "sv", "th", "tr", "uk", "vi"),
)
SOURCES: Mapping[str, str] = {
    **{tag: tag.upper() for tag in (*_BOTH, "en", "pt")},
    "zh-Hans": "ZH",
    "zh-Hant": "ZH",
}
"""Locale → source code: one for all variants of a language."""
TARGETS: Mapping[str, str] = {
    **{tag: tag.upper() for tag in (*_BOTH, "en-GB", "en-US", "es-419", "pt-BR", "pt-PT")},
    "zh-Hans": "ZH-HANS",
    "zh-Hant": "ZH-HANT",
}
"""Locale → target code: of English, Portuguese and Chinese the variants only."""

_TAG_HANDLING: Mapping[str, object] = {
    "tag_handling": "xml",
    "tag_handling_version": "v2",  # what new accounts have by default, said aloud for the older ones
    "outline_detection": False,
}
_MODEL_TYPES = frozenset({"quality_optimized", "prefer_quality_optimized", "latency_optimized"})
_TONES: Mapping[str, str] = {
    "formal": "prefer_more",
    "polite": "prefer_more",
    "informal": "prefer_less",
    "casual": "prefer_less",
    "friendly": "prefer_less",
}
"""How people are addressed, by words of a tone; passed over where a language knows no difference."""
KNOWN_HEADERS = ("x-trace-id",)
"""On every answer of DeepL's own; a stand-in at a private address is known by the error body."""


class DeepLProvider:
    """One account. `model` may be a `model_type`; `glossaries` maps targets (`*`: all) to ids.

    `priced` defaults to whether the address is that of the pro plan or another public one. `locales` are
    target codes instead of those of `TARGETS`.
    """

    askable = False
    texts_max: int | None = limits.DEEPL_TEXTS_MAX

    def __init__(
        self,
        name: str,
        base_url: str,
        key_reader: KeyReader,
        choose_code: Choose,
        *,
        model: str = "",
        account: str = "",
        priced: bool | None = None,
        usd_per_million_characters: Decimal | None = None,
        glossaries: Mapping[str, str] = MappingProxyType({}),
        locales: Collection[str] = (),
        known_headers: Collection[str] | None = None,
        connections: int = limits.PROVIDER_CONNECTIONS,
    ) -> None:
        url = vendors.checked_url(base_url)
        usual = () if vendors.is_private(url) else KNOWN_HEADERS
        free = vendors.is_private(url) or url.host == FREE_URL.removeprefix("https://")
        self.priced = not free if priced is None else priced
        self._server = TextServer(
            name,
            base_url,
            key_reader,
            read_error=read_error,
            known_headers=usual if known_headers is None else known_headers,
            needs_key=not vendors.is_private(url) or self.priced,
            connections=connections,
        )
        self.name = name
        self.model = model or "deepl"
        self.account = account or f"{name}@{url.authority}"
        price = (
            USD_PER_MILLION_CHARACTERS if usd_per_million_characters is None else usd_per_million_characters
        )
        self._price = price if self.priced else Decimal(0)
        self._price_name = "deepl list" if usd_per_million_characters is None else "settings"
        self._glossaries = glossaries
        self._sources = LocaleCodes(name, choose_code, SOURCES)
        self._targets = LocaleCodes(name, choose_code, locales or TARGETS)

    def target_code(self, locale: str) -> str:
        """DeepL's code of a target variant. Raises `LocaleError`."""
        return self._targets.code(locale)

    def render(self, request: CompletionRequest) -> bytes:
        """The request's body behind the line that names its texts. Raises `LocaleError`."""
        source = self._sources.code(request.source_locale)
        target = self._targets.code(request.target_locale)
        marked = any(markup.has_markers(item.text) for item in request.items)
        texts = [markup.to_tags(item.text, xml=True) if marked else item.text for item in request.items]
        body: dict[str, object] = {
            "text": texts,
            "source_lang": source,
            "target_lang": target,
            "preserve_formatting": True,
            "show_billed_characters": True,
            **(_TAG_HANDLING if marked else {}),
        }
        if self.model in _MODEL_TYPES:
            body["model_type"] = self.model
        context = _context(request)
        if context:
            body["context"] = context
        formality = _formality(request.tone)
        if formality:
            body["formality"] = formality
        glossary = self._glossaries.get(request.target_locale) or self._glossaries.get("*")
        if glossary:
            body["glossary_id"] = glossary
        places = positions.Places(tuple(item.id for item in request.items), sum(map(len, texts)), marked)
        return positions.framed(places, exchange.compact(body).encode())

    def reserve(self, body: bytes) -> tuple[int, int]:
        """Worst case: every character that is sent to be translated, tags among them."""
        characters = positions.opened(body)[0].characters
        return characters, positions.microusd(characters, self._price)

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """One POST."""
        places, question = positions.opened(body)

        def dressed(key: str) -> tuple[bytes, Mapping[str, str]]:
            return question, {"Authorization": f"DeepL-Auth-Key {key}"} if key else {}

        return await self._server.post("/v2/translate", places, dressed, attempt_id, deadline_seconds)

    def read(self, answer: bytes) -> Reply:
        """The texts under their ids, also of an answer that broke off. Never raises."""
        found = positions.unframed(answer)
        if found is None:
            return Reply((), "unreadable")
        places, body = found
        said = failures.error_body(body).get("translations")
        whole = isinstance(said, list)
        elements = said if isinstance(said, list) else _broken(body)
        shaped = [one if isinstance(one, dict) else {} for one in elements]
        texts = [_text(one.get("text"), places.marked) for one in shaped]
        billed = [
            exchange.tokens(one.get("billed_characters")) for one in shaped if "billed_characters" in one
        ]
        known = whole and len(billed) == len(places.ids)
        characters = min(sum(billed), places.characters) if known else places.characters
        return positions.reply(places, texts, self._usage(characters), whole=whole)

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """Nothing is kept that could be asked for."""
        return None

    async def close(self) -> None:
        """Release connections; nothing is sent any more."""
        await self._server.close()

    def _usage(self, characters: int) -> Usage:
        return positions.by_characters(characters, self._price, self._price_name)


def read_error(body: bytes) -> Mapping[str, object] | None:
    """DeepL's error body: `message` (its parser of tags spells it `Message`), and at times `detail`."""
    said = failures.error_body(body)
    message, detail = said.get("message", said.get("Message")), said.get("detail")
    if not isinstance(message, str):
        return None
    return {"message": f"{message} {detail}" if isinstance(detail, str) else message}


def _context(request: CompletionRequest) -> str:
    """The notes of all items, each once, between what stands around them; one request has one context."""
    asked = {item.text for item in request.items}
    around = (
        *(item.before for item in request.items),
        *(item.note for item in request.items),
        *(item.after for item in request.items),
    )
    told = dict.fromkeys(said for said in around if said and said not in asked)
    return "\n".join(told)[: limits.DEEPL_CONTEXT_CHARS_MAX]


def _formality(tone: str) -> str:
    words = tone.lower().replace(",", " ").split()
    return next((_TONES[word] for word in words if word in _TONES), "")


def _text(said: object, marked: bool) -> object:
    return markup.from_tags(said, xml=True) if marked and isinstance(said, str) else said


def _broken(body: bytes) -> list[object]:
    """The translations that are complete in a body which breaks off."""
    return exchange.complete_elements(body.decode("utf-8", "ignore"), "translations")
