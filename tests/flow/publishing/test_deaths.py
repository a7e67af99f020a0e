"""Every instant at which a publishing process can die: before and after each of its transactions."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.store.database import Database
from tests.flow.publishing import press_rows
from tests.flow.publishing.press import Killed, Press, press

_POINTS_MAX = 200


class Mortal:
    """The database of a process that dies at its n-th point: one before and one after each transaction."""

    def __init__(self, database: Database, dies_at: int) -> None:
        self._database = database
        self._dies_at = dies_at
        self.passed = 0

    def now(self) -> int:
        return self._database.now()

    async def run(self, act: Callable[..., Any], *args: Any) -> Any:
        self._point()
        result = await self._database.run(act, *args)
        self._point()
        return result

    async def read(self, look: Callable[..., Any], *args: Any) -> Any:
        return await self._database.read(look, *args)

    def _point(self) -> None:
        if self.passed == self._dies_at:
            raise Killed
        self.passed += 1


async def round_trip(here: Press) -> None:
    """Work whatever is due, as one process."""
    while await here.planning.step() + await here.executing.step():
        pass


async def lives(here: Press, dies_at: int) -> bool:
    """One process that dies at that point, and the next one; whether the first one got there."""
    mortal = Mortal(here.database, dies_at)
    here.start("host/boot/1/1", mortal)
    try:
        await round_trip(here)
    except Killed:
        died = True
    else:
        died = False
    here.start("host/boot/2/2")
    await here.database.run(press_rows.end_leases)
    await round_trip(here)
    return died


def played(url: str, root: Path, dies_at: int, dies_back_at: int) -> tuple[bool, bool]:
    """Publish three documents and take them back; each half with one death. What must hold, holds."""

    async def play() -> tuple[bool, bool]:
        async with press(url, root) as here:
            await here.database.run(press_rows.forget_everything)
            for name in "ab":
                here.put_catalogue(f"{name}.json", hello="Hello", bye="Bye")
            here.put("c.md", "# Hello\n\nA paragraph.\n")
            here.put_catalogue("fr/b.json", bye="Adieu")
            before = here.tree()
            manifest = await here.manifest()
            partly = await here.settle(manifest, "b.json", failed=list(here.results("b.json"))[1:])
            intents = [await here.settle(manifest, "a.json"), partly, await here.settle(manifest, "c.md")]
            await here.database.run(press_rows.ask, manifest, intents)
            died = await lives(here, dies_at)
            assert here.texts("fr/a.json") == {"hello": "«fr» Hello", "bye": "«fr» Bye"}
            assert here.texts("fr/b.json") == {"hello": "«fr» Hello", "bye": "Adieu"}
            assert "«fr» A paragraph." in (here.root / "fr/c.md").read_text()
            block = await here.block(manifest)
            assert (block["state"], block["written"], block["steps"]) == ("in_place", 5, {"succeeded": 3})
            assert len(await here.rows("plans")) == 1
            assert len(await here.rows("entries")) == 5
            await here.revert(manifest)
            died_back = await lives(here, dies_back_at)
            assert here.tree() == before
            assert await here.rows("entries") == []
            assert (await here.block(manifest))["state"] == "reverted"
            await settled(here)
            return died, died_back

    return asyncio.run(play())


async def settled(here: Press) -> None:
    """Nothing is half-way: every command has ended, every effect is done, every attempt has its outcome."""
    assert {row.state for row in await here.rows("commands")} == {"DELIVERED"}
    assert {row.state for row in await here.rows("effects")} == {"SUCCEEDED"}
    assert "STARTED" not in {row.outcome for row in await here.rows("attempts")}


def test_wherever_a_process_dies_the_next_one_ends_what_it_began(sqlite_url: str, tmp_path: Path) -> None:
    """[T-005, T-021, T-038, T-041, T-049, T-073]"""
    for point in itertools.count():
        died, died_back = played(sqlite_url, tmp_path / f"{point}", point, point)
        if not died and not died_back:
            break
    assert 12 < point < _POINTS_MAX
