"""Rows of `executions`, `publication_steps` and `publication_commands`: one run of a plan, and who works it.

Command, execution and steps move together. The fence of the command stands for all three. An execution that
is not RUNNING holds the counts of its steps, recounted from them in the transaction that moved it, and its
slot of `publication_sums` follows: nobody who asks for a whole manifest looks at each of its steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.clock import seconds
from dragoman.machines.tables import COMMAND, EXECUTION, STEP
from dragoman.model.scopes import Scope, Workspace
from dragoman.store import leases, publication_sums
from dragoman.store.columns import is_set
from dragoman.store.schema import publishing as tables
from dragoman.store.schema import site
from dragoman.store.tables_publishing import STEP_COUNTS, UNIT_COUNTS
from dragoman.store.transaction import Row, Tx

_EXECUTIONS, _STEPS, _COMMANDS = tables.executions, tables.publication_steps, tables.publication_commands
_PLANS, _INTENTS = tables.plans, site.intents

_LIVE_STEPS = frozenset({"RUNNING", "UNKNOWN"})
"""Steps that a delivery has begun and not ended: the next one begins them again under the same key."""


_HELD = (
    sa.select(_COMMANDS)
    .where(
        _COMMANDS.c.id == sa.bindparam("command"),
        _COMMANDS.c.fence == sa.bindparam("held_fence"),
        _COMMANDS.c.state == "PROCESSING",
    )
    .with_for_update()
)
_BEGIN_STEP = (
    sa.update(_STEPS)
    .where(
        _STEPS.c.execution_id == sa.bindparam("execution"),
        _STEPS.c.ordinal == sa.bindparam("place"),
        _STEPS.c.state.in_(sorted(STEP.sources("RUNNING"))),
    )
    .values(
        state="RUNNING",
        attempt_count=_STEPS.c.attempt_count + 1,
        effect_id=sa.bindparam("effect"),
        updated_at=sa.bindparam("now"),
    )
)
_OPEN_STEPS = (
    sa.select(_STEPS.c.ordinal)
    .where(_STEPS.c.execution_id == sa.bindparam("execution"), _STEPS.c.state.in_(sorted(STEP.open)))
    .order_by(_STEPS.c.ordinal)
)
_AN_OPEN_STEP = _OPEN_STEPS.limit(1)


_TALLY = sa.select(
    *(
        sa.func.coalesce(sa.func.sum(sa.case((_STEPS.c.state == state, 1), else_=0)), 0).label(name)
        for name, state in zip(STEP_COUNTS, sorted(STEP.states), strict=True)
    ),
    *(sa.func.coalesce(sa.func.sum(_STEPS.c[name]), 0).label(name) for name in UNIT_COUNTS),
).where(_STEPS.c.execution_id == sa.bindparam("execution"), is_set(_STEPS.c.newest))
_LOCK_INTENTS = (
    sa.select(_INTENTS.c.id)
    .where(_INTENTS.c.id.in_(sa.bindparam("intents", expanding=True)))
    .order_by(_INTENTS.c.id)
    .with_for_update()
)
_OLDER = (
    sa.select(_STEPS.c.execution_id)
    .where(_STEPS.c.intent_id.in_(sa.bindparam("intents", expanding=True)), is_set(_STEPS.c.newest))
    .distinct()
)


def step_key(plan_id: str, ordinal: int, direction: str) -> str:
    """The name by which a target knows a step again: the same in every execution and at every attempt."""
    return f"{plan_id}:{ordinal}:{direction}"


def insert(
    tx: Tx,
    *,
    workspace: str,
    plan_id: str,
    manifest_id: str,
    action: str,
    direction: str,
    steps: Iterable[tuple[int, str]],
    done: Mapping[str, Row],
) -> str | None:
    """One execution with its steps and its command; None where the plan has an open one.

    Its steps are their intents' newest from now on. `steps` are (ordinal, intent id). `done` holds, by step
    key, steps that have succeeded before: they are taken over with what the target answered, and are not run
    again.
    """
    execution_id, listed = tx.new_id(), list(steps)
    made = {"created_at": tx.now, "updated_at": tx.now, "workspace": workspace}
    execution = {
        "id": execution_id,
        "plan_id": plan_id,
        "manifest_id": manifest_id,
        "action": action,
        "direction": direction,
        "state": EXECUTION.initial,
        "open_key": plan_id,
        "slot": publication_sums.slot_of(execution_id),
        **made,
    }
    if not tx.insert_new(_EXECUTIONS, [execution], ("open_key",)):
        return None
    _supersede(tx, [intent_id for _, intent_id in listed])
    tx.insert(_STEPS, [_step_row(execution_id, plan_id, direction, step, done) | made for step in listed])
    recount(tx, execution_id)
    command = {
        "id": tx.new_id(),
        "execution_id": execution_id,
        "state": COMMAND.initial,
        "due_at": tx.now,
        **made,
    }
    tx.insert(_COMMANDS, [command])
    return execution_id


def _step_row(
    execution_id: str, plan_id: str, direction: str, step: tuple[int, str], done: Mapping[str, Row]
) -> dict[str, Any]:
    ordinal, intent_id = step
    key = step_key(plan_id, ordinal, direction)
    before = done.get(key)
    return {
        "execution_id": execution_id,
        "ordinal": ordinal,
        "step_key": key,
        "direction": direction,
        "intent_id": intent_id,
        "state": STEP.next(STEP.initial, "found_done") if before else STEP.initial,
        "units_written": before.units_written if before else 0,
        "units_left": before.units_left if before else 0,
        "effect_id": before.effect_id if before else None,
        "receipt": before.receipt if before else None,
    }


def _supersede(tx: Tx, intent_ids: Sequence[str]) -> None:
    """The steps that these intents had are their newest no more.

    The intents are locked, so that each has one newest step; then the commands of those steps, for whoever
    moves steps holds their command.
    """
    if not intent_ids:
        return
    tx.all(_LOCK_INTENTS, {"intents": list(intent_ids)})
    older = [row.execution_id for row in tx.all(_OLDER, {"intents": list(intent_ids)})]
    if not older:
        return
    held = sa.select(_COMMANDS.c.id).where(_COMMANDS.c.execution_id.in_(older))
    tx.all(held.order_by(_COMMANDS.c.id).with_for_update())
    tx.update(_STEPS, {"execution_id": older, "intent_id": list(intent_ids)}, {"newest": False})
    for execution_id in sorted(older, key=publication_sums.slot_of):
        recount(tx, execution_id)


def recount(tx: Tx, execution_id: str) -> None:
    """Write the true counts of an execution's steps and of its slot, its command held; older steps count no
    more, and nothing of an execution that runs is counted before it ends.
    """
    execution = of_command(tx, execution_id)
    if execution.state != "RUNNING":
        counts = counted(tx, execution_id)
        troubled = publication_sums.is_troubled(execution, counts)
        tx.update(_EXECUTIONS, {"id": execution_id}, {**counts, "troubled": troubled})
    publication_sums.recount(tx, execution)


def counted(tx: Tx, execution_id: str) -> dict[str, int]:
    """The counts of an execution's steps, from the steps: by state, and their units."""
    (row,) = tx.all(_TALLY, {"execution": execution_id})
    return row._asdict()


