"""Rows of `jobs`: the engine's work on one submission, who works on it, and how far it is.

Every write of a holder names its fence. Counts are recounted from the fields, never added to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.clock import seconds
from dragoman.kernel.errors import LeaseLost
from dragoman.kernel.limits import JOB_DEADLINE_SECONDS, QUEUE_LOST_SECONDS
from dragoman.machines.tables import JOB
from dragoman.model.scopes import Scope, Workspace
from dragoman.store import leases
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx

_JOBS, _FIELDS, _OUTBOX = tables.jobs, tables.job_fields, tables.outbox
_CONTROLS, _PAUSES = tables.controls, tables.pauses

_WORKED = JOB.next(JOB.initial, "claim")
"""The state of a job that somebody holds."""

_BY_ID = sa.select(_JOBS).where(_JOBS.c.id == sa.bindparam("job"))
_BY_ID_LOCKED = _BY_ID.with_for_update()
_BY_SUBMISSION = sa.select(_JOBS).where(_JOBS.c.submission_id == sa.bindparam("submission"))
_HELD = _BY_ID_LOCKED.where(_JOBS.c.fence == sa.bindparam("held_fence"), _JOBS.c.state == _WORKED)
_MAY_START = (
    sa.select(
        _JOBS.c.id,
        _JOBS.c.fence,
        _JOBS.c.cancel_asked,
        _CONTROLS.c.paused,
        _CONTROLS.c.canceled,
        _PAUSES.c.until,
    )
    .select_from(
        _JOBS.join(
            _CONTROLS,
            sa.and_(
                _CONTROLS.c.workspace == _JOBS.c.workspace,
                _CONTROLS.c.client_job_id == _JOBS.c.client_job_id,
            ),
        ).outerjoin(_PAUSES, _PAUSES.c.account == sa.bindparam("account_name"))
    )
    .where(_JOBS.c.id.in_(sa.bindparam("jobs", expanding=True)), _JOBS.c.state == _WORKED)
    .order_by(_JOBS.c.id)
    .with_for_update(read=True, of=[_JOBS, _CONTROLS])
)
_COUNTS = (
    sa.select(_FIELDS.c.state, _FIELDS.c.via, sa.func.count().label("number"))
    .where(_FIELDS.c.job_id == sa.bindparam("job"))
    .group_by(_FIELDS.c.state, _FIELDS.c.via)
)
_PROGRESS = (
    sa.update(_JOBS)
    .where(_JOBS.c.id == sa.bindparam("job"))
    .values(
        done_fields=sa.bindparam("done"),
        failed_fields=sa.bindparam("failed"),
        via_memory=sa.bindparam("memory"),
        via_ai=sa.bindparam("ai"),
        starts=0,  # what makes progress is no poison
        updated_at=sa.bindparam("now"),
    )
)
_NEXT_QUEUED = sa.select(sa.func.min(_JOBS.c.next_attempt_at)).where(
    _JOBS.c.workspace == sa.bindparam("ws"), _JOBS.c.state == JOB.initial
)
_NEXT_STALE = sa.select(
    sa.func.min(sa.func.coalesce(_JOBS.c.lease_expires_at, sa.literal_column("0")))
).where(_JOBS.c.workspace == sa.bindparam("ws"), _JOBS.c.state == _WORKED)
_EVENT = (
    sa.select(_OUTBOX.c.payload)
    .where(_OUTBOX.c.job_id == sa.bindparam("job"))
    .order_by(_OUTBOX.c.delivery_sequence.desc())
    .limit(1)
)


def insert(tx: Tx, row: Mapping[str, Any]) -> bool:
    """Write a new job; False where its submission has one already."""
    return tx.insert_new(_JOBS, [row], ("submission_id",)) == 1


def find(tx: Tx, scope: Scope, job_id: str, lock: bool = False) -> Row | None:
    """One job; what belongs to another workspace is not found."""
    row = tx.first(_BY_ID_LOCKED if lock else _BY_ID, {"job": job_id})
    if row is None or (isinstance(scope, Workspace) and row.workspace != scope.id):
        return None
    return row


def of_submission(tx: Tx, submission_id: str) -> Row | None:
    """The job of a submission, whoever owns it."""
    return tx.first(_BY_SUBMISSION, {"submission": submission_id})


def hold(tx: Tx, job_id: str, fence: int) -> Row:
    """Lock a job that this process holds. Raises `LeaseLost` under a stale fence or when it has ended."""
    row = tx.first(_HELD, {"job": job_id, "held_fence": fence})
    if row is None:
        raise LeaseLost(f"job {job_id} is worked by somebody else, or has ended")
    return row


def standing(tx: Tx, job_id: str, fence: int, owner: str) -> Row | None:
    """Lock a job that stands under this owner's name; None where it does so no more."""
    row = tx.first(_HELD, {"job": job_id, "held_fence": fence})
    return row if row is not None and row.lease_owner == owner else None


