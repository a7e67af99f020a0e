"""Transactions by which a fresh database takes over what files prove of translations made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.kernel.identity import key_hash
from dragoman.model.scopes import Workspace
from dragoman.store.acts import estimating
from dragoman.store.rows import tenants, texts
from dragoman.store.transaction import Tx


class Adopted(NamedTuple):
    """One unit on record elsewhere: hash of its key, of its source, of what was written, and its origin."""

    key_hash: str
    source_hash: str
    written_hash: str
    origin: str


def unknown_pairs(
    tx: Tx, scope: Workspace, project: str, pairs: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Of these (document, locale) pairs, those of whose targets nothing is on record."""
    known = estimating.known_entries(tx, scope, project, pairs)
    return [pair for pair in pairs if pair not in known]


def adopt_entries(
    tx: Tx, scope: Workspace, project: str, settings: str, found: Mapping[tuple[str, str], Sequence[Adopted]]
) -> int:
    """Put these pairs on record, but for those of which something is known by now; how many were.

    `settings` are the project's, canonical JSON: it is registered where it is new.
    """
    tenants.ensure_workspace(tx, scope.id)
    project_id = tenants.ensure_project(tx, scope.id, project, settings)
    tenants.lock_project(tx, project_id)
    fresh = unknown_pairs(tx, scope, project, sorted(found))
    rows = [
        {
            **unit._asdict(),
            "project_id": project_id,
            "workspace": scope.id,
            "document": document,
            "document_hash": key_hash(document),
            "locale": locale,
            "basis": "",
            "manifest_id": None,
            "updated_at": tx.now,
        }
        for document, locale in fresh
        for unit in found[document, locale]
    ]
    texts.add_seen(tx, rows)
    return len(fresh)
