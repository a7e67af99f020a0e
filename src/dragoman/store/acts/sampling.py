"""Transactions of a canary: its sample is written down once, its intents are let go or left out, and a
second manifest goes on with those left out.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from dragoman.kernel import canonical
from dragoman.kernel.errors import CallerError, LeaseLost
from dragoman.model.intents import Admitted, ManifestDraft
from dragoman.model.scopes import Scope, System
from dragoman.model.walks import Place
from dragoman.store import leases
from dragoman.store.acts import moving
from dragoman.store.rows import intents, manifests, shards
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx, repeatable

_MANIFESTS = tables.manifests


def held_pairs(tx: Tx, manifest_id: str, ordinal: int, limit: int) -> list[tuple[int, str, str]]:
    """The next candidates of a canary: (ordinal, document, locale)."""
    rows = intents.held_after(tx, manifest_id, ordinal, limit)
    return [(row.ordinal, row.document, row.locale) for row in rows]


def store_sample(tx: Tx, manifest_id: str, fence: int, sample: tuple[int, ...]) -> Place:
    """Write the sample down, once: one that stands stays. Raises `LeaseLost` under a stale fence."""
    place = Place.parse(_held(tx, manifest_id, fence).cursor)
    if place.sample is None:
        place = replace(place, phase="canary", item=0, sample=sample)
        manifests.change(tx, manifest_id, cursor=place.text)
    return place


def settle_sample(tx: Tx, manifest_id: str, fence: int, limit: int) -> bool:
    """Let the next `limit` intents go, or leave them out, as the stored sample says; True at the end.

    The last one opens the manifest and releases its lease. Raises `LeaseLost` under a stale fence.
    """
    seen = manifests.find(tx, System(), manifest_id)
    after = Place.parse(seen.cursor).item - 1 if seen is not None else -1
    rows = intents.held_after(tx, manifest_id, after, limit)
    touched = {row.shard for row in rows}
    shards.lock(tx, manifest_id, touched)
    manifest = _held(tx, manifest_id, fence)
    place = Place.parse(manifest.cursor)
    if place.sample is None:
        raise LeaseLost(f"manifest {manifest_id} has no sample yet")
    chosen = frozenset(place.sample)
    left = [row for row in rows if row.ordinal not in chosen]
    intents.let_go(tx, [row for row in rows if row.ordinal in chosen])
    moving.move(tx, left, "leave_out", error_code="canary_not_sampled")
    ended = len(rows) < limit
    if ended:
        values = {
            "phase": "open",
            "next_attempt_at": None,
            "updated_at": tx.now,
            "total": shards.made(tx, manifest_id),
            "total_known": True,
            "cursor": replace(place, phase="done", item=0).text,
        }
        leases.release(tx, _MANIFESTS, (manifest_id,), fence, values)
    else:
        manifests.change(tx, manifest_id, cursor=replace(place, item=rows[-1].ordinal + 1).text)
    shards.recount(tx, manifest_id, touched)
    if ended:
        shards.end_manifest(tx, manifest_id)
    return ended


def _held(tx: Tx, manifest_id: str, fence: int) -> Row:
    manifest = tx.first(
        sa.select(_MANIFESTS).where(leases.held(_MANIFESTS, (manifest_id,), fence)).with_for_update()
    )
    if manifest is None or manifest.phase != "enumerating" or manifest.canceled:
        raise LeaseLost(f"manifest {manifest_id} is enumerated by somebody else")
    return manifest


@repeatable
def promote_manifest(tx: Tx, scope: Scope, manifest_id: str, actor: str, may_force: bool) -> Admitted:
    """Admit the manifest that goes on with what a canary left out; the same again for the same canary.

    Raises `CallerError`: `not_found`, `not_owner`, `forbidden` for a canary of mode `force`,
    `nothing_to_promote`.
    """
    canary = manifests.find(tx, scope, manifest_id)
    if canary is None:
        raise CallerError(f"no manifest {manifest_id}", "not_found")
    if canary.actor != actor:
        raise CallerError(f"manifest {manifest_id} was asked for by somebody else", "not_owner")
    settings = json.loads(canary.settings)
    if settings.get("mode") == "force" and not may_force:
        raise CallerError("this canary replaces what people edited: that has its own right", "forbidden")
    draft = ManifestDraft(
        workspace=canary.workspace,
        project_id=canary.project_id,
        actor=actor,
        request_id=f"promote:{manifest_id}",
        fingerprint=canonical.fingerprint({"promotes": manifest_id}),
        settings=canary.settings,
        pairs=(),
        promotes=manifest_id,
    )
    known = manifests.of_request(tx, draft.workspace, actor, draft.request_id)
    if known is not None:
        return Admitted(known.id, known.total, "replayed")
    manifests.keep(tx, manifest_id)
    total = intents.count_left_out(tx, manifest_id) if canary.phase != "enumerating" else 0
    if total == 0:
        raise CallerError(
            f"manifest {manifest_id} left nothing out, or has not chosen yet", "nothing_to_promote"
        )
    made = manifests.insert(tx, replace(draft, total=total))
    if made is not None:
        return Admitted(made, total, "created")
    winner = manifests.of_request(tx, draft.workspace, actor, draft.request_id)
    if winner is None:
        raise CallerError(f"manifest {manifest_id} is being promoted at this moment", "request_id_conflict")
    return Admitted(winner.id, winner.total, "replayed")


def canary_of(tx: Tx, manifest: Row) -> dict[str, Any]:
    """What a manifest has to do with canaries: for who looks at the status."""
    promoted_to = manifests.promoted_to(tx, manifest.id) if manifest.canary_limit else None
    return {"limit": manifest.canary_limit, "promotes": manifest.promotes, "promoted_to": promoted_to}
