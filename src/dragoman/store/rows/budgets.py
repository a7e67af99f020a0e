"""Rows of `budgets`, `ai_usage` and `ai_quotas`: money reserved before it is spent, and what was really used.

`budgets` moves by the very amounts of the attempts that the same transaction moves, and `usage_sums`, which
spares a status the sum over all calls, by those of its bookings; `recount` says from attempts and usage what
both must hold. Attempts that reserved nothing (unpriced providers) move no budget. Rows
are locked in the order month, provider's month, client job. A bound in money is kept by what has a price
only: a call that nobody can reckon fits none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.clock import MICROSECONDS, month
from dragoman.kernel.limits import MONTHLY_TOKENS
from dragoman.machines.tables import ATTEMPT
from dragoman.model.completions import Usage
from dragoman.model.jobs import Account
from dragoman.store.schema import effects as ledger
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx

_BUDGETS, _USAGE, _QUOTAS = tables.budgets, tables.ai_usage, tables.ai_quotas
_SUMS = tables.usage_sums
_ATTEMPTS, _CALLS = ledger.attempts, tables.calls

_KEY = ("workspace", "scope", "scope_key")
_SLOT_KEY = ("workspace", "client_job_id", "slot")
_USED = ("tokens", "microusd", "wasted_tokens", "wasted_microusd")
_KEY_CHARS_MAX = 191
_PRICES_CHARS_MAX = 64
_OPEN = sorted({ATTEMPT.initial} | ATTEMPT.groups["UNKNOWN"])
"""Outcomes whose reserve stands as long as no usage is booked for the attempt."""

_HERE = sa.and_(
    _BUDGETS.c.workspace == sa.bindparam("ws"),
    _BUDGETS.c.scope == sa.bindparam("in_scope"),
    _BUDGETS.c.scope_key == sa.bindparam("key"),
)
_LOCKED = sa.select(_BUDGETS).where(_HERE).with_for_update()
_MOVE = (
    sa.update(_BUDGETS)
    .where(_HERE)
    .values(
        reserved_tokens=_BUDGETS.c.reserved_tokens + sa.bindparam("reserve_tokens"),
        reserved_microusd=_BUDGETS.c.reserved_microusd + sa.bindparam("reserve_microusd"),
        spent_tokens=_BUDGETS.c.spent_tokens + sa.bindparam("spend_tokens"),
        spent_microusd=_BUDGETS.c.spent_microusd + sa.bindparam("spend_microusd"),
        updated_at=sa.bindparam("now"),
    )
)
_ADD_USED = (
    sa.update(_SUMS)
    .where(
        _SUMS.c.workspace == sa.bindparam("ws"),
        _SUMS.c.client_job_id == sa.bindparam("key"),
        _SUMS.c.slot == sa.bindparam("in_slot"),
    )
    .values({name: _SUMS.c[name] + sa.bindparam(f"more_{name}") for name in _USED})
)
_USED_SUMS = [sa.func.coalesce(sa.func.sum(_SUMS.c[name]), 0).label(name) for name in _USED]
_USED_BY_CLIENT = sa.select(*_USED_SUMS).where(
    _SUMS.c.workspace == sa.bindparam("ws"), _SUMS.c.client_job_id == sa.bindparam("key")
)
_QUOTA = sa.select(_QUOTAS.c.monthly_tokens, _QUOTAS.c.monthly_microusd).where(
    _QUOTAS.c.workspace == sa.bindparam("ws")
)
_METERED = sa.select(
    sa.func.sum(_USAGE.c.total_tokens).label("tokens"), sa.func.sum(_USAGE.c.microusd).label("microusd")
).where(
    _USAGE.c.workspace == sa.bindparam("ws"),
    _USAGE.c.created_at >= sa.bindparam("begins"),
    _USAGE.c.created_at < sa.bindparam("ends"),
)
_USED_BY_JOB = (
    sa.select(
        _USAGE.c.wasted,
        sa.func.sum(_USAGE.c.total_tokens).label("tokens"),
        sa.func.sum(_USAGE.c.microusd).label("microusd"),
    )
    .where(_USAGE.c.job_id == sa.bindparam("job"))
    .group_by(_USAGE.c.wasted)
)
_BOOKED = sa.exists().where(_USAGE.c.attempt_id == _ATTEMPTS.c.id)
_RESERVED_BY_JOB = (
    sa.select(
        _ATTEMPTS.c.outcome,
        sa.func.sum(_ATTEMPTS.c.reserved_tokens).label("tokens"),
        sa.func.sum(_ATTEMPTS.c.reserved_microusd).label("microusd"),
    )
    .join(_CALLS, _CALLS.c.effect_id == _ATTEMPTS.c.effect_id)
    .where(_CALLS.c.job_id == sa.bindparam("job"), _ATTEMPTS.c.outcome.in_(_OPEN), ~_BOOKED)
    .group_by(_ATTEMPTS.c.outcome)
)
_AT_RISK = sa.select(
    sa.func.sum(_ATTEMPTS.c.reserved_tokens).label("tokens"),
    sa.func.sum(_ATTEMPTS.c.reserved_microusd).label("microusd"),
).where(
    _ATTEMPTS.c.effect_id == sa.bindparam("effect"),
    _ATTEMPTS.c.outcome.in_(sorted(ATTEMPT.groups["UNKNOWN"])),
    ~_BOOKED,
)


class Sum(NamedTuple):
    """Tokens and micro-USD."""

    tokens: int = 0
    microusd: int = 0


class Held(NamedTuple):
    """What one budget row holds."""

    reserved: Sum
    spent: Sum


NOTHING = Held(Sum(), Sum())


def scopes(account: Account, in_month: str) -> tuple[tuple[str, str], ...]:
    """The budgets that an attempt's money moves, in their lock order."""
    return (
        ("month", in_month),
        ("provider", provider_key(in_month, account.account)),
        ("client_job", account.client_job_id),
    )


