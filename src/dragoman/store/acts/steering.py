"""Transactions by which people steer: pause, go on, cancel what is open, publish what is settled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from dragoman.kernel.clock import seconds
from dragoman.kernel.errors import CallerError
from dragoman.kernel.identity import sha256
from dragoman.kernel.limits import CANCEL_INTENTS, CONTROL_SECONDS, RETRY_FIRST_SECONDS
from dragoman.machines.tables import INTENT, MANIFEST, SUBMISSION
from dragoman.model.effects import Answer, AttemptPlan, EffectIdentity, Outgoing
from dragoman.model.scopes import Scope, Workspace
from dragoman.store.acts import moving
from dragoman.store.columns import is_set
from dragoman.store.rows import effects, history, intents, manifests, requests, shards, submissions
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_INTENTS, _SUBMISSIONS = tables.intents, tables.submissions
_SHARDS, _MANIFESTS = tables.shards, tables.manifests


FINAL = 2**52
"""The revision of a cancel: later than any other, which count microseconds."""


class Decision(NamedTuple):
    """What the owner of a manifest decided, as the engine and the shards are to hear it."""

    workspace: str
    manifest_id: str
    revision: int
    paused: bool
    canceled: bool


def owned(tx: Tx, scope: Scope, manifest_id: str, actor: str) -> Row:
    """The manifest, for whoever asked for it; `not_found` or `not_owner` for all others."""
    manifest = manifests.find(tx, scope, manifest_id)
    if manifest is None:
        raise CallerError(f"no manifest {manifest_id}", "not_found")
    if manifest.actor != actor:
        raise CallerError(f"manifest {manifest_id} was asked for by somebody else", "not_owner")
    return manifest


def pause_manifest(tx: Tx, scope: Scope, manifest_id: str, actor: str) -> Decision | None:
    """Write down that a manifest rests: from this commit on nothing of it starts here.

    None where that is known everywhere already, and where it has ended or is canceled. Its shards are taken
    from whoever works them: what they were about to begin is begun after the pause.
    """
    return _decide_pause(tx, owned(tx, scope, manifest_id, actor), actor, "pause")


def resume_manifest(tx: Tx, scope: Scope, manifest_id: str, actor: str) -> Decision | None:
    """Write down that a manifest goes on; None where it does so already.

    One that ended while it rested goes on, too: what it came to waits to be put in place.
    """
    return _decide_pause(tx, owned(tx, scope, manifest_id, actor), actor, "resume")


def _decide_pause(tx: Tx, manifest: Row, actor: str, action: str) -> Decision | None:
    wanted = action == "pause"
    if not wanted:
        submissions.wake(tx, manifest.id)
    shards.take_over(tx, manifest.id)
    begins = (_MANIFESTS.c.phase.in_(sorted(MANIFEST.open)), ~is_set(_MANIFESTS.c.paused))
    applies = (~is_set(_MANIFESTS.c.canceled), *(begins if wanted else [is_set(_MANIFESTS.c.paused)]))
    if manifests.decide(tx, manifest.id, *applies, due_at=_tell_at(tx), paused=wanted):
        audit(tx, manifest, actor, action)
    standing = manifests.find(tx, scope=Workspace(manifest.workspace), manifest_id=manifest.id)
    if standing is None or standing.control_due_at is None or bool(standing.paused) != wanted:
        return None
    return _decision(standing)


def cancel_manifest(tx: Tx, scope: Scope, manifest_id: str, actor: str) -> Decision | None:
    """Write down that a manifest is canceled: from this commit on nothing of it starts. None when it has
    ended or was canceled before, and everybody knows that.

    What waits to be published is left; its results are kept, and a person may ask for them.
    """
    manifest = owned(tx, scope, manifest_id, actor)
    if manifest.phase == "ended" or manifest.canceled:
        return _decision(manifest) if manifest.canceled and manifest.control_due_at is not None else None
    expanded = shards.made(tx, manifest_id)
    manifests.decide(
        tx,
        manifest_id,
        due_at=_tell_at(tx),
        control_revision=FINAL,
        canceled=True,
        canceled_at=tx.now,
        phase="open",
        total=expanded,
        total_known=True,
        next_attempt_at=None,
        retry_after=None,
        retry_asked_at=None,
    )
    requests.end_open(tx, manifest.workspace, manifest_id, "canceled")
    audit(tx, manifest, actor, "cancel")
    shards.end_manifest(tx, manifest_id)
    return Decision(manifest.workspace, manifest_id, FINAL, bool(manifest.paused), canceled=True)


def due_decisions(tx: Tx, limit: int) -> list[Decision]:
    """Decisions that are not carried out everywhere yet: shards to be emptied, or an engine to be told.

    One whose manifest has ended meanwhile is told all the same: somebody may have begun to, and died. Telling
    twice is harmless, so there is no lease: each only gets its next turn half a minute from now.
    """
    rows = manifests.untold(tx, limit)
    for row in rows:
        manifests.change(tx, row.id, control_due_at=_tell_at(tx))
    return [_decision(row) for row in rows]


def _decision(row: Row) -> Decision:
    paused, canceled = bool(row.paused), bool(row.canceled)
    return Decision(row.workspace, row.id, row.control_revision, paused, canceled)


def _tell_at(tx: Tx) -> int:
    """When somebody else tells it, should its teller die."""
    return tx.now + seconds(RETRY_FIRST_SECONDS)


def begin_control(
    tx: Tx, workspace: str, manifest_id: str, revision: int, body: bytes, owner: str
) -> Outgoing | bool:
    """Begin telling the engine what was decided for a manifest; else whether it has been told."""
    effect = effects.ensure(
        tx,
        EffectIdentity(
            workspace=workspace,
            family="submission",
            key=f"CONTROL:{workspace}:{manifest_id}:{revision}",
            idempotency="PROVIDER_IDEMPOTENT",
            purpose="tell the engine to pause, cancel or go on",
            source_kind="manifests",
            source_id=manifest_id,
            payload_fingerprint=sha256(body),
            correlation_id=manifest_id,
        ),
    )
    effects.take_over(tx, effect.id)
    plan = AttemptPlan("engine", owner, 0, CONTROL_SECONDS, sha256(body))
    outgoing = effects.start(tx, effect, plan, body, {"kind": "control", "client_job_id": manifest_id})
    if outgoing is not None:
        return outgoing
    standing = effects.find(tx, effect.id)
    if standing is None or standing.state != "SUCCEEDED":
        return False
    manifests.told(tx, manifest_id, revision)
    return True


def record_control(tx: Tx, outgoing: Outgoing, answer: Answer, manifest_id: str, revision: int) -> bool:
    """Record the engine's word on a control; True when it has it. Told is told: nothing is due any more.

    An answer that comes late leaves it due: another attempt is under way, and must come to its end.
    """
    settled = effects.settle(tx, outgoing.attempt_id, answer)
    told = answer.outcome in ("SUCCEEDED", "ACCEPTED")
    if not settled.late:
        effects.move(tx, outgoing.effect_id, effects.event_of_repeatable(answer))
        if told:
            manifests.told(tx, manifest_id, revision)
    return told


def cancel_shard(tx: Tx, manifest_id: str, shard: int) -> bool:
    """Skip open intents of one shard that no submission carries to the engine; whether there may be more.

    Raising the fence takes the shard from whoever prepares it. What the engine holds is ended by its own
    event.
    """
    tx.touched(
        sa.update(_SHARDS)
        .where(_SHARDS.c.manifest_id == manifest_id, _SHARDS.c.shard == shard)
        .values(fence=_SHARDS.c.fence + 1, lease_owner=None, lease_expires_at=None)
    )
    sent = (
        sa.select(_SUBMISSIONS.c.id)
        .where(
            _SUBMISSIONS.c.id == _INTENTS.c.submission_id,
            _SUBMISSIONS.c.state.in_(sorted(SUBMISSION.open)),  # its bytes may be with the engine
        )
        .correlate(_INTENTS)
    )
    free = tx.all(
        sa.select(_INTENTS)
        .where(
            _INTENTS.c.manifest_id == manifest_id,
            _INTENTS.c.shard == shard,
            _INTENTS.c.state.in_(sorted(INTENT.groups["PREPARING"])),
            ~sa.exists(sent),
        )
        .limit(CANCEL_INTENTS)
    )
    moving.move(tx, free, "cancel", error_code="canceled")
    shards.recount(tx, manifest_id, [shard])
    return len(free) == CANCEL_INTENTS


def shards_of(tx: Tx, manifest_id: str) -> list[int]:
    """The shards in which a canceled manifest may have open intents."""
    return shards.of_manifest(tx, manifest_id)


def request_publication(tx: Tx, scope: Scope, manifest_id: str, intent_ids: Sequence[str] | None) -> int:
    """Ask for publication of settled intents: those named, or all; how many were asked for.

    All of them are one request however many they are: planning goes through them page by page.
    """
    manifest = manifests.find(tx, scope, manifest_id)
    if manifest is None:
        raise CallerError(f"no manifest {manifest_id}", "not_found")
    manifests.keep(tx, manifest_id)
    if intent_ids is None:
        sums = shards.totals(tx, manifest_id)
        count = sums["completed"] + sums["failed"]
        if count:
            requests.write_for_all(tx, manifest)
        return count
    settled = (_INTENTS.c.state.in_(["completed", "failed"]), _INTENTS.c.id.in_(list(intent_ids)))
    mine = sa.select(_INTENTS.c.id).where(_INTENTS.c.manifest_id == manifest_id, *settled)
    ids = [row.id for row in tx.all(mine)]
    requests.write(tx, manifest, ids, asked=True)
    return len(ids)


def free_pairs(tx: Tx, limit: int) -> int:
    """Give pairs whose holder has ended to the intents that wait for them; how many became due."""
    holder = _INTENTS.alias("holder")
    rows = tx.all(
        sa.select(_INTENTS)
        .select_from(_INTENTS.join(holder, _INTENTS.c.blocked_by == holder.c.id))
        .where(
            _INTENTS.c.blocked_by > "",  # by the index of those that wait: each step looks, and few do
            _INTENTS.c.parked_for == "pair",
            holder.c.state.in_(sorted(INTENT.terminal)),
        )
        .order_by(_INTENTS.c.blocked_by, _INTENTS.c.id)
        .limit(limit)
    )
    freed = 0
    for row in rows:
        shards.lock(tx, row.manifest_id, [row.shard])
        freed += _free(tx, row)
        shards.recount(tx, row.manifest_id, [row.shard])
    return freed


def _free(tx: Tx, row: Row) -> int:
    key = intents.active_key(row.project_id, row.document, row.locale)
    holder = tx.scalar(sa.select(_INTENTS.c.id).where(_INTENTS.c.active_key == key))
    parked = sa.update(_INTENTS).where(_INTENTS.c.id == row.id, _INTENTS.c.parked_for == "pair")
    if holder is not None:
        tx.touched(parked.values(blocked_by=holder))
        return 0
    return tx.touched(parked.values(blocked_by=None, parked_for="", active_key=key, next_attempt_at=tx.now))


def audit(tx: Tx, manifest: Row, actor: str, action: str) -> None:
    """Append who did what to a manifest."""
    history.append(
        tx,
        [
            history.Entry(
                workspace=manifest.workspace,
                kind="audit",
                subject=manifest.id,
                action=action,
                actor=actor,
                correlation_id=manifest.id,
            )
        ],
    )
