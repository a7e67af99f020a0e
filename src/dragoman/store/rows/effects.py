"""Rows of `effects` and `attempts`: identity, state and money of every outside act.

Knows nothing of any family. An attempt takes one transition; a late answer of its own sender is the one
exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.clock import month, seconds
from dragoman.kernel.errors import CODES, CallerError
from dragoman.machines.tables import ATTEMPT, EFFECT
from dragoman.model.effects import Answer, AttemptPlan, EffectIdentity, Outgoing
from dragoman.store.schema import effects as tables
from dragoman.store.transaction import Row, Tx

_EFFECTS, _ATTEMPTS = tables.effects, tables.attempts

_STARTED = EFFECT.next(EFFECT.initial, "start")
_EFFECT = sa.select(_EFFECTS).where(_EFFECTS.c.id == sa.bindparam("effect"))
_OF_KEY = sa.select(_EFFECTS).where(
    _EFFECTS.c.workspace == sa.bindparam("ws"),
    _EFFECTS.c.family == sa.bindparam("family_name"),
    _EFFECTS.c.effect_key == sa.bindparam("key"),
)
_KNOWN = sa.select(_EFFECTS.c.effect_key).where(
    _EFFECTS.c.workspace == sa.bindparam("ws"),
    _EFFECTS.c.family == sa.bindparam("family_name"),
    _EFFECTS.c.effect_key.in_(sa.bindparam("keys", expanding=True)),
)
_START = (
    sa.update(_EFFECTS)
    .where(
        _EFFECTS.c.id == sa.bindparam("effect"),
        _EFFECTS.c.state.in_(sa.bindparam("from_states", expanding=True)),
    )
    .values(state=_STARTED, attempt_count=_EFFECTS.c.attempt_count + 1, updated_at=sa.bindparam("now"))
)
_ATTEMPT = sa.select(_ATTEMPTS).where(_ATTEMPTS.c.id == sa.bindparam("attempt"))
_LOCKED = (
    sa.select(_ATTEMPTS)
    .where(_ATTEMPTS.c.id.in_(sa.bindparam("attempts", expanding=True)))
    .order_by(_ATTEMPTS.c.id)
    .with_for_update()
)
_SETTLE = (
    sa.update(_ATTEMPTS)
    .where(_ATTEMPTS.c.id == sa.bindparam("attempt"), _ATTEMPTS.c.outcome == sa.bindparam("before"))
    .values(
        outcome=sa.bindparam("new_outcome"),
        completed_at=sa.bindparam("now"),
        failure_code=sa.bindparam("code"),
        message=sa.bindparam("words"),
        response_status=sa.bindparam("status"),
        provider_ref=sa.bindparam("reference"),
    )
)
_STATES = (
    sa.select(_EFFECTS.c.id, _EFFECTS.c.state)
    .where(_EFFECTS.c.id.in_(sa.bindparam("effects", expanding=True)))
    .order_by(_EFFECTS.c.id)
    .with_for_update()
)
_MOVE_ALL = (
    sa.update(_EFFECTS)
    .where(_EFFECTS.c.id.in_(sa.bindparam("effects", expanding=True)))
    .values(state=sa.bindparam("target"), updated_at=sa.bindparam("now"))
)
_MOVE = (
    sa.update(_EFFECTS)
    .where(_EFFECTS.c.id == sa.bindparam("effect"), _EFFECTS.c.state == sa.bindparam("source"))
    .values(state=sa.bindparam("target"), updated_at=sa.bindparam("now"))
)


class Settled(NamedTuple):
    """What became of an attempt. `late`: it had been given up before; `known`: this changed something.

    `attempt` is its row as it stood before, None where there is none.
    """

    outcome: str
    late: bool
    known: bool
    attempt: Row | None = None


class New(NamedTuple):
    """An owned effect whose key nobody can have used yet, and its first attempt."""

    identity: EffectIdentity
    plan: AttemptPlan
    body: bytes
    facts: dict[str, str | int]


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
    return tx.first(_OF_KEY, {"ws": workspace, "family_name": family, "key": key})


def known_keys(tx: Tx, workspace: str, family: str, keys: Sequence[str]) -> set[str]:
    """Those of these keys under which an effect stands."""
    rows = tx.all(_KNOWN, {"ws": workspace, "family_name": family, "keys": list(keys)})
    return {row.effect_key for row in rows}


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


UNHEARD = ATTEMPT.groups["UNKNOWN"] | {"INVALID_RESPONSE_UNKNOWN"}
"""Outcomes after which nobody knows what a receiver has made of a request."""


def start(
    tx: Tx, effect: Row, plan: AttemptPlan, body: bytes, facts: dict[str, str | int] | None = None
) -> Outgoing | None:
    """Write attempt STARTED and move the effect to IN_FLIGHT; None where its state allows no attempt now.

    An effect that is UNKNOWN is only resent with `plan.resend`, or where its class is PROVIDER_IDEMPOTENT.
    """
    allowed = EFFECT.sources("IN_FLIGHT")
    if not plan.resend and effect.idempotency != "PROVIDER_IDEMPOTENT":
        allowed = allowed - {"UNKNOWN"}
    if not tx.touched(_START, {"effect": effect.id, "from_states": sorted(allowed), "now": tx.now}):
        return None
    row = _started(tx, effect.id, effect.workspace, effect.correlation_id, effect.attempt_count + 1, plan)
    tx.insert(_ATTEMPTS, [row])
    return _outgoing(row, body, facts or {})


def begin_new(tx: Tx, fresh: Sequence[New]) -> list[Outgoing]:
    """Write new effects down with their first attempts, in one go."""
    effects = [
        {**_fresh(tx, new.identity, owned=True), "state": _STARTED, "attempt_count": 1} for new in fresh
    ]
    attempts = [
        _started(tx, str(effect["id"]), new.identity.workspace, new.identity.correlation_id, 1, new.plan)
        for effect, new in zip(effects, fresh, strict=True)
    ]
    tx.insert(_EFFECTS, effects)
    tx.insert(_ATTEMPTS, attempts)
    return [_outgoing(row, new.body, new.facts) for row, new in zip(attempts, fresh, strict=True)]


def _started(
    tx: Tx, effect_id: str, workspace: str, correlation_id: str, number: int, plan: AttemptPlan
) -> dict[str, Any]:
    """The row of an attempt STARTED."""
    return {
        "id": tx.new_id(),
        "workspace": workspace,
        "effect_id": effect_id,
        "number": number,
        "provider": plan.account,
        "correlation_id": correlation_id,
        "worker": plan.worker,
        "fence": plan.fence,
        "request_fingerprint": plan.request_fingerprint,
        "started_at": tx.now,
        "deadline_at": tx.now + seconds(plan.deadline_seconds),
        "outcome": ATTEMPT.initial,
        "resend": plan.resend,
        "reserved_tokens": plan.reserved_tokens,
        "reserved_microusd": plan.reserved_microusd,
        "budget_month": month(tx.now),
    }


def _outgoing(row: Mapping[str, Any], body: bytes, facts: dict[str, str | int]) -> Outgoing:
    return Outgoing(
        row["id"],
        row["effect_id"],
        row["workspace"],
        row["number"],
        row["provider"],
        row["deadline_at"],
        body,
        facts,
    )


def settle(tx: Tx, attempt_id: str, answer: Answer) -> Settled:
    """Give a STARTED attempt its outcome; a paid answer to one that was given up becomes ACCEPTED_LATE."""
    return settle_all(tx, [(attempt_id, answer)])[0]


def settle_all(tx: Tx, answers: Sequence[tuple[str, Answer]]) -> list[Settled]:
    """The same for several attempts, each named once."""
    rows = {row.id: row for row in tx.all(_LOCKED, {"attempts": sorted({id_ for id_, _ in answers})})}
    settled = [_settled(rows.get(attempt_id), answer) for attempt_id, answer in answers]
    tx.touched_each(
        _SETTLE,
        [
            {
                "attempt": attempt_id,
                "before": one.attempt.outcome,
                "new_outcome": one.outcome,
                "now": tx.now,
                "code": answer.code,
                "words": answer.message[:500],
                "status": answer.status,
                "reference": answer.provider_ref[:255],
            }
            for (attempt_id, answer), one in zip(answers, settled, strict=True)
            if one.known and one.attempt is not None
        ],
    )
    return settled


def _settled(row: Row | None, answer: Answer) -> Settled:
    """What an answer makes of an attempt as it stands."""
    stands = str(row.outcome) if row else ""
    if stands == ATTEMPT.initial:
        return Settled(answer.outcome, late=False, known=True, attempt=row)
    if answer.outcome in ATTEMPT.groups["PAID"] and stands in ATTEMPT.groups["LATE"]:
        return Settled("ACCEPTED_LATE", late=True, known=True, attempt=row)
    return Settled(stands, late=True, known=False, attempt=row)


def find(tx: Tx, effect_id: str) -> Row | None:
    """One effect."""
    return tx.first(_EFFECT, {"effect": effect_id})


def attempt(tx: Tx, attempt_id: str) -> Row | None:
    """One attempt."""
    return tx.first(_ATTEMPT, {"attempt": attempt_id})


def event_of(answer: Answer) -> str:
    """The event that an answer means for its effect, by machine `effect`."""
    if answer.outcome in ATTEMPT.groups["UNKNOWN"]:
        return "lose"
    if answer.outcome == "REJECTED":
        return "fail" if answer.code in CODES and CODES[answer.code].retryable else "refuse"
    return {"SUCCEEDED": "succeed", "ACCEPTED": "succeed", "NOT_STARTED": "fail"}.get(
        answer.outcome, "accept"
    )


def event_of_repeatable(answer: Answer) -> str:
    """The same for an effect whose receiver knows repeats: after an answer that cannot be read, too, the same
    bytes are the question.
    """
    return "lose" if answer.outcome in UNHEARD else event_of(answer)


def move(tx: Tx, effect_id: str, event: str) -> bool:
    """Move an effect by one event from whatever state the table allows it in; False where it does not
    apply.
    """
    for source, known, target in EFFECT.table:
        if known != event:
            continue
        if tx.touched(_MOVE, {"effect": effect_id, "source": source, "target": target, "now": tx.now}):
            return True
    return False


def move_all(tx: Tx, effect_ids: Iterable[str], event: str) -> set[str]:
    """Move effects by one event; gives those whose state allows it: the others stay as they are."""
    ids = sorted(set(effect_ids))
    by_target: dict[str, list[str]] = {}
    for row in tx.all(_STATES, {"effects": ids}) if ids else ():
        target = _TARGETS.get((row.state, event))
        if target is not None:
            by_target.setdefault(target, []).append(row.id)
    for target, moved in by_target.items():
        tx.touched(_MOVE_ALL, {"effects": moved, "target": target, "now": tx.now})
    return {effect_id for moved in by_target.values() for effect_id in moved}


_TARGETS = {(source, event): target for source, event, target in EFFECT.table}


def find_absent(tx: Tx, attempt_id: str, answer: Answer) -> bool:
    """Write down that an attempt of which nobody knew had no effect, and why; False where it is known."""
    lost = sa.update(_ATTEMPTS).where(
        _ATTEMPTS.c.id == attempt_id, _ATTEMPTS.c.outcome.in_(sorted(ATTEMPT.groups["UNKNOWN"]))
    )
    said = {"failure_code": answer.code, "message": answer.message[:500], "response_status": answer.status}
    return tx.touched(lost.values(outcome=ATTEMPT.next("STARTED", "found_absent"), **said)) == 1


def note_reference(tx: Tx, attempt_id: str, reference: str) -> None:
    """Write down by which name the provider knows an attempt, where nobody knew it."""
    nameless = sa.update(_ATTEMPTS).where(_ATTEMPTS.c.id == attempt_id, _ATTEMPTS.c.provider_ref == "")
    tx.touched(nameless.values(provider_ref=reference[:255]))


def take_over(tx: Tx, effect_id: str) -> Row | None:
    """Give a foreign STARTED attempt up as CONNECTION_UNKNOWN; gives its effect's last attempt."""
    lost = sa.update(_ATTEMPTS).where(_ATTEMPTS.c.effect_id == effect_id, _ATTEMPTS.c.outcome == "STARTED")
    if tx.touched(lost.values(outcome="CONNECTION_UNKNOWN", completed_at=tx.now, failure_code="lease_lost")):
        move(tx, effect_id, "lose")
    return last_attempt(tx, effect_id)


def any_doubtful(tx: Tx, effect_ids: Sequence[str]) -> bool:
    """Whether any attempt of these effects may have been paid for, and nobody knows."""
    doubtful = sa.select(_ATTEMPTS.c.id).where(
        _ATTEMPTS.c.effect_id.in_(list(effect_ids)),
        _ATTEMPTS.c.outcome.in_(sorted({ATTEMPT.initial, *ATTEMPT.groups["UNKNOWN"]})),
    )
    return bool(effect_ids) and tx.first(doubtful.limit(1)) is not None


def may_have_arrived(tx: Tx, effect_id: str) -> bool:
    """Whether any attempt of an effect may have been taken by its receiver, and nobody has heard so."""
    unheard = (_ATTEMPTS.c.effect_id == effect_id, _ATTEMPTS.c.outcome.in_(sorted(UNHEARD)))
    return tx.first(sa.select(_ATTEMPTS.c.id).where(*unheard).limit(1)) is not None


def last_attempt(tx: Tx, effect_id: str) -> Row | None:
    """The newest attempt of an effect."""
    mine = sa.select(_ATTEMPTS).where(_ATTEMPTS.c.effect_id == effect_id)
    return tx.first(mine.order_by(_ATTEMPTS.c.number.desc()).limit(1))
