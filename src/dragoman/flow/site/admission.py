"""Step 1: a request becomes one durable manifest, and nothing else happens.

Admission checks shape, locales, duplicates and rights, makes the request canonical, and persists it in one
transaction. It reads no content, prepares nothing and calls no engine.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar, cast

from dragoman.content import locales, scoping
from dragoman.kernel import canonical, metrics
from dragoman.kernel.errors import CallerError, DragomanError, LocaleError, SourceError
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import (
    CANARY_LIMIT,
    CANARY_LIMIT_MAX,
    DOCUMENT_REF_CHARS_MAX,
    PAIRS_MAX,
    REQUEST_ID_CHARS_MAX,
    SOURCE_ASK_SECONDS,
    STEP_SECONDS,
)
from dragoman.kernel.offload import InlineOffload, Offload
from dragoman.model import budgets
from dragoman.model.contracts import Source
from dragoman.model.intents import MODES, Admitted, ManifestDraft
from dragoman.model.jobs import SPEEDS
from dragoman.model.walks import Walk
from dragoman.store.acts import admitting
from dragoman.store.database import Database

T = TypeVar("T")

_log = logger(__name__)

_FIELDS = frozenset(
    ("request_id", "project", "pairs", "mode", "publish", "partial", "on_unknown", "provider", "tone")
) | {"budget", "scope", "canary", "canary_limit", "speed"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")  # no database keeps NUL, and no path or name has need of the others
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "mode": MODES,
    "publish": ("auto", "manual", "none"),
    "partial": ("auto", "never"),
    "on_unknown": ("resend", "resend:unlimited", "hold"),
    "speed": SPEEDS,
}
_DEFAULTS: Mapping[str, str] = {"mode": "missing", "publish": "auto", "partial": "auto"}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a workspace's actor."""

    workspace: str
    actor: str


