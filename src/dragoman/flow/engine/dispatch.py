"""Step 2 of the engine: who works what next, and what nobody was told about.

The database decides; a message of the queue only wakes. Sweeping is a plain paginated loop: lost messages,
lanes that sleep beside work, and jobs that nothing holds back any more.
"""

from __future__ import annotations

from dragoman.kernel.limits import JOB_LEASE_SECONDS, SWEEP_PAGE
from dragoman.model.contracts import Queue
from dragoman.model.jobs import Claimed
from dragoman.model.scopes import System
from dragoman.store.acts import claiming
from dragoman.store.database import Database


class Dispatch:
    """Hands jobs out for one worker process."""

    def __init__(
        self,
        database: Database,
        queue: Queue,
        owner: str,
        system: System,
        lease_seconds: float = JOB_LEASE_SECONDS,
    ) -> None:
        self._database = database
        self._queue = queue
        self._owner = owner
        self._system = system
        self._lease_seconds = lease_seconds

    async def take(self) -> Claimed | None:
        """Lease the next job, round the workspaces that have work; None where nothing is due."""
        return await self._database.run(claiming.claim_job, self._system, self._owner, self._lease_seconds)

    async def sweep(self) -> int:
        """Find what was lost; how many jobs were brought back."""
        woken = await self._database.run(claiming.wake_jobs, self._system, SWEEP_PAGE)
        after = await self._database.run(claiming.wake_lanes, self._system, "", SWEEP_PAGE)
        while after:
            after = await self._database.run(claiming.wake_lanes, self._system, after, SWEEP_PAGE)
        lost = await self._database.read(claiming.lost_jobs, self._system, SWEEP_PAGE)
        for job_id in lost:
            await self._queue.enqueue(job_id)
        return woken + len(lost)
