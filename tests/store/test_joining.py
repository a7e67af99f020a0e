"""Acts that serve many at once: one commit for those who ask together, and nobody pays for another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from dragoman.store.joining import together
from dragoman.store.transaction import Tx
from tests.store.shelf import BOOKS, book, shelved, titles


class _Shelving(NamedTuple):
    number: int


@together(_Shelving)
def shelve(tx: Tx, askings: Sequence[_Shelving]) -> list[tuple[str, int]]:
    """Put books up; gives each title, and how many were asked for at once. Number 7 is refused."""
    tx.insert(BOOKS, [book(asking.number) for asking in askings])
    if any(asking.number == 7 for asking in askings):
        raise KeyError("no shelf for 7")
    return [(f"book {asking.number:03}", len(askings)) for asking in askings]


async def _asked(url: str, numbers: Sequence[int]) -> tuple[list[Any], list[str], int]:
    async with shelved(url) as database:
        answers = await asyncio.gather(
            *[database.run(shelve, number) for number in numbers], return_exceptions=True
        )
        return answers, await database.read(titles), database.commits


def test_those_who_ask_at_once_share_one_transaction_and_each_gets_its_answer(database_url: str) -> None:
    answers, shelf, commits = asyncio.run(_asked(database_url, [3, 1, 2]))
    assert answers == [("book 003", 3), ("book 001", 3), ("book 002", 3)]
    assert shelf == ["book 001", "book 002", "book 003"]
    assert commits == 1


def test_an_asking_that_fails_is_undone_alone_and_its_error_is_its_own(database_url: str) -> None:
    answers, shelf, _ = asyncio.run(_asked(database_url, [1, 7, 2]))
    assert answers[0] == ("book 001", 1)
    assert isinstance(answers[1], KeyError)
    assert answers[2] == ("book 002", 1)
    assert shelf == ["book 001", "book 002"]


def test_what_asks_while_a_transaction_is_under_way_goes_into_the_next(database_url: str) -> None:
    async def story() -> tuple[list[tuple[str, int]], int]:
        async with shelved(database_url) as database:
            first = asyncio.create_task(database.run(shelve, 1))
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # now the first is under way
            later = [database.run(shelve, number) for number in (2, 3)]
            return list(await asyncio.gather(first, *later)), database.commits

    answers, commits = asyncio.run(story())
    assert answers == [("book 001", 1), ("book 002", 2), ("book 003", 2)]
    assert commits == 2


def test_one_who_asks_no_more_is_passed_over(database_url: str) -> None:
    async def story() -> tuple[tuple[str, int], list[str]]:
        async with shelved(database_url) as database:
            gone = asyncio.create_task(database.run(shelve, 1))
            stays = asyncio.create_task(database.run(shelve, 2))
            await asyncio.sleep(0)
            gone.cancel()
            return await stays, await database.read(titles)

    answer, shelf = asyncio.run(story())
    assert answer == ("book 002", 1)
    assert shelf == ["book 002"]
