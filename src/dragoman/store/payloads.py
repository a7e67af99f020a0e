"""The JSON of a job's end, and of its items' results: one spelling for event, view and page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.kernel import canonical
from dragoman.machines.tables import FIELD
from dragoman.store.transaction import Row
from dragoman.store.wording import read

_DONE, _FAILED, _PASSED = (
    FIELD.next(FIELD.initial, event) for event in ("translate", "fail", "pass_through")
)


class EndedItem(NamedTuple):
    """One ref at its job's end. `shown` is its entry in the event, without the texts."""

    status: str
    code: str
    shown: Mapping[str, Any]
    fields: Mapping[str, Any]


def ended_item(ref: str, rows: Sequence[Row]) -> EndedItem:
    """An item out of its fields: failed with the code of its first failed field, else completed."""
    fields = {row.wire_key: _field(row) for row in rows}
    states = [row.state for row in rows]
    code = next((row.code for row in rows if row.state == _FAILED), "")
    status = "failed" if code else "completed"
    shown = {
        "ref": ref,
        "status": status,
        "code": code,
        "counts": {
            "total": len(rows),
            "done": states.count(_DONE),
            "failed": states.count(_FAILED),
            "passed_through": states.count(_PASSED),
        },
        "sha256": canonical.fingerprint(fields),
    }
    return EndedItem(status, code, shown, fields)


def _field(row: Row) -> dict[str, Any]:
    if row.state == _FAILED:
        failed = {"code": row.code, "check": row.check_name, "message": row.message}
        return failed | ({"missing": json.loads(row.missing)} if row.missing else {})
    if row.result is None:
        return {"text": None, "via": row.via}
    shown = {"plural" if row.plural else "text": read(row.result, row.plural), "via": row.via}
    return shown | ({"review": row.review.split()} if row.review else {})


def event_bytes(event: Mapping[str, Any], items: Sequence[EndedItem], bytes_max: int) -> bytes:
    """The frozen body of an event: with texts while the whole stays within `bytes_max`, else with a link."""
    inline = [{**item.shown, "fields": item.fields} for item in items]
    body = _compact({**event, "results": "inline", "items": inline})
    if len(body) <= bytes_max:
        return body
    return _compact({**event, "results": "link", "items": [item.shown for item in items]})


def identity(job: Row, status: str, sequence: int) -> dict[str, Any]:
    """What an event and a view name a job by."""
    return {
        "submission_id": job.submission_id,
        "submissionId": job.submission_id,
        "job_id": job.id,
        "clientJobId": job.client_job_id,
        "event_sequence": sequence,
        "status": status,
    }


def usage(job: Row, money: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """The money (as sums of tokens and micro-USD, by name) and the split of a job."""
    sums = {name: {"tokens": tokens, "microusd": microusd} for name, (tokens, microusd) in money.items()}
    return {
        **sums,
        "via_memory": job.via_memory,
        "via_ai": job.via_ai,
        "passed_through": job.passed_through,
    }


def _compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
