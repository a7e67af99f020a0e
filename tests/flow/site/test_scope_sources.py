"""What a scope asks of its source, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.content import selection
from dragoman.kernel.errors import SourceError
from dragoman.model.contracts import Format
from dragoman.model.walks import Listing
from tests.flow.site.rows import all_pairs, intent_count, intents_of, make_listings_due
from tests.flow.site.scoped import admit, enumerate_all, site_of
from tests.flow.site.stage import catalogue, stage


def test_rights_are_asked_in_pages_before_anything_is_read(database_url: str) -> None:
    """[M-307] for a scope at preparation; who lost the right fails with `authorization_revoked`, unread."""

    async def play() -> None:
        async with stage(database_url, site_of(6, 0)) as site:
            admitted = await admit(site, collections=["posts"])
            await enumerate_all(site)
            site.source.asked.clear()
            site.source.foreign = {"posts/0002.json"}
            await site.step_all()
            assert site.source.asked["can_edit"] == 1
            assert site.source.asked["read"] == 5
            failures = await site.views.failures("default", admitted.manifest_id)
            assert {(item["document"], item["code"]) for item in failures["items"]} == {
                ("posts/0002.json", "authorization_revoked")
            }

    asyncio.run(play())


def test_a_source_that_does_not_answer_is_named_at_admission(sqlite_url: str) -> None:
    """[M-108] nothing is persisted."""

    async def play() -> None:
        async with stage(sqlite_url, site_of()) as site:

            def silent() -> Any:
                raise SourceError("no answer")

            site.source.contents = silent  # type: ignore[method-assign]
            with pytest.raises(SourceError):
                await admit(site, collections=["posts"])
            assert await site.enumeration.step() == 0

    asyncio.run(play())


def test_drafts_are_in_unless_the_scope_says_otherwise(sqlite_url: str) -> None:
    """[C-041]"""

    async def play() -> None:
        documents = {"posts/draft.json": catalogue(a="A"), "posts/public.json": catalogue(b="B")}
        async with stage(sqlite_url, documents) as site:
            whole = await admit(site, "r-1", collections=["posts"])
            public = await admit(site, "r-2", collections=["posts"], drafts=False)
            await enumerate_all(site)
            assert await site.database.read(intent_count, whole.manifest_id) == 4
            assert await site.database.read(all_pairs, public.manifest_id) == [
                ("posts/public.json", "de"),
                ("posts/public.json", "fr"),
            ]

    asyncio.run(play())


def test_a_source_that_gives_the_same_cursor_again_is_not_walked_for_ever(sqlite_url: str) -> None:
    """[C-042] that counts as an answer that cannot be used; after five its collection is a gap."""

    async def play() -> None:
        async with stage(sqlite_url, site_of(3, 1)) as site:
            admitted = await admit(site, collections=["posts", "pages"])
            listing = site.source.list

            def stuck(collection: str, cursor: str, limit: int, drafts: bool) -> Listing:
                page = listing(collection, "", limit, drafts)
                return page._replace(next="the same") if collection == "posts" else page

            site.source.list = stuck  # type: ignore[method-assign]
            for _ in range(6):
                await site.enumeration.step()
                await site.database.run(make_listings_due)
            assert site.source.asked["list"] <= 6 + 3
            status = await site.views.status("default", admitted.manifest_id)
            [gap] = status["enumeration"]["unavailable"]
            assert (gap["collection"], gap["code"]) == ("posts", "source_unavailable")
            assert status["counts"]["total"] == 2 * 4

    asyncio.run(play())


def test_a_page_has_a_hundred_documents(sqlite_url: str) -> None:
    """[C-005]"""

    async def play() -> None:
        async with stage(sqlite_url, site_of(250, 0), page_size=0) as site:
            await admit(site, collections=["posts"], locales=["de"])
            listing, limits = site.source.list, []

            def seen(collection: str, cursor: str, limit: int, drafts: bool) -> Listing:
                limits.append(limit)
                return listing(collection, cursor, limit, drafts)

            site.source.list = seen  # type: ignore[method-assign]
            await enumerate_all(site)
            assert limits == [100] * 4, "three pages, of which the last is read again"

    asyncio.run(play())


def test_only_failures_in_a_row_give_a_collection_up(sqlite_url: str) -> None:
    """[C-071] four, a page, and four again: the walk has lost nothing but time."""

    async def play() -> None:
        async with stage(sqlite_url, site_of(4, 0), page_size=2) as site:
            admitted = await admit(site, collections=["posts"])
            listing, calls = site.source.list, 0

            def shaky(*asked: Any) -> Listing:
                nonlocal calls
                calls += 1
                if calls % 5:
                    raise SourceError("gone for a moment")
                return listing(*asked)

            site.source.list = shaky  # type: ignore[assignment]
            while await site.enumeration.step():
                await site.database.run(make_listings_due)
            status = await site.views.status("default", admitted.manifest_id)
            assert (calls, status["enumeration"]["unavailable"]) == (15, [])
            assert status["counts"]["total"] == 8

    asyncio.run(play())


def test_documents_without_an_id_are_ignored_and_counted(sqlite_url: str) -> None:
    """[C-043, C-102]"""

    async def play() -> None:
        async with stage(sqlite_url, site_of(5, 0), page_size=2) as site:
            site.source.nameless = 1
            admitted = await admit(site, collections=["posts"])
            await enumerate_all(site)
            status = await site.views.status("default", admitted.manifest_id)
            assert status["enumeration"]["ignored_without_id"] == 3
            assert status["counts"]["total"] == 10

    asyncio.run(play())


def test_what_selects_fields_is_reckoned_once_a_collection_and_stands_on_each_intent(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[C-031, C-062, C-064] once a step, whatever documents and locales it has."""
    asked: list[str] = []
    real = selection.rule_of

    def counted(form: Format, collection: str) -> str:
        asked.append(collection)
        return real(form, collection)

    monkeypatch.setattr(selection, "rule_of", counted)

    async def play() -> None:
        async with stage(database_url, site_of(6, 3)) as site:
            admitted = await admit(site, collections=["posts", "pages"])
            await enumerate_all(site)
            assert await site.preparing.step() == 18
            assert sorted(asked) == ["pages", "posts"]
            rows = await site.database.read(intents_of, admitted.manifest_id)
            rules = {row.document.partition("/")[0]: set[str]() for row in rows}
            for row in rows:
                rules[row.document.partition("/")[0]].add(row.selection_fingerprint)
                assert (row.generation, row.attempt_count, row.generation_attempt_count) == (1, 0, 0)
            assert {name: len(found) for name, found in rules.items()} == {"posts": 1, "pages": 1}
            assert rules["posts"] != rules["pages"]

    asyncio.run(play())
