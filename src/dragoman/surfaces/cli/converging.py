"""`dragoman up`: one run of convergence, started or joined, worked here, and told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.content import locales
from dragoman.kernel.clock import MICROSECONDS
from dragoman.kernel.errors import LocaleError
from dragoman.kernel.limits import CALLS_PER_PROCESS_TRANSLATE
from dragoman.model.runs import RunDraft
from dragoman.surfaces.cli.connecting import Connected
from dragoman.surfaces.cli.lock_file import LockFile, hold_to
from dragoman.surfaces.cli.ordering import default_provider
from dragoman.surfaces.cli.report import COULD_NOT_RUN, FAILED, WAITING
from dragoman.surfaces.cli.telling import terminal
from dragoman.wiring.converging import read_order
from dragoman.wiring.rounds import opened
from dragoman.wiring.services import Services, find_sources
from dragoman.wiring.settings import Settings

_OWNER = "local"
_LOOK_SECONDS = 0.1
_PATIENCE_SECONDS = 5.0
_NAMED_TIME_SECONDS = 60
_NOTHING: dict[str, Any] = {
    "state": "complete",
    "passes": [],
    "fields": {"done": 0, "via_memory": 0, "via_ai": 0},
}
_CODES = {"complete": 0, "stalled": FAILED, "canceled": FAILED, "failed": COULD_NOT_RUN}


@dataclass(frozen=True, slots=True)
class Asked:
    """What stood on the command line."""

    locales: Sequence[str]
    provider: str
    push_id: str
    server: str
    frozen: bool
    as_json: bool


async def up(settings: Settings, asked: Asked) -> int:
    """Converge the project; gives the exit code: 0 complete, 3 stalled, 4 waiting, 1 could not run."""
    alone = {"calls_per_process": CALLS_PER_PROCESS_TRANSLATE, "queue": "memory", "queue_backend": ""}
    settings = settings.model_copy(update=alone)
    draft = RunDraft(
        workspace=settings.workspace,
        project=settings.project or settings.root.name or "default",
        actor=_OWNER,
        trigger="up",
        push_id=asked.push_id,
        asked={
            "executor": "files:v1",
            "provider": asked.provider or default_provider(settings),
            "locales": sorted({_locale(locale) for locale in asked.locales or settings.locales}),
        },
    )
    order = read_order(settings, find_sources, draft.workspace, draft.project, draft.asked)
    if asked.frozen:
        return hold_to(settings, draft.project, order.pairs, order.frozen, asked.as_json)
    if server := asked.server or settings.server:
        connected = Connected(settings, server, draft.project, draft.asked["locales"])
        report = await connected.converge(asked.push_id)
        return _tell(report, asked.as_json, waits=report.get("ended_at", "") is None)
    lock = LockFile(settings, order.frozen)
    async with opened(settings) as services:
        await lock.fill(services, draft.project, order.pairs)
        started = await services.convergence.start(draft)
        report, waits = _NOTHING, False
        if started is not None:
            report, waits = await _follow(services, started.run_id)
        await lock.write(services, draft.project, order.pairs)
    return _tell(report, asked.as_json, waits)


def _locale(tag: str) -> str:
    try:
        return locales.canonical(tag)
    except LocaleError as error:
        raise LocaleError(error.message, place="--to") from None


async def _follow(services: Services, run_id: str) -> tuple[dict[str, Any], bool]:
    """Watch until the run has ended, or waits for a person, money or a time that is far."""
    while True:
        report = await services.convergence.report(services.settings.workspace, run_id)
        if report["ended_at"] is not None:
            return report, False
        trouble = services.workers.stuck(_PATIENCE_SECONDS)
        if trouble is not None and services.workers.idle:
            raise trouble
        if report["state"] == "passing" and await _waits(services, report):
            return report, True
        await asyncio.sleep(_LOOK_SECONDS)


async def _waits(services: Services, report: dict[str, Any]) -> bool:
    if not services.workers.settled:
        return False
    manifest_id, workspace = report["passes"][-1]["manifest_id"], services.settings.workspace
    status = await services.views.status(workspace, manifest_id)
    if status["completed_at"] is not None:
        return False
    due_at = await services.views.next_due(workspace, manifest_id)
    later = due_at is None or due_at > services.database.now() + _NAMED_TIME_SECONDS * MICROSECONDS
    return later and services.workers.settled


def _tell(report: dict[str, Any], as_json: bool, waits: bool) -> int:
    if as_json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        _say(report, waits)
    return WAITING if waits else _CODES[report["state"]]


def _say(report: dict[str, Any], waits: bool) -> None:
    for path in report.get("outputs", ()):
        terminal().print(f"  wrote {path}", soft_wrap=True)
    for path in report.get("left", ()):
        terminal(stderr=True).print(f"left {path}: it was written here meanwhile", soft_wrap=True)
    if not report["passes"]:
        terminal().print("nothing to do: everything is translated")
        return
    fields, cost = report["fields"], report["cost"]
    state = "waiting" if waits else report["state"]
    terminal().print(
        f"{state} after {len(report['passes'])} passes: {fields['done']} fields, "
        f"content memory {fields['via_memory']} · AI {fields['via_ai']}; "
        f"{cost['paid_tokens']} tokens, ${cost['paid_usd']:.4f}",
        soft_wrap=True,
    )
    last = report["passes"][-1]
    if last.get("failed"):
        terminal(stderr=True).print(f"why {last['failed']} failed: dragoman status {last['manifest_id']}")
