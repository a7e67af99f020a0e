"""Claims find their rows by an index that gives their order; else a second worker finds nothing."""

from __future__ import annotations

import asyncio

import sqlalchemy as sa

from dragoman.store.transaction import Row, Tx
from tests.doubles.plans import analyze, plans_of
from tests.store.shelf import BOOKS, claim_books, put, shelved

_FAR = 1 << 60


def claim_by_copies(tx: Tx) -> list[Row]:
    """A selection that no index serves."""
    return tx.all(sa.select(BOOKS.c.id).where(BOOKS.c.copies > 3).order_by(BOOKS.c.copies))


def prepare(url: str) -> None:
    async def story() -> None:
        async with shelved(url) as database:
            await database.run(put, *range(2000))

    asyncio.run(story())
    analyze(url, BOOKS)


def test_a_claim_uses_its_index_and_sorts_nothing(database_url: str) -> None:
    prepare(database_url)
    plans = plans_of(database_url, _FAR, claim_books, "ada", 5)
    assert plans
    for plan in plans:
        assert not plan.scans, plan
    assert "ix_books_due" in plans[0].text, plans[0]
    assert not plans[0].sorts, plans[0]


def test_the_helper_sees_a_statement_that_no_index_serves(database_url: str) -> None:
    prepare(database_url)
    (plan,) = plans_of(database_url, _FAR, claim_by_copies)
    assert plan.sorts, plan
    assert plan.scans or plan.dialect == "postgresql", plan