def order(account: Account) -> tuple[str, str, str]:
    """Whoever moves the money of several attempts goes by this order."""
    return account.workspace, account.account, account.client_job_id


def provider_key(in_month: str, account: str) -> str:
    """What a provider account's month stands under."""
    return f"{in_month} {account}"[:_KEY_CHARS_MAX]


def reserve(tx: Tx, account: Account, amount: Sum) -> bool:
    """Reserve an attempt's worst case in all its budgets; False, and nothing moved, where it does not fit."""
    wanted = scopes(account, month(tx.now))
    rows = [_ensure(tx, account.workspace, scope, key) for scope, key in wanted]
    quota = tx.first(_QUOTA, {"ws": account.workspace})
    bounds = [
        Sum(MONTHLY_TOKENS, -1) if quota is None else _limit(quota.monthly_tokens, quota.monthly_microusd),
        _limit(*account.bounds),
        _limit(rows[2].limit_tokens, rows[2].limit_microusd),
    ]
    if not all(_fits(row, bound, amount) for row, bound in zip(rows, bounds, strict=True)):
        return False
    for scope, key in wanted:
        _move(tx, account.workspace, scope, key, amount, Sum())
    return True


def unreserve(tx: Tx, account: Account, amount: Sum) -> None:
    """Take back, in the same transaction, a reserve for an attempt that was not begun."""
    for scope, key in scopes(account, month(tx.now)):
        _move(tx, account.workspace, scope, key, Sum(-amount.tokens, -amount.microusd), Sum())


def release(tx: Tx, account: Account, attempt: Row) -> None:
    """Give the reserve of an attempt back that cost nothing."""
    _settle(tx, account, attempt, Sum())


class Used(NamedTuple):
    """What a paid attempt used, and whether that was of no use.

    A priced attempt whose use cannot be read has cost its worst case, until somebody knows better.
    """

    account: Account
    attempt: Row
    usage: Usage
    wasted: bool

    @property
    def spent(self) -> Sum:
        """What it cost."""
        tokens = self.usage.total_tokens or self.usage.prompt_tokens + self.usage.output_tokens
        if not tokens and self.attempt.reserved_tokens:
            return Sum(self.attempt.reserved_tokens, self.attempt.reserved_microusd)
        return Sum(tokens, self.usage.microusd)


