"""Transactions of execution: commands are claimed, steps begin and end, and nothing is called in here.

The end of a step and the begin of the next are one transaction. A process that dies between begin and end of
a step leaves it RUNNING, its attempt STARTED and a lease. Once that is over, the next claim gives the attempt
up as unknown, makes the step PENDING and delivers it again under the same key; its target answers the same.
After five deliveries in a row without an ended step nobody tries again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from dragoman.kernel import backoff, clock
from dragoman.kernel.errors import LeaseLost, sanitize
from dragoman.kernel.identity import key_hash, sha256
from dragoman.kernel.limits import (
    DELIVERIES_WITHOUT_PROGRESS_MAX,
    PUBLISH_POLL_SECONDS,
    RETRY_FIRST_SECONDS,
    RETRY_MAX_SECONDS,
)
from dragoman.machines.tables import REQUEST
from dragoman.model.effects import Answer, AttemptPlan, EffectIdentity, Outgoing
from dragoman.model.publications import (
    Command,
    DirectionName,
    Ending,
    Material,
    Order,
    Record,
    Result,
    Step,
)
from dragoman.model.scopes import System
from dragoman.store.acts.planning import result_of
from dragoman.store.rows import effects, entries, executions, manifests, plans, requests, snapshots, texts
from dragoman.store.transaction import Row, Tx

Verdict = Literal["done", "refused", "raced", "conflict", "unknown", "lease_lost"]

GOES_ON: Mapping[DirectionName, frozenset[Verdict]] = {
    "forward": frozenset({"done", "conflict"}),
    "backward": frozenset({"done", "conflict", "refused"}),
}
"""After these the next step of an execution may begin, by its direction."""

_FAMILY = "publication_step"

_REJECTIONS: Mapping[str, Verdict] = {"target_raced": "raced", "target_conflict": "conflict"}
"""What an executor's refusal means; any other code refuses the step, and with it the whole execution."""


class Delivery(NamedTuple):
    """What a holder needs to work a command: the plan as it was frozen, and which steps have not ended."""

    executor: str
    fingerprint: str
    steps: Sequence[Step]
    open_ordinals: frozenset[int]


def claim_commands(tx: Tx, owner: str, lease_seconds: float, limit: int) -> list[Command]:
    """Take due commands and begin a delivery of each; those that have had their chances are ended."""
    begun = [_begin(tx, row) for row in executions.claim_commands(tx, owner, lease_seconds, limit)]
    return [command for command in begun if command is not None]


def _begin(tx: Tx, row: Row) -> Command | None:
    execution = executions.of_command(tx, row.execution_id)
    if execution.direction == "backward" and executions.newer_open(
        tx, execution.manifest_id, execution.plan_id
    ):
        _await_turn(tx, row)
        return None
    executions.move_execution(tx, execution.id, "deliver")
    if row.deliveries_without_progress > DELIVERIES_WITHOUT_PROGRESS_MAX:
        _give_up(tx, row, "its worker vanished each time")
        return None
    for step in executions.reset_live_steps(tx, execution.id):
        if step.effect_id:
            effects.take_over(tx, step.effect_id)
    manifest = manifests.find(tx, System(), execution.manifest_id)
    plan = plans.find(tx, execution.plan_id)
    if manifest is None or plan is None:
        executions.finish(tx, row, "fail", "plan_mismatch", "the plan or its manifest is gone")
        return None
    return Command(
        id=row.id,
        fence=row.fence,
        workspace=row.workspace,
        execution_id=execution.id,
        plan_id=execution.plan_id,
        manifest_id=execution.manifest_id,
        project_id=manifest.project_id,
        executor=plan.executor,
        direction=cast(DirectionName, execution.direction),
        settings=json.loads(manifest.settings),
    )


def _await_turn(tx: Tx, row: Row) -> None:
    """What a later plan wrote is taken back first; waiting for that is no failed delivery."""
    executions.put_back(
        tx,
        row,
        tx.now + clock.seconds(PUBLISH_POLL_SECONDS),
        deliveries_without_progress=row.deliveries_without_progress - 1,
    )


def delivery_of(tx: Tx, command: Command) -> Delivery:
    """The frozen plan of a command, and what of it is still to be done."""
    plan = plans.find(tx, command.plan_id)
    steps = [
        Step(ordinal, executions.step_key(command.plan_id, ordinal, command.direction), planned)
        for ordinal, planned in plans.steps(tx, command.plan_id)
    ]
    todo = frozenset(executions.open_ordinals(tx, command.execution_id))
    return Delivery(plan.executor if plan else "", plan.fingerprint if plan else "", steps, todo)


