"""Step 2: what was asked for becomes intents, at most 100 a transaction, resumable at any instant.

Pairs come from the stored request; a scope is walked through its source: named documents or collections by
pages, then globals. A canary's sample is chosen at the end, before any of its intents may start. The cursor
on the manifest says how far it came, and moves in the transaction that makes the intents.

Promises that a walk that is cut anywhere goes on without a gap and makes nothing twice. What a source adds or
takes away while it is walked may or may not be met; the last page of a collection is read a second time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from heapq import heappush, heappushpop
from logging import DEBUG
from typing import Any, NamedTuple

from dragoman.content import scoping
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import DragomanError, Halted, SourceError, StoreError
from dragoman.kernel.identity import Chance
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import (
    ENUMERATION_LEASE_SECONDS,
    EXPAND_PER_TRANSACTION,
    LIST_PAGE,
    RESTORED_PER_STEP,
    STEP_SECONDS,
)
from dragoman.kernel.offload import Offload
from dragoman.model.contracts import Source
from dragoman.model.walks import Met, Place, Walk
from dragoman.store.acts import expanding, sampling
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper, Lease
from dragoman.store.transaction import Row

_log = logger(__name__)
_CANDIDATES_PER_READ = 1_000
_SAID = {
    "document_not_found": "the source has no document of this name",
    "source_unavailable": "the source did not answer when it was asked for this document",
}


class Page(NamedTuple):
    """What a look at the source gave: documents, with a code where they cannot be worked, what is next."""

    documents: tuple[tuple[str, str], ...]
    after: Place
    nameless: int = 0


class Enumeration:
    """Enumerates one manifest a step."""

    def __init__(
        self,
        database: Database,
        keeper: Keeper,
        clock: Clock,
        chance: Chance,
        offload: Offload,
        source_of: Callable[[Mapping[str, Any]], Source],
        page_size: int = 0,
    ) -> None:
        self._database = database
        self._keeper = keeper
        self._clock = clock
        self._chance = chance
        self._offload = offload
        self._source_of = source_of
        self._page_size = page_size or LIST_PAGE

    async def step(self) -> int:
        """Work on one claimed manifest until it is enumerated or the step's time is over.

        Gives how many intents were made, 1 where it worked without making any, 0 where none is to be claimed:
        somebody else has it, and this one leaves without a trace.
        """
        manifest = await self._keeper.claim(expanding.claim_enumerating_manifest, self._keeper.owner)
        if manifest is None:
            await self._tell_held()
            return 0
        lease = self._keeper.hold("manifests", (manifest.id,), manifest.fence, ENUMERATION_LEASE_SECONDS)
        until = self._clock.monotonic() + STEP_SECONDS
        try:
            made = await self._enumerate(manifest, lease, until)
        finally:
            self._keeper.drop(lease)
        return max(made, 1)

    async def restore_step(self) -> int:
        """Have those manifests gone through once more that lost intents; how many."""
        return await self._database.run(expanding.reopen_incomplete, RESTORED_PER_STEP)

    async def _tell_held(self) -> None:
        """Where somebody listens: what is due and held by others, and how long ago they last said so."""
        if not _log.isEnabledFor(DEBUG):
            return
        for held in await self._database.read(expanding.enumerated_by_others, self._keeper.owner):
            _log.debug("enumeration.lease_held", manifest=held.manifest_id, seconds=held.age_seconds)

    async def _enumerate(self, manifest: Row, lease: Lease, until: float) -> int:
        place, made = Place.parse(manifest.cursor), 0
        if place.phase != "canary":
            if manifest.scope:
                place, made = await self._walk(manifest, lease, until)
            else:
                place, made = await self._expand(manifest, lease, until)
        if place.phase == "canary" and await self._sample(manifest, lease, until):
            place = replace(place, phase="done")
        if place.phase != "done" and not lease.lost:
            await self._database.run(expanding.rest_enumeration, manifest.id, manifest.fence)
        return made

    async def _expand(self, manifest: Row, lease: Lease, until: float) -> tuple[Place, int]:
        """Make intents of the stored pairs; gone through once more, of those that have none."""
        held, made = (manifest.id, manifest.fence), 0
        place = Place.parse(manifest.cursor)
        if place.again and manifest.promotes:
            return await self._copy_again(manifest, lease, until)
        start = place.item
        while not lease.lost and (made == 0 or self._clock.monotonic() < until):
            if place.again:
                far = await self._database.run(
                    expanding.restore_missing_pairs, *held, start, EXPAND_PER_TRANSACTION
                )
            else:
                far = await self._database.run(expanding.expand_next_pairs, *held, EXPAND_PER_TRANSACTION)
            made = start = far.expanded
            if far.canary:
                return Place("canary"), made
            if far.expanded >= far.total:
                return Place("done"), made
        return Place(), made

    async def _copy_again(self, manifest: Row, lease: Lease, until: float) -> tuple[Place, int]:
        """Make intents of what the promoted canary left out, and this manifest has not any more."""
        held, made = (manifest.id, manifest.fence), 0
        while not lease.lost:
            copied = await self._database.run(expanding.copy_missing_pairs, *held, EXPAND_PER_TRANSACTION)
            made += copied.made
            if copied.ended:
                return Place("done"), made
            if self._clock.monotonic() >= until:
                break
        return Place(), made

    async def _walk(self, manifest: Row, lease: Lease, until: float) -> tuple[Place, int]:
        """Walk the scope page by page; the place that was reached, `done` also where the lease is gone."""
        walk = Walk.parse(manifest.scope)
        place = _settled(walk, manifest, Place.parse(manifest.cursor))
        made, source, settings = 0, None, json.loads(manifest.settings)
        if place.phase in ("canary", "done"):  # there is nothing to look at
            recorded = await self._record(manifest, lease, walk, Page((), place), place)
            return Place("done") if recorded is None else place, 0
        while not lease.lost and self._clock.monotonic() < until and place.phase not in ("canary", "done"):
            try:
                source = source or self._source_of(settings)
                page = await self._offload.call(_look, source, walk, place, self._page_size)
            except (StoreError, Halted):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a source does, the walk stays whole
                given_up = await self._note_failure(manifest, walk, place, error)
                if given_up is None:
                    return Place("done"), made
                if place.phase == "collections":
                    place = given_up.after
                    continue
                page = given_up
            after = _settled(walk, manifest, page.after)
            recorded = await self._record(manifest, lease, walk, page._replace(after=after), place)
            if recorded is None:
                return Place("done"), made
            made += recorded
            place = after
        return place, made

    async def _record(self, manifest: Row, lease: Lease, walk: Walk, page: Page, place: Place) -> int | None:
        """Make a page's intents; the cursor moves with the last of them. None where the walk is to stop."""
        met = [
            Met(document, locale, code, _SAID.get(code, ""))
            for document, code in page.documents
            for locale in walk.locales
        ]
        made = 0
        for start in range(0, max(len(met), 1), EXPAND_PER_TRANSACTION):
            last = start + EXPAND_PER_TRANSACTION >= len(met)
            if lease.lost:
                return None
            made += await self._database.run(
                expanding.record_walk,
                manifest.id,
                manifest.fence,
                met[start : start + EXPAND_PER_TRANSACTION],
                page.after if last else place,
                page.nameless if last else 0,
            )
        return made

    async def _note_failure(self, manifest: Row, walk: Walk, place: Place, error: Exception) -> Page | None:
        """Write down that the source could not be asked. None where the walk waits and tries again.

        What is given up is a page of failures, or, of a collection, nothing but the place behind it.
        """
        code, message = "source_unavailable", type(error).__name__
        if isinstance(error, DragomanError):
            message = error.message
            code = error.code if not isinstance(error, SourceError) else code
        else:
            _log.exception("the source failed", manifest=manifest.id)
        collection, after = "", _skipped(place)
        if place.phase == "collections":
            collection, after = _collections(walk, place)[place.collection], _settled(walk, manifest, after)
        given_up = await self._database.run(
            expanding.record_listing_failure,
            manifest.id, manifest.fence, collection, code, message, after, self._chance.fraction(),
        )  # fmt: skip
        _log.warning("a listing failed", manifest=manifest.id, code=code, gap=given_up)
        if not given_up:
            return None
        names = walk.documents if place.phase == "documents" else walk.globals
        lost = names[place.item : after.item] if place.phase != "collections" else ()
        return Page(tuple((name, code) for name in lost), after)

    async def _sample(self, manifest: Row, lease: Lease, until: float) -> bool:
        """Choose the sample if none stands, then let its intents go and leave the others out."""
        stored = Place.parse(manifest.cursor)
        if stored.phase != "canary" or stored.sample is None:
            source = self._source_of(json.loads(manifest.settings))
            sample = await self._choose(manifest, source.collection_of)
            await self._database.run(sampling.store_sample, manifest.id, manifest.fence, sample)
        while not lease.lost and self._clock.monotonic() < until:
            if await self._database.run(
                sampling.settle_sample, manifest.id, manifest.fence, EXPAND_PER_TRANSACTION
            ):
                return True
        return False

    async def _choose(self, manifest: Row, collection_of: Callable[[str], str]) -> tuple[int, ...]:
        """The ordinals of the sample: all candidates are looked at, and only the best of each are kept."""
        sample = Sample(manifest.id, manifest.canary_limit)
        ordinal = -1
        while True:
            pairs = await self._database.read(sampling.held_pairs, manifest.id, ordinal, _CANDIDATES_PER_READ)
            for ordinal, document, locale in pairs:
                sample.offer(collection_of(document), ordinal, document, locale)
            if len(pairs) < _CANDIDATES_PER_READ:
                return sample.chosen()


