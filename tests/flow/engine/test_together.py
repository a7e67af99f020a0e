"""Calls that are at the same step at the same moment: one transaction for all, and an answer for each."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.flow.engine.world import Process, numbered, rehearsal, world

pytestmark = pytest.mark.anyio

ACTS = ("start_call", "settle_call", "close_call")
BOUND = 4_000


async def test_calls_that_begin_at_once_share_their_transactions(database_url: str) -> None:
    """Five calls of a job: three transactions around them instead of fifteen."""
    async with world(database_url, rehearsal()) as here:
        options = {"batch_size": 5, "concurrency": 5}
        accepted = await here.accept({"a": numbered(25)}, options=options)
        process = Process(here)
        assert await process.drain() == ["completed"]
        assert [process.life.names.count(f"before {act}") for act in ACTS] == [1, 1, 1]
        assert len(await here.rows("calls")) == len(await here.rows("ai_usage")) == 5
        assert len(await here.texts(accepted.job_id)) == 25
        await here.assert_money_is_true()


async def test_of_calls_that_begin_at_once_those_go_for_which_there_is_money(database_url: str) -> None:
    """A bound for three of five at their worst: the others wait until those have cost what they cost."""
    async with world(database_url, rehearsal(microusd_per_token=1)) as here:
        here.bounds = {"rehearsal": (None, BOUND)}
        options = {"batch_size": 5, "concurrency": 5}
        await here.accept({"a": numbered(25)}, options=options)
        await Process(here).drain()
        attempts = await here.rows("attempts")
        worst = sorted(row.reserved_microusd for row in attempts)
        assert sum(worst[-3:]) <= BOUND < sum(worst[:4]), worst
        assert sorted(Counter(row.started_at for row in attempts).values()) == [2, 3]
        assert len(await here.rows("calls")) == 5
        await here.assert_money_is_true()
