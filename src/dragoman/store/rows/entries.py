"""Rows of `entries` as publishing moves them: what we last wrote at a target, and what was known before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.identity import key_hash
from dragoman.model.intents import Relabel
from dragoman.model.publications import WrittenUnit
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Tx

_ENTRIES, _RESULTS, _INTENTS = tables.entries, tables.results, tables.intents
_KEPT = ("key_hash", "source_hash", "written_hash", "origin", "basis", "manifest_id")

_HERE = sa.and_(
    _ENTRIES.c.project_id == sa.bindparam("project"),
    _ENTRIES.c.document_hash == sa.bindparam("document_key"),
    _ENTRIES.c.locale == sa.bindparam("place"),
)
_UNITS = _ENTRIES.c.key_hash.in_(sa.bindparam("units", expanding=True))
_STANDING = sa.select(*[_ENTRIES.c[name] for name in _KEPT]).where(_HERE)
_STANDING_UNITS = _STANDING.where(_UNITS)
_BASES = (
    sa.select(_RESULTS.c.key_hash, _RESULTS.c.basis)
    .join(_INTENTS, _INTENTS.c.id == _RESULTS.c.intent_id)
    .where(_INTENTS.c.manifest_id == sa.bindparam("manifest"), _INTENTS.c.pair_hash == sa.bindparam("pair"))
)
_DROP = sa.delete(_ENTRIES).where(_HERE)
_DROP_UNITS = _DROP.where(_UNITS)
_RELABEL = (
    sa.update(_ENTRIES)
    .where(
        _HERE,
        _ENTRIES.c.key_hash == sa.bindparam("unit"),
        _ENTRIES.c.written_hash == sa.bindparam("written"),
        _ENTRIES.c.origin != "imported",
    )
    .values(origin=sa.bindparam("whose"), updated_at=sa.bindparam("now"))
)


class Place(NamedTuple):
    """One document in one locale of one project."""

    workspace: str
    project_id: str
    document: str
    locale: str


def standing(tx: Tx, place: Place, keys: Collection[str] | None) -> list[dict[str, Any]]:
    """What is on record of these units, or of all of the place, fit to be put back by `restore`."""
    if keys is None:
        return [row._asdict() for row in tx.all(_STANDING, _at(place))]
    return [row._asdict() for row in tx.all(_STANDING_UNITS, {**_at(place), "units": sorted(keys)})]


def write(tx: Tx, place: Place, manifest_id: str, units: Sequence[WrittenUnit], whole: bool) -> None:
    """Record what we wrote, and what it was made from. A file written whole has no other units left."""
    pair = {"manifest": manifest_id, "pair": key_hash(place.document, place.locale)}
    bases = {row.key_hash: row.basis for row in tx.all(_BASES, pair)}
    rows = [
        {
            "key_hash": unit.key_hash,
            "source_hash": unit.source_hash,
            "written_hash": unit.written_hash,
            "origin": "ours",
            "basis": bases.get(unit.key_hash, ""),
            "manifest_id": manifest_id,
        }
        for unit in units
    ]
    _replace(tx, place, None if whole else [unit.key_hash for unit in units], rows)


def relabel(tx: Tx, place: Place, relabeled: Sequence[Relabel]) -> None:
    """Say whose these texts are now; what we have written anew since they were looked at stays ours."""
    rows = [
        {"unit": one.key_hash, "written": one.written_hash, "whose": one.origin, "now": tx.now}
        for one in sorted(relabeled, key=lambda one: one.key_hash)
    ]
    tx.touched_each(_RELABEL, [{**_at(place), **row} for row in rows])


def restore(
    tx: Tx, place: Place, units: Sequence[WrittenUnit], whole: bool, before: Sequence[dict[str, Any]]
) -> None:
    """Put back what was on record before a step that has been undone, wholly or for these units."""
    keys = {unit.key_hash for unit in units}
    rows = [row for row in before if whole or row["key_hash"] in keys]
    _replace(tx, place, None if whole else keys, rows)


def _replace(tx: Tx, place: Place, keys: Collection[str] | None, rows: Sequence[dict[str, Any]]) -> None:
    if keys is None:
        tx.touched(_DROP, _at(place))
    else:
        tx.touched(_DROP_UNITS, {**_at(place), "units": sorted(keys)})
    where = {
        "workspace": place.workspace,
        "project_id": place.project_id,
        "document": place.document,
        "document_hash": key_hash(place.document),
        "locale": place.locale,
        "updated_at": tx.now,
    }
    tx.insert(_ENTRIES, [{**where, **row} for row in rows])


def _at(place: Place) -> dict[str, Any]:
    """The values that name a place in the statements above."""
    return {"project": place.project_id, "document_key": key_hash(place.document), "place": place.locale}
