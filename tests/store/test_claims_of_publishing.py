"""Claims of deliveries, commands and requests are found by an index, which gives their order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from dragoman.store.rows import executions, outbox, requests
from dragoman.store.schema import engine as engine_tables
from dragoman.store.schema import publishing as tables
from dragoman.store.transaction import Tx
from tests.doubles.databases import opened
from tests.doubles.plans import analyze, plans_of
from tests.flow.engine.outbox_rows import put_event
from tests.flow.publishing import press_rows

_FAR = 4_000_000_000_000_000
_ROWS = 250


def fill(tx: Tx) -> str:
    """Many rows that wait, for one manifest."""
    manifest = press_rows.add_manifest(tx, {"executor": "files:v1", "publish": "auto"})
    for number in range(_ROWS):
        put_event(tx, f"https://{number}.example/", number)
        press_rows.ask(tx, manifest, [f"{number:036d}"])
        plan_id = tx.new_id()
        executions.insert(
            tx,
            workspace="default",
            plan_id=plan_id,
            manifest_id=manifest,
            action="execute",
            direction="forward",
            steps=[(1, f"{number:036d}")],
            done={},
        )
    return manifest


def prepare(url: str) -> None:
    async def story() -> None:
        async with opened(url) as database:
            await database.run(fill)

    asyncio.run(story())
    analyze(url, engine_tables.outbox, tables.publication_requests, tables.publication_commands)


CLAIMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "deliveries": (outbox.claim, ("ada", 3), "outbox"),
    "commands": (executions.claim_commands, ("ada", 60, 3), "publication_commands"),
    "requests": (requests.claim, ("ada", 60, 3), "publication_requests"),
}


def test_claims_use_their_indexes_and_sort_nothing(database_url: str) -> None:
    """[T-074]"""
    prepare(database_url)
    for act, arguments, table in CLAIMS.values():
        claims = [
            plan
            for plan in plans_of(database_url, _FAR, act, *arguments)
            if f"{table}." in plan.sql and "ORDER BY" in plan.sql
        ]
        assert claims
        for plan in claims:
            assert not plan.scans, plan
            assert not plan.sorts, plan
