"""Rows of `manifests` and `manifest_pages`: one admitted request, and its pairs as they were asked for."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.limits import PAIRS_PER_PAGE
from dragoman.machines.tables import MANIFEST
from dragoman.model.intents import ManifestDraft
from dragoman.model.scopes import Scope, System
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_MANIFESTS, _PAGES = tables.manifests, tables.manifest_pages


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
        "total": len(draft.pairs),
        "total_known": True,
        "resume_key": draft.resume_key or None,
        "push_id": draft.push_id or None,
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
    """One manifest; another workspace's is not found."""
    where = [_MANIFESTS.c.id == manifest_id]
    if not isinstance(scope, System):
        where.append(_MANIFESTS.c.workspace == scope.id)
    return tx.first(sa.select(_MANIFESTS).where(*where))


def recent(tx: Tx, scope: Scope, limit: int, active_only: bool = False) -> list[Row]:
    """The newest manifests."""
    where = []
    if not isinstance(scope, System):
        where.append(_MANIFESTS.c.workspace == scope.id)
    if active_only:
        where.append(_MANIFESTS.c.phase.in_(sorted(MANIFEST.groups["ACTIVE"])))
    return tx.all(sa.select(_MANIFESTS).where(*where).order_by(_MANIFESTS.c.created_at.desc()).limit(limit))


def change(tx: Tx, manifest_id: str, **values: Any) -> bool:
    """Change columns of a manifest; False where it is gone."""
    stamped = {"updated_at": tx.now, **values}
    return tx.touched(sa.update(_MANIFESTS).where(_MANIFESTS.c.id == manifest_id).values(**stamped)) == 1
