"""Which vendors have a name without a line of settings, and what the settings make of them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dragoman.kernel.errors import SettingsError
from dragoman.model.completions import CompletionRequest, PromptItem
from dragoman.providers.anthropic import AnthropicProvider
from dragoman.providers.chat import ChatProvider
from dragoman.providers.gemini import GeminiProvider
from dragoman.providers.openai_batches import OpenAIBatchesProvider
from dragoman.providers.responses import ResponsesProvider
from dragoman.wiring import catalogue, language_models
from dragoman.wiring.settings import ProviderSettings, Settings

AZURE_URL = "https://acme.openai.azure.com"
VARIABLES = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_API_VERSION",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "GEMINI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_ENDPOINT",
    "AZURE_OPENAI_DEPLOYMENT",
)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_a_vendors_usual_variables_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """[J-064]"""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-anything")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", AZURE_URL)
    monkeypatch.setenv("AZURE_OPENAI_DEPLOYMENT", "ours")
    made = {name: catalogue.factories(Settings())[name]("") for name in language_models.BY_KEY}
    assert {name: type(provider) for name, provider in made.items()} == {
        "openai": ChatProvider,
        "anthropic": AnthropicProvider,
        "gemini": GeminiProvider,
        "azure": ChatProvider,
    }
    assert {name: provider.model for name, provider in made.items()} == {
        **language_models.MODELS,
        "azure": "ours",
    }
    assert all(provider.priced for provider in made.values())
    assert made["azure"].askable
    assert made["openai"].askable


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini"])
def test_without_its_key_a_vendor_is_refused_before_anything_is_begun(name: str) -> None:
    """[J-065]"""
    with pytest.raises(SettingsError) as refused:
        catalogue.factories(Settings())[name]("")
    assert refused.value.code == "provider_credentials_missing"


def test_the_prices_of_default_models_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "sk-anything")
    for name in language_models.MODELS:
        provider = catalogue.factories(Settings())[name]("")
        assert isinstance(provider, ChatProvider | AnthropicProvider | GeminiProvider)
        assert provider.price_known


def test_the_first_key_at_hand_decides_who_is_asked_when_nobody_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert catalogue.of_environment(Settings()) == ""
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    assert catalogue.of_environment(Settings()) == "gemini"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    assert catalogue.of_environment(Settings()) == "anthropic"


def test_the_platform_is_azure_where_its_endpoint_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """[J-058, J-059, J-062] Under the machine's identity, unless there is a key; ten requests a second."""
    settings = Settings(openai_endpoint=AZURE_URL)
    platform = catalogue.provider_settings(settings)["platform"]
    assert (catalogue.platform(settings), platform.identity, platform.protocol) == (
        "platform",
        "managed",
        "chat",
    )
    assert not catalogue.credentials_missing(platform)
    assert language_models.requests_per_second(platform) == 10
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "x")
    by_key = catalogue.provider_settings(settings)["platform"]
    assert (by_key.identity, by_key.key_variable) == ("key", "AZURE_OPENAI_API_KEY")


def test_without_that_endpoint_the_platform_is_the_configured_provider() -> None:
    """[J-058]"""
    assert catalogue.platform(Settings()) == "pseudo"
    assert catalogue.platform(Settings(openai_endpoint="https://llm.example.com/v1")) == "pseudo"
    assert "platform" not in catalogue.provider_settings(Settings())


def test_rates_are_the_settings_or_the_vendors() -> None:
    """[J-066]"""

    def rate(url: str, rate: float | None = None) -> float | None:
        chosen = ProviderSettings(protocol="chat", base_url=url, requests_per_second=rate)
        return language_models.requests_per_second(chosen)

    assert rate(AZURE_URL) == 10
    assert rate(AZURE_URL, 3) == 3
    assert rate("https://api.openai.com/v1") is None