def permissions(tx: Tx, held: Iterable[tuple[str, int]], account: str) -> dict[str, Row]:
    """What decides whether attempts of jobs, each with its fence, may start: job, control and the account's
    pause, share-locked.

    So no attempt starts after a pause has been acknowledged. Raises `LeaseLost` where one is held no more.
    """
    asked = set(held)
    values = {"jobs": sorted({job_id for job_id, _ in asked}), "account_name": account}
    found = {row.id: row for row in tx.all(_MAY_START, values)}
    for job_id, fence in asked:
        if job_id not in found or found[job_id].fence != fence:
            raise LeaseLost(f"job {job_id} is worked by somebody else, or has ended")
    return found


def recount(tx: Tx, job_id: str) -> None:
    """Write the counts of a (locked) job as its fields stand."""
    counts = {(row.state, row.via): row.number for row in tx.all(_COUNTS, {"job": job_id})}
    done = {via: number for (state, via), number in counts.items() if state == "done"}
    tx.touched(
        _PROGRESS,
        {
            "job": job_id,
            "done": sum(done.values()),
            "failed": sum(number for (state, _), number in counts.items() if state == "failed"),
            "memory": done.get("memory", 0),
            "ai": done.get("ai", 0),
            "now": tx.now,
        },
    )


def claim(tx: Tx, workspace: str, owner: str, lease_seconds: float, holds: Sequence[str] = ()) -> Row | None:
    """Lease one job of a workspace: one whose worker is gone, else the one that has been due longest.

    A job that needs what this process does not hold is left to others, but for one past its time, which
    anybody ends.
    """
    mine = _mine(tx, holds)
    stale = tx.scalar(_NEXT_STALE, {"ws": workspace})
    if stale is not None and stale <= tx.now:
        again = {"starts": _JOBS.c.starts + 1}
        gone = sa.and_(_JOBS.c.state == _WORKED, mine)
        claimed = _claim(tx, workspace, gone, owner, lease_seconds, again)
        if claimed is not None:
            return claimed
    due = sa.and_(_JOBS.c.state == JOB.initial, _JOBS.c.next_attempt_at <= tx.now, mine)
    return _claim(tx, workspace, due, owner, lease_seconds, {"parked_for": ""})


def _mine(tx: Tx, holds: Sequence[str]) -> sa.ColumnElement[bool]:
    return sa.or_(_JOBS.c.needs.in_(["", *holds]), _JOBS.c.deadline_at <= tx.now)


def _claimable(tx: Tx) -> sa.ColumnElement[bool]:
    """Due, or left by a worker that is gone."""
    due = sa.and_(_JOBS.c.state == JOB.initial, _JOBS.c.next_attempt_at <= tx.now)
    return sa.or_(due, sa.and_(_JOBS.c.state == _WORKED, _abandoned(tx)))


def left_to_others(tx: Tx, workspace: str, holds: Sequence[str]) -> bool:
    """Whether a workspace has jobs that only another process can take."""
    theirs = sa.and_(_JOBS.c.workspace == workspace, _claimable(tx), ~_mine(tx, holds))
    return tx.first(sa.select(_JOBS.c.id).where(theirs).limit(1)) is not None


def takable(tx: Tx, workspace: sa.ColumnElement[str], holds: Sequence[str]) -> sa.ColumnElement[bool]:
    """The condition that a workspace has a job which this process can take."""
    return sa.exists().where(_JOBS.c.workspace == workspace, _claimable(tx), _mine(tx, holds))


def unclaimable(tx: Tx, holds: Sequence[str]) -> dict[str, int]:
    """What is needed, beside what is held → how many jobs wait for a process that holds it."""
    theirs = sa.and_(_claimable(tx), ~_mine(tx, holds))
    counted = sa.select(_JOBS.c.needs, sa.func.count().label("number")).where(theirs)
    return {row.needs: row.number for row in tx.all(counted.group_by(_JOBS.c.needs))}


