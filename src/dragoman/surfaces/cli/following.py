"""Following a manifest that this process works: until it ends, or until nothing can move by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dragoman.kernel.clock import MICROSECONDS
from dragoman.kernel.errors import DragomanError
from dragoman.surfaces.cli.report import Report
from dragoman.wiring.services import Services

_LOOK_SECONDS = 0.1
_NAMED_TIME_SECONDS = 60
_PATIENCE_SECONDS = 5.0
_PAGE = 100


async def follow(services: Services, manifest_id: str, console: Console, live: bool, stay: bool) -> bool:
    """Watch until the manifest has ended and is published; False when it waits and we do not `stay`.

    Raises what keeps the work from going on, once it has done so for a while: nobody waits for a disk that
    is full.
    """
    with _bar(console, live) as bar:
        task = bar.add_task("translating", total=None, note="")
        while True:
            status = await services.views.status(services.settings.workspace, manifest_id)
            _move(bar, task, status)
            if is_over(status):
                return True
            if trouble := _trouble(services):
                raise trouble
            if not stay and await _waits(services, manifest_id):
                return False
            await asyncio.sleep(_LOOK_SECONDS)


def _trouble(services: Services) -> DragomanError | None:
    """What makes waiting senseless: a database file that cannot be written, or a step that failed for good.

    A server that fails is there again soon; a full disk is not. While other steps move, one that failed is
    let be.
    """
    workers = services.workers
    if services.settings.embedded and workers.trouble is not None:
        return workers.trouble
    return workers.stuck(_PATIENCE_SECONDS) if workers.idle else None


def is_over(status: dict[str, Any]) -> bool:
    """Whether a status is the last one, unless somebody asks for more: ended, and published."""
    return status["completed_at"] is not None and status["publication"]["state"] not in ("queued", "running")


async def _waits(services: Services, manifest_id: str) -> bool:
    """Whether nothing can move without a person, money, or a named time more than a minute away."""
    if not services.workers.settled:
        return False
    due_at = await services.views.next_due(services.settings.workspace, manifest_id)
    later = due_at is None or due_at > services.database.now() + _NAMED_TIME_SECONDS * MICROSECONDS
    return later and services.workers.settled


def _bar(console: Console, live: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not live,
        transient=True,
    )


def _move(bar: Progress, task: Any, status: dict[str, Any]) -> None:
    counts, cost = status["counts"], status["cost"]
    ended = sum(counts[name] for name in ("completed", "failed", "protected", "skipped"))
    note = f"{cost['memory_fields']} memory · {cost['provider_fields']} provider · ${cost['paid_usd']:.4f}"
    if counts["failed"]:
        note += f" · {counts['failed']} failed"
    bar.update(task, completed=ended, total=counts["total"], note=note, description=status["status"])


async def report(services: Services, manifest_id: str, explain: bool = False) -> Report:
    """What a manifest came to, whole: every failure, everything that waits, every file written."""
    workspace = services.settings.workspace
    status = await services.views.status(workspace, manifest_id)
    views = services.views
    failures = await _all(lambda after: views.failures(workspace, manifest_id, after, _PAGE))
    waiting = await _all(lambda after: views.waiting(workspace, manifest_id, after, _PAGE))
    unpublished = await views.unpublished(workspace, manifest_id)
    targets = await views.written(workspace, manifest_id)
    changed = [item for item in targets if item["receipt"].get("would") != "nothing"]
    return Report(
        manifest_id=manifest_id,
        status=status["status"],
        counts=status["counts"],
        cost=status["cost"],
        outputs=sorted(item["target"] for item in changed if item["applied"]),
        planned=sorted(item["target"] for item in changed if not item["applied"]),
        failures=[*failures, *(_unpublished(problem) for problem in unpublished)],
        waiting=waiting,
        lost={item["target"]: item["receipt"]["lost"] for item in changed if item["receipt"].get("lost")},
        edits={item["target"]: _explained(item) for item in changed} if explain else None,
    )


def _explained(item: dict[str, Any]) -> dict[str, Any]:
    """What was changed in a file, and in which one: its source, or the target as it stood."""
    return {"document": item["document"], "locale": item["locale"], **item["receipt"]}


def _unpublished(problem: dict[str, Any]) -> dict[str, Any]:
    """A translation that is here and not in place, in the words of a failure."""
    target, why = problem.get("target", ""), problem["message"] or problem["remedy"]
    message = why if target in why else f"{target}: {why}"
    return {"retryable": False, "fields": [], **problem, "message": message}


async def _all(page_from: Callable[[int], Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    after: int | None = -1
    while after is not None:
        page = await page_from(after)
        items += page["items"]
        after = page["next"]
    return items
