"""Retention: what has had its time goes whole, and nothing that is active ever does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import pytest
import sqlalchemy as sa

from dragoman.flow.upkeep.retention import Retention
from dragoman.kernel import limits
from dragoman.kernel.errors import CallerError
from dragoman.model.scopes import System
from dragoman.store.acts import purging, retiring
from dragoman.store.rows import shards
from dragoman.store.schema import effects, engine, metadata, site
from dragoman.store.transaction import Tx
from tests.doubles.engines import event
from tests.flow.site.stage import Stage, catalogue, stage

PAIRS = [("a.json", "de"), ("a.json", "fr")]
DOCUMENTS = {"a.json": catalogue(hello="Hello")}
DAY = 24 * 3600 * 1_000_000
OWN = (
    "manifests", "manifest_pages", "shards", "field_sums", "intents", "results", "submissions",
    "submission_intents", "receipts",
)  # fmt: skip
"""Tables whose every row belongs to one manifest of the site."""


def age(tx: Tx, manifest_id: str, days: int) -> None:
    """As if a manifest had ended so many days ago."""
    long_ago = tx.now - days * DAY
    mine = sa.update(site.manifests).where(site.manifests.c.id == manifest_id)
    tx.touched(mine.values(completed_at=long_ago, created_at=long_ago, updated_at=long_ago))


def counts(tx: Tx, names: Iterable[str] = OWN) -> dict[str, int]:
    """Table → rows, of those that have any."""
    number = sa.func.count().label("number")
    found = {name: int(tx.scalar(sa.select(number).select_from(metadata.tables[name]))) for name in names}
    return {name: count for name, count in found.items() if count}


def orphans(tx: Tx) -> dict[str, int]:
    """Rows that point at an intent, a submission or a manifest that is not there."""
    intent, submission, manifest = site.intents.c.id, site.submissions.c.id, site.manifests.c.id
    points = (
        (site.intents.c.manifest_id, manifest), (site.shards.c.manifest_id, manifest),
        (site.manifest_pages.c.manifest_id, manifest), (site.field_sums.c.manifest_id, manifest),
        (site.submissions.c.manifest_id, manifest), (site.results.c.intent_id, intent),
        (site.submission_intents.c.intent_id, intent), (site.submission_intents.c.submission_id, submission),
    )  # fmt: skip
    number = sa.func.count().label("number")
    lost = {
        str(of): int(tx.scalar(sa.select(number).select_from(of.table).where(~sa.exists().where(to == of))))
        for of, to in points
    }
    return {name: count for name, count in lost.items() if count}


def set_columns(tx: Tx, table: sa.Table, values: Mapping[str, object]) -> None:
    """Give all rows of a table these values."""
    tx.touched(sa.update(table).values(values))


async def finished(site_: Stage, request_id: str, pairs: list[tuple[str, str]]) -> str:
    """A manifest whose work the engine has done, and the site has heard of."""
    before = len(site_.engine.submissions())
    manifest = (await site_.admit(pairs, request_id, publish="none")).manifest_id
    await site_.step_all()
    for number, body in enumerate(site_.engine.submissions()[before:]):
        told = event(body, site_.engine.jobs[body["submissionId"]])
        await site_.deliver(told, f"d-{request_id}-{number}")
    return manifest


def retention(site_: Stage, days: int = 30) -> Retention:
    return Retention(site_.database, System(), site_.clock, days)


async def drain(what: Retention) -> None:
    """One whole round."""
    while await what.step():
        pass


def test_a_completed_manifest_goes_after_thirty_days_and_leaves_no_orphan(database_url: str) -> None:
    """[M-295] [M-296] [M-298] [M-176] whole, without anything that pointed at it; not a day sooner."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as here:
            manifest = await finished(here, "r-1", PAIRS)
            young = await finished(here, "r-2", PAIRS)
            await here.database.run(age, manifest, 29)
            before = await here.database.read(counts)
            await drain(retention(here))
            assert await here.database.read(counts) == before
            await here.database.run(age, manifest, 31)
            await drain(retention(here))
            assert await here.database.read(orphans) == {}
            assert (await here.database.read(counts))["manifests"] == 1
            assert (await here.views.status("default", young))["counts"]["total"] == 2
            with pytest.raises(CallerError, match="no manifest"):
                await here.views.status("default", manifest)
            await here.database.run(age, young, 31)
            await drain(retention(here))
            assert await here.database.read(counts) == {}
            kept = await here.database.read(counts, ["effects", "attempts"])
            assert set(kept) == {"effects", "attempts"}, "what was done outside outlives its reason"

    asyncio.run(play())


