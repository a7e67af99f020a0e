"""Under what isolation transactions that write run, whatever the server's own default is."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from dragoman.store.engines import engine_of
from dragoman.store.transaction import Tx
from tests.store.shelf import put, shelved, titles


@contextlib.contextmanager
def serializable_by_default(url: str) -> Iterator[None]:
    """As an administrator may have set it; MariaDB's own default is not READ COMMITTED either."""
    engine = engine_of(url)

    def set_default(clause: str) -> None:
        if engine.dialect.name == "postgresql":
            with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
                connection.execute(sa.text(f'ALTER DATABASE "{engine.url.database}" {clause}'))

    set_default("SET default_transaction_isolation = serializable")
    try:
        yield
    finally:
        set_default("RESET default_transaction_isolation")
        engine.dispose()


def test_a_transaction_sees_what_others_commit_meanwhile(server_url: str) -> None:
    """[M-041] READ COMMITTED: each statement looks anew, so a write names what stands, not what stood."""
    looked, committed = threading.Event(), threading.Event()

    def look_twice(tx: Tx) -> tuple[list[str], list[str]]:
        before = titles(tx)
        looked.set()
        assert committed.wait(30)
        return before, titles(tx)

    async def play() -> tuple[list[str], list[str]]:
        async with shelved(server_url) as database, shelved(server_url) as other:
            looking = asyncio.ensure_future(database.run(look_twice))
            await asyncio.to_thread(looked.wait, 30)
            await other.run(put, 1)
            committed.set()
            return await looking

    with serializable_by_default(server_url):
        assert asyncio.run(play()) == ([], ["book 001"])


def test_a_transaction_on_a_file_has_it_alone_from_its_first_word(sqlite_url: str) -> None:
    """[M-041] BEGIN IMMEDIATE: what only looks so far is never refused when it comes to write."""

    def look(tx: Tx) -> None:
        titles(tx)
        other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), timeout=0, isolation_level=None)
        with contextlib.closing(other), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")

    async def play() -> None:
        async with shelved(sqlite_url) as database:
            await database.run(look)

    asyncio.run(play())
