"""Rows of `effects` and `attempts`: identity, state and money of every outside act.

Knows nothing of any family. An attempt takes one transition; a late answer of its own sender is the one
exception.
"""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from dragoman.kernel.clock import month, seconds
from dragoman.kernel.errors import CODES, CallerError
from dragoman.machines.tables import ATTEMPT, EFFECT
from dragoman.model.effects import Answer, AttemptPlan, EffectIdentity, Outgoing
from dragoman.store.schema import effects as tables
from dragoman.store.transaction import Row, Tx

_EFFECTS, _ATTEMPTS = tables.effects, tables.attempts


class Settled(NamedTuple):
    """What became of an attempt. `late`: it had been given up before; `known`: this changed something."""

    outcome: str
    late: bool
    known: bool


def ensure(tx: Tx, identity: EffectIdentity, owned: bool = True) -> Row:
    """The effect of this key, made if new. Another payload under the same key is refused."""
    found = of_key(tx, identity.workspace, identity.family, identity.key)
    if found is None:
        tx.insert_new(_EFFECTS, [_fresh(tx, identity, owned)], ("workspace", "family", "effect_key"))
        found = of_key(tx, identity.workspace, identity.family, identity.key)
    if found is None:
        raise LookupError(f"effect {identity.key} vanished inside its transaction")
    if found.payload_fingerprint != identity.payload_fingerprint:
        raise CallerError(
            f"effect {identity.key} was asked for with other content", "EFFECT_PAYLOAD_CONFLICT"
        )
    return found


def of_key(tx: Tx, workspace: str, family: str, key: str) -> Row | None:
    """The effect of a key, None where nobody has asked for it."""
    return tx.first(
        sa.select(_EFFECTS).where(
            _EFFECTS.c.workspace == workspace, _EFFECTS.c.family == family, _EFFECTS.c.effect_key == key
        )
    )


def _fresh(tx: Tx, identity: EffectIdentity, owned: bool) -> dict[str, object]:
    return {
        "id": tx.new_id(),
        "workspace": identity.workspace,
        "family": identity.family,
        "effect_key": identity.key,
        "owned": owned,
        "idempotency": identity.idempotency,
        "purpose": identity.purpose,
        "source_kind": identity.source_kind,
        "source_id": identity.source_id,
        "actor": identity.actor,
        "request_token": identity.request_token,
        "correlation_id": identity.correlation_id,
        "credential_ref": identity.credential_ref,
        "payload_version": identity.payload_version,
        "payload_fingerprint": identity.payload_fingerprint,
        "state": EFFECT.initial,
        "work_state": None if owned else "AVAILABLE",
        "created_at": tx.now,
        "updated_at": tx.now,
    }


def start(
    tx: Tx, effect: Row, plan: AttemptPlan, body: bytes, facts: dict[str, str | int] | None = None
) -> Outgoing | None:
    """Write attempt STARTED and move the effect to IN_FLIGHT; None where its state allows no attempt now.

    An effect that is UNKNOWN is only resent with `plan.resend`, or where its class is PROVIDER_IDEMPOTENT.
    """
    allowed = EFFECT.sources("IN_FLIGHT")
    if not plan.resend and effect.idempotency != "PROVIDER_IDEMPOTENT":
        allowed = allowed - {"UNKNOWN"}
    moved = tx.touched(
        sa.update(_EFFECTS)
        .where(_EFFECTS.c.id == effect.id, _EFFECTS.c.state.in_(sorted(allowed)))
        .values(state="IN_FLIGHT", attempt_count=_EFFECTS.c.attempt_count + 1, updated_at=tx.now)
    )
    if not moved:
        return None
    attempt_id, number = tx.new_id(), effect.attempt_count + 1
    deadline_at = tx.now + seconds(plan.deadline_seconds)
    row = {
        "id": attempt_id,
        "workspace": effect.workspace,
        "effect_id": effect.id,
        "number": number,
        "provider": plan.account,
        "correlation_id": effect.correlation_id,
        "worker": plan.worker,
        "fence": plan.fence,
        "request_fingerprint": plan.request_fingerprint,
        "started_at": tx.now,
        "deadline_at": deadline_at,
        "outcome": ATTEMPT.initial,
        "resend": plan.resend,
        "reserved_tokens": plan.reserved_tokens,
        "reserved_microusd": plan.reserved_microusd,
        "budget_month": month(tx.now),
    }
    tx.insert(_ATTEMPTS, [row])
    return Outgoing(
        attempt_id, effect.id, effect.workspace, number, plan.account, deadline_at, body, facts or {}
    )


def settle(tx: Tx, attempt_id: str, answer: Answer) -> Settled:
    """Give a STARTED attempt its outcome; a paid answer to one that was given up becomes ACCEPTED_LATE."""
    values = {
        "completed_at": tx.now,
        "failure_code": answer.code,
        "message": answer.message[:500],
        "response_status": answer.status,
        "provider_ref": answer.provider_ref[:255],
    }
    here = _ATTEMPTS.c.id == attempt_id
    fresh = sa.update(_ATTEMPTS).where(here, _ATTEMPTS.c.outcome == "STARTED")
    if tx.touched(fresh.values(outcome=answer.outcome, **values)):
        return Settled(answer.outcome, late=False, known=True)
    if answer.outcome in ATTEMPT.groups["PAID"]:
        late = sa.update(_ATTEMPTS).where(here, _ATTEMPTS.c.outcome.in_(sorted(ATTEMPT.groups["LATE"])))
        if tx.touched(late.values(outcome="ACCEPTED_LATE", **values)):
            return Settled("ACCEPTED_LATE", late=True, known=True)
    outcome = tx.scalar(sa.select(_ATTEMPTS.c.outcome).where(here))
    return Settled(str(outcome), late=True, known=False)


def event_of(answer: Answer) -> str:
    """The event that an answer means for its effect, by machine `effect`."""
    if answer.outcome in ATTEMPT.groups["UNKNOWN"]:
        return "lose"
    if answer.outcome == "REJECTED":
        return "fail" if answer.code in CODES and CODES[answer.code].retryable else "refuse"
    return {"SUCCEEDED": "succeed", "ACCEPTED": "succeed", "NOT_STARTED": "fail"}.get(
        answer.outcome, "accept"
    )


def move(tx: Tx, effect_id: str, event: str) -> bool:
    """Move an effect by one event from whatever state the table allows it in; False where it does not
    apply.
    """
    for source, known, target in EFFECT.table:
        if known != event:
            continue
        guarded = sa.update(_EFFECTS).where(_EFFECTS.c.id == effect_id, _EFFECTS.c.state == source)
        if tx.touched(guarded.values(state=target, updated_at=tx.now)):
            return True
    return False


def take_over(tx: Tx, effect_id: str) -> Row | None:
    """Give a foreign STARTED attempt up as CONNECTION_UNKNOWN; gives its effect's last attempt."""
    lost = sa.update(_ATTEMPTS).where(_ATTEMPTS.c.effect_id == effect_id, _ATTEMPTS.c.outcome == "STARTED")
    if tx.touched(lost.values(outcome="CONNECTION_UNKNOWN", completed_at=tx.now, failure_code="lease_lost")):
        move(tx, effect_id, "lose")
    return last_attempt(tx, effect_id)


def last_attempt(tx: Tx, effect_id: str) -> Row | None:
    """The newest attempt of an effect."""
    mine = sa.select(_ATTEMPTS).where(_ATTEMPTS.c.effect_id == effect_id)
    return tx.first(mine.order_by(_ATTEMPTS.c.number.desc()).limit(1))
