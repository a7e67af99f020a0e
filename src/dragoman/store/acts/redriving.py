"""A job that was quarantined is tried once more, by a person's word: the same id, a new budget of starts.

What the job has translated stands; what ended with the quarantine is open again, with its calls uncounted.
Its calls were left as they stood and go on: what is unknown is asked about before it is bought anew.
Its new end makes a new event with the next sequence. A site that has taken the first end as its documents'
end hears of the second one too, and leaves it: it asks again by a retry, which finds the texts in memory.
"""

from __future__ import annotations

from dragoman.kernel.clock import seconds
from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import JOB_DEADLINE_SECONDS
from dragoman.machines.tables import JOB
from dragoman.model.jobs import QUARANTINED
from dragoman.model.scopes import Scope
from dragoman.store.rows import history, job_fields, jobs, lanes
from dragoman.store.transaction import Tx


def redrive_job(tx: Tx, scope: Scope, job_id: str, actor: str) -> None:
    """Queue a quarantined job again. Raises `CallerError`: not_found, and nothing_to_retry for any other."""
    job = jobs.find(tx, scope, job_id, lock=True)
    if job is None:
        raise CallerError(f"no job {job_id}", "not_found")
    again = JOB.next(job.state, "redrive")
    if again is None or job.error_code != QUARANTINED:
        raise CallerError(f"job {job_id} is {job.state}, and not in quarantine", "nothing_to_retry")
    if job.purged_at is not None:
        raise CallerError(f"the texts of job {job_id} are past their time", "nothing_to_retry")
    job_fields.reopen(tx, job_id, QUARANTINED)
    jobs.move(
        tx,
        job_id,
        [job.state],
        state=again,
        parked_for="",
        starts=0,
        cancel_asked=False,
        items_failed=0,
        error_code=None,
        error_message=None,
        ended_at=None,
        next_attempt_at=tx.now,
        deadline_at=tx.now + seconds(JOB_DEADLINE_SECONDS),
    )
    jobs.recount(tx, job_id)
    lanes.wake(tx, job.workspace, lanes.ENGINE, tx.now)
    entry = history.Entry(
        workspace=job.workspace,
        kind="audit",
        subject=job_id,
        action="redrive_job",
        before=job.state,
        after=again,
        actor=actor,
        code=QUARANTINED,
        correlation_id=job.client_job_id,
    )
    history.append(tx, [entry])
