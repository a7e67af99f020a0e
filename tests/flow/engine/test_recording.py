"""When a job is marked, and how much of it may stand nowhere but in a worker's memory."""

from __future__ import annotations

import json

import pytest

from dragoman.kernel.limits import UNRECORDED_FIELDS_MAX
from tests.flow.engine.test_money import limit_month
from tests.flow.engine.world import Life, Process, numbered, rehearsal, world

pytestmark = pytest.mark.anyio


async def test_a_job_is_marked_by_its_claim_before_anything_of_it_is_loaded(database_url: str) -> None:
    """[J-036, J-037] One transaction: whoever looks before the texts are read sees it processing. The quota,
    which a job that the memory answers does not need, stands before the first call.
    """
    provider = rehearsal(microusd_per_token=1)
    async with world(database_url, provider) as here:
        await here.database.run(limit_month, 1)
        accepted = await here.accept({"a": {"t": "Hello"}})
        process = Process(here, Life(after=("before load_job", 1)))
        await process.drain_until_killed()
        assert process.life.names == ["before claim_job", "after claim_job", "before load_job"]
        assert (await here.view(accepted.job_id))["status"] == "processing"
        await here.abandon()
        assert await Process(here).drain() == ["parked"]
        view = await here.view(accepted.job_id)
        assert (view["status"], view["parked_for"]) == ("queued", "budget")
        assert not provider.calls


async def test_no_call_carries_more_fields_than_may_stand_unrecorded(database_url: str) -> None:
    """[J-042] Fifty, whatever size was asked for; they are recorded in the transaction of their answer."""
    async with world(database_url) as here:
        options = {"batch_size": 200, "concurrency": 1}
        items = {"a": numbered(60, "Go"), "b": numbered(60, "Run")}
        accepted = await here.accept(items, options=options)
        await Process(here, Life(after=("after close_call", 1))).drain_until_killed()
        halfway = await here.view(accepted.job_id)
        assert halfway["done_fields"] == UNRECORDED_FIELDS_MAX == 50
        await here.abandon()
        assert await Process(here).drain() == ["completed"]
        sizes = [len(json.loads(row.asked)) for row in await here.rows("calls")]
        assert sorted(sizes) == [20, 50, 50]
