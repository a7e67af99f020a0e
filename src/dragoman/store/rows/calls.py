"""Rows of `calls` and `answers`: which texts were asked for together, and the bytes that came back.

A call names an effect; its attempts are the ledger's. Answers are kept before anybody parses them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.identity import sha256
from dragoman.machines.tables import CALL
from dragoman.model.effects import EffectIdentity, Idempotency, Outgoing
from dragoman.model.jobs import Account, Asked, CallPlan, OpenCall
from dragoman.store.schema import effects as ledger
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx

_CALLS, _ANSWERS = tables.calls, tables.answers
_EFFECTS, _ATTEMPTS = ledger.effects, ledger.attempts

_FREE: Idempotency = "PROVIDER_IDEMPOTENT"
"""The class of calls that cost nothing: what is unknown is sent again."""
_BATCHED: Idempotency = "PROVIDER_QUERY_RECONCILABLE"
"""The class of calls that go out as batches, whatever they cost: the provider can always be asked."""
_HELD = CALL.next(CALL.initial, "hold")
_CLOSED = CALL.next(CALL.initial, "validate")

_BY_EFFECT = sa.select(_CALLS).where(_CALLS.c.effect_id == sa.bindparam("effect"))
_UNCLOSED = (
    sa.select(
        _CALLS,
        _EFFECTS.c.state.label("effect_state"),
        _EFFECTS.c.idempotency,
        _EFFECTS.c.attempt_count,
        _ATTEMPTS.c.id.label("attempt_id"),
        _ATTEMPTS.c.provider_ref,
        _ATTEMPTS.c.outcome,
        _ATTEMPTS.c.failure_code,
        _ATTEMPTS.c.message,
        _ATTEMPTS.c.response_status,
    )
    .join(_EFFECTS, _EFFECTS.c.id == _CALLS.c.effect_id)
    .outerjoin(
        _ATTEMPTS,
        sa.and_(_ATTEMPTS.c.effect_id == _CALLS.c.effect_id, _ATTEMPTS.c.number == _EFFECTS.c.attempt_count),
    )
    .where(_CALLS.c.job_id == sa.bindparam("job"), _CALLS.c.state.in_(sorted(CALL.open)))
    .order_by(_CALLS.c.ordinal)
)
_ANSWER = (
    sa.select(_ANSWERS.c.body)
    .join(_ATTEMPTS, _ATTEMPTS.c.id == _ANSWERS.c.attempt_id)
    .where(_ATTEMPTS.c.effect_id == sa.bindparam("effect"))
    .order_by(_ATTEMPTS.c.number.desc())
    .limit(1)
)
_ACCOUNTS = (
    sa.select(_EFFECTS.c.credential_ref)
    .join(_CALLS, _CALLS.c.effect_id == _EFFECTS.c.id)
    .where(_CALLS.c.job_id == sa.bindparam("job"))
    .distinct()
)
_LAST_ORDINAL = sa.select(sa.func.max(_CALLS.c.ordinal)).where(_CALLS.c.job_id == sa.bindparam("job"))
_OPEN = (
    sa.select(_CALLS.c.id, _CALLS.c.effect_id)
    .where(_CALLS.c.effect_id.in_(sa.bindparam("effects", expanding=True)), _CALLS.c.state == CALL.initial)
    .order_by(_CALLS.c.id)
    .with_for_update()
)
_CLOSE = (
    sa.update(_CALLS)
    .where(_CALLS.c.id.in_(sa.bindparam("calls", expanding=True)))
    .values(state=_CLOSED, request=None, next_attempt_at=None, closed_at=sa.bindparam("now"))
)
_CLOSE_ALL = (
    sa.update(_CALLS)
    .where(_CALLS.c.job_id == sa.bindparam("job"), _CALLS.c.state.in_(sorted(CALL.open)))
    .values(state=_CLOSED, request=None, next_attempt_at=None, closed_at=sa.bindparam("now"))
)
_POSTPONE = (
    sa.update(_CALLS)
    .where(_CALLS.c.effect_id == sa.bindparam("effect"), _CALLS.c.state == CALL.initial)
    .values(next_attempt_at=sa.bindparam("due"))
)


def effect(account: Account, plan: CallPlan, call_id: str) -> EffectIdentity:
    """What the ledger knows a call's effect by."""
    return EffectIdentity(
        workspace=account.workspace,
        family="completion",
        key=f"COMPLETION:{account.workspace}:{account.job_id}:{plan.ordinal}",
        idempotency=_class(account),
        purpose="translate texts of a job",
        source_kind="calls",
        source_id=call_id,
        payload_fingerprint=sha256(plan.request),
        correlation_id=account.client_job_id,
        credential_ref=account.account,
    )


def _class(account: Account) -> Idempotency:
    if account.speed == "batch":
        return _BATCHED
    return "LOCAL_IDEMPOTENT_ONLY" if account.priced else _FREE


class New(NamedTuple):
    """A call to be written down."""

    account: Account
    plan: CallPlan
    id: str
    effect_id: str


def insert(tx: Tx, fresh: Sequence[New]) -> None:
    """Write calls down, open."""
    tx.insert(_CALLS, [_written(tx, *new) for new in fresh])


