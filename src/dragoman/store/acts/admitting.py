"""Transactions of admission: workspaces, projects, and the one that makes a manifest durable."""

from __future__ import annotations

from dragoman.kernel.errors import CallerError
from dragoman.model.intents import Admitted, ManifestDraft
from dragoman.store.rows import manifests, tenants
from dragoman.store.transaction import Row, Tx, repeatable


@repeatable
def register_project(tx: Tx, workspace: str, name: str, settings: str) -> str:
    """The project's id; workspace and project exist afterwards, with these settings."""
    tenants.ensure_workspace(tx, workspace)
    return tenants.ensure_project(tx, workspace, name, settings)


@repeatable
def admit_manifest(tx: Tx, draft: ManifestDraft) -> Admitted:
    """One durable manifest for one request id: new, the same again, or an active one under the same resume
    key.

    Raises `CallerError` `request_id_conflict` when the id stands for another request.
    """
    known = manifests.of_request(tx, draft.workspace, draft.actor, draft.request_id)
    if known is not None:
        return _same(known, draft)
    if draft.resume_key:
        tenants.lock_project(tx, draft.project_id)
        active = manifests.active_with_key(tx, draft.workspace, draft.resume_key)
        if active is not None:
            return Admitted(active.id, active.total, "resumed", bool(active.total_known))
    made = manifests.insert(tx, draft)
    if made is not None:
        total = len(draft.pairs) if draft.total is None else draft.total
        return Admitted(made, total, "created", not draft.scope)
    winner = manifests.of_request(tx, draft.workspace, draft.actor, draft.request_id)
    if winner is None:
        raise CallerError(
            f"request id {draft.request_id} is being admitted at this moment", "request_id_conflict"
        )
    return _same(winner, draft)


def _same(known: Row, draft: ManifestDraft) -> Admitted:
    if known.request_fingerprint != draft.fingerprint:
        raise CallerError(
            f"request id {draft.request_id} was used for another request",
            "request_id_conflict",
            place="request_id",
        )
    return Admitted(known.id, known.total, "replayed", bool(known.total_known))
