"""What an act's caller is told when the server, the connection or another transaction gets in the way."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from dragoman.kernel.errors import CommitUnknown, StoreError
from dragoman.store.transaction import Tx
from tests.doubles.databases import opened
from tests.doubles.proxy import Deed, Proxy
from tests.store.clocks import StillClock
from tests.store.shelf import add_copy, put, put_once, shelved, titles

_COMMIT = {"postgresql": b"COMMIT\x00", "mariadb": b"\x03COMMIT"}


@contextlib.contextmanager
def behind(url: str) -> Iterator[tuple[str, Proxy]]:
    """The same database, reached through a proxy."""
    target = sa.make_url(url)
    proxy = Proxy(target.host or "127.0.0.1", target.port or 0)
    try:
        yield target.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False), proxy
    finally:
        proxy.close()


def commit_of(url: str) -> bytes:
    """How COMMIT looks on the wire."""
    return _COMMIT[sa.make_url(url).get_backend_name()]


@pytest.mark.parametrize("deed, stands", [("cut_answer", True), ("cut_before", False)])
def test_a_commit_whose_answer_is_lost_is_unknown_to_its_caller(
    server_url: str, deed: Deed, stands: bool
) -> None:
    async def story() -> list[str]:
        with behind(server_url) as (url, proxy):
            async with shelved(server_url), opened(url) as database:
                lost = proxy.on(commit_of(server_url), deed)
                with pytest.raises(CommitUnknown):
                    await database.run(put, 1)
                assert lost.happened.is_set()
                return await database.read(titles)

    assert asyncio.run(story()) == (["book 001"] if stands else [])


@pytest.mark.parametrize("deed, answer", [("cut_answer", "same"), ("cut_before", "new")])
def test_a_repeatable_act_runs_again_after_a_lost_commit(server_url: str, deed: Deed, answer: str) -> None:
    async def story() -> tuple[str, list[str]]:
        with behind(server_url) as (url, proxy):
            async with shelved(server_url), opened(url) as database:
                proxy.on(commit_of(server_url), deed)
                return await database.run(put_once, 1), await database.read(titles)

    assert asyncio.run(story()) == (answer, ["book 001"])


def test_a_lost_commit_is_unknown_to_every_act_of_its_group(server_url: str) -> None:
    def wait_for(tx: Tx, moment: threading.Event) -> None:
        assert moment.wait(10)

    async def story() -> list[object]:
        with behind(server_url) as (url, proxy):
            async with (
                shelved(server_url),
                opened(url, StillClock(), group_commit=True, writers=1) as database,
            ):
                hold = threading.Event()
                acts = [database.run(wait_for, hold), database.run(put, 1), database.run(put_once, 2)]
                tasks = [asyncio.ensure_future(act) for act in acts]
                await asyncio.sleep(0)
                proxy.on(commit_of(server_url), "cut_answer")
                hold.set()
                answers = await asyncio.gather(*tasks, return_exceptions=True)
                return [type(answers[0]), type(answers[1]), answers[2]]

    assert asyncio.run(story()) == [CommitUnknown, CommitUnknown, "same"]


def test_a_connection_lost_before_commit_is_a_rollback_and_the_act_runs_again(server_url: str) -> None:
    async def story() -> tuple[list[str], int]:
        with behind(server_url) as (url, proxy):
            async with shelved(server_url), opened(url) as database:
                proxy.on(b"INTO books", "cut_before")
                await database.run(put, 1)
                return await database.read(titles), database.tally.undone

    assert asyncio.run(story()) == (["book 001"], 1)


def test_connections_that_died_while_idle_cost_nobody_anything(server_url: str) -> None:
    """More of them than an act has tries: whoever meets the first dead one leaves the others alone."""
    together = threading.Barrier(9, timeout=10)

    def meet(tx: Tx) -> None:
        together.wait()
        tx.scalar(sa.text("SELECT 1"))

    async def story() -> list[str]:
        with behind(server_url) as (url, proxy):
            async with shelved(server_url), opened(url, writers=9, readers=9) as database:
                await asyncio.gather(*[database.run(meet) for _ in range(9)])
                await asyncio.gather(*[database.read(meet) for _ in range(9)])
                proxy.cut_all()
                await database.run(put, 1)
                return await database.read(titles)

    assert asyncio.run(story()) == ["book 001"]


def test_a_server_that_is_gone_is_told_after_three_more_tries(server_url: str) -> None:
    async def story() -> StoreError:
        with behind(server_url) as (url, proxy):
            async with shelved(server_url), opened(url) as database:
                proxy.refuse()
                proxy.cut_all()
                with pytest.raises(StoreError) as caught:
                    await database.run(put, 1)
                return caught.value

    error = asyncio.run(story())
    assert error.code == "database_unavailable"
    assert not isinstance(error, CommitUnknown)


def test_a_deadlock_is_run_again_until_both_are_through(server_url: str) -> None:
    meet = threading.Barrier(2, timeout=10)
    tries: list[str] = []

    def cross(tx: Tx, first: str, second: str) -> None:
        tries.append(first)
        add_copy(tx, first)
        if len(tries) <= 2:
            meet.wait()
        add_copy(tx, second)

    async def story() -> tuple[int, int]:
        async with shelved(server_url) as database:
            await database.run(put, 1, 2)
            await asyncio.gather(
                database.run(cross, "book 001", "book 002"), database.run(cross, "book 002", "book 001")
            )
            return await database.run(add_copy, "book 001"), await database.run(add_copy, "book 002")

    assert asyncio.run(story()) == (3, 3)
    assert len(tries) > 2


def test_a_group_that_was_undone_is_carried_out_act_by_act(server_url: str) -> None:
    meet = threading.Barrier(2, timeout=10)
    tries: list[str] = []

    def cross(tx: Tx, first: str, second: str) -> None:
        tries.append(first)
        add_copy(tx, first)
        if len(tries) <= 2:
            meet.wait()
        add_copy(tx, second)

    async def story() -> list[str]:
        async with shelved(server_url, group_commit=True, writers=2) as database:
            await database.run(put, 1, 2)
            crossing = [
                asyncio.ensure_future(database.run(cross, "book 001", "book 002")),
                asyncio.ensure_future(database.run(cross, "book 002", "book 001")),
            ]
            while len(tries) < 2:
                await asyncio.sleep(0.001)
            more = [asyncio.ensure_future(database.run(put, number)) for number in range(3, 20)]
            await asyncio.gather(*crossing, *more)
            assert await database.run(add_copy, "book 001") == 3
            return await database.read(titles)

    assert len(asyncio.run(story())) == 19


def test_a_file_that_another_program_has_locked_is_waited_for(sqlite_url: str) -> None:
    async def story() -> None:
        async with shelved(sqlite_url, busy_seconds=0.01) as database:
            other = sqlite3.connect(sa.make_url(sqlite_url).database or "", isolation_level=None)
            with contextlib.closing(other):
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(StoreError, match="locked") as caught:
                    await database.run(put, 1)
                assert caught.value.code == "database_unavailable"
                waiting = asyncio.ensure_future(database.run(put, 2))
                await asyncio.sleep(0)
                other.execute("ROLLBACK")
                await waiting
            assert await database.read(titles) == ["book 002"]

    asyncio.run(story())


def test_a_full_disk_refuses_the_write_and_keeps_what_was_committed(sqlite_url: str) -> None:
    def swell(tx: Tx) -> None:
        put(tx, *range(10, 3000))

    async def story() -> list[str]:
        async with shelved(sqlite_url) as database:
            await database.run(put, 1)

            def limit(tx: Tx) -> None:
                pages = tx.scalar(sa.text("PRAGMA page_count"))
                tx.scalar(sa.text(f"PRAGMA max_page_count={pages + 2}"))

            await database.run(limit)
            with pytest.raises(StoreError, match="SQLITE_FULL") as caught:
                await database.run(swell)
            assert caught.value.code == "database_unavailable"
            await database.run(put, 2)
            return await database.read(titles)

    assert asyncio.run(story()) == ["book 001", "book 002"]


def test_an_act_whose_caller_was_canceled_in_line_is_not_begun(database_url: str) -> None:
    def wait_for(tx: Tx, begun: threading.Event, moment: threading.Event) -> None:
        begun.set()
        assert moment.wait(10)

    async def story() -> list[str]:
        async with shelved(database_url, writers=1) as database:
            begun, hold = threading.Event(), threading.Event()
            holder = asyncio.ensure_future(database.run(wait_for, begun, hold))
            await asyncio.to_thread(begun.wait, 10)
            given_up = asyncio.ensure_future(database.run(put, 1))
            await asyncio.sleep(0)
            given_up.cancel()
            hold.set()
            await asyncio.gather(holder, given_up, return_exceptions=True)
            await database.run(put, 2)
            return await database.read(titles)

    assert asyncio.run(story()) == ["book 002"]
