"""Whoever was replaced changes nothing: each write of the owner's side, with all that it names stale in turn.

Every attempt is undone, so that one manifest serves them all, and the same write is then let through.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from dragoman.flow.site.submission import body_head, draft_submissions
from dragoman.kernel.errors import LeaseLost
from dragoman.kernel.identity import SystemChance
from dragoman.model.effects import Answer
from dragoman.model.events import event_of
from dragoman.model.intents import DueIntent, Preparation, Sender, ShardWork, SubmissionDraft
from dragoman.model.jobs import Capacity
from dragoman.model.walks import Met, Place
from dragoman.store.acts import expanding, preparing, sampling, settling, submitting
from dragoman.store.schema import effects
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Tx
from tests.doubles.engines import event
from tests.flow.site.scoped import admit, site_of
from tests.flow.site.stage import Stage, catalogue, stage

Spoil = Callable[[Tx], object]

OWNER = "host/boot/1/1"
DOCUMENTS = {f"{name}.json": catalogue(hello=f"Hello {name}") for name in "abcdef"}
PAIRS = [(name, "de") for name in DOCUMENTS]


class Undone(Exception):
    """What an attempt did is taken back."""


def column_set(table: sa.Table, row_id: str | None = None, **values: Any) -> Spoil:
    """Somebody else wrote these columns, of one row or of all."""
    where = [] if row_id is None else [table.c.id == row_id]
    return lambda tx: tx.touched(sa.update(table).where(*where).values(**values))


def fence_raised(table: sa.Table) -> Spoil:
    return column_set(table, fence=table.c.fence + 1)


def generation_moved(intent_id: str) -> Spoil:
    return column_set(tables.intents, intent_id, generation=tables.intents.c.generation + 1)


def state_moved(intent_id: str) -> Spoil:
    return column_set(tables.intents, intent_id, state="skipped")


def standing(tx: Tx) -> dict[str, list[str]]:
    """All rows of the owner's side, and what is on record of them."""
    looked_at = [
        tables.manifests, tables.shards, tables.intents, tables.submissions, tables.submission_intents,
        tables.results, effects.history,
    ]  # fmt: skip
    return {table.name: sorted([repr(row) for row in tx.all(sa.select(table))]) for table in looked_at}


async def changed(site: Stage, spoil: Spoil, act: Callable[..., Any], *args: Any) -> set[str] | None:
    """Tables that an act changes although somebody spoiled something before it; None where it is refused."""
    found: list[set[str] | None] = []

    def attempt(tx: Tx) -> None:
        spoil(tx)
        before = standing(tx)
        try:
            act(tx, *args)
        except LeaseLost:
            found.append(None)
        else:
            after = standing(tx)
            found.append({name for name in before if after[name] != before[name]})
        raise Undone

    with contextlib.suppress(Undone):
        await site.database.run(attempt)
    return found[-1]


def prepared(intent: DueIntent, number: int) -> Preparation:
    """What preparing came to: one intent to each outcome."""
    envelope = json.dumps({"schema_version": 1, "fields": {"hello": {"text": "Hello", "syntax": "plain"}}})
    return [
        Preparation(intent, "prepare", prepared=envelope, key_map='{"hello":["hello","0","0"]}', fields=1),
        Preparation(intent, "nothing_to_do"),
        Preparation(intent, "all_protected"),
        Preparation(intent, "refuse", code="document_not_found", message="gone"),
        Preparation(intent, "wait", code="source_unavailable", message="away"),
    ][number]


async def claimed(site: Stage) -> ShardWork:
    work = await site.database.run(preparing.claim_due_intents, OWNER, 100)
    assert work is not None
    return work


def test_a_preparation_names_the_shards_fence_and_each_intents_generation_and_state(
    database_url: str,
) -> None:
    """[M-029, M-032, M-035, M-036, M-037, M-040] whatever it came to, and for intents that it left."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.enumeration.step()
            work = await claimed(site)
            outcomes = [prepared(intent, number) for number, intent in enumerate(work.intents[:5])]
            record: tuple[Any, ...] = (preparing.record_preparations, work, outcomes, 0.0)
            assert await changed(site, fence_raised(tables.shards), *record) is None
            for intent in work.intents:
                assert await changed(site, generation_moved(intent.id), *record) is None, intent.ordinal
                assert await changed(site, state_moved(intent.id), *record) is None, intent.ordinal
            await site.database.run(*record)
            assert await site.counts(manifest) == {"preparing": 3, "skipped": 1, "protected": 1, "failed": 1}

    asyncio.run(play())


def frozen(work: ShardWork) -> list[SubmissionDraft]:
    head = body_head(work.manifest_id, work.settings, "local:callbacks")
    return draft_submissions(head, work.intents[1:], SystemChance(), Capacity())


async def prepared_shard(site: Stage) -> ShardWork:
    await site.admit(PAIRS)
    for step in (site.enumeration.step, site.preparing.step):
        await step()
    work = await site.database.run(submitting.claim_prepared_intents, OWNER, 100)
    assert work is not None
    return work


def test_a_submission_takes_exactly_the_set_that_was_claimed(database_url: str) -> None:
    """[M-030, M-035, M-037, M-038] one intent that moved on, and there is no submission."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            work = await prepared_shard(site)
            moved = [work.intents[0].id]
            persist = (submitting.persist_submissions, work, moved, frozen(work), OWNER, Sender())
            assert await changed(site, fence_raised(tables.shards), *persist) is None
            for intent in work.intents:
                assert await changed(site, generation_moved(intent.id), *persist) is None, intent.ordinal
                assert await changed(site, state_moved(intent.id), *persist) is None, intent.ordinal
            carried = column_set(tables.intents, work.intents[1].id, submission_id="another one")
            assert await changed(site, carried, *persist) is None
            assert await changed(site, lambda tx: None, *persist) == {
                "shards", "intents", "submissions", "submission_intents", "history",
            }  # fmt: skip

    asyncio.run(play())


