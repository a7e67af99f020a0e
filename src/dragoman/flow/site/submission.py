"""Step 4: prepared intents are grouped, frozen into exact bytes, and handed to the engine.

The bytes are persisted before they are sent, and only persisted bytes are ever sent. A lost answer is
repaired by sending the same bytes again: the engine creates once and returns the same job afterwards.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.content.glossary import Glossary
from dragoman.kernel import canonical
from dragoman.kernel.errors import CallerError, SourceError
from dragoman.kernel.identity import Chance, sha256
from dragoman.kernel.limits import (
    SHARD_LEASE_SECONDS,
    SUBMISSION_LEASE_SECONDS,
    SUBMIT_PER_STEP,
    TERMS_BYTES_MAX,
    TERMS_PER_SUBMISSION,
)
from dragoman.kernel.offload import Offload
from dragoman.ledger.acting import Ledger
from dragoman.model.contracts import Source
from dragoman.model.effects import Outgoing
from dragoman.model.intents import DueIntent, Link, Sender, SendTicket, ShardWork, SubmissionDraft, ref_of
from dragoman.model.jobs import Capacity
from dragoman.model.memories import Library, Manner, Term
from dragoman.store.acts import preparing, submitting
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper, Lease

_FRAME_BYTES = 256
"""Room in a body for its id, and for the names and signs between its parts."""
_BARE = Library(Manner(), {})


async def _usual() -> Capacity:
    return Capacity()


@dataclass(frozen=True, slots=True)
class Way:
    """How this process reaches the engine. `capacity` gives what the engine takes in one submission now.

    A `far` engine knows nothing of the project but what it is sent.
    """

    callback_url: str
    sender: Callable[[], Sender] = Sender
    capacity: Callable[[], Awaitable[Capacity]] = _usual
    far: bool = False


class Submitting:
    """Drafts and sends submissions, some a step."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        keeper: Keeper,
        chance: Chance,
        offload: Offload,
        source_of: Callable[[Mapping[str, Any]], Source],
        way: Way,
        per_step: int = SUBMIT_PER_STEP,
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._keeper = keeper
        self._chance = chance
        self._offload = offload
        self._source_of = source_of
        self._way = way
        self._per_step = per_step

    async def step(self) -> int:
        """Submit prepared intents of one shard; how many submissions were sent."""
        capacity = await self._way.capacity()
        limit = capacity.items_max * self._per_step
        work = await self._keeper.claim(submitting.claim_prepared_intents, self._keeper.owner, limit)
        if work is None:
            return 0
        lease = self._keeper.hold("shards", (work.manifest_id, work.shard), work.fence, SHARD_LEASE_SECONDS)
        try:
            moved = await self._offload.call(self._moved_sources, work)
            spoilt = await self._offload.call(_spoilt, work, moved)
            library = await self._database.read(preparing.library, work) if self._way.far else _BARE
            drafts = await self._offload.call(self._drafts, work, [*moved, *spoilt], capacity, library)
            begun = await self._keeper.claim(
                submitting.persist_submissions,
                work,
                moved,
                _first(drafts, self._per_step),
                self._keeper.owner,
                self._way.sender(),
                spoilt,
            )
            sends = self._begin(begun)
        finally:
            self._keeper.drop(lease)
        await asyncio.gather(*sends)
        return len(begun) + len(moved) + len(spoilt)

    async def resend_step(self) -> int:
        """Send again what waits for it, or what a vanished process left half sent; how many."""
        begun = await self._keeper.claim(
            submitting.begin_due_sends, self._keeper.owner, self._per_step, self._way.sender()
        )
        await asyncio.gather(*self._begin(begun))
        return len(begun)

    def _begin(self, begun: Sequence[tuple[SendTicket, Outgoing]]) -> list[asyncio.Task[None]]:
        return [self._keeper.work(self._hold(ticket), self._send(ticket, out)) for ticket, out in begun]

    def _hold(self, ticket: SendTicket) -> Lease:
        key = (ticket.submission_id,)
        return self._keeper.hold("submissions", key, ticket.fence, SUBMISSION_LEASE_SECONDS)

    async def _send(self, ticket: SendTicket, outgoing: Outgoing) -> None:
        await self._ledger.deliver(
            "submission", outgoing, submitting.record_send, (ticket, self._chance.fraction())
        )

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

    def _drafts(
        self, work: ShardWork, left_out: Sequence[str], capacity: Capacity, library: Library
    ) -> list[SubmissionDraft]:
        still = [intent for intent in work.intents if intent.id not in set(left_out)]
        head = body_head(work.manifest_id, work.settings, self._way.callback_url, library.manner.style)
        return draft_submissions(head, still, self._chance, capacity, library)


