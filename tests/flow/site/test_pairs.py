"""One intent at a time works on a pair; the others wait for it, are told so, and then do their own work."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.doubles.engines import event
from tests.flow.site.stage import Stage, catalogue, stage

PAIR = [("a.json", "de")]
DOCUMENTS = {"a.json": catalogue(hello="Hello")}


async def last_body(site: Stage, submissions: int) -> dict[str, Any]:
    """All that is due is worked; so many submissions were sent by now, of which this is the last."""
    await site.step_all()
    bodies: list[dict[str, Any]] = site.engine.submissions()
    assert len(bodies) == submissions
    return bodies[-1]


async def reasons(site: Stage, manifest_id: str) -> list[str]:
    """What the open intents of a manifest wait for."""
    return [item["reason"] for item in (await site.views.waiting("default", manifest_id))["items"]]


def test_those_who_wait_for_one_pair_take_turns(database_url: str) -> None:
    """[M-069, M-074, C-069] whoever comes next has the pair, and the others wait for that one."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            waiting = [(await site.admit(PAIR, f"r-{number}")).manifest_id for number in range(3)]
            for turn in range(1, 4):
                body = await last_body(site, turn)
                waiting.remove(body["clientJobId"])
                assert [await reasons(site, one) for one in waiting] == [["waiting_pair"]] * len(waiting)
                await site.deliver(event(body, f"job-{turn}"), f"d-{turn}")
                assert await site.counts(body["clientJobId"]) == {"completed": 1}
            assert waiting == []

    asyncio.run(play())


def test_a_retry_whose_pair_is_taken_waits_for_it(database_url: str) -> None:
    """[M-069, M-253] it is opened all the same, and tried once the other has ended."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            first = (await site.admit(PAIR, "r-1")).manifest_id
            body = await last_body(site, 1)
            await site.deliver(event(body, "job-1", fail={body["items"][0]["ref"]: "checks_failed"}))
            second = (await site.admit(PAIR, "r-2")).manifest_id
            other = await last_body(site, 2)
            assert other["clientJobId"] == second
            assert await site.steering.retry("default", first, "mia") == 1
            await last_body(site, 2)
            assert await site.counts(first) == {"preparing": 1}
            assert await reasons(site, first) == ["waiting_pair"]
            await site.deliver(event(other, "job-2"), "d-2")
            again = await last_body(site, 3)
            assert [item["ref"].rsplit(":", 1)[1] for item in again["items"]] == ["g2"]
            await site.deliver(event(again, "job-3"), "d-3")
            assert await site.counts(first) == {"completed": 1}

    asyncio.run(play())
