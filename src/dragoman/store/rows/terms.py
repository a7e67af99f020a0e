"""Rows of `terms` and `manners`: how a project's words are translated, and how it wants to sound."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from dragoman.kernel.identity import key_hash
from dragoman.model.memories import Manner, Place, Shelf, Term
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx

_TERMS, _MANNERS = tables.terms, tables.manners

_KEY = ("workspace", "project", "source_locale", "target_locale", "term_key")
_CHANGING = ("case_sensitive", "note", "updated_at")
_HERE = sa.and_(
    _TERMS.c.workspace == sa.bindparam("ws"),
    _TERMS.c.project == sa.bindparam("in_project"),
    _TERMS.c.source_locale == sa.bindparam("from_locale"),
    _TERMS.c.target_locale.in_(sa.bindparam("to_locales", expanding=True)),
)
_OF_LOCALES = (
    sa.select(_TERMS)
    .where(_HERE)
    .order_by(_TERMS.c.target_locale, _TERMS.c.term_key)
    .limit(sa.bindparam("most"))
)
_PAGE = (
    sa.select(_TERMS)
    .where(_HERE, _TERMS.c.term_key > sa.bindparam("after"))
    .order_by(_TERMS.c.term_key)
    .limit(sa.bindparam("most"))
)
_RENEW = (
    sa.update(_TERMS)
    .where(_HERE, _TERMS.c.term_key == sa.bindparam("key"))
    .values({name: sa.bindparam(f"new_{name}") for name in _CHANGING})
)
_DROP = sa.delete(_TERMS).where(_HERE, _TERMS.c.term_key == sa.bindparam("key"))
_COUNT = (
    sa.select(_TERMS.c.source_locale, _TERMS.c.target_locale, sa.func.count().label("number"))
    .where(_TERMS.c.workspace == sa.bindparam("ws"), _TERMS.c.project == sa.bindparam("in_project"))
    .group_by(_TERMS.c.source_locale, _TERMS.c.target_locale)
    .order_by(_TERMS.c.source_locale, _TERMS.c.target_locale)
)
_MANNER = sa.select(_MANNERS.c.threshold, _MANNERS.c.style).where(
    _MANNERS.c.workspace == sa.bindparam("ws"), _MANNERS.c.project == sa.bindparam("in_project")
)


def manner(tx: Tx, workspace: str, project: str) -> Manner:
    """What a project asks of its translations; the usual where it says nothing."""
    row = tx.first(_MANNER, {"ws": workspace, "in_project": project})
    return Manner() if row is None else Manner(row.threshold, row.style)


def set_manner(tx: Tx, workspace: str, project: str, asked: Manner) -> bool:
    """Write down what a project asks for, unless it stands so already; whether it changed."""
    if manner(tx, workspace, project) == asked:
        return False
    row = {
        "workspace": workspace,
        "project": project,
        "threshold": asked.threshold,
        "style": asked.style,
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    tx.upsert(_MANNERS, row, ("workspace", "project"), ("threshold", "style", "updated_at"))
    return True


def of_locales(tx: Tx, workspace: str, shelf: Shelf, target_locales: Sequence[str], limit: int) -> list[Term]:
    """The terms for these target locales, and those for all."""
    values = {
        "ws": workspace,
        "in_project": shelf.project,
        "from_locale": shelf.source_locale,
        "to_locales": ["", *target_locales],
        "most": limit,
    }
    return [_term(row) for row in tx.all(_OF_LOCALES, values)]


def page(tx: Tx, workspace: str, place: Place, after: str, limit: int) -> tuple[list[Term], str]:
    """The terms of one target locale behind a key, and the last key of this page ('' at the end)."""
    values = {**_at(workspace, place), "after": after, "most": limit}
    rows = tx.all(_PAGE, values)
    return [_term(row) for row in rows], str(rows[-1].term_key) if len(rows) == limit else ""


def put(tx: Tx, workspace: str, shelf: Shelf, terms: Sequence[Term]) -> int:
    """Write terms; how many were new. One that stands gets the new note and case."""
    rows = [
        {
            "workspace": workspace,
            "project": shelf.project,
            "source_locale": shelf.source_locale,
            "target_locale": term.target_locale,
            "term_key": _key(term),
            "source": term.source,
            "target": term.target,
            "status": term.status,
            "case_sensitive": term.case_sensitive,
            "note": term.note,
            "created_at": tx.now,
            "updated_at": tx.now,
        }
        for term in terms
    ]
    new = tx.insert_new(_TERMS, rows, _KEY)
    if new < len(rows):
        renewals = [
            {
                **_at(workspace, Place(*shelf, str(row["target_locale"]))),
                "key": row["term_key"],
                **{f"new_{name}": row[name] for name in _CHANGING},
            }
            for row in {
                (row["target_locale"], row["term_key"]): row for row in rows
            }.values()  # the last holds
        ]
        tx.touched_each(_RENEW, renewals)
    return new


def drop(tx: Tx, workspace: str, shelf: Shelf, term: Term) -> bool:
    """Take a term out; False where it does not stand."""
    place = Place(*shelf, term.target_locale)
    return tx.touched(_DROP, {**_at(workspace, place), "key": _key(term)}) == 1


def counts(tx: Tx, workspace: str, project: str) -> list[Row]:
    """How many terms there are, by locale pair."""
    return tx.all(_COUNT, {"ws": workspace, "in_project": project})


def _key(term: Term) -> str:
    return key_hash(term.source, term.target, term.status)


def _term(row: Row) -> Term:
    return Term(row.source, row.target, row.target_locale, row.status, row.case_sensitive, row.note)


def _at(workspace: str, place: Place) -> dict[str, object]:
    return {
        "ws": workspace,
        "in_project": place.project,
        "from_locale": place.source_locale,
        "to_locales": [place.target_locale],
    }
