"""What becomes true of a project's memory and glossary, and what is read of them, inside a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.kernel.limits import FUZZY_GROUP, TERMS_PER_LOCALE
from dragoman.model.memories import Known, Library, Manner, Place, Query, Remembered, Segment, Shelf, Term
from dragoman.model.scopes import Workspace
from dragoman.store.rows import memory, segments, terms
from dragoman.store.transaction import Tx


def recall(tx: Tx, scope: Workspace, place: Place, source_hashes: Sequence[str]) -> dict[str, list[Known]]:
    """Source hash → what is remembered of it in any context, for one page."""
    return memory.exact(tx, scope.id, place, source_hashes)


def look_alike(tx: Tx, scope: Workspace, shelf: Shelf, queries: Sequence[Query]) -> dict[int, dict[str, str]]:
    """Query → the texts that may be like it (source hash → text), for one page of queries."""
    found: dict[int, dict[str, str]] = {}
    for start in range(0, len(queries), FUZZY_GROUP):
        found |= segments.candidates(tx, scope.id, shelf, queries[start : start + FUZZY_GROUP])
    return found


def unindexed(tx: Tx, scope: Workspace, shelf: Shelf, limit: int) -> list[tuple[str, str]]:
    """(source hash, text) of what no search finds yet."""
    return [(row.source_hash, row.source) for row in segments.fresh(tx, scope.id, shelf, limit)]


def index_texts(tx: Tx, scope: Workspace, shelf: Shelf, found: Sequence[Segment]) -> None:
    """Let searches find these texts."""
    segments.index(tx, scope.id, shelf, found)


def take_stock(tx: Tx, scope: Workspace) -> None:
    """Let the database plan for a memory of its present size."""
    memory.count_anew(tx)


def take_in(tx: Tx, scope: Workspace, place: Place, given: Sequence[Remembered]) -> int:
    """Remember a page of translations that come from elsewhere; how many were new."""
    new = memory.take_in(tx, scope.id, place, given)
    plain = {one.source_hash: one.source for one in given if isinstance(one.source, str)}
    segments.add_fresh(tx, scope.id, place.shelf, plain)
    return new


def memory_page(
    tx: Tx, scope: Workspace, place: Place, after: tuple[str, str], limit: int
) -> list[Remembered]:
    """Part of the memory of a locale pair, in order of its keys."""
    return memory.page(tx, scope.id, place, after, limit)


def stats(tx: Tx, scope: Workspace, project: str) -> dict[str, list[dict[str, Any]]]:
    """How much a project remembers, and how many terms it has."""
    return {
        "memory": [row._asdict() for row in memory.counts(tx, scope.id, project)],
        "terms": [row._asdict() for row in terms.counts(tx, scope.id, project)],
    }


def library(tx: Tx, scope: Workspace, shelf: Shelf, target_locales: Sequence[str]) -> Library:
    """What translations into these locales are asked to keep to."""
    found: dict[str, list[Term]] = {}
    for term in terms.of_locales(tx, scope.id, shelf, target_locales, TERMS_PER_LOCALE):
        found.setdefault(term.target_locale, []).append(term)
    return Library(
        terms.manner(tx, scope.id, shelf.project), {name: tuple(some) for name, some in found.items()}
    )


def put_terms(tx: Tx, scope: Workspace, shelf: Shelf, given: Sequence[Term]) -> int:
    """Write a page of terms; how many were new."""
    return terms.put(tx, scope.id, shelf, given)


def drop_term(tx: Tx, scope: Workspace, shelf: Shelf, term: Term) -> bool:
    """Take a term out; False where it does not stand."""
    return terms.drop(tx, scope.id, shelf, term)


def terms_page(tx: Tx, scope: Workspace, place: Place, after: str, limit: int) -> tuple[list[Term], str]:
    """Part of a glossary, and the key to go on behind ('' at the end)."""
    return terms.page(tx, scope.id, place, after, limit)


def manner(tx: Tx, scope: Workspace, project: str) -> Manner:
    """How a project wants its translations."""
    return terms.manner(tx, scope.id, project)


def set_manner(tx: Tx, scope: Workspace, project: str, asked: Manner) -> bool:
    """Write down how a project wants its translations; whether that changed."""
    return terms.set_manner(tx, scope.id, project, asked)
