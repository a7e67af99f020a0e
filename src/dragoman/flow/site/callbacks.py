"""Step 5a: the engine's events come in. Verified, kept once, then applied; the answer is given after the
commit.

A receipt that is kept and not applied (a crash, an early event, a link to more pages) is applied by `step`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from dragoman.kernel import canonical, signing
from dragoman.kernel.errors import CallerError, OutsideError
from dragoman.kernel.identity import sha256
from dragoman.model.contracts import EngineClient
from dragoman.model.events import EVENTS, Delivery, event_of, pages_needed
from dragoman.model.intents import JobEvent
from dragoman.store.acts import settling
from dragoman.store.database import Database

_PAGE_SECONDS = 20.0
_RECEIPTS_PER_STEP = 20
_DELIVERY_ID_CHARS_MAX = 255
_OBJECT_REF_CHARS_MAX = 191


class Callbacks:
    """Receives events for one workspace. `secrets` gives every secret that may have signed, read at each
    call.
    """

    def __init__(
        self, database: Database, engine: EngineClient, secrets: Callable[[], Sequence[str]], workspace: str
    ) -> None:
        self._database = database
        self._engine = engine
        self._secrets = secrets
        self._workspace = workspace

    async def receive(self, body: bytes, headers: Mapping[str, str]) -> int:
        """Take one callback in; gives the HTTP status of the answer: 200 applied or stale, 202 kept.

        Raises `CallerError`: `unauthorized`, `invalid_json`, `invalid_request` for an event that is not known
        or not complete, `callback_contradiction`.
        """
        now_seconds = self._database.now() // 1_000_000
        signing.verify(self._secrets(), headers, body, now_seconds)
        event = canonical.parse(body)
        kept = await self._database.run(settling.keep_receipt, self._delivery(body, headers, event))
        if kept.contradicts:
            raise CallerError("this delivery id came with another body before", "callback_contradiction")
        if not kept.fresh:
            return 200
        return await self._apply(kept.id, event)

    async def step(self) -> int:
        """Apply receipts that were kept and not applied; how many were looked at."""
        due = await self._database.run(settling.due_receipts, _RECEIPTS_PER_STEP)
        for receipt_id, body in due:
            try:
                await self._apply(receipt_id, json.loads(body), fetch=True)
            except CallerError as error:
                await self._database.run(settling.set_receipt_aside, receipt_id, error.code, error.message)
            except OutsideError:
                continue  # the pages cannot be had now; the receipt has its next turn
        return len(due)

    async def _apply(self, receipt_id: str, payload: Mapping[str, Any], fetch: bool = False) -> int:
        event = event_of(payload)
        if pages_needed(payload):
            if not fetch:
                return 202
            if not await self._database.read(settling.is_settled, event.submission_id):
                event = await self._with_pages(payload)
        settlement = await self._database.run(settling.settle_receipt, receipt_id, event)
        if settlement.verdict == "contradiction":
            raise CallerError(
                "the event's job or manifest is not the one on record", "callback_contradiction"
            )
        return 202 if settlement.verdict == "early" else 200

    async def _with_pages(self, payload: Mapping[str, Any]) -> JobEvent:
        items: list[Any] = []
        cursor = ""
        while True:
            page = await self._engine.items(self._workspace, str(payload["job_id"]), cursor, _PAGE_SECONDS)
            items += cast(list[Any], page["items"])
            cursor = str(page.get("next_cursor") or "")
            if not cursor:
                return event_of({**payload, "items": items, "results": "inline"})

    def _delivery(self, body: bytes, headers: Mapping[str, str], event: Mapping[str, Any]) -> Delivery:
        lowered = {name.lower(): value for name, value in headers.items()}
        event_id = lowered.get(signing.WEBHOOK_ID) or lowered.get(signing.DELIVERY_ID.lower(), "")
        if not 0 < len(event_id) <= _DELIVERY_ID_CHARS_MAX or not event_id.isascii():
            raise CallerError("the delivery id is missing or too long", place=signing.WEBHOOK_ID)
        if event.get("event") not in EVENTS:
            raise CallerError(f"event must be one of {', '.join(sorted(EVENTS))}", place="event")
        told = event_of(event)
        return Delivery(
            workspace=self._workspace,
            family="submission",
            event_id=event_id,
            object_ref=told.submission_id[:_OBJECT_REF_CHARS_MAX],
            event_sequence=told.event_sequence,
            fingerprint=sha256(body),
            body=body.decode("utf-8"),
        )