def _claim(
    tx: Tx,
    workspace: str,
    ready: sa.ColumnElement[bool],
    owner: str,
    lease_seconds: float,
    change: Mapping[str, Any],
) -> Row | None:
    claimed = leases.claim(
        tx,
        _JOBS,
        ready=sa.and_(_JOBS.c.workspace == workspace, ready),
        order=[_JOBS.c.next_attempt_at],
        limit=1,
        owner=owner,
        lease_seconds=lease_seconds,
        set_={"state": _WORKED, "updated_at": tx.now, **change},
    )
    return claimed[0] if claimed else None


def next_due(tx: Tx, workspace: str) -> int | None:
    """When this workspace next has work: a job comes due, or a lease runs out. None where it has none."""
    values = {"ws": workspace}
    found = [tx.scalar(_NEXT_QUEUED, values), tx.scalar(_NEXT_STALE, values)]
    return min((int(instant) for instant in found if instant is not None), default=None)


def change(tx: Tx, job_id: str, fence: int, **values: Any) -> None:
    """Set columns of a job that this process holds. Raises `LeaseLost`."""
    guarded = sa.update(_JOBS).where(leases.held(_JOBS, job_id, fence), _JOBS.c.state == _WORKED)
    if not tx.touched(guarded.values(updated_at=tx.now, **values)):
        raise LeaseLost(f"job {job_id} is worked by somebody else, or has ended")


def give_back(tx: Tx, job: Row, due_at: int | None, parked_for: str = "") -> None:
    """End the lease of a (held) job that is not done: it is queued again. Raises `LeaseLost`.

    Only a provider's bad weather uses up the time in which it must succeed.
    """
    in_a_day = tx.now + seconds(JOB_DEADLINE_SECONDS)
    change(
        tx,
        job.id,
        job.fence,
        state=JOB.next(job.state, "park"),
        parked_for=parked_for,
        next_attempt_at=due_at,
        deadline_at=job.deadline_at if parked_for == "provider" else max(job.deadline_at, in_a_day),
        lease_owner=None,
        lease_expires_at=None,
    )


def move(tx: Tx, job_id: str, sources: Sequence[str], **values: Any) -> bool:
    """Set columns of a job that stands in one of `sources`; False where it has moved on."""
    guarded = sa.update(_JOBS).where(_JOBS.c.id == job_id, _JOBS.c.state.in_(sorted(sources)))
    return tx.touched(guarded.values(updated_at=tx.now, **values)) == 1


def of_client(tx: Tx, workspace: str, client_job_id: str, limit: int, after: str = "") -> list[Row]:
    """Open jobs of a client job, in order of id."""
    return tx.all(
        sa.select(_JOBS.c.id, _JOBS.c.state)
        .where(
            _JOBS.c.workspace == workspace,
            _JOBS.c.client_job_id == client_job_id,
            _JOBS.c.state.in_(sorted(JOB.open)),
            _JOBS.c.id > after,
        )
        .order_by(_JOBS.c.id)
        .limit(limit)
    )


def hush(tx: Tx, workspace: str, client_job_id: str) -> None:
    """Let no queued job of a client job come due."""
    tx.touched(_queued(workspace, client_job_id).values(next_attempt_at=None))


def wake(tx: Tx, workspace: str, client_job_id: str, but: str = "unknown") -> int:
    """Let every queued job of a client job come due now, those parked for `but` excepted; how many."""
    mine = _queued(workspace, client_job_id).where(_JOBS.c.parked_for != but)
    return tx.touched(mine.values(**_due_now(tx)))


def wake_one(tx: Tx, job_id: str) -> bool:
    """Let one queued job come due now, whatever it was parked for; False where it is not queued."""
    here = sa.update(_JOBS).where(_JOBS.c.id == job_id, _JOBS.c.state == JOB.initial)
    return tx.touched(here.values(parked_for="", **_due_now(tx))) == 1


def budget_waiters(tx: Tx, workspace: str, limit: int) -> list[str]:
    """Queued jobs that wait for money and are not due, those first that come due first."""
    waiting = sa.select(_JOBS.c.id).where(
        _JOBS.c.workspace == workspace,
        _JOBS.c.state == JOB.initial,
        _JOBS.c.next_attempt_at > tx.now,
        _JOBS.c.parked_for == "budget",
    )
    return [row.id for row in tx.all(waiting.order_by(_JOBS.c.next_attempt_at).limit(limit))]


def ask_cancel(tx: Tx, job_id: str) -> None:
    """Tell the holder of a job to start no further call."""
    tx.touched(sa.update(_JOBS).where(_JOBS.c.id == job_id).values(cancel_asked=True, updated_at=tx.now))


