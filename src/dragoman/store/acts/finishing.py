"""How a job ends, or stops for a while: each a transaction that only one worker can win.

Whatever ends a job ends it here: fields, items, counts and exactly one event in the outbox, together.
"""

from __future__ import annotations

from dragoman.kernel.clock import iso
from dragoman.kernel.errors import CallerError, sanitize
from dragoman.kernel.limits import OUTBOX_INLINE_BYTES_MAX
from dragoman.machines.tables import ATTEMPT, JOB
from dragoman.model.jobs import QUARANTINED, Status
from dragoman.model.scopes import Workspace
from dragoman.store import payloads
from dragoman.store.rows import budgets, calls, effects, history, job_fields, jobs, lanes, outbox
from dragoman.store.transaction import Row, Tx


def finish_job(tx: Tx, job_id: str, fence: int, status: Status, code: str = "", message: str = "") -> Status:
    """End a job that this process holds; fields that are still open end with `code`. Raises `LeaseLost`.

    A job that was to fail as a whole, and has translated something, is completed with failed items instead.
    """
    job = jobs.hold(tx, job_id, fence)
    if status == "failed" and job.done_fields:
        status = "completed"
    _end(tx, job, status, code, message)
    return status


def park_job(tx: Tx, job_id: str, fence: int, reason: str, due_at: int | None) -> None:
    """Give a job back that cannot go on now; it comes due again at `due_at`, or when its cause ends (None).

    Raises `LeaseLost`.
    """
    job = jobs.hold(tx, job_id, fence)
    jobs.give_back(tx, job, due_at, reason)
    if due_at is not None:
        lanes.wake(tx, job.workspace, lanes.ENGINE, due_at)


def cancel_job(tx: Tx, scope: Workspace, job_id: str, actor: str) -> str:
    """Cancel a job: queued, it ends at once; processing, it starts no further call; ended, it stays as it is.
    One on which a provider works in the background ends once its holder has had that stopped, and knows what
    it costs.

    Gives the state in which it stood. Raises `CallerError` not_found.
    """
    job = jobs.find(tx, scope, job_id, lock=True)
    if job is None:
        raise CallerError(f"no job {job_id}", "not_found")
    if job.state in JOB.terminal:
        return str(job.state)
    _cancel(tx, job)
    audit = history.Entry(
        workspace=job.workspace,
        kind="audit",
        subject=job_id,
        action="cancel_job",
        before=job.state,
        actor=actor,
        correlation_id=job.client_job_id,
    )
    history.append(tx, [audit])
    return str(job.state)


def cancel_jobs(tx: Tx, workspace: str, client_job_id: str, limit: int, after: str) -> str:
    """Cancel a page of a client job's open jobs, behind id `after`; gives the last id, '' at the end."""
    page = jobs.of_client(tx, workspace, client_job_id, limit, after)
    for row in page:
        job = jobs.find(tx, Workspace(workspace), row.id, lock=True)
        if job is not None and job.state in JOB.open:
            _cancel(tx, job)
    return str(page[-1].id) if len(page) == limit else ""


def _cancel(tx: Tx, job: Row) -> None:
    under_way = any(call.is_under_way for call in calls.unclosed(tx, job.id))
    if job.state == JOB.initial and not under_way:
        _end(tx, job, "canceled", "canceled", "the job was canceled")
        return
    jobs.ask_cancel(tx, job.id)
    if jobs.wake_one(tx, job.id):
        lanes.wake(tx, job.workspace, lanes.ENGINE, tx.now)


def _end(tx: Tx, job: Row, status: Status, code: str, message: str) -> None:
    """Write everything that is true once a (locked) job has ended."""
    if code:
        job_fields.fail_open(tx, job.id, code, message)
    if status == "failed" and code == QUARANTINED:
        _take_over(tx, job.id)  # whoever redrives the job goes on from its calls, and buys none anew
    else:
        close_calls(tx, job.id)
    jobs.recount(tx, job.id)
    items = _end_items(tx, job)
    counted = jobs.find(tx, Workspace(job.workspace), job.id) or job
    sequence = job.delivery_sequence + 1
    event = {
        "event": f"job.{status}",
        **payloads.identity(job, status, sequence),
        "code": code if status != "completed" else "",
        "message": sanitize(message) if status != "completed" else "",
        "items_total": job.items_total,
        "items_failed": sum(item.status == "failed" for item in items),
        "usage": payloads.usage(counted, budgets.of_job(tx, job.id)),
        "parked_for": "",
        "ended_at": iso(tx.now),
    }
    outbox.add(
        tx,
        workspace=job.workspace,
        job_id=job.id,
        sequence=sequence,
        event=f"job.{status}",
        url=job.callback_url,
        secret=job.callback_secret,
        payload=payloads.event_bytes(event, items, OUTBOX_INLINE_BYTES_MAX),
    )
    ended = jobs.move(
        tx,
        job.id,
        sorted(JOB.sources(status)),
        state=status,
        parked_for="",
        items_failed=event["items_failed"],
        delivery_sequence=sequence,
        error_code=event["code"] or None,
        error_message=event["message"] or None,
        next_attempt_at=None,
        ended_at=tx.now,
        lease_owner=None,
        lease_expires_at=None,
    )
    assert ended, f"job {job.id} was locked in state {job.state}"  # noqa: S101 - the lock says so


def _end_items(tx: Tx, job: Row) -> list[payloads.EndedItem]:
    """Give every item its status; in the order of the submission."""
    rows = job_fields.items(tx, job.id, -1, job.items_total)
    fields = job_fields.ended(tx, job.id, 0, job.items_total)
    ended = [payloads.ended_item(row.ref, fields.get(row.ordinal, [])) for row in rows]
    failed = {row.ordinal: item.code for row, item in zip(rows, ended, strict=True) if item.code}
    job_fields.end_items(tx, job.id, failed)
    return ended


def close_calls(tx: Tx, job_id: str) -> None:
    """Close what is open; what was never sent, or refused, will not be. An unknown effect stays unknown."""
    _take_over(tx, job_id)
    for call in calls.unclosed(tx, job_id):
        effects.move(tx, call.effect_id, "cancel")
    calls.close_all(tx, job_id)


def _take_over(tx: Tx, job_id: str) -> None:
    """What a vanished worker was sending is unknown from now on."""
    for call in calls.unclosed(tx, job_id):
        if call.attempt_outcome == ATTEMPT.initial:
            effects.take_over(tx, call.effect_id)
