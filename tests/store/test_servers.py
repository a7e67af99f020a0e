"""What is made ready once a process, and not for each database or connection."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.store import servers, statements
from dragoman.store.engines import engine_of
from dragoman.store.servers import server_of
from tests.store.shelf import put, shelved, titles


def test_what_was_prepared_for_one_database_serves_the_next(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[str] = []

    class Counted(statements.Prepared):
        def __init__(self, statement: Any, *more: Any) -> None:
            prepared.append(str(statement))
            super().__init__(statement, *more)

    async def put_and_look() -> list[str]:
        async with shelved(database_url) as database:
            await database.run(put, 1)
            return await database.read(titles)

    monkeypatch.setattr(statements, "Prepared", Counted)
    servers._compilations.cache_clear()
    assert asyncio.run(put_and_look()) == ["book 001"]
    first, prepared[:] = list(prepared), []
    assert any("books" in text for text in first)
    assert asyncio.run(put_and_look()) == ["book 001"]
    assert prepared == []


def test_encryption_that_checks_nothing_is_made_ready_once(
    mariadb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's certificates are read anew only where one is checked."""
    read: list[str] = []
    original = ssl.create_default_context

    def counted(*asked: Any, **named: Any) -> ssl.SSLContext:
        read.append("once more")
        return original(*asked, **named)

    monkeypatch.setattr(ssl, "create_default_context", counted)
    servers.mysql_connection.cache_clear()
    for _ in range(3):
        server_of(mariadb_url).connect(reading=False).close()
        engine = engine_of(mariadb_url)
        engine.connect().close()
        engine.dispose()
    assert len(read) == 1
    careful = sa.make_url(mariadb_url).update_query_dict({"ssl_verify_cert": "true"})
    for _ in range(2):
        with pytest.raises(Exception, match="SSL"):
            server_of(careful.render_as_string(hide_password=False)).connect(reading=False)
    assert len(read) == 3
