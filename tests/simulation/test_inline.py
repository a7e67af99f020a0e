"""The inline database keeps what the real one promises, and its faults are the real faults."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence

import pytest

from dragoman.kernel.clock import SystemClock
from dragoman.kernel.errors import CommitUnknown, StoreError
from dragoman.kernel.identity import SeededChance
from dragoman.store.engines import engine_of
from tests.simulation.inline import Fault, inline_database, memory
from tests.store.shelf import put, put_and_fail, put_once, shelf, titles


class Killed(BaseException):
    """As in the simulation: no handler may act after it."""


class Script:
    """Hooks that do what a test tells them."""

    def __init__(self, *, group: bool = False, faults: Sequence[Fault | None] = ()) -> None:
        self.group = group
        self.faults = list(faults)
        self.kill_before: str | None = None
        self.kill_after: str | None = None
        self.commits: list[list[str]] = []
        self.dead = False

    async def before(self, act: str) -> None:
        await asyncio.sleep(0)
        self._die_at(act == self.kill_before)

    async def after(self, act: str) -> None:
        await asyncio.sleep(0)
        self._die_at(act == self.kill_after)

    def check(self) -> None:
        if self.dead:
            raise Killed

    def shares(self, act: str) -> bool:
        return self.group

    def fault(self, acts: Sequence[str]) -> Fault | None:
        return self.faults.pop(0) if self.faults else None

    def committed(self, acts: Sequence[str]) -> None:
        self.commits.append(list(acts))

    def _die_at(self, now: bool) -> None:
        self.dead = self.dead or now
        self.check()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("inline") / "shelf.db"
    engine = engine_of(f"sqlite:///{path}")
    shelf.create_all(engine)
    engine.dispose()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=DELETE")
    try:
        return connection.serialize()
    finally:
        connection.close()


@pytest.fixture
def world(template: bytes) -> sqlite3.Connection:
    return memory(template)


def held(world: sqlite3.Connection) -> list[str]:
    return [title for (title,) in world.execute("SELECT title FROM books ORDER BY title")]


def test_an_act_is_committed_when_run_answers_and_undone_when_it_raises(world: sqlite3.Connection) -> None:
    async def story() -> list[str]:
        database = inline_database(world, SystemClock(), SeededChance(1), Script())
        await database.run(put, 1)
        with pytest.raises(KeyError):
            await database.run(put_and_fail, 2)
        with pytest.raises(StoreError):
            await database.read(put, 3)
        return await database.read(titles)

    assert asyncio.run(story()) == ["book 001"]


def test_acts_in_line_share_a_commit_and_fail_alone(world: sqlite3.Connection) -> None:
    script = Script(group=True)

    async def story() -> list[object]:
        database = inline_database(world, SystemClock(), SeededChance(1), script)
        acts = [database.run(put, 1), database.run(put_and_fail, 2), database.run(put, 3)]
        return [type(answer) for answer in await asyncio.gather(*acts, return_exceptions=True)]

    assert asyncio.run(story()) == [int, KeyError, int]
    assert script.commits == [["put", "put_and_fail", "put"]]
    assert held(world) == ["book 001", "book 003"]


@pytest.mark.parametrize("fault, stands", [("kept", True), ("undone", False)])
def test_a_lost_answer_is_unknown_and_a_repeatable_act_runs_again(
    world: sqlite3.Connection, fault: Fault, stands: bool
) -> None:
    async def story() -> str:
        database = inline_database(world, SystemClock(), SeededChance(1), Script(faults=[fault, fault]))
        with pytest.raises(CommitUnknown):
            await database.run(put, 1)
        assert held(world) == (["book 001"] if stands else [])
        return await database.run(put_once, 2)

    assert asyncio.run(story()) == ("same" if stands else "new")


def test_what_the_server_undid_runs_again(world: sqlite3.Connection) -> None:
    async def story() -> None:
        database = inline_database(world, SystemClock(), SeededChance(1), Script(faults=["deadlock"] * 3))
        await database.run(put, 1)
        assert database.tally.undone == 3

    asyncio.run(story())
    assert held(world) == ["book 001"]


def test_a_process_killed_before_a_transaction_leaves_nothing_and_after_it_everything(
    world: sqlite3.Connection,
) -> None:
    async def story(script: Script, number: int) -> None:
        database = inline_database(world, SystemClock(), SeededChance(1), script)
        with pytest.raises(Killed):
            await database.run(put, number)

    before, after = Script(), Script()
    before.kill_before = after.kill_after = "put"
    asyncio.run(story(before, 1))
    asyncio.run(story(after, 2))
    assert held(world) == ["book 002"]


def test_what_stood_in_line_when_the_process_was_killed_never_begins(world: sqlite3.Connection) -> None:
    script = Script(group=True)
    script.kill_before = "put_once"

    async def story() -> list[object]:
        database = inline_database(world, SystemClock(), SeededChance(1), script)
        tasks = [asyncio.ensure_future(act) for act in (database.run(put, 1), database.run(put_once, 2))]
        await asyncio.wait(tasks)
        return [type(task.exception()) for task in tasks]

    assert asyncio.run(story()) == [Killed, Killed]
    assert held(world) == []


def test_a_world_with_the_real_schema_is_made_in_no_time() -> None:
    for _ in range(20):
        connection = memory()
        (count,) = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()
        assert count > 20
        connection.close()
