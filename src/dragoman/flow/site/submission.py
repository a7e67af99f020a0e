"""Step 4: prepared intents are grouped, frozen into exact bytes, and handed to the engine.

The bytes are persisted before they are sent, and only persisted bytes are ever sent. A lost answer is
repaired by sending the same bytes again: the engine creates once and returns the same job afterwards.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dragoman.kernel import canonical
from dragoman.kernel.errors import CallerError, SourceError
from dragoman.kernel.identity import Chance, sha256
from dragoman.kernel.limits import (
    FIELDS_PER_ITEM,
    ITEMS_PER_SUBMISSION,
    SHARD_LEASE_SECONDS,
    SUBMISSION_BYTES_MAX,
    SUBMISSION_LEASE_SECONDS,
    SUBMIT_PER_STEP,
)
from dragoman.kernel.offload import Offload
from dragoman.ledger.acting import Ledger
from dragoman.model.contracts import LeaseKeeper, Source
from dragoman.model.effects import Outgoing
from dragoman.model.intents import DueIntent, Link, SendTicket, ShardWork, SubmissionDraft
from dragoman.store.acts import submitting
from dragoman.store.database import Database

_ENVELOPE_BYTES = 4096
"""Room for everything in a body that is not an item."""


class Submitting:
    """Drafts and sends submissions, some a step."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        keeper: LeaseKeeper,
        chance: Chance,
        offload: Offload,
        source_of: Callable[[Mapping[str, Any]], Source],
        callback_url: str,
        fields_per_item: int = FIELDS_PER_ITEM,
        per_step: int = SUBMIT_PER_STEP,
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._keeper = keeper
        self._chance = chance
        self._offload = offload
        self._source_of = source_of
        self._callback_url = callback_url
        self._fields_per_item = fields_per_item
        self._per_step = per_step

    async def step(self) -> int:
        """Submit prepared intents of one shard; how many submissions were sent."""
        limit = ITEMS_PER_SUBMISSION * self._per_step
        work = await self._database.run(submitting.claim_prepared_intents, self._keeper.owner, limit)
        if work is None:
            return 0
        lease = self._keeper.hold("shards", (work.manifest_id, work.shard), work.fence, SHARD_LEASE_SECONDS)
        try:
            moved = await self._offload.call(self._moved_sources, work)
            spoilt = await self._offload.call(_spoilt, work, moved)
            drafts = await self._offload.call(self._drafts, work, [*moved, *spoilt])
            begun = await self._database.run(
                submitting.persist_submissions,
                work, moved, drafts[: self._per_step], self._keeper.owner, spoilt,
            )  # fmt: skip
        finally:
            self._keeper.drop(lease)
        await self._send(begun)
        return len(begun) + len(moved) + len(spoilt)

    async def resend_step(self) -> int:
        """Send again what waits for it, or what a vanished process left half sent; how many."""
        begun = await self._database.run(submitting.begin_due_sends, self._keeper.owner, self._per_step)
        await self._send(begun)
        return len(begun)

    async def _send(self, begun: Sequence[tuple[SendTicket, Outgoing]]) -> None:
        await asyncio.gather(*(self._send_one(ticket, outgoing) for ticket, outgoing in begun))

    async def _send_one(self, ticket: SendTicket, outgoing: Outgoing) -> None:
        lease = self._keeper.hold(
            "submissions", (ticket.submission_id,), ticket.fence, SUBMISSION_LEASE_SECONDS
        )
        try:
            await self._ledger.deliver(
                "submission", outgoing, submitting.record_send, (ticket, self._chance.fraction())
            )
        finally:
            self._keeper.drop(lease)

    def _moved_sources(self, work: ShardWork) -> list[str]:
        """Intents whose source is no longer what was prepared."""
        source = self._source_of(work.settings)
        now: dict[str, str] = {}
        for document in {intent.document for intent in work.intents}:
            try:
                now[document] = source.fingerprint(document)
            except SourceError:
                now[document] = ""
        return [intent.id for intent in work.intents if now[intent.document] != intent.source_fingerprint]

    def _drafts(self, work: ShardWork, left_out: Sequence[str]) -> list[SubmissionDraft]:
        still = [intent for intent in work.intents if intent.id not in set(left_out)]
        head = body_head(work.manifest_id, work.settings, self._callback_url)
        return draft_submissions(head, still, self._chance, self._fields_per_item)


