"""Transactions about calls whose end is not known: taken over, asked about, and what asking found."""

from __future__ import annotations

from typing import Literal

from dragoman.machines.tables import ATTEMPT
from dragoman.model.effects import Answer, Outgoing
from dragoman.model.jobs import SLOW_DOWN, Account, OpenCall
from dragoman.store.acts.calling import next_try
from dragoman.store.rows import approvals, budgets, calls, controls, effects, jobs
from dragoman.store.transaction import Tx

Found = Literal["found", "absent", "refused", ""]
"""The answer itself; that there will never be one; that the provider said no; nothing that decides."""
_RATE = "PROVIDER_RATE_LIMITED"
_ENDS = {"fail": "find_absent", "refuse": "find_refused"}


def take_over_calls(tx: Tx, job_id: str, fence: int) -> None:
    """Give up the attempts that a former holder of this job left behind: nobody knows what became of them.

    The former holder may still bring an answer; then the ledger takes it as late. Raises `LeaseLost`.
    """
    jobs.hold(tx, job_id, fence)
    for call in calls.unclosed(tx, job_id):
        if call.attempt_outcome == ATTEMPT.initial:
            effects.take_over(tx, call.effect_id)


def look_allowed_at(tx: Tx, account: str) -> int:
    """Until when the provider asks not to be asked, 0 where it may be: a rate holds for looks, too."""
    paused = controls.pause(tx, account)
    return int(paused.until) if paused is not None and paused.code == _RATE else 0


def record_inquiry(
    tx: Tx, outgoing: Outgoing, answer: Answer | None, account: Account, call: OpenCall, by: str
) -> Found:
    """Write down what asking about an attempt has found.

    An answer is kept and its money booked under the attempt, whose outcome stays what its sender saw; a look
    that broke off has found none. A `final` word that there is none gives the money back, and the attempt is
    known to have had no effect.
    """
    if answer is not None and answer.final:
        found = _record_end(tx, outgoing, answer, account, call, by)
    else:
        found = _record_look(tx, outgoing, answer, account, call, by)
    if answer is not None and answer.code in SLOW_DOWN:
        controls.pause_account(tx, account.account, next_try(tx, outgoing, answer, 0.0), answer.code)
    return found


def _record_look(
    tx: Tx, outgoing: Outgoing, answer: Answer | None, account: Account, call: OpenCall, by: str
) -> Found:
    found = answer is not None and answer.outcome == "SUCCEEDED" and answer.body is not None
    approvals.note_inquiry(
        tx,
        workspace=account.workspace,
        effect_id=call.effect_id,
        attempt_id=outgoing.attempt_id,
        disposition="PROVIDER_FOUND_AND_LINKED" if found else "UNKNOWN_MANUAL_REVIEW",
        object_ref=answer.provider_ref if found and answer else "",
        next_action="" if found else "the money policy decides",
        by=by,
    )
    if call.batched and answer is not None and answer.provider_ref:
        effects.note_reference(tx, outgoing.attempt_id, answer.provider_ref)
    attempt = effects.attempt(tx, outgoing.attempt_id)
    if not found or answer is None or answer.body is None or attempt is None:
        return ""
    calls.keep_answer(tx, outgoing, answer.body)
    used = effects.move(tx, call.effect_id, "find_done")
    reply = account.read(answer.body)
    budgets.book(tx, account, attempt, reply.usage, wasted=not used or reply.finish != "complete")
    return "found" if used else ""


def _record_end(
    tx: Tx, outgoing: Outgoing, answer: Answer, account: Account, call: OpenCall, by: str
) -> Found:
    refused = answer.outcome == "REJECTED" and answer.code not in SLOW_DOWN
    approvals.note_inquiry(
        tx,
        workspace=account.workspace,
        effect_id=call.effect_id,
        attempt_id=outgoing.attempt_id,
        disposition="PROVIDER_REJECTED" if refused else "PROVIDER_ABSENT_RETRY_ALLOWED",
        object_ref=answer.provider_ref,
        next_action="it is dealt with as a refusal" if refused else "it is sent again",
        by=by,
    )
    attempt = effects.attempt(tx, outgoing.attempt_id)
    if attempt is None or not effects.find_absent(tx, outgoing.attempt_id, answer):
        return ""
    budgets.release(tx, account, attempt)
    if not effects.move(tx, call.effect_id, _ENDS[effects.event_of(answer)]):
        return ""
    calls.postpone(tx, call.effect_id, next_try(tx, outgoing, answer, 0.0))
    return "refused" if refused else "absent"
