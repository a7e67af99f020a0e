"""Makers of the machine translation engines: DeepL, LibreTranslate, Apertium's service and program.

The last three name their languages themselves, once a process, when they are first used; that wait is short
and blocks. A server that does not answer then is asked again by the next job.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from decimal import Decimal

from dragoman.content import locales
from dragoman.kernel.errors import SettingsError
from dragoman.model.contracts import Provider
from dragoman.providers.apertium import ApertiumProvider, installed_pairs
from dragoman.providers.apertium_http import ApertiumHttpProvider, read_pairs
from dragoman.providers.deepl import FREE_KEY_END, FREE_URL, PRO_URL, DeepLProvider
from dragoman.providers.libretranslate import LibreTranslateProvider, declared_languages, read_languages
from dragoman.providers.listing import told
from dragoman.wiring.settings import ProviderSettings

LIBRETRANSLATE_URL = "http://127.0.0.1:5000"
APERTIUM_URL = "http://127.0.0.1:2737"
DEFAULTS = {
    "apertium": ProviderSettings(protocol="apertium"),
    "apertium-http": ProviderSettings(protocol="apertium-http", base_url=APERTIUM_URL),
    "deepl": ProviderSettings(protocol="deepl", key_variable="DEEPL_AUTH_KEY", requires_key=True),
    "libretranslate": ProviderSettings(
        protocol="libretranslate",
        base_url=LIBRETRANSLATE_URL,
        key_variable="LIBRETRANSLATE_API_KEY",
        requires_key=False,
    ),
}
"""Under these names the engines can be used without a line of settings."""


def make(name: str, chosen: ProviderSettings, model: str) -> Provider | None:
    """The engine of a protocol, None for another. Raises `SettingsError`, and `OutsideError` where a server
    does not say which languages it has.
    """
    maker = _MAKERS.get(chosen.protocol)
    return maker(name, chosen, model) if maker else None


def _deepl(name: str, chosen: ProviderSettings, model: str) -> Provider:
    key = _key_reader(chosen)
    of_plan = FREE_URL if (key() or "").strip().endswith(FREE_KEY_END) else PRO_URL
    return DeepLProvider(
        name,
        chosen.base_url or of_plan,
        key,
        locales.choose_code,
        model=model,
        priced=chosen.priced,
        usd_per_million_characters=chosen.usd_per_million_characters,
        glossaries=chosen.glossaries,
        locales=chosen.locales,
    )


def _libretranslate(name: str, chosen: ProviderSettings, model: str) -> Provider:
    url = chosen.base_url or LIBRETRANSLATE_URL
    if chosen.locales:
        targets = declared_languages(chosen.locales)
    else:
        targets = told(name, url, "/languages", read_languages)
    price = chosen.usd_per_million_characters
    return LibreTranslateProvider(
        name,
        url,
        _key_reader(chosen),
        locales.choose_code,
        targets,
        priced=bool(price) if chosen.priced is None else chosen.priced,
        usd_per_million_characters=price or Decimal(0),
    )


def _apertium_http(name: str, chosen: ProviderSettings, model: str) -> Provider:
    url = chosen.base_url or APERTIUM_URL
    pairs = told(name, url, "/listPairs", read_pairs)
    return ApertiumHttpProvider(name, url, locales.choose_code, pairs)


def _apertium(name: str, chosen: ProviderSettings, model: str) -> Provider:
    if shutil.which("apertium") is None:
        raise SettingsError("apertium is not installed here: `apt-get install apertium apertium-eng-spa`")
    return ApertiumProvider(name, installed_pairs(), locales.choose_code)


_MAKERS: dict[str, Callable[[str, ProviderSettings, str], Provider]] = {
    "apertium": _apertium,
    "apertium-http": _apertium_http,
    "deepl": _deepl,
    "libretranslate": _libretranslate,
}


def _key_reader(chosen: ProviderSettings) -> Callable[[], str | None]:
    return lambda: os.environ.get(chosen.key_variable) if chosen.key_variable else None
