"""Rows of `job_items` and `job_fields`: what a job translates, text by text, and how each ended.

A field leaves `open` once: every write names that state. Knows nothing of calls or of money.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.errors import sanitize
from dragoman.machines.tables import FIELD
from dragoman.model.jobs import Field, NewField, Result, SubmittedItem
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx
from dragoman.store.wording import read, written

_ITEMS, _FIELDS = tables.job_items, tables.job_fields

_DONE, _FAILED, _PASSED = (
    FIELD.next(FIELD.initial, event) for event in ("translate", "fail", "pass_through")
)

_OPEN = (
    sa.select(
        _FIELDS.c.ordinal,
        _FIELDS.c.item,
        _FIELDS.c.text,
        _FIELDS.c.plural,
        _FIELDS.c.syntax,
        _FIELDS.c.source_hash,
        _FIELDS.c.context_hash,
        _FIELDS.c.note,
        _FIELDS.c.context,
        _FIELDS.c.max_length,
        _FIELDS.c.repeat_of,
        _FIELDS.c.calls,
        _ITEMS.c.target_locale,
    )
    .join(_ITEMS, sa.and_(_ITEMS.c.job_id == _FIELDS.c.job_id, _ITEMS.c.ordinal == _FIELDS.c.item))
    .where(_FIELDS.c.job_id == sa.bindparam("job"), _FIELDS.c.state == FIELD.initial)
    .order_by(_FIELDS.c.ordinal)
)
_TEXTS = sa.select(_FIELDS.c.item, _FIELDS.c.ordinal, _FIELDS.c.text).where(
    _FIELDS.c.job_id == sa.bindparam("job"),
    _FIELDS.c.ordinal.in_(sa.bindparam("ordinals", expanding=True)),
    _FIELDS.c.plural == False,  # noqa: E712 - a column, not a truth value
)
_NEIGHBOURS_PAGE = 500
_ENDED = (
    sa.select(
        _FIELDS.c.item,
        _FIELDS.c.wire_key,
        _FIELDS.c.state,
        _FIELDS.c.plural,
        _FIELDS.c.result,
        _FIELDS.c.via,
        _FIELDS.c.code,
        _FIELDS.c.check_name,
        _FIELDS.c.message,
        _FIELDS.c.missing,
        _FIELDS.c.review,
    )
    .where(
        _FIELDS.c.job_id == sa.bindparam("job"),
        _FIELDS.c.item >= sa.bindparam("first"),
        _FIELDS.c.item <= sa.bindparam("last"),
    )
    .order_by(_FIELDS.c.ordinal)
)
_ITEMS_OF = (
    sa.select(_ITEMS)
    .where(_ITEMS.c.job_id == sa.bindparam("job"), _ITEMS.c.ordinal > sa.bindparam("after"))
    .order_by(_ITEMS.c.ordinal)
    .limit(sa.bindparam("most"))
)
_END = (
    sa.update(_FIELDS)
    .where(
        _FIELDS.c.job_id == sa.bindparam("job"),
        _FIELDS.c.ordinal == sa.bindparam("field"),
        _FIELDS.c.state == FIELD.initial,
    )
    .values({name: sa.bindparam(f"new_{name}") for name in ("state", "result", "via", "code")})
    .values({name: sa.bindparam(f"new_{name}") for name in ("check_name", "message", "missing", "review")})
)
_COUNT_CALL = (
    sa.update(_FIELDS)
    .where(_FIELDS.c.job_id == sa.bindparam("job"), _FIELDS.c.ordinal == sa.bindparam("field"))
    .values(calls=sa.bindparam("count"))
)
_FAIL_OPEN = (
    sa.update(_FIELDS)
    .where(_FIELDS.c.job_id == sa.bindparam("job"), _FIELDS.c.state == FIELD.initial)
    .values(state=_FAILED, code=sa.bindparam("new_code"), message=sa.bindparam("new_message"))
)
_REOPEN = (
    sa.update(_FIELDS)
    .where(
        _FIELDS.c.job_id == sa.bindparam("job"),
        _FIELDS.c.state == _FAILED,
        _FIELDS.c.code == sa.bindparam("old_code"),
    )
    .values(state=FIELD.initial, code="", message="", calls=0)
)
_REOPEN_ITEMS = sa.update(_ITEMS).where(_ITEMS.c.job_id == sa.bindparam("job")).values(status="", code="")
_FAIL_ITEM = (
    sa.update(_ITEMS)
    .where(_ITEMS.c.job_id == sa.bindparam("job"), _ITEMS.c.ordinal == sa.bindparam("item"))
    .values(status="failed", code=sa.bindparam("new_code"))
)
_COMPLETE_ITEMS = (
    sa.update(_ITEMS)
    .where(_ITEMS.c.job_id == sa.bindparam("job"), _ITEMS.c.status == "")
    .values(status="completed")
)


def insert(tx: Tx, job_id: str, items: Sequence[SubmittedItem], fields: Sequence[NewField]) -> None:
    """Write items and fields of a new job; what passes through has its result already."""
    tx.insert(
        _ITEMS,
        [
            {
                "job_id": job_id,
                "ordinal": ordinal,
                "ref": item.ref,
                "target_locale": item.target_locale,
                "fields": len(item.fields),
            }
            for ordinal, item in enumerate(items)
        ],
    )
    tx.insert(_FIELDS, [_fresh(job_id, field) for field in fields])


def _fresh(job_id: str, field: NewField) -> dict[str, Any]:
    submitted = field.submitted
    text = None if submitted.value is None else written(submitted.value)
    return {
        "job_id": job_id,
        "ordinal": field.ordinal,
        "item": field.item,
        "wire_key": submitted.wire_key,
        "text": text,
        "plural": isinstance(submitted.value, Mapping),
        "syntax": submitted.syntax,
        "source_hash": field.source_hash,
        "context_hash": field.context_hash,
        "note": submitted.note or None,
        "context": submitted.context or None,
        "max_length": submitted.max_length,
        "repeat_of": field.repeat_of,
        "state": _PASSED if field.passes else FIELD.initial,
        "result": None if field.result is None else written(field.result),
        "via": "passed" if field.passes else "",
    }


def open_fields(tx: Tx, job_id: str) -> tuple[Field, ...]:
    """The fields still to be translated, in order; a repeat stands with the field that it repeats."""
    rows = tx.all(_OPEN, {"job": job_id})
    repeats: dict[int, list[int]] = {}
    for row in rows:
        if row.repeat_of is not None:
            repeats.setdefault(row.repeat_of, []).append(row.ordinal)
    originals = [row for row in rows if row.repeat_of is None]
    around = _around(tx, job_id, rows, originals)
    return tuple(_field(row, repeats.get(row.ordinal, ()), around) for row in originals)


def _around(tx: Tx, job_id: str, rows: Sequence[Row], originals: Sequence[Row]) -> dict[tuple[int, int], str]:
    """(item, ordinal) → source text, of all open fields and of the neighbours that are open no more."""
    known = {row.ordinal for row in rows}
    beside = {row.ordinal + step for row in originals for step in (-1, 1)} - known
    ended = sorted(ordinal for ordinal in beside if ordinal >= 0)
    texts = {(row.item, row.ordinal): row.text for row in rows if not row.plural}
    for start in range(0, len(ended), _NEIGHBOURS_PAGE):
        page = ended[start : start + _NEIGHBOURS_PAGE]
        for row in tx.all(_TEXTS, {"job": job_id, "ordinals": page}):
            texts[row.item, row.ordinal] = row.text
    return texts


def _field(row: Row, repeats: Iterable[int], around: Mapping[tuple[int, int], str]) -> Field:
    return Field(
        ordinal=row.ordinal,
        target_locale=row.target_locale,
        value=read(row.text, row.plural),
        syntax=row.syntax,
        note=row.note or "",
        context=row.context or "",
        max_length=row.max_length,
        source_hash=row.source_hash,
        context_hash=row.context_hash,
        calls=row.calls,
        repeats=tuple(repeats),
        before=around.get((row.item, row.ordinal - 1)) or "",
        after=around.get((row.item, row.ordinal + 1)) or "",
    )


def end(tx: Tx, ended: Mapping[str, Sequence[Result]]) -> None:
    """Write how these open fields, by job, ended."""
    tx.touched_each(_END, [_ending(job_id, result) for job_id in sorted(ended) for result in ended[job_id]])


def _ending(job_id: str, result: Result) -> dict[str, Any]:
    failed = bool(result.code)
    return {
        "job": job_id,
        "field": result.ordinal,
        "new_state": _FAILED if failed else _DONE,
        "new_result": None if failed or result.value is None else written(result.value),
        "new_via": result.via,
        "new_code": result.code,
        "new_check_name": result.check,
        "new_message": sanitize(result.message) if failed else "",
        "new_missing": json.dumps(result.missing, ensure_ascii=False) if result.missing else None,
        "new_review": " ".join(result.review),
    }


def count_calls(tx: Tx, counted: Mapping[str, Sequence[tuple[int, int]]]) -> None:
    """Write how often these fields, by job, which stay open, have been asked for."""
    tx.touched_each(
        _COUNT_CALL,
        [
            {"job": job_id, "field": ordinal, "count": count}
            for job_id in sorted(counted)
            for ordinal, count in counted[job_id]
        ],
    )


def fail_open(tx: Tx, job_id: str, code: str, message: str) -> None:
    """End every field that is still open with one code."""
    tx.touched(_FAIL_OPEN, {"job": job_id, "new_code": code, "new_message": sanitize(message)})


def reopen(tx: Tx, job_id: str, code: str) -> None:
    """Open every field that ended with this code once more, and the job's items."""
    tx.touched(_REOPEN, {"job": job_id, "old_code": code})
    tx.touched(_REOPEN_ITEMS, {"job": job_id})


def items(tx: Tx, job_id: str, after: int, limit: int) -> list[Row]:
    """Items of a job, in order, behind ordinal `after`."""
    return tx.all(_ITEMS_OF, {"job": job_id, "after": after, "most": limit})


def ended(tx: Tx, job_id: str, first: int, last: int) -> dict[int, list[Row]]:
    """Item ordinal → its fields in order, for the items from `first` to `last`."""
    found: dict[int, list[Row]] = {}
    for row in tx.all(_ENDED, {"job": job_id, "first": first, "last": last}):
        found.setdefault(row.item, []).append(row)
    return found


def end_items(tx: Tx, job_id: str, failed: Mapping[int, str]) -> None:
    """Write how the items of a job ended: these failed, with a code each, and all others are completed."""
    tx.touched_each(
        _FAIL_ITEM, [{"job": job_id, "item": item, "new_code": code} for item, code in failed.items()]
    )
    tx.touched(_COMPLETE_ITEMS, {"job": job_id})
