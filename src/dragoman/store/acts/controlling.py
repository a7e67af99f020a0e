"""What the site decides for all jobs of one client job: pause, go on, cancel, money, and held calls let go.

The control row is what every start of an attempt reads: that it is written is all that correctness needs. The
jobs that wait are moved afterwards, and by the sweep when nobody got round to it.
"""

from __future__ import annotations

from dragoman.model.jobs import Control
from dragoman.model.scopes import Workspace
from dragoman.store.rows import approvals, budgets, calls, controls, history, jobs, lanes
from dragoman.store.transaction import Tx


def put_control(tx: Tx, scope: Workspace, client_job_id: str, control: Control) -> bool:
    """Write a decision down; False where a newer one (or this very one) stands. No attempt starts against it.

    From the commit on, for all present and future jobs of the client job.
    """
    if not controls.put(tx, scope.id, client_job_id, control):
        return False
    if control.sets_budget:
        limits = control.budget_tokens, control.budget_microusd
        budgets.limit_client_job(tx, scope.id, client_job_id, *limits)
    return True


def apply_control(tx: Tx, scope: Workspace, client_job_id: str) -> None:
    """Let the queued jobs of a client job wait or come due, as its control now stands."""
    control = controls.ensure(tx, scope.id, client_job_id)
    if control.paused and not control.canceled:
        jobs.hush(tx, scope.id, client_job_id)
    elif jobs.wake(tx, scope.id, client_job_id):
        lanes.wake(tx, scope.id, lanes.ENGINE, tx.now)


def release_held(tx: Tx, scope: Workspace, client_job_id: str, actor: str, reason: str, limit: int) -> int:
    """Let held calls of a client job go on; how many. With an `actor` each is approved by that person.

    Without one it is the money policy, which decides again at the resend.
    """
    held = calls.held_of_client(tx, scope.id, client_job_id, limit)
    waiting = sorted({call.job_id for call in held})
    for job_id in waiting:
        jobs.find(tx, scope, job_id, lock=True)
    for call in held if actor else ():
        approvals.add(
            tx,
            workspace=scope.id,
            effect_id=call.effect_id,
            kind=approvals.PERSON,
            by=actor,
            reason=reason,
            correlation_id=client_job_id,
            used=False,
        )
    calls.release(tx, [call.id for call in held])
    woken = [jobs.wake_one(tx, job_id) for job_id in waiting]
    if any(woken):
        lanes.wake(tx, scope.id, lanes.ENGINE, tx.now)
    if actor and held:
        entry = history.Entry(
            workspace=scope.id,
            kind="audit",
            subject=client_job_id,
            action="release_held_calls",
            actor=actor,
            message=f"{len(held)} calls: {reason}",
            correlation_id=client_job_id,
        )
        history.append(tx, [entry])
    return len(held)
