"""Machine translation engines as the settings make them: names, keys, languages that servers name."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from dragoman.kernel.errors import DragomanError, LocaleError, OutsideError, SettingsError
from dragoman.providers.deepl import DeepLProvider
from dragoman.wiring import catalogue, text_engines
from dragoman.wiring.settings import ProviderSettings, Settings
from tests.doubles.text_servers import ApertiumServer, LibreTranslateServer


def of(protocol: str, base_url: str = "", **more: object) -> ProviderSettings:
    return ProviderSettings.model_validate({"protocol": protocol, "base_url": base_url, **more})


def test_the_engines_are_there_without_a_line_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """deepl, libretranslate and apertium-http by name; DeepL needs its key, and names the variable."""
    assert {"apertium", "apertium-http", "deepl", "libretranslate"} <= set(catalogue.factories(Settings()))
    monkeypatch.delenv("DEEPL_AUTH_KEY", raising=False)
    with pytest.raises(SettingsError, match="DEEPL_AUTH_KEY") as refused:
        catalogue.factories(Settings())["deepl"]("")
    assert refused.value.code == "provider_credentials_missing"
    monkeypatch.delenv("LIBRETRANSLATE_API_KEY", raising=False)
    assert not catalogue.credentials_missing(text_engines.DEFAULTS["libretranslate"])


@pytest.mark.parametrize(
    ("key", "host", "priced"), [("k:fx", "api-free.deepl.com", False), ("k", "api.deepl.com", True)]
)
def test_a_key_of_the_free_plan_goes_to_the_free_address(
    monkeypatch: pytest.MonkeyPatch, key: str, host: str, priced: bool
) -> None:
    monkeypatch.setenv("DEEPL_AUTH_KEY", key)
    made = catalogue.factories(Settings())["deepl"]("quality_optimized")
    assert isinstance(made, DeepLProvider)
    assert (host in made.account, made.priced, made.model) == (True, priced, "quality_optimized")


def test_a_server_names_its_own_languages() -> None:
    """`/languages` and `/listPairs` are the locale lists; what they lack is refused before any spend."""

    async def run() -> None:
        async with LibreTranslateServer() as libre, ApertiumServer() as apertium:
            made = await asyncio.to_thread(text_engines.make, "lt", of("libretranslate", libre.url), "")
            assert made is not None
            assert made.target_code("zh-TW") == "zh-Hant"
            with pytest.raises(LocaleError):
                made.target_code("fr")
            apy = await asyncio.to_thread(text_engines.make, "apy", of("apertium-http", apertium.url), "")
            assert apy is not None
            assert (apy.target_code("es-ES"), apy.target_code("en-US")) == ("spa", "eng_US")
            assert not libre.calls

    asyncio.run(run())


def test_a_server_that_says_nothing_is_asked_again_later() -> None:
    """Not a defect of the settings: the job waits."""
    for protocol in ("libretranslate", "apertium-http"):
        with pytest.raises(OutsideError) as silent:
            text_engines.make("lt", of(protocol, "http://127.0.0.1:9"), "")
        assert silent.value.code == "provider_unavailable"


def test_languages_in_the_settings_ask_nobody() -> None:
    chosen = of("libretranslate", "http://127.0.0.1:9", locales=["en", "fr"], usd_per_million_characters="10")
    made = text_engines.make("lt", chosen, "")
    assert made is not None
    assert (made.target_code("fr-FR"), made.priced) == ("fr", True)
    assert chosen.usd_per_million_characters == Decimal(10)


def test_an_address_that_is_none_is_a_defect_of_the_settings() -> None:
    with pytest.raises(DragomanError) as refused:
        text_engines.make("lt", of("libretranslate", "file:///etc/hostname"), "")
    assert isinstance(refused.value, SettingsError)
