"""Proof 4: a process dies at each named moment, its leases run out, and all comes to the one same end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.kernel import canonical
from dragoman.kernel.identity import sha256
from dragoman.store.acts import leasing
from dragoman.store.rows import shards
from dragoman.store.schema import publishing
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx
from tests.doubles.engines import event
from tests.flow.site.stage import Stage, catalogue, stage

MOMENTS = {
    "after the intents are claimed": ("claim_due_intents", "after"),
    "before what was prepared is on record": ("record_preparations", "before"),
    "after what was prepared is on record": ("record_preparations", "after"),
    "after the submission is frozen": ("persist_submissions", "after"),
    "once the engine has accepted, before it is on record": ("record_send", "before"),
    "after the acceptance is on record": ("record_send", "after"),
    "after the receipt is kept": ("keep_receipt", "after"),
    "while the event is applied": ("settle_receipt", "before"),
    "once the event is applied, before it is answered": ("settle_receipt", "after"),
}


class Died(BaseException):
    """The process is gone."""


@contextlib.contextmanager
def dying(site: Stage, moment: tuple[str, str]) -> Iterator[list[str]]:
    """The process dies before or after the first act of this name; after is after its commit."""
    run, died = site.database.run, list[str]()

    async def mortal(act: Any, *given: Any) -> Any:
        mine = act.__name__ == moment[0] and not died
        if mine and moment[1] == "before":
            died.append(act.__name__)
            raise Died
        done = await run(act, *given)
        if mine:
            died.append(act.__name__)
            raise Died
        return done

    site.database.run = mortal  # type: ignore[method-assign,assignment]
    try:
        yield died
    finally:
        site.database.run = run  # type: ignore[method-assign]


def let_leases_run_out(tx: Tx) -> None:
    """As if two minutes had passed for everything that somebody holds, and for every kept receipt."""
    for table in leasing.LEASED:
        held = table.c.lease_expires_at.is_not(None)
        tx.touched(sa.update(table).where(held).values(lease_expires_at=tx.now))
    tx.touched(sa.update(tables.receipts).values(next_attempt_at=tx.now))
    for due, served in (("prepare_due_at", "prepare_served_at"), ("submit_due_at", "submit_served_at")):
        waiting = tables.shards.c[due].is_not(None)
        tx.touched(sa.update(tables.shards).where(waiting).values({due: tx.now, served: 0}))


def all_of(tx: Tx, manifest_id: str) -> dict[str, list[Row]]:
    """What there is of a manifest."""
    mine = sa.select(tables.intents.c.id).where(tables.intents.c.manifest_id == manifest_id)
    requests = publishing.publication_requests
    found = {
        "intents": sa.select(tables.intents).where(tables.intents.c.manifest_id == manifest_id),
        "submissions": sa.select(tables.submissions).where(tables.submissions.c.manifest_id == manifest_id),
        "links": sa.select(tables.submission_intents).where(tables.submission_intents.c.intent_id.in_(mine)),
        "results": sa.select(tables.results).where(tables.results.c.intent_id.in_(mine)),
        "publications": sa.select(requests).where(requests.c.manifest_id == manifest_id),
    }
    assert shards.agree(tx, manifest_id)
    return {name: tx.all(asked) for name, asked in found.items()}


async def to_the_end(site: Stage, manifest: str) -> None:
    """Everything that is due is worked, and the engine delivers its event, until it is heard."""
    await site.step_all()
    bodies = [body for body in site.engine.submissions() if body["clientJobId"] == manifest]
    for body in bodies:
        await site.deliver(event(body, site.engine.jobs[body["submissionId"]]), f"d-{manifest}")
    await site.callbacks.step()


@pytest.mark.parametrize("name", MOMENTS)
def test_whenever_a_process_dies_there_is_one_intent_one_submission_and_one_job(
    sqlite_url: str, name: str
) -> None:
    """[M-330, M-342, M-343, M-344, M-345, M-346] and of what was sent the evidence is kept [M-162, M-163]."""
    asyncio.run(die_and_go_on(sqlite_url, {name: MOMENTS[name]}))


def test_it_is_so_on_servers_too(server_url: str) -> None:
    """[M-330, M-342, M-343, M-344, M-345, M-346] all moments, one manifest after the other."""
    asyncio.run(die_and_go_on(server_url, MOMENTS))


def test_shards_and_submissions_are_leased_for_two_minutes(database_url: str) -> None:
    """[M-046] from the claim on, and from their making on; an intent has no lease of its own."""

    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(hello="Hello")}) as site:
            await site.admit([("a.json", "de")])
            await site.enumeration.step()
            with dying(site, ("claim_due_intents", "after")), pytest.raises(Died):
                await site.preparing.step()
            [shard] = await site.database.read(all_rows, tables.shards)
            assert shard.lease_expires_at - shard.prepare_served_at == 120_000_000
            await site.database.run(let_leases_run_out)
            with dying(site, ("persist_submissions", "after")), pytest.raises(Died):
                await site.step_all()
            [submission] = await site.database.read(all_rows, tables.submissions)
            assert submission.lease_expires_at - submission.created_at == 120_000_000
            assert "lease_owner" not in tables.intents.c

    asyncio.run(play())


def test_once_the_engine_has_accepted_only_evidence_of_what_was_sent_is_left(database_url: str) -> None:
    """[M-095, M-162, M-163] the bytes and the prepared text go in the transaction that says so."""

    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(hello="Hello")}) as site:
            await site.admit([("a.json", "de")])
            with dying(site, ("record_send", "before")), pytest.raises(Died):
                await site.step_all()
            [intent] = await site.database.read(all_rows, tables.intents)
            [before] = await site.database.read(all_rows, tables.submissions)
            assert "Hello" in intent.prepared
            await site.database.run(let_leases_run_out)
            await site.step_all()
            [intent] = await site.database.read(all_rows, tables.intents)
            [after] = await site.database.read(all_rows, tables.submissions)
            assert (intent.state, intent.prepared, after.body) == ("queued", None, None)
            assert after.payload_purged_at == after.accepted_at is not None
            assert (after.id, after.fingerprint) == (before.id, sha256(before.body))
            assert json.loads(intent.key_map).keys() == {"hello"}

    asyncio.run(play())


def all_rows(tx: Tx, table: sa.Table) -> list[Row]:
    """Every row of a table."""
    return tx.all(sa.select(table))


def test_an_event_whose_receipt_was_kept_and_not_applied_is_applied_when_it_comes_again(
    database_url: str,
) -> None:
    """[M-255] a repeat of what was applied changes nothing; a repeat of what was only kept is used."""

    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(hello="Hello")}) as site:
            manifest = (await site.admit([("a.json", "de")])).manifest_id
            await site.step_all()
            [body] = site.engine.submissions()
            told = event(body, "job-1")
            with dying(site, ("settle_receipt", "before")), pytest.raises(Died):
                await site.deliver(told)
            assert await site.counts(manifest) == {"queued": 1}
            assert await site.deliver(told) == 200
            assert await site.counts(manifest) == {"completed": 1}
            assert await site.callbacks.step() == 0

    asyncio.run(play())


def test_an_event_about_nothing_of_ours_is_written_down_and_done_with(database_url: str) -> None:
    """[M-256, M-257] another site's submission, a generation that another followed: 200, and no change."""

    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(hello="Hello")}) as site:
            manifest = (await site.admit([("a.json", "de")])).manifest_id
            await site.step_all()
            [body] = site.engine.submissions()
            stranger = {**event(body, "job-1"), "submission_id": "0199d3f0-4a1b-7c55-9c1e-3a7f6f2b8d10"}
            assert await site.deliver(stranger, "d-1") == 200
            failed = event(body, "job-1", fail={body["items"][0]["ref"]: "checks_failed"})
            assert await site.deliver(failed, "d-2") == 200
            assert await site.steering.retry("default", manifest, "mia") == 1
            assert await site.deliver(event(body, "job-1", sequence=9), "d-3") == 200
            assert await site.counts(manifest) == {"preparing": 1}
            kept = {row.event_id: row for row in await site.database.read(all_rows, tables.receipts)}
            states = [kept[name].state for name in ("d-1", "d-2", "d-3")]
            assert states == ["IGNORED", "APPLIED", "OUT_OF_ORDER"]
            assert [row.body for row in kept.values()] == [None] * 3
            await site.database.run(let_leases_run_out)
            assert await site.callbacks.step() == 0

    asyncio.run(play())


