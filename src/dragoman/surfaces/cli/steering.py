"""Commands on a manifest that exists: status, retry, cancel, results, revert."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence

from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import STREAM_LOOK_SECONDS
from dragoman.model.scopes import Workspace
from dragoman.store.acts import compensating
from dragoman.surfaces.cli.following import follow, is_over, report
from dragoman.surfaces.cli.telling import tell, terminal
from dragoman.wiring.rounds import opened, start
from dragoman.wiring.services import Services
from dragoman.wiring.settings import Settings

_OWNER = "local"


async def status(settings: Settings, manifest_id: str, as_json: bool) -> int:
    """What a manifest came to so far; works nothing."""
    async with opened(settings, roles=()) as services:
        return tell(await report(services, manifest_id), as_json)


async def retry(
    settings: Settings, manifest_id: str, intents: Sequence[str] | None, base_url: str, as_json: bool
) -> int:
    """Open new generations of what failed, and work them here."""
    async with opened(settings, roles=(), base_url=base_url) as services:
        await services.steering.retry(settings.workspace, manifest_id, _OWNER, intents or None)
        return await _finish(services, manifest_id, as_json)


async def cancel(settings: Settings, manifest_id: str, as_json: bool) -> int:
    """End what is open, and say how it ended."""
    async with opened(settings, roles=()) as services:
        await services.steering.cancel(settings.workspace, manifest_id, _OWNER)
        return await _finish(services, manifest_id, as_json)


async def give_up(settings: Settings, manifest_id: str, as_json: bool) -> int:
    """End what waits for jobs that the engine has lost, and say how it stands; works nothing."""
    async with opened(settings, roles=()) as services:
        await _give_up_all(services, manifest_id)
        return tell(await report(services, manifest_id), as_json)


async def _give_up_all(services: Services, manifest_id: str) -> None:
    workspace = services.settings.workspace
    await services.losses.give_up(workspace, manifest_id, _OWNER, is_admin=True)
    with contextlib.suppress(CallerError):  # nothing more is lost
        while True:
            await services.losses.give_up(workspace, manifest_id, _OWNER, is_admin=True)


async def pause(settings: Settings, manifest_id: str, as_json: bool) -> int:
    """Let a manifest rest, and say how it stands; works nothing."""
    async with opened(settings, roles=()) as services:
        await services.steering.pause(settings.workspace, manifest_id, _OWNER)
        return tell(await report(services, manifest_id), as_json)


async def resume(settings: Settings, manifest_id: str, base_url: str, as_json: bool) -> int:
    """Let a paused manifest go on, and work it here."""
    async with opened(settings, roles=(), base_url=base_url) as services:
        await services.steering.resume(settings.workspace, manifest_id, _OWNER)
        return await _finish(services, manifest_id, as_json)


async def watch(settings: Settings, manifest_id: str, as_json: bool) -> int:
    """Show a manifest's status as it changes, until it ends; works nothing."""
    async with opened(settings, roles=()) as services:
        if as_json:
            await _print_changes(services, manifest_id)
        else:
            console = terminal(stderr=True)
            await follow(services, manifest_id, console, live=console.is_terminal, stay=True)
        return tell(await report(services, manifest_id), as_json)


async def _print_changes(services: Services, manifest_id: str) -> None:
    """One line of JSON for each status that differs from the one before."""
    before: dict[str, object] = {}
    while True:
        status = await services.views.status(services.settings.workspace, manifest_id)
        if status != before:
            print(json.dumps(status, ensure_ascii=False), flush=True)
            before = status
        if is_over(status):
            return
        await asyncio.sleep(STREAM_LOOK_SECONDS)


async def promote(settings: Settings, manifest_id: str, base_url: str, as_json: bool) -> int:
    """Admit what a canary left out, and work it here."""
    async with opened(settings, roles=(), base_url=base_url) as services:
        admitted = await services.promotion.promote(settings.workspace, manifest_id, _OWNER, may_force=True)
        return await _finish(services, admitted.manifest_id, as_json)


async def revert(settings: Settings, manifest_id: str, as_json: bool) -> int:
    """Take files back, and say what was left alone."""
    async with opened(settings, roles=()) as services:
        scope = Workspace(settings.workspace)
        await services.database.run(compensating.revert, scope, manifest_id, _OWNER)
        return await _finish(services, manifest_id, as_json)


async def results(settings: Settings, manifest_id: str) -> int:
    """All texts, one object a document and locale."""
    async with opened(settings, roles=()) as services:
        after: int | None = -1
        while after is not None:
            page = await services.views.results(settings.workspace, manifest_id, after)
            for item in page["items"]:
                print(json.dumps(item, ensure_ascii=False))
            after = page["next"]
    return 0


async def _finish(services: Services, manifest_id: str, as_json: bool) -> int:
    """Work what was asked for, now that it stands in the database."""
    await start(services)
    console = terminal(stderr=True)
    await follow(services, manifest_id, console, live=console.is_terminal and not as_json, stay=False)
    return tell(await report(services, manifest_id), as_json)
