"""Transactions that have a provider told to stop what it works on for a job that nobody wants any more.

Telling is an effect of its own beside the call's, which it settles in no way: what the work came to, and what
it costs, is found out by asking. Told once is enough; what was not heard is told again at the next look.
"""

from __future__ import annotations

from dragoman.kernel.identity import sha256
from dragoman.model.effects import Answer, AttemptPlan, EffectIdentity, Outgoing
from dragoman.model.jobs import Account, OpenCall
from dragoman.store.rows import effects, jobs
from dragoman.store.transaction import Tx


def begin_withdrawal(
    tx: Tx, fence: int, account: Account, call: OpenCall, worker: str, deadline_seconds: float
) -> Outgoing | None:
    """Begin telling a provider to stop a call's newest attempt; None where it was told.

    Raises `LeaseLost`.
    """
    jobs.hold(tx, account.job_id, fence)
    word = call.reference.encode()
    effect = effects.ensure(
        tx,
        EffectIdentity(
            workspace=account.workspace,
            family="withdrawal",
            key=f"WITHDRAWAL:{account.workspace}:{call.attempt}",
            idempotency="PROVIDER_IDEMPOTENT",
            purpose="stop work that nobody wants",
            source_kind="calls",
            source_id=call.id,
            payload_fingerprint=sha256(word),
            correlation_id=account.client_job_id,
            credential_ref=account.account,
        ),
    )
    effects.take_over(tx, effect.id)
    plan = AttemptPlan(account.account, worker, fence, deadline_seconds, sha256(word))
    facts: dict[str, str | int] = {
        "provider": account.provider,
        "model": account.model,
        "speed": account.speed,
        "reference": call.reference,
        "of_attempt": call.attempt,
    }
    return effects.start(tx, effect, plan, b"", facts)


def record_withdrawal(tx: Tx, outgoing: Outgoing, answer: Answer) -> None:
    """Write down what the provider said to it."""
    settled = effects.settle(tx, outgoing.attempt_id, answer)
    if not settled.late:
        effects.move(tx, outgoing.effect_id, effects.event_of_repeatable(answer))
