"""Step after a canary: what it left out is admitted as a second manifest, linked to the first.

What the first translated is up to date or in the memory, so nothing is paid twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dragoman.model.intents import Admitted
from dragoman.model.scopes import Workspace
from dragoman.store.acts import sampling
from dragoman.store.database import Database


class Promotion:
    """Promotes canaries."""

    def __init__(self, database: Database, wake: Callable[[], Awaitable[None]]) -> None:
        self._database = database
        self._wake = wake

    async def promote(
        self, workspace: str, manifest_id: str, actor: str, may_force: bool = False
    ) -> Admitted:
        """The manifest that goes on; the same one again for the same canary, and a worker is woken.

        Raises `CallerError` (`not_found`, `not_owner`, `forbidden`, `nothing_to_promote`).
        """
        admitted = await self._database.run(
            sampling.promote_manifest, Workspace(workspace), manifest_id, actor, may_force
        )
        await self._wake()
        return admitted
