"""What a manifest's status follows from, in which order; and that a manifest ends once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.model.scopes import Workspace
from dragoman.store.acts import steering, viewing
from dragoman.store.rows import shards
from dragoman.store.transaction import Row
from tests.doubles.engines import event
from tests.flow.site.rows import manifest_row
from tests.flow.site.stage import catalogue, stage

PAIRS = [("a.json", "de"), ("a.json", "fr")]
DOCUMENTS = {"a.json": catalogue(hello="Hello")}
GAP = '[{"collection": "posts"}]'


@pytest.mark.parametrize(
    ("row", "numbers", "status"),
    [
        ({"phase": "ended", "canceled": True}, {"failed": 1}, "canceled"),
        ({"phase": "ended"}, {"completed": 2}, "completed"),
        ({"phase": "ended"}, {"skipped": 1, "protected": 1}, "completed"),
        ({"phase": "ended"}, {}, "completed"),
        ({"phase": "ended"}, {"completed": 1, "failed": 1}, "failed"),
        ({"phase": "ended", "gaps": GAP}, {"completed": 1}, "failed"),
        ({"phase": "ended", "paused": True}, {"completed": 1}, "completed"),
        ({"phase": "open"}, {"processing": 1, "queued": 1, "preparing": 1}, "processing"),
        ({"phase": "open"}, {"queued": 1, "preparing": 1, "failed": 1}, "queued"),
        ({"phase": "open"}, {"preparing": 1, "completed": 1}, "preparing"),
        ({"phase": "enumerating"}, {"completed": 1}, "preparing"),
        ({"phase": "open", "canceled": True}, {"queued": 1, "skipped": 1}, "queued"),
        ({"phase": "open", "paused": True}, {"processing": 1}, "paused"),
    ],
)
def test_the_status_is_derived_in_one_order(
    row: dict[str, Any], numbers: dict[str, int], status: str
) -> None:
    """[M-178] [M-186] canceled, completed, failed, processing, queued, preparing; a pause lies over them."""
    manifest = cast(Row, SimpleNamespace(**{"canceled": False, "paused": False, "gaps": None, **row}))
    counts = dict.fromkeys(("failed", "processing", "queued", "preparing"), 0) | numbers
    assert viewing.derived_status(manifest, counts) == status


def test_a_manifest_ends_once(database_url: str) -> None:
    """Whoever recounts it afterwards ends nothing, and its end does not move."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.step_all()
            [body] = site.engine.submissions()
            await site.deliver(event(body, "job-1"))
            ended = await site.database.read(manifest_row, manifest)
            assert ended.completed_at is not None
            assert await site.database.run(shards.recount, manifest, [0]) is False
            again = await site.database.read(manifest_row, manifest)
            assert (again.completed_at, again.updated_at) == (ended.completed_at, ended.updated_at)

    asyncio.run(play())


@pytest.mark.parametrize("prepared", [False, True])
def test_a_cancel_stops_everybody_though_its_process_died_at_once(database_url: str, prepared: bool) -> None:
    """Before it emptied a shard: nothing is prepared or sent, and the next process empties them."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.enumeration.step()
            if prepared:
                await site.preparing.step()
            assert await site.database.run(steering.cancel_manifest, Workspace("default"), manifest, "mia")
            assert [await site.preparing.step(), await site.submitting.step()] == [0, 0]
            assert await site.counts(manifest) == {"preparing": 2}
            assert site.engine.bodies == []

    asyncio.run(play())
