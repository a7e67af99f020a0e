"""What is on record of a manifest: every move of its intents, when it began, the order of the work."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.kernel.errors import CallerError, SourceError
from dragoman.store.acts import expanding, preparing
from dragoman.store.schema import effects
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx
from tests.doubles.engines import event
from tests.flow.site.rows import (
    fail_pending,
    intents_of,
    make_inquiries_due,
    make_listings_due,
    manifest_row,
    states_of,
)
from tests.flow.site.scoped import admit, enumerate_all, site_of
from tests.flow.site.stage import Stage, catalogue, stage
from tests.simulation.bounds import bounded

SECRET_TEXT = "Nobody writes this text into a history"
MOVE = ("action", "before", "after", "generation", "attempt", "generation_attempt", "code")


def history_of(tx: Tx, manifest_id: str) -> list[Row]:
    """Every move of the intents of a manifest, as it was appended."""
    table = effects.history
    mine = (table.c.correlation_id == manifest_id, table.c.kind == "intent")
    return tx.all(sa.select(table).where(*mine).order_by(table.c.at, table.c.id))


def make_preparations_due(tx: Tx) -> None:
    """As if the wait before the next try were over."""
    tx.touched(sa.update(tables.intents).values(next_attempt_at=tx.now))
    tx.touched(sa.update(tables.shards).values(prepare_due_at=tx.now, prepare_served_at=0))


async def fail_and_retry(site: Stage) -> tuple[str, list[Row]]:
    """A source that is away once, a translation that fails, and a retry that succeeds."""
    manifest = (await site.admit([("a.json", "de")])).manifest_id
    await site.enumeration.step()
    site.source.away = [SourceError("no route to the host", "source_unavailable")]
    await site.preparing.step()
    await site.database.run(make_preparations_due)
    await site.step_all()
    [body] = site.engine.submissions()
    site.engine.views["job-1"] = {"status": "processing"}
    await site.database.run(make_inquiries_due)
    assert await site.reconciliation.step() == 1
    await site.deliver(event(body, "job-1", fail={body["items"][0]["ref"]: "checks_failed"}))
    first = await site.database.read(history_of, manifest)
    assert await site.steering.retry("default", manifest, "mia") == 1
    await site.step_all()
    await site.deliver(event(site.engine.submissions()[1], "job-2"), "d-2")
    return manifest, first


def test_every_move_of_an_intent_is_appended_and_a_retry_takes_nothing_back(database_url: str) -> None:
    """[M-165, M-166, M-197, M-370, C-103]"""

    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(hello=SECRET_TEXT)}) as site:
            manifest, first = await fail_and_retry(site)
            rows = await site.database.read(history_of, manifest)
            assert rows[: len(first)] == first
            assert [tuple(getattr(row, name) for name in MOVE) for row in rows] == [
                ("claim", "pending", "preparing", 1, 0, 0, ""),
                ("lease_expired", "preparing", "pending", 1, 1, 1, "source_unavailable"),
                ("claim", "pending", "preparing", 1, 1, 1, ""),
                ("prepare", "preparing", "prepared", 1, 1, 1, ""),
                ("accept", "prepared", "queued", 1, 1, 1, ""),
                ("start", "queued", "processing", 1, 1, 1, ""),
                ("fail", "processing", "failed", 1, 1, 1, "checks_failed"),
                ("retry", "failed", "pending", 2, 1, 0, ""),
                ("claim", "pending", "preparing", 2, 1, 0, ""),
                ("prepare", "preparing", "prepared", 2, 1, 0, ""),
                ("accept", "prepared", "queued", 2, 1, 0, ""),
                ("complete", "queued", "completed", 2, 1, 0, ""),
            ]
            one, two = (body["submissionId"] for body in site.engine.submissions())
            carried = [row.submission_id for row in rows]
            assert carried == [None] * 4 + [one] * 4 + [None] * 2 + [two] * 2
            assert json.loads(rows[4].metadata) == {"remote_job_id": "job-1"}
            assert json.loads(rows[6].metadata) == {"last_event_sequence": 1}
            assert [row.at for row in rows] == sorted(row.at for row in rows)
            assert SECRET_TEXT not in repr(rows)

    asyncio.run(play())


def test_what_fails_while_it_is_met_is_on_record_too(sqlite_url: str) -> None:
    """[M-197] a document that nobody can read never reaches preparation."""

    async def play() -> None:
        async with stage(sqlite_url, site_of()) as site:
            admitted = await admit(site, collections=["posts"], documents=["posts/9999.json"])
            await site.step_all()
            rows = await site.database.read(history_of, admitted.manifest_id)
            moves = {(row.action, row.before, row.after, row.code) for row in rows if row.after == "failed"}
            assert moves == {("refuse", "pending", "failed", "document_not_found")}

    asyncio.run(play())


def test_the_start_is_stamped_by_the_first_claim_and_never_moves(database_url: str) -> None:
    """[C-024, C-025] nor by later steps, by a lease that ran out, or by a retry that lists again."""

    async def play() -> None:
        async with stage(database_url, site_of(), page_size=2) as site:
            admitted = await admit(site, collections=["posts", "pages"])
            mine = admitted.manifest_id
            assert (await site.database.read(manifest_row, mine)).started_at is None
            assert (await site.views.status("default", mine))["started_at"] is None
            claimed = await site.database.run(expanding.claim_enumerating_manifest, "host/boot/2/2")
            assert claimed is not None
            assert claimed.started_at is not None
            assert claimed.lease_expires_at > claimed.started_at >= claimed.created_at
            await site.database.run(give_back, mine)
            again = await site.database.run(expanding.claim_enumerating_manifest, "host/boot/3/3")
            assert again is not None
            assert (again.started_at, again.fence) == (claimed.started_at, claimed.fence + 1)
            await site.database.run(give_back, mine)
            await site.database.run(make_listings_due)
            await site.step_all()
            row = await site.database.read(manifest_row, mine)
            assert (row.phase, row.started_at) == ("open", claimed.started_at)

    asyncio.run(play())


def give_back(tx: Tx, manifest_id: str) -> None:
    """As if the holder's lease had run out."""
    mine = tables.manifests.c.id == manifest_id
    tx.touched(sa.update(tables.manifests).where(mine).values(lease_expires_at=tx.now))