def verifies(delivery: Delivery) -> bool:
    """Whether the steps are those that the plan was frozen with."""
    planned = [step.planned for step in delivery.steps]
    return plans.fingerprint_of(delivery.executor, planned) == delivery.fingerprint


def materials(tx: Tx, command: Command, steps: Sequence[Step]) -> dict[str, Material]:
    """What the store knows of steps now, by key: texts, what was last written there, what stood before."""
    planned = [step.planned for step in steps]
    results: dict[str, list[Result]] = {one.intent_id: [] for one in planned}
    for row in texts.results(tx, list(results)):
        results[row.intent_id].append(result_of(row))
    records: dict[tuple[str, str], dict[str, Record]] = {(one.document, one.locale): {} for one in planned}
    for row in texts.entries(tx, command.project_id, records):
        known = Record(row.source_hash, row.written_hash, row.origin, row.manifest_id)
        records[row.document, row.locale][row.key_hash] = known
    stood = snapshots.of_steps(tx, [_forward_key(command, step) for step in steps])
    begun = effects.known_keys(tx, command.workspace, _FAMILY, [step.key for step in steps])
    return {
        step.key: Material(
            results=tuple(results[step.planned.intent_id]),
            records=records[step.planned.document, step.planned.locale],
            snapshot=stood.get(_forward_key(command, step)),
            begun=step.key in begun,
        )
        for step in steps
    }


class Start(NamedTuple):
    """How a step is to begin. One that ends without anything being asked comes with an `Ending`.

    `begun`: an effect stands under its key already, from an earlier delivery or execution.
    """

    step: Step
    order: Order | Ending
    begun: bool
    owner: str
    deadline_seconds: float
    lease_seconds: float


class Finished(NamedTuple):
    """What became of a step, and of the one that was to begin with its end: None where it did not."""

    verdict: Verdict
    following: Outgoing | Verdict | None = None


def start_step(tx: Tx, command: Command, start: Start) -> Outgoing | Verdict:
    """Begin a step: what stood there is kept, the attempt is on record, the lease is fresh.

    Raises `LeaseLost` when the command is no longer ours: then nothing is written and nothing may be called.
    """
    return _start(tx, command, _held(tx, command), start)


def _start(tx: Tx, command: Command, held: Row, start: Start) -> Outgoing | Verdict:
    step, order = start.step, start.order
    if isinstance(order, Ending):
        entries.relabel(tx, _place(command, step), order.relabeled)
        return _end_unasked(tx, held, step, order)
    halted = _halted(tx, command, held, step)
    if halted is not None:
        return halted
    if order.snapshot is not None:
        snapshots.keep(tx, command.workspace, step.key, step.planned.target, order.snapshot)
    plan = AttemptPlan(
        account=command.executor,
        worker=start.owner,
        fence=command.fence,
        deadline_seconds=start.deadline_seconds,
        request_fingerprint=sha256(order.body or b""),
    )
    facts: dict[str, str | int] = {
        "executor": command.executor,
        **_address(command.settings),
        "target": step.planned.target,
        "step_key": step.key,
        **order.facts,
    }
    sent = (plan, order.body or b"", facts)
    identity = _identity(command, step)
    outgoing: Outgoing | None
    if start.begun:
        outgoing = effects.start(tx, effects.ensure(tx, identity), *sent)
    else:
        (outgoing,) = effects.begin_new(tx, [effects.New(identity, *sent)])
    if outgoing is None:
        executions.move_step(tx, command.execution_id, step.ordinal, "start")
        return _end(tx, held, step, "conflict", "canceled", "the effect was canceled", 0)
    executions.begin_step(tx, command.execution_id, step.ordinal, outgoing.effect_id)
    executions.renew(tx, command.id, command.fence, start.lease_seconds)
    return outgoing


def _address(settings: Mapping[str, Any]) -> dict[str, str]:
    """Where targets lie: below a folder, or behind a server that knows us by the token of a variable."""
    server = settings.get("source") or {}
    if server.get("kind") == "http":
        return {"root": str(server["url"]), "token_variable": str(server["token_variable"])}
    return {"root": str(settings.get("root", ""))}


