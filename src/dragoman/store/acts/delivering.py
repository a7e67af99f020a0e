"""Transactions of delivery: events of ended jobs are sent until they arrive, or until their window is over.

A process that dies while it sends leaves a row `delivering` and an attempt STARTED. Once the lease is over
the next holder gives that attempt up as unknown and sends the same bytes under the same id, which the
receiver knows again.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple

from dragoman.kernel import backoff, clock
from dragoman.kernel.errors import CallerError, sanitize
from dragoman.kernel.identity import sha256
from dragoman.kernel.limits import (
    OUTBOX_FIRST_SECONDS,
    OUTBOX_MAX_SECONDS,
    OUTBOX_WINDOW_SECONDS,
    WEBHOOK_DEADLINE_SECONDS,
)
from dragoman.machines.tables import ATTEMPT
from dragoman.model.effects import Answer, AttemptPlan, EffectIdentity, Outgoing
from dragoman.model.scopes import Scope
from dragoman.store.rows import effects, history, outbox
from dragoman.store.transaction import Row, Tx

Fate = Literal["delivered", "waiting", "dead", "lease_lost"]

_GONE = 410
_ENDPOINT_CHARS_MAX = 191
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*:(?://)?", re.IGNORECASE)
_EVENTS = {
    "delivered": ("deliver", "succeed"),
    "waiting": ("wait", "fail"),
    "dead": ("give_up", "refuse"),
}
"""What a fate means for the row and for its effect; an effect whose attempt is unknown is lost instead."""


class Delivering(NamedTuple):
    """One event that this process has begun to send, and the fence under which it may say what came of it.

    `place` is what has its share of sends; it may hold what stands before a host, and is never shown.
    """

    outbox_id: str
    fence: int
    place: str
    outgoing: Outgoing


def begin_deliveries(tx: Tx, owner: str, limit: int, busy: Collection[str] = ()) -> list[Delivering]:
    """Take due events, none to a `busy` place, and begin an attempt for each."""
    begun = []
    for row in outbox.claim(tx, owner, limit, busy):
        outgoing = _begin(tx, row, owner)
        if outgoing is None:  # somebody canceled the effect
            outbox.move(tx, row, "give_up", dead_at=tx.now, next_attempt_at=None, error_code="canceled")
        else:
            outbox.begin(tx, row)
            begun.append(Delivering(row.id, row.fence, _place_of(row.url), outgoing))
    return begun


def _begin(tx: Tx, row: Row, owner: str) -> Outgoing | None:
    fingerprint = sha256(row.payload)
    identity = EffectIdentity(
        workspace=row.workspace,
        family="webhook",
        key=_effect_key(row),
        idempotency="PROVIDER_IDEMPOTENT",
        purpose=f"tell that {row.event}",
        source_kind="outbox",
        source_id=row.id,
        payload_fingerprint=fingerprint,
        correlation_id=row.job_id,
    )
    effect = effects.ensure(tx, identity)
    if effect.attempt_count:
        effects.take_over(tx, effect.id)
    plan = AttemptPlan(
        account=f"webhook:{origin_of(row.url)}"[:191],
        worker=owner,
        fence=row.fence,
        deadline_seconds=WEBHOOK_DEADLINE_SECONDS,
        request_fingerprint=fingerprint,
    )
    facts: dict[str, str | int] = {
        "url": row.url,
        "secret": row.secret,
        "job_id": row.job_id,
        "delivery_id": row.id,
        "event": row.event,
    }
    return effects.start(tx, effect, plan, row.payload, facts)


def settle_delivery(tx: Tx, outgoing: Outgoing, answer: Answer, outbox_id: str, fence: int) -> Fate:
    """Write down what came of an attempt, and what becomes of its event.

    The attempt is recorded also under a stale fence; row and effect are then left to whoever holds them.
    """
    row = outbox.hold(tx, outbox_id, fence)
    effects.settle(tx, outgoing.attempt_id, answer)
    if row is None:
        return "lease_lost"
    fate, due_at = _fate(tx, row, answer)
    row_event, effect_event = _EVENTS[fate]
    lost = answer.outcome in ATTEMPT.groups["UNKNOWN"]
    effects.move(tx, outgoing.effect_id, "lose" if lost else effect_event)
    outbox.move(
        tx,
        row,
        row_event,
        next_attempt_at=due_at,
        delivered_at=tx.now if fate == "delivered" else None,
        dead_at=tx.now if fate == "dead" else None,
        response_status=answer.status,
        error_code=answer.code or None,
        error_message=sanitize(answer.message) or None,
    )
    if answer.status == _GONE:
        outbox.close_endpoint(tx, row.workspace, row.url, origin_of(row.url)[:_ENDPOINT_CHARS_MAX])
    return fate


def _fate(tx: Tx, row: Row, answer: Answer) -> tuple[Fate, int | None]:
    """Arrived, gone for good, over its window, or due again: by the rule, never sooner than asked for."""
    if answer.outcome == "SUCCEEDED":
        return "delivered", None
    if answer.status == _GONE:
        return "dead", None
    delay_seconds = backoff.delay_seconds(
        row.attempt_count,
        first_seconds=OUTBOX_FIRST_SECONDS,
        max_seconds=OUTBOX_MAX_SECONDS,
        fraction=tx.chance.fraction(),
        asked_seconds=answer.retry_after_seconds,
    )
    due_at = tx.now + clock.seconds(delay_seconds)
    if due_at > row.first_attempt_at + clock.seconds(OUTBOX_WINDOW_SECONDS):
        return "dead", None
    return "waiting", due_at


def redrive_delivery(tx: Tx, scope: Scope, outbox_id: str, actor: str) -> None:
    """Give a dead event a new window, by a person's word, which is written down.

    That word also opens an endpoint again that had said that it is gone.

    Raises `CallerError`: not_found, EFFECT_ALREADY_COMPLETE, EFFECT_IN_FLIGHT beside an attempt under way,
    and nothing_to_retry for an event that is due by itself.
    """
    row = outbox.find(tx, scope, outbox_id, lock=True)
    if row is None:
        raise CallerError(f"no delivery {outbox_id}", "not_found")
    if row.state == "delivered":
        raise CallerError(f"delivery {outbox_id} has arrived", "EFFECT_ALREADY_COMPLETE")
    effect = effects.of_key(tx, row.workspace, "webhook", _effect_key(row))
    last = effects.last_attempt(tx, effect.id) if effect else None
    if row.state == "delivering" or (last and last.outcome == ATTEMPT.initial):
        raise CallerError(f"delivery {outbox_id} is being sent", "EFFECT_IN_FLIGHT")
    if row.state != "dead":
        raise CallerError(f"delivery {outbox_id} is {row.state} and goes by itself", "nothing_to_retry")
    if effect:
        effects.move(tx, effect.id, "approve")
    outbox.revive(tx, outbox_id)
    opened = outbox.open_endpoint(tx, row.workspace, row.url)
    entry = history.Entry(
        workspace=row.workspace,
        kind="audit",
        subject=outbox_id,
        action="redrive",
        before="dead",
        after="pending",
        actor=actor,
        code=row.error_code or "",
        message="the endpoint is open again" if opened else "",
        correlation_id=row.job_id,
    )
    history.append(tx, [entry])


def _effect_key(row: Row) -> str:
    return f"WEBHOOK:{row.workspace}:{row.id}"


def outbox_page(
    tx: Tx, scope: Scope, state: str = "", before: str = "", limit: int = 100
) -> list[dict[str, object]]:
    """Events for an administrator, newest first: safe references only, of a URL its host alone."""
    return [_shown(row) for row in outbox.page(tx, scope, state, before, limit)]


def outbox_counts(tx: Tx, scope: Scope) -> dict[str, int]:
    """How many events stand in each state."""
    return dict(outbox.counts(tx, scope))


def _shown(row: Row) -> dict[str, object]:
    moments = (
        "created_at",
        "next_attempt_at",
        "first_attempt_at",
        "last_attempt_at",
        "delivered_at",
        "dead_at",
    )
    return {
        "id": row.id,
        "job_id": row.job_id,
        "event": row.event,
        "event_sequence": row.delivery_sequence,
        "state": row.state,
        "endpoint": origin_of(row.url),
        "attempts": row.attempt_count,
        "response_status": row.response_status,
        "error_code": row.error_code,
        "error_message": row.error_message,
        **{name: clock.iso(getattr(row, name)) for name in moments},
    }


def _place_of(url: str) -> str:
    """A URL up to its path: where two are the same, one server answers. One without a host is all place."""
    scheme = _ORIGIN.match(url)
    if scheme is None or not scheme.group().endswith("//"):
        return url
    return scheme.group() + re.split(r"[/?#]", url[scheme.end() :], maxsplit=1)[0]


def origin_of(url: str) -> str:
    """Scheme and host of a URL, as far as it has them: never a path, a query or a password."""
    scheme = _ORIGIN.match(url)
    if scheme is None:
        return ""
    host = re.split(r"[/?#]", url[scheme.end() :], maxsplit=1)[0]
    return scheme.group() + host.rpartition("@")[2] if scheme.group().endswith("//") else scheme.group()
