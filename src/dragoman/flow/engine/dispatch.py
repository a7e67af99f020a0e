"""Step 2 of the engine: who works what next, and what nobody was told about.

The database decides; a message of the queue only wakes. A message is kept while its job waits or is worked
here, so that it comes again elsewhere if this process dies, and is acknowledged once the job is settled, or
at once where nobody waits for it here: a duplicate, a job that another process has, one that has ended, and
one that needs what this process does not hold (who holds it looks for itself every second). Sweeping
is a plain paginated loop: lost messages, lanes that sleep beside work, and jobs that nothing holds back any
more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from dragoman.kernel.clock import seconds
from dragoman.kernel.errors import DragomanError, StoreError
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import JOB_LEASE_SECONDS, JOBS_PER_PROCESS, QUEUE_LOST_SECONDS, SWEEP_PAGE
from dragoman.model.contracts import Queue
from dragoman.model.jobs import Claimed
from dragoman.model.scopes import System
from dragoman.store.acts import claiming
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper

_log = logger(__name__)
_Act = Callable[[], Awaitable[None]]


class Dispatch:
    """Hands jobs out for one worker process. `held_max` bounds the messages that it keeps, `holds` names what
    the process has of what jobs need.
    """

    def __init__(
        self,
        database: Database,
        queue: Queue,
        keeper: Keeper,
        system: System,
        lease_seconds: float = JOB_LEASE_SECONDS,
        held_max: int = JOBS_PER_PROCESS,
        holds: Sequence[str] = (),
    ) -> None:
        self._database = database
        self._queue = queue
        self._keeper = keeper
        self._system = system
        self._lease_seconds = lease_seconds
        self._held_max = held_max
        self._holds = holds
        self._held: dict[str, list[tuple[_Act, _Act]]] = {}
        """Job id → ack and nack of each of its messages kept here."""
        self._room = asyncio.Event()
        self._room.set()
        self._worked: set[str] = set()
        self._sent: dict[str, int] = {}
        """When the sweep last sent a message for a job that it found overdue."""

    async def take(self) -> Claimed | None:
        """Lease the next job, round the workspaces that have work; None where nothing is due.

        `Translation.work` holds it, and has to be asked before anything else.
        """
        claimed = await self._keeper.claim(
            claiming.claim_job, self._system, self._keeper.owner, self._lease_seconds, self._holds
        )
        if claimed is not None:
            self._worked.add(claimed.job_id)
        return claimed

    async def settle(self, job_id: str, done: bool) -> None:
        """Acknowledge the messages of a job that was taken here, or give them back where it is not `done`."""
        self._worked.discard(job_id)
        await self._let_go(job_id, done)

    async def listen(self) -> bool:
        """Take one message in; whether its job waits for a worker. Raises `QueueClosed` and `StoreError`."""
        await self._room.wait()
        job_id, ack, nack = await self._queue.dequeue()
        try:
            waiting = await self._waiting([job_id])
        except StoreError:
            await nack()
            raise
        if waiting.get(job_id):
            self._hold(job_id, ack, nack)
            return True
        if job_id not in waiting:
            _log.warning("a message names a job that nobody knows", job=job_id)
        await ack()
        return False

    async def sweep(self) -> int:
        """Find what was lost; how many jobs were brought back."""
        await self._let_go_of_settled()
        woken = await self._database.run(claiming.wake_jobs, self._system, SWEEP_PAGE)
        after = await self._database.run(claiming.wake_lanes, self._system, "", SWEEP_PAGE)
        while after:
            after = await self._database.run(claiming.wake_lanes, self._system, after, SWEEP_PAGE)
        return woken + await self._send_lost()

    async def _send_lost(self) -> int:
        """Send messages for overdue jobs, for each once in as long as makes it overdue: a backlog that
        nobody has time for must not grow in the queue as well.
        """
        lost = await self._database.read(claiming.lost_jobs, self._system, SWEEP_PAGE)
        now = self._database.now()
        recent = now - seconds(QUEUE_LOST_SECONDS)
        self._sent = {job_id: at for job_id in lost if (at := self._sent.get(job_id, 0)) > recent}
        unsent = [job_id for job_id in lost if job_id not in self._sent]
        try:
            await asyncio.gather(*(self._queue.enqueue(job_id) for job_id in unsent))
        except DragomanError as error:
            _log.info("nobody could be woken; the poll finds the work", code=error.code)
        self._sent.update(dict.fromkeys(unsent, now))
        return len(unsent)

    async def _let_go_of_settled(self) -> None:
        """Acknowledge what is kept for jobs that another process has taken or ended meanwhile."""
        kept = [job_id for job_id in self._held if job_id not in self._worked]
        if not kept:
            return
        waiting = await self._waiting(kept)
        for job_id in kept:
            if not waiting.get(job_id) and job_id not in self._worked:
                await self._let_go(job_id, True)

    async def _waiting(self, ids: Sequence[str]) -> Mapping[str, bool]:
        return await self._database.read(claiming.jobs_waiting, self._system, ids, self._holds)

    def _hold(self, job_id: str, ack: _Act, nack: _Act) -> None:
        self._held.setdefault(job_id, []).append((ack, nack))
        if self._count() >= self._held_max:
            self._room.clear()

    async def _let_go(self, job_id: str, done: bool) -> None:
        acts = self._held.pop(job_id, [])
        if self._count() < self._held_max:
            self._room.set()
        await asyncio.gather(*(ack() if done else nack() for ack, nack in acts))

    def _count(self) -> int:
        return sum(map(len, self._held.values()))
