"""Transactions by which people act on publications: retry, compensate, revert, reconcile. They call nobody.

Every act is an execution of its own; what has been is left as it is. An execution that works is never taken
away from its worker by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dragoman.kernel.clock import iso, seconds
from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import PUBLISH_LEASE_SECONDS, PUBLISH_POLL_SECONDS, REVERT_PLANS, REVERT_STEPS
from dragoman.machines import guards
from dragoman.machines.tables import COMMAND, REQUEST
from dragoman.model.scopes import Scope, System
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
    """Take everything back that a manifest has put in place, newest plan first; ids of the first executions.

    What still waits to be planned is ended. The first page of plans is on its way when this returns; a
    request that stands with it goes on with the others. Raises `CallerError` lease_held while anything of the
    manifest is being published, already_ended where nothing is in place.
    """
    manifest = manifests.find(tx, scope, manifest_id)
    if manifest is None:
        raise CallerError(f"no manifest {manifest_id}", "not_found")
    manifests.keep(tx, manifest_id)
    requests.end_open(tx, manifest.workspace, manifest_id, "canceled", ("forward", "backward"))
    busy = executions.any_open(tx, manifest.workspace, manifest_id)
    if busy is not None:
        raise CallerError(f"execution {busy.id} is {busy.state}", "lease_held")
    page = _take_back(tx, manifest, None)
    while page.last is not None and not (page.made or page.is_held):
        page = _take_back(tx, manifest, page.last)
    if page.is_held and not page.made:
        raise CallerError(f"something of manifest {manifest_id} is being published", "lease_held")
    if not page.made:
        raise CallerError(f"manifest {manifest_id} has nothing in place", "already_ended")
    if page.last is not None:
        requests.write_backward(tx, manifest, page.last.id)
    _audit(tx, manifest.workspace, manifest_id, "revert", actor, manifest_id)
    return page.made


def go_on_reverting(tx: Tx, scope: System, owner: str) -> int:
    """Take back what stands of the next page of plans of one manifest; 0 where nobody waits for that.

    A plan that somebody has put to work again meanwhile is waited for. One that is not what was frozen ends
    the request; what is older stays.
    """
    request = requests.claim_backward(tx, owner, PUBLISH_LEASE_SECONDS)
    if request is None:
        return 0
    requests.move(tx, [(request.id, request.fence)], **_next_page(tx, scope, request))
    return 1


def _next_page(tx: Tx, scope: System, request: Row) -> dict[str, Any]:
    """Take a page back; how the request for it goes on."""
    manifest, last = manifests.find(tx, scope, request.manifest_id), plans.find(tx, request.plan_id)
    page = _Page([], None)
    try:
        if manifest is not None and last is not None:
            page = _take_back(tx, manifest, last)
    except CallerError as error:
        said = {"error_code": error.code, "error_message": error.message}
        return {"state": REQUEST.next(REQUEST.initial, "give_up"), "next_attempt_at": None, **said}
    if page.last is None:
        return {"state": REQUEST.next(REQUEST.initial, "plan"), "next_attempt_at": None}
    wait = seconds(PUBLISH_POLL_SECONDS) if page.is_held else 0
    return {"plan_id": page.last.id, "next_attempt_at": tx.now + wait}


class _Page(NamedTuple):
    """Executions that take back, and the last plan looked at: None where none is older."""

    made: list[str]
    last: Row | None
    is_held: bool = False


def _take_back(tx: Tx, manifest: Row, last: Row | None) -> _Page:
    """What stands of the next plans behind the last one that was looked at, up to a page's worth of steps."""
    made: list[str] = []
    steps = 0
    found = plans.older(tx, manifest.workspace, manifest.id, last, REVERT_PLANS)
    for plan in found:
        if steps and steps + plan.steps > REVERT_STEPS:
            return _Page(made, last)
        locked = _locked_plan(tx, plan.id)
        newest = executions.newest(tx, plan.id)
        if newest is not None and newest.open_key is not None:
            return _Page(made, last, is_held=True)
        if standing := _standing(tx, locked):
            made.append(_compensate(tx, locked))
            steps += len(standing)
        last = plan
    return _Page(made, last if len(found) == REVERT_PLANS else None)


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
