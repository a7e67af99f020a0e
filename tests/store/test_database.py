"""The two doors: what `run` and `read` promise, on three databases."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.kernel.errors import StoreError
from dragoman.store.engines import engine_of
from dragoman.store.transaction import Tx, urgent
from tests.doubles.databases import opened
from tests.store.clocks import StillClock
from tests.store.shelf import BOOKS, add_copy, book, put, put_and_fail, shelved, titles


def test_what_an_act_wrote_is_there_once_run_has_answered(database_url: str) -> None:
    async def story() -> list[str]:
        async with shelved(database_url) as database:
            await database.run(put, 2, 1)
            return await database.read(titles)

    assert asyncio.run(story()) == ["book 001", "book 002"]


def test_an_act_that_raises_leaves_nothing_and_its_error_reaches_its_caller(database_url: str) -> None:
    async def story() -> list[str]:
        async with shelved(database_url) as database:
            with pytest.raises(KeyError, match="no shelf for 7"):
                await database.run(put_and_fail, 7)
            return await database.read(titles)

    assert asyncio.run(story()) == []


def test_acts_that_wait_at_the_same_moment_share_one_commit(database_url: str) -> None:
    async def story() -> tuple[int, int]:
        async with shelved(database_url, clock=StillClock(), group_commit=True, writers=1) as database:
            hold = threading.Event()
            first = asyncio.ensure_future(database.run(wait_for, hold))
            others = [asyncio.ensure_future(database.run(put, number)) for number in range(20)]
            await asyncio.sleep(0)
            hold.set()
            await asyncio.gather(first, *others)
            return database.commits, len(await database.read(titles))

    commits, books = asyncio.run(story())
    assert books == 20
    assert commits == 1


def test_one_act_of_a_group_that_fails_is_undone_alone(database_url: str) -> None:
    async def story() -> tuple[list[Any], list[str], int]:
        async with shelved(database_url, clock=StillClock(), group_commit=True, writers=1) as database:
            hold = threading.Event()
            waiting = [
                database.run(wait_for, hold),
                database.run(put_and_fail, 1),
                database.run(put, 2),
                database.run(put, 2),
                database.run(put, 3),
                database.run(put_and_fail, 4),
            ]
            tasks = [asyncio.ensure_future(act) for act in waiting]
            await asyncio.sleep(0)
            hold.set()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            return [type(answer) for answer in answers], await database.read(titles), database.commits

    kinds, books, commits = asyncio.run(story())
    assert kinds == [type(None), KeyError, int, StoreError, int, KeyError]
    assert books == ["book 002", "book 003"]
    assert commits == 1


def test_a_first_act_that_fails_takes_no_other_with_it(database_url: str) -> None:
    async def story() -> list[str]:
        async with shelved(database_url, clock=StillClock(), group_commit=True, writers=1) as database:
            tasks = [
                asyncio.ensure_future(act)
                for act in (
                    database.run(put_and_fail, 1),
                    database.run(put_and_fail, 2),
                    database.run(put, 3),
                )
            ]
            await asyncio.gather(*tasks, return_exceptions=True)
            return await database.read(titles)

    assert asyncio.run(story()) == ["book 003"]


def test_urgent_acts_go_before_those_that_waited_longer(database_url: str) -> None:
    order: list[str] = []

    def note(tx: Tx, name: str) -> None:
        order.append(name)

    @urgent
    def note_first(tx: Tx, name: str) -> None:
        order.append(name)

    async def story() -> None:
        async with shelved(database_url, writers=1) as database:
            begun, hold = threading.Event(), threading.Event()
            holder = asyncio.ensure_future(database.run(wait_for, hold, begun))
            await asyncio.to_thread(begun.wait, 10)
            tasks = [asyncio.ensure_future(database.run(note, name)) for name in ("a", "b", "c")]
            tasks.append(asyncio.ensure_future(database.run(note_first, "urgent")))
            await asyncio.sleep(0)
            hold.set()
            await asyncio.gather(holder, *tasks)

    asyncio.run(story())
    assert order == ["urgent", "a", "b", "c"]


def test_many_writers_lose_no_update(database_url: str) -> None:
    async def story() -> int:
        async with shelved(database_url) as database:
            await database.run(put, 1)
            await asyncio.gather(*[database.run(add_copy, "book 001") for _ in range(60)])
            return await database.run(add_copy, "book 001")

    assert asyncio.run(story()) == 61


def test_two_databases_on_one_file_or_server_wait_for_each_other(database_url: str) -> None:
    async def story() -> int:
        async with shelved(database_url) as one, opened(database_url) as other:
            await one.run(put, 1)
            await asyncio.gather(
                *[database.run(add_copy, "book 001") for _ in range(30) for database in (one, other)]
            )
            return await other.run(add_copy, "book 001")

    assert asyncio.run(story()) == 61


def test_a_read_sees_one_instant_and_cannot_write(database_url: str) -> None:
    seen: list[int] = []

    def look_twice(tx: Tx, between: threading.Event, go_on: threading.Event) -> None:
        seen.append(len(titles(tx)))
        between.set()
        assert go_on.wait(10)
        seen.append(len(titles(tx)))

    async def story() -> None:
        async with shelved(database_url) as database:
            between, go_on = threading.Event(), threading.Event()
            looking = asyncio.ensure_future(database.read(look_twice, between, go_on))
            await asyncio.to_thread(between.wait, 10)
            await database.run(put, 1)
            go_on.set()
            await looking
            with pytest.raises(StoreError):
                await database.read(put, 2)
            seen.append(len(await database.read(titles)))

    asyncio.run(story())
    assert seen == [0, 0, 1]


def test_a_tx_kept_beyond_its_transaction_answers_nothing(database_url: str) -> None:
    def keep(tx: Tx) -> Tx:
        return tx

    async def story() -> None:
        async with shelved(database_url) as database:
            tx = await database.run(keep)
            with pytest.raises(RuntimeError, match="has ended"):
                titles(tx)

    asyncio.run(story())


def test_a_refused_row_is_told_by_its_constraint_and_never_by_its_text(database_url: str) -> None:
    def refuse(tx: Tx) -> None:
        tx.insert(BOOKS, [book(1, copies=-1, text="tenant secret", title="tenant_title")])

    def clash(tx: Tx) -> None:
        tx.insert(BOOKS, [book(1, title="tenant_title")])
        tx.insert(BOOKS, [book(2, title="tenant_title")])

    async def story() -> list[str]:
        async with shelved(database_url) as database:
            told = []
            for act in (refuse, clash):
                with pytest.raises(StoreError) as caught:
                    await database.run(act)
                told.append(caught.value.message)
            return told

    check, key = asyncio.run(story())
    assert "copies" in check
    assert "title" in key
    assert "tenant" not in check + key


def test_a_table_that_is_missing_is_told_as_a_schema_that_is_not_ours(database_url: str) -> None:
    async def story() -> str:
        async with opened(database_url) as database:
            with pytest.raises(StoreError) as caught:
                await database.run(ask_for_nothing_that_is_there)
            return caught.value.code

    assert asyncio.run(story()) == "schema_unavailable"


def test_closing_answers_all_who_wait(database_url: str) -> None:
    async def story() -> list[Any]:
        async with shelved(database_url, writers=1) as database:
            begun, hold = threading.Event(), threading.Event()
            tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(database.run(wait_for, hold, begun))]
            await asyncio.to_thread(begun.wait, 10)
            tasks += [asyncio.ensure_future(database.run(put, number)) for number in range(5)]
            await asyncio.sleep(0)
            tasks[1].cancel()
            closing = asyncio.ensure_future(database.close())
            await asyncio.sleep(0)
            hold.set()
            await closing
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            with pytest.raises(StoreError, match="closed"):
                await database.run(put, 9)
            return [type(answer) for answer in answers]

    assert asyncio.run(story()) == [type(None), asyncio.CancelledError, int, int, int, int]


def test_a_wrong_url_is_told_at_once_and_without_its_password() -> None:
    async def story(url: str) -> str:
        with pytest.raises(StoreError) as caught:
            async with opened(url):
                pass
        assert caught.value.code == "database_unavailable"
        return caught.value.message

    for url in (
        "sqlite:////nowhere/at/all.db",
        "postgresql://user:hunter2@127.0.0.1:9/none",
        "mariadb://user:hunter2@127.0.0.1:9/none",
    ):
        assert "hunter2" not in asyncio.run(story(url))


def test_an_older_or_newer_schema_is_refused(database_url: str) -> None:
    async def code(version: str) -> str:
        engine = engine_of(database_url)
        with engine.begin() as connection:
            connection.execute(sa.text(f"UPDATE alembic_version SET version_num = '{version}'"))
        engine.dispose()
        with pytest.raises(StoreError) as caught:
            async with opened(database_url):
                pass
        return caught.value.code

    engine = engine_of(database_url)
    with engine.connect() as connection:
        ours = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    engine.dispose()
    try:
        assert asyncio.run(code("0000")) == "schema_unavailable"
        assert asyncio.run(code("9999")) == "database_newer"
    finally:
        engine = engine_of(database_url)
        with engine.begin() as connection:
            connection.execute(sa.text(f"UPDATE alembic_version SET version_num = '{ours}'"))
        engine.dispose()


def ask_for_nothing_that_is_there(tx: Tx) -> None:
    """A question to a database that another program made."""
    tx.all(sa.select(sa.column("x")).select_from(sa.table("absent")))


def wait_for(tx: Tx, moment: threading.Event, begun: threading.Event | None = None) -> None:
    """Hold the writer until the test has lined up what it wants."""
    if begun is not None:
        begun.set()
    assert moment.wait(10)
