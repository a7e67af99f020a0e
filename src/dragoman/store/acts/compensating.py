"""Transactions by which people act on publications: retry, compensate, revert, reconcile. They call nobody.

Every act is an execution of its own; what has been is left as it is. An execution that works is never taken
away from its worker by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.kernel.clock import iso
from dragoman.kernel.errors import CallerError
from dragoman.machines import guards
from dragoman.machines.tables import COMMAND
from dragoman.model.scopes import Scope
from dragoman.store.rows import effects, executions, history, manifests, plans, requests
from dragoman.store.transaction import Row, Tx


def retry_execution(tx: Tx, scope: Scope, execution_id: str, actor: str) -> str:
    """A new execution of a failed one's plan, in the same direction; its id.

    Steps that have succeeded are found by key and are not run again. Raises `CallerError`: not_found,
    lease_held while one is open, nothing_to_retry where the newest has not failed.
    """
    execution = _found(tx, scope, execution_id)
    plan = _locked_plan(tx, execution.plan_id)
    newest = executions.newest(tx, plan.id) or execution
    _guard(tx, "retry", plan, newest)
    before = executions.steps(tx, newest.id)
    for step in before:
        if step.effect_id:
            effects.move(tx, step.effect_id, "approve")
    made = _create(tx, plan, "retry", newest.direction, [(step.ordinal, step.intent_id) for step in before])
    _audit(tx, execution.workspace, made, "retry", actor, execution.manifest_id)
    return made


def compensate_execution(tx: Tx, scope: Scope, execution_id: str, actor: str) -> str:
    """An execution that takes back, in reverse, what a plan has in place; its id.

    Raises `CallerError`: not_found, lease_held while one is open, already_ended where nothing is in place.
    """
    execution = _found(tx, scope, execution_id)
    made = _compensate(tx, _locked_plan(tx, execution.plan_id))
    _audit(tx, execution.workspace, made, "compensate", actor, execution.manifest_id)
    return made


def revert(tx: Tx, scope: Scope, manifest_id: str, actor: str) -> list[str]:
    """Take everything back that a manifest has put in place, newest plan first; ids of the executions.

    What still waits to be planned is ended. All or nothing: raises `CallerError` lease_held while anything
    of the manifest is being published, already_ended where nothing is in place.
    """
    manifest = manifests.find(tx, scope, manifest_id)
    if manifest is None:
        raise CallerError(f"no manifest {manifest_id}", "not_found")
    manifests.keep(tx, manifest_id)
    requests.end_open(tx, manifest.workspace, manifest_id, "canceled")
    made = []
    for plan in plans.of_manifest(tx, manifest.workspace, manifest_id):
        locked = _locked_plan(tx, plan.id)
        newest = executions.newest(tx, plan.id)
        if newest is not None and newest.open_key is not None:
            raise CallerError(f"execution {newest.id} is {newest.state}", "lease_held")
        if _standing(tx, locked):
            made.append(_compensate(tx, locked))
    if not made:
        raise CallerError(f"manifest {manifest_id} has nothing in place", "already_ended")
    _audit(tx, manifest.workspace, manifest_id, "revert", actor, manifest_id)
    return made


def reconcile_execution(tx: Tx, scope: Scope, execution_id: str, actor: str) -> str:
    """Free an execution whose worker's lease ran out; gives the state of its command.

    One that waits or has ended is left as it is. Raises `CallerError` lease_held beside a live lease.
    """
    execution = _found(tx, scope, execution_id)
    command = executions.command_of(tx, execution_id, lock=True)
    if command.state != "PROCESSING":
        return str(command.state)
    if command.lease_expires_at is not None and command.lease_expires_at >= tx.now:
        until = iso(command.lease_expires_at)
        raise CallerError(f"execution {execution_id} is worked under a lease until {until}", "lease_held")
    for step in executions.reset_live_steps(tx, execution_id):
        if step.effect_id:
            effects.take_over(tx, step.effect_id)
    executions.free_expired(tx, command)
    _audit(tx, execution.workspace, execution_id, "reconcile", actor, execution.manifest_id)
    return COMMAND.initial


def _found(tx: Tx, scope: Scope, execution_id: str) -> Row:
    execution = executions.find(tx, scope, execution_id)
    if execution is None:
        raise CallerError(f"no execution {execution_id}", "not_found")
    return execution


def _locked_plan(tx: Tx, plan_id: str) -> Row:
    """A plan, locked and verified: an execution is made of what was frozen, or not at all."""
    plan = plans.find(tx, plan_id, lock=True)
    steps = [step for _, step in plans.steps(tx, plan_id)]
    if plan is None or plans.fingerprint_of(plan.executor, steps) != plan.fingerprint:
        raise CallerError(f"plan {plan_id} is not what was frozen", "plan_mismatch")
    return plan


def _guard(tx: Tx, action: str, plan: Row, newest: Row | None) -> None:
    state = newest.state if newest else guards.NEVER
    code = guards.refusal(action, state, len(_standing(tx, plan)))
    if code:
        raise CallerError(f"cannot {action} plan {plan.id}: its newest execution is {state or 'none'}", code)


def _standing(tx: Tx, plan: Row) -> list[Row]:
    """Forward steps of a plan that wrote something which has not been taken back."""
    ordinals = range(1, plan.steps + 1)
    forward = executions.succeeded(
        tx, [executions.step_key(plan.id, ordinal, "forward") for ordinal in ordinals]
    )
    backward = executions.succeeded(
        tx, [executions.step_key(plan.id, ordinal, "backward") for ordinal in ordinals]
    )
    return [
        step
        for step in forward.values()
        if step.units_written and executions.step_key(plan.id, step.ordinal, "backward") not in backward
    ]


def _compensate(tx: Tx, plan: Row) -> str:
    _guard(tx, "compensate", plan, executions.newest(tx, plan.id))
    steps = sorted((step.ordinal, step.intent_id) for step in _standing(tx, plan))
    return _create(tx, plan, "compensate", "backward", steps)


def _create(tx: Tx, plan: Row, action: str, direction: str, steps: Sequence[tuple[int, str]]) -> str:
    keys = [executions.step_key(plan.id, ordinal, direction) for ordinal, _ in steps]
    made = executions.insert(
        tx,
        workspace=plan.workspace,
        plan_id=plan.id,
        manifest_id=plan.manifest_id,
        action=action,
        direction=direction,
        steps=steps,
        done=executions.succeeded(tx, keys),
    )
    if made is None:
        raise CallerError(f"plan {plan.id} has an open execution", "lease_held")
    return made


def _audit(tx: Tx, workspace: str, subject: str, action: str, actor: str, manifest_id: str) -> None:
    entry = history.Entry(
        workspace=workspace,
        kind="audit",
        subject=subject,
        action=action,
        actor=actor,
        correlation_id=manifest_id,
    )
    history.append(tx, [entry])
