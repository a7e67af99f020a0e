"""Rows of `workspaces`, `projects`, `tokens` and `workers`: who is served, and by whom."""

from __future__ import annotations

import json

import sqlalchemy as sa

from dragoman.store.schema import effects as system
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_PROJECTS, _TOKENS, _WORKERS = tables.projects, tables.tokens, system.workers


def ensure_workspace(tx: Tx, workspace: str) -> None:
    """The workspace's row, made if new."""
    row = {"id": workspace, "created_at": tx.now, "updated_at": tx.now}
    tx.insert_new(tables.workspaces, [row], ("id",))


def ensure_project(tx: Tx, workspace: str, name: str, settings: str) -> str:
    """The project's id; its row is made, or brought to these settings (canonical JSON) with a higher
    version.
    """
    row = {
        "id": tx.new_id(),
        "workspace": workspace,
        "name": name,
        "settings": settings,
        "version": 1,
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    tx.insert_new(_PROJECTS, [row], ("workspace", "name"))
    here = (_PROJECTS.c.workspace == workspace, _PROJECTS.c.name == name)
    tx.touched(
        sa.update(_PROJECTS)
        .where(*here, _PROJECTS.c.settings != settings)
        .values(settings=settings, version=_PROJECTS.c.version + 1, updated_at=tx.now)
    )
    return str(tx.scalar(sa.select(_PROJECTS.c.id).where(*here)))


def project(tx: Tx, workspace: str, name: str) -> Row | None:
    """One project of a workspace by name."""
    return tx.first(sa.select(_PROJECTS).where(_PROJECTS.c.workspace == workspace, _PROJECTS.c.name == name))


def lock_project(tx: Tx, project_id: str) -> Row | None:
    """One project, locked until this transaction ends: admissions that resume stand in line here."""
    return tx.first(sa.select(_PROJECTS).where(_PROJECTS.c.id == project_id).with_for_update())


def token(tx: Tx, hashed: str) -> Row | None:
    """The token of this hash, unless it was revoked."""
    return tx.first(sa.select(_TOKENS).where(_TOKENS.c.hash == hashed, _TOKENS.c.revoked_at.is_(None)))


def add_token(tx: Tx, workspace: str, actor: str, hashed: str, capabilities: str) -> str:
    """A new token; only its hash is kept."""
    row = {
        "id": tx.new_id(),
        "workspace": workspace,
        "actor": actor,
        "hash": hashed,
        "capabilities": capabilities,
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    tx.insert(_TOKENS, [row])
    return str(row["id"])


def revoke_token(tx: Tx, workspace: str, token_id: str) -> bool:
    """Revoke a token of this workspace; False where there is none in force."""
    where = (_TOKENS.c.workspace == workspace, _TOKENS.c.id == token_id, _TOKENS.c.revoked_at.is_(None))
    return tx.touched(sa.update(_TOKENS).where(*where).values(revoked_at=tx.now, updated_at=tx.now)) == 1


def tokens(tx: Tx, workspace: str) -> list[Row]:
    """The tokens of a workspace, oldest first."""
    return tx.all(sa.select(_TOKENS).where(_TOKENS.c.workspace == workspace).order_by(_TOKENS.c.created_at))


def see_worker(tx: Tx, row: dict[str, object]) -> None:
    """Write down that a worker lives: `row` has id, role, host, release, credentials, external."""
    stamped = {"started_at": tx.now, "last_seen_at": tx.now, **row}
    later = [name for name in stamped if name not in ("id", "started_at")]
    tx.upsert(_WORKERS, stamped, ("id",), later)


def workers_of(tx: Tx, role: str, since: int) -> list[str]:
    """The worker processes with a role (of several, joined by `+`) that were seen since an instant."""
    seen = tx.all(sa.select(_WORKERS.c.id, _WORKERS.c.role).where(_WORKERS.c.last_seen_at >= since))
    return sorted(row.id for row in seen if role in row.role.split("+"))


def announced(tx: Tx, role: str, since: int) -> list[str]:
    """What the worker processes with a role said that they hold, of those that were seen since an instant."""
    seen = tx.all(sa.select(_WORKERS.c.role, _WORKERS.c.credentials).where(_WORKERS.c.last_seen_at >= since))
    lists = [json.loads(row.credentials) for row in seen if role in row.role.split("+")]
    return sorted({str(reference) for references in lists for reference in references})


def last_seen_worker(tx: Tx) -> int | None:
    """When a worker was last seen."""
    seen_at = tx.scalar(sa.select(sa.func.max(_WORKERS.c.last_seen_at)))
    return None if seen_at is None else int(seen_at)