def fields_of_client(tx: Tx, workspace: str, client_job_id: str) -> int:
    """How many fields all jobs of a client job have to translate."""
    total = sa.select(sa.func.sum(_JOBS.c.total_fields)).where(
        _JOBS.c.workspace == workspace, _JOBS.c.client_job_id == client_job_id
    )
    return int(tx.scalar(total) or 0)


def recent(
    tx: Tx, workspace: str, before: tuple[int, str] | None, limit: int, push_id: str = ""
) -> list[Row]:
    """Jobs of a workspace, newest first, older than `before` (created, id); those of a push, or all."""
    page = sa.select(_JOBS).where(_JOBS.c.workspace == workspace)
    if push_id:
        page = page.where(_JOBS.c.push_id == push_id)
    if before:
        created, job_id = before
        page = page.where(
            sa.or_(_JOBS.c.created_at < created, sa.and_(_JOBS.c.created_at == created, _JOBS.c.id < job_id))
        )
    return tx.all(page.order_by(_JOBS.c.created_at.desc(), _JOBS.c.id.desc()).limit(limit))


def frozen_event(tx: Tx, job_id: str) -> bytes | None:
    """The body of the event that a job's end has left in the outbox."""
    body = tx.scalar(_EVENT, {"job": job_id})
    return None if body is None else bytes(body)


def overdue(tx: Tx, limit: int) -> list[str]:
    """Jobs of which nobody seems to know: queued ones that have been due for so long that their message must
    be lost, and those whose worker is gone.
    """
    lost = (
        sa.select(_JOBS.c.id)
        .where(_JOBS.c.state == JOB.initial, _JOBS.c.next_attempt_at <= tx.now - seconds(QUEUE_LOST_SECONDS))
        .order_by(_JOBS.c.next_attempt_at)
        .limit(limit)
    )
    abandoned = sa.select(_JOBS.c.id).where(_JOBS.c.state == _WORKED, _abandoned(tx)).limit(limit)
    return [row.id for row in (*tx.all(lost), *tx.all(abandoned))][:limit]


def waiting(tx: Tx, ids: Sequence[str], holds: Sequence[str]) -> dict[str, bool]:
    """Of the jobs that there are: whether each waits now for a worker that holds these."""
    mine = sa.and_(_claimable(tx), _mine(tx, holds))
    standing = sa.select(_JOBS.c.id, sa.case((mine, 1), else_=0).label("due")).where(_JOBS.c.id.in_(ids))
    return {row.id: bool(row.due) for row in tx.all(standing)}


def _abandoned(tx: Tx) -> sa.ColumnElement[bool]:
    return sa.or_(_JOBS.c.lease_expires_at.is_(None), _JOBS.c.lease_expires_at <= tx.now)


def hushed(tx: Tx, limit: int) -> list[Row]:
    """Queued jobs without a due time that no held call explains, and what their control says."""
    silent = (
        sa.select(_JOBS.c.id, _JOBS.c.workspace, _CONTROLS.c.paused, _CONTROLS.c.canceled)
        .join(
            _CONTROLS,
            sa.and_(
                _CONTROLS.c.workspace == _JOBS.c.workspace,
                _CONTROLS.c.client_job_id == _JOBS.c.client_job_id,
            ),
        )
        .where(
            _JOBS.c.state == JOB.initial,
            _JOBS.c.next_attempt_at.is_(None),
            _JOBS.c.parked_for != "unknown",
            sa.or_(
                _CONTROLS.c.paused == sa.literal_column("0"), _CONTROLS.c.canceled == sa.literal_column("1")
            ),
        )
        .limit(limit)
    )
    return tx.all(silent)


def _due_now(tx: Tx) -> dict[str, Any]:
    """A job that was held back has its whole time before it; one of batches has had more from the start."""
    in_a_day = tx.now + seconds(JOB_DEADLINE_SECONDS)
    return {
        "next_attempt_at": tx.now,
        "deadline_at": sa.case((_JOBS.c.deadline_at > in_a_day, _JOBS.c.deadline_at), else_=in_a_day),
        "updated_at": tx.now,
    }


def _queued(workspace: str, client_job_id: str) -> sa.Update:
    return sa.update(_JOBS).where(
        _JOBS.c.workspace == workspace, _JOBS.c.client_job_id == client_job_id, _JOBS.c.state == JOB.initial
    )
