"""`dragoman jobs`: the engine's jobs, one of them whole, and one in quarantine tried again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from dragoman.kernel.errors import DragomanError
from dragoman.model.scopes import Workspace
from dragoman.store.acts import redriving
from dragoman.wiring.rounds import opened
from dragoman.wiring.settings import Settings

_OPERATOR = "operator"
"""Who acts at the machine's own command line."""


async def show_recent(settings: Settings, push_id: str, as_json: bool) -> int:
    """Print the newest jobs of the workspace, those of a push or all."""
    async with opened(settings, roles=()) as services:
        page = await services.jobs.recent(Workspace(settings.workspace), push_id=push_id)
    if as_json:
        print(json.dumps({"items": page["jobs"]}, ensure_ascii=False))
        return 0
    console = Console()
    for job in page["jobs"]:
        console.print(_line(job), markup=False, highlight=False, soft_wrap=True)
    if not page["jobs"]:
        console.print("nothing")
    return 0


async def show(settings: Settings, job_id: str, as_json: bool) -> int:
    """Print one job as it stands, without its texts."""
    async with opened(settings, roles=()) as services:
        job = dict(await services.jobs.get(Workspace(settings.workspace), job_id))
    job.pop("items", None)
    if as_json:
        print(json.dumps(job, ensure_ascii=False))
        return 0
    console = Console()
    for name, value in job.items():
        if value not in (None, "", {}):
            told = json.dumps(value) if isinstance(value, dict) else value
            console.print(f"{name}: {told}", markup=False, highlight=False, soft_wrap=True)
    return 0


async def redrive(settings: Settings, job_id: str, as_json: bool) -> int:
    """Try a quarantined job again: the same id, new starts. That somebody did is written down."""
    async with opened(settings, roles=()) as services:
        await services.database.run(redriving.redrive_job, Workspace(settings.workspace), job_id, _OPERATOR)
        try:
            await services.queue.enqueue(job_id)
            woken = True
        except DragomanError:  # the sweep finds it
            woken = False
    told = {"id": job_id, "status": "queued", "woken": woken}
    print(json.dumps(told) if as_json else f"job {job_id} is queued; a worker takes it")
    return 0


def _line(job: Mapping[str, Any]) -> str:
    waits = f" · waiting_{job['parked_for']}" if job["parked_for"] else ""
    trouble = f" · {job['message'] or job['code']}" if job["code"] else ""
    done = f"{job['done_fields']}/{job['total_fields']} fields"
    return f"{job['job_id']} {job['status']} {job['project']} · {done}{waits}{trouble}"
