"""What a command line of `translate` asks for, checked: pairs of the tree, or a walk through a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.content import locales, scoping
from dragoman.kernel import canonical
from dragoman.kernel.errors import CallerError, LocaleError
from dragoman.model import budgets
from dragoman.model.intents import MODES
from dragoman.model.jobs import SPEEDS
from dragoman.model.walks import Walk
from dragoman.surfaces.cli.typed import Asked, Scope
from dragoman.wiring import catalogue
from dragoman.wiring.services import find_sources
from dragoman.wiring.settings import Settings
from dragoman.wiring.sourcing import frozen_source, source_of

_BESIDE_THE_RESULT = frozenset({"on_unknown", "explain_edits", "budget"})


@dataclass(frozen=True, slots=True)
class Order:
    """A command line, checked: pairs in order and the settings that the manifest freezes."""

    project: str
    pairs: tuple[tuple[str, str], ...]
    frozen: dict[str, Any]
    left_out: Mapping[str, str]
    """Documents that are no sources, and why."""
    canary_limit: int = 0
    walk: Walk | None = None
    """The scope that is walked in the place of pairs."""

    @property
    def resume_key(self) -> str:
        """The same order again is the same work: what does not change the result is left out."""
        kept = {name: value for name, value in self.frozen.items() if name not in _BESIDE_THE_RESULT}
        if self.canary_limit:
            kept["canary_limit"] = self.canary_limit
        if self.walk is not None:
            kept["scope"] = self.walk.text
        pairs = [list(pair) for pair in self.pairs]
        return canonical.fingerprint({**kept, "project": self.project, "pairs": pairs})


def plan(settings: Settings, asked: Asked) -> Order:
    """Check a command line against the working tree, or the project's source where it names a scope.

    Raises `CallerError` naming what is wrong, `SourceError` where a source does not answer.
    """
    _refuse_choice("--mode", asked.mode, MODES)
    _refuse_choice("--on-unknown", asked.on_unknown, ("", "resend", "resend:unlimited", "hold"))
    _refuse_choice("--speed", asked.speed, SPEEDS)
    project = settings.project or settings.root.name or "default"
    kept = frozen_source(settings, project, "files:v1")
    source_locale = _locale(asked.source_locale or kept["source_locale"], "--from")
    targets = sorted({_locale(locale, "--to") for locale in asked.locales or settings.locales})
    if not targets:
        raise CallerError("no target locale is named", "empty_request", place="--to")
    if source_locale in targets:
        raise CallerError(f"{source_locale} is the source locale", "source_is_target", place="--to")
    frozen = _frozen(settings, asked, source_locale)
    if "locked" in kept:
        frozen["locked"] = kept["locked"]
    if asked.scope.is_named or "url" in kept.get("source", {}):
        frozen |= {"project": project, "out": asked.out, **kept, "source_locale": source_locale}
        if asked.dry_run:
            frozen["executor"] = "dry-run:v1"
        return Order(project, (), frozen, {}, asked.canary, _walk(asked, frozen, targets, settings.pairs_max))
    if asked.scope != Scope():
        raise CallerError(
            "--exclude and --no-drafts belong to a scope: --all, --collection", place="--exclude"
        )
    paths = [Path(path) for path in asked.paths] or [settings.root / path for path in settings.sources]
    if not paths:
        raise CallerError(
            "no file or folder is named, and dragoman.toml has no `sources`", "empty_request", "PATH"
        )
    found = find_sources(settings, paths, asked.out, source_locale, targets)
    frozen["templates"] = dict(found.templates)
    pairs = tuple(sorted((document, locale) for document in found.templates for locale in targets))
    return Order(project, pairs, frozen, found.skipped, asked.canary)


def reach(settings: Settings, order: Order) -> Sequence[tuple[str, str]]:
    """All pairs of an order, those of a scope as the source lists them now. Blocking."""
    if order.walk is None:
        return order.pairs
    return scoping.pairs_of(source_of(order.frozen), order.walk, settings.pairs_max)


def _frozen(settings: Settings, asked: Asked, source_locale: str) -> dict[str, Any]:
    """What the manifest freezes, whatever it is of."""
    provider, _, model = (asked.provider or default_provider(settings)).partition(":")
    if provider == "openai" and asked.base_url and not settings.engine.url:
        provider = catalogue.addressed(asked.base_url)
    if not (settings.engine.url or asked.frozen):  # a far engine knows its own
        _refuse_provider(settings, provider, asked.base_url)
        _refuse_speed(settings, provider, asked)
    frozen: dict[str, Any] = {
        "source_locale": source_locale,
        "mode": asked.mode,
        "provider": provider,
        "model": model,
        "root": str(settings.root.absolute()),
        "executor": "dry-run:v1" if asked.dry_run else "files:v1",
        "partial": "auto",
        "publish": "auto",
        "on_unknown": asked.on_unknown,
        "explain_edits": asked.explain,
        "batch_size": settings.batch_size,
        "concurrency": settings.concurrency,
    }
    if asked.speed != "standard":
        frozen["speed"] = asked.speed
    if asked.budget:
        frozen["budget"] = budgets.spelled(asked.budget, "--budget")
    return frozen


def _walk(asked: Asked, frozen: Mapping[str, Any], targets: Sequence[str], pairs_max: int) -> Walk:
    """The scope that was typed, all of whose names the source has."""
    scope = asked.scope
    if asked.paths:
        raise CallerError("name PATHs or a scope, not both", place="PATH")
    if not scope.is_named:
        raise CallerError(
            f"project {frozen['project']} lies behind a server: name --all, --collection or --document",
            "empty_request",
            place="--collection",
        )
    if asked.out and "url" in frozen.get("source", {}):
        raise CallerError("the server knows where its translations go", place="--out")
    contents = source_of(frozen).contents()
    collections, globals_ = scope.collections, scope.globals
    if scope.everything:
        collections, globals_ = scoping.everything(contents, scope.exclude)
    said = {
        "collections": list(collections),
        "exclude_collections": list(scope.exclude),
        "globals": list(globals_),
        "documents": list(scope.documents),
        "locales": list(targets),
        "drafts": scope.drafts,
    }
    return scoping.check(scoping.read(said, str(frozen["source_locale"]), pairs_max), contents)


def _locale(tag: str, flag: str) -> str:
    try:
        return locales.canonical(tag)
    except LocaleError as error:
        raise LocaleError(error.message, place=flag) from None


def default_provider(settings: Settings) -> str:
    """The provider when none is named: a vendor whose key is at hand, else the settings' own."""
    by_key = catalogue.of_environment(settings) if settings.provider == "pseudo" else ""
    return by_key or settings.provider


def _refuse_choice(flag: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise CallerError(f"{flag} must be one of {', '.join(filter(None, choices))}", place=flag)


def _refuse_provider(settings: Settings, name: str, base_url: str) -> None:
    known = catalogue.provider_named(settings, name, base_url, "--provider")
    if catalogue.credentials_missing(known):
        raise CallerError(
            f"provider {name} needs its key in {catalogue.key_place(known)}",
            "provider_credentials_missing",
            place="--provider",
        )
    catalogue.factories(settings, base_url)[name]("")


def _refuse_speed(settings: Settings, name: str, asked: Asked) -> None:
    if asked.speed == "batch" and name not in catalogue.batchers(settings, asked.base_url):
        raise CallerError(f"provider {name} sends no batches", place="--speed")