def book(tx: Tx, account: Account, attempt: Row, usage: Usage, wasted: bool) -> bool:
    """Write down what a paid attempt used and give its reserve back; False where that stands already."""
    used = Used(account, attempt, usage, wasted)
    if not tx.insert_new(_USAGE, [_metering(tx, used)], ("attempt_id",)):
        return False
    _add_used(tx, account, used.spent, wasted)
    _settle(tx, account, attempt, used.spent)
    return True


def book_all(tx: Tx, uses: Sequence[Used]) -> None:
    """The same for attempts which nobody has settled before."""
    tx.insert(_USAGE, [_metering(tx, used) for used in uses])
    in_order = sorted(uses, key=lambda used: (*order(used.account), used.account.job_id[::-1]))
    for (_, wasted), same in itertools.groupby(in_order, lambda used: (used.account, used.wasted)):
        together = list(same)
        _add_used(tx, together[0].account, _sum(used.spent for used in together), wasted)
    for used in in_order:
        _settle(tx, used.account, used.attempt, used.spent)


def _metering(tx: Tx, used: Used) -> dict[str, Any]:
    account, attempt, usage, wasted = used
    spent = used.spent
    return {
        "id": tx.new_id(),
        "workspace": account.workspace,
        "project": account.project,
        "job_id": account.job_id,
        "attempt_id": attempt.id,
        "client_job_id": account.client_job_id,
        "model": account.model,
        "prompt_tokens": usage.prompt_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "total_tokens": spent.tokens,
        "microusd": spent.microusd,
        "prices": usage.prices[:_PRICES_CHARS_MAX],
        "wasted": wasted,
        "created_at": tx.now,
    }


def limit_client_job(
    tx: Tx, workspace: str, client_job_id: str, tokens: int | None, microusd: int | None
) -> None:
    """Bound what all jobs of a client job may spend together; None leaves a bound away."""
    _ensure(tx, workspace, "client_job", client_job_id)
    here = {"ws": workspace, "in_scope": "client_job", "key": client_job_id}
    limited = sa.update(_BUDGETS).where(_HERE).values(limit_tokens=tokens, limit_microusd=microusd)
    tx.touched(limited.values(updated_at=tx.now), here)


def of_scope(tx: Tx, workspace: str, scope: str, key: str) -> Held:
    """What a budget holds; nothing where nobody has used it."""
    row = tx.first(sa.select(_BUDGETS).where(_HERE), {"ws": workspace, "in_scope": scope, "key": key})
    if row is None:
        return NOTHING
    return Held(Sum(row.reserved_tokens, row.reserved_microusd), Sum(row.spent_tokens, row.spent_microusd))


def used_by_client(tx: Tx, workspace: str, client_job_id: str) -> tuple[Sum, Sum]:
    """What all calls of a client job have used, those of free providers included: of use, and wasted."""
    (row,) = tx.all(_USED_BY_CLIENT, {"ws": workspace, "key": client_job_id})
    return Sum(row.tokens, row.microusd), Sum(row.wasted_tokens, row.wasted_microusd)


