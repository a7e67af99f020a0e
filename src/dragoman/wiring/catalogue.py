"""Which members exist: formats, providers by protocol, and what a run on this machine can use without any
setting.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence

from dragoman.content import locales
from dragoman.content.formats.android import AndroidStrings
from dragoman.content.formats.apple_strings import AppleStrings
from dragoman.content.formats.arb import ArbCatalogue
from dragoman.content.formats.chrome_messages import ChromeMessages
from dragoman.content.formats.contentful import ContentfulRichText
from dragoman.content.formats.csv_table import CsvTable
from dragoman.content.formats.fluent import FluentResource
from dragoman.content.formats.formatjs import FormatJs
from dragoman.content.formats.gettext import GettextCatalogue
from dragoman.content.formats.html_document import HtmlDocument
from dragoman.content.formats.i18next import I18next
from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.content.formats.lexical import LexicalDocument
from dragoman.content.formats.markdown import SHORTCODE_TEXTS, MarkdownFormat
from dragoman.content.formats.portable_text import PortableText
from dragoman.content.formats.properties import PropertiesCatalogue
from dragoman.content.formats.qt_linguist import QtLinguist
from dragoman.content.formats.rails_yaml import RailsYaml
from dragoman.content.formats.resx import ResxCatalogue
from dragoman.content.formats.stringsdict import StringsDict
from dragoman.content.formats.subrip import SubRip
from dragoman.content.formats.webvtt import WebVtt
from dragoman.content.formats.wordpress_post import WordPressPost
from dragoman.content.formats.xcstrings import StringCatalogue
from dragoman.content.formats.xliff1 import Xliff1
from dragoman.content.formats.xliff2 import Xliff2
from dragoman.content.formats.yaml_catalogue import YamlCatalogue
from dragoman.flow.engine.translation.gate import Rates
from dragoman.kernel.errors import CallerError, SettingsError
from dragoman.kernel.identity import sha256
from dragoman.model import budgets
from dragoman.model.contracts import Format, Provider
from dragoman.model.jobs import ADDRESSED, named
from dragoman.providers.pseudo import PseudoProvider
from dragoman.providers.rehearsal import RehearsalProvider
from dragoman.wiring import language_models, text_engines
from dragoman.wiring.settings import ProviderSettings, Settings

Factory = Callable[[str], Provider]


def formats() -> Sequence[Format]:
    """Every file format, the more particular first."""
    return (
        GettextCatalogue(),
        QtLinguist(),
        Xliff2(),
        Xliff1(),
        AppleStrings(),
        AndroidStrings(),
        PropertiesCatalogue(),
        ResxCatalogue(),
        WordPressPost(),
        LexicalDocument(),
        PortableText(),
        ContentfulRichText(),
        ArbCatalogue(),
        ChromeMessages(),
        FormatJs(),
        I18next(),
        StringCatalogue(),
        StringsDict(),
        JsonCatalogue(),
        FluentResource(),
        RailsYaml(),
        YamlCatalogue(),
        MarkdownFormat(shortcode_texts=SHORTCODE_TEXTS),
        MarkdownFormat(mdx=True, shortcode_texts=SHORTCODE_TEXTS),
        HtmlDocument(),
        SubRip(),
        WebVtt(),
        CsvTable(),
        CsvTable(pairs=True),
    )


def provider_settings(settings: Settings, base_url: str = "") -> Mapping[str, ProviderSettings]:
    """All providers by name: those of the settings, those that need none, and `openai` at `base_url`, under
    a name of its own.
    """
    given = language_models.defaults(settings, base_url)["openai"]
    return {
        "pseudo": ProviderSettings(protocol="pseudo"),
        "rehearsal": ProviderSettings(protocol="rehearsal"),
        **text_engines.DEFAULTS,
        **language_models.defaults(settings),
        **settings.providers,
        **({addressed(base_url): given} if base_url else {}),
    }


def provider_named(settings: Settings, name: str, base_url: str, place: str) -> ProviderSettings:
    """The provider of a name. Raises `CallerError` provider_unknown, which names what there is."""
    known = provider_settings(settings, base_url)
    if name not in known:
        told = f"no provider {name!r}; known are {', '.join(sorted(known))}"
        raise CallerError(told, "provider_unknown", place)
    return known[name]


def addressed(base_url: str) -> str:
    """The name of `openai` at an address that a command line gave; it tells nobody the address."""
    return f"openai{ADDRESSED}{sha256(base_url.rstrip('/'))[:12]}"


def factories(settings: Settings, base_url: str = "") -> Mapping[str, Factory]:
    """Name → maker of that provider for a model (empty: the configured one)."""
    return {name: _factory(name, chosen) for name, chosen in provider_settings(settings, base_url).items()}


def batchers(settings: Settings, base_url: str = "") -> Mapping[str, Factory]:
    """Name → maker of the provider that sends calls as batches, for those names that have one."""
    return {
        name: _guarded(name, chosen, language_models.batcher(name, chosen))
        for name, chosen in provider_settings(settings, base_url).items()
        if language_models.takes_batches(chosen)
    }


def bounds(settings: Settings) -> Mapping[str, budgets.Bounds]:
    """What each provider may cost a workspace in a calendar month, by the settings."""
    return {
        name: budgets.read({"tokens": chosen.monthly_tokens, "usd": chosen.monthly_usd}, f"providers.{name}")
        for name, chosen in settings.providers.items()
    }


def rates(settings: Settings) -> Mapping[str, Rates]:
    """How each provider's account may be called by this process, by the settings."""
    return {
        name: Rates(
            language_models.requests_per_second(chosen), chosen.tokens_per_minute, chosen.calls_at_once
        )
        for name, chosen in provider_settings(settings).items()
    }


