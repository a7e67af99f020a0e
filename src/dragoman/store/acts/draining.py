"""Questions of a process that drains once: what is at work, and what of it has ended."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from dragoman.model.scopes import System
from dragoman.store.rows import manifests
from dragoman.store.schema import site
from dragoman.store.transaction import Tx

_MANIFESTS = site.manifests


def at_work(tx: Tx, scope: System, limit: int) -> list[str]:
    """The newest manifests of everybody that have not ended."""
    return [row.id for row in manifests.recent(tx, scope, limit, active_only=True)]


def ended_among(tx: Tx, scope: System, manifest_ids: Sequence[str]) -> int:
    """How many of these have ended."""
    asked = sa.select(sa.func.count().label("number"))
    mine = (_MANIFESTS.c.id.in_(list(manifest_ids)), _MANIFESTS.c.phase == "ended")
    return int(tx.scalar(asked.where(*mine))) if manifest_ids else 0
