"""Postings packed in rows: what is put in is found by its gram, in its band of lengths, and in no other."""

from __future__ import annotations

import asyncio
import random

import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content import likeness, sameness
from dragoman.kernel.limits import FUZZY_CANDIDATES, GRAM_BUCKETS, GRAM_TEXTS, LIKE_CHARS_MAX
from dragoman.model.memories import Place, Query, Remembered, Segment
from dragoman.model.scopes import Workspace
from dragoman.store import postings
from dragoman.store.acts import remembering
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx
from tests.doubles.databases import opened

HOME, PLACE = Workspace("home"), Place("docs", "en", "fr")
GRAMS = st.integers(0, 2**32 - 1)
TEXTS = st.dictionaries(
    st.integers(0, 2**40 - 1),
    st.tuples(st.integers(0, LIKE_CHARS_MAX), st.lists(GRAMS, min_size=1, max_size=5, unique=True)),
    min_size=1,
    max_size=20,
)


def _segment(number: int, chars: int, *grams: int) -> Segment:
    return Segment(number, f"{number:064x}", "x" * chars, grams)


def _rows(*pages: list[Segment]) -> dict[int, list[bytes]]:
    """The rows of one run, into which pages were put one after the other."""
    rows: dict[int, bytes] = {}
    for page in pages:
        for bucket, new in postings.spread(page).items():
            rows[bucket] = postings.merged(rows.get(bucket, b""), new)
    return {bucket: [packed] for bucket, packed in rows.items()}


@given(texts=TEXTS, cut=st.integers(0, 20), band=st.tuples(st.integers(0, 5000), st.integers(0, 5000)))
def test_a_gram_finds_the_texts_that_hold_it_and_are_as_long_as_asked(
    texts: dict[int, tuple[int, list[int]]], cut: int, band: tuple[int, int]
) -> None:
    """Whatever page they came in with. (Grams that share tag and bucket are one: none of these do.)"""
    segments = [_segment(number, chars, *grams) for number, (chars, grams) in texts.items()]
    rows = _rows(segments[:cut], segments[cut:])
    shortest, longest = min(band), max(band)
    for gram in {gram for one in segments for gram in one.grams}:
        held = {
            one.segment
            for one in segments
            if shortest <= len(one.source) <= longest
            and any((gram ^ other) % (GRAM_BUCKETS << 12) == 0 for other in one.grams)
        }
        assert set(postings.candidates(Query(0, (gram,), shortest, longest), rows)) == held


def test_what_shares_most_comes_first_and_the_rest_is_left_out() -> None:
    """Of two grams the one that fewer texts hold counts more."""
    texts = [
        _segment(0, 40, 1, 2, 3),
        *[_segment(number, 40, 1, 2) for number in range(1, FUZZY_CANDIDATES)],
        *[_segment(number, 40, 1) for number in range(1000, 1100)],
        _segment(2000, 40, 3),
    ]
    found = postings.candidates(Query(0, (1, 2, 3), 24, 67), _rows(texts))
    assert found[:2] == [0, 2000]
    assert set(found[2:]) < set(range(1, FUZZY_CANDIDATES))
    assert len(found) == FUZZY_CANDIDATES


def test_a_row_takes_so_many_texts_for_a_gram_and_its_neighbours_stay() -> None:
    """Law 12: what nearly every text holds makes no row grow without bound."""
    frequent, rare = 7, 7 + 5 * GRAM_BUCKETS
    pages = [
        [_segment(1000 * page + number, 50, frequent) for number in range(GRAM_TEXTS)] for page in range(3)
    ]
    rows = _rows(*pages, [_segment(999_999, 50, frequent, rare)])
    assert len(rows[frequent][0]) // 8 == GRAM_TEXTS + 1
    assert postings.candidates(Query(0, (rare,), 0, 99), rows) == [999_999]


def test_the_sample_of_grams_survives_edits_elsewhere_in_a_text() -> None:
    """Runs of seven characters that two texts share, and of four where a character is a word, are found by;
    short texts have a gram, too."""
    before = likeness.grams("Move the selected files to the folder")
    after = likeness.grams("Never move a chosen file to the folder")
    assert set(before) & set(after)
    assert set(likeness.grams("選択したファイルを移動します")) & set(likeness.grams("全ファイルを削除"))
    assert not set(likeness.grams("選択")) & set(likeness.grams("全削除"))
    assert all(likeness.grams(text) for text in ("", "a", "é", "語", "\U0001f600"))


def test_two_who_index_at_once_lose_no_text(database_url: str) -> None:
    """Both put postings into the same rows, and some of their texts are the same."""
    words = [f"{word}ing" for word in ("mov", "copy", "open", "clos", "writ", "read", "delet", "renam")]
    chance = random.Random(3)
    texts = [f"When {' and '.join(chance.sample(words, 4))} the file number {n}" for n in range(240)]
    given = [
        Remembered(sameness.source_hash(text), "0" * 64, text, text, "none", "imported") for text in texts
    ]

    async def story() -> None:
        async with opened(database_url) as database, opened(database_url) as other:
            await database.run(remembering.take_in, HOME, PLACE, given)
            fresh = await database.read(remembering.unindexed, HOME, PLACE.shelf, len(texts))
            segments = likeness.segments(fresh)
            await asyncio.gather(
                *[
                    one.run(remembering.index_texts, HOME, PLACE.shelf, segments[start : start + 60])
                    for start in range(0, 200, 20)
                    for one in (database, other)
                ]
            )
            asked = [
                Query(n, tuple(likeness.asked_grams(text)), *likeness.band(len(text)))
                for n, text in enumerate(texts)
            ]
            found = await other.read(remembering.look_alike, HOME, PLACE.shelf, asked)
            assert all(texts[n] in found[n].values() for n in range(len(texts)))
            assert await database.read(remembering.unindexed, HOME, PLACE.shelf, 1) == []
            [shelf] = await database.read(_all, tables.memory_shelves)
            assert shelf.texts == len(await database.read(_all, tables.memory_segments)) == len(texts)

    asyncio.run(story())


def _all(tx: Tx, table: sa.Table) -> list[Row]:
    return tx.all(sa.select(table))
