"""A small schema of the engine's own tests: one leasable table, and one with a key of two columns."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import sqlalchemy as sa

from dragoman.store import leases
from dragoman.store.database import Database
from dragoman.store.engines import engine_of
from dragoman.store.portable import (
    NAMES,
    Bytes,
    Count,
    Flag,
    Id,
    Instant,
    LongText,
    Word,
    lease_columns,
    table,
)
from dragoman.store.transaction import Row, Tx, repeatable
from tests.doubles.databases import opened

shelf = sa.MetaData(naming_convention=NAMES)
BOOKS = table(
    "books",
    shelf,
    sa.Column("id", Id, primary_key=True),
    sa.Column("title", Word(80), nullable=False, unique=True),
    sa.Column("copies", Count, nullable=False, server_default="0"),
    sa.Column("lent", Flag, nullable=False, server_default="0"),
    sa.Column("due_at", Instant),
    sa.Column("text", LongText),
    sa.Column("cover", Bytes),
    *lease_columns(),
    sa.CheckConstraint("copies >= 0", name="copies"),
    sa.Index("ix_books_due", "lent", "due_at", "id"),
)
PLACES = table(
    "places",
    shelf,
    sa.Column("room", Word(20), primary_key=True),
    sa.Column("number", Count, primary_key=True, autoincrement=False),
    sa.Column("due_at", Instant, nullable=False),
    *lease_columns(),
    sa.Index("ix_places_due", "due_at", "room", "number"),
    clustered=True,
)

_TITLES = sa.select(BOOKS.c.title).order_by(BOOKS.c.title)
_COPIES = sa.select(BOOKS.c.copies).where(BOOKS.c.title == sa.bindparam("wanted"))
_ADD = sa.update(BOOKS).where(BOOKS.c.title == sa.bindparam("wanted")).values(copies=BOOKS.c.copies + 1)


def book(number: int, **values: Any) -> dict[str, Any]:
    """One row of `books`."""
    return {"id": f"00000000-0000-7000-8000-{number:012d}", "title": f"book {number:03d}", **values}


def put(tx: Tx, *numbers: int) -> int:
    """Insert books; the transaction's instant."""
    tx.insert(BOOKS, [book(number, due_at=number) for number in numbers])
    return tx.now


def put_and_fail(tx: Tx, number: int) -> None:
    """Insert a book, then raise."""
    put(tx, number)
    raise KeyError(f"no shelf for {number}")


@repeatable
def put_once(tx: Tx, number: int) -> str:
    """Insert a book that may be there already."""
    fresh = tx.insert_new(BOOKS, [book(number)], ["id"])
    return "new" if fresh else "same"


def add_copy(tx: Tx, title: str) -> int:
    """Raise one counter; what it is then."""
    tx.touched(_ADD, {"wanted": title})
    copies: int = tx.scalar(_COPIES, {"wanted": title})
    return copies


def titles(tx: Tx) -> list[str]:
    """All titles in order."""
    return [row.title for row in tx.all(_TITLES)]


def claim_books(tx: Tx, owner: str, limit: int, lease_seconds: float = 60) -> list[Row]:
    """Claim books that are due, first due first."""
    return leases.claim(
        tx,
        BOOKS,
        ready=sa.and_(BOOKS.c.lent == False, BOOKS.c.due_at <= tx.now),  # noqa: E712 - a column
        order=[BOOKS.c.due_at, BOOKS.c.id],
        limit=limit,
        owner=owner,
        lease_seconds=lease_seconds,
    )


@contextlib.asynccontextmanager
async def shelved(url: str, **options: Any) -> AsyncIterator[Database]:
    """An open database with the small schema and nothing in it."""
    engine = engine_of(url)
    with engine.begin() as connection:
        shelf.create_all(connection)
        for made in shelf.sorted_tables:
            connection.execute(made.delete())
    engine.dispose()
    async with opened(url, **options) as database:
        yield database
