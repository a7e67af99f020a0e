"""Transactions of planning: publication requests become one plan, one execution, its steps and its command.

Nothing is called in here. A process that dies while it plans leaves leased requests, which are planned anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import sqlalchemy as sa

from dragoman.kernel import backoff, clock
from dragoman.kernel.errors import LeaseLost
from dragoman.kernel.limits import (
    PLAN_INTENTS_MAX,
    RETRIES_PER_GENERATION,
    RETRY_FIRST_SECONDS,
    RETRY_MAX_SECONDS,
)
from dragoman.machines.tables import REQUEST
from dragoman.model.publications import (
    PlannedStep,
    PlanningWork,
    Postponed,
    Publishable,
    Record,
    Result,
)
from dragoman.model.scopes import System
from dragoman.store.rows import executions, intents, manifests, plans, requests, texts
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_INTENTS = tables.intents
_REQUESTS_AT_ONCE = 20


def claim_requests(tx: Tx, owner: str, lease_seconds: float) -> PlanningWork | None:
    """Take due requests of one manifest, as many as one plan holds; a bigger one is taken bit by bit.

    One for all that has settled is taken alone, a page at a time.
    """
    rows = requests.claim(tx, owner, lease_seconds, _REQUESTS_AT_ONCE)
    if not rows:
        return None
    manifest = manifests.find(tx, System(), rows[0].manifest_id)
    if manifest is None:
        requests.move(tx, [(row.id, row.fence) for row in rows], state=_ended("give_up"))
        return None
    taken, intent_ids, behind = _next_page(tx, rows[0]) if rows[0].behind is not None else _fitting(rows)
    requests.move(tx, [(row.id, row.fence) for row in rows if row not in taken])
    return PlanningWork(
        workspace=manifest.workspace,
        manifest_id=manifest.id,
        project_id=manifest.project_id,
        settings=json.loads(manifest.settings),
        requests=tuple((row.id, row.fence) for row in taken),
        attempt=1 + max(row.attempt_count for row in taken),
        intent_ids=tuple(intent_ids),
        behind=behind,
    )


def _fitting(rows: Sequence[Row]) -> tuple[list[Row], list[str], None]:
    """The first requests whose intents fit into one plan, at least one of them, and those intents."""
    taken: list[Row] = []
    intent_ids: list[str] = []
    for row in rows:
        asked = [name for name in json.loads(row.intents) if name not in intent_ids]
        if row.behind is not None or (taken and len(intent_ids) + len(asked) > PLAN_INTENTS_MAX):
            break
        taken.append(row)
        intent_ids += asked
    return taken, intent_ids, None


def _next_page(tx: Tx, row: Row) -> tuple[list[Row], list[str], int | None]:
    """A request for all, the next intents of it, and the last one's ordinal where there are more."""
    found = intents.settled_behind(tx, row.manifest_id, row.behind, PLAN_INTENTS_MAX + 1)
    page = found[:PLAN_INTENTS_MAX]
    return [row], [intent.id for intent in page], page[-1].ordinal if len(found) > len(page) else None


def publishable(tx: Tx, work: PlanningWork) -> list[Publishable]:
    """What is to be published of a request: at most one plan's worth of settled intents that have results."""
    named = sorted(work.intent_ids)[:PLAN_INTENTS_MAX]
    rows = tx.all(
        sa.select(_INTENTS)
        .where(
            _INTENTS.c.id.in_(named),
            _INTENTS.c.manifest_id == work.manifest_id,
            _INTENTS.c.state.in_(["completed", "failed"]),
        )
        .order_by(_INTENTS.c.document, _INTENTS.c.locale)
    )
    found: dict[str, list[Result]] = {row.id: [] for row in rows}
    for row in texts.results(tx, list(found)) if found else []:
        found[row.intent_id].append(result_of(row))
    records = _records(tx, work.project_id, [(row.document, row.locale) for row in rows])
    return [
        Publishable(
            intent_id=row.id,
            generation=row.generation,
            state=row.state,
            document=row.document,
            locale=row.locale,
            results=tuple(found[row.id]),
            records=records.get((row.document, row.locale), {}),
            selection=row.selection_fingerprint or "",
        )
        for row in rows
        if found[row.id]
    ]


