"""The transactions around one paid call: begun with its money reserved, settled with its answer kept.

A call is written down by the transaction that starts its first attempt, or by the one that closes the call
which it follows. Settling names no fence: an answer that comes to a worker whose lease is gone is still
written down, for the ledger never forgets money.
"""

from __future__ import annotations

from typing import NamedTuple

from dragoman.kernel.clock import seconds
from dragoman.kernel.identity import sha256
from dragoman.kernel.limits import (
    JITTER_SHARE,
    RESEND_CALLS_MIN,
    RESEND_SHARE,
    RETRY_FIRST_SECONDS,
    RETRY_MAX_SECONDS,
    SPEND_LIMIT_SECONDS,
)
from dragoman.machines.tables import ATTEMPT, CALL
from dragoman.model.effects import Answer, AttemptPlan, Outgoing
from dragoman.model.jobs import SLOW_DOWN, Account, CallPlan, Halt, OpenCall, Settled, Start
from dragoman.store.rows import approvals, budgets, calls, controls, effects, jobs, lanes
from dragoman.store.transaction import Row, Tx


class Policy(NamedTuple):
    """What a job says about lost calls (the control's word goes before it), and the size of its groups."""

    on_unknown: str
    batch_size: int


def start_call(tx: Tx, fence: int, account: Account, start: Start, plan: CallPlan) -> Outgoing | Halt:
    """Write a new call down and begin its first attempt, its worst case reserved.

    A `Halt` where none may start now; then nothing is written. Raises `LeaseLost` under a stale fence.
    """
    halt = _halt(tx, fence, account) or _reserve(tx, account, start)
    if halt:
        return halt
    call_id = tx.new_id()
    outgoing = effects.begin_new(
        tx,
        calls.effect(account, plan, call_id),
        _attempt(account, plan, fence, start),
        plan.request,
        _facts(account),
    )
    calls.insert(tx, account, plan, call_id, outgoing.effect_id)
    return outgoing


def start_again(tx: Tx, fence: int, account: Account, start: Start, call: OpenCall) -> Outgoing | Halt:
    """Begin the next attempt of a call that is written down: the same bytes, its worst case reserved.

    A `Halt` where none may start now, or where the effect has moved on meanwhile (`elsewhere`). Where the
    effect is unknown that needs class PROVIDER_IDEMPOTENT. Raises `LeaseLost`.
    """
    halt = _halt(tx, fence, account)
    return halt or _begin_again(tx, fence, account, start, call, resend=False)


def resend_call(
    tx: Tx, fence: int, account: Account, start: Start, call: OpenCall, policy: Policy
) -> Outgoing | Halt:
    """Send a call once more that may have been paid already, if the money policy or a person lets it.

    Decision, approval and attempt are one transaction, taken one after the other within a client job. What
    may not be sent is held (`held`). Raises `LeaseLost`.
    """
    control = controls.lock(tx, account.workspace, account.client_job_id)  # first: nobody upgrades a share
    halt = _halt(tx, fence, account)
    if halt:
        return halt
    approved = approvals.of_effect(tx, account.workspace, call.effect_id)
    given = next((row for row in approved if row.kind == approvals.PERSON and row.used_at is None), None)
    if given is None and not _policy_allows(tx, account, policy, control, approved):
        calls.hold(tx, call.id)
        return Halt("held")
    begun = _begin_again(tx, fence, account, start, call, resend=True)
    if isinstance(begun, Halt):
        return begun
    if given is not None:
        approvals.use(tx, given.id)
    else:
        approvals.add(
            tx,
            workspace=account.workspace,
            effect_id=call.effect_id,
            kind=approvals.RESEND,
            by="policy",
            reason=control.on_unknown or policy.on_unknown or "within the bound",
            correlation_id=account.client_job_id,
            used=True,
        )
    return begun


def settle_call(tx: Tx, outgoing: Outgoing, answer: Answer, account: Account, jitter: float) -> Settled:
    """Write down what one attempt came to: outcome, kept bytes, money, and when it may be tried again.

    The bytes are kept before they are read. `reply` is set where this attempt's answer is the one to be used.
    """
    settled = effects.settle(tx, outgoing.attempt_id, answer)
    if not settled.known:
        return Settled(outgoing.attempt_id, outgoing.effect_id, settled.outcome)
    attempt = effects.attempt(tx, outgoing.attempt_id)
    if attempt is None:
        raise LookupError(f"attempt {outgoing.attempt_id} vanished inside its transaction")
    if settled.outcome in ATTEMPT.groups["PAID"]:
        return _settle_paid(tx, outgoing, answer, account, attempt, settled.late)
    effects.move(tx, outgoing.effect_id, effects.event_of(answer))
    if settled.outcome in ATTEMPT.groups["FREE"]:
        budgets.release(tx, account, attempt)
    due_at = next_try(tx, outgoing, answer, jitter)
    if answer.code in SLOW_DOWN:
        controls.pause_account(tx, account.account, due_at, answer.code)
    calls.postpone(tx, outgoing.effect_id, due_at)
    return Settled(
        outgoing.attempt_id,
        outgoing.effect_id,
        settled.outcome,
        None,
        answer.code,
        answer.message,
        answer.status,
        due_at,
        answer.provider_ref,
    )