def _written(tx: Tx, account: Account, plan: CallPlan, call_id: str, effect_id: str) -> dict[str, Any]:
    return {
        "id": call_id,
        "workspace": account.workspace,
        "job_id": account.job_id,
        "client_job_id": account.client_job_id,
        "ordinal": plan.ordinal,
        "parent": plan.parent,
        "purpose": plan.purpose,
        "state": CALL.initial,
        "effect_id": effect_id,
        "target_locale": plan.target_locale,
        "asked": json.dumps(plan.asked),
        "request": plan.request,
        "request_fingerprint": sha256(plan.request),
        "created_at": tx.now,
    }


def unclosed(tx: Tx, job_id: str) -> tuple[OpenCall, ...]:
    """The calls of a job that are open or held, in order, each with its effect, newest attempt and answer."""
    found = [_open(row) for row in tx.all(_UNCLOSED, {"job": job_id})]
    return tuple(found)


def _open(row: Row) -> OpenCall:
    return OpenCall(
        id=row.id,
        plan=CallPlan(
            ordinal=row.ordinal,
            purpose=row.purpose,
            target_locale=row.target_locale,
            asked=tuple(Asked(*one) for one in json.loads(row.asked)),
            request=row.request or b"",
            parent=row.parent,
        ),
        effect_id=row.effect_id,
        effect_state=row.effect_state,
        idempotent=row.idempotency == _FREE,
        batched=row.idempotency == _BATCHED,
        held=row.state == _HELD,
        attempt=row.attempt_id or "",
        reference=row.provider_ref or "",
        attempt_outcome=row.outcome or "",
        attempts=row.attempt_count,
        due_at=row.next_attempt_at or 0,
        failure=row.failure_code or "",
        message=row.message or "",
        status=row.response_status or 0,
    )


def of_effect(tx: Tx, effect_id: str) -> Row | None:
    """The call whose effect this is."""
    return tx.first(_BY_EFFECT, {"effect": effect_id})


def accounts(tx: Tx, job_id: str) -> set[str]:
    """The accounts that the calls of a job were for."""
    return {row.credential_ref for row in tx.all(_ACCOUNTS, {"job": job_id})}


def last_ordinal(tx: Tx, job_id: str) -> int:
    """The highest ordinal among the calls of a job, 0 where there is none."""
    return int(tx.scalar(_LAST_ORDINAL, {"job": job_id}) or 0)


def close(tx: Tx, effect_ids: Iterable[str]) -> set[str]:
    """Close the open calls of effects and purge their requests; the effects whose call was open."""
    found = tx.all(_OPEN, {"effects": sorted(effect_ids)})
    if found:
        tx.touched(_CLOSE, {"calls": [row.id for row in found], "now": tx.now})
    return {row.effect_id for row in found}


def close_all(tx: Tx, job_id: str) -> None:
    """Close whatever is not closed of a job that ends."""
    tx.touched(_CLOSE_ALL, {"job": job_id, "now": tx.now})


def postpone(tx: Tx, effect_id: str, due_at: int) -> None:
    """Let the open call of an effect wait for its next attempt until `due_at`."""
    tx.touched(_POSTPONE, {"effect": effect_id, "due": due_at})


def hold(tx: Tx, call_id: str) -> bool:
    """Hold an open call for a person or a wider policy; False where it was not open."""
    here = sa.update(_CALLS).where(_CALLS.c.id == call_id, _CALLS.c.state == CALL.initial)
    return tx.touched(here.values(state=_HELD, next_attempt_at=None)) == 1


def release(tx: Tx, call_ids: Sequence[str]) -> int:
    """Let held calls go on; how many."""
    here = sa.update(_CALLS).where(_CALLS.c.id.in_(list(call_ids)), _CALLS.c.state == _HELD)
    return tx.touched(here.values(state=CALL.initial, next_attempt_at=None))


def held_of_client(tx: Tx, workspace: str, client_job_id: str, limit: int) -> list[Row]:
    """Held calls of a client job, in order of id."""
    held = sa.select(_CALLS).where(
        _CALLS.c.workspace == workspace, _CALLS.c.client_job_id == client_job_id, _CALLS.c.state == _HELD
    )
    return tx.all(held.order_by(_CALLS.c.id).limit(limit))


def keep_answer(tx: Tx, outgoing: Outgoing, body: bytes) -> None:
    """Keep the bytes that came back, once an attempt."""
    tx.insert_new(_ANSWERS, [_kept(tx, outgoing, body)], ("attempt_id",))


def keep_answers(tx: Tx, received: Iterable[tuple[Outgoing, bytes]]) -> None:
    """Keep the bytes that came back to attempts which nobody has settled before."""
    tx.insert(_ANSWERS, [_kept(tx, outgoing, body) for outgoing, body in received])


def _kept(tx: Tx, outgoing: Outgoing, body: bytes) -> dict[str, Any]:
    return {
        "attempt_id": outgoing.attempt_id,
        "workspace": outgoing.workspace,
        "body": body,
        "received_at": tx.now,
    }


def answer(tx: Tx, effect_id: str) -> bytes | None:
    """The newest kept answer to an effect."""
    body = tx.scalar(_ANSWER, {"effect": effect_id})
    return None if body is None else bytes(body)