def claim_commands(tx: Tx, owner: str, lease_seconds: float, limit: int) -> list[Row]:
    """Lease due commands, those whose holder's lease ran out first; each claim counts as a delivery."""
    expired, due = _COMMANDS.c.lease_expires_at, _COMMANDS.c.due_at
    rows: list[Row] = []
    for ready, order in (
        (sa.and_(_COMMANDS.c.state == "PROCESSING", expired < tx.now), expired),
        (sa.and_(_COMMANDS.c.state == "PENDING", due <= tx.now), due),
    ):
        if len(rows) < limit:
            rows += leases.claim(
                tx,
                _COMMANDS,
                ready=ready,
                order=[order],
                limit=limit - len(rows),
                owner=owner,
                lease_seconds=lease_seconds,
                set_={
                    "state": "PROCESSING",
                    "delivery_count": _COMMANDS.c.delivery_count + 1,
                    "deliveries_without_progress": _COMMANDS.c.deliveries_without_progress + 1,
                    "updated_at": tx.now,
                },
            )
    return rows


def hold(tx: Tx, command_id: str, fence: int) -> Row | None:
    """Lock a command that this process works; None under a stale fence."""
    return tx.first(_HELD, {"command": command_id, "held_fence": fence})


def renew(tx: Tx, command_id: str, fence: int, lease_seconds: float) -> None:
    """Prolong the lease of a held command."""
    until = {"lease_expires_at": tx.now + seconds(lease_seconds), "updated_at": tx.now}
    tx.update(_COMMANDS, {"id": command_id, "fence": fence}, until)


