"""Rows of `entries` as publishing moves them: what we last wrote at a target, and what was known before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.identity import key_hash
from dragoman.model.publications import WrittenUnit
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Tx

_ENTRIES = tables.entries
_KEPT = ("key_hash", "source_hash", "written_hash", "origin", "manifest_id")


class Place(NamedTuple):
    """One document in one locale of one project."""

    workspace: str
    project_id: str
    document: str
    locale: str


def standing(tx: Tx, place: Place, keys: Collection[str] | None) -> list[dict[str, Any]]:
    """What is on record of these units, or of all of the place, fit to be put back by `restore`."""
    columns = [_ENTRIES.c[name] for name in _KEPT]
    return [row._asdict() for row in tx.all(sa.select(*columns).where(_at(place, keys)))]


def write(tx: Tx, place: Place, manifest_id: str, units: Sequence[WrittenUnit], whole: bool) -> None:
    """Record what we wrote. A file written whole has no other units left."""
    rows = [
        {
            "key_hash": unit.key_hash,
            "source_hash": unit.source_hash,
            "written_hash": unit.written_hash,
            "origin": "ours",
            "manifest_id": manifest_id,
        }
        for unit in units
    ]
    _replace(tx, place, None if whole else [unit.key_hash for unit in units], rows)


def restore(
    tx: Tx, place: Place, units: Sequence[WrittenUnit], whole: bool, before: Sequence[dict[str, Any]]
) -> None:
    """Put back what was on record before a step that has been undone."""
    _replace(tx, place, None if whole else [unit.key_hash for unit in units], before)


def _replace(tx: Tx, place: Place, keys: Collection[str] | None, rows: Sequence[dict[str, Any]]) -> None:
    tx.touched(sa.delete(_ENTRIES).where(_at(place, keys)))
    where = {
        "workspace": place.workspace,
        "project_id": place.project_id,
        "document": place.document,
        "document_hash": key_hash(place.document),
        "locale": place.locale,
        "updated_at": tx.now,
    }
    tx.insert(_ENTRIES, [{**where, **row} for row in rows])


def _at(place: Place, keys: Collection[str] | None) -> sa.ColumnElement[bool]:
    here = sa.and_(
        _ENTRIES.c.project_id == place.project_id,
        _ENTRIES.c.document_hash == key_hash(place.document),
        _ENTRIES.c.locale == place.locale,
    )
    return here if keys is None else sa.and_(here, _ENTRIES.c.key_hash.in_(sorted(keys)))
