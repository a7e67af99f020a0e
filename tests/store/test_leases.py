"""Leases and fences, the same on three databases."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.store import leases
from dragoman.store.database import Database
from dragoman.store.servers import skips_locked
from dragoman.store.sessions import MysqlSession
from dragoman.store.transaction import Row, Tx
from tests.doubles.databases import opened
from tests.store.shelf import BOOKS, PLACES, book, claim_books, put, shelved


def claim_places(tx: Tx, owner: str, limit: int) -> list[Row]:
    return leases.claim(
        tx,
        PLACES,
        ready=PLACES.c.due_at <= tx.now,
        order=[PLACES.c.due_at, PLACES.c.room, PLACES.c.number],
        limit=limit,
        owner=owner,
        lease_seconds=60,
    )


def put_places(tx: Tx) -> None:
    tx.insert(PLACES, [{"room": room, "number": n, "due_at": 9 - n} for room in ("a", "b") for n in range(3)])


def lend(tx: Tx, key: str, fence: int) -> bool:
    """A write under a fence."""
    return tx.touched(sa.update(BOOKS).where(leases.held(BOOKS, key, fence)).values(lent=True)) == 1


def test_a_claim_gives_what_is_due_first_under_a_raised_fence(database_url: str) -> None:
    async def story() -> list[Row]:
        async with shelved(database_url) as database:
            await database.run(put, 5, 3, 4, 1, 2)
            return await database.run(claim_books, "ada", 3)

    rows = asyncio.run(story())
    assert [row.title for row in rows] == ["book 001", "book 002", "book 003"]
    assert {(row.lease_owner, row.fence) for row in rows} == {("ada", 1)}
    assert {row.lease_expires_at for row in rows} == {rows[0].lease_expires_at}


def test_a_key_of_two_columns_is_claimed_held_renewed_and_released(database_url: str) -> None:
    async def story() -> None:
        async with shelved(database_url) as database:
            await database.run(put_places)
            rows = await database.run(claim_places, "ada", 4)
            assert [(row.room, row.number) for row in rows] == [("a", 2), ("b", 2), ("a", 1), ("b", 1)]
            held = [((row.room, row.number), row.fence) for row in rows]
            assert await database.run(leases.renew, PLACES, [*held, (("a", 1), 7)], 60) == [("a", 1)]
            assert await database.run(leases.release, PLACES, ("a", 2), 1) is True
            assert await database.run(leases.release, PLACES, ("b", 2), 9) is False
            again = await database.run(claim_places, "bob", 9)
            assert [(row.room, row.number, row.fence) for row in again] == [
                ("a", 2, 2),
                ("a", 0, 1),
                ("b", 0, 1),
            ]

    asyncio.run(story())


def test_a_live_lease_is_not_claimed_again_and_an_expired_one_is(database_url: str) -> None:
    async def story() -> None:
        async with shelved(database_url) as database:
            await database.run(put, 1)
            first = await database.run(claim_books, "ada", 9, lease_seconds=60)
            assert await database.run(claim_books, "bob", 9) == []
            await database.run(leases.renew, BOOKS, [(first[0].id, first[0].fence)], 0)
            second = await database.run(claim_books, "bob", 9)
            assert [(row.lease_owner, row.fence) for row in second] == [("bob", 2)]

    asyncio.run(story())


def test_nothing_is_written_under_a_stale_fence(database_url: str) -> None:
    async def story() -> None:
        async with shelved(database_url) as database:
            await database.run(put, 1)
            (old,) = await database.run(claim_books, "ada", 1, lease_seconds=0)
            (new,) = await database.run(claim_books, "bob", 1)
            assert await database.run(lend, old.id, old.fence) is False
            assert await database.run(leases.release, BOOKS, old.id, old.fence, {"copies": 9}) is False
            assert await database.run(leases.renew, BOOKS, [(old.id, old.fence)], 60) == [old.id]
            assert await database.run(lend, new.id, new.fence) is True

    asyncio.run(story())


def test_racing_claims_never_take_a_row_twice_and_leave_none(database_url: str) -> None:
    async def drain(database: Database, owner: str) -> list[tuple[str, int]]:
        taken: list[tuple[str, int]] = []
        empty = 0
        while empty < 3:  # under SKIP LOCKED an empty hand may only mean that the others hold the rest
            rows = await database.run(claim_books, owner, 7)
            taken += [(row.id, row.fence) for row in rows]
            empty = 0 if rows else empty + 1
        return taken

    async def story() -> list[tuple[str, int]]:
        async with shelved(database_url) as one, opened(database_url) as other:
            await one.run(put, *range(300))
            taken = await asyncio.gather(
                *[
                    drain(database, f"{name}{n}")
                    for n in range(3)
                    for name, database in (("a", one), ("b", other))
                ]
            )
            return [claim for part in taken for claim in part]

    claims = asyncio.run(story())
    assert len(claims) == len(set(claims)) == 300


def test_a_second_worker_finds_rows_while_the_first_still_claims(server_url: str) -> None:
    def claim_slowly(tx: Tx, begun: threading.Event, go_on: threading.Event) -> list[Row]:
        rows = claim_books(tx, "slow", 5)
        begun.set()
        assert go_on.wait(10)
        return rows

    async def story() -> tuple[list[Row], list[Row]]:
        async with shelved(server_url) as database:
            await database.run(put, *range(20))
            begun, go_on = threading.Event(), threading.Event()
            slow = asyncio.ensure_future(database.run(claim_slowly, begun, go_on))
            await asyncio.to_thread(begun.wait, 10)
            quick = await database.run(claim_books, "quick", 5)
            go_on.set()
            return await slow, quick

    slow, quick = asyncio.run(story())
    assert [row.title for row in slow] == [f"book {n:03d}" for n in range(5)]
    assert [row.title for row in quick] == [f"book {n:03d}" for n in range(5, 10)]


def test_a_claim_may_move_other_columns_even_those_it_is_ordered_by(database_url: str) -> None:
    def claim(tx: Tx) -> list[Row]:
        return leases.claim(
            tx,
            BOOKS,
            ready=BOOKS.c.due_at.is_not(None),
            order=[BOOKS.c.due_at],
            limit=9,
            owner="ada",
            lease_seconds=60,
            set_={"due_at": None, "copies": BOOKS.c.copies + 2},
        )

    async def story() -> list[Row]:
        async with shelved(database_url) as database:
            await database.run(put, 3, 1, 2)
            return await database.run(claim)

    rows = asyncio.run(story())
    assert [(row.title, row.due_at, row.copies) for row in rows] == [
        (f"book 00{n}", None, 2) for n in (1, 2, 3)
    ]


def test_the_leases_of_those_who_are_gone_run_out_at_once(database_url: str) -> None:
    async def story() -> None:
        async with shelved(database_url) as database:
            await database.run(put, 1, 2, 3)
            await database.run(claim_books, "gone", 2)
            await database.run(claim_books, "alive", 1)
            assert sorted(await database.read(leases.owners, BOOKS)) == ["alive", "gone"]
            assert await database.run(leases.free_gone, BOOKS, []) == 0
            assert await database.run(leases.free_gone, BOOKS, ["gone", "never seen"]) == 2
            again = await database.run(claim_books, "bob", 9)
            assert [(row.title, row.fence) for row in again] == [("book 001", 2), ("book 002", 2)]

    asyncio.run(story())


def test_servers_without_skip_locked_claim_row_by_row(
    mariadb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = MysqlSession.__init__

    def without(self: Any, connection: Any, driver: Any, compilations: Any, _skips_locked: bool) -> None:
        made(self, connection, driver, compilations, False)

    monkeypatch.setattr(MysqlSession, "__init__", without)
    test_a_claim_gives_what_is_due_first_under_a_raised_fence(mariadb_url)
    test_racing_claims_never_take_a_row_twice_and_leave_none(mariadb_url)
    test_a_claim_may_move_other_columns_even_those_it_is_ordered_by(mariadb_url)


@pytest.mark.parametrize(
    "version, knows",
    [
        ("5.5.5-10.11.19-MariaDB-0+deb12u1", True),
        ("11.8.9-MariaDB", True),
        ("10.5.2-MariaDB", False),
        ("8.0.36", True),
        ("9.7.4", True),
        ("5.7.44-log", False),
    ],
)
def test_the_server_s_version_tells_whether_it_knows_skip_locked(version: str, knows: bool) -> None:
    assert skips_locked(version) is knows


def test_renewing_prolongs_many_leases_in_one_act(database_url: str) -> None:
    def until(tx: Tx) -> list[int]:
        return [row[0] for row in tx.all(sa.select(BOOKS.c.lease_expires_at).order_by(BOOKS.c.id))]

    async def story() -> None:
        async with shelved(database_url) as database:
            await database.run(put, *range(100))
            rows = await database.run(claim_books, "ada", 100)
            before = await database.read(until)
            assert await database.run(leases.renew, BOOKS, [(row.id, row.fence) for row in rows], 600) == []
            after = await database.read(until)
            assert all(b - a > 500_000_000 for a, b in zip(before, after, strict=True))
            assert await database.run(leases.renew, BOOKS, [], 600) == []
            missing = (book(999)["id"], 1)
            assert await database.run(leases.renew, BOOKS, [missing], 600) == [missing[0]]

    asyncio.run(story())