def test_a_protocol_is_chosen_by_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", "sk-x")
    chosen = ProviderSettings(
        protocol="responses",
        base_url="https://api.openai.com/v1",
        key_variable="HOUSE_KEY",
        model="m",
        usd_per_million_tokens=(Decimal(1), Decimal(2)),
    )
    provider = catalogue.factories(Settings(providers={"house": chosen}))["house"]("")
    assert isinstance(provider, ResponsesProvider)
    assert provider.price_known
    tokens, microusd = provider.reserve(b'{"max_output_tokens":10}')
    assert (tokens, microusd) == (34, 24 + 20)


def test_a_fallback_is_a_provider_that_there_is() -> None:
    chosen = ProviderSettings(protocol="pseudo", fallback=("openai:gpt-4o", "rehearsal"))
    assert catalogue.fallbacks(Settings(providers={"house": chosen})) == {"house": chosen.fallback}
    wrong = ProviderSettings(protocol="pseudo", fallback=("nobody",))
    with pytest.raises(SettingsError, match="nobody"):
        catalogue.fallbacks(Settings(providers={"house": wrong}))


def test_a_provider_without_a_model_says_how_to_name_one() -> None:
    chosen = ProviderSettings(protocol="chat", base_url="http://127.0.0.1:11434/v1")
    with pytest.raises(SettingsError, match="house:MODEL"):
        catalogue.factories(Settings(providers={"house": chosen}))["house"]("")


def test_batches_are_offered_where_the_vendor_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI and Anthropic; nobody else unless the settings say so, and no deployment of Azure's."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.setenv("HOUSE_KEY", "sk-x")
    openai, house = "https://api.openai.com/v1", "http://127.0.0.1:4000/v1"
    more = {
        "answers": ProviderSettings(
            protocol="responses", base_url=openai, key_variable="HOUSE_KEY", model="m"
        ),
        "gateway": ProviderSettings(protocol="chat", base_url=house, batches=True, model="m"),
        "plain": ProviderSettings(protocol="chat", base_url=house, model="m"),
        "never": ProviderSettings(protocol="chat", base_url=openai, batches=False, model="m"),
        "azure": ProviderSettings(protocol="chat", base_url=AZURE_URL, model="m"),
    }
    batchers = catalogue.batchers(Settings(providers=more))
    assert sorted(batchers) == ["answers", "anthropic", "gateway", "openai"]
    makers = catalogue.factories(Settings(providers=more))
    for name in ("answers", "openai"):
        plain, batching = makers[name]("gpt-4o-mini"), batchers[name]("gpt-4o-mini")
        assert isinstance(batching, OpenAIBatchesProvider)
        assert (batching.name, batching.account) == (plain.name, plain.account)
        body = batching.render(CompletionRequest("en", "fr", (PromptItem("a", "Hello"),)))
        assert batching.reserve(body)[1] == -(-plain.reserve(body)[1] // 2)
    with pytest.raises(SettingsError, match="ANTHROPIC_API_KEY"):
        batchers["anthropic"]("")


def test_what_a_process_holds_and_what_jobs_need_are_one_set_of_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Names of variables, never values; a server of one's own needs its key only where settings say so."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-a")
    monkeypatch.setenv("HOUSE_KEY", "sk-h")
    home = "http://127.0.0.1:4000/v1"
    house = ProviderSettings(protocol="chat", base_url=home, key_variable="HOUSE_KEY", requires_key=True)
    free = ProviderSettings(protocol="chat", base_url=home, key_variable="OTHER_KEY")
    settings = Settings(providers={"house": house, "free": free})
    needs = catalogue.needs(settings)
    assert (needs["openai"], needs["anthropic"]) == ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
    assert (needs["house"], needs["free"]) == ("house@", "free@")
    assert not {"pseudo", "rehearsal", "apertium"} & set(needs)
    assert catalogue.held(settings) == ["ANTHROPIC_API_KEY", "HOUSE_KEY", "free@", "house@"]
    named = catalogue.addressed(home)
    assert catalogue.held(settings, home) == sorted([*catalogue.held(settings), named])
    hosted = "https://api.openai.com/v1"
    assert catalogue.addressed(hosted) not in catalogue.held(settings, hosted)
