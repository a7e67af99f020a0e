"""What can be seen of jobs: one, the recent ones, an ended one's results, and the month's use. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.kernel.limits import ITEMS_PAGE, RECENT_JOBS
from dragoman.model.scopes import Workspace
from dragoman.store.acts import job_views
from dragoman.store.database import Database


class Jobs:
    """Answers about the jobs of one workspace at a time; another's are not found."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, scope: Workspace, job_id: str) -> Mapping[str, Any]:
        """One job; an ended one as its event says. Raises `CallerError` not_found."""
        return await self._database.read(job_views.job_view, scope, job_id)

    async def recent(
        self, scope: Workspace, before: str = "", limit: int = RECENT_JOBS, push_id: str = ""
    ) -> Mapping[str, Any]:
        """The newest jobs, `{jobs, next_cursor}`, those of a push or all; `before` is such a cursor."""
        return await self._database.read(
            job_views.recent_jobs, scope, before, min(limit, RECENT_JOBS), push_id
        )

    async def items(
        self, scope: Workspace, job_id: str, cursor: str = "", limit: int = ITEMS_PAGE
    ) -> Mapping[str, Any]:
        """A page of an ended job's results, `{items, next_cursor}`. Raises `CallerError` not_found."""
        return await self._database.read(job_views.job_items, scope, job_id, cursor, min(limit, ITEMS_PAGE))

    async def held(
        self, scope: Workspace, client_job_id: str, limit: int = ITEMS_PAGE
    ) -> list[Mapping[str, Any]]:
        """Calls that are held: `{job_id, call, target_locale, fields, at_risk, since}` each."""
        return list(await self._database.read(job_views.held_calls, scope, client_job_id, limit))

    async def usage(self, scope: Workspace) -> Mapping[str, Any]:
        """The month's quota, what is used and reserved of it, and what remains."""
        return await self._database.read(job_views.ai_usage, scope)
