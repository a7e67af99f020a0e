"""A database server that dies under load and comes back: what was answered is there, and nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from dragoman.kernel.errors import CommitUnknown, StoreError
from dragoman.store.database import Database
from dragoman.store.engines import engine_of
from tests.doubles.databases import KINDS
from tests.doubles.servers import Missing, OwnServer
from tests.store.shelf import book, put, put_once, shelved, titles


@pytest.fixture(params=KINDS[1:])
def server(request: pytest.FixtureRequest) -> Iterator[OwnServer]:
    try:
        made = OwnServer(str(request.param))
    except Missing as missing:
        pytest.skip(str(missing))
    yield made
    made.close()


def test_what_was_answered_before_a_server_died_is_there_when_it_is_back(server: OwnServer) -> None:
    answered: set[int] = set()
    unknown: set[int] = set()
    refused: set[int] = set()

    async def write(database: Database, first: int, last: int) -> None:
        for number in range(first, last):
            try:
                await database.run(put, number)
            except CommitUnknown:
                unknown.add(number)
            except StoreError:
                refused.add(number)
                await asyncio.sleep(0.01)
            else:
                answered.add(number)

    async def kill_and_start() -> None:
        while len(answered) < 100:
            await asyncio.sleep(0.001)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)

    async def story() -> set[str]:
        async with shelved(_database_on(server), any_schema=True) as database:
            writers = [write(database, first, first + 100) for first in range(0, 800, 100)]
            await asyncio.gather(kill_and_start(), *writers)
            assert await database.run(put_once, 999) == "new"
            return set(await database.read(titles))

    found = asyncio.run(story())
    named = {number: book(number)["title"] for number in (*answered, *unknown, *refused, 999)}
    assert {named[number] for number in answered} <= found
    assert not {named[number] for number in refused} & found
    assert found <= {named[number] for number in (*answered, *unknown, 999)}
    assert len(answered) > 100


def _database_on(server: OwnServer) -> str:
    engine = engine_of(server.url)
    with engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("CREATE DATABASE chaos")
    engine.dispose()
    return sa.make_url(server.url).set(database="chaos").render_as_string(hide_password=False)