class Sample:
    """The best `limit` candidates, spread evenly over collections.

    Within one the order is that of SHA-256 over manifest, document and locale, so that a rerun picks the
    same; collections take turns by name, and one that has no more leaves its turns to the others.
    """

    def __init__(self, manifest_id: str, limit: int) -> None:
        self._manifest_id = manifest_id
        self._limit = limit
        self._best: dict[str, list[tuple[int, int]]] = {}

    def offer(self, collection: str, ordinal: int, document: str, locale: str) -> None:
        """One more candidate."""
        named = json.dumps([self._manifest_id, document, locale], ensure_ascii=False)
        rank = (-int.from_bytes(sha256(named.encode()).digest()), ordinal)
        best = self._best.setdefault(collection, [])
        if len(best) < self._limit:
            heappush(best, rank)
        else:
            heappushpop(best, rank)

    def chosen(self) -> tuple[int, ...]:
        """The sample's ordinals, in ascending order."""
        turns = [iter(sorted(self._best[name], reverse=True)) for name in sorted(self._best)]
        return tuple(sorted(ordinal for _, ordinal in _by_turns(turns, self._limit)))


def _by_turns(turns: list[Iterator[tuple[int, int]]], limit: int) -> Iterator[tuple[int, int]]:
    """One of each in turn, until so many are taken or none has any more."""
    taken = 0
    while turns:
        left = []
        for turn in turns:
            one = next(turn, None)
            if one is None:
                continue
            if taken == limit:
                return
            yield one
            taken += 1
            left.append(turn)
        turns = left