def _settle_paid(
    tx: Tx, outgoing: Outgoing, answer: Answer, account: Account, attempt: Row, late: bool
) -> Settled:
    if answer.body is not None:
        calls.keep_answer(tx, outgoing, answer.body)
    event = "find_done" if late else effects.event_of(answer)
    used = effects.move(tx, outgoing.effect_id, event)
    if late:
        used = used and _is_wanted(tx, outgoing.effect_id)
    reply = account.read(answer.body or b"")
    budgets.book(tx, account, attempt, reply.usage, wasted=not used or reply.finish != "complete")
    return Settled(
        outgoing.attempt_id, outgoing.effect_id, attempt.outcome, reply if used else None, answer.code
    )


def _is_wanted(tx: Tx, effect_id: str) -> bool:
    """Whether a late answer's call still waits for it; one that was held goes on, and so does its job."""
    call = calls.of_effect(tx, effect_id)
    if call is None or call.state not in CALL.open:
        return False
    if calls.release(tx, [call.id]) and jobs.wake_one(tx, call.job_id):
        lanes.wake(tx, call.workspace, lanes.ENGINE, tx.now)
    return True


def next_try(tx: Tx, outgoing: Outgoing, answer: Answer, jitter: float) -> int:
    """When an attempt that came to nothing may be made again."""
    if answer.spend_limit:
        return tx.now + seconds(SPEND_LIMIT_SECONDS)
    by_rule = min(RETRY_FIRST_SECONDS * 2 ** (outgoing.number - 1), RETRY_MAX_SECONDS)
    wait_seconds = by_rule if answer.retry_after_seconds is None else answer.retry_after_seconds
    return tx.now + seconds(wait_seconds * (1 + JITTER_SHARE * jitter))


def _halt(tx: Tx, fence: int, account: Account) -> Halt | None:
    """Why no attempt of this job may start now."""
    row = jobs.permission(tx, account.job_id, fence, account.account)
    if row.cancel_asked or row.canceled:
        return Halt("canceled")
    if row.paused:
        return Halt("paused")
    if row.until is not None and row.until > tx.now:
        return Halt("provider", row.until)
    return None


def _reserve(tx: Tx, account: Account, start: Start) -> Halt | None:
    if not account.priced or budgets.reserve(tx, account, budgets.Sum(*start.reserved)):
        return None
    return Halt("budget")


def _begin_again(
    tx: Tx, fence: int, account: Account, start: Start, call: OpenCall, resend: bool
) -> Outgoing | Halt:
    halt = _reserve(tx, account, start)
    effect = effects.find(tx, call.effect_id)
    if halt or effect is None:
        return halt or Halt("elsewhere")
    plan = _attempt(account, call.plan, fence, start, resend)
    begun = effects.start(tx, effect, plan, call.plan.request, _facts(account))
    if begun is None and account.priced:
        budgets.unreserve(tx, account, budgets.Sum(*start.reserved))
    return begun or Halt("elsewhere")


def _attempt(account: Account, plan: CallPlan, fence: int, start: Start, resend: bool = False) -> AttemptPlan:
    tokens, microusd = start.reserved if account.priced else (0, 0)
    return AttemptPlan(
        account=account.account,
        worker=start.worker,
        fence=fence,
        deadline_seconds=start.deadline_seconds,
        request_fingerprint=sha256(plan.request),
        reserved_tokens=tokens,
        reserved_microusd=microusd,
        resend=resend,
    )


def outgoing(account: Account, call: OpenCall, deadline_at: int) -> Outgoing:
    """A call's newest attempt once more, to be asked about."""
    return Outgoing(
        call.attempt,
        call.effect_id,
        account.workspace,
        call.attempts,
        account.account,
        deadline_at,
        call.plan.request,
        {**_facts(account), "reference": call.reference},
    )


def _facts(account: Account) -> dict[str, str | int]:
    """Which provider the family is to send through."""
    return {"provider": account.provider, "model": account.model, "speed": account.speed}


def _policy_allows(tx: Tx, account: Account, policy: Policy, control: Row, approved: list[Row]) -> bool:
    """Whether a lost call may be paid for again: each once, and all of a client job within a bound."""
    word = control.on_unknown or policy.on_unknown
    if word == "hold":
        return False
    if word == "resend:unlimited":
        return True
    if any(row.kind == approvals.RESEND for row in approved):
        return False
    expected_calls = jobs.fields_of_client(tx, account.workspace, account.client_job_id) / policy.batch_size
    bound = max(RESEND_CALLS_MIN, int(RESEND_SHARE * expected_calls))
    return approvals.count(tx, account.workspace, account.client_job_id, approvals.RESEND) < bound
