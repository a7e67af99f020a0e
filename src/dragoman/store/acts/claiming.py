"""How engine work is taken: fair between workspaces, in each what was abandoned first, then the oldest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman.kernel.limits import LANES_PER_CLAIM
from dragoman.model.jobs import Claimed
from dragoman.model.scopes import System
from dragoman.store.rows import jobs, lanes
from dragoman.store.transaction import Row, Tx


def claim_job(
    tx: Tx, _system: System, owner: str, lease_seconds: float, holds: Sequence[str] = ()
) -> Claimed | None:
    """Lease a job of the workspace whose turn it is, and move its turn on; None where nothing is due here.

    `holds` is what this process has of what jobs need: credential references, and the names of the providers
    whose addresses its command line gave.

    A lane without work that is due goes to rest until it has some; one whose work only others can take keeps
    its turn for them.
    """
    ready = lanes.ready(tx, lanes.ENGINE, LANES_PER_CLAIM)
    foreign = False
    for lane in ready:
        claimed = _claim_of(tx, lane, owner, lease_seconds, holds)
        if claimed is not None:
            return claimed
        if jobs.left_to_others(tx, lane.workspace, holds):
            foreign = True
            continue
        lanes.lock(tx, lane)
        lanes.rest(tx, lane, jobs.next_due(tx, lane.workspace))
    if not foreign or len(ready) < LANES_PER_CLAIM:
        return None
    here = ready_here(tx, _system, holds)
    return _claim_of(tx, here[0], owner, lease_seconds, holds) if here else None


def ready_here(tx: Tx, _system: System, holds: Sequence[str]) -> list[Row]:
    """The lane whose turn comes first of those that have work for this process, if any has."""
    return lanes.ready_where(tx, lanes.ENGINE, 1, lambda workspace: jobs.takable(tx, workspace, holds))


def _claim_of(tx: Tx, lane: Row, owner: str, lease_seconds: float, holds: Sequence[str]) -> Claimed | None:
    job = jobs.claim(tx, lane.workspace, owner, lease_seconds, holds)
    if job is None:
        return None
    lanes.serve(tx, lane)
    return Claimed(job.id, job.workspace, job.fence, job.starts)


def weigh_workspaces(tx: Tx, _system: System, weights: Mapping[str, int]) -> None:
    """How many turns a workspace has while the others have one; whoever is not named has one."""
    lanes.weigh(tx, lanes.ENGINE, weights)


def release_job(tx: Tx, job_id: str, fence: int) -> None:
    """Give a job back that a worker which stops cannot finish: due at once, and no start is counted.

    Raises `LeaseLost`.
    """
    job = jobs.hold(tx, job_id, fence)
    jobs.give_back(tx, job, due_at=tx.now)
    lanes.wake(tx, job.workspace, lanes.ENGINE, tx.now)


def lost_jobs(tx: Tx, _system: System, limit: int) -> list[str]:
    """Jobs that have been due for so long that the message which should have woken a worker must be lost, and
    those whose worker vanished.
    """
    return jobs.overdue(tx, limit)


def jobs_waiting(tx: Tx, _system: System, ids: Sequence[str], holds: Sequence[str] = ()) -> dict[str, bool]:
    """Whether each of these jobs waits now for a worker that holds these; those that nobody knows are left
    out.
    """
    return jobs.waiting(tx, ids, holds)


def wake_lanes(tx: Tx, _system: System, after: str, limit: int) -> str:
    """Wake lanes that sleep beside work that is due; gives the last workspace looked at, '' at the end."""
    page = lanes.sleeping(tx, lanes.ENGINE, after, limit)
    for lane in page:
        due_at = jobs.next_due(tx, lane.workspace)
        if due_at is not None and due_at <= tx.now:
            lanes.wake(tx, lane.workspace, lanes.ENGINE, due_at)
    return str(page[-1].workspace) if len(page) == limit else ""


def wake_budget_waiters(tx: Tx, _system: System, workspace: str, limit: int) -> int:
    """Let those jobs of a workspace try again now that wait longest for money; how many."""
    waiting = jobs.budget_waiters(tx, workspace, limit)
    for job_id in waiting:
        jobs.wake_one(tx, job_id)
    if waiting:
        lanes.wake(tx, workspace, lanes.ENGINE, tx.now)
    return len(waiting)


def wake_jobs(tx: Tx, _system: System, limit: int) -> int:
    """Let queued jobs come due that nothing holds back any more; how many."""
    silent = jobs.hushed(tx, limit)
    for row in silent:
        jobs.wake_one(tx, row.id)
    for workspace in sorted({row.workspace for row in silent}):
        lanes.wake(tx, workspace, lanes.ENGINE, tx.now)
    return len(silent)
