"""Canaries: a sample first, of any mode, the same after every death; promotion goes on with the rest."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.flow.site.enumeration import Sample
from dragoman.kernel.errors import CallerError
from dragoman.model.walks import Met, Place
from dragoman.store.acts import expanding, leasing, sampling
from tests.doubles.engines import event
from tests.flow.site.rows import (
    all_pairs,
    states_of,
)
from tests.flow.site.scoped import admit, enumerate_all, expected, site_of
from tests.flow.site.stage import CALLER, stage


@pytest.mark.parametrize("mode", ["missing", "changed", "all", "force"])
def test_a_canary_keeps_so_many_and_leaves_the_rest(database_url: str, mode: str) -> None:
    """[C-075, C-077, C-079, C-081, C-082, C-084, C-088] of any mode, spread evenly over collections."""

    async def play() -> None:
        async with stage(database_url, site_of(30, 2), page_size=10) as site:
            admitted = await site.admission.admit(
                CALLER,
                {
                    "request_id": "r-1", "project": "docs", "mode": mode, "canary_limit": 10,
                    "scope": {"collections": ["posts", "pages"], "globals": ["site.json"], "locales": ["de"]},
                },
            )  # fmt: skip
            await enumerate_all(site)
            states = await site.database.read(states_of, admitted.manifest_id)
            kept = [ref for (ref, _), (state, _) in states.items() if state == "pending"]
            assert len(kept) == 10
            assert {ref for ref in kept if not ref.startswith("posts/")} == {
                "pages/0000.json", "pages/0001.json", "site.json",
            }  # fmt: skip
            assert {code for state, code in states.values() if state == "skipped"} == {"canary_not_sampled"}
            assert await site.counts(admitted.manifest_id) == {"preparing": 10, "skipped": 23}
            await site.step_all()
            assert await site.counts(admitted.manifest_id) == {"queued": 10, "skipped": 23}

    asyncio.run(play())


def test_nothing_of_a_canary_starts_before_its_sample_is_stored(database_url: str) -> None:
    """[C-077, C-087] preparation finds nothing, whoever had the pairs before."""

    async def play() -> None:
        async with stage(database_url, site_of(4, 0)) as site:
            other = await site.admit([("posts/0000.json", "de")], "other")
            await enumerate_all(site)
            admitted = await admit(site, canary=1, collections=["posts"])
            met = [Met(f"posts/{number:04}.json", "de") for number in range(4)]
            mine = await site.database.run(expanding.claim_enumerating_manifest, "host/boot/9/9")
            assert mine is not None
            await site.database.run(expanding.record_walk, mine.id, mine.fence, met, Place("canary"))
            await site.step_all()
            states = await site.database.read(states_of, admitted.manifest_id)
            assert {state for state, _ in states.values()} == {"pending"}
            assert await site.counts(other.manifest_id) == {"queued": 1}
            with pytest.raises(CallerError) as early:
                await site.promotion.promote("default", admitted.manifest_id, CALLER.actor)
            assert early.value.code == "nothing_to_promote"
            await site.database.run(sampling.store_sample, mine.id, mine.fence, (0,))
            await site.database.run(leasing.free_gone_owners, ["host/boot/9/9"])
            await site.step_all()
            states = await site.database.read(states_of, admitted.manifest_id)
            assert states["posts/0000.json", "de"][0] == "pending"  # another manifest has the pair
            assert {state for pair, (state, _) in states.items() if pair[0] != "posts/0000.json"} == {
                "skipped"
            }
            [body] = site.engine.submissions()
            await site.deliver(event(body, "job-1"))
            await site.step_all()
            assert await site.counts(admitted.manifest_id) == {"queued": 1, "skipped": 3}

    asyncio.run(play())


def test_the_same_manifest_samples_the_same_after_every_death(database_url: str) -> None:
    """[C-080, C-083, C-085, C-087] the sample is stored once, and decided in bounded transactions."""

    async def play() -> None:
        async with stage(database_url, site_of(150, 20), page_size=100) as site:
            admitted = await admit(site, canary=5, collections=["posts", "pages"])
            pool = sorted(expected(site.source.documents, "posts/", "pages/"))
            mine = await site.database.run(expanding.claim_enumerating_manifest, "host/boot/9/9")
            assert mine is not None
            met = [Met(*pair) for pair in pool]
            for start in range(0, len(met), 100):
                chunk = met[start : start + 100]
                await site.database.run(expanding.record_walk, mine.id, mine.fence, chunk, Place("canary"))
            sample = Sample(admitted.manifest_id, 5)
            for ordinal, (document, locale) in enumerate(pool):
                sample.offer(document.partition("/")[0], ordinal, document, locale)
            chosen = {pool[ordinal] for ordinal in sample.chosen()}
            stored = await site.database.run(sampling.store_sample, mine.id, mine.fence, sample.chosen())
            other = await site.database.run(sampling.store_sample, mine.id, mine.fence, (1, 2, 3))
            assert other.sample == stored.sample
            await site.database.run(sampling.settle_sample, mine.id, mine.fence, 100)
            await site.database.run(leasing.free_gone_owners, ["host/boot/9/9"])
            await enumerate_all(site)
            states = await site.database.read(states_of, admitted.manifest_id)
            assert {pair for pair, (state, _) in states.items() if state == "pending"} == chosen
            assert len({document.partition("/")[0] for document, _ in chosen}) == 2
            assert await site.counts(admitted.manifest_id) == {"preparing": 5, "skipped": 335}

    asyncio.run(play())


def test_a_pool_of_ten_thousand_and_one_is_sampled_whole() -> None:
    """[C-078, C-080, C-082, C-086] no cap; the order hangs on manifest, document and locale alone."""

    def sampled(order: range, manifest: str = "m") -> set[str]:
        pool, sample = {}, Sample(manifest, 10)
        for ordinal, number in enumerate(order):
            pool[ordinal] = f"{'ab'[number % 2]}/{number}"
            sample.offer(pool[ordinal].partition("/")[0], ordinal, pool[ordinal], "de")
        return {pool[ordinal] for ordinal in sample.chosen()}

    there = sampled(range(10_001))
    assert there == sampled(range(10_000, -1, -1))
    assert there != sampled(range(10_001), "another")
    assert sum(name.startswith("a/") for name in there) == 5
    assert sampled(range(0)) == set()


def test_a_sample_is_of_pairs_and_not_of_documents() -> None:
    """[C-080] the locale is part of what is hashed: the locales of a document come by themselves."""
    pool = [(f"a/{number}", locale) for number in range(30) for locale in ("de", "fr", "it", "nl")]
    sample = Sample("m", 30)
    for ordinal, (document, locale) in enumerate(pool):
        sample.offer("a", ordinal, document, locale)
    chosen = [pool[ordinal] for ordinal in sample.chosen()]
    assert len(chosen) == 30
    assert len({document for document, _ in chosen}) > 15
    assert {locale for _, locale in chosen} == {"de", "fr", "it", "nl"}


def test_promotion_goes_on_with_what_was_left_out(database_url: str) -> None:
    """[C-083, C-084] a second manifest, linked, the same for every promotion of one canary."""

    async def play() -> None:
        async with stage(database_url, site_of(120, 0)) as site:
            canary = await admit(site, canary=10, collections=["posts"])
            await site.step_all()
            with pytest.raises(CallerError) as foreign:
                await site.promotion.promote("default", canary.manifest_id, "somebody else")
            assert foreign.value.code == "not_owner"
            answers = await asyncio.gather(
                *(site.promotion.promote("default", canary.manifest_id, CALLER.actor) for _ in range(5))
            )
            assert {answer.total for answer in answers} == {230}
            [promoted] = {answer.manifest_id for answer in answers}
            await enumerate_all(site)
            first = await site.database.read(states_of, canary.manifest_id)
            second = await site.database.read(all_pairs, promoted)
            assert second == sorted(pair for pair, (state, _) in first.items() if state == "skipped")
            status = await site.views.status("default", canary.manifest_id)
            assert status["canary"] == {"limit": 10, "promotes": None, "promoted_to": promoted}
            status = await site.views.status("default", promoted)
            assert status["canary"] == {"limit": 0, "promotes": canary.manifest_id, "promoted_to": None}
            plain = await site.admit([("posts/0000.json", "it")], "plain")
            with pytest.raises(CallerError) as nothing:
                await site.promotion.promote("default", plain.manifest_id, CALLER.actor)
            assert nothing.value.code == "nothing_to_promote"

    asyncio.run(play())


def test_a_canary_of_pairs_is_a_canary_too(sqlite_url: str) -> None:
    """[M-105] `canary_limit` stands beside pairs as beside a scope, and is part of the request's identity."""

    async def play() -> None:
        async with stage(sqlite_url, site_of(12, 0)) as site:
            pairs = sorted(expected(site.source.documents, "posts/"))
            admitted = await site.admit(pairs, canary_limit=3)
            await site.step_all()
            assert await site.counts(admitted.manifest_id) == {"queued": 3, "skipped": 21}
            with pytest.raises(CallerError) as conflict:
                await site.admit(pairs, canary_limit=4)
            assert conflict.value.code == "request_id_conflict"
            for wrong in (-1, 10_001, True, "3"):
                with pytest.raises(CallerError) as refused:
                    await site.admit(pairs, "r-2", canary_limit=wrong)
                assert refused.value.place == "canary_limit"

    asyncio.run(play())


@pytest.mark.parametrize(
    ("asked", "kept"),
    [({"canary": True}, 10), ({"canary_limit": 3}, 3), ({"canary": True, "canary_limit": 2}, 2)],
)
def test_a_canary_without_a_number_keeps_ten(sqlite_url: str, asked: dict[str, Any], kept: int) -> None:
    """[C-076] and what contradicts itself is refused."""

    async def play() -> None:
        async with stage(sqlite_url, site_of(20, 0)) as site:
            request = {"request_id": "r-1", "project": "docs"}
            request["scope"] = {"collections": ["posts"], "locales": ["fr"]}  # type: ignore[assignment]
            admitted = await site.admission.admit(CALLER, {**request, **asked})
            await enumerate_all(site)
            assert await site.counts(admitted.manifest_id) == {"preparing": kept, "skipped": 20 - kept}
            for wrong in (
                {"canary": True, "canary_limit": 0},
                {"canary": False, "canary_limit": 3},
                {"canary": 1},
            ):
                with pytest.raises(CallerError):
                    await site.admission.admit(CALLER, {**request, "request_id": "r-2", **wrong})

    asyncio.run(play())