def _collections(walk: Walk, place: Place) -> tuple[str, ...]:
    return place.names or walk.collections


def _settled(walk: Walk, manifest: Row, place: Place) -> Place:
    """The same place, moved on over what holds nothing: where there is something to look at, or the end."""
    if place.phase == "pairs":
        place = replace(place, phase="documents" if walk.documents else "collections")
    if place.phase == "documents" and place.item >= len(walk.documents):
        place = replace(place, phase="globals", item=0)
    if place.phase == "collections" and place.collection >= len(_collections(walk, place)):
        # a walk through gaps alone has met everything else before
        place = Place("done" if place.names else "globals", names=(), sample=place.sample)
    if place.phase == "globals" and place.item >= len(walk.globals):
        place = replace(place, phase="done", item=0)
    if place.phase == "done" and manifest.canary_limit:
        place = replace(place, phase="canary", item=0)
    return place


def _skipped(place: Place) -> Place:
    """Behind what cannot be listed."""
    if place.phase == "collections":
        return replace(place, collection=place.collection + 1, position="", again=False)
    return replace(place, item=place.item + LIST_PAGE)


def _look(source: Source, walk: Walk, place: Place, page_size: int) -> Page:
    """One page of what stands at a place. Runs in a thread; raises what the source raises."""
    if place.phase == "collections":
        return _listed(source, walk, place, page_size)
    names = walk.documents if place.phase == "documents" else walk.globals
    chosen = names[place.item : place.item + page_size]
    found = tuple(scoping.named(source, walk, chosen))
    return Page(found, replace(place, item=place.item + len(chosen)))


def _listed(source: Source, walk: Walk, place: Place, page_size: int) -> Page:
    collection = _collections(walk, place)[place.collection]
    listing = source.list(collection, place.position, page_size, walk.drafts)
    documents = tuple((document, "") for document in listing.documents)
    if listing.next is not None:
        if listing.next == place.position:
            raise SourceError(f"the source gives the same cursor again for {collection}")
        after = replace(place, position=listing.next, again=False)
    elif not place.again:
        after = replace(place, again=True)
    else:
        after = replace(place, collection=place.collection + 1, position="", again=False)
    return Page(documents, after, 0 if place.again else listing.nameless)
