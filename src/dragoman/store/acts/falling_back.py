"""A job goes on with another provider, once its own has definitely refused to serve it.

Never after an unknown: while anybody might still owe an answer, or an answer waits to be judged, the job
stays where it is. Nobody is tried twice for one job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.machines.tables import ATTEMPT
from dragoman.model.jobs import OpenCall
from dragoman.store.rows import calls, controls, effects, history, jobs, lanes
from dragoman.store.transaction import Tx

_NO_MONEY = "PROVIDER_SPEND_LIMIT"
_NOT_REACHED = "PROVIDER_NOT_REACHED"


class Way(NamedTuple):
    """Another provider for a job, the job's options as they are with it, and what a process needs for it."""

    provider: str
    model: str
    account: str
    options: str
    needs: str


def fall_back(tx: Tx, job_id: str, fence: int, account: str, ways: Sequence[Way], denied: str) -> str:
    """Hand a (held) job to the first of `ways` that it has not tried; gives its name, '' where it stays.

    It is handed over where `denied` (a code) has made the whole job impossible, where `account` has no money
    left, or could not be reached. Its calls are closed, unsent as they are. Raises `LeaseLost`.
    """
    job = jobs.hold(tx, job_id, fence)
    open_calls = calls.unclosed(tx, job_id)
    reason = denied or _reason(tx, account, open_calls)
    if not reason or not _owes_nothing(tx, open_calls):
        return ""
    tried = {account, *calls.accounts(tx, job_id)}
    way = next(
        (way for way in ways if way.account not in tried and not controls.pause(tx, way.account)), None
    )
    if way is None:
        return ""
    for call in open_calls:
        effects.move(tx, call.effect_id, "cancel")
    calls.close_all(tx, job_id)
    jobs.change(
        tx,
        job_id,
        fence,
        provider=way.provider,
        model=way.model,
        options=way.options,
        needs=way.needs,
    )
    jobs.give_back(tx, job, tx.now)
    lanes.wake(tx, job.workspace, lanes.ENGINE, tx.now)
    handed_over = history.Entry(
        workspace=job.workspace,
        kind="job",
        subject=job_id,
        action="fall_back",
        before=account,
        after=way.account,
        code=reason,
        correlation_id=job.client_job_id,
    )
    history.append(tx, [handed_over])
    return way.provider


def _reason(tx: Tx, account: str, open_calls: Sequence[OpenCall]) -> str:
    """Why an account serves nobody now, '' where that cannot be said."""
    paused = controls.pause(tx, account)
    if paused is not None:
        return _NO_MONEY if paused.code == _NO_MONEY else ""
    return _NOT_REACHED if any(call.failure == _NOT_REACHED for call in open_calls) else ""


def _owes_nothing(tx: Tx, open_calls: Sequence[OpenCall]) -> bool:
    """Whether no attempt of these calls was paid for, or might have been."""
    free = {"", *ATTEMPT.groups["FREE"]}
    if any(call.held or call.attempt_outcome not in free for call in open_calls):
        return False
    return not effects.any_doubtful(tx, [call.effect_id for call in open_calls if call.attempts > 1])
