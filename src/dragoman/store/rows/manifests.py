"""Rows of `manifests` and `manifest_pages`: one admitted request, and its pairs as they were asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import PAIRS_PER_PAGE
from dragoman.machines.tables import MANIFEST
from dragoman.model.intents import ManifestDraft
from dragoman.model.scopes import Scope, System
from dragoman.model.walks import Place
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_MANIFESTS, _PAGES = tables.manifests, tables.manifest_pages

_ANY = sa.select(_MANIFESTS).where(_MANIFESTS.c.id == sa.bindparam("manifest"))
_OF_WORKSPACE = _ANY.where(_MANIFESTS.c.workspace == sa.bindparam("ws"), _MANIFESTS.c.reconciled_at.is_(None))


def of_request(tx: Tx, workspace: str, actor: str, request_id: str) -> Row | None:
    """The manifest that a request id made, if any."""
    return tx.first(
        sa.select(_MANIFESTS).where(
            _MANIFESTS.c.workspace == workspace,
            _MANIFESTS.c.actor == actor,
            _MANIFESTS.c.request_id == request_id,
        )
    )


def active_with_key(tx: Tx, workspace: str, resume_key: str) -> Row | None:
    """The manifest that is still at work under a resume key."""
    return tx.first(
        sa.select(_MANIFESTS).where(
            _MANIFESTS.c.workspace == workspace, _MANIFESTS.c.resume_key == resume_key
        )
    )


def insert(tx: Tx, draft: ManifestDraft) -> str | None:
    """Persist a manifest and its pages; None where its request id is taken."""
    manifest_id = tx.new_id()
    row = {
        "id": manifest_id,
        "workspace": draft.workspace,
        "project_id": draft.project_id,
        "actor": draft.actor,
        "request_id": draft.request_id,
        "request_fingerprint": draft.fingerprint,
        "settings": draft.settings,
        "phase": MANIFEST.initial,
        "total": len(draft.pairs) if draft.total is None else draft.total,
        "total_known": not draft.scope,
        "resume_key": draft.resume_key or None,
        "push_id": draft.push_id or None,
        "scope": draft.scope or None,
        "canary_limit": draft.canary_limit,
        "promotes": draft.promotes or None,
        "next_attempt_at": tx.now,
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    if not tx.insert_new(_MANIFESTS, [row], ("workspace", "actor", "request_id")):
        return None
    pages = [
        {
            "manifest_id": manifest_id,
            "page": start // PAIRS_PER_PAGE,
            "pairs": json.dumps(
                draft.pairs[start : start + PAIRS_PER_PAGE], ensure_ascii=False, separators=(",", ":")
            ),
        }
        for start in range(0, len(draft.pairs), PAIRS_PER_PAGE)
    ]
    tx.insert(_PAGES, pages)
    return manifest_id


def pairs_from(tx: Tx, manifest_id: str, ordinal: int, limit: int) -> list[tuple[int, str, str]]:
    """The stored pairs from an ordinal on, within one page: (ordinal, document, locale)."""
    page, offset = divmod(ordinal, PAIRS_PER_PAGE)
    text = tx.scalar(
        sa.select(_PAGES.c.pairs).where(_PAGES.c.manifest_id == manifest_id, _PAGES.c.page == page)
    )
    if text is None:
        return []
    chosen = json.loads(text)[offset : offset + limit]
    return [(ordinal + index, document, locale) for index, (document, locale) in enumerate(chosen)]


def find(tx: Tx, scope: Scope, manifest_id: str) -> Row | None:
    """One manifest; another workspace's is not found, and neither is one that is being removed."""
    if isinstance(scope, System):
        return tx.first(_ANY, {"manifest": manifest_id})
    return tx.first(_OF_WORKSPACE, {"manifest": manifest_id, "ws": scope.id})


def keep(tx: Tx, manifest_id: str) -> None:
    """Hold a manifest so that nobody proves meanwhile that it may be removed: for whoever opens it again,
    after its shards. Raises `CallerError` not_found where that has been proved.
    """
    asked = sa.select(_MANIFESTS.c.id).where(
        _MANIFESTS.c.id == manifest_id, _MANIFESTS.c.reconciled_at.is_(None)
    )
    if tx.first(asked.with_for_update()) is None:
        raise CallerError(f"no manifest {manifest_id}", "not_found")