def progress(tx: Tx, command_id: str, fence: int) -> None:
    """A step has ended: what kills its worker is not this command."""
    tx.update(_COMMANDS, {"id": command_id, "fence": fence}, {"deliveries_without_progress": 0})


def forgive(tx: Tx, command_id: str, fence: int) -> None:
    """A delivery that the database kept from its end is none that ended no step."""
    counted = sa.update(_COMMANDS).where(
        leases.held(_COMMANDS, command_id, fence), _COMMANDS.c.deliveries_without_progress > 0
    )
    tx.touched(counted.values(deliveries_without_progress=_COMMANDS.c.deliveries_without_progress - 1))


def put_back(tx: Tx, command: Row, due_at: int, **values: Any) -> None:
    """Give a held command back, to be delivered again."""
    leases.release(
        tx,
        _COMMANDS,
        command.id,
        command.fence,
        {"state": COMMAND.next("PROCESSING", "wait"), "due_at": due_at, "updated_at": tx.now, **values},
    )
    move_execution(tx, command.execution_id, "requeue")


def free_expired(tx: Tx, command: Row) -> None:
    """Take a command from a holder whose lease ran out; what that holder still writes touches nothing."""
    tx.touched(
        sa.update(_COMMANDS)
        .where(leases.held(_COMMANDS, command.id, command.fence))
        .values(
            state=COMMAND.next("PROCESSING", "wait"),
            fence=_COMMANDS.c.fence + 1,
            lease_owner=None,
            lease_expires_at=None,
            due_at=tx.now,
            updated_at=tx.now,
        )
    )
    move_execution(tx, command.execution_id, "requeue")


def finish(tx: Tx, command: Row, event: str, code: str = "", message: str = "") -> None:
    """End execution and command together: `succeed` or `fail`."""
    said = {"error_code": code or None, "error_message": message or None, "updated_at": tx.now}
    ending = {"succeed": "deliver", "fail": "fail"}[event]
    leases.release(
        tx, _COMMANDS, command.id, command.fence, {"state": COMMAND.next("PROCESSING", ending), **said}
    )
    move_execution(tx, command.execution_id, event, open_key=None, ended_at=tx.now, **said)


def move_execution(tx: Tx, execution_id: str, event: str, **values: Any) -> None:
    """Move an execution by one event, from wherever the table allows it, and count it anew: whatever moves
    its steps comes before.
    """
    for source, known, target in EXECUTION.table:
        if known == event:
            here = {"id": execution_id, "state": source}
            tx.update(_EXECUTIONS, here, {"state": target, "updated_at": tx.now, **values})
    recount(tx, execution_id)