def without_examples(settings: Settings) -> frozenset[str]:
    """The providers that are shown no examples."""
    return frozenset(name for name, chosen in settings.providers.items() if not chosen.examples)


def fallbacks(settings: Settings) -> Mapping[str, Sequence[str]]:
    """Who goes on where a provider refuses to serve. Raises `SettingsError` for a name that nobody has."""
    known = provider_settings(settings)
    for name, chosen in known.items():
        for entry in chosen.fallback:
            if entry.partition(":")[0] not in known:
                raise SettingsError(f"setting providers.{name}.fallback: no provider {entry!r}")
    return {name: chosen.fallback for name, chosen in known.items() if chosen.fallback}


def credentials_missing(chosen: ProviderSettings) -> bool:
    """Whether a provider needs a key that the environment does not hold; own servers need none."""
    return _wants_key(chosen) and not key_is_set(chosen)


def _wants_key(chosen: ProviderSettings) -> bool:
    if chosen.identity == "managed":
        return False
    if not chosen.key_variable:
        return bool(chosen.priced)
    return (
        chosen.requires_key if chosen.requires_key is not None else language_models.is_hosted(chosen.base_url)
    )


def key_is_set(chosen: ProviderSettings) -> bool:
    """Whether the environment holds a provider's key."""
    return bool(chosen.key_variable and os.environ.get(chosen.key_variable))


def key_place(chosen: ProviderSettings) -> str:
    """Where a provider's key is looked for, in words."""
    if chosen.key_variable:
        return f"the environment variable {chosen.key_variable}"
    return "an environment variable that `key_variable` names in its settings"


def needs(settings: Settings) -> Mapping[str, str]:
    """Provider → what a process must hold to ask it: the credential reference that it cannot do without (a
    variable's name, never its value), or the name that these settings alone give it.
    """
    known = provider_settings(settings).items()
    keys = {name: chosen.key_variable for name, chosen in known if _wants_key(chosen)}
    return keys | {name: named(name) for name in _named_here(settings)}


def _named_here(settings: Settings) -> Mapping[str, ProviderSettings]:
    """Providers whose names another process knows only if its settings hold them too."""
    everywhere = provider_settings(settings.model_copy(update={"providers": {}}))
    return {name: chosen for name, chosen in settings.providers.items() if name not in everywhere}


def held(settings: Settings, base_url: str = "") -> list[str]:
    """What this process has of what jobs need: references of the keys in its environment, the provider at the
    address that its command line gave, and those that its settings name, where it can ask them.
    """
    known = provider_settings(settings, base_url)
    keys = {chosen.key_variable for chosen in known.values() if key_is_set(chosen)}
    reached = {
        name for name, chosen in known.items() if ADDRESSED in name and not credentials_missing(chosen)
    }
    ours = {named(name) for name, chosen in _named_here(settings).items() if not credentials_missing(chosen)}
    return sorted(keys | reached | ours)


def platform(settings: Settings) -> str:
    """The provider behind `platform`, and behind no name at all."""
    return "platform" if language_models.is_azure(settings.openai_endpoint) else settings.provider


def of_environment(settings: Settings) -> str:
    """The first hosted vendor whose key the environment holds, '' for none."""
    known = provider_settings(settings)
    at_hand = (name for name in language_models.BY_KEY if name in known and key_is_set(known[name]))
    return next(at_hand, "")


def _factory(name: str, chosen: ProviderSettings) -> Factory:
    if chosen.protocol in language_models.PROTOCOLS:
        return _guarded(name, chosen, language_models.maker(name, chosen))
    return _guarded(name, chosen, functools.partial(_make, name, chosen))


def _guarded(name: str, chosen: ProviderSettings, model_maker: Factory) -> Factory:
    """A maker that makes nothing while the provider's key is missing."""

    def make(model: str) -> Provider:
        if credentials_missing(chosen):
            raise SettingsError(
                f"provider {name} needs its key in {key_place(chosen)}",
                "provider_credentials_missing",
            )
        return model_maker(model or chosen.model)

    return make


def _make(name: str, chosen: ProviderSettings, model: str) -> Provider:
    engine = text_engines.make(name, chosen, model)
    if engine is not None:
        return engine
    if chosen.protocol == "pseudo":
        return PseudoProvider(name, locales.choose_code)
    if chosen.protocol == "rehearsal":
        return RehearsalProvider(name, locales.choose_code)
    raise SettingsError(f"provider {name} has no protocol that is known: {chosen.protocol}")
