"""Every claim of the program finds its rows by an index that gives its order, in tables full of history.

Where it had to sort, MariaDB would lock all the rows that it sorts, and a second worker would find nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from dragoman.store.acts import converging, expanding, steering
from dragoman.store.rows import claims, executions, jobs, outbox, requests, submissions
from dragoman.store.schema import convergence, engine, publishing, site
from dragoman.store.transaction import Tx
from tests.doubles.databases import opened
from tests.doubles.filler import Values, filling
from tests.doubles.plans import analyze, plans_of

_ROWS = 3_000
_NOW = 1 << 50


class Claim(NamedTuple):
    """One claim: its table, what stands in it, how it is asked, and what other tables it looks at."""

    table: sa.Table
    values: Values
    act: Callable[..., Any]
    args: tuple[Any, ...]
    beside: tuple[tuple[sa.Table, Values], ...] = ()


def mostly(rare: str, common: str) -> Callable[[int], str]:
    """One row in thirty is open, the rest is history."""
    return lambda number: common if number % 30 else rare


def seldom(column: Callable[[int], Any]) -> Callable[[int], Any]:
    """Null but for one row in thirty."""
    return lambda number: None if number % 30 else column(number)


_ENDED: Values = {"phase": mostly("open", "ended"), "resume_key": lambda n: None}
_SHARDS: Values = {"manifest_id": lambda n: f"{n:036d}"}

CLAIMS = {
    "manifests to expand": Claim(
        site.manifests,
        {
            "phase": mostly("enumerating", "ended"),
            "next_attempt_at": seldom(int),
            "resume_key": lambda n: None,
        },
        expanding.claim_enumerating_manifest,
        ("ada",),
    ),
    "shards to prepare": Claim(
        site.shards,
        {**_SHARDS, "prepare_due_at": seldom(int)},
        claims.claim_shard,
        ("prepare_due_at", "ada"),
        ((site.manifests, _ENDED),),
    ),
    "shards to submit": Claim(
        site.shards,
        {**_SHARDS, "submit_due_at": seldom(int)},
        claims.claim_shard,
        ("submit_due_at", "ada"),
        ((site.manifests, _ENDED),),
    ),
    "submissions to send": Claim(
        site.submissions,
        {"state": mostly("pending", "accepted"), "next_attempt_at": seldom(int), "body": lambda n: b"{}"},
        submissions.claim,
        ("ada", 4, ""),
    ),
    "submissions to ask about": Claim(
        site.submissions,
        {"state": mostly("accepted", "accepted"), "reconcile_at": seldom(int), "body": lambda n: b"{}"},
        submissions.due_for_inquiry,
        (20, 60, ""),
    ),
    "runs": Claim(
        convergence.runs,
        {
            "state": mostly("looking", "complete"),
            "next_attempt_at": seldom(int),
            "open_key": lambda n: None,
        },
        converging.claim_run,
        ("ada",),
    ),
    "jobs": Claim(
        engine.jobs,
        {
            "workspace": lambda n: f"ws{n % 3}",
            "state": mostly("queued", "completed"),
            "next_attempt_at": seldom(int),
        },
        jobs.claim,
        ("ws0", "ada", 60),
    ),
    "jobs, by what this process holds": Claim(
        engine.jobs,
        {
            "workspace": lambda n: f"ws{n % 3}",
            "needs": lambda n: ("", "A_KEY", "B_KEY", "C_KEY")[n % 4],
            "state": mostly("queued", "completed"),
            "next_attempt_at": seldom(int),
        },
        jobs.claim,
        ("ws0", "ada", 60, ["A_KEY", "B_KEY"]),
    ),
    "events to deliver": Claim(
        engine.outbox,
        {"state": mostly("pending", "delivered"), "next_attempt_at": seldom(int)},
        outbox.claim,
        ("ada", 10),
    ),
    "publication requests": Claim(
        publishing.publication_requests,
        {"state": mostly("pending", "planned"), "next_attempt_at": seldom(int)},
        requests.claim,
        ("ada", 60, 5),
    ),
    "commands": Claim(
        publishing.publication_commands,
        {"state": mostly("PENDING", "DELIVERED"), "due_at": int},
        executions.claim_commands,
        ("ada", 60, 5),
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_finds_its_rows_in_the_order_of_an_index(database_url: str, name: str) -> None:
    claim = CLAIMS[name]

    def fill(tx: Tx) -> None:
        for table, values in ((claim.table, claim.values), *claim.beside):
            tx.insert(table, list(filling(table, _ROWS, values)))

    async def story() -> None:
        async with opened(database_url) as database:
            await database.run(fill)

    asyncio.run(story())
    analyze(database_url, claim.table, *[table for table, _ in claim.beside])
    plans = plans_of(database_url, _NOW, claim.act, *claim.args)
    selecting = [plan for plan in plans if f"FROM {claim.table.name}" in plan.sql and "ORDER BY" in plan.sql]
    assert selecting
    for plan in selecting:
        assert not plan.scans, f"{plan.sql}\n{plan.text}"
        assert not plan.sorts, f"{plan.sql}\n{plan.text}"


def test_who_waits_for_a_pair_is_found_among_those_that_wait(database_url: str) -> None:
    """Each step asks for them: to look at all of a large manifest would cost more than its work."""

    def fill(tx: Tx) -> None:
        waits: Values = {
            "state": mostly("pending", "completed"),
            "parked_for": mostly("pair", ""),
            "blocked_by": seldom(lambda n: f"{n + 1:036d}"),
            "active_key": lambda n: None,
        }
        tx.insert(site.intents, list(filling(site.intents, _ROWS, waits)))

    async def story() -> None:
        async with opened(database_url) as database:
            await database.run(fill)

    asyncio.run(story())
    analyze(database_url, site.intents)
    (plan, *_) = plans_of(database_url, _NOW, steering.free_pairs, 100)
    assert not plan.scans, f"{plan.sql}\n{plan.text}"
    assert "ix_intents_blocked" in plan.text, f"{plan.sql}\n{plan.text}"
