"""`dragoman translate`: find sources, admit one manifest (or resume it), work it here, tell what came of
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from dragoman.content import locales
from dragoman.kernel import canonical
from dragoman.kernel.errors import CallerError, LocaleError, OutsideError
from dragoman.kernel.limits import CALLS_PER_PROCESS_TRANSLATE, CONTROL_SECONDS
from dragoman.model import budgets
from dragoman.model.intents import MODES, Admitted
from dragoman.model.jobs import SPEEDS
from dragoman.surfaces.cli.following import follow, report
from dragoman.surfaces.cli.lock_file import LockFile, hold_to
from dragoman.surfaces.cli.report import INTERRUPTED
from dragoman.surfaces.cli.telling import tell, terminal
from dragoman.surfaces.cli.typed import Asked
from dragoman.wiring import catalogue
from dragoman.wiring.rounds import opened
from dragoman.wiring.services import Services, find_sources
from dragoman.wiring.settings import Settings

_OWNER = "local"
_LEFT_OUT_SHOWN = 3
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

    @property
    def resume_key(self) -> str:
        """The same order again is the same work: what does not change the result is left out."""
        kept = {name: value for name, value in self.frozen.items() if name not in _BESIDE_THE_RESULT}
        canary = {"canary_limit": self.canary_limit} if self.canary_limit else {}
        return canonical.fingerprint(
            {"project": self.project, "pairs": [list(pair) for pair in self.pairs], **kept, **canary}
        )


async def translate(settings: Settings, asked: Asked) -> int:
    """Translate; gives the exit code."""
    alone = {"calls_per_process": CALLS_PER_PROCESS_TRANSLATE, "queue": "memory", "queue_backend": ""}
    settings = settings.model_copy(update=alone)  # it wakes its own loops; other processes find work by poll
    order = plan(settings, asked)
    if asked.frozen:
        return hold_to(settings, order.project, order.pairs, order.frozen, asked.as_json)
    lock = LockFile(settings)
    async with opened(settings, base_url=asked.base_url) as services:
        await lock.fill(services, order.project, order.pairs, order.frozen)
        admitted = await services.admission.admit_pairs(
            services.caller(_OWNER),
            order.project,
            services.chance.new_id(),
            order.pairs,
            order.frozen,
            order.resume_key,
            canary_limit=order.canary_limit,
        )
        await _apply_policy(services, admitted, asked)
        code = await _work(services, admitted, asked, order.left_out)
        if not asked.dry_run and code != INTERRUPTED:
            await lock.write(services, order.project, order.pairs, order.frozen)
        return code


def plan(settings: Settings, asked: Asked) -> Order:
    """Check a command line against the working tree. Raises `CallerError` naming what is wrong."""
    _refuse_choice("--mode", asked.mode, MODES)
    _refuse_choice("--on-unknown", asked.on_unknown, ("", "resend", "resend:unlimited", "hold"))
    _refuse_choice("--speed", asked.speed, SPEEDS)
    source_locale = _locale(asked.source_locale or settings.source_locale, "--from")
    targets = sorted({_locale(locale, "--to") for locale in asked.locales or settings.locales})
    paths = [Path(path) for path in asked.paths] or [settings.root / path for path in settings.sources]
    if not paths:
        raise CallerError(
            "no file or folder is named, and dragoman.toml has no `sources`", "empty_request", "PATH"
        )
    if not targets:
        raise CallerError("no target locale is named", "empty_request", place="--to")
    if source_locale in targets:
        raise CallerError(f"{source_locale} is the source locale", "source_is_target", place="--to")
    provider, _, model = (asked.provider or default_provider(settings)).partition(":")
    if not (settings.engine.url or asked.frozen):  # a far engine knows its own
        _refuse_provider(settings, provider, asked.base_url)
        _refuse_speed(settings, provider, asked)
    found = find_sources(settings, paths, asked.out, source_locale, targets)
    frozen = {
        "source_locale": source_locale,
        "mode": asked.mode,
        "provider": provider,
        "model": model,
        "root": str(settings.root.absolute()),
        "templates": dict(found.templates),
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
    pairs = tuple(sorted((document, locale) for document in found.templates for locale in targets))
    project = settings.project or settings.root.name or "default"
    return Order(project, pairs, frozen, found.skipped, asked.canary)


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
    known = catalogue.provider_settings(settings, base_url)
    if name not in known:
        raise CallerError(
            f"no provider {name!r}; known are {', '.join(sorted(known))}",
            "provider_unknown",
            place="--provider",
        )
    if catalogue.credentials_missing(known[name]):
        raise CallerError(
            f"provider {name} needs its key in {catalogue.key_place(known[name])}",
            "provider_credentials_missing",
            place="--provider",
        )
    catalogue.factories(settings, base_url)[name]("")


def _refuse_speed(settings: Settings, name: str, asked: Asked) -> None:
    if asked.speed == "batch" and name not in catalogue.batchers(settings, asked.base_url):
        raise CallerError(f"provider {name} sends no batches", place="--speed")


async def _apply_policy(services: Services, admitted: Admitted, asked: Asked) -> None:
    """A policy given on a rerun holds for calls that the first run left unknown, too; so does a budget."""
    if admitted.how == "resumed" and (asked.on_unknown or asked.budget):
        control: dict[str, Any] = {"revision": services.database.now()}
        if asked.on_unknown:
            control["on_unknown"] = asked.on_unknown
        if asked.budget:
            control["budget"] = budgets.spelled(asked.budget, "--budget")
        scope, body = services.settings.workspace, canonical.encode(control)
        answer = await services.engine.control(scope, admitted.manifest_id, body, CONTROL_SECONDS)
        if answer.outcome != "SUCCEEDED":
            raise OutsideError(f"the engine was not told what was decided: {answer.message}")


async def _work(services: Services, admitted: Admitted, asked: Asked, left_out: Mapping[str, str]) -> int:
    console = terminal(stderr=True)
    live = console.is_terminal and not asked.as_json
    if not asked.as_json:
        await _name_work(services, admitted, console)
    with _interruptible() as interrupted:
        following = asyncio.create_task(follow(services, admitted.manifest_id, console, live, asked.stay))
        waiting = asyncio.create_task(interrupted.wait())
        await asyncio.wait({following, waiting}, return_when=asyncio.FIRST_COMPLETED)
        for task in (following, waiting):
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        if interrupted.is_set():
            await services.workers.stop()
    if not interrupted.is_set():
        following.result()
    told = await report(services, admitted.manifest_id, explain=asked.explain)
    told.again, told.flags = asked.again, asked.flags
    told.notes += _left_out(left_out)
    if asked.canary:
        told.notes.append(f"a canary: go on by `dragoman promote {admitted.manifest_id}{asked.flags}`")
    told.interrupted = interrupted.is_set()
    return tell(told, asked.as_json)


def _left_out(documents: Mapping[str, str]) -> list[str]:
    notes = [f"left out {document}: {why}" for document, why in sorted(documents.items())]
    more = len(notes) - _LEFT_OUT_SHOWN
    return notes[:_LEFT_OUT_SHOWN] + ([f"… and {more} more are left out"] if more > 0 else [])


async def _name_work(services: Services, admitted: Admitted, console: Console) -> None:
    """Say what this process also brings to its end: it works whatever is due in its database."""
    active = await services.views.active(services.settings.workspace)
    older = [manifest_id for manifest_id in active if manifest_id != admitted.manifest_id]
    if admitted.how == "resumed":
        console.print(f"going on with manifest {admitted.manifest_id}")
    for manifest_id in older:
        console.print(f"also going on with manifest {manifest_id}", markup=False, highlight=False)


@contextlib.contextmanager
def _interruptible() -> Iterator[asyncio.Event]:
    """The first Ctrl-C ends the run in order, a second one ends the process at once."""
    loop = asyncio.get_running_loop()
    interrupted = asyncio.Event()

    def interrupt() -> None:
        if interrupted.is_set():
            sys.stderr.write("interrupted twice: stopping at once; run the same command again to go on\n")
            os._exit(INTERRUPTED)  # nothing to tidy up: every row is as after a crash
        interrupted.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        yield interrupted
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