def move_step(tx: Tx, execution_id: str, ordinal: int, event: str, **values: Any) -> bool:
    """Move one step by one event; False where the table does not allow it from where the step stands."""
    for source, known, target in STEP.table:
        if known != event:
            continue
        here = {"execution_id": execution_id, "ordinal": ordinal, "state": source}
        if tx.update(_STEPS, here, {"state": target, "updated_at": tx.now, **values}):
            return True
    return False


def begin_step(tx: Tx, execution_id: str, ordinal: int, effect_id: str) -> None:
    """Let a step run, and count the attempt: it goes out as this effect."""
    values = {"execution": execution_id, "place": ordinal, "effect": effect_id, "now": tx.now}
    tx.touched(_BEGIN_STEP, values)


def reset_live_steps(tx: Tx, execution_id: str) -> list[Row]:
    """Make begun and unended steps PENDING again; gives them as they stood."""
    live = _live_steps(tx, execution_id)
    for row in live:
        move_step(tx, execution_id, row.ordinal, "take_over" if row.state == "RUNNING" else "retry")
    return live


def give_up_live_steps(tx: Tx, execution_id: str, **values: Any) -> None:
    """End begun and unended steps as failed."""
    for row in _live_steps(tx, execution_id):
        move_step(tx, execution_id, row.ordinal, "refuse" if row.state == "RUNNING" else "give_up", **values)


def _live_steps(tx: Tx, execution_id: str) -> list[Row]:
    live = (_STEPS.c.execution_id == execution_id, _STEPS.c.state.in_(sorted(_LIVE_STEPS)))
    return tx.all(sa.select(_STEPS).where(*live))


def find(tx: Tx, scope: Scope, execution_id: str) -> Row | None:
    """One execution within a scope."""
    within = _EXECUTIONS.c.workspace == scope.id if isinstance(scope, Workspace) else sa.true()
    return tx.first(sa.select(_EXECUTIONS).where(_EXECUTIONS.c.id == execution_id, within))


def of_command(tx: Tx, execution_id: str) -> Row:
    """The execution that a command stands for."""
    found = tx.first(sa.select(_EXECUTIONS).where(_EXECUTIONS.c.id == execution_id))
    if found is None:
        raise LookupError(f"execution {execution_id} is gone, and its command is not")
    return found


def newest(tx: Tx, plan_id: str) -> Row | None:
    """The execution of a plan that was made last."""
    mine = sa.select(_EXECUTIONS).where(_EXECUTIONS.c.plan_id == plan_id)
    return tx.first(mine.order_by(_EXECUTIONS.c.created_at.desc(), _EXECUTIONS.c.id.desc()).limit(1))


def command_of(tx: Tx, execution_id: str, lock: bool = False) -> Row:
    """The one command of an execution."""
    asked = sa.select(_COMMANDS).where(_COMMANDS.c.execution_id == execution_id)
    found = tx.first(asked.with_for_update() if lock else asked)
    if found is None:
        raise LookupError(f"execution {execution_id} has no command")
    return found


def commands_of(tx: Tx, execution_ids: Sequence[str]) -> dict[str, Row]:
    """The commands of executions, by execution."""
    rows = tx.all(sa.select(_COMMANDS).where(_COMMANDS.c.execution_id.in_(list(execution_ids))))
    return {row.execution_id: row for row in rows}


def steps(tx: Tx, execution_id: str, after: int = 0, limit: int | None = None) -> list[Row]:
    """The steps of an execution in order of their ordinals."""
    asked = sa.select(_STEPS).where(_STEPS.c.execution_id == execution_id, _STEPS.c.ordinal > after)
    return tx.all(asked.order_by(_STEPS.c.ordinal).limit(limit))


def open_ordinals(tx: Tx, execution_id: str) -> list[int]:
    """The ordinals of steps that have not ended, upwards."""
    return [row.ordinal for row in tx.all(_OPEN_STEPS, {"execution": execution_id})]


def has_open_steps(tx: Tx, execution_id: str) -> bool:
    """Whether a step has not ended."""
    return tx.first(_AN_OPEN_STEP, {"execution": execution_id}) is not None


