"""Look-ups of the memory, by key and by gram, and those of terms, walk an index and read no table whole."""

from __future__ import annotations

import asyncio
import io

from dragoman.content import likeness, sameness
from dragoman.flow.library.memories import Memories
from dragoman.kernel.limits import INDEX_PAGE
from dragoman.kernel.offload import InlineOffload
from dragoman.model.memories import Place, Query, Remembered, Term
from dragoman.model.scopes import Workspace
from dragoman.store.acts import remembering
from dragoman.store.schema import engine as tables
from tests.doubles.databases import opened
from tests.doubles.plans import Plan, analyze, plans_of

_NOW = 1_800_000_000_000_000
_HOME = Workspace("w3")


def _filled(url: str) -> None:
    async def story() -> None:
        async with opened(url) as database:
            for number in range(5):
                scope, place = Workspace(f"w{number}"), Place("docs", "en", "fr")
                texts = [f"The text that has number {n} in workspace {number}" for n in range(300)]
                given = [
                    Remembered(sameness.source_hash(text), "0" * 64, text, text, "none", "imported")
                    for text in texts
                ]
                await database.run(remembering.take_in, scope, place, given)
                fresh = await database.read(remembering.unindexed, scope, place.shelf, 300)
                segments = likeness.segments(fresh)
                await database.run(remembering.index_texts, scope, place.shelf, segments)
                terms = [Term(f"term {n}", f"terme {n}", "fr") for n in range(100)]
                await database.run(remembering.put_terms, scope, place.shelf, terms)

    asyncio.run(story())
    for name in ("memory", "memory_fresh", "memory_shelves", "memory_segments", "memory_grams", "terms"):
        analyze(url, getattr(tables, name))


def test_every_look_up_finds_its_rows_by_an_index(database_url: str) -> None:
    """J-051: workspace and project come first in each of them."""
    _filled(database_url)
    place = Place("docs", "en", "fr")
    text = "The text that has number 7 in workspace 3"
    query = Query(0, tuple(likeness.asked_grams(text)), *likeness.band(len(text)))
    looks = (
        (remembering.recall, place, [sameness.source_hash(text)]),
        (remembering.look_alike, place.shelf, [query]),
        (remembering.unindexed, place.shelf, 10),
        (remembering.memory_page, place, ("5", ""), 10),
        (remembering.library, place.shelf, ["fr"]),
        (remembering.terms_page, place, "5", 10),
        (remembering.stats, "docs"),
    )
    for look, *asked in looks:
        for plan in plans_of(database_url, _NOW, look, _HOME, *asked):
            assert not _reads_a_table_whole(plan), (look.__name__, plan)


def _reads_a_table_whole(plan: Plan) -> bool:
    """What a part of a union gave is read whole, and is no table."""
    tables_read = [line for line in plan.text.splitlines() if "memory" in line or "terms" in line]
    return plan.scans and any(
        (line.strip().startswith("SCAN") and "INDEX" not in line) or "type=ALL" in line or "Seq Scan" in line
        for line in tables_read
    )


def test_a_search_finds_the_text_that_is_like_it(database_url: str) -> None:
    """The planner's way gives the right rows as well, on each database."""
    _filled(database_url)
    text = "The text that has nomber 7 in workspace 3"
    query = Query(0, tuple(likeness.asked_grams(text)), *likeness.band(len(text)))

    async def story() -> None:
        async with opened(database_url) as database:
            place = Place("docs", "en", "fr")
            found = await database.read(remembering.look_alike, _HOME, place.shelf, [query])
            [best] = likeness.closest(text, found[0], 1)
            assert found[0][best.key] == "The text that has number 7 in workspace 3"
            elsewhere = await database.read(remembering.look_alike, Workspace("w9"), place.shelf, [query])
            assert elsewhere == {0: {}}

    asyncio.run(story())


def test_after_an_import_a_page_of_look_ups_reads_its_own_rows_alone(database_url: str) -> None:
    """At once, and where nobody ever counts the tables: PostgreSQL took the whole locale pair for one row."""
    place = Place("docs", "en", "fr")
    units = "".join(f"Text number {number},Texte {number}\n" for number in range(INDEX_PAGE))

    async def story() -> None:
        async with opened(database_url) as database:
            memories = Memories(database, InlineOffload())
            file = io.BytesIO(f"source,target\n{units}".encode())
            assert (await memories.take_in(_HOME, place, file, "csv")).kept == INDEX_PAGE

    asyncio.run(story())
    hashes = [sameness.source_hash(f"Text number {number}") for number in range(50)]
    [plan] = plans_of(database_url, _NOW, remembering.recall, _HOME, place, hashes)
    assert not _reads_a_table_whole(plan)
    if database_url.startswith("postgresql"):
        condition = next(line for line in plan.text.splitlines() if "Index Cond" in line)
        assert "source_hash" in condition, plan.text
