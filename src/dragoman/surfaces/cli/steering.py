"""Commands on a manifest that exists: status, retry, cancel, results, revert."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dragoman.model.scopes import Workspace
from dragoman.store.acts import compensating
from dragoman.surfaces.cli.following import follow, report
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
