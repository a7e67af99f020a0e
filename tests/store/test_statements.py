"""Values go in and rows come out alike on three databases."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from dragoman.kernel.errors import StoreError
from dragoman.kernel.limits import IN_LIST_MAX
from dragoman.store.sessions import several
from dragoman.store.statements import Compilations, Prepared
from dragoman.store.transaction import Row, Tx
from tests.store.shelf import BOOKS, PLACES, book, shelved, titles

_BY_TITLES = sa.select(BOOKS.c.title).where(BOOKS.c.title.in_(sa.bindparam("wanted", expanding=True)))
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)


def write(tx: Tx, rows: list[dict[str, Any]]) -> None:
    tx.insert(BOOKS, rows)


def everything(tx: Tx) -> list[Row]:
    return tx.all(sa.select(BOOKS).order_by(BOOKS.c.id))


def clear(tx: Tx) -> int:
    return tx.touched(sa.delete(BOOKS))


def test_whatever_goes_in_comes_out(database_url: str) -> None:
    """By ones (INSERT) and by the hundred (COPY on PostgreSQL), with every kind of column."""

    async def story(texts: list[str], covers: list[bytes]) -> None:
        for count in (1, 25):
            rows = [
                book(n, text=text, cover=cover, lent=n % 2 == 0, due_at=None if n % 3 else -n)
                for n, (text, cover) in enumerate(list(zip(texts, covers, strict=True)) * count)
            ]
            await database.run(clear)
            await database.run(write, rows)
            found = await database.read(everything)
            keys = ("text", "cover", "lent", "due_at")
            assert [[getattr(row, key) for key in keys] for row in found] == [
                [row[key] for key in keys] for row in rows
            ]

    with asyncio.Runner() as runner:
        opening = shelved(database_url)
        database = runner.run(opening.__aenter__())

        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(st.tuples(_TEXT, st.binary(max_size=60)), min_size=1, max_size=4))
        def check(pairs: list[tuple[str, bytes]]) -> None:
            runner.run(story([text for text, _ in pairs], [cover for _, cover in pairs]))

        try:
            check()
        finally:
            runner.run(opening.__aexit__(None, None, None))


def test_text_and_bytes_may_be_larger_than_64_kib(database_url: str) -> None:
    async def story() -> Row:
        async with shelved(database_url) as database:
            await database.run(write, [book(1, text="é" * 500_000, cover=b"\xff" * 3_000_000)])
            return (await database.read(everything))[0]

    row = asyncio.run(story())
    assert (len(row.text), len(row.cover)) == (500_000, 3_000_000)


def test_text_compares_byte_by_byte_with_case_accents_and_trailing_spaces(database_url: str) -> None:
    names = ["a", "A", "á", "a ", "Z", "ß", "ss", "😀", "ﬀ"]

    async def story() -> list[str]:
        async with shelved(database_url) as database:
            await database.run(write, [{**book(n), "title": name} for n, name in enumerate(names)])
            return await database.read(titles)

    assert asyncio.run(story()) == sorted(names, key=lambda name: name.encode())


@given(st.integers(min_value=0, max_value=70))
def test_lists_of_any_length_find_exactly_their_members(length: int) -> None:
    compilations = Compilations(SQLiteDialect_pysqlite(dbapi=sqlite3))
    wanted = [f"t{n}" for n in range(length)]
    bound, _ = compilations.bound(_BY_TITLES, {"wanted": wanted})
    assert set(bound.parameters) == set(wanted)
    assert bound.sql.count("?") == (0 if length == 0 else 1 << (length - 1).bit_length())


def test_a_list_too_long_for_one_statement_is_refused_with_the_number_that_fits(sqlite_url: str) -> None:
    def ask(tx: Tx) -> list[Row]:
        return tx.all(_BY_TITLES, {"wanted": ["x"] * (IN_LIST_MAX + 1)})

    async def story() -> None:
        async with shelved(sqlite_url) as database:
            with pytest.raises(ValueError, match=f"pages of {IN_LIST_MAX}"):
                await database.read(ask)

    asyncio.run(story())


def test_lists_and_pairs_of_columns_select_their_rows(database_url: str) -> None:
    def fill(tx: Tx) -> None:
        tx.insert(PLACES, [{"room": room, "number": n, "due_at": 0} for room in "ab" for n in range(5)])

    def ask(tx: Tx, pairs: list[tuple[str, int]]) -> list[tuple[str, int]]:
        rows = tx.all(
            sa.select(PLACES.c.room, PLACES.c.number)
            .where(sa.tuple_(PLACES.c.room, PLACES.c.number).in_(pairs))
            .order_by(PLACES.c.room, PLACES.c.number)
        )
        return [(row.room, row.number) for row in rows]

    async def story() -> None:
        async with shelved(database_url) as database:
            await database.run(fill)
            for pairs in ([], [("a", 1)], [("a", 1), ("b", 4), ("b", 0)], [("c", 9)]):
                assert await database.read(ask, pairs) == sorted(set(pairs) - {("c", 9)})

    asyncio.run(story())


def test_sums_and_counts_are_whole_numbers(database_url: str) -> None:
    def sums(tx: Tx) -> Row | None:
        return tx.first(
            sa.select(
                sa.func.sum(BOOKS.c.copies).label("total"),
                sa.func.count().label("number"),
                sa.func.max(BOOKS.c.due_at).label("latest"),
                sa.func.sum(sa.case((BOOKS.c.lent == True, 1), else_=0)).label("out"),  # noqa: E712 - a column
            )
        )

    async def story() -> Row | None:
        async with shelved(database_url) as database:
            await database.run(write, [book(1, copies=2**40, lent=True), book(2, copies=1, lent=False)])
            return await database.read(sums)

    row = asyncio.run(story())
    assert row is not None
    assert tuple(row) == (2**40 + 1, 2, None, 1)
    assert [type(value) for value in row] == [int, int, type(None), int]


def test_insert_new_passes_over_its_own_key_only_and_counts_what_was_new(database_url: str) -> None:
    def offer(tx: Tx, *rows: dict[str, Any]) -> int:
        return tx.insert_new(BOOKS, rows, ["id"])

    async def story() -> None:
        async with shelved(database_url) as database:
            assert await database.run(offer, book(1), book(2)) == 2
            assert await database.run(offer, book(2), book(3), book(1), book(3)) == 1
            with pytest.raises(StoreError, match="title"):
                await database.run(offer, book(9, title="book 001"))
            assert len(await database.read(titles)) == 3

    asyncio.run(story())


def test_two_who_insert_the_same_new_key_count_it_once_together(database_url: str) -> None:
    def offer(tx: Tx, first: int) -> int:
        places = [{"room": "a", "number": number, "due_at": 0} for number in range(first, first + 40)]
        return tx.insert_new(PLACES, places, ["room", "number"])

    async def story() -> int:
        async with shelved(database_url) as database:
            return sum(await asyncio.gather(*[database.run(offer, first) for first in (0, 20, 10, 30)]))

    assert asyncio.run(story()) == 70


def test_upsert_inserts_or_gives_the_named_columns_their_new_values(database_url: str) -> None:
    def put(tx: Tx, copies: int, text: str) -> None:
        tx.upsert(BOOKS, book(1, copies=copies, text=text), ["id"], ["copies"])

    async def story() -> Row:
        async with shelved(database_url) as database:
            await database.run(put, 1, "first")
            await database.run(put, 2, "second")
            (row,) = await database.read(everything)
            return row

    row = asyncio.run(story())
    assert (row.copies, row.text) == (2, "first")


def test_touched_counts_rows_that_matched_even_where_nothing_changed(database_url: str) -> None:
    def same(tx: Tx) -> int:
        return tx.touched(sa.update(BOOKS).values(copies=0))

    async def story() -> int:
        async with shelved(database_url) as database:
            await database.run(write, [book(1), book(2)])
            return await database.run(same)

    assert asyncio.run(story()) == 2


def test_update_changes_the_rows_that_are_as_asked_and_counts_them(database_url: str) -> None:
    def lend(tx: Tx, ids: list[str], copies: int) -> int:
        return tx.update(BOOKS, {"id": ids, "copies": copies}, {"lent": True, "due_at": tx.now, "text": None})

    async def story() -> tuple[int, list[Row]]:
        async with shelved(database_url) as database:
            await database.run(write, [book(n, copies=n % 2, text="here") for n in range(4)])
            ids = [row.id for row in await database.read(everything)]
            return await database.run(lend, ids[:3], 1), await database.read(everything)

    count, rows = asyncio.run(story())
    assert count == sum(row.copies for row in rows[:3])
    assert [row.lent for row in rows] == [row.copies == 1 and row.id != rows[3].id for row in rows]
    assert all((row.due_at is None) == (not row.lent) == (row.text == "here") for row in rows)


def test_update_refuses_to_look_for_rows_that_equal_null(sqlite_url: str) -> None:
    async def story() -> None:
        async with shelved(sqlite_url) as database:
            with pytest.raises(ValueError, match="NULL"):
                await database.run(Tx.update, BOOKS, {"due_at": None}, {"copies": 1})

    asyncio.run(story())


def test_touched_each_gives_every_row_its_own_values_and_counts_all(database_url: str) -> None:
    titled = sa.update(BOOKS).where(BOOKS.c.id == sa.bindparam("book")).values(text=sa.bindparam("words"))

    def write_texts(tx: Tx, rows: list[dict[str, Any]]) -> int:
        return tx.touched_each(titled, rows)

    async def story() -> tuple[list[int], list[Row]]:
        async with shelved(database_url) as database:
            await database.run(write, [book(n) for n in range(3)])
            ids = [row.id for row in await database.read(everything)]
            counts = [
                await database.run(write_texts, [{"book": one, "words": f"of {one}"} for one in chosen])
                for chosen in ([], ids[:1], [*ids[1:], "nobody"])
            ]
            return counts, await database.read(everything)

    counts, rows = asyncio.run(story())
    assert counts == [0, 1, 2]
    assert [row.text for row in rows] == [f"of {row.id}" for row in rows]


def test_a_value_that_is_missing_or_unknown_is_named(sqlite_url: str) -> None:
    def ask(tx: Tx, values: dict[str, Any]) -> list[Row]:
        return tx.all(sa.select(BOOKS.c.id).where(BOOKS.c.title == sa.bindparam("wanted")), values)

    async def story() -> None:
        async with shelved(sqlite_url) as database:
            with pytest.raises(TypeError, match="wanted"):
                await database.read(ask, {"wnated": "x"})
            with pytest.raises(TypeError, match="wanted"):
                await database.read(ask, {})

    asyncio.run(story())


def test_statements_of_one_shape_are_compiled_once(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    made = Prepared.__init__

    def counted(self: Prepared, statement: Any, *rest: Any) -> None:
        compiled.append(str(statement))
        made(self, statement, *rest)

    monkeypatch.setattr(Prepared, "__init__", counted)

    def find(tx: Tx, title: str, copies: int) -> int:
        return tx.touched(
            sa.update(BOOKS).where(BOOKS.c.title == title, BOOKS.c.fence == 0).values(copies=copies)
        )

    async def story() -> list[int]:
        async with shelved(sqlite_url) as database:
            await database.run(write, [book(1), book(2)])
            compiled.clear()
            return [await database.run(find, f"book 00{n}", n) for n in range(4)]

    assert asyncio.run(story()) == [0, 1, 1, 0]
    assert len(compiled) == 1


def test_rows_for_postgresql_go_out_as_one_statement() -> None:
    insert = "INSERT INTO t (a, b) VALUES ($1::VARCHAR, $2) ON CONFLICT (a) DO NOTHING"
    assert several(insert, 2) == insert.replace("($1::VARCHAR, $2)", "($1::VARCHAR, $2), ($3::VARCHAR, $4)")
    update = "UPDATE t SET a=$1::VARCHAR WHERE t.b = $2::BIGINT AND t.a != $1::VARCHAR"
    assert several(update, 2) == (
        "UPDATE t SET a=given.c1::VARCHAR"
        " FROM (VALUES ($1::VARCHAR, $2::BIGINT), ($3::VARCHAR, $4::BIGINT)) AS given (c1, c2)"
        " WHERE t.b = given.c2::BIGINT AND t.a != given.c1::VARCHAR"
    )