def test_the_engines_word_is_recorded_by_whoever_holds_the_submission(database_url: str) -> None:
    """[M-031, M-039, M-040, M-059] a stale sender moves neither submission nor intents, whatever it heard."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            work = await prepared_shard(site)
            [(ticket, outgoing)] = await site.database.run(
                submitting.persist_submissions, work, [], frozen(work), OWNER, Sender()
            )
            stale = (
                fence_raised(tables.submissions),
                column_set(tables.submissions, state="pending"),
                column_set(tables.submissions, state="retry_wait"),
            )
            accepted = Answer("SUCCEEDED", b'{"job_id":"job-1"}', 201)
            for answer in (
                accepted, Answer("REJECTED", status=422, code="invalid_request"), Answer("NOT_STARTED"),
            ):  # fmt: skip
                record = (submitting.record_send, outgoing, answer, ticket, 0.0)
                for spoil in stale:
                    assert await changed(site, spoil, *record) == set(), answer.outcome
                assert await changed(site, lambda tx: None, *record), answer.outcome
            held = await site.database.run(submitting.begin_due_sends, "host/boot/2/2", 4, Sender())
            assert held == [], "a submission under a live lease is nobody else's"
            for spoil in (generation_moved(work.intents[1].id), state_moved(work.intents[1].id)):
                moved = {intent.id for intent in work.intents[2:]}
                assert await queued_by(site, spoil, outgoing, accepted, ticket) == moved

    asyncio.run(play())


async def queued_by(site: Stage, spoil: Spoil, outgoing: Any, answer: Answer, ticket: Any) -> set[str]:
    """The intents that an acceptance moves, although somebody spoiled one."""
    found: list[set[str]] = []

    def attempt(tx: Tx) -> None:
        spoil(tx)
        assert submitting.record_send(tx, outgoing, answer, ticket, 0.0)
        rows = tx.all(sa.select(tables.intents.c.id).where(tables.intents.c.state == "queued"))
        found.append({row.id for row in rows})
        raise Undone

    with contextlib.suppress(Undone):
        await site.database.run(attempt)
    return found[-1]


def test_an_event_moves_only_what_is_linked_to_it_now(database_url: str) -> None:
    """[M-032, M-037, M-256, M-257, M-259] job, submission, generation, state, sequence, each stale."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            await site.admit([("a.json", "de")])
            await site.step_all()
            [body] = site.engine.submissions()
            told = event_of(event(body, "job-1", sequence=5))
            settle = (settling.settle_event, told)
            intents = tables.intents
            for name, spoil in {
                "generation": column_set(intents, generation=2),
                "state": column_set(intents, state="skipped"),
                "submission": column_set(intents, submission_id="another one"),
                "sequence": column_set(intents, last_event_sequence=5),
            }.items():
                left = await changed(site, spoil, *settle)
                assert left is not None
                assert not left & {"intents", "results", "history"}, name
            for name, spoil in {
                "job": column_set(tables.submissions, remote_job_id="job-2"),
                "acceptance": column_set(tables.submissions, remote_job_id=None, state="failed"),
            }.items():
                assert await changed(site, spoil, *settle) == set(), name
            assert await changed(site, lambda tx: None, *settle) >= {"intents", "results", "history"}  # type: ignore[operator]
            other = replace(told, submission_id="another one")
            assert await changed(site, lambda tx: None, settling.settle_event, other) == set()

    asyncio.run(play())


def test_an_enumeration_names_the_manifests_fence_and_that_it_is_open(database_url: str) -> None:
    """[M-028, M-036, M-040, C-021] fence, phase and cancel, each stale in turn, for each of its writes."""

    async def play() -> None:
        async with stage(database_url, site_of()) as site:
            await admit(site, canary=2, collections=["posts"])
            manifest = await site.database.run(expanding.claim_enumerating_manifest, OWNER)
            assert manifest is not None
            key, there = (manifest.id, manifest.fence), Place("collections")
            await site.database.run(
                expanding.record_walk, *key, [Met(f"posts/000{n}.json", "de") for n in range(4)], there
            )
            place = await site.database.run(sampling.store_sample, *key, (0, 1))
            assert place.sample == (0, 1)
            writes: dict[str, tuple[Any, ...]] = {
                "pairs": (expanding.expand_next_pairs, *key, 100),
                "walk": (expanding.record_walk, *key, [Met("posts/0006.json", "fr")], there),
                "end": (expanding.record_walk, *key, [], replace(place, phase="done")),
                "failure": (
                    expanding.record_listing_failure, *key, "posts", "source_unavailable", "away", place, 0.0
                ),
                "sample": (sampling.store_sample, *key, (2, 3)),
                "choice": (sampling.settle_sample, *key, 100),
            }  # fmt: skip
            for name, write in writes.items():
                assert await changed(site, fence_raised(tables.manifests), *write) is None, name
                assert await changed(site, column_set(tables.manifests, phase="open"), *write) is None, name
                assert await changed(site, column_set(tables.manifests, canceled=True), *write) is None, name
            resting = (expanding.rest_enumeration, *key)
            assert await changed(site, fence_raised(tables.manifests), *resting) == set()
            assert await changed(site, lambda tx: None, *resting) == {"manifests"}
            assert await site.database.run(sampling.settle_sample, *key, 100)

    asyncio.run(play())
