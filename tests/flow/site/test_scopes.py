"""Scopes: what is named is walked to its end, exactly, whoever dies on the way."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from dragoman.flow.site.enumeration import Enumeration
from dragoman.kernel.errors import CallerError, LeaseLost, SourceError
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.offload import InlineOffload
from dragoman.model.walks import Met, Place
from dragoman.store.acts import expanding, leasing, sampling
from dragoman.store.keeping import Keeper
from tests.doubles.engines import event
from tests.flow.site.rows import (
    age_lease,
    all_pairs,
    intent_count,
    make_listings_due,
    manifest_row,
    states_of,
)
from tests.flow.site.scoped import SlowClock, admit, enumerate_all, expected, site_of
from tests.flow.site.stage import CALLER, Stage, catalogue, stage


def test_a_scope_is_walked_to_its_end(database_url: str) -> None:
    """[C-026, C-033, C-034, C-040, C-052, C-058, C-059, C-090, C-091, C-096]"""

    async def play() -> None:
        documents = site_of()
        async with stage(database_url, documents, page_size=2) as site:
            everything: dict[str, Any] = {
                "collections": ["posts", "pages"],
                "globals": ["site.json"],
                "locales": ["de", "EN", "fr", "de"],
            }
            admitted = await admit(site, **everything)
            assert (admitted.total, admitted.total_known) == (0, False)
            status = await site.views.status("default", admitted.manifest_id)
            assert (status["status"], status["total_known"]) == ("preparing", False)
            assert await site.enumeration.step() == 22
            assert await site.enumeration.step() == 0
            row = await site.database.read(manifest_row, admitted.manifest_id)
            assert (row.total, bool(row.total_known), row.phase, row.lease_owner) == (22, True, "open", None)
            assert await site.database.read(all_pairs, admitted.manifest_id) == sorted(
                expected(documents, "posts/", "pages/", "site.json")
            )
            assert site.source.asked["read"] == 0
            await site.step_all()
            assert await site.counts(admitted.manifest_id) == {"queued": 22}
            again = await admit(site, **everything)
            assert (again.manifest_id, again.total, again.total_known) == (admitted.manifest_id, 22, True)

    asyncio.run(play())


def test_names_are_checked_at_admission_and_silence_is_an_empty_list(sqlite_url: str) -> None:
    """[C-027, C-028, C-029, C-030, C-053] nothing is persisted of what is refused."""

    async def play() -> None:
        async with stage(sqlite_url, site_of()) as site:
            for scope, code, place in (
                ({"collections": ["psots"]}, "unsupported_collection", "scope.collections[0]"),
                ({"globals": ["home.json"]}, "unsupported_collection", "scope.globals[0]"),
                (
                    {"collections": ["posts"], "exclude_collections": ["pages", "psots"]},
                    "unsupported_collection",
                    "scope.exclude_collections[1]",
                ),
                ({}, "empty_request", "scope"),
                ({"collections": ["posts"], "locales": []}, "empty_request", "scope.locales"),
                (
                    {"collections": ["posts"], "locales": ["x-"]},
                    "unsupported_locale",
                    "scope.locales[0]",
                ),
                ({"collections": "posts"}, "invalid_request", "scope.collections"),
                ({"collections": [""]}, "invalid_request", "scope.collections[0]"),
                ({"collections": ["posts"], "depth": 3}, "invalid_request", "scope.depth"),
                ({"collections": ["posts"], "drafts": "no"}, "invalid_request", "scope.drafts"),
            ):
                with pytest.raises(CallerError) as refused:
                    await admit(site, **scope)
                assert (refused.value.code, refused.value.place) == (code, place)
            neither_nor_both: tuple[dict[str, Any], ...] = ({"pairs": [], "scope": {}}, {})
            for more in neither_nor_both:
                with pytest.raises(CallerError):
                    await site.admission.admit(CALLER, {"request_id": "r-1", **more})
            excluded = await admit(
                site,
                collections=["posts", "pages"],
                exclude_collections=["posts", "site.json"],
                globals=["site.json"],
            )
            await enumerate_all(site)
            assert await site.database.read(all_pairs, excluded.manifest_id) == sorted(
                expected(site.source.documents, "pages/", "site.json")
            )

    asyncio.run(play())


def test_a_scope_that_yields_nothing_is_completed(database_url: str) -> None:
    """[C-092, M-186] total 0, in the transaction that ends the enumeration."""

    async def play() -> None:
        async with stage(database_url, site_of()) as site:
            scopes: tuple[dict[str, Any], ...] = (
                {"collections": ["posts"], "exclude_collections": ["posts"]},
                {"collections": ["posts"], "locales": ["en"]},
            )
            for number, scope in enumerate(scopes):
                admitted = await admit(site, f"r-{number}", **scope)
                await enumerate_all(site)
                status = await site.views.status("default", admitted.manifest_id)
                assert (status["status"], status["counts"]["total"]) == ("completed", 0)
                assert status["total_known"]

    asyncio.run(play())


NAMED = (*(f"posts/{number:04}.json" for number in range(9)), "pages/0003.json", "0001.json")


@pytest.mark.parametrize(
    ("scope", "deaths_expected", "prefixes"),
    [
        ({"collections": ["posts", "pages"]}, 10, ("posts/", "pages/", "site.json")),
        ({"documents": [*NAMED]}, 7, (*NAMED[:10], "pages/0001.json", "site.json")),
    ],
)
def test_enumeration_killed_after_every_page_leaves_no_gap_and_no_double(
    database_url: str, scope: dict[str, Any], deaths_expected: int, prefixes: tuple[str, ...]
) -> None:
    """[C-035, C-036, C-037, C-046, C-089, M-339] the holder dies after each of its transactions in turn.

    Of named documents the cursor is the place in their list, and the walk goes on there.
    """

    class Died(BaseException):
        pass

    async def play() -> None:
        documents = site_of(9, 4)
        async with stage(database_url, documents, page_size=2) as site:
            admitted = await admit(site, globals=["site.json"], **scope)
            real, deaths, left = site.database.run, 0, 0

            async def run(act: Any, *args: Any) -> Any:
                nonlocal left
                answer = await real(act, *args)
                if act is expanding.record_walk:
                    left -= 1
                    if left < 0:
                        raise Died
                return answer

            site.database.run = run  # type: ignore[assignment]
            for _ in range(20):
                left = 0
                try:
                    await site.enumeration.step()
                except Died:
                    deaths += 1
                await real(leasing.free_gone_owners, [site.keeper.owner])
            site.database.run = real  # type: ignore[method-assign]
            await enumerate_all(site)
            assert deaths == deaths_expected
            wanted = expected(documents, *prefixes)
            assert await site.database.read(all_pairs, admitted.manifest_id) == sorted(wanted)
            assert await site.database.read(intent_count, admitted.manifest_id) == len(wanted)
            assert await site.counts(admitted.manifest_id) == {"preparing": len(wanted)}
            assert site.source.asked["exists"] <= deaths + 8, "what was met is not asked for again"

    asyncio.run(play())


def test_ten_enumerators_at_once_create_each_intent_once(database_url: str) -> None:
    """[C-017, C-018, C-020, C-094] one walks, nine leave without a trace, and nothing is queued for them."""

    async def play() -> None:
        documents = site_of(120, 0)
        async with stage(database_url, documents, page_size=10) as site:
            admitted = await admit(site, collections=["posts"])
            crowd = [
                Enumeration(
                    site.database,
                    Keeper(site.database, site.clock, f"host/boot/{number}/1"),
                    site.clock,
                    SystemChance(),
                    InlineOffload(),
                    lambda _: site.source,
                    page_size=10,
                )
                for number in range(10)
            ]
            answers = await asyncio.gather(*(one.step() for one in crowd))
            assert sorted(answers)[:9] == [0] * 9
            assert max(answers) == 240
            assert site.source.asked["list"] == 13
            assert await site.database.read(all_pairs, admitted.manifest_id) == sorted(
                expected(documents, "posts/")
            )

    asyncio.run(play())


def test_a_stale_enumerator_writes_nothing(database_url: str) -> None:
    """[C-021, C-015] the fence, not luck, keeps two cursors from overwriting each other."""

    async def play() -> None:
        async with stage(database_url, site_of()) as site:
            admitted = await admit(site, collections=["posts"])
            mine = await site.database.run(expanding.claim_enumerating_manifest, "host/boot/9/9")
            assert mine is not None
            await site.database.run(leasing.free_gone_owners, ["host/boot/9/9"])
            await enumerate_all(site)
            for act, args in (
                (expanding.record_walk, ([Met("posts/x.json", "de")], Place("collections"))),
                (expanding.record_listing_failure, ("posts", "source_unavailable", "", Place("done"), 0.5)),
                (sampling.store_sample, ((),)),
                (sampling.settle_sample, (100,)),
            ):
                with pytest.raises(LeaseLost):
                    await site.database.run(act, admitted.manifest_id, mine.fence, *args)
            assert await site.database.read(intent_count, admitted.manifest_id) == 14

    asyncio.run(play())


def test_who_finds_a_manifest_held_says_how_old_the_lease_is_where_somebody_listens(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """[C-023] at debug only, of others only, once the work is due; and nothing is asked for a deaf log."""

    async def look(site: Stage, level: int) -> list[dict[str, Any]]:
        caplog.clear()
        with caplog.at_level(level):
            assert await site.enumeration.step() == 0
        return [one.msg for one in caplog.records if "enumeration.lease_held" in str(one.msg)]  # type: ignore[misc]

    async def play() -> None:
        async with stage(database_url, site_of()) as site:
            admitted = await admit(site, collections=["posts"])
            assert await site.database.run(expanding.claim_enumerating_manifest, "host/boot/9/9")
            await site.database.run(age_lease, admitted.manifest_id, 20)
            [said] = await look(site, logging.DEBUG)
            assert said["manifest"] == admitted.manifest_id
            assert 20 <= said["seconds"] < 30
            assert await look(site, logging.INFO) == []
            await site.database.run(leasing.free_gone_owners, ["host/boot/9/9"])
            await enumerate_all(site)
            assert await look(site, logging.DEBUG) == []

    asyncio.run(play())


def test_the_lease_ends_at_its_second_and_a_free_one_never_blocks(database_url: str) -> None:
    """[C-016, C-019, C-020] sixty seconds."""

    async def play() -> None:
        async with stage(database_url, site_of()) as site:
            await admit(site, collections=["posts"])
            before = site.database.now()
            mine = await site.database.run(expanding.claim_enumerating_manifest, "host/boot/9/9")
            assert mine is not None
            assert 59_000_000 <= mine.lease_expires_at - before <= 62_000_000
            assert await site.database.run(expanding.claim_enumerating_manifest, "host/boot/8/8") is None

    asyncio.run(play())


def test_named_documents_replace_paging_and_unreadable_ones_are_failed_intents(database_url: str) -> None:
    """[C-045, C-047, C-048, C-049, C-050, C-055, C-056, C-074] bare ids are tried in every collection."""

    async def play() -> None:
        documents = site_of(5, 2)
        async with stage(database_url, documents, page_size=2) as site:
            named = ["posts/0003.json", "posts/gone.json", "0001.json", "nowhere.json"]
            admitted = await admit(
                site, documents=named, collections=["posts", "pages"], globals=["site.json"]
            )
            del site.source.documents["site.json"]
            await enumerate_all(site)
            states = await site.database.read(states_of, admitted.manifest_id)
            failed = {ref for (ref, _), (state, _) in states.items() if state == "failed"}
            assert failed == {"posts/gone.json", "nowhere.json", "site.json"}
            assert {ref for ref, _ in states} - failed == {
                "posts/0003.json", "posts/0001.json", "pages/0001.json",
            }  # fmt: skip
            assert len(states) == 12
            page = await site.views.failures("default", admitted.manifest_id)
            assert {(item["code"], item["retryable"]) for item in page["items"]} == {
                ("document_not_found", False)
            }
            assert site.source.asked["list"] == 0
            await site.step_all()
            assert await site.counts(admitted.manifest_id) == {"queued": 6, "failed": 6}

    asyncio.run(play())


def test_a_document_that_comes_while_the_walk_ends_is_met(sqlite_url: str) -> None:
    """[C-042] the last page is read again, and what it repeats makes nothing twice."""

    async def play() -> None:
        async with stage(sqlite_url, site_of(3, 0), page_size=10) as site:
            admitted = await admit(site, collections=["posts"])
            listing, calls = site.source.list, 0

            def grown(*asked: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == 2:
                    site.source.documents["posts/0999.json"] = catalogue(text="Late")
                return listing(*asked)

            site.source.list = grown  # type: ignore[assignment]
            await enumerate_all(site)
            assert await site.database.read(intent_count, admitted.manifest_id) == 8

    asyncio.run(play())


def test_a_listing_that_fails_keeps_the_cursor_and_is_tried_again(database_url: str) -> None:
    """[C-032, C-071] then, after five failures, its collection is a gap, and a retry walks it again."""

    async def play() -> None:
        documents = site_of(4, 2)
        async with stage(database_url, documents, page_size=2) as site:
            admitted = await admit(site, collections=["posts", "pages"])
            site.source.trouble = [SourceError("gone for a moment")]
            await enumerate_all(site)
            row = await site.database.read(manifest_row, admitted.manifest_id)
            assert (row.attempt_count, row.lease_owner, row.error_code) == (1, None, "source_unavailable")
            assert row.next_attempt_at - site.database.now() > 25_000_000
            assert await site.enumeration.step() == 0
            site.source.trouble = [SourceError("gone"), SourceError("gone"), SourceError("gone")]
            site.source.trouble.append(RuntimeError("a defect of the source"))
            for _ in range(4):
                await site.database.run(make_listings_due)
                await enumerate_all(site)
            status = await site.views.status("default", admitted.manifest_id)
            assert [gap["collection"] for gap in status["enumeration"]["unavailable"]] == ["posts"]
            assert (status["total_known"], status["counts"]["total"]) == (True, 4)
            await site.step_all()
            [body] = site.engine.submissions()
            await site.deliver(event(body, "job-1"))
            status = await site.views.status("default", admitted.manifest_id)
            assert (status["status"], status["counts"]["failed"]) == ("failed", 0)
            await site.steering.retry("default", admitted.manifest_id, CALLER.actor, None)
            assert (await site.views.status("default", admitted.manifest_id))["status"] == "preparing"
            await enumerate_all(site)
            status = await site.views.status("default", admitted.manifest_id)
            assert status["enumeration"]["unavailable"] == []
            assert await site.database.read(all_pairs, admitted.manifest_id) == sorted(
                expected(documents, "posts/", "pages/")
            )

    asyncio.run(play())


def test_a_collection_that_vanished_is_a_gap_at_once(sqlite_url: str) -> None:
    """[C-030] and the walk goes on."""

    async def play() -> None:
        async with stage(sqlite_url, site_of(4, 2)) as site:
            admitted = await admit(site, collections=["posts", "pages"])
            site.source.trouble = [CallerError("no collection posts", "unsupported_collection")]
            await enumerate_all(site)
            status = await site.views.status("default", admitted.manifest_id)
            assert [gap["code"] for gap in status["enumeration"]["unavailable"]] == ["unsupported_collection"]
            assert status["counts"]["total"] == 4

    asyncio.run(play())


def test_pause_and_cancel_stop_the_walk(database_url: str) -> None:
    """[C-012, C-013, C-014] in the middle of a step; a cancel fixes the total with what exists."""

    async def play() -> None:
        documents = site_of(8, 0)
        async with stage(database_url, documents, page_size=2) as site:
            admitted = await admit(site, collections=["posts"])
            listing, calls = site.source.list, 0

            def seen(*asked: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == 3:
                    raise_flag.set()
                return listing(*asked)

            raise_flag = asyncio.Event()
            site.source.list = seen  # type: ignore[assignment]
            real = site.database.run

            async def run(act: Any, *args: Any) -> Any:
                if act is expanding.record_walk and raise_flag.is_set():
                    raise_flag.clear()
                    await site.steering.pause("default", admitted.manifest_id, CALLER.actor)
                return await real(act, *args)

            site.database.run = run  # type: ignore[assignment]
            with pytest.raises(LeaseLost):  # whoever decides takes the manifest from whom walks it
                await enumerate_all(site)
            assert await site.database.read(intent_count, admitted.manifest_id) == 8
            row = await site.database.read(manifest_row, admitted.manifest_id)
            assert (row.phase, row.lease_owner) == ("enumerating", None)
            await site.steering.resume("default", admitted.manifest_id, CALLER.actor)
            mine = await real(expanding.claim_enumerating_manifest, "host/boot/9/9")
            assert mine is not None
            await site.steering.cancel("default", admitted.manifest_id, CALLER.actor)
            with pytest.raises(LeaseLost):
                await real(expanding.record_walk, mine.id, mine.fence, [Met("posts/x.json", "de")], Place())
            await site.step_all()
            status = await site.views.status("default", admitted.manifest_id)
            assert (status["total_known"], status["counts"]["total"]) == (True, 8)
            assert status["counts"]["skipped"] == 8

    asyncio.run(play())


def test_a_cursor_survives_writing_and_reading() -> None:
    """[C-032] with its version; another one is refused and not guessed at."""
    place = Place("collections", 3, "k\u00e4se", True, 5, ("posts",), (1, 2))
    assert Place.parse(place.text) == place
    assert Place.parse(None) == Place()
    with pytest.raises(ValueError, match="another release"):
        Place.parse(json.dumps({**json.loads(place.text), "v": 2}))


@pytest.mark.parametrize(("seconds", "pages"), [(12.5, 1), (12.4, 2), (30.0, 0)])
def test_a_step_ends_when_its_seconds_are_over_and_hands_on(
    sqlite_url: str, seconds: float, pages: int
) -> None:
    """[C-004, C-008, C-009, C-038, C-039, C-093] at 25 seconds, not after them; the lease goes with it."""

    async def play() -> None:
        async with stage(sqlite_url, site_of(9, 0), page_size=2) as site:
            admitted = await admit(site, collections=["posts"])
            hurried = Enumeration(
                site.database, site.keeper, SlowClock(seconds), SystemChance(), InlineOffload(),
                lambda _: site.source, page_size=2,
            )  # fmt: skip
            assert await hurried.step() == max(1, pages * 4)
            row = await site.database.read(manifest_row, admitted.manifest_id)
            assert (row.phase, row.lease_owner, bool(row.total_known)) == ("enumerating", None, False)
            assert row.total == pages * 4
            await enumerate_all(site)
            assert await site.database.read(intent_count, admitted.manifest_id) == 18

    asyncio.run(play())


def test_a_hundred_locales_make_no_transaction_of_more_than_a_hundred_intents(sqlite_url: str) -> None:
    """[C-005, C-060] the cursor moves with the last of a page; a death between them makes nothing twice."""

    class Died(BaseException):
        pass

    async def play() -> None:
        async with stage(sqlite_url, site_of(7, 0), page_size=7) as site:
            locales = [f"de-{region}" for region in ("AT", "CH", "DE", "LI", "LU")]
            locales += [f"{language}-{region}" for language in ("fr", "es", "it", "pt", "nl", "sv")
                        for region in ("BE", "CH", "LU", "CA", "US", "MX")]  # fmt: skip
            admitted = await admit(site, collections=["posts"], locales=locales)
            real, sizes = site.database.run, []

            async def run(act: Any, *args: Any) -> Any:
                answer = await real(act, *args)
                if act is expanding.record_walk:
                    sizes.append(answer)
                    if len(sizes) == 2:
                        raise Died
                return answer

            site.database.run = run  # type: ignore[assignment]
            with pytest.raises(Died):
                await site.enumeration.step()
            await real(leasing.free_gone_owners, [site.keeper.owner])
            await enumerate_all(site)
            assert max(sizes) == 100
            pairs = await site.database.read(all_pairs, admitted.manifest_id)
            assert len(pairs) == len(set(pairs)) == 7 * len(locales)

    asyncio.run(play())