class Admission:
    """Takes requests in. `settings_of` gives a project's frozen settings, `source_of` the source that they
    name; `offload` takes what a great request costs out of the loop. `refuse_provider` raises `CallerError`
    provider_unknown for a name that nobody configured; a far engine alone knows its own.
    """

    def __init__(
        self,
        database: Database,
        settings_of: Callable[[str, str], Mapping[str, Any]],
        source_of: Callable[[Mapping[str, Any]], Source],
        wake: Callable[[], Awaitable[None]],
        pairs_max: int = PAIRS_MAX,
        offload: Offload | None = None,
        refuse_provider: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._database = database
        self._settings_of = settings_of
        self._source_of = source_of
        self._refuse_provider = refuse_provider
        self._wake = wake
        self._pairs_max = pairs_max
        self._offload = offload or InlineOffload()

    async def admit(self, caller: Caller, request: Mapping[str, Any]) -> Admitted:
        """Admit a request as it came over a door: parsed JSON, nothing trusted.

        Raises `CallerError` (`invalid_request`, `unsupported_locale`, `duplicate_pair`, `source_is_target`,
        `unsupported_collection`, `provider_unknown`, `request_too_large`, `request_id_conflict`,
        `forbidden`), each naming the place, and `SourceError` where a source must be asked and does not
        answer in two seconds.
        """
        unknown = sorted(set(request) - _FIELDS)
        if unknown:
            raise CallerError(f"unknown field {unknown[0]!r}", place=unknown[0])
        project = _word(request, "project", 128, "default")
        chosen = _chosen(request)
        settings = await self._settings(caller.workspace, project, chosen)
        request_id = _word(request, "request_id", REQUEST_ID_CHARS_MAX, "")
        if not request_id or not request_id.isascii() or not request_id.isprintable():
            raise CallerError("request_id must be 1 to 255 visible ASCII characters", place="request_id")
        source_locale = str(settings["source_locale"])
        canary_limit = _canary_limit(request)
        _refuse_both(request)
        if "scope" in request:
            with metrics.admitting("load"):
                walk = await self._offload.call(
                    scoping.read, request["scope"], source_locale, self._pairs_max
                )
            return await self.admit_scope(
                caller, project, request_id, walk, settings, chosen=chosen, canary_limit=canary_limit
            )
        with metrics.admitting("load"):
            pairs = await self._offload.call(self._pairs, request.get("pairs"), source_locale)
        return await self.admit_pairs(
            caller, project, request_id, pairs, settings, chosen=chosen, canary_limit=canary_limit
        )

    async def admit_scope(
        self,
        caller: Caller,
        project: str,
        request_id: str,
        walk: Walk,
        settings: Mapping[str, Any],
        chosen: Mapping[str, Any] | None = None,
        canary_limit: int = 0,
        resume_key: str = "",
    ) -> Admitted:
        """Admit a walk through the source under frozen settings, once the source says that it has what is
        named. Rights on its documents are asked for before each is read.
        """
        with metrics.admitting("authorization"):
            walk = scoping.check(walk, await self._ask(lambda: self._source_of(settings).contents()))
        return await self._persist(
            caller,
            project,
            request_id,
            settings,
            chosen,
            resume_key=resume_key,
            canary_limit=canary_limit,
            walk=walk,
        )

    async def read_pairs(
        self, caller: Caller, request: Mapping[str, Any]
    ) -> tuple[str, list[tuple[str, str]], dict[str, Any]]:
        """Project, pairs and settings of a request, checked as for admission; not admitted.

        A scope's pairs are those that its source lists now. Raises `DragomanError` as `admit` does.
        """
        unknown = sorted(set(request) - _FIELDS)
        if unknown:
            raise CallerError(f"unknown field {unknown[0]!r}", place=unknown[0])
        _canary_limit(request)
        project = _word(request, "project", 128, "default")
        settings = await self._settings(caller.workspace, project, _chosen(request))
        source_locale = str(settings["source_locale"])
        _refuse_both(request)
        if "scope" not in request:
            pairs = await self._offload.call(self._pairs, request.get("pairs"), source_locale)
            await self._authorize(caller, pairs, settings)
            return project, pairs, settings
        walk = await self._offload.call(scoping.read, request["scope"], source_locale, self._pairs_max)
        walk = scoping.check(walk, await self._ask(lambda: self._source_of(settings).contents()))
        pairs = await self._ask(
            lambda: scoping.pairs_of(self._source_of(settings), walk, self._pairs_max), STEP_SECONDS
        )
        documents = sorted({document for document, _ in pairs})
        rights = await self._ask(lambda: self._source_of(settings).can_edit(caller.actor, documents))
        return project, [pair for pair in pairs if rights.get(pair[0], False)], settings

    async def admit_pairs(
        self,
        caller: Caller,
        project: str,
        request_id: str,
        pairs: Sequence[tuple[str, str]],
        settings: Mapping[str, Any],
        resume_key: str = "",
        chosen: Mapping[str, Any] | None = None,
        canary_limit: int = 0,
        push_id: str = "",
    ) -> Admitted:
        """Admit canonical pairs under frozen settings; wakes a worker after the commit.

        `chosen` is what the caller said, defaults written out: the request's identity hangs on that and on
        nothing that the server's settings may change between two tries.
        """
        with metrics.admitting("authorization"):
            await self._authorize(caller, pairs, settings)
        return await self._persist(
            caller, project, request_id, settings, chosen, pairs, resume_key, canary_limit, push_id=push_id
        )

    async def _authorize(
        self, caller: Caller, pairs: Sequence[tuple[str, str]], settings: Mapping[str, Any]
    ) -> None:
        """Raise `CallerError` forbidden where the source says that the caller may not edit a document."""
        documents = sorted({document for document, _ in pairs})
        rights = await self._ask(lambda: self._source_of(settings).can_edit(caller.actor, documents))
        foreign = [document for document in documents if not rights.get(document, True)]
        if foreign:
            raise CallerError(f"{caller.actor} may not edit {foreign[0]}", "forbidden", place=foreign[0])

    async def _persist(
        self,
        caller: Caller,
        project: str,
        request_id: str,
        settings: Mapping[str, Any],
        chosen: Mapping[str, Any] | None,
        pairs: Sequence[tuple[str, str]] = (),
        resume_key: str = "",
        canary_limit: int = 0,
        walk: Walk | None = None,
        push_id: str = "",
    ) -> Admitted:
        settings = {**settings, "project": project}
        identity: dict[str, Any] = {
            "project": project,
            "chosen": dict(settings if chosen is None else chosen),
            "canary_limit": canary_limit,
            "pairs": list(pairs),
            "scope": walk.text if walk else "",
        }
        with metrics.admitting("transaction"):
            project_id = await self._database.run(
                admitting.register_project, caller.workspace, project, _project_settings(settings)
            )
            draft = ManifestDraft(
                workspace=caller.workspace,
                project_id=project_id,
                actor=caller.actor,
                request_id=request_id,
                fingerprint=await self._offload.call(canonical.fingerprint, identity),
                settings=canonical.encode(dict(settings)).decode("utf-8"),
                pairs=tuple(pairs),
                resume_key=resume_key,
                push_id=push_id,
                scope=walk.text if walk else "",
                canary_limit=canary_limit,
            )
            admitted = await self._database.run(admitting.admit_manifest, draft)
        try:
            with metrics.admitting("enqueue"):
                await self._wake()
        except DragomanError as error:  # the sweep finds it; status tells how long it has been due
            _log.warning("nobody could be woken", manifest=admitted.manifest_id, code=error.code)
        return admitted

    async def _settings(self, workspace: str, project: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """What is frozen of a request: the project's own and what was chosen, `provider:model` apart."""
        settings = {**self._settings_of(workspace, project), **chosen}
        provider, _, model = str(settings.get("provider", "")).partition(":")
        if self._refuse_provider is not None:
            await self._refuse_provider(provider)
        return {**settings, "provider": provider, "model": model}

    async def _ask(self, question: Callable[[], T], seconds: float = SOURCE_ASK_SECONDS) -> T:
        """What a source answers within the seconds that a request may wait for it."""
        try:
            async with asyncio.timeout(seconds):
                return await self._offload.call(question)
        except TimeoutError as error:
            raise SourceError(f"the source did not answer in {seconds} seconds") from error

    def _pairs(self, asked: object, source_locale: str) -> list[tuple[str, str]]:
        if not isinstance(asked, list):
            raise CallerError("pairs must be a list of {document, locale}", place="pairs")
        if not asked:
            raise CallerError("pairs is empty", "empty_request", place="pairs")
        if len(asked) > self._pairs_max:
            raise CallerError(
                f"{len(asked)} pairs, at most {self._pairs_max}", "request_too_large", place="pairs"
            )
        spelled: dict[str, str] = {}
        pairs = sorted(_pair(item, index, spelled, source_locale) for index, item in enumerate(asked))
        for before, after in pairwise(pairs):
            if before == after:
                raise CallerError(
                    f"{before[0]} to {before[1]} is asked for twice", "duplicate_pair", place="pairs"
                )
        return pairs


def _project_settings(settings: Mapping[str, Any]) -> str:
    kept = {name: settings[name] for name in ("source_locale",) if name in settings}
    return canonical.encode(kept).decode("utf-8")


def _chosen(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the caller chose, with the contract's own defaults written out."""
    chosen: dict[str, Any] = dict(_DEFAULTS)
    if budgets.read(request.get("budget"), "budget") != budgets.UNBOUNDED:
        chosen["budget"] = request["budget"]
    for name, choices in _CHOICES.items():
        if name in request:
            if request[name] not in choices:
                raise CallerError(f"{name} must be one of {', '.join(choices)}", place=name)
            chosen[name] = cast(str, request[name])
    return chosen | {name: _word(request, name, 255, "") for name in ("provider", "tone") if name in request}


def _refuse_both(request: Mapping[str, Any]) -> None:
    if ("pairs" in request) == ("scope" in request):
        place = "scope" if "scope" in request else "pairs"
        raise CallerError("name either pairs or a scope", place=place)


def _canary_limit(request: Mapping[str, Any]) -> int:
    """How many a canary keeps, 0 where none is asked for; the default where only `canary` asks for one."""
    canary, asked = request.get("canary"), request.get("canary_limit")
    if canary is not None and not isinstance(canary, bool):
        raise CallerError("canary must be true or false", place="canary")
    if asked is None:
        return CANARY_LIMIT if canary else 0
    if not isinstance(asked, int) or isinstance(asked, bool) or not 0 <= asked <= CANARY_LIMIT_MAX:
        raise CallerError(
            f"canary_limit must be a whole number from 0 to {CANARY_LIMIT_MAX}", place="canary_limit"
        )
    if canary is not None and canary is not (asked > 0):
        raise CallerError("canary and canary_limit contradict each other", place="canary_limit")
    return asked


def _word(request: Mapping[str, Any], name: str, chars_max: int, default: str) -> str:
    value = request.get(name, default)
    if not isinstance(value, str) or len(value) > chars_max or _CONTROL.search(value):
        raise CallerError(
            f"{name} must be text of at most {chars_max} characters, none of them a control character",
            place=name,
        )
    return value


def _pair(item: object, index: int, spelled: dict[str, str], source_locale: str) -> tuple[str, str]:
    place = f"pairs[{index}]"
    if not isinstance(item, dict) or set(item) != {"document", "locale"}:
        raise CallerError(f"{place} must be an object with document and locale", place=place)
    document, locale = item["document"], item["locale"]
    if (
        not isinstance(document, str)
        or not 0 < len(document) <= DOCUMENT_REF_CHARS_MAX
        or _CONTROL.search(document)
    ):
        raise CallerError(
            f"{place}.document must be text of 1 to {DOCUMENT_REF_CHARS_MAX} characters, "
            "none of them a control character",
            place=place,
        )
    if not isinstance(locale, str):
        raise CallerError(f"{place}.locale must be text", place=place)
    if locale not in spelled:
        spelled[locale] = _target(locale, place, source_locale)
    return document, spelled[locale]


def _target(locale: str, place: str, source_locale: str) -> str:
    try:
        target = locales.canonical(locale)
    except LocaleError as error:
        raise LocaleError(f"{place}.locale: {error.message}", place=place) from error
    if target == source_locale:
        raise CallerError(
            f"{place}.locale is the source locale {source_locale}", "source_is_target", place=place
        )
    return target