def _halted(tx: Tx, command: Command, held: Row, step: Step) -> Verdict | None:
    """What the manifest's owner has said meanwhile: it rests, or what was planned before a cancel ends here.

    A step that an earlier delivery began goes on after a cancel: it may be in place, and nobody has seen it.
    """
    said = manifests.word_of(tx, command.manifest_id) if command.direction == "forward" else None
    if said is None:
        return None
    if said.canceled_at is not None:
        planned_at = executions.of_command(tx, command.execution_id).created_at
        if planned_at > said.canceled_at or snapshots.find(tx, step.key) is not None:
            return None
        executions.finish(tx, held, "fail", "canceled", "the manifest was canceled")
        return "refused"
    if not said.paused:
        return None
    deliveries = max(0, held.deliveries_without_progress - 1)
    executions.put_back(
        tx, held, tx.now + clock.seconds(PUBLISH_POLL_SECONDS), deliveries_without_progress=deliveries
    )
    return "raced"


def _identity(command: Command, step: Step) -> EffectIdentity:
    planned = step.planned
    return EffectIdentity(
        workspace=command.workspace,
        family=_FAMILY,
        key=step.key,
        idempotency="PROVIDER_IDEMPOTENT",
        purpose="put a translation in place" if command.direction == "forward" else "take a translation back",
        source_kind="publication_steps",
        source_id=step.key,
        payload_fingerprint=key_hash(command.direction, planned.target, planned.write_fingerprint),
        correlation_id=command.manifest_id,
    )


def finish_step(
    tx: Tx,
    outgoing: Outgoing,
    answer: Answer,
    command: Command,
    step: Step,
    order: Order,
    following: Start | None = None,
) -> Finished:
    """Write down what the target answered, and all that follows from it, and begin the `following` step where
    the execution goes on: all in one.

    The attempt is recorded also under a stale fence; everything else is then left to the new holder.
    """
    held = executions.hold(tx, command.id, command.fence)
    effects.settle(tx, outgoing.attempt_id, answer)
    if held is None:
        return Finished("lease_lost")
    effects.move(tx, outgoing.effect_id, effects.event_of(answer))
    verdict = _verdict(answer)
    if verdict == "done":
        _succeed(tx, held, command, step, order, json.loads(answer.body or b"{}"))
    elif verdict == "conflict":
        _move_to_end(tx, held, step, "conflict", answer.code, answer.message, 0)
    elif verdict == "refused":
        _fail(tx, held, command, step, answer)
    else:
        event = "race" if verdict == "raced" else "lose"
        executions.move_step(tx, held.execution_id, step.ordinal, event, **_said(answer.code, answer.message))
        _postpone(tx, held, answer.code, answer.message)
    if verdict not in GOES_ON[command.direction]:
        return Finished(verdict)
    if following is None:
        _go_on(tx, held)
        return Finished(verdict)
    if held.deliveries_without_progress:
        executions.progress(tx, held.id, held.fence)
        held = _held(tx, command)
    return Finished(verdict, _start(tx, command, held, following))


def _verdict(answer: Answer) -> Verdict:
    if answer.outcome in ("SUCCEEDED", "ACCEPTED"):
        return "done"
    if answer.outcome == "REJECTED":
        return _REJECTIONS.get(answer.code, "refused")
    return "raced" if answer.outcome == "NOT_STARTED" else "unknown"


def _end_unasked(tx: Tx, held: Row, step: Step, ending: Ending) -> Verdict:
    """End a step of which nothing is asked of the target, or put its command off."""
    if ending.event == "wait":
        _postpone(tx, held, ending.code, ending.message)
        return "raced"
    executions.move_step(tx, held.execution_id, step.ordinal, "start")
    return _end(tx, held, step, ending.event, ending.code, ending.message, ending.left)


def _end(
    tx: Tx, held: Row, step: Step, event: Literal["succeed", "conflict"], code: str, message: str, left: int
) -> Verdict:
    """End a running step that wrote nothing, and go on with the others."""
    _move_to_end(tx, held, step, event, code, message, left)
    _go_on(tx, held)
    return "done" if event == "succeed" else "conflict"


def _move_to_end(
    tx: Tx, held: Row, step: Step, event: Literal["succeed", "conflict"], code: str, message: str, left: int
) -> None:
    executions.move_step(tx, held.execution_id, step.ordinal, event, units_left=left, **_said(code, message))


