"""Which translations may go where, and the bytes that put them there; pure.

A unit is *theirs* when a person changed it: what stands there is neither what we wrote last, nor what we are
about to write, nor a text that preparation saw and chose to replace. Theirs is left alone. A format that is
`whole` is looked at as one: a text that is not ours, or one of ours that is gone, makes all of it theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dragoman.content import documents
from dragoman.content.selection import standing_hashes, text_hash, was_written
from dragoman.kernel.identity import key_hash
from dragoman.kernel.limits import LOST_KEYS_MAX
from dragoman.model.contracts import Format
from dragoman.model.documents import Document, Text
from dragoman.model.publications import PlannedStep, Record, Result, Unit, Written, WrittenUnit

_EMPTY = text_hash("")


@dataclass(frozen=True, slots=True)
class Fitting:
    """Translations by block key that may be written now, and how many units of the step are left."""

    translations: Mapping[str, Text]
    left: int


def units_of(
    whole: bool,
    results: Sequence[Result],
    target: Document | None,
    records: Mapping[str, Record],
    manifest_id: str,
) -> tuple[Unit, ...]:
    """The units that are still to be written: good results that this manifest has not put in place before.

    A whole format takes all of them along with the first, and none where one has failed.
    """
    standing = _standing(target)
    units = [
        Unit(result.key_hash, result.source_hash, text_hash(result.text), standing.get(result.key_hash))
        for result in results
        if result.text is not None
    ]
    if whole and len(units) < len(results):
        return ()
    fresh = tuple(
        unit
        for unit in units
        if target is None or not _is_placed(unit, records.get(unit.key_hash), manifest_id)
    )
    return tuple(units) if whole and fresh else fresh


def _is_placed(unit: Unit, record: Record | None, manifest_id: str) -> bool:
    return (
        record is not None
        and was_written(record)
        and record.manifest_id == manifest_id
        and record.source_hash == unit.source_hash
    )


def expected_fingerprint(whole: bool, target: Document | None, units: Sequence[Unit]) -> str | None:
    """What stands at the target, as far as it is the step's affair; None where nothing stands."""
    if target is None:
        return None
    if whole:
        return key_hash(*sorted(_standing(target).values()))
    return key_hash(*(part or "" for unit in units for part in (unit.key_hash, unit.expected_hash)))


def write_fingerprint(units: Sequence[Unit]) -> str:
    """What a step will write."""
    return key_hash(*(part for unit in units for part in (unit.key_hash, unit.source_hash, unit.write_hash)))


def fitting(whole: bool, source: Document, planned: PlannedStep, results: Sequence[Result]) -> Fitting:
    """What of a step still belongs to its source: fields whose source moved since are left.

    So are results that a later generation has replaced: its own step writes them.
    """
    now = {key_hash(block.key): text_hash(block.value) for block in source.blocks}
    texts = {result.key_hash: result for result in results if result.text is not None}
    fit: dict[str, Text] = {}
    for unit in planned.units:
        result = texts.get(unit.key_hash)
        if result is None or result.text is None or now.get(unit.key_hash) != unit.source_hash:
            continue
        if text_hash(result.text) == unit.write_hash:
            fit[result.key] = result.text
    left = len(planned.units) - len(fit)
    return Fitting({}, len(planned.units)) if whole and left else Fitting(fit, left)


def theirs(
    whole: bool,
    target: Document,
    planned: PlannedStep,
    records: Mapping[str, Record],
    before: Written | None,
    force: bool,
) -> int:
    """How many units at the target a person changed; `before` is what an earlier try of this step wrote.

    With `force` an older change of a person's is overwritten, one made since the plan is not.
    """
    tried = {unit.key_hash: unit.written_hash for unit in before.units} if before else {}
    if whole:
        return _theirs_of_whole(target, planned, records, set(tried.values()), force)
    standing = _standing(target)
    return sum(
        _is_theirs(unit, standing.get(unit.key_hash), records.get(unit.key_hash), tried, force)
        for unit in planned.units
    )


def _is_theirs(
    unit: Unit, now: str | None, record: Record | None, tried: Mapping[str, str], force: bool
) -> bool:
    if now is None or now in (unit.write_hash, tried.get(unit.key_hash)):
        return False
    if record is not None and was_written(record) and record.written_hash == now:
        return False
    if force or now != unit.expected_hash:
        return now != unit.expected_hash
    return record is None or was_written(record) or record.source_hash == unit.source_hash


def _theirs_of_whole(
    target: Document,
    planned: PlannedStep,
    records: Mapping[str, Record],
    tried: Collection[str],
    force: bool,
) -> int:
    """The texts of a whole file that are nobody's of ours, where they are any; else those that are gone."""
    standing = set(_standing(target).values())
    ours = {record.written_hash for record in records.values() if was_written(record)} - {_EMPTY}
    tried = set(tried) - {_EMPTY}
    wanted = {unit.write_hash for unit in planned.units} - {_EMPTY}
    if standing in (ours, tried, wanted):
        return 0
    moved = expected_fingerprint(True, target, ()) != planned.expected_fingerprint
    if not moved and (force or (records and not ours)):
        return 0
    return len(standing - ours) or len(ours - standing)


def written(
    form: Format, step: PlannedStep, rendered: documents.Rendered, fit: Fitting, explain: bool
) -> Written:
    """What a rendering puts on record: every unit's text as it reads at the target."""
    target = documents.open_document(form, step.target, rendered.data, "target", step.locale)
    read = {block.key: text_hash(block.value) for block in target.blocks}
    source_hashes = {unit.key_hash: unit.source_hash for unit in step.units}
    units = tuple(
        WrittenUnit(key_hash(key), source_hashes[key_hash(key)], read.get(key, text_hash(text)))
        for key, text in fit.translations.items()
    )
    edits = tuple(documents.explain(rendered.edits)) if explain else ()
    base = rendered.base if explain else ""
    return Written(units, fit.left, form.whole, base, edits, rendered.lost[:LOST_KEYS_MAX])


def _standing(target: Document | None) -> dict[str, str]:
    """Hashes of the finished texts at the target, by the hash of their block key."""
    return {key_hash(key): found for key, found in standing_hashes(target).items()}
