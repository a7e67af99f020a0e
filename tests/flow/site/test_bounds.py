"""Proofs 3 and 9: no step takes more than its share; after every commit counters say what rows say."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman.model.jobs import Capacity
from dragoman.model.scopes import Workspace
from dragoman.store.acts import viewing
from dragoman.store.rows import shards
from dragoman.store.transaction import Tx
from tests.doubles.engines import event
from tests.flow.site.rows import all_pairs, make_inquiries_due
from tests.flow.site.scoped import SlowClock, admit, site_of
from tests.flow.site.stage import Stage, catalogue, stage

Seen = Callable[[str, Any], Awaitable[None]]


def watched(site: Stage, seen: Seen) -> None:
    """Somebody looks after the commit of every act."""
    run = site.database.run

    async def watching(act: Any, *given: Any) -> Any:
        done = await run(act, *given)
        await seen(act.__name__, done)
        return done

    site.database.run = watching  # type: ignore[method-assign,assignment]


@pytest.mark.parametrize(
    ("pairs", "prepare_per_step", "items"), [(30, 8, 2), (1_000, 100, 20)], ids=["seed", "ours"]
)
def test_no_step_takes_more_than_its_share(
    database_url: str, pairs: int, prepare_per_step: int, items: int
) -> None:
    """[M-061, M-339, M-340] 100 expansions, 8 preparations (ours: 100), 4 submissions; no pair is missing."""
    documents = {f"{number:04}.json": catalogue(text=f"Text {number}") for number in range(pairs)}
    taken: dict[str, list[int]] = {"expanded": [0], "prepared": [], "submitted": []}

    async def seen(act: str, done: Any) -> None:
        if act == "expand_next_pairs":
            taken["expanded"].append(done.expanded)
        elif act == "claim_due_intents" and done is not None:
            taken["prepared"].append(len(done.intents))
        elif act == "persist_submissions":
            taken["submitted"].append(len(done))

    async def play() -> None:
        bounds: dict[str, Any] = {"prepare_per_step": prepare_per_step, "capacity": Capacity(items_max=items)}
        async with stage(database_url, documents, **bounds) as site:
            watched(site, seen)
            manifest = (await site.admit([(name, "de") for name in documents])).manifest_id
            while await site.enumeration.step():
                pass
            assert await site.database.read(all_pairs, manifest) == [(name, "de") for name in documents]
            for _ in range(3):
                await site.preparing.step()
            for _ in range(2):
                await site.submitting.step()
            queued = sum(taken["submitted"]) * items
            assert await site.counts(manifest) == {"preparing": pairs - queued, "queued": queued}

    asyncio.run(play())
    expanded = taken["expanded"]
    assert max(after - before for before, after in itertools.pairwise(expanded)) == min(100, pairs)
    assert taken["prepared"] == [prepare_per_step] * 3
    assert taken["submitted"] == [4, 4]


def test_pairs_that_become_free_are_given_on_a_hundred_at_a_time(database_url: str) -> None:
    """[M-069] whoever had them; each becomes due once, and the rest waits for the next look."""

    async def play() -> None:
        pairs = [(f"{number:03}.json", "de") for number in range(150)]
        async with stage(database_url, {name: catalogue(k="Text") for name, _ in pairs}) as site:
            first, second = [(await site.admit(pairs, name)).manifest_id for name in ("r-1", "r-2")]
            while await site.enumeration.step():
                pass
            assert (await site.steering.cancel("default", first, "mia")).changed
            assert [await site.steering.free_pairs_step() for _ in range(3)] == [100, 50, 0]
            await site.step_all()
            assert await site.counts(second) == {"queued": 150}

    asyncio.run(play())


def test_great_documents_make_no_fifth_submission_in_a_step(sqlite_url: str) -> None:
    """[M-340] two of these fill a body: of what was claimed for four, the rest stays due."""
    documents = {f"{number:02}.json": catalogue(text="word " * 300) for number in range(30)}

    async def play() -> None:
        async with stage(
            sqlite_url, documents, capacity=Capacity(items_max=20, body_bytes_max=8_000)
        ) as site:
            manifest = (await site.admit([(name, "de") for name in documents])).manifest_id
            await site.enumeration.step()
            await site.preparing.step()
            assert await site.submitting.step() == len(site.engine.bodies) == 4
            await site.step_all()
            assert await site.counts(manifest) == {"queued": 30}

    asyncio.run(play())


def test_a_step_begins_nothing_after_its_seconds(sqlite_url: str) -> None:
    """[M-062, M-340] each look at the clock is ten seconds later: the third document stays due."""
    documents = {f"{number}.json": catalogue(text=f"Text {number}") for number in range(9)}

    async def play() -> None:
        async with stage(sqlite_url, documents, clock=SlowClock(10.0)) as site:
            manifest = (await site.admit([(name, "de") for name in documents])).manifest_id
            await site.enumeration.step()
            assert await site.preparing.step() == 2
            await site.step_all()
            assert await site.counts(manifest) == {"queued": 9}

    asyncio.run(play())


def counted(tx: Tx, manifest_id: str) -> dict[str, int]:
    """The public counters, once the stored ones were compared with the rows."""
    assert shards.agree(tx, manifest_id)
    numbers = viewing.counts(tx, viewing.manifest_row(tx, Workspace("default"), manifest_id))
    return {name: number for name, number in numbers.items() if name != "retryable_failed"}


def test_after_every_commit_the_counters_are_what_the_rows_are(database_url: str) -> None:
    """[M-181, M-184, M-186, M-189, M-354] a canary, a failure, its retry, a pause, a promotion, a cancel."""
    shown: set[str] = set()

    async def play() -> None:
        async with stage(database_url, site_of(posts=4, pages=0)) as site:
            manifests: list[str] = []

            async def seen(act: str, _: Any) -> None:
                for manifest in manifests:
                    numbers = await site.database.read(counted, manifest)
                    assert sum(numbers.values()) == 2 * numbers["total"], f"{act}: {numbers}"
                    shown.update(name for name, number in numbers.items() if number)

            watched(site, seen)
            manifests.append((await admit(site, canary=3, collections=["posts"])).manifest_id)
            await site.step_all()
            site.engine.views["job-1"] = {"status": "processing"}
            await site.database.run(make_inquiries_due)
            assert await site.reconciliation.step() == 1
            await answer(site, 0, failing=1)
            await site.steering.retry("default", manifests[0], "mia")
            await site.steering.pause("default", manifests[0], "mia")
            await site.steering.resume("default", manifests[0], "mia")
            await site.step_all()
            await answer(site, 1)
            promoted = await site.promotion.promote("default", manifests[0], "mia")
            manifests.append(promoted.manifest_id)
            await site.enumeration.step()
            await site.preparing.step()
            await site.steering.cancel("default", manifests[1], "mia")
            await site.step_all()
            assert await site.counts(manifests[0]) == {"completed": 3, "skipped": 5}
            assert await site.counts(manifests[1]) == {"skipped": 5}

    asyncio.run(play())
    assert shown == {"total", "preparing", "queued", "processing", "completed", "failed", "skipped"}


async def answer(site: Stage, number: int, failing: int = 0) -> None:
    """The engine's event for the submission of this number, with so many items failed."""
    body = site.engine.submissions()[number]
    fail = {item["ref"]: "checks_failed" for item in body["items"][:failing]}
    await site.deliver(event(body, site.engine.jobs[body["submissionId"]], fail=fail), f"d-{number}")
