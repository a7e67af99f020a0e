"""Rows of `submissions` and `submission_intents`: the exact bytes of one request, and which generations are
in it.

Neither bytes nor fingerprint of a row ever change; acceptance purges the bytes, nothing else does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.clock import seconds
from dragoman.kernel.limits import RECONCILE_AGE_SECONDS, SUBMISSION_LEASE_SECONDS, SWEEP_PAGE
from dragoman.machines.tables import SUBMISSION
from dragoman.model.intents import JOB_LOST, USAGE, Sender, SubmissionDraft
from dragoman.store import leases
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_SUBMISSIONS, _LINKS = tables.submissions, tables.submission_intents


def insert(
    tx: Tx, workspace: str, manifest_id: str, draft: SubmissionDraft, owner: str, sender: Sender
) -> None:
    """Persist a drafted submission with its links, leased to its maker from creation on (fence 1); without
    an `owner` it is due for whoever comes.
    """
    row = {
        "id": draft.id,
        "workspace": workspace,
        "manifest_id": manifest_id,
        "state": "submitting" if owner else SUBMISSION.initial,
        "engine": sender.engine,
        "secret_mark": sender.mark,
        "fingerprint": draft.fingerprint,
        "body": draft.body,
        "next_attempt_at": tx.now,
        "created_at": tx.now,
        "updated_at": tx.now,
        "lease_owner": owner or None,
        "lease_expires_at": tx.now + seconds(SUBMISSION_LEASE_SECONDS) if owner else None,
        "fence": 1 if owner else 0,
    }
    tx.insert(_SUBMISSIONS, [row])
    links = [
        {
            "submission_id": draft.id,
            "intent_id": link.intent_id,
            "part": link.part,
            "parts": link.parts,
            "generation": link.generation,
            "ref": link.ref,
            "fields_hash": link.fields_hash,
        }
        for link in draft.links
    ]
    tx.insert(_LINKS, links)


def claim(tx: Tx, owner: str, limit: int, engine: str) -> list[Row]:
    """Take submissions to be sent by this account: due ones, and those whose sender is gone."""
    return leases.claim(
        tx,
        _SUBMISSIONS,
        ready=sa.and_(
            _SUBMISSIONS.c.state.in_(sorted(SUBMISSION.open)),
            _SUBMISSIONS.c.next_attempt_at <= tx.now,
            _SUBMISSIONS.c.engine == engine,
        ),
        order=[_SUBMISSIONS.c.next_attempt_at, _SUBMISSIONS.c.id],
        limit=limit,
        owner=owner,
        lease_seconds=SUBMISSION_LEASE_SECONDS,
        set_={"state": "submitting", "updated_at": tx.now},
    )


def mark(tx: Tx, submission_id: str, secret_mark: str) -> None:
    """Write down under which secret a submission is first sent that was made while there was none."""
    unmarked = (_SUBMISSIONS.c.id == submission_id, _SUBMISSIONS.c.secret_mark == "")
    tx.touched(sa.update(_SUBMISSIONS).where(*unmarked).values(secret_mark=secret_mark))


_UNSETTLED = sa.or_(_SUBMISSIONS.c.next_attempt_at.is_not(None), _SUBMISSIONS.c.reconcile_at.is_not(None))


def marks_in_use(tx: Tx, engine: str) -> dict[str, int]:
    """Secret mark → how many open submissions of this account were sent under it."""
    mine = sa.and_(_SUBMISSIONS.c.engine == engine, _SUBMISSIONS.c.secret_mark != "", _UNSETTLED)
    counted = sa.select(_SUBMISSIONS.c.secret_mark, sa.func.count().label("number")).where(mine)
    return {row.secret_mark: row.number for row in tx.all(counted.group_by(_SUBMISSIONS.c.secret_mark))}


def of_other_engines(tx: Tx, engine: str) -> dict[str, int]:
    """Engine account → how many open submissions were made for it, but for this one."""
    others = sa.and_(_SUBMISSIONS.c.engine != engine, _UNSETTLED)
    counted = sa.select(_SUBMISSIONS.c.engine, sa.func.count().label("number")).where(others)
    return {row.engine: row.number for row in tx.all(counted.group_by(_SUBMISSIONS.c.engine))}


def wake(tx: Tx, manifest_id: str) -> None:
    """Let the submissions of a manifest that wait to be sent again be due now."""
    waiting = (_SUBMISSIONS.c.manifest_id == manifest_id, _SUBMISSIONS.c.state == "retry_wait")
    tx.touched(sa.update(_SUBMISSIONS).where(*waiting).values(next_attempt_at=tx.now))


def find(tx: Tx, submission_id: str, lock: bool = False) -> Row | None:
    """One submission, locked on demand."""
    query = sa.select(_SUBMISSIONS).where(_SUBMISSIONS.c.id == submission_id)
    return tx.first(query.with_for_update() if lock else query)


def finish_sending(tx: Tx, submission_id: str, fence: int, state: str, **values: Any) -> bool:
    """End a send under its fence: accepted, retry_wait or failed; the lease is gone with it."""
    stamped = {
        "state": state,
        "next_attempt_at": None,
        "updated_at": tx.now,
        "lease_owner": None,
        "lease_expires_at": None,
        **values,
    }
    return (
        tx.touched(
            sa.update(_SUBMISSIONS)
            .where(
                _SUBMISSIONS.c.id == submission_id,
                _SUBMISSIONS.c.fence == fence,
                _SUBMISSIONS.c.state == "submitting",
            )
            .values(**stamped)
        )
        == 1
    )


def accept(tx: Tx, submission_id: str, fence: int, remote_job_id: str) -> bool:
    """Record the engine's job and purge the bytes."""
    return finish_sending(
        tx,
        submission_id,
        fence,
        "accepted",
        remote_job_id=remote_job_id,
        parked_for="",
        body=None,
        payload_purged_at=tx.now,
        accepted_at=tx.now,
        reconcile_at=tx.now + seconds(RECONCILE_AGE_SECONDS),
        error_code=None,
        error_message=None,
    )


