"""The transactions around one paid call: begun with its money reserved, settled with its answer kept.

A call is written down by the transaction that starts its first attempt, or by the one that closes the call
which it follows. Settling names no fence: an answer that comes to a worker whose lease is gone is still
written down, for the ledger never forgets money.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from dragoman.store.joining import together
from dragoman.store.rows import approvals, budgets, calls, controls, effects, jobs, lanes
from dragoman.store.transaction import Row, Tx


class Policy(NamedTuple):
    """What a job says about lost calls (the control's word goes before it), and the size of its groups."""

    on_unknown: str
    batch_size: int


class Starting(NamedTuple):
    """A call that somebody wants to begin under the fence of its job."""

    fence: int
    account: Account
    start: Start
    plan: CallPlan


class Settling(NamedTuple):
    """An answer that has come in. `jitter` spreads the next attempt."""

    outgoing: Outgoing
    answer: Answer
    account: Account
    jitter: float


@together(Starting)
def start_call(tx: Tx, askings: Sequence[Starting]) -> list[Outgoing | Halt]:
    """Write new calls down and begin the first attempt of each, its worst case reserved.

    A `Halt` for one that may not start now; of that nothing is written. Raises `LeaseLost` where a fence is
    stale.
    """
    answers: list[Outgoing | Halt | None] = list(_halts(tx, askings))
    allowed: list[int] = []
    for at in sorted(range(len(askings)), key=lambda at: budgets.order(askings[at].account)):
        answers[at] = answers[at] or _reserve(tx, askings[at].account, askings[at].start)
        if answers[at] is None:
            allowed.append(at)
    ids = [tx.new_id() for _ in allowed]
    begun = effects.begin_new(
        tx, [_new(askings[at], call_id) for at, call_id in zip(allowed, ids, strict=True)]
    )
    for at, outgoing in zip(allowed, begun, strict=True):
        answers[at] = outgoing
    calls.insert(
        tx,
        [
            calls.New(askings[at].account, askings[at].plan, call_id, outgoing.effect_id)
            for at, call_id, outgoing in zip(allowed, ids, begun, strict=True)
        ],
    )
    return [answer for answer in answers if answer is not None]


def _new(asking: Starting, call_id: str) -> effects.New:
    fence, account, start, plan = asking
    return effects.New(
        calls.effect(account, plan, call_id),
        _attempt(account, plan, fence, start),
        plan.request,
        _facts(account),
    )


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


@together(Settling)
def settle_call(tx: Tx, askings: Sequence[Settling]) -> list[Settled]:
    """Write down what attempts came to: outcome, kept bytes, money, and when each may be tried again.

    The bytes are kept before they are read. `reply` is set where that attempt's answer is the one to be used.
    """
    found = effects.settle_all(tx, [(one.outgoing.attempt_id, one.answer) for one in askings])
    paid = [at for at, one in enumerate(found) if one.known and one.outcome in ATTEMPT.groups["PAID"]]
    fresh = [at for at in paid if not found[at].late]
    settled = dict(
        zip(fresh, _settle_paid(tx, [askings[at] for at in fresh], [found[at] for at in fresh]), strict=True)
    )
    for at, (asking, one) in enumerate(zip(askings, found, strict=True)):
        if at not in settled:
            settled[at] = _settle_late(tx, asking, one) if at in paid else _settle_unpaid(tx, asking, one)
    return [settled[at] for at in range(len(askings))]


def _settle_paid(tx: Tx, askings: Sequence[Settling], found: Sequence[effects.Settled]) -> list[Settled]:
    """Answers to attempts that nobody has given up."""
    bodies = [(one.outgoing, one.answer.body) for one in askings]
    calls.keep_answers(tx, [(outgoing, body) for outgoing, body in bodies if body is not None])
    used: set[str] = set()
    for event in sorted({effects.event_of(one.answer) for one in askings}):
        mine = [one.outgoing.effect_id for one in askings if effects.event_of(one.answer) == event]
        used |= effects.move_all(tx, mine, event)
    settled, uses = [], []
    for asking, one in zip(askings, found, strict=True):
        outgoing, answer, account, _ = asking
        reply = account.read(answer.body or b"")
        is_used = outgoing.effect_id in used
        assert one.attempt is not None  # noqa: S101 - it has just been settled
        uses.append(
            budgets.Used(account, one.attempt, reply.usage, not is_used or reply.finish != "complete")
        )
        settled.append(
            Settled(
                outgoing.attempt_id, outgoing.effect_id, one.outcome, reply if is_used else None, answer.code
            )
        )
    budgets.book_all(tx, uses)
    return settled


def _settle_late(tx: Tx, asking: Settling, found: effects.Settled) -> Settled:
    """An answer to an attempt that was given up before: paid all the same, and of use if its call waits."""
    outgoing, answer, account, _ = asking
    if answer.body is not None:
        calls.keep_answer(tx, outgoing, answer.body)
    used = effects.move(tx, outgoing.effect_id, "find_done") and _is_wanted(tx, outgoing.effect_id)
    reply = account.read(answer.body or b"")
    assert found.attempt is not None  # noqa: S101 - it has just been settled
    budgets.book(tx, account, found.attempt, reply.usage, wasted=not used or reply.finish != "complete")
    return Settled(
        outgoing.attempt_id, outgoing.effect_id, found.outcome, reply if used else None, answer.code
    )


def _settle_unpaid(tx: Tx, asking: Settling, found: effects.Settled) -> Settled:
    """An attempt that cost nothing, of which nobody knows, or that was settled before."""
    outgoing, answer, account, jitter = asking
    if not found.known or found.attempt is None:
        return Settled(outgoing.attempt_id, outgoing.effect_id, found.outcome)
    effects.move(tx, outgoing.effect_id, effects.event_of(answer))
    if found.outcome in ATTEMPT.groups["FREE"]:
        budgets.release(tx, account, found.attempt)
    due_at = next_try(tx, outgoing, answer, jitter)
    if answer.code in SLOW_DOWN:
        controls.pause_account(tx, account.account, due_at, answer.code)
    calls.postpone(tx, outgoing.effect_id, due_at)
    return Settled(
        outgoing.attempt_id,
        outgoing.effect_id,
        found.outcome,
        None,
        answer.code,
        answer.message,
        answer.status,
        due_at,
        answer.provider_ref,
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
    return _why_not(tx, jobs.permissions(tx, [(account.job_id, fence)], account.account)[account.job_id])


def _halts(tx: Tx, askings: Sequence[Starting]) -> list[Halt | None]:
    """The same for each asking."""
    by_account: dict[str, set[tuple[str, int]]] = {}
    for asking in askings:
        held = by_account.setdefault(asking.account.account, set())
        held.add((asking.account.job_id, asking.fence))
    found = {
        (account, job_id): _why_not(tx, row)
        for account, held in sorted(by_account.items())
        for job_id, row in jobs.permissions(tx, held, account).items()
    }
    return [found[one.account.account, one.account.job_id] for one in askings]


def _why_not(tx: Tx, row: Row) -> Halt | None:
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
