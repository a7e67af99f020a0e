"""Transactions of convergence: a run starts or is joined, is taken up, has its passes and its end."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.clock import iso, seconds
from dragoman.kernel.errors import CallerError, LeaseLost, sanitize
from dragoman.kernel.identity import sha256
from dragoman.kernel.limits import RUN_LEASE_SECONDS
from dragoman.machines.tables import RUN
from dragoman.model.runs import RunDraft, Started
from dragoman.model.scopes import Scope, System, Workspace
from dragoman.store import leases
from dragoman.store.acts import publications, viewing
from dragoman.store.rows import manifests
from dragoman.store.schema import convergence
from dragoman.store.transaction import Row, Tx, repeatable

_RUNS = convergence.runs


@repeatable
def start_run(tx: Tx, draft: RunDraft) -> Started:
    """The run of a project: the one of the same push, the one at work, or a new one."""
    key = sha256(f"{draft.workspace}\n{draft.project}")
    standing = _of_push(tx, draft) or _at_work(tx, key)
    if standing is not None:
        return Started(standing, True)
    row = {
        "id": tx.new_id(),
        "workspace": draft.workspace,
        "project": draft.project,
        "actor": draft.actor,
        "trigger_kind": draft.trigger,
        "push_id": draft.push_id or None,
        "state": RUN.initial,
        "open_key": key,
        "asked": json.dumps(dict(draft.asked), ensure_ascii=False, sort_keys=True),
        "passes": "[]",
        "next_attempt_at": tx.now,
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    if tx.insert_new(_RUNS, [row], ("open_key",)):
        return Started(str(row["id"]), False)
    winner = _at_work(tx, key)
    if winner is None:
        raise CallerError("a run of this project is being started at this moment", "request_id_conflict")
    return Started(winner, True)


def _of_push(tx: Tx, draft: RunDraft) -> str | None:
    if not draft.push_id:
        return None
    same = (_RUNS.c.workspace == draft.workspace, _RUNS.c.project == draft.project)
    row = tx.first(sa.select(_RUNS.c.id).where(*same, _RUNS.c.push_id == draft.push_id))
    return None if row is None else str(row.id)


def _at_work(tx: Tx, key: str) -> str | None:
    row = tx.first(sa.select(_RUNS.c.id).where(_RUNS.c.open_key == key))
    return None if row is None else str(row.id)


def open_run(tx: Tx, scope: Workspace, project: str) -> str | None:
    """The run of a project that is at work."""
    return _at_work(tx, sha256(f"{scope.id}\n{project}"))


def claim_run(tx: Tx, owner: str) -> Row | None:
    """Lease one run that is due."""
    due = _RUNS.c.next_attempt_at
    rows = leases.claim(
        tx, _RUNS, ready=due <= tx.now, order=[due], limit=1, owner=owner, lease_seconds=RUN_LEASE_SECONDS
    )
    return rows[0] if rows else None


def manifest_of(tx: Tx, workspace: str, actor: str, request_id: str) -> str | None:
    """The manifest that a pass admitted, if it came so far."""
    row = manifests.of_request(tx, workspace, actor, request_id)
    return None if row is None else row.id


def begin_pass(tx: Tx, run: Row, manifest_id: str, wanted: int) -> None:
    """A pass is at work. Raises `LeaseLost`."""
    passes = [*json.loads(run.passes), {"manifest_id": manifest_id, "wanted": wanted}]
    _move(tx, run, "begin_pass", tx.now, manifest_id=manifest_id, passes=json.dumps(passes))


def wait(tx: Tx, run: Row, wait_seconds: float) -> None:
    """Nothing changed; look again later. Raises `LeaseLost`."""
    _write(tx, run, next_attempt_at=tx.now + seconds(wait_seconds))


def end_pass(tx: Tx, run: Row, numbers: dict[str, int]) -> None:
    """The pass at work has ended with these numbers; what is left is looked for. Raises `LeaseLost`."""
    passes = json.loads(run.passes)
    passes[-1].update(numbers)
    _move(tx, run, "end_pass", tx.now, manifest_id=None, passes=json.dumps(passes))


def end_run(tx: Tx, run: Row, event: str, code: str = "", message: str = "") -> None:
    """The run has ended. Raises `LeaseLost`."""
    _move(
        tx,
        run,
        event,
        None,
        open_key=None,
        manifest_id=None,
        ended_at=tx.now,
        error_code=code or None,
        error_message=sanitize(message) or None,
    )


def _move(tx: Tx, run: Row, event: str, due_at: int | None, **values: Any) -> None:
    target = RUN.next(run.state, event)
    assert target is not None, f"a run that is {run.state} has no {event}"  # noqa: S101
    _write(tx, run, state=target, next_attempt_at=due_at, **values)


def _write(tx: Tx, run: Row, **values: Any) -> None:
    """Write under the run's fence and let its lease go."""
    if not leases.release(tx, _RUNS, run.id, run.fence, {"updated_at": tx.now, **values}):
        raise LeaseLost(f"run {run.id} is another's by now")


