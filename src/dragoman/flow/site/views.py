"""What people see of a manifest: status, money, failures, results. Reads only; the same answer at every
door.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.kernel.clock import MICROSECONDS, iso
from dragoman.kernel.errors import CODES, DragomanError
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import FAILURES_PAGE, ITEMS_PAGE, SCHEDULING_DELAYED_SECONDS
from dragoman.kernel.offload import InlineOffload, Offload
from dragoman.model.contracts import Source
from dragoman.model.scopes import Workspace
from dragoman.store.acts import expanding, following, manifest_health, publications, sampling, viewing
from dragoman.store.database import Database
from dragoman.store.transaction import Row, Tx

_MICRO = 1_000_000
_PAGES_LOOKED_AT = 5

_log = logger(__name__)


class Views:
    """Answers questions about manifests of one workspace."""

    def __init__(
        self,
        database: Database,
        source_of: Callable[[Mapping[str, Any]], Source],
        offload: Offload | None = None,
    ) -> None:
        self._database = database
        self._source_of = source_of
        self._offload = offload or InlineOffload()

    async def status(self, workspace: str, manifest_id: str, reader: str | None = None) -> dict[str, Any]:
        """Status, counters that sum, money, timestamps and health of a manifest.

        A `reader` is told of what is not in place only where it may edit the document.
        """
        scope = Workspace(workspace)
        status = await self._database.read(_status, scope, manifest_id)
        publication = status["publication"]
        if reader is not None and publication["problems"]:
            settings = await self._database.read(_settings, scope, manifest_id)
            shown = await self._editable(reader, settings, publication["problems"])
            status["publication"] = {**publication, "problems": shown}
        return status

    async def failures(
        self,
        workspace: str,
        manifest_id: str,
        after_ordinal: int = -1,
        limit: int = FAILURES_PAGE,
        reader: str | None = None,
    ) -> dict[str, Any]:
        """A page of failed intents: `items`, `next` (cursor or null), `total`.

        A `reader` is shown only those whose document it may edit; a source that cannot be asked shows none.
        One answer looks at no more than so many pages, so it may be short, even empty, and still have `next`.
        """
        scope = Workspace(workspace)
        page = await self._database.read(_failures, scope, manifest_id, after_ordinal, limit)
        if reader is None or not page["items"]:
            return page
        settings = await self._database.read(_settings, scope, manifest_id)
        shown = await self._editable(reader, settings, page["items"])
        for _ in range(_PAGES_LOOKED_AT - 1):
            if page["next"] is None or len(shown) >= limit:
                break
            room = limit - len(shown)
            page = await self._database.read(_failures, scope, manifest_id, page["next"], room)
            shown += await self._editable(reader, settings, page["items"])
        return {**page, "items": shown}

    async def _editable(
        self, reader: str, settings: Mapping[str, Any], items: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        documents = sorted({item["document"] for item in items})
        source = self._source_of(settings)
        try:
            rights = await self._offload.call(source.can_edit, reader, documents)
        except DragomanError as error:
            _log.warning("rights could not be asked for", code=error.code, reason=error.message)
            return []
        return [item for item in items if rights.get(item["document"], False)]

    async def results(
        self, workspace: str, manifest_id: str, after_ordinal: int = -1, limit: int = ITEMS_PAGE
    ) -> dict[str, Any]:
        """A page of intents with their texts: `items`, `next`."""
        return await self._database.read(_results, Workspace(workspace), manifest_id, after_ordinal, limit)

    async def waiting(
        self, workspace: str, manifest_id: str, after_ordinal: int = -1, limit: int = ITEMS_PAGE
    ) -> dict[str, Any]:
        """A page of open intents with the reason for which they wait, and until when: `items`, `next`."""
        return await self._database.read(_waiting, Workspace(workspace), manifest_id, after_ordinal, limit)

    async def unpublished(self, workspace: str, manifest_id: str) -> list[dict[str, Any]]:
        """Every translation that is here and not in place, and why."""
        return await self._database.read(publications.unpublished, Workspace(workspace), manifest_id)

    async def active(self, workspace: str, limit: int = FAILURES_PAGE) -> list[str]:
        """The newest manifests that have not ended."""
        return await self._database.read(viewing.active_manifests, Workspace(workspace), limit)

    async def next_due(self, workspace: str, manifest_id: str) -> int | None:
        """The earliest instant (microseconds) at which something of a manifest moves by itself."""
        return await self._database.read(following.next_due, Workspace(workspace), manifest_id)

    async def written(self, workspace: str, manifest_id: str) -> list[dict[str, Any]]:
        """The targets that a manifest wrote and did not take back, each with the target's receipt."""
        return await self._database.read(following.written_targets, Workspace(workspace), manifest_id)


def _settings(tx: Tx, scope: Workspace, manifest_id: str) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(viewing.manifest_row(tx, scope, manifest_id).settings)
    return settings


def _status(tx: Tx, scope: Workspace, manifest_id: str) -> dict[str, Any]:
    manifest = viewing.manifest_row(tx, scope, manifest_id)
    sums = viewing.sums_of(tx, manifest)
    numbers, split = viewing.counters(manifest, sums), viewing.field_split(sums)
    retryable = numbers.pop("retryable_failed")
    return {
        "manifest_id": manifest.id,
        "status": viewing.derived_status(manifest, numbers),
        "total_known": bool(manifest.total_known),
        "enumeration": expanding.enumeration_of(manifest),
        "canary": sampling.canary_of(tx, manifest),
        "counts": numbers,
        "retryable_failed": retryable,
        "fields": split,
        "cost": _cost(tx, scope, manifest.id, split),
        "publication": publications.publication_of(tx, manifest),
        "health": _health(tx, manifest, sums),
        "created_at": iso(manifest.created_at),
        "started_at": iso(manifest.started_at),
        "updated_at": iso(manifest.updated_at),
        "completed_at": iso(manifest.completed_at),
        "last_error": manifest.error_code,
    }


