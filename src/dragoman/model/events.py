"""The engine's event of a job's end, read from its frozen payload; callbacks and reconciliation read the
same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.kernel.canonical import encode
from dragoman.kernel.errors import CallerError
from dragoman.model.intents import USAGE, FieldResult, ItemResult, JobEvent

_MONEY_MAX = 2**53


@dataclass(frozen=True, slots=True)
class Delivery:
    """A verified callback as it came in. `fingerprint` covers the body."""

    workspace: str
    family: str
    event_id: str
    object_ref: str
    event_sequence: int
    fingerprint: str
    body: str


EVENTS = frozenset({"job.completed", "job.failed", "job.canceled"})
"""Everything that an engine tells a site; nothing else is taken in."""


def pages_needed(payload: Mapping[str, Any]) -> bool:
    """Whether the texts lie behind a link instead of in the payload."""
    return payload.get("results") == "link"


def event_of(payload: Mapping[str, Any]) -> JobEvent:
    """The event in a payload. Raises `CallerError` naming what is missing."""
    try:
        return JobEvent(
            submission_id=str(payload["submission_id"]),
            job_id=str(payload["job_id"]),
            client_job_id=str(payload["clientJobId"]),
            event_sequence=int(payload["event_sequence"]),
            status=payload["status"],
            code=str(payload.get("code") or ""),
            message=str(payload.get("message") or ""),
            items=tuple(_item(item) for item in payload.get("items", ())),
            usage=_usage(payload.get("usage") or {}),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CallerError(f"the event is not complete: {error}", place="event") from error


def _usage(told: Mapping[str, Any]) -> dict[str, int]:
    """The sums of an event's `usage` that are whole numbers; whatever else it holds is passed over."""
    sums = {name: (told.get(name.rpartition("_")[0]) or {}).get(name.rpartition("_")[2]) for name in USAGE}
    return {name: value for name, value in sums.items() if type(value) is int and 0 <= value < _MONEY_MAX}


def _item(item: Mapping[str, Any]) -> ItemResult:
    fields = item.get("fields") or {}
    return ItemResult(
        ref=str(item["ref"]),
        status=item["status"],
        code=str(item.get("code") or ""),
        fields=tuple(_field(key, field) for key, field in fields.items()),
    )


def _field(wire_key: str, field: Mapping[str, Any]) -> FieldResult:
    plural = field.get("plural")
    return FieldResult(
        wire_key=wire_key,
        text=field.get("text") if plural is None else _plural_text(plural),
        plural=plural is not None,
        via=str(field.get("via") or ""),
        code=str(field.get("code") or ""),
        check=str(field.get("check") or ""),
        message=str(field.get("message") or ""),
        review=tuple(map(str, field.get("review") or ())),
    )


def _plural_text(plural: Mapping[str, str]) -> str:
    return encode(dict(plural)).decode("utf-8")