def pass_numbers(tx: Tx, manifest_id: str) -> dict[str, int] | None:
    """What a pass came to; None while it is at work or being published."""
    manifest = manifests.find(tx, System(), manifest_id)
    if manifest is None:
        return {"completed": 0, "failed": 0, "canceled": 0}
    published = publications.publication_of(tx, manifest)["state"]
    if manifest.phase != "ended" or published in ("queued", "running"):
        return None
    return _numbers(tx, manifest)


def _numbers(tx: Tx, manifest: Row) -> dict[str, int]:
    sums = viewing.sums_of(tx, manifest)
    counts, split = viewing.counters(manifest, sums), viewing.field_split(sums)
    money = viewing.money(tx, manifest.workspace, manifest.id)
    return {
        "completed": counts["completed"],
        "failed": counts["failed"],
        "canceled": int(manifest.canceled),
        "via_memory": split["via_memory"],
        "via_ai": split["via_ai"],
        "tokens": money["tokens"] + money["wasted_tokens"],
        "microusd": money["microusd"] + money["wasted_microusd"],
        "wasted_microusd": money["wasted_microusd"],
        "at_risk_microusd": money["at_risk_microusd"],
    }


def run_report(tx: Tx, scope: Scope, run_id: str) -> dict[str, Any]:
    """A run as it stands: its passes, and the sums over them, reckoned from rows.

    Memory is summed over the passes and AI is the rest of what is done, so the two always make the whole.
    Raises `CallerError` not_found.
    """
    where = [_RUNS.c.id == run_id]
    if not isinstance(scope, System):
        where.append(_RUNS.c.workspace == scope.id)
    run = tx.first(sa.select(_RUNS).where(*where))
    if run is None:
        raise CallerError(f"no run {run_id}", "not_found")
    passes = [_as_it_stands(tx, one) for one in json.loads(run.passes)]
    memory = sum(one.get("via_memory", 0) for one in passes)
    done = sum(one.get("via_memory", 0) + one.get("via_ai", 0) for one in passes)
    return {
        "run_id": run.id,
        "project": run.project,
        "trigger": run.trigger_kind,
        "push_id": run.push_id,
        "state": run.state,
        "passes": passes,
        "fields": {"done": done, "via_memory": memory, "via_ai": done - memory},
        "cost": {
            "paid_tokens": sum(one.get("tokens", 0) for one in passes),
            **{
                f"{name}_usd": sum(one.get(key, 0) for one in passes) / 1_000_000
                for name, key in (
                    ("paid", "microusd"), ("wasted", "wasted_microusd"), ("at_risk", "at_risk_microusd")
                )
            },
        },
        "created_at": iso(run.created_at),
        "ended_at": iso(run.ended_at),
        "last_error": run.error_code,
    }  # fmt: skip


def _as_it_stands(tx: Tx, one: dict[str, Any]) -> dict[str, Any]:
    """A pass by its manifest's rows; by what was written down where these are past their time."""
    manifest = manifests.find(tx, System(), one["manifest_id"])
    return one if manifest is None else {**one, **_numbers(tx, manifest)}
