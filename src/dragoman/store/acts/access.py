"""Tokens, and what they open: made, found, revoked; and whose manifest a reader may see."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.kernel.errors import CallerError
from dragoman.model.identities import CAPABILITIES, Identity
from dragoman.model.scopes import Workspace
from dragoman.store.rows import history, manifests, tenants
from dragoman.store.transaction import Row, Tx

__all__ = ["CAPABILITIES", "create_token", "find_token", "list_tokens", "readable_manifest", "revoke_token"]


def create_token(tx: Tx, workspace: str, actor: str, hashed: str, capabilities: Iterable[str]) -> str:
    """A token in force, known by the SHA-256 of its text only; gives its id.

    Raises `CallerError` invalid_request for a capability that does not exist.
    """
    chosen = [capability for capability in CAPABILITIES if capability in set(capabilities)]
    unknown = sorted(set(capabilities) - set(chosen))
    if unknown:
        raise CallerError(
            f"no capability {unknown[0]!r}; there are {', '.join(CAPABILITIES)}", place="capabilities"
        )
    tenants.ensure_workspace(tx, workspace)
    token_id = tenants.add_token(tx, workspace, actor, hashed, " ".join(chosen))
    _audit(tx, workspace, token_id, "create", actor)
    return token_id


def find_token(tx: Tx, hashed: str) -> Identity | None:
    """Who bears the token of this hash; None where there is none in force."""
    row = tenants.token(tx, hashed)
    return None if row is None else Identity(row.workspace, row.actor, frozenset(row.capabilities.split()))


def revoke_token(tx: Tx, workspace: str, token_id: str, actor: str = "operator") -> bool:
    """From this commit on the token opens nothing; False where none was in force."""
    revoked = tenants.revoke_token(tx, workspace, token_id)
    if revoked:
        _audit(tx, workspace, token_id, "revoke", actor)
    return revoked


def list_tokens(tx: Tx, scope: Workspace) -> list[Row]:
    """The tokens of a workspace, oldest first: for people to look at."""
    return tenants.tokens(tx, scope.id)


def readable_manifest(tx: Tx, scope: Workspace, manifest_id: str, actor: str, sees_all: bool) -> Row:
    """The manifest, if the actor asked for it or sees all of the workspace.

    Raises `CallerError` not_found in the same words for one that does not exist and for somebody else's.
    """
    row = manifests.find(tx, scope, manifest_id)
    if row is None or not (sees_all or row.actor == actor):
        raise CallerError(f"no manifest {manifest_id}", "not_found")
    return row


def _audit(tx: Tx, workspace: str, token_id: str, action: str, actor: str) -> None:
    history.append(tx, [history.Entry(workspace, "audit", token_id, f"token_{action}", actor=actor)])
