"""Transactions of retention: what is past its time goes, in bounded parts, and nothing that is active.

A manifest goes only after a transaction that held all its shards and the manifest itself proved that
everything linked to it is terminal, and wrote `reconciled_at`. From then on no caller finds it: a retry, a
publication or a promotion that comes later is refused, and one that came sooner is seen by the proof. Its
rows then go children first, a part a transaction, so that a crash leaves a manifest that the next walk goes
on with. Money stays: usage, budgets, effects and attempts outlive what they were for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.clock import seconds
from dragoman.kernel.limits import RETENTION_PAGE, RETENTION_PART
from dragoman.machines.machine import Machine
from dragoman.machines.tables import EFFECT, EXECUTION, INTENT, JOB, REQUEST, SUBMISSION
from dragoman.model.scopes import System
from dragoman.store.columns import is_set
from dragoman.store.rows import cursors, shards
from dragoman.store.schema import effects, engine, publishing, site
from dragoman.store.transaction import Row, Tx

_DAY_SECONDS = 24 * 3600
_CURSOR = "retention.manifests"
_M, _I, _S, _L = site.manifests, site.intents, site.submissions, site.submission_intents
_X, _P = publishing.executions, publishing.plans
_UNCERTAIN = sorted(EFFECT.open - {"FAILED_RETRYABLE", "FAILED_MANUAL", "READY"})


class Ended(NamedTuple):
    """A page of a walk: manifests whose time is over, where the walk stood, and where it is to go on."""

    manifest_ids: tuple[str, ...]
    after: str
    next_after: str


def cutoff(tx: Tx, days: int) -> int:
    """What has ended before this instant is past its time."""
    return tx.now - seconds(days * _DAY_SECONDS)


def ended_page(tx: Tx, scope: System, days: int, limit: int = RETENTION_PAGE) -> Ended:
    """The next manifests on the walk that ended long enough ago. Ids grow with time: the walk is over at the
    first page of which all is young.
    """
    after, before = cursors.value(tx, _CURSOR), cutoff(tx, days)
    rows = tx.all(
        sa.select(_M.c.id, _M.c.phase, _M.c.completed_at, _M.c.created_at)
        .where(_M.c.id > after)
        .order_by(_M.c.id)
        .limit(limit)
    )
    old = [row.id for row in rows if row.phase == "ended" and (row.completed_at or before) < before]
    more = len(rows) == limit and any(row.created_at < before for row in rows)
    return Ended(tuple(old), after, rows[-1].id if more else "")


def move_on(tx: Tx, scope: System, after: str) -> None:
    """The walk over manifests goes on from here."""
    cursors.move(tx, _CURSOR, after)


def prove_ended(tx: Tx, scope: System, manifest_id: str, days: int) -> bool:
    """Write down that a manifest may go, once all that is linked to it is proved terminal; False where it is
    not, or failed, or its time is not over.
    """
    manifest = _locked(tx, manifest_id)
    if manifest is None or manifest.phase != "ended" or manifest.completed_at is None:
        return False
    if manifest.reconciled_at is not None:
        return True
    if manifest.completed_at >= cutoff(tx, days) or unfinished(tx, manifest):
        return False
    mine = sa.update(_M).where(_M.c.id == manifest_id, _M.c.phase == "ended")
    return tx.touched(mine.values(reconciled_at=tx.now)) == 1


def unfinished(tx: Tx, manifest: Row) -> str:
    """Why an ended manifest has to stay; empty where nothing keeps it."""
    mine, whose = manifest.id, manifest.workspace
    if not manifest.canceled and (manifest.gaps or shards.totals(tx, mine)["failed"]):
        return "failed"
    if manifest.control_due_at is not None:
        return "a decision that the engine has not heard"
    return next((why for why, wanted in _keepers(mine, whose) if tx.first(wanted.limit(1)) is not None), "")


def _keepers(mine: str, whose: str) -> Iterator[tuple[str, sa.Select[Any]]]:
    """What keeps a manifest, and how it is found."""
    jobs, owed, asked = engine.jobs, effects.effects, publishing.publication_requests
    holders = _I.alias("holders")
    unsettled = sa.and_(_S.c.state == "accepted", _S.c.settled_at.is_(None))
    yield "an intent at work", sa.select(_I.c.id).where(_I.c.manifest_id == mine, _is_open(_I, INTENT))
    yield (
        "a submission that is not settled",
        sa.select(_S.c.id).where(_S.c.manifest_id == mine, sa.or_(_is_open(_S, SUBMISSION), unsettled)),
    )
    yield (
        "a job at work",
        sa.select(jobs.c.id).where(
            jobs.c.workspace == whose, jobs.c.client_job_id == mine, _is_open(jobs, JOB)
        ),
    )
    yield (
        "an effect whose end nobody knows",
        sa.select(owed.c.id).where(
            owed.c.workspace == whose, owed.c.correlation_id == mine, owed.c.state.in_(_UNCERTAIN)
        ),
    )
    yield (
        "a publication at work",
        sa.select(_X.c.id).where(_X.c.workspace == whose, _X.c.manifest_id == mine, _is_open(_X, EXECUTION)),
    )
    yield (
        "a publication asked for",
        sa.select(asked.c.id).where(
            asked.c.workspace == whose, asked.c.manifest_id == mine, _is_open(asked, REQUEST)
        ),
    )
    yield (
        "a manifest that goes on with what it left out",
        sa.select(_M.c.id).where(_M.c.promotes == mine, _M.c.phase == "enumerating"),
    )
    yield (
        "an intent that waits for one of its pairs",
        sa.select(_I.c.id)
        .select_from(_I.join(holders, _I.c.blocked_by == holders.c.id))
        .where(holders.c.manifest_id == mine, _I.c.parked_for == "pair"),
    )


def _is_open(table: sa.Table, machine: Machine) -> sa.ColumnElement[bool]:
    return table.c.state.in_(sorted(machine.open))


def _locked(tx: Tx, manifest_id: str) -> Row | None:
    """The manifest, held together with its shards: in the order of everybody who moves intents."""
    mine = site.shards.c.manifest_id == manifest_id
    tx.all(sa.select(site.shards.c.shard).where(mine).order_by(site.shards.c.shard).with_for_update())
    return tx.first(sa.select(_M).where(_M.c.id == manifest_id).with_for_update())


def remove_part(tx: Tx, scope: System, manifest_id: str) -> bool:
    """Remove the next part of a manifest that was proved ended; True while there is more of it."""
    manifest = _locked(tx, manifest_id)
    if manifest is None or manifest.phase != "ended" or manifest.reconciled_at is None:
        return False
    for part in (_intents, _executions, _plans, _requests, _submissions):
        if part(tx, manifest):
            return True
    for table in (site.field_sums, site.manifest_pages, site.shards, publishing.publication_sums):
        tx.touched(sa.delete(table).where(table.c.manifest_id == manifest_id))
    tx.touched(
        sa.delete(effects.history).where(
            effects.history.c.workspace == manifest.workspace, effects.history.c.subject == manifest_id
        )
    )
    tx.touched(
        sa.delete(engine.controls).where(
            engine.controls.c.workspace == manifest.workspace, engine.controls.c.client_job_id == manifest_id
        )
    )
    tx.touched(sa.update(_M).where(_M.c.promotes == manifest_id).values(promotes=None))
    tx.touched(sa.delete(_M).where(_M.c.id == manifest_id))
    return False


def _ids(tx: Tx, column: sa.Column[str], *where: sa.ColumnElement[bool]) -> list[str]:
    """The first ids of a part."""
    return [row[0] for row in tx.all(sa.select(column).where(*where).order_by(column).limit(RETENTION_PART))]


def _intents(tx: Tx, manifest: Row) -> int:
    """Links, results and history of some intents, and these."""
    ids = _ids(tx, _I.c.id, _I.c.manifest_id == manifest.id)
    if ids:
        tx.touched(sa.delete(_L).where(_L.c.intent_id.in_(ids)))
        tx.touched(sa.delete(site.results).where(site.results.c.intent_id.in_(ids)))
        history = effects.history
        tx.touched(
            sa.delete(history).where(history.c.workspace == manifest.workspace, history.c.subject.in_(ids))
        )
        tx.touched(sa.delete(_I).where(_I.c.id.in_(ids)))
    return len(ids)


def _executions(tx: Tx, manifest: Row) -> int:
    """Commands, steps and snapshots of some executions, and these."""
    ids = _ids(tx, _X.c.id, _X.c.workspace == manifest.workspace, _X.c.manifest_id == manifest.id)
    for execution_id in ids:
        steps, snapshots = publishing.publication_steps, publishing.snapshots
        keys = tx.all(sa.select(steps.c.step_key).where(steps.c.execution_id == execution_id))
        tx.touched(sa.delete(snapshots).where(snapshots.c.step_key.in_([row.step_key for row in keys])))
        tx.touched(sa.delete(steps).where(steps.c.execution_id == execution_id))
        commands = publishing.publication_commands
        tx.touched(sa.delete(commands).where(commands.c.execution_id == execution_id))
        tx.touched(sa.delete(_X).where(_X.c.id == execution_id))
    return len(ids)


def _plans(tx: Tx, manifest: Row) -> int:
    ids = _ids(tx, _P.c.id, _P.c.workspace == manifest.workspace, _P.c.manifest_id == manifest.id)
    if ids:
        steps = publishing.plan_steps
        tx.touched(sa.delete(steps).where(steps.c.plan_id.in_(ids)))
        tx.touched(sa.delete(_P).where(_P.c.id.in_(ids)))
    return len(ids)


def _requests(tx: Tx, manifest: Row) -> int:
    table = publishing.publication_requests
    ids = _ids(tx, table.c.id, table.c.workspace == manifest.workspace, table.c.manifest_id == manifest.id)
    if ids:
        tx.touched(sa.delete(table).where(table.c.id.in_(ids)))
    return len(ids)


def _submissions(tx: Tx, manifest: Row) -> int:
    """Links and receipts of some submissions, and these."""
    ids = _ids(tx, _S.c.id, _S.c.manifest_id == manifest.id)
    if ids:
        receipts = site.receipts
        about = (receipts.c.workspace == manifest.workspace, receipts.c.object_ref.in_(ids))
        tx.touched(sa.delete(receipts).where(*about))
        tx.touched(sa.delete(_L).where(_L.c.submission_id.in_(ids)))
        tx.touched(sa.delete(_S).where(_S.c.id.in_(ids)))
    return len(ids)


def past_time(tx: Tx, scope: System, days: int) -> dict[str, int]:
    """How much is past its time, by kind: what the next rounds look at. Failed manifests stay."""
    before = cutoff(tx, days)
    ended = sa.and_(_M.c.phase == "ended", _M.c.completed_at < before)
    sums = site.shards
    failed = sa.select(sums.c.shard).where(sums.c.manifest_id == _M.c.id, sums.c.failed > 0).exists()
    stays = sa.and_(~is_set(_M.c.canceled), sa.or_(failed, _M.c.gaps.is_not(None)))
    number = sa.func.count().label("number")
    return {
        "manifests": int(tx.scalar(sa.select(number).where(ended, ~stays))),
        "failed_manifests_kept": int(tx.scalar(sa.select(number).where(ended, stays))),
    }
