"""Each step of the site is bounded in number and in time, at the seed's numbers and at ours."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.flow.site.preparation import Preparing
from dragoman.kernel import limits
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.offload import InlineOffload
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Tx
from tests.flow.site.scoped import SlowClock
from tests.flow.site.stage import Stage, catalogue, stage
from tests.simulation.bounds import bounded

LOCALES = ("de", "fr", "it", "es", "pl")
DOCUMENTS = {f"d{number:02}.json": catalogue(text=f"Text {number}") for number in range(24)}
PAIRS = [(name, locale) for name in DOCUMENTS for locale in LOCALES]


def states(tx: Tx) -> Counter[str]:
    """How many intents stand in each state."""
    return Counter(row.state for row in tx.all(sa.select(tables.intents.c.state)))


async def grown(site: Stage, step: Callable[[], Any], state: str) -> int:
    """How many intents more have left `pending`, or came to be, by one step."""
    before = await site.database.read(states)
    await step()
    after = await site.database.read(states)
    return after.total() - before.total() if state == "" else before[state] - after[state]


@pytest.mark.parametrize(
    ("prepared", "submitted"),
    [(8, 4), (limits.PREPARE_PER_STEP, limits.SUBMIT_PER_STEP)],
    ids=["seed", "ours"],
)
def test_no_step_takes_more_than_its_number(database_url: str, prepared: int, submitted: int) -> None:
    """[M-061, M-340] 100 pairs in one transaction of expansion, 8 (or 100) preparations and 4 submissions."""

    async def play() -> None:
        bounds = {"prepare_per_step": prepared, "submit_per_step": submitted}
        async with stage(database_url, DOCUMENTS, **bounds) as site:
            expansions = spied(site)
            await site.admit(PAIRS)
            await site.enumeration.step()
            assert expansions == [100, 20]
            steps = []
            while (await site.database.read(states))["pending"]:
                steps.append(await grown(site, site.preparing.step, "pending"))
            assert steps == [prepared] * (len(PAIRS) // prepared) + [
                rest for rest in [len(PAIRS) % prepared] if rest
            ]
            sent = [0]
            while await site.submitting.step():
                sent.append(len(site.engine.bodies))
            assert max(now - then for then, now in pairwise(sent)) == submitted
            assert sent[-1] == len(PAIRS) / 10

    with bounded({"ITEMS_PER_SUBMISSION": 10}):
        asyncio.run(play())


def spied(site: Stage) -> list[int]:
    """How many intents each expansion makes, from now on."""
    made: list[int] = []
    run = site.database.run

    async def watched(act: Any, *given: Any, **named: Any) -> Any:
        before = (await site.database.read(states)).total()
        answer = await run(act, *given, **named)
        if act.__name__ == "expand_next_pairs":
            made.append((await site.database.read(states)).total() - before)
        return answer

    site.database.run = watched  # type: ignore[method-assign,assignment]
    return made


def test_no_preparation_begins_after_twenty_five_seconds(database_url: str) -> None:
    """[M-062] the clock is looked at before each; what is left stays due."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            await site.admit(PAIRS)
            await site.enumeration.step()
            slow = Preparing(
                site.database, site.keeper, SlowClock(6.0), SystemChance(), InlineOffload(),
                lambda _: site.source, [JsonCatalogue()],
            )  # fmt: skip
            assert await slow.step() == 5  # at 0, 6, 12, 18 and 24 seconds
            counts = await site.database.read(states)
            assert (counts["prepared"], counts["pending"]) == (5, len(PAIRS) - 5)
            await site.step_all()
            assert (await site.database.read(states)) == {"queued": len(PAIRS)}

    asyncio.run(play())