def refused_step(tx: Tx, execution_id: str) -> Row | None:
    """The first step that its target has refused."""
    refused = sa.select(_STEPS).where(_STEPS.c.execution_id == execution_id, _STEPS.c.state == "FAILED")
    return tx.first(refused.order_by(_STEPS.c.ordinal).limit(1))


def succeeded(tx: Tx, step_keys: Sequence[str]) -> dict[str, Row]:
    """Steps that have succeeded in any execution, by key."""
    if not step_keys:
        return {}
    rows = tx.all(
        sa.select(_STEPS).where(_STEPS.c.step_key.in_(list(step_keys)), _STEPS.c.state == "SUCCEEDED")
    )
    return {row.step_key: row for row in rows}


def of_manifest(
    tx: Tx, workspace: str, manifest_id: str, before: str = "", limit: int | None = None
) -> list[Row]:
    """Executions of a manifest, newest first. `before` is the last id of the page above."""
    asked = sa.select(_EXECUTIONS).where(
        _EXECUTIONS.c.workspace == workspace, _EXECUTIONS.c.manifest_id == manifest_id
    )
    if before:
        asked = asked.where(_EXECUTIONS.c.id < before)
    return tx.all(asked.order_by(_EXECUTIONS.c.id.desc()).limit(limit))


def any_open(tx: Tx, workspace: str, manifest_id: str) -> Row | None:
    """An execution of a manifest that has not ended."""
    mine = (_EXECUTIONS.c.workspace == workspace, _EXECUTIONS.c.manifest_id == manifest_id)
    return tx.first(sa.select(_EXECUTIONS).where(*mine, _EXECUTIONS.c.open_key.is_not(None)).limit(1))


def newer_open(tx: Tx, manifest_id: str, plan_id: str) -> bool:
    """Whether an execution of a later plan of the manifest has not ended.

    Which plan is later is said by the database's time; ids are made by the clocks of many hosts.
    """
    mine = _PLANS.alias("mine")
    later = sa.or_(
        _PLANS.c.created_at > mine.c.created_at,
        sa.and_(_PLANS.c.created_at == mine.c.created_at, _PLANS.c.id > mine.c.id),
    )
    found = tx.first(
        sa.select(_EXECUTIONS.c.id)
        .select_from(_EXECUTIONS.join(_PLANS, _PLANS.c.id == _EXECUTIONS.c.plan_id).join(mine, later))
        .where(
            _EXECUTIONS.c.manifest_id == manifest_id,
            _EXECUTIONS.c.open_key.is_not(None),
            mine.c.id == plan_id,
        )
        .limit(1)
    )
    return found is not None


def tally(tx: Tx, execution_ids: Sequence[str]) -> list[Row]:
    """Steps of executions by state."""
    if not execution_ids:
        return []
    return tx.all(
        sa.select(_STEPS.c.execution_id, _STEPS.c.state, sa.func.count().label("number"))
        .where(_STEPS.c.execution_id.in_(list(execution_ids)))
        .group_by(_STEPS.c.execution_id, _STEPS.c.state)
    )


def intents_not_run(tx: Tx, execution_id: str) -> list[str]:
    """The intents of an execution's steps that were never begun, in order."""
    rows = tx.all(
        sa.select(_STEPS.c.intent_id)
        .where(_STEPS.c.execution_id == execution_id, _STEPS.c.state == STEP.initial)
        .order_by(_STEPS.c.ordinal)
    )
    return [row.intent_id for row in rows]


def without_success(tx: Tx, intent_ids: Sequence[str]) -> list[str]:
    """Those of these intents that no step has ever put in place."""
    rows = tx.all(
        sa.select(_STEPS.c.intent_id)
        .where(_STEPS.c.intent_id.in_(list(intent_ids)), _STEPS.c.state == "SUCCEEDED")
        .distinct()
    )
    return sorted(set(intent_ids) - {row.intent_id for row in rows})