def _health(tx: Tx, manifest: Row, sums: Mapping[str, Any]) -> dict[str, Any]:
    found = manifest_health.health(tx, manifest, sums)
    waited_seconds = 0 if found.oldest_due_at is None else (tx.now - found.oldest_due_at) // MICROSECONDS
    error = {"code": found.error_code, "message": found.error_message}
    return {
        "next_due_at": iso(found.next_due_at),
        "oldest_due_at": iso(found.oldest_due_at),
        "scheduling_delayed": waited_seconds > SCHEDULING_DELAYED_SECONDS,
        "stale_claims": found.stale_claims,
        "engine_told": manifest.control_due_at is None,
        "last_error": error if found.error_code else None,
    }


def _cost(tx: Tx, scope: Workspace, manifest_id: str, split: dict[str, int]) -> dict[str, Any]:
    """The money of a manifest, as the ledger has it.

    What the memory saved is reckoned at the manifest's own average, so it is 0 where nothing was bought.
    """
    money = viewing.money(tx, scope.id, manifest_id)
    saved = money["microusd"] * split["via_memory"] / split["via_ai"] if split["via_ai"] else 0
    return {
        "paid_usd": (money["microusd"] + money["wasted_microusd"]) / _MICRO,
        "paid_tokens": money["tokens"] + money["wasted_tokens"],
        "wasted_usd": money["wasted_microusd"] / _MICRO,
        "wasted_tokens": money["wasted_tokens"],
        "reserved_usd": money["reserved_microusd"] / _MICRO,
        "reserved_tokens": money["reserved_tokens"],
        "at_risk_usd": money["at_risk_microusd"] / _MICRO,
        "at_risk_tokens": money["at_risk_tokens"],
        "at_risk_calls": money["at_risk_attempts"],
        "lost_jobs": money["lost_jobs"],
        "saved_usd": round(saved) / _MICRO,
        "memory_fields": split["via_memory"],
        "provider_fields": split["via_ai"],
    }


def _failures(tx: Tx, scope: Workspace, manifest_id: str, after_ordinal: int, limit: int) -> dict[str, Any]:
    manifest = viewing.manifest_row(tx, scope, manifest_id)
    rows = viewing.failures(tx, manifest.id, after_ordinal, limit + 1)
    page = rows[:limit]
    fields = viewing.failed_fields(tx, [row.id for row in page])
    return {
        "items": [_failure(row, [field for field in fields if field.intent_id == row.id]) for row in page],
        "next": page[-1].ordinal if len(rows) > limit else None,
        "total": viewing.counts(tx, manifest)["failed"],
    }


def _failure(row: Row, fields: list[Row]) -> dict[str, Any]:
    code = row.error_code or "internal_error"
    return {
        "intent_id": row.id,
        "document": row.document,
        "locale": row.locale,
        "code": code,
        "message": row.error_message or "",
        "remedy": CODES[code].remedy if code in CODES else "",
        "retryable": bool(row.retryable),
        "attempts": row.attempt_count,
        "fields": [
            {"key": field.field_key, "code": field.code, "check": field.check_name, "message": field.message}
            for field in fields
        ],
    }


def _results(tx: Tx, scope: Workspace, manifest_id: str, after_ordinal: int, limit: int) -> dict[str, Any]:
    manifest = viewing.manifest_row(tx, scope, manifest_id)
    pages = viewing.results_page(tx, manifest.id, after_ordinal, limit)
    return {
        "items": [
            {
                "document": row.document,
                "locale": row.locale,
                "state": row.state,
                "fields": {field.field_key: _text(field) for field in fields},
            }
            for row, fields in pages
        ],
        "next": pages[-1][0].ordinal if len(pages) == limit else None,
    }


def _text(field: Row) -> dict[str, Any]:
    if field.code:
        return {"state": "failed", "code": field.code, "check": field.check_name, "message": field.message}
    text = json.loads(field.text) if field.plural else field.text
    shown = {"plural" if field.plural else "text": text, "via": field.via}
    if field.review:
        return {"state": "review", **shown, "review": field.review.split()}
    return {"state": "translated", **shown}


def _waiting(tx: Tx, scope: Workspace, manifest_id: str, after_ordinal: int, limit: int) -> dict[str, Any]:
    manifest = viewing.manifest_row(tx, scope, manifest_id)
    jobs = {job.id: job for job in viewing.parked_jobs(tx, scope.id, manifest.id)}
    parked = viewing.parked_submissions(tx, manifest.id)
    rows = viewing.open_intents(tx, manifest.id, after_ordinal, limit)
    waiting = []
    for row in rows:
        job = jobs.get(row.remote_job_id or "")
        own = row.parked_for or parked.get(row.submission_id or "", "")
        reason = job.parked_for if job is not None else own
        if manifest.paused:
            reason = "resume"
        due = job.next_attempt_at if job is not None else row.next_attempt_at
        waiting.append(
            {
                "intent_id": row.id,
                "document": row.document,
                "locale": row.locale,
                "state": row.state,
                "reason": f"waiting_{reason}" if reason else row.state,
                "due_at": iso(due),
            }
        )
    return {"items": waiting, "next": rows[-1].ordinal if len(rows) == limit else None}