def test_active_failed_and_uncertain_manifests_stay_whatever_their_age(database_url: str) -> None:
    """[M-297] [M-298] each kept by what is not over; once that is over they go."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as here:
            manifest = await finished(here, "r-1", PAIRS)
            await here.database.run(age, manifest, 400)
            before = await here.database.read(counts)
            for table, wrong, right in (
                (site.manifests, {"phase": "open"}, {"phase": "ended"}),
                (site.manifests, {"gaps": "[]x"}, {"gaps": None}),
                (site.manifests, {"control_due_at": 1}, {"control_due_at": None}),
                (site.submissions, {"settled_at": None}, {"settled_at": 1}),
                (site.shards, {"failed": 1, "completed": 1}, {"failed": 0, "completed": 2}),
                (effects.effects, {"state": "UNKNOWN"}, {"state": "SUCCEEDED"}),
            ):
                await here.database.run(set_columns, table, wrong)
                await drain(retention(here))
                assert await here.database.read(counts) == before, (table.name, wrong)
                await here.database.run(set_columns, table, right)
            await drain(retention(here))
            assert await here.database.read(counts) == {}

    asyncio.run(play())


def test_retention_removes_nothing_active_under_a_race_with_a_retry(database_url: str) -> None:
    """[M-298] [M-296] of a retry and a proof at once one wins: the manifest is at work, or it is gone whole.

    Only a canceled manifest can be both past its time and retried: it counts as over, failures and all.
    """

    async def play() -> None:
        ends = set()
        for round_ in range(8):
            async with stage(database_url, DOCUMENTS) as here:
                manifest = await finished(here, f"r-{round_}", PAIRS)
                await here.database.run(make_canceled_failures, manifest)
                await here.database.run(age, manifest, 31)

                async def retry(here: Stage = here, manifest: str = manifest) -> str:
                    try:
                        await here.steering.retry("default", manifest, "mia", None)
                    except CallerError as error:
                        return error.code
                    return "retried"

                pair = [retry(), drain(retention(here))]
                told, _ = await asyncio.gather(*(pair if round_ % 2 else reversed(pair)))
                told = told if round_ % 2 else _
                left = await here.database.read(counts)
                assert await here.database.read(orphans) == {}
                if told == "retried":
                    assert (left["manifests"], left["intents"]) == (1, 2)
                    assert (await here.views.status("default", manifest))["completed_at"] is None
                else:
                    assert told in ("not_found", "nothing_to_retry")
                    assert left == {}
                ends.add(told == "retried")
                await here.database.run(forget_everything)
        assert ends

    asyncio.run(play())


def make_canceled_failures(tx: Tx, manifest_id: str) -> None:
    """A canceled manifest all of whose intents failed, and may be tried again."""
    mine = site.intents.c.manifest_id == manifest_id
    tx.touched(sa.update(site.intents).where(mine).values(state="failed", retryable=True))
    tx.touched(sa.update(site.manifests).where(site.manifests.c.id == manifest_id).values(canceled=True))
    shards.recount(tx, manifest_id, [0])


def forget_everything(tx: Tx) -> None:
    """Empty the site's tables."""
    for name in reversed(OWN):
        tx.touched(sa.delete(metadata.tables[name]))


def test_a_retry_before_the_proof_keeps_a_manifest_and_one_after_it_finds_none(
    database_url: str,
) -> None:
    """[M-298] both orders, step by step; a crash between proof and removal is gone on with."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as here:
            manifest = await finished(here, "r-1", PAIRS)
            await here.database.run(make_canceled_failures, manifest)
            await here.database.run(age, manifest, 31)
            page = await here.database.read(retiring.ended_page, System(), 30)
            assert page.manifest_ids == (manifest,)
            await here.steering.retry("default", manifest, "mia", None)
            assert not await here.database.run(retiring.prove_ended, System(), manifest, 30)
            assert not await here.database.run(retiring.remove_part, System(), manifest)
            assert (await here.database.read(counts))["intents"] == 2

            await here.database.run(make_canceled_failures, manifest)
            await here.database.run(age, manifest, 31)
            assert await here.database.run(retiring.prove_ended, System(), manifest, 30)
            for act in (here.steering.retry, here.steering.pause):
                more = (None,) if act == here.steering.retry else ()
                with pytest.raises(CallerError, match="no manifest"):
                    await act("default", manifest, "mia", *more)
            assert await here.database.run(retiring.remove_part, System(), manifest)
            await drain(retention(here))  # whoever began it died here
            assert await here.database.read(counts) == {}

    asyncio.run(play())


def test_the_walk_goes_round_by_its_cursor_so_that_later_manifests_have_their_turn(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-299] failed ones at its head, which stay, keep nobody from being removed; a page is bounded."""
    monkeypatch.setattr("dragoman.flow.upkeep.retention.RETENTION_MANIFESTS_PER_RUN", 2)

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as here:
            made = [await finished(here, f"r-{number}", PAIRS) for number in range(7)]
            for manifest in made:
                await here.database.run(age, manifest, 40)
            await here.database.run(make_gaps, made[:4])
            assert await retention(here).step() == 1, "a page of two, and more behind it"
            assert (await here.database.read(counts))["manifests"] == 7
            await drain(retention(here))
            assert (await here.database.read(counts))["manifests"] == 4
            late = await here.database.read(retiring.past_time, System(), 30)
            assert late == {"manifests": 0, "failed_manifests_kept": 4}

    asyncio.run(play())


def make_gaps(tx: Tx, manifest_ids: list[str]) -> None:
    """Collections of these could not be listed: they failed."""
    where = site.manifests.c.id.in_(manifest_ids)
    tx.touched(sa.update(site.manifests).where(where).values(gaps="[]"))


def test_a_request_key_outlives_every_retry_of_its_request() -> None:
    """[M-295] nobody tries by himself for as long as the shortest retention that can be set."""
    longest = max(
        limits.JOB_DEADLINE_SECONDS, limits.OUTBOX_WINDOW_SECONDS, limits.RETRY_MAX_SECONDS,
        limits.PROVIDER_RETRY_AFTER_SECONDS_MAX, limits.RETRY_AFTER_SECONDS_MAX,
    )  # fmt: skip
    assert longest < limits.RETENTION_DAYS_MIN * 24 * 3600 / 2
    assert purging._KEPT_TIMES >= 2
    assert engine.jobs.c.submission_id.unique