def links(tx: Tx, submission_id: str, open_only: bool = False) -> list[Row]:
    """The items of a submission."""
    where = [_LINKS.c.submission_id == submission_id]
    if open_only:
        where.append(_LINKS.c.settled_at.is_(None))
    return tx.all(sa.select(_LINKS).where(*where))


def settle_links(tx: Tx, submission_id: str, refs: Sequence[str]) -> None:
    """Mark items as settled, and the submission when it was the last one."""
    tx.touched(
        sa.update(_LINKS)
        .where(
            _LINKS.c.submission_id == submission_id,
            _LINKS.c.ref.in_(list(refs)),
            _LINKS.c.settled_at.is_(None),
        )
        .values(settled_at=tx.now)
    )
    still_open = tx.scalar(
        sa.select(sa.func.count()).where(
            _LINKS.c.submission_id == submission_id, _LINKS.c.settled_at.is_(None)
        )
    )
    if not still_open:
        tx.touched(
            sa.update(_SUBMISSIONS)
            .where(_SUBMISSIONS.c.id == submission_id)
            .values(
                settled_at=tx.now, reconcile_at=None, updated_at=tx.now, error_code=None, error_message=None
            )
        )


def open_parts(tx: Tx, generations: Sequence[tuple[str, int]]) -> set[str]:
    """Which of these (intent, generation) still have an unsettled part somewhere."""
    if not generations:
        return set()
    wanted = dict(generations)
    rows = tx.all(
        sa.select(_LINKS.c.intent_id, _LINKS.c.generation).where(
            _LINKS.c.intent_id.in_(list(wanted)), _LINKS.c.settled_at.is_(None)
        )
    )
    return {row.intent_id for row in rows if row.generation == wanted[row.intent_id]}