def test_due_intents_are_taken_in_the_order_of_the_request(database_url: str) -> None:
    """[M-028, M-048] pages of a hundred, then by ordinal, whatever became due first."""

    async def play() -> None:
        documents = {f"{number:03}.json": catalogue(text=str(number)) for number in range(150)}
        async with stage(database_url, documents) as site:
            await site.admit([(name, "de") for name in documents])
            claimed = await site.database.run(expanding.claim_enumerating_manifest, "ada")
            assert claimed is not None
            page = await site.database.run(expanding.expand_next_pairs, claimed.id, claimed.fence, 100)
            assert page.expanded == 100
            rest = await site.database.run(expanding.expand_next_pairs, claimed.id, claimed.fence, 100)
            assert rest.expanded == 150
            await site.database.run(due_last_first)
            taken: list[Any] = []
            for _ in range(3):
                work = await site.database.run(preparing.claim_due_intents, "ada", 8)
                assert work is not None
                taken += [intent.ordinal for intent in work.intents]
                await site.database.run(preparing.record_preparations, work, [], 0.0)
                await site.database.run(put_off, [intent.id for intent in work.intents])
            assert taken == list(range(24))

    asyncio.run(play())


def due_last_first(tx: Tx) -> None:
    """The last of the request became due first."""
    table = tables.intents
    tx.touched(sa.update(table).values(next_attempt_at=tx.now - table.c.ordinal))


def put_off(tx: Tx, ids: list[str]) -> None:
    """These are due much later; the shard is due now."""
    table, shards = tables.intents, tables.shards
    tx.touched(sa.update(table).where(table.c.id.in_(ids)).values(next_attempt_at=tx.now + 3_600_000_000))
    tx.touched(sa.update(shards).values(prepare_due_at=tx.now, prepare_served_at=0))


def lose_intents(tx: Tx, ordinals: list[int]) -> None:
    """As a person or a restored copy may: rows are gone, and with the next move the counts say so."""
    table = tables.intents
    tx.touched(sa.delete(table).where(table.c.ordinal.in_(ordinals)))


def lose_documents(tx: Tx, manifest_id: str, names: list[str]) -> None:
    """The same, of one manifest."""
    table = tables.intents
    mine = (table.c.manifest_id == manifest_id, table.c.document.in_(names))
    tx.touched(sa.delete(table).where(*mine))


