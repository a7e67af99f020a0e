"""What the database says of everybody's work together, for who watches: counted, never named.

Asked of small tables and of indexes, so that it may be asked every few seconds. It tells of no workspace.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.clock import MICROSECONDS, month, seconds
from dragoman.kernel.limits import PAUSES_TOLD, WORKER_SEEN_SECONDS
from dragoman.machines.tables import INTENT, JOB, MANIFEST
from dragoman.model.scopes import System
from dragoman.store.acts import readiness
from dragoman.store.rows import outbox
from dragoman.store.schema import effects, engine, site
from dragoman.store.transaction import Tx

_MANIFESTS, _SHARDS, _JOBS, _OUTBOX = site.manifests, site.shards, engine.jobs, engine.outbox
_LANES, _BUDGETS, _PAUSES, _WORKERS = engine.lanes, engine.budgets, engine.pauses, effects.workers


class Measures(NamedTuple):
    """Counts by state; ages and pauses in seconds; money and tokens of this calendar month (UTC)."""

    outbox: dict[str, int]
    """`due`, `waiting` for a later try, `delivering`, `delivered`, `dead`."""
    manifests: dict[str, int]
    intents: dict[str, int]
    """Of manifests that have not ended."""
    jobs: dict[tuple[str, ...], float]
    """By (state, what they are parked for) of jobs that have not ended."""
    queue_depth: int
    """Jobs that are due and wait for a worker."""
    lanes: dict[str, int]
    oldest_due_seconds: dict[str, int]
    money: dict[str, int]
    """`spent` and `reserved`, in micro-USD."""
    tokens: dict[str, int]
    pauses_seconds: dict[tuple[str, ...], float]
    """By (provider, code), how much longer nobody calls it."""
    workers: dict[str, int]
    """Processes seen lately, by role."""

    def told(self) -> dict[str, Any]:
        """The same as plain JSON: what is counted by two words stands under both."""
        return {
            name: {" ".join(filter(None, key)): number for key, number in value.items()}
            if name in ("jobs", "pauses_seconds")
            else value
            for name, value in self._asdict().items()
        }


def measure(tx: Tx, _system: System) -> Measures:
    """Everything at once, of one snapshot."""
    spent = _spent(tx)
    return Measures(
        outbox=outbox_by_state(tx, _system),
        manifests=_phases(tx),
        intents=_intents(tx),
        jobs=_jobs(tx),
        queue_depth=_number(tx, _JOBS.c.state == JOB.initial, _JOBS.c.next_attempt_at <= tx.now),
        lanes={
            "ready": _number(tx, _LANES.c.ready_at <= tx.now),
            "resting": _number(tx, sa.or_(_LANES.c.ready_at.is_(None), _LANES.c.ready_at > tx.now)),
        },
        oldest_due_seconds=readiness.oldest_due(tx),
        money={"spent": spent[0], "reserved": spent[1]},
        tokens={"spent": spent[2], "reserved": spent[3]},
        pauses_seconds=_pauses(tx),
        workers=_workers(tx),
    )


def outbox_by_state(tx: Tx, system: System) -> dict[str, int]:
    """How many events are due, wait for a later try, are being sent, have arrived, are dead."""
    counts = dict(outbox.counts(tx, system))
    due = _number(tx, _OUTBOX.c.state == "pending", _OUTBOX.c.next_attempt_at <= tx.now)
    return {"due": due, "waiting": counts.pop("pending") - due, **counts}


def _number(tx: Tx, *where: sa.ColumnElement[bool]) -> int:
    return int(tx.scalar(sa.select(sa.func.count().label("number")).where(*where)))


def _phases(tx: Tx) -> dict[str, int]:
    counted = (
        sa.select(_MANIFESTS.c.phase, sa.func.count().label("number"))
        .where(_MANIFESTS.c.phase.in_(sorted(MANIFEST.open)))
        .group_by(_MANIFESTS.c.phase)
    )
    return dict.fromkeys(sorted(MANIFEST.open), 0) | {row.phase: row.number for row in tx.all(counted)}


def _intents(tx: Tx) -> dict[str, int]:
    sums = [
        sa.func.coalesce(sa.func.sum(_SHARDS.c[state]), 0).label(state) for state in sorted(INTENT.states)
    ]
    open_ones = sa.select(_MANIFESTS.c.id).where(_MANIFESTS.c.phase.in_(sorted(MANIFEST.open)))
    row = tx.first(sa.select(*sums).where(_SHARDS.c.manifest_id.in_(open_ones)))
    return {state: int(getattr(row, state)) for state in sorted(INTENT.states)}


def _jobs(tx: Tx) -> dict[tuple[str, ...], float]:
    counted = (
        sa.select(_JOBS.c.state, _JOBS.c.parked_for, sa.func.count().label("number"))
        .where(_JOBS.c.state.in_(sorted(JOB.open)))
        .group_by(_JOBS.c.state, _JOBS.c.parked_for)
    )
    return {(state, ""): 0 for state in sorted(JOB.open)} | {
        (row.state, row.parked_for): row.number for row in tx.all(counted)
    }


def _spent(tx: Tx) -> tuple[int, ...]:
    names = ("spent_microusd", "reserved_microusd", "spent_tokens", "reserved_tokens")
    sums = [sa.func.coalesce(sa.func.sum(_BUDGETS.c[name]), 0).label(name) for name in names]
    row = tx.first(sa.select(*sums).where(_BUDGETS.c.scope == "month", _BUDGETS.c.scope_key == month(tx.now)))
    return tuple(int(getattr(row, name)) for name in names)


def _pauses(tx: Tx) -> dict[tuple[str, ...], float]:
    running = sa.select(_PAUSES).where(_PAUSES.c.until > tx.now).order_by(_PAUSES.c.until.desc())
    longest: dict[tuple[str, ...], float] = {}
    for row in tx.all(running.limit(PAUSES_TOLD)):
        longest.setdefault((row.account.partition("@")[0], row.code), (row.until - tx.now) / MICROSECONDS)
    return longest


def _workers(tx: Tx) -> dict[str, int]:
    seen = tx.all(
        sa.select(_WORKERS.c.role).where(_WORKERS.c.last_seen_at >= tx.now - seconds(WORKER_SEEN_SECONDS))
    )
    return dict(Counter(role for row in seen for role in row.role.split("+")))
