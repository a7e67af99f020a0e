"""What an estimate reads: targets on record and the project's memory. Reads only, and makes no project."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.model.memories import Known, Place
from dragoman.model.scopes import Workspace
from dragoman.store.rows import memory, tenants, texts
from dragoman.store.transaction import Row, Tx


def known_entries(
    tx: Tx, scope: Workspace, project: str, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], dict[str, Row]]:
    """What is on record of the targets of these pairs: (document, locale) → key hash → entry."""
    found = tenants.project(tx, scope.id, project)
    known: dict[tuple[str, str], dict[str, Row]] = {}
    for row in texts.entries(tx, found.id, pairs) if found is not None else ():
        known.setdefault((row.document, row.locale), {})[row.key_hash] = row
    return known


def recall(tx: Tx, scope: Workspace, place: Place, source_hashes: Sequence[str]) -> dict[str, list[Known]]:
    """Source hash → what is remembered of it in any context, for one page."""
    return memory.exact(tx, scope.id, place, source_hashes)