def test_intents_that_are_gone_are_made_again_from_the_stored_request(database_url: str) -> None:
    """[M-148] the same pairs under the same ordinals; what is there is left as it stands."""

    async def play() -> None:
        documents = {f"{number:03}.json": catalogue(text=str(number)) for number in range(230)}
        async with stage(database_url, documents) as site:
            manifest = (await site.admit([(name, "de") for name in documents])).manifest_id
            await site.enumeration.step()
            assert await site.enumeration.restore_step() == 0
            before = await site.database.read(pairs_of, manifest)
            await site.database.run(lose_intents, [0, 99, 100, 150, 229])
            await site.preparing.step()
            assert await site.enumeration.restore_step() == 1
            while await site.enumeration.step():
                pass
            assert [pair[1:] for pair in await site.database.read(pairs_of, manifest)] == [
                pair[1:] for pair in before
            ]
            kept = {pair[0] for pair in before} & {
                pair[0] for pair in await site.database.read(pairs_of, manifest)
            }
            assert len(kept) == 225
            await site.step_all()
            assert await site.counts(manifest) == {"queued": 230}
            assert await site.enumeration.restore_step() == 0
            replayed = await site.admit([(name, "de") for name in documents])
            assert (replayed.manifest_id, replayed.how) == (manifest, "replayed")

    asyncio.run(play())


def test_what_a_scope_has_lost_is_met_again_and_a_pair_without_a_document_is_counted_no_more(
    database_url: str,
) -> None:
    """[M-148] one shard is wholly gone; counts stay true, and a cancel reaches the last shard."""

    async def play() -> None:
        async with stage(database_url, site_of(6, 2)) as site:
            with bounded({"SHARD_INTENTS": 4, "FIELD_SUM_INTENTS": 2, "EXPAND_PER_TRANSACTION": 3}):
                manifest = (
                    await admit(site, collections=["posts", "pages"], globals=["site.json"])
                ).manifest_id
                await enumerate_all(site)
                before = await site.database.read(pairs_of, manifest)
                assert len(before) == 18
                await site.database.run(lose_intents, [1, 4, 5, 6, 7, 17])
                gone = before[1][2]
                del site.source.documents[gone]
                for _ in range(6):
                    await site.preparing.step()
                assert await site.enumeration.restore_step() == 1
                status = await site.views.status("default", manifest)
                assert (status["total_known"], status["completed_at"]) == (False, None)
                await enumerate_all(site)
                after = await site.database.read(pairs_of, manifest)
                assert sorted(pair[2:] for pair in after) == sorted(
                    pair[2:] for pair in before if pair[1:] != before[1][1:]
                )
                assert {pair[0] for pair in before} & {pair[0] for pair in after} == {
                    pair[0] for pair in before if pair[1] not in (1, 4, 5, 6, 7, 17)
                }
                assert await site.enumeration.restore_step() == 0
                assert sum((await site.counts(manifest)).values()) == 17
                assert (await site.steering.cancel("default", manifest, "mia")).changed
            assert set(await site.counts(manifest)) <= {"skipped", "failed"}
            status = await site.views.status("default", manifest)
            assert (status["status"], status["counts"]["total"]) == ("canceled", 17)

    asyncio.run(play())


@pytest.mark.parametrize("by", ["pairs", "scope"])
def test_a_canary_that_lost_intents_keeps_its_sample_and_starts_no_more(database_url: str, by: str) -> None:
    """[M-148] of stored pairs the sample is whole again; what a walk meets anew waits for the promotion."""

    async def play() -> None:
        documents = site_of(8, 0)
        async with stage(database_url, documents) as site:
            if by == "pairs":
                asked = [(name, "de") for name in documents if name.startswith("posts/")]
                admitted = await site.admit(asked, canary_limit=3)
            else:
                admitted = await admit(site, canary=3, collections=["posts"], locales=["de"])
            manifest = admitted.manifest_id
            await enumerate_all(site)
            states = await site.database.read(states_of, manifest)
            ordinals = {pair[2:]: pair[1] for pair in await site.database.read(pairs_of, manifest)}
            kept = sorted(ordinals[pair] for pair, (state, _) in states.items() if state == "pending")
            left = sorted(ordinals[pair] for pair, (state, _) in states.items() if state == "skipped")
            assert (len(kept), len(left)) == (3, 5)
            await site.database.run(lose_intents, [kept[0], left[0]])
            await site.preparing.step()
            assert await site.enumeration.restore_step() == 1
            await site.step_all()
            started = 3 if by == "pairs" else 2
            assert await site.counts(manifest) == {"queued": started, "skipped": 8 - started}
            assert await site.enumeration.restore_step() == 0
            promoted = await site.promotion.promote("default", manifest, "mia")
            assert promoted.total == 8 - started

    asyncio.run(play())


