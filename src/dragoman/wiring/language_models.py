"""Makers of language models, one a protocol; vendors whose usual variables are set have a name of their own.

Keys are read from the environment at each send. Azure is asked under a key, or under this machine's managed
identity, whose token all models of the account share.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from dragoman.content import locales
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.errors import SettingsError
from dragoman.model.contracts import Provider
from dragoman.providers import vendors
from dragoman.providers.anthropic import AnthropicProvider
from dragoman.providers.anthropic_batches import AnthropicBatchesProvider
from dragoman.providers.chat import ChatProvider
from dragoman.providers.gemini import GeminiProvider
from dragoman.providers.hosted import KeyReader, Options
from dragoman.providers.managed_identity import IdentityTokens, managed_identity
from dragoman.providers.openai_batches import OpenAIBatchesProvider
from dragoman.providers.prices import Flat
from dragoman.providers.responses import ResponsesProvider
from dragoman.wiring.settings import ProviderSettings, Settings

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"
GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"
MODELS: Mapping[str, str] = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-haiku-5-5",
    "gemini": "gemini-3.5-flash-lite",
}
"""What is used where nobody names a model: small, current ones."""

PROTOCOLS = frozenset({"chat", "responses", "anthropic", "gemini"})
BY_KEY = ("openai", "anthropic", "gemini", "azure")
"""Whose key decides which provider is used when nobody names one, the first first."""


def defaults(settings: Settings, base_url: str = "") -> dict[str, ProviderSettings]:
    """The vendors that can be used without a line of settings. `base_url` overrides `openai`'s."""
    endpoint = settings.openai_endpoint
    known = {
        "openai": ProviderSettings(
            protocol="chat",
            model=MODELS["openai"],
            base_url=base_url
            or os.environ.get("OPENAI_BASE_URL", "")
            or ("" if is_azure(endpoint) else endpoint)
            or OPENAI_URL,
            key_variable="OPENAI_API_KEY",
        ),
        "anthropic": ProviderSettings(
            protocol="anthropic",
            model=MODELS["anthropic"],
            base_url=os.environ.get("ANTHROPIC_BASE_URL", "") or ANTHROPIC_URL,
            key_variable="ANTHROPIC_API_KEY",
        ),
        "gemini": ProviderSettings(
            protocol="gemini", model=MODELS["gemini"], base_url=GEMINI_URL, key_variable="GEMINI_API_KEY"
        ),
    }
    azure = os.environ.get("AZURE_OPENAI_ENDPOINT", "")
    if azure:
        known["azure"] = _azure(azure, managed=False)
    if is_azure(endpoint):
        known["platform"] = _azure(endpoint, managed=not os.environ.get("AZURE_OPENAI_API_KEY"))
    return known


def is_azure(url: str) -> bool:
    """Whether Azure answers at this address."""
    return bool(url) and vendors.vendor_of(vendors.checked_url(url)) is vendors.AZURE


def requests_per_second(chosen: ProviderSettings) -> float | None:
    """How fast an account may be called: what the settings say, else what its vendor takes."""
    if chosen.requests_per_second is not None or chosen.protocol not in PROTOCOLS or not chosen.base_url:
        return chosen.requests_per_second
    return vendors.vendor_of(vendors.checked_url(chosen.base_url)).per_second


def is_hosted(url: str) -> bool:
    """Whether a vendor answers at this address, who serves nobody without a key."""
    return bool(url) and vendors.vendor_of(vendors.checked_url(url)) is not vendors.ANY


def maker(name: str, chosen: ProviderSettings) -> Callable[[str], Provider]:
    """Makes the provider for a model. Raises `SettingsError` when asked where the settings do not fit."""
    keys: list[KeyReader] = []

    def make(model: str) -> Provider:
        if not model:
            raise SettingsError(f"provider {name} has no model: name one as {name}:MODEL, or in its settings")
        if not keys:
            keys.append(_key_reader(chosen))
        return _make(name, chosen, model, keys[0])

    return make


def takes_batches(chosen: ProviderSettings) -> bool:
    """Whether calls can be sent as batches: as the settings say, else as the vendor at the address does."""
    if chosen.protocol not in ("chat", "responses", "anthropic") or chosen.api_version or not chosen.base_url:
        return False
    if chosen.batches is not None:
        return chosen.batches
    return vendors.vendor_of(vendors.checked_url(chosen.base_url)).batches


def batcher(name: str, chosen: ProviderSettings) -> Callable[[str], Provider]:
    """Makes the provider of a model that sends calls as batches. Raises `SettingsError` as `maker` does."""

    def make(model: str) -> Provider:
        if not model:
            raise SettingsError(f"provider {name} has no model: name one as {name}:MODEL, or in its settings")
        return _make_batching(name, chosen, model, _key_reader(chosen))

    return make


def _make_batching(name: str, chosen: ProviderSettings, model: str, key: KeyReader) -> Provider:
    options = _options(chosen)
    options["halved"] = True
    common = (name, model, chosen.base_url, key, locales.choose_code)
    match chosen.protocol:
        case "anthropic":
            spoken = AnthropicProvider(*common, **options)
            return AnthropicBatchesProvider(*common, spoken=spoken, **options)
        case "responses":
            responses = ResponsesProvider(*common, keep_answers=False, **options)
            return OpenAIBatchesProvider(*common, spoken=responses, endpoint="/v1/responses", **options)
        case _:
            chat = ChatProvider(*common, keep_answers=False, reply_format=chosen.reply_format, **options)
            return OpenAIBatchesProvider(*common, spoken=chat, **options)


def _make(name: str, chosen: ProviderSettings, model: str, key: KeyReader) -> Provider:
    options = _options(chosen)
    common = (name, model, chosen.base_url, key, locales.choose_code)
    match chosen.protocol:
        case "anthropic":
            return AnthropicProvider(*common, **options)
        case "gemini":
            return GeminiProvider(*common, **options)
        case "responses":
            return ResponsesProvider(*common, keep_answers=chosen.keep_answers, **options)
        case _:
            return ChatProvider(
                *common,
                keep_answers=chosen.keep_answers,
                api_version=chosen.api_version,
                reply_format=chosen.reply_format,
                **options,
            )


def _options(chosen: ProviderSettings) -> Options:
    options = Options(
        priced=chosen.priced,
        price_model=chosen.price_model,
        locales=chosen.locales,
        extra=chosen.extra,
    )
    if chosen.usd_per_million_tokens is not None:
        options["tariff"] = Flat(*chosen.usd_per_million_tokens)
    if chosen.identity == "managed":
        options["vendor"] = vendors.AZURE_BY_IDENTITY
    return options


def _key_reader(chosen: ProviderSettings) -> KeyReader:
    if chosen.identity == "managed":
        return IdentityTokens(managed_identity(os.environ.get("AZURE_CLIENT_ID", "")), SystemClock().now)
    return lambda: os.environ.get(chosen.key_variable) if chosen.key_variable else None


def _azure(endpoint: str, *, managed: bool) -> ProviderSettings:
    return ProviderSettings(
        protocol="chat",
        model=os.environ.get("AZURE_OPENAI_DEPLOYMENT", ""),
        base_url=endpoint,
        api_version=os.environ.get("OPENAI_API_VERSION", ""),
        key_variable="" if managed else "AZURE_OPENAI_API_KEY",
        identity="managed" if managed else "key",
    )