def period(instant: int) -> tuple[int, int]:
    """The UTC calendar month that an instant lies in: half-open, first instant to first instant."""
    here = datetime.fromtimestamp(instant // MICROSECONDS, UTC)
    first = datetime(here.year, here.month, 1, tzinfo=UTC)
    following = datetime(here.year + here.month // 12, here.month % 12 + 1, 1, tzinfo=UTC)
    return int(first.timestamp()) * MICROSECONDS, int(following.timestamp()) * MICROSECONDS


def metered(tx: Tx, workspace: str, begins: int, ends: int) -> Sum:
    """What all calls of a workspace have used in a half-open time, those of free providers included."""
    row = tx.first(_METERED, {"ws": workspace, "begins": begins, "ends": ends})
    return Sum() if row is None else Sum(row.tokens or 0, row.microusd or 0)


def quota(tx: Tx, workspace: str) -> tuple[int, int | None]:
    """The workspace's month: tokens, and micro-USD where they are bounded."""
    row = tx.first(_QUOTA, {"ws": workspace})
    return (MONTHLY_TOKENS, None) if row is None else (row.monthly_tokens, row.monthly_microusd)


def of_job(tx: Tx, job_id: str) -> Mapping[str, Sum]:
    """The money of a job: `paid` in all, `wasted` of that, `at_risk` in attempts of which nobody knows, and
    `reserved` for attempts under way.
    """
    used = {row.wasted: Sum(row.tokens, row.microusd) for row in tx.all(_USED_BY_JOB, {"job": job_id})}
    useful, wasted = used.get(False, Sum()), used.get(True, Sum())
    held = {row.outcome: Sum(row.tokens, row.microusd) for row in tx.all(_RESERVED_BY_JOB, {"job": job_id})}
    reserved = held.pop(ATTEMPT.initial, Sum())
    return {
        "paid": _sum((useful, wasted)),
        "wasted": wasted,
        "at_risk": _sum(held.values()),
        "reserved": reserved,
    }


def at_risk_of(tx: Tx, effect_id: str) -> Sum:
    """What is reserved for the attempts of one effect of which nobody knows."""
    row = tx.first(_AT_RISK, {"effect": effect_id})
    return Sum() if row is None else Sum(row.tokens or 0, row.microusd or 0)


def stored(tx: Tx) -> Mapping[tuple[str, str, str], Held]:
    """Every budget that holds anything, by (workspace, scope, key); `used` and `wasted` are usage sums."""
    rows = tx.all(sa.select(_BUDGETS))
    held = {
        (row.workspace, row.scope, row.scope_key): Held(
            Sum(row.reserved_tokens, row.reserved_microusd), Sum(row.spent_tokens, row.spent_microusd)
        )
        for row in rows
    }
    owner = (_SUMS.c.workspace, _SUMS.c.client_job_id)
    for row in tx.all(sa.select(*owner, *_USED_SUMS).group_by(*owner)):
        held[row.workspace, "used", row.client_job_id] = Held(Sum(), Sum(row.tokens, row.microusd))
        wasted = Sum(row.wasted_tokens, row.wasted_microusd)
        held[row.workspace, "wasted", row.client_job_id] = Held(Sum(), wasted)
    return {key: amounts for key, amounts in held.items() if amounts != NOTHING}


def recount(tx: Tx) -> Mapping[tuple[str, str, str], Held]:
    """What `stored` must say, counted from attempts and usage."""
    reserved = (
        sa.select(
            _ATTEMPTS.c.workspace,
            _ATTEMPTS.c.budget_month,
            _ATTEMPTS.c.provider,
            _ATTEMPTS.c.correlation_id,
        )
        .add_columns(
            sa.func.sum(_ATTEMPTS.c.reserved_tokens).label("tokens"),
            sa.func.sum(_ATTEMPTS.c.reserved_microusd).label("microusd"),
        )
        .where(_ATTEMPTS.c.outcome.in_(_OPEN), _ATTEMPTS.c.reserved_tokens > 0, ~_BOOKED)
        .group_by(
            _ATTEMPTS.c.workspace,
            _ATTEMPTS.c.budget_month,
            _ATTEMPTS.c.provider,
            _ATTEMPTS.c.correlation_id,
        )
    )
    spent = (
        sa.select(_USAGE.c.workspace, _ATTEMPTS.c.budget_month, _ATTEMPTS.c.provider, _USAGE.c.client_job_id)
        .add_columns(
            sa.func.sum(_USAGE.c.total_tokens).label("tokens"),
            sa.func.sum(_USAGE.c.microusd).label("microusd"),
        )
        .join(_ATTEMPTS, _ATTEMPTS.c.id == _USAGE.c.attempt_id)
        .where(_ATTEMPTS.c.reserved_tokens > 0)
        .group_by(_USAGE.c.workspace, _ATTEMPTS.c.budget_month, _ATTEMPTS.c.provider, _USAGE.c.client_job_id)
    )
    held = _recount_used(tx)
    for statement, of_spent in ((reserved, False), (spent, True)):
        for workspace, in_month, account, client_job, tokens, microusd in tx.all(statement):
            for key in (
                (workspace, "month", in_month),
                (workspace, "provider", provider_key(in_month, account)),
                (workspace, "client_job", client_job),
            ):
                before = held.get(key, NOTHING)
                more = _sum((before.spent if of_spent else before.reserved, Sum(tokens, microusd)))
                held[key] = Held(before.reserved, more) if of_spent else Held(more, before.spent)
    return held


def _recount_used(tx: Tx) -> dict[tuple[str, str, str], Held]:
    """What the usage sums must say, counted from the bookings."""
    owner = (_USAGE.c.workspace, _USAGE.c.wasted, _USAGE.c.client_job_id)
    rows = tx.all(
        sa.select(
            *owner,
            sa.func.sum(_USAGE.c.total_tokens).label("tokens"),
            sa.func.sum(_USAGE.c.microusd).label("microusd"),
        ).group_by(*owner)
    )
    counted = {
        (row.workspace, "wasted" if row.wasted else "used", row.client_job_id): Held(
            Sum(), Sum(row.tokens, row.microusd)
        )
        for row in rows
    }
    return {key: held for key, held in counted.items() if held != NOTHING}


def _ensure(tx: Tx, workspace: str, scope: str, key: str) -> Row:
    """The budget's row, made if new, and locked."""
    here = {"ws": workspace, "in_scope": scope, "key": key}
    row = tx.first(_LOCKED, here)
    if row is None:
        fresh = {"workspace": workspace, "scope": scope, "scope_key": key, "updated_at": tx.now}
        tx.insert_new(_BUDGETS, [fresh], _KEY)
        row = tx.first(_LOCKED, here)
    assert row is not None  # noqa: S101 - inserted above
    return row


def _sum(amounts: Iterable[Sum]) -> Sum:
    listed = list(amounts)
    return Sum(sum(one.tokens for one in listed), sum(one.microusd for one in listed))


def _limit(tokens: int | None, microusd: int | None) -> Sum:
    """A bound; −1 is none."""
    return Sum(-1 if tokens is None else tokens, -1 if microusd is None else microusd)


def _fits(row: Row, bound: Sum, amount: Sum) -> bool:
    tokens = row.reserved_tokens + row.spent_tokens + amount.tokens
    microusd = row.reserved_microusd + row.spent_microusd + amount.microusd
    if bound.microusd >= 0 and amount.tokens and not amount.microusd:
        return False  # nobody knows what this costs, so nobody can say that it fits
    return (bound.tokens < 0 or tokens <= bound.tokens) and (bound.microusd < 0 or microusd <= bound.microusd)


def _add_used(tx: Tx, account: Account, spent: Sum, wasted: bool) -> None:
    """Add a booking to its client job's sums. Its jobs share out the slots: calls seldom meet."""
    slot = int(account.job_id[-1:] or "0", 16)
    more = (0, 0, *spent) if wasted else (*spent, 0, 0)
    values = {
        "ws": account.workspace,
        "key": account.client_job_id,
        "in_slot": slot,
        **{f"more_{name}": amount for name, amount in zip(_USED, more, strict=True)},
    }
    if not tx.touched(_ADD_USED, values):
        fresh = {"workspace": account.workspace, "client_job_id": account.client_job_id, "slot": slot}
        tx.insert_new(_SUMS, [fresh], _SLOT_KEY)
        tx.touched(_ADD_USED, values)


def _settle(tx: Tx, account: Account, attempt: Row, spent: Sum) -> None:
    """Move the budgets by what an attempt held and what it cost; one that held nothing moves none."""
    if not attempt.reserved_tokens:
        return
    held = Sum(-attempt.reserved_tokens, -attempt.reserved_microusd)
    for scope, key in scopes(account, attempt.budget_month):
        _move(tx, account.workspace, scope, key, held, spent)


def _move(tx: Tx, workspace: str, scope: str, key: str, reserved: Sum, spent: Sum) -> None:
    tx.touched(
        _MOVE,
        {
            "ws": workspace,
            "in_scope": scope,
            "key": key,
            "reserve_tokens": reserved.tokens,
            "reserve_microusd": reserved.microusd,
            "spend_tokens": spent.tokens,
            "spend_microusd": spent.microusd,
            "now": tx.now,
        },
    )
