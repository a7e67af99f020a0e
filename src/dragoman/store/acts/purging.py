"""Transactions of retention on the translating side: source texts, answers, results, jobs, old receipts.

A job's source texts go once its last event has arrived, its results a month after its end; the job itself
stays twice as long, so that a submission sent again for as long as anybody asks finds its job and is not
paid again. Answers go once their call is closed. What is open, held or unknown is left alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.clock import seconds
from dragoman.kernel.limits import RETENTION_PAGE
from dragoman.machines.tables import EFFECT, JOB, OUTBOX, RECEIPT
from dragoman.model.jobs import QUARANTINED
from dragoman.model.scopes import System
from dragoman.store.acts import finishing
from dragoman.store.rows import cursors
from dragoman.store.schema import effects, engine, site
from dragoman.store.transaction import Row, Tx

_DAY_SECONDS = 24 * 3600
_KEPT_TIMES = 2
"""How many times the retention of results a job's row, its submission's key, is kept."""
_J, _F, _C, _A, _O = engine.jobs, engine.job_fields, engine.calls, engine.answers, engine.outbox
_R = site.receipts


class Walk(NamedTuple):
    """A page of a walk: what of it is to be looked at, where the walk stood, and where it is to go on."""

    ids: tuple[str, ...]
    after: str
    next_after: str


def _page(tx: Tx, name: str, key: sa.Column[str], since: sa.Column[Any], before: int, due: Any) -> Walk:
    """Ids grow with time: a walk is over at the first page of which all is young."""
    after = cursors.value(tx, name)
    rows = tx.all(
        sa.select(key.label("id"), since.label("since"), sa.case((due, 1), else_=0).label("due"))
        .where(key > after)
        .order_by(key)
        .limit(RETENTION_PAGE)
    )
    more = len(rows) == RETENTION_PAGE and any(row.since < before for row in rows)
    return Walk(tuple(row.id for row in rows if row.due), after, rows[-1].id if more else "")


def jobs_page(tx: Tx, scope: System, days: int) -> Walk:
    """Jobs that have ended and of which something may go."""
    before = tx.now - seconds(days * _DAY_SECONDS)
    due = sa.and_(
        _J.c.state.in_(sorted(JOB.terminal)), sa.or_(_J.c.purged_at.is_(None), _J.c.ended_at < before)
    )
    return _page(tx, "retention.jobs", _J.c.id, _J.c.created_at, tx.now, due)


def answers_page(tx: Tx, scope: System) -> Walk:
    """Answers whose call is closed."""
    attempts = effects.attempts
    closed = (
        sa.select(_C.c.id)
        .select_from(_C.join(attempts, attempts.c.effect_id == _C.c.effect_id))
        .where(attempts.c.id == _A.c.attempt_id, _C.c.state == "closed")
        .exists()
    )
    return _page(tx, "retention.answers", _A.c.attempt_id, _A.c.received_at, tx.now, closed)


def receipts_page(tx: Tx, scope: System, days: int) -> Walk:
    """Receipts that were dealt with, so long ago."""
    before = tx.now - seconds(days * _DAY_SECONDS)
    due = sa.and_(_R.c.state.in_(sorted(RECEIPT.terminal)), _R.c.received_at < before)
    return _page(tx, "retention.receipts", _R.c.id, _R.c.received_at, before, due)


def move_on(tx: Tx, scope: System, kind: str, after: str) -> None:
    """The walk over this kind goes on from here."""
    cursors.move(tx, f"retention.{kind}", after)


def purge_answers(tx: Tx, scope: System, attempt_ids: tuple[str, ...]) -> int:
    """Remove answers, all of calls that were closed: a closed call is never opened again."""
    return tx.touched(sa.delete(_A).where(_A.c.attempt_id.in_(list(attempt_ids)))) if attempt_ids else 0


def purge_receipts(tx: Tx, scope: System, receipt_ids: tuple[str, ...]) -> int:
    """Remove receipts that were dealt with."""
    if not receipt_ids:
        return 0
    dealt = _R.c.state.in_(sorted(RECEIPT.terminal))
    return tx.touched(sa.delete(_R).where(_R.c.id.in_(list(receipt_ids)), dealt))


def purge_job(tx: Tx, scope: System, job_id: str, days: int) -> bool:
    """Take of an ended job what is past its time: source texts, results, the job; True where anything went.

    Holds the job, as a redrive does: whoever comes second sees what the first one did.
    """
    job = tx.first(sa.select(_J).where(_J.c.id == job_id).with_for_update())
    if job is None or job.state not in JOB.terminal or job.ended_at is None or _is_unknown(tx, job):
        return False
    age = tx.now - job.ended_at
    kept = seconds(days * _DAY_SECONDS)
    if _has_open_call(tx, job):
        if job.error_code != QUARANTINED or age < kept:
            return False
        finishing.close_calls(tx, job.id)  # from now on nobody can have it tried again
    if age >= _KEPT_TIMES * kept and not _is_owed(tx, job):
        _remove(tx, job)
        return True
    gone = False
    if job.purged_at is None and (age >= kept or (job.error_code != QUARANTINED and not _is_owed(tx, job))):
        texts = sa.update(_F).where(_F.c.job_id == job_id)
        tx.touched(texts.values(text=None, note=None, context=None))
        tx.touched(sa.update(_J).where(_J.c.id == job_id).values(purged_at=tx.now, library=None))
        gone = True
    if age >= kept and not _is_owed(tx, job):
        results = sa.update(_F).where(_F.c.job_id == job_id, _F.c.result.is_not(None))
        gone = tx.touched(results.values(result=None, missing=None)) > 0 or gone
    return gone


def _is_owed(tx: Tx, job: Row) -> bool:
    """Whether an event of a job is still to arrive. One without an address never is: the site asks."""
    to_arrive = _O.c.state.in_(sorted(OUTBOX.open | {"dead"}))
    owed = sa.select(_O.c.id).where(_O.c.job_id == job.id, _O.c.url != "", to_arrive)
    return tx.first(owed.limit(1)) is not None or (not job.callback_url and not _was_read(tx, job))


def _was_read(tx: Tx, job: Row) -> bool:
    """Whether a site that only asks has had time to: reconciliation asks for a month at most."""
    return bool(job.ended_at < tx.now - seconds(_DAY_SECONDS * 30))


def _is_unknown(tx: Tx, job: Row) -> bool:
    """Whether nobody knows what became of a call of a job."""
    effect = effects.effects
    unknown = effect.c.state.in_(sorted({"UNKNOWN", "IN_FLIGHT", "PROVIDER_ACCEPTED_LOCAL_PENDING"}))
    lost = sa.select(_C.c.id).select_from(_C.join(effect, effect.c.id == _C.c.effect_id))
    return tx.first(lost.where(_C.c.job_id == job.id, unknown).limit(1)) is not None


def _has_open_call(tx: Tx, job: Row) -> bool:
    """Whether a call of a job is open or held: of an ended one, where it is in quarantine."""
    open_call = sa.select(_C.c.id).where(_C.c.job_id == job.id, _C.c.state != "closed")
    return tx.first(open_call.limit(1)) is not None


def _remove(tx: Tx, job: Row) -> None:
    """Remove a job with all that is its own; money, effects and attempts stay."""
    for table in (_F, engine.job_items, _C, _O):
        tx.touched(sa.delete(table).where(table.c.job_id == job.id))
    tx.touched(sa.delete(_J).where(_J.c.id == job.id))


assert EFFECT.states >= {"UNKNOWN", "IN_FLIGHT", "PROVIDER_ACCEPTED_LOCAL_PENDING"}  # noqa: S101