def _first(drafts: Sequence[SubmissionDraft], number: int) -> Sequence[SubmissionDraft]:
    """So many drafts, and those that hold the other parts of a document which the last one begins."""
    for end in range(number, len(drafts)):
        if drafts[end - 1].links[-1].intent_id != drafts[end].links[0].intent_id:
            return drafts[:end]
    return drafts


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


def body_head(
    manifest_id: str, settings: Mapping[str, Any], callback_url: str, style: str = ""
) -> dict[str, Any]:
    """What all submissions of a manifest share: its compatibility key, written out, but for the sender and
    the engine's capacity.
    """
    options = {
        "provider_config": settings.get("provider", ""),
        "model": settings.get("model", ""),
        "on_unknown": settings.get("on_unknown", ""),
        "batch_size": settings.get("batch_size"),
        "concurrency": settings.get("concurrency"),
        "speed": settings.get("speed", ""),
        "force": settings.get("mode") == "force" or None,
        "push_id": settings.get("push_id", ""),
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
    if style:
        head["style"] = style
    if callback_url:
        head["callbackUrl"] = callback_url
    return head


def draft_submissions(
    head: Mapping[str, Any],
    intents: Sequence[DueIntent],
    chance: Chance,
    capacity: Capacity,
    library: Library = _BARE,
) -> list[SubmissionDraft]:
    """Group items up to the engine's limits. Pure: bytes, fingerprints and links, and nothing written.

    Every draft takes those terms of `library` along that its texts use.
    """
    terms_bytes = min(TERMS_BYTES_MAX, capacity.body_bytes_max // 4) if library.terms else 0
    room = capacity.body_bytes_max - len(canonical.encode(dict(head))) - _FRAME_BYTES - terms_bytes
    drafts: list[SubmissionDraft] = []
    items: list[dict[str, Any]] = []
    links: list[Link] = []
    size = 0

    def close() -> None:
        terms = _wire_terms(_used_terms(items, library), terms_bytes)
        drafts.append(_draft({**head, **({"glossary": terms} if terms else {})}, items, links, chance))

    for item, link, item_bytes in _items(intents, capacity.fields_per_item_max, room):
        if items and (len(items) >= capacity.items_max or size + item_bytes > room):
            close()
            items, links, size = [], [], 0
        items.append(item)
        links.append(link)
        size += item_bytes
    if items:
        close()
    return drafts


def _used_terms(items: Sequence[Mapping[str, Any]], library: Library) -> Iterator[Term]:
    """The terms that the texts of these items use, each once."""
    if not library.terms:
        return
    seen: set[Term] = set()
    glossaries: dict[str, Glossary] = {}
    for item in items:
        locale = item["targetLang"]
        if locale not in glossaries:
            glossaries[locale] = Glossary((*library.terms.get("", ()), *library.terms.get(locale, ())))
        for field in item["fields"].values():
            texts = field["plural"].values() if "plural" in field else (field["text"],)
            fresh = [term for term in glossaries[locale].entries("\n".join(texts)) if term not in seen]
            seen.update(fresh)
            yield from fresh


def _wire_terms(terms: Iterable[Term], bytes_max: int) -> list[dict[str, Any]]:
    """Terms as a body carries them, so many as it has room for."""
    told: list[dict[str, Any]] = []
    for term in terms:
        said: dict[str, Any] = {"source": term.source, "target": term.target, "status": term.status}
        if term.target_locale:
            said["targetLang"] = term.target_locale
        if term.case_sensitive:
            said["caseSensitive"] = True
        bytes_max -= len(canonical.encode(said)) + 1
        if bytes_max < 0 or len(told) >= TERMS_PER_SUBMISSION:
            break
        told.append(said)
    return told


def _items(
    intents: Sequence[DueIntent], fields_per_item: int, room: int
) -> Iterator[tuple[dict[str, Any], Link, int]]:
    for intent in intents:
        fields = json.loads(intent.prepared or "{}")["fields"]
        parts = list(_parts(fields, fields_per_item, room))
        for number, part in enumerate(parts, start=1):
            ref = ref_of(intent.id, intent.generation, number, len(parts))
            encoded = canonical.encode(part)
            link = Link(intent.id, intent.generation, number, len(parts), ref, sha256(encoded))
            yield (
                {"ref": ref, "targetLang": intent.locale, "fields": part},
                link,
                len(encoded) + len(ref) + len(intent.locale) + 64,
            )


def _parts(fields: Mapping[str, Any], fields_per_item: int, room: int) -> Iterator[dict[str, Any]]:
    """Split a document that is over the limits; the neighbours stay together."""
    part: dict[str, Any] = {}
    size = 0
    for key, field in fields.items():
        field_bytes = len(canonical.encode(field)) + len(key) + 8
        if part and (len(part) >= fields_per_item or size + field_bytes > room - _FRAME_BYTES):
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