def _succeed(tx: Tx, held: Row, command: Command, step: Step, order: Order, receipt: dict[str, Any]) -> None:
    """A step is in place: its receipt, and what is on record of its units from now on."""
    written = order.written
    applied = bool(receipt.get("applied", True))
    place = _place(command, step)
    if not applied:
        snapshots.forget(tx, step.key)
    elif command.direction == "forward":
        keys = None if written.whole else [unit.key_hash for unit in written.units]
        snapshots.remember_entries(tx, step.key, entries.standing(tx, place, keys))
        entries.write(tx, place, command.manifest_id, written.units, written.whole)
    else:
        before = snapshots.remembered_entries(tx, _forward_key(command, step))
        if before is not None:
            entries.restore(tx, place, written.units, written.whole, before)
    if written.lost:
        receipt["lost"] = list(written.lost)
    if command.settings.get("explain_edits"):
        receipt |= {"base": written.base, "edits": [dict(edit) for edit in written.edits]}
    executions.move_step(
        tx,
        held.execution_id,
        step.ordinal,
        "succeed",
        receipt=json.dumps(receipt, ensure_ascii=False),
        units_written=len(written.units) if applied else 0,
        units_left=written.left,
        error_code=None,
        error_message=None,
    )


def _place(command: Command, step: Step) -> entries.Place:
    return entries.Place(command.workspace, command.project_id, step.planned.document, step.planned.locale)


def _fail(tx: Tx, held: Row, command: Command, step: Step, answer: Answer) -> None:
    """A refused step fails, and with it execution and command; later steps are not begun here.

    They wait for plans of their own, for one file that cannot be written stops no other. Few go into each of
    these plans: on a full disk every one of them ends like this. What is taken back has no other plan: there
    the later steps go on, and the execution fails at its end.
    """
    executions.move_step(tx, held.execution_id, step.ordinal, "refuse", **_said(answer.code, answer.message))
    if command.direction == "backward":
        return
    executions.finish(tx, held, "fail", answer.code, sanitize(answer.message))
    for intent_id in executions.intents_not_run(tx, held.execution_id):
        requests.ask_again(
            tx,
            command.workspace,
            command.manifest_id,
            [intent_id],
            state=REQUEST.initial,
            next_attempt_at=tx.now,
        )


def _go_on(tx: Tx, held: Row) -> None:
    """A step has ended; with the last one, execution and command end as well."""
    if held.deliveries_without_progress:
        executions.progress(tx, held.id, held.fence)
    if executions.has_open_steps(tx, held.execution_id):
        return
    refused = executions.refused_step(tx, held.execution_id)
    if refused is None:
        executions.finish(tx, held, "succeed")
    else:
        executions.finish(tx, held, "fail", refused.error_code or "", refused.error_message or "")


def _postpone(tx: Tx, held: Row, code: str, message: str) -> None:
    """Deliver again by the retry rule, or give up after too many deliveries that ended no step."""
    if held.deliveries_without_progress >= DELIVERIES_WITHOUT_PROGRESS_MAX:
        _give_up(tx, held, message)
        return
    delay_seconds = backoff.delay_seconds(
        held.deliveries_without_progress,
        first_seconds=RETRY_FIRST_SECONDS,
        max_seconds=RETRY_MAX_SECONDS,
        fraction=tx.chance.fraction(),
    )
    executions.put_back(tx, held, tx.now + clock.seconds(delay_seconds), **_said(code, message))


def _give_up(tx: Tx, row: Row, message: str) -> None:
    """End what nobody can end: a person looks at the step that is neither done nor refused."""
    why = sanitize(f"{DELIVERIES_WITHOUT_PROGRESS_MAX} deliveries in a row ended no step: {message}")
    executions.give_up_live_steps(tx, row.execution_id, **_said("gave_up", why))
    executions.finish(tx, row, "fail", "gave_up", why)


def pause_delivery(tx: Tx, command: Command) -> None:
    """Give a command back with steps still to do, to go on at once. Raises `LeaseLost`."""
    executions.put_back(tx, _held(tx, command), tx.now)


def fail_delivery(tx: Tx, command: Command, code: str, message: str) -> None:
    """End execution and command before anything is called. Raises `LeaseLost`."""
    executions.finish(tx, _held(tx, command), "fail", code, sanitize(message))


def end_delivery(tx: Tx, command: Command) -> None:
    """End an execution that has no step to do. Raises `LeaseLost`."""
    executions.finish(tx, _held(tx, command), "succeed")


def _held(tx: Tx, command: Command) -> Row:
    held = executions.hold(tx, command.id, command.fence)
    if held is None:
        raise LeaseLost(f"execution {command.execution_id} is worked by somebody else")
    return held


def _forward_key(command: Command, step: Step) -> str:
    return executions.step_key(command.plan_id, step.ordinal, "forward")


def _said(code: str, message: str) -> dict[str, str | None]:
    return {"error_code": code or None, "error_message": sanitize(message) or None}
