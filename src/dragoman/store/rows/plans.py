"""Rows of `plans` and `plan_steps`: what is to be written where. Once written down, they never change."""

from __future__ import annotations

import json
from collections.abc import Sequence

import sqlalchemy as sa

from dragoman.kernel.canonical import fingerprint
from dragoman.model.publications import PlannedStep, Unit
from dragoman.store.schema import publishing as tables
from dragoman.store.transaction import Row, Tx

_PLANS, _STEPS = tables.plans, tables.plan_steps


def insert(tx: Tx, workspace: str, manifest_id: str, executor: str, steps: Sequence[PlannedStep]) -> str:
    """Write a plan down for good; its id."""
    plan_id = tx.new_id()
    row = {
        "id": plan_id,
        "workspace": workspace,
        "manifest_id": manifest_id,
        "executor": executor,
        "steps": len(steps),
        "fingerprint": fingerprint_of(executor, steps),
        "created_at": tx.now,
    }
    tx.insert(_PLANS, [row])
    tx.insert(_STEPS, [_step_row(plan_id, ordinal, step) for ordinal, step in enumerate(steps, 1)])
    return plan_id


def find(tx: Tx, plan_id: str, lock: bool = False) -> Row | None:
    """One plan."""
    asked = sa.select(_PLANS).where(_PLANS.c.id == plan_id)
    return tx.first(asked.with_for_update() if lock else asked)


def older(tx: Tx, workspace: str, manifest_id: str, than: Row | None, limit: int) -> list[Row]:
    """The next plans of a manifest, newest first, from the top or behind one of them."""
    where = [_PLANS.c.workspace == workspace, _PLANS.c.manifest_id == manifest_id]
    if than is not None:
        same_time = sa.and_(_PLANS.c.created_at == than.created_at, _PLANS.c.id < than.id)
        where.append(sa.or_(_PLANS.c.created_at < than.created_at, same_time))
    newest_first = (_PLANS.c.created_at.desc(), _PLANS.c.id.desc())
    return tx.all(sa.select(_PLANS).where(*where).order_by(*newest_first).limit(limit))


def steps(tx: Tx, plan_id: str) -> list[tuple[int, PlannedStep]]:
    """All steps of a plan with their ordinals, in order."""
    rows = tx.all(sa.select(_STEPS).where(_STEPS.c.plan_id == plan_id).order_by(_STEPS.c.ordinal))
    return [(row.ordinal, _step_of(row)) for row in rows]


def places(tx: Tx, plan_id: str, ordinals: Sequence[int]) -> list[Row]:
    """Ordinal, document, locale and target of steps."""
    shown = (_STEPS.c.ordinal, _STEPS.c.document, _STEPS.c.locale, _STEPS.c.target)
    return tx.all(sa.select(*shown).where(_STEPS.c.plan_id == plan_id, _STEPS.c.ordinal.in_(list(ordinals))))


def fingerprint_of(executor: str, steps: Sequence[PlannedStep]) -> str:
    """What a plan is, as one hash over everything that its steps say."""
    return fingerprint([executor, [_identity(step) for step in steps]])


def _identity(step: PlannedStep) -> list[object]:
    return [
        step.intent_id,
        step.generation,
        step.document,
        step.locale,
        step.target,
        step.expected_fingerprint,
        step.write_fingerprint,
        [_unit_row(unit) for unit in step.units],
    ]


def _unit_row(unit: Unit) -> list[str | None]:
    return [unit.key_hash, unit.source_hash, unit.write_hash, unit.expected_hash]


def _step_row(plan_id: str, ordinal: int, step: PlannedStep) -> dict[str, object]:
    return {
        "plan_id": plan_id,
        "ordinal": ordinal,
        "intent_id": step.intent_id,
        "generation": step.generation,
        "document": step.document,
        "locale": step.locale,
        "target": step.target,
        "expected_fingerprint": step.expected_fingerprint,
        "write_fingerprint": step.write_fingerprint,
        "units": json.dumps([_unit_row(unit) for unit in step.units]),
    }


def _step_of(row: Row) -> PlannedStep:
    return PlannedStep(
        intent_id=row.intent_id,
        generation=row.generation,
        document=row.document,
        locale=row.locale,
        target=row.target,
        expected_fingerprint=row.expected_fingerprint,
        write_fingerprint=row.write_fingerprint,
        units=tuple(Unit(*unit) for unit in json.loads(row.units)),
    )