def _spoilt(work: ShardWork, moved: Sequence[str]) -> list[str]:
    """Intents whose envelope is not what was prepared, by its checksum; what has moved is prepared anew."""
    return [one.id for one in work.intents if one.id not in set(moved) and not _is_whole(one.prepared)]


def _is_whole(prepared: str | None) -> bool:
    try:
        envelope = json.loads(prepared or "")
        stated: object = envelope["checksum"]
        return stated == canonical.fingerprint({"fields": envelope["fields"]})
    except (ValueError, LookupError, TypeError, CallerError):
        return False


def body_head(manifest_id: str, settings: Mapping[str, Any], callback_url: str) -> dict[str, Any]:
    """What all submissions of a manifest share: its compatibility key, written out."""
    options = {
        "provider_config": settings.get("provider", ""),
        "model": settings.get("model", ""),
        "on_unknown": settings.get("on_unknown", ""),
        "batch_size": settings.get("batch_size"),
        "concurrency": settings.get("concurrency"),
        "speed": settings.get("speed", ""),
        "force": settings.get("mode") == "force" or None,
    }
    head: dict[str, Any] = {
        "clientJobId": manifest_id,
        "project": settings.get("project", "default"),
        "sourceLang": settings["source_locale"],
        "options": {name: value for name, value in options.items() if value not in ("", None)},
    }
    if settings.get("budget"):
        head["budget"] = settings["budget"]
    if settings.get("tone"):
        head["tone"] = settings["tone"]
    if callback_url:
        head["callbackUrl"] = callback_url
    return head


def draft_submissions(
    head: Mapping[str, Any], intents: Sequence[DueIntent], chance: Chance, fields_per_item: int
) -> list[SubmissionDraft]:
    """Group items up to the engine's limits. Pure: bytes, fingerprints and links, and nothing written."""
    drafts: list[SubmissionDraft] = []
    items: list[dict[str, Any]] = []
    links: list[Link] = []
    size, room = 0, SUBMISSION_BYTES_MAX - _ENVELOPE_BYTES
    for item, link, item_bytes in _items(intents, fields_per_item):
        if items and (len(items) >= ITEMS_PER_SUBMISSION or size + item_bytes > room):
            drafts.append(_draft(head, items, links, chance))
            items, links, size = [], [], 0
        items.append(item)
        links.append(link)
        size += item_bytes
    if items:
        drafts.append(_draft(head, items, links, chance))
    return drafts


def _items(intents: Sequence[DueIntent], fields_per_item: int) -> Iterator[tuple[dict[str, Any], Link, int]]:
    for intent in intents:
        fields = json.loads(intent.prepared or "{}")["fields"]
        parts = list(_parts(fields, fields_per_item))
        for number, part in enumerate(parts, start=1):
            ref = f"dragoman:{intent.id}:g{intent.generation}"
            if len(parts) > 1:
                ref += f":p{number}/{len(parts)}"
            encoded = canonical.encode(part)
            link = Link(intent.id, intent.generation, number, len(parts), ref, sha256(encoded))
            yield (
                {"ref": ref, "targetLang": intent.locale, "fields": part},
                link,
                len(encoded) + len(ref) + 64,
            )


def _parts(fields: Mapping[str, Any], fields_per_item: int) -> Iterator[dict[str, Any]]:
    """Split a document that is over the limits; the neighbours stay together."""
    part: dict[str, Any] = {}
    size = 0
    for key, field in fields.items():
        field_bytes = len(canonical.encode(field)) + len(key) + 8
        if part and (
            len(part) >= fields_per_item or size + field_bytes > SUBMISSION_BYTES_MAX - _ENVELOPE_BYTES
        ):
            yield part
            part, size = {}, 0
        part[key] = field
        size += field_bytes
    yield part


def _draft(
    head: Mapping[str, Any], items: Sequence[dict[str, Any]], links: Sequence[Link], chance: Chance
) -> SubmissionDraft:
    submission_id = chance.new_id()
    body = canonical.encode({**head, "submissionId": submission_id, "items": list(items)})
    return SubmissionDraft(submission_id, body, sha256(body), tuple(links))