def test_what_a_promotion_has_lost_is_copied_again_from_its_canary(database_url: str) -> None:
    """[M-148] in pages; what the canary has not any more is counted no more."""

    async def play() -> None:
        documents = site_of(8, 0)
        async with stage(database_url, documents) as site:
            with bounded({"SHARD_INTENTS": 4, "FIELD_SUM_INTENTS": 2, "EXPAND_PER_TRANSACTION": 2}):
                canary = (await admit(site, canary=1, collections=["posts"], locales=["de"])).manifest_id
                await enumerate_all(site)
                manifest = (await site.promotion.promote("default", canary, "mia")).manifest_id
                await enumerate_all(site)
                before = await site.database.read(pairs_of, manifest)
                assert len(before) == 7
                await site.database.run(lose_documents, manifest, [before[at][2] for at in (0, 2, 5, 6)])
                await site.database.run(lose_documents, canary, [before[2][2]])
                del site.source.documents[before[2][2]]  # the canary cannot be made whole either
                for _ in range(4):
                    await site.preparing.step()
                assert await site.enumeration.restore_step()
                assert (await site.views.status("default", manifest))["total_known"] is False
                await enumerate_all(site)
                after = await site.database.read(pairs_of, manifest)
                lost = before.pop(2)
                assert sorted(pair[2:] for pair in after) == sorted(pair[2:] for pair in before)
                assert lost[2:] not in [pair[2:] for pair in after]
                status = await site.views.status("default", manifest)
                assert (status["total_known"], status["counts"]["total"]) == (True, 6)
                assert await site.enumeration.restore_step() == 0
                await site.step_all()
                assert await site.counts(manifest) == {"queued": 6}

    asyncio.run(play())


def pairs_of(tx: Tx, manifest_id: str) -> list[tuple[str, int, str, str]]:
    """Id, ordinal and pair of every intent, in the order of the request."""
    table = tables.intents
    mine = sa.select(table).where(table.c.manifest_id == manifest_id).order_by(table.c.ordinal)
    return [(row.id, row.ordinal, row.document, row.locale) for row in tx.all(mine)]


def ids_of(tx: Tx, manifest_id: str) -> list[str]:
    """Every intent of a manifest."""
    return [row.id for row in tx.all(sa.select(tables.intents.c.id))]


def test_a_retry_takes_nothing_that_is_done_left_out_or_hopeless(sqlite_url: str) -> None:
    """[M-137] completed, skipped, and failed beyond mending: neither by name nor with all others."""

    async def play() -> None:
        documents = {name: catalogue(hello="Hello") for name in ("a.json", "c.json")}
        async with stage(sqlite_url, documents) as site:
            site.source.targets["c.json", "de"] = catalogue(hello="Hallo")
            manifest = (
                await site.admit([(name, "de") for name in ("a.json", "b.json", "c.json")])
            ).manifest_id
            await site.step_all()
            [body] = site.engine.submissions()
            await site.deliver(event(body, "job-1"))
            ended = {"completed": 1, "failed": 1, "skipped": 1}
            assert await site.counts(manifest) == ended
            for named in (None, *([intent] for intent in await site.database.read(ids_of, manifest))):
                with pytest.raises(CallerError, match="can be retried"):
                    await site.steering.retry("default", manifest, "mia", named)
            assert await site.counts(manifest) == ended

    asyncio.run(play())


def test_a_pair_has_twenty_generations_at_most(sqlite_url: str) -> None:
    """[M-137] neither by name nor with all others is a twenty-first opened."""

    async def play() -> None:
        async with stage(sqlite_url, {"a.json": catalogue(k="Text")}) as site:
            manifest = (await site.admit([("a.json", "de")])).manifest_id
            await site.enumeration.step()
            for generation in (19, 20):
                await site.database.run(set_generation, generation)
                await site.database.run(fail_pending, manifest)
                [row] = await site.database.read(intents_of, manifest)
                if generation < 20:
                    assert await site.steering.retry("default", manifest, "mia", [row.id]) == 1
            for named in ([row.id], None):
                with pytest.raises(CallerError) as nothing:
                    await site.steering.retry("default", manifest, "mia", named)
                assert nothing.value.code == "nothing_to_retry"

    asyncio.run(play())


def set_generation(tx: Tx, generation: int) -> None:
    """As if every intent had been tried again so often."""
    tx.touched(sa.update(tables.intents).values(generation=generation))