def recent(tx: Tx, scope: Scope, limit: int, active_only: bool = False) -> list[Row]:
    """The newest manifests."""
    where = []
    if not isinstance(scope, System):
        where.append(_MANIFESTS.c.workspace == scope.id)
    if active_only:
        where.append(_MANIFESTS.c.phase.in_(sorted(MANIFEST.groups["ACTIVE"])))
    return tx.all(sa.select(_MANIFESTS).where(*where).order_by(_MANIFESTS.c.created_at.desc()).limit(limit))


def is_paused(tx: Tx, manifest_id: str) -> bool:
    """Whether nothing of a manifest may start; share-locked, so that a pause waits for who has asked."""
    asked = sa.select(_MANIFESTS.c.paused).where(_MANIFESTS.c.id == manifest_id)
    return bool(tx.scalar(asked.with_for_update(read=True)))


def word_of(tx: Tx, manifest_id: str) -> Row | None:
    """What its owner decided: `paused`, and `canceled_at`; share-locked like `is_paused`."""
    asked = sa.select(_MANIFESTS.c.paused, _MANIFESTS.c.canceled_at).where(_MANIFESTS.c.id == manifest_id)
    return tx.first(asked.with_for_update(read=True))


def decide(tx: Tx, manifest_id: str, *conditions: sa.ColumnElement[bool], due_at: int, **values: Any) -> bool:
    """Write a decision of the owner down, of a higher revision than the last; False where it does not apply.

    Whoever holds the manifest's lease has lost it. The engine is to be told until it is heard to know.
    """
    later = _MANIFESTS.c.control_revision + 1
    decided = {
        "control_revision": sa.case((later > tx.now, later), else_=tx.now),
        "control_due_at": due_at,
        "fence": _MANIFESTS.c.fence + 1,
        "lease_owner": None,
        "lease_expires_at": None,
        "updated_at": tx.now,
        **values,
    }
    where = (_MANIFESTS.c.id == manifest_id, *conditions)
    return tx.touched(sa.update(_MANIFESTS).where(*where).values(**decided)) == 1


def told(tx: Tx, manifest_id: str, revision: int) -> bool:
    """Note that the engine knows this decision; False where a newer one stands, which it is still to hear."""
    heard = sa.update(_MANIFESTS).where(
        _MANIFESTS.c.id == manifest_id, _MANIFESTS.c.control_revision == revision
    )
    return tx.touched(heard.values(control_due_at=None)) == 1


def untold(tx: Tx, limit: int) -> list[Row]:
    """Manifests with a decision that the engine is now due to be told, longest due first."""
    due = sa.select(_MANIFESTS).where(_MANIFESTS.c.control_due_at <= tx.now)
    return tx.all(due.order_by(_MANIFESTS.c.control_due_at, _MANIFESTS.c.id).limit(limit))


def change(tx: Tx, manifest_id: str, **values: Any) -> bool:
    """Change columns of a manifest; False where it is gone."""
    stamped = {"updated_at": tx.now, **values}
    return tx.touched(sa.update(_MANIFESTS).where(_MANIFESTS.c.id == manifest_id).values(**stamped)) == 1


def relisting(tx: Tx, manifest: Row) -> dict[str, Any]:
    """The changes by which collections that could not be listed are walked again; none without any."""
    if not manifest.gaps:
        return {}
    names = tuple(dict.fromkeys(gap["collection"] for gap in json.loads(manifest.gaps)))
    place = replace(Place.parse(manifest.cursor), phase="collections", collection=0, position="", item=0)
    return {
        "phase": "enumerating",
        "cursor": replace(place, names=names, again=False).text,
        "gaps": None,
        "total_known": False,
        "attempt_count": 0,
        "next_attempt_at": tx.now,
    }


def promoted_to(tx: Tx, manifest_id: str) -> str | None:
    """The manifest that goes on with what a canary left out, if any."""
    found: str | None = tx.scalar(sa.select(_MANIFESTS.c.id).where(_MANIFESTS.c.promotes == manifest_id))
    return found