async def die_and_go_on(url: str, moments: dict[str, tuple[str, str]]) -> None:
    names = [f"{number}{letter}.json" for number in range(len(moments)) for letter in "ab"]
    async with stage(url, {name: catalogue(hello=f"Hello {name}") for name in names}) as site:
        for number, (name, moment) in enumerate(moments.items()):
            pairs = [(f"{number}a.json", "de"), (f"{number}b.json", "fr")]
            manifest = (await site.admit(pairs, f"r-{number}")).manifest_id
            with dying(site, moment) as died, pytest.raises(Died):
                await to_the_end(site, manifest)
            assert died == [moment[0]], name
            await site.database.run(let_leases_run_out)
            await to_the_end(site, manifest)
            await to_the_end(site, manifest)
            one_of_each(await site.database.read(all_of, manifest), site, manifest, name)


def one_of_each(found: dict[str, list[Row]], site: Stage, manifest: str, name: str) -> None:
    assert [row.state for row in found["intents"]] == ["completed", "completed"], name
    [submission] = found["submissions"]
    assert (submission.state, submission.body) == ("accepted", None), name
    assert {row.ref for row in found["links"]} == {f"dragoman:{row.id}:g1" for row in found["intents"]}, name
    bodies = {body for body in site.engine.bodies if json.loads(body)["clientJobId"] == manifest}
    assert [sha256(body) for body in bodies] == [submission.fingerprint], name
    assert submission.payload_purged_at == submission.accepted_at, name
    [items] = [json.loads(body)["items"] for body in bodies]
    kept = {row.ref: (row.generation, row.fields_hash) for row in found["links"]}
    assert kept == {item["ref"]: (1, sha256(canonical.encode(item["fields"]))) for item in items}, name
    assert site.engine.jobs[submission.id] == submission.remote_job_id, name
    assert len(found["results"]) == 2, name
    asked = sorted(intent for row in found["publications"] for intent in json.loads(row.intents))
    assert asked == sorted(row.id for row in found["intents"]), name