def due_for_inquiry(tx: Tx, limit: int, age_seconds: float, engine: str) -> list[Row]:
    """Accepted submissions that the engine is to be asked about; each one's next turn is a minute away.

    Whoever asks more often takes them before their time.
    """
    until = tx.now + seconds(RECONCILE_AGE_SECONDS - age_seconds)
    rows = tx.all(
        sa.select(_SUBMISSIONS)
        .where(_SUBMISSIONS.c.reconcile_at <= until, _SUBMISSIONS.c.engine == engine)
        .order_by(_SUBMISSIONS.c.reconcile_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    tx.touched(
        sa.update(_SUBMISSIONS)
        .where(_SUBMISSIONS.c.id.in_([row.id for row in rows]))
        .values(reconcile_at=tx.now + seconds(RECONCILE_AGE_SECONDS))
    )
    return rows


def unknown_to(tx: Tx, manifest_id: str, engine: str, code: str) -> list[Row]:
    """Accepted submissions of a manifest about which this account was told `code`, a page of them."""
    return tx.all(
        sa.select(_SUBMISSIONS)
        .where(
            _SUBMISSIONS.c.manifest_id == manifest_id,
            _SUBMISSIONS.c.engine == engine,
            _SUBMISSIONS.c.error_code == code,
            _SUBMISSIONS.c.reconcile_at.is_not(None),
        )
        .order_by(_SUBMISSIONS.c.id)
        .limit(SWEEP_PAGE)
    )


def lost(tx: Tx, manifest_id: str) -> int:
    """How many jobs of a manifest were given up, and have not told since what they cost."""
    where = (_SUBMISSIONS.c.manifest_id == manifest_id, _SUBMISSIONS.c.error_code == JOB_LOST)
    return int(tx.scalar(sa.select(sa.func.count()).where(*where)) or 0)


def come_first(tx: Tx, ids: Sequence[str]) -> None:
    """Let these be due for inquiry now."""
    waiting = (_SUBMISSIONS.c.id.in_(list(ids)), _SUBMISSIONS.c.reconcile_at.is_not(None))
    tx.touched(sa.update(_SUBMISSIONS).where(*waiting).values(reconcile_at=tx.now))


def note_parking(tx: Tx, submission_id: str, parked_for: str) -> None:
    """Write down what the engine's job waits for, where that is news."""
    other = (_SUBMISSIONS.c.id == submission_id, _SUBMISSIONS.c.parked_for != parked_for)
    tx.touched(sa.update(_SUBMISSIONS).where(*other).values(parked_for=parked_for, updated_at=tx.now))


def parked(tx: Tx, manifest_id: str) -> dict[str, str]:
    """Submission → what it waits for, of a manifest's open submissions that wait for something."""
    waiting = sa.select(_SUBMISSIONS.c.id, _SUBMISSIONS.c.parked_for).where(
        _SUBMISSIONS.c.manifest_id == manifest_id,
        _SUBMISSIONS.c.parked_for != "",
        _SUBMISSIONS.c.settled_at.is_(None),
    )
    return {row.id: row.parked_for for row in tx.all(waiting)}


def note_error(tx: Tx, submission_id: str, code: str, message: str) -> None:
    """Write down what is wrong with a submission now; '' for nothing any more."""
    told = {"error_code": code or None, "error_message": message[:500] or None, "updated_at": tx.now}
    tx.touched(sa.update(_SUBMISSIONS).where(_SUBMISSIONS.c.id == submission_id).values(**told))


def note_usage(tx: Tx, submission_id: str, usage: Mapping[str, int]) -> None:
    """Write down what the engine says that a job has cost; an event that comes late takes nothing back."""
    paid = usage.get("paid_tokens", 0)
    newer = sa.update(_SUBMISSIONS).where(
        _SUBMISSIONS.c.id == submission_id, _SUBMISSIONS.c.paid_tokens <= paid
    )
    tx.touched(newer.values(**usage))


def usage_of(tx: Tx, manifest_id: str) -> Mapping[str, int]:
    """What the engine has said that the ended jobs of a manifest have cost."""
    sums = [sa.func.coalesce(sa.func.sum(_SUBMISSIONS.c[name]), 0).label(name) for name in USAGE]
    row = tx.first(sa.select(*sums).where(_SUBMISSIONS.c.manifest_id == manifest_id))
    return {name: int(getattr(row, name)) for name in USAGE}