def result_of(row: Row) -> Result:
    """A row of `results` as a noun."""
    text = json.loads(row.text) if row.plural and row.text is not None else row.text
    return Result(row.field_key, row.key_hash, row.source_hash, None if row.code else text)


def _records(
    tx: Tx, project_id: str, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], dict[str, Record]]:
    known: dict[tuple[str, str], dict[str, Record]] = {}
    for row in texts.entries(tx, project_id, pairs) if pairs else []:
        record = Record(row.source_hash, row.written_hash, row.origin, row.manifest_id)
        known.setdefault((row.document, row.locale), {})[row.key_hash] = record
    return known


def write_plan(
    tx: Tx, work: PlanningWork, steps: Sequence[PlannedStep], postponed: Sequence[Postponed]
) -> str | None:
    """Write plan, execution, steps and command in one; gives the plan's id.

    What could not be read is asked for anew by a request of its own; where nothing could, there is no plan
    (None). Raises `LeaseLost` when a request is no longer ours: then nothing is written.
    """
    plan_id = _insert(tx, work, steps) if steps or not postponed else None
    if not requests.hold(
        tx, work.requests
    ):  # after the commands that the plan overtakes: nobody waits in turn
        raise LeaseLost(f"a publication request of manifest {work.manifest_id} is planned by somebody else")
    _ask_again(tx, work, [one for one in postponed if not one.for_good], work.attempt)
    _ask_again(tx, work, [one for one in postponed if one.for_good], RETRIES_PER_GENERATION)
    planned = list(work.requests)
    if work.behind is not None:
        requests.go_on(tx, *planned.pop(), work.behind)
    if rest := sorted(work.intent_ids)[PLAN_INTENTS_MAX:]:
        requests.narrow(tx, *planned[-1], rest)
        requests.move(tx, [planned.pop()], next_attempt_at=tx.now)
    requests.move(tx, planned, state=_ended("plan"), plan_id=plan_id, next_attempt_at=None)
    return plan_id


def _insert(tx: Tx, work: PlanningWork, steps: Sequence[PlannedStep]) -> str:
    plan_id = plans.insert(tx, work.workspace, work.manifest_id, str(work.settings["executor"]), steps)
    executions.insert(
        tx,
        workspace=work.workspace,
        plan_id=plan_id,
        manifest_id=work.manifest_id,
        action="execute",
        direction="forward",
        steps=[(ordinal, step.intent_id) for ordinal, step in enumerate(steps, 1)],
        done={},
    )
    return plan_id


def _ask_again(tx: Tx, work: PlanningWork, postponed: Sequence[Postponed], attempt: int) -> None:
    """One more request for what came into no plan, due by the rule; after five of them it stays as failed."""
    if not postponed:
        return
    delay_seconds = backoff.delay_seconds(
        attempt,
        first_seconds=RETRY_FIRST_SECONDS,
        max_seconds=RETRY_MAX_SECONDS,
        fraction=tx.chance.fraction(),
    )
    spent = attempt >= RETRIES_PER_GENERATION
    requests.ask_again(
        tx,
        work.workspace,
        work.manifest_id,
        [one.intent_id for one in postponed],
        state=_ended("give_up") if spent else REQUEST.initial,
        attempt_count=attempt,
        next_attempt_at=None if spent else tx.now + clock.seconds(delay_seconds),
        error_code=postponed[0].code,
        error_message=postponed[0].message or None,
    )


def _ended(event: str) -> str:
    state = REQUEST.next(REQUEST.initial, event)
    if state is None:
        raise LookupError(f"requests know no event {event}")
    return state
