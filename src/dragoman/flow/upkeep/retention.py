"""What has had its time goes: manifests a month after their end, source texts once delivered, answers once
used.

Every worker walks slowly over everything, a page a step, by cursors that stand in the database: several
workers share one walk, and a crash costs a page looked at twice. It removes nothing that is open, failed or
unknown; the transactions prove that, each for itself. What it finds no time for waits for the next round.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dragoman.kernel.clock import Clock
from dragoman.kernel.limits import RETENTION_DAYS, RETENTION_MANIFESTS_PER_RUN, STEP_SECONDS
from dragoman.model.scopes import System
from dragoman.store.acts import purging, retiring
from dragoman.store.database import Database


class Retention:
    """Walks over what may go; `days` is how long a manifest and a job's results are kept after their end."""

    def __init__(self, database: Database, scope: System, clock: Clock, days: int = RETENTION_DAYS) -> None:
        self._database = database
        self._scope = scope
        self._clock = clock
        self._days = days

    async def step(self) -> int:
        """Look at one page of each kind and remove what may go; how many walks have not come round."""
        rounds: tuple[Callable[[], Awaitable[bool]], ...] = (
            self._manifests,
            self._jobs,
            self._answers,
            self._receipts,
        )
        return sum([await one() for one in rounds])

    async def _manifests(self) -> bool:
        page = await self._database.read(
            retiring.ended_page, self._scope, self._days, RETENTION_MANIFESTS_PER_RUN
        )
        until = self._clock.monotonic() + STEP_SECONDS
        for manifest_id in page.manifest_ids:
            if self._clock.monotonic() >= until:
                return True  # the walk stays where it is: the next step looks at this page again
            if await self._database.run(retiring.prove_ended, self._scope, manifest_id, self._days):
                while await self._database.run(retiring.remove_part, self._scope, manifest_id):
                    pass
        if page.next_after != page.after:
            await self._database.run(retiring.move_on, self._scope, page.next_after)
        return bool(page.next_after)

    async def _jobs(self) -> bool:
        page = await self._database.read(purging.jobs_page, self._scope, self._days)
        for job_id in page.ids:
            await self._database.run(purging.purge_job, self._scope, job_id, self._days)
        return await self._move_on("jobs", page)

    async def _answers(self) -> bool:
        page = await self._database.read(purging.answers_page, self._scope)
        if page.ids:
            await self._database.run(purging.purge_answers, self._scope, page.ids)
        return await self._move_on("answers", page)

    async def _receipts(self) -> bool:
        page = await self._database.read(purging.receipts_page, self._scope, self._days)
        if page.ids:
            await self._database.run(purging.purge_receipts, self._scope, page.ids)
        return await self._move_on("receipts", page)

    async def _move_on(self, kind: str, page: purging.Walk) -> bool:
        if page.next_after != page.after:
            await self._database.run(purging.move_on, self._scope, kind, page.next_after)
        return bool(page.next_after)
