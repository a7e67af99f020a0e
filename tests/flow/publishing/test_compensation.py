"""Taking back: in reverse, exactly, and only where the target still holds what was written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.kernel.errors import CallerError
from dragoman.kernel.identity import SystemChance
from dragoman.model.effects import Answer
from dragoman.model.scopes import System, Workspace
from dragoman.store.acts import compensating
from dragoman.store.transaction import Tx
from tests.flow.publishing import press_rows
from tests.flow.publishing.press import HERE, Killed, Press, press


async def two_documents(here: Press) -> str:
    """A manifest in place: one target was there before, the other was not."""
    here.put_catalogue("a.json", hello="Hello", bye="Bye")
    here.put_catalogue("b.json", hello="Hello")
    here.put_catalogue("fr/a.json", bye="Adieu")
    manifest = await here.manifest()
    first = await here.settle(manifest, "a.json", failed=list(here.results("a.json"))[1:])
    await here.publish(manifest, first, await here.settle(manifest, "b.json"))
    assert (await here.block(manifest))["written"] == 2
    return manifest


def test_reverting_restores_every_byte_in_reverse_order_and_removes_what_was_not_there(
    database_url: str, tmp_path: Path
) -> None:
    """[T-003, T-044, T-069] as an execution of its own."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await two_documents(here)
            before = {"a.json", "b.json", "fr/a.json"}
            here.files.ran.clear()
            [made] = await here.revert(manifest)
            assert here.files.ran == []
            await here.work()
            assert here.files.order == ["fr/b.json", "fr/a.json"]
            assert set(here.tree()) == before
            assert here.texts("fr/a.json") == {"bye": "Adieu"}
            last = (await here.rows("executions"))[-1]
            assert (last.id, last.action, last.state) == (made, "compensate", "SUCCEEDED")
            assert await here.rows("entries") == [], "nothing was on record before"
            block = await here.block(manifest)
            assert (block["state"], block["written"], block["problems"]) == ("reverted", 0, [])
            with pytest.raises(CallerError) as again:
                await here.revert(manifest)
            assert again.value.code == "already_ended"
            assert [row.action for row in await here.rows("history") if row.kind == "audit"] == ["revert"]

    asyncio.run(play())


def test_what_was_on_record_before_is_on_record_again(database_url: str, tmp_path: Path) -> None:
    """So the text of an earlier publication is ours again, and not taken for a person's."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello")
            here.put("b.md", "# Hello\n\nA paragraph.\n")
            first = await here.manifest()
            await here.publish(first, *[await here.settle(first, name) for name in ("a.json", "b.md")])
            known, tree = await here.rows("entries"), here.tree()
            here.put_catalogue("a.json", hello="Hello again")
            here.put("b.md", "# Hello again\n\nA paragraph.\n\nAnd one more.\n")
            second = await here.manifest()
            await here.publish(second, *[await here.settle(second, name) for name in ("a.json", "b.md")])
            assert (await here.block(second))["state"] == "in_place"
            await here.revert(second)
            await here.work()
            again = [row._asdict() | {"updated_at": 0} for row in await here.rows("entries")]
            assert again == [row._asdict() | {"updated_at": 0} for row in known]
            assert {path: here.tree()[path] for path in ("fr/a.json", "fr/b.md")} == {
                path: tree[path] for path in ("fr/a.json", "fr/b.md")
            }
            assert (await here.block(first))["state"] == "in_place"

    asyncio.run(play())


def test_what_a_person_changed_since_is_left_alone_and_listed(database_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await two_documents(here)
            here.put_catalogue("fr/b.json", hello="Salut, de ma main")
            await here.revert(manifest)
            await here.work()
            assert here.texts("fr/a.json") == {"bye": "Adieu"}
            assert here.texts("fr/b.json") == {"hello": "Salut, de ma main"}
            block = await here.block(manifest)
            assert block["state"] == "failed"
            [problem] = block["problems"]
            assert (problem["target"], problem["state"], problem["code"]) == (
                "fr/b.json",
                "conflict",
                "target_conflict",
            )

    asyncio.run(play())


class LateClock(SystemChance):
    """Ids of hosts whose clocks disagree: what is made later sorts before."""

    def __init__(self) -> None:
        self._count = 0

    def new_id(self) -> str:
        self._count += 1
        return f"{0xFFFFFFFF - self._count:08x}{super().new_id()[8:]}"


@pytest.mark.parametrize("chance", [SystemChance(), LateClock()], ids=["clocks agree", "clocks disagree"])
def test_the_plans_of_a_manifest_are_taken_back_newest_first(
    database_url: str, tmp_path: Path, chance: SystemChance
) -> None:
    """A later plan wrote on top of an earlier one: its turn comes first, whoever claims what."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site", chance=chance) as here:
            here.put_catalogue("a.json", hello="Hello", bye="Bye")
            manifest = await here.manifest()
            bye = list(here.results("a.json"))[1]
            intent = await here.settle(manifest, "a.json", failed=[bye])
            await here.publish(manifest, intent)
            await here.database.run(press_rows.put_results, intent, {bye: here.results("a.json")[bye]})
            await here.publish(manifest, intent)
            assert here.texts("fr/a.json") == {"hello": "«fr» Hello", "bye": "«fr» Bye"}
            assert [row.steps for row in await here.rows("plans")] == [1, 1]
            newest, oldest = await here.revert(manifest)
            await here.database.run(press_rows.put_off, newest)
            await here.work()
            assert "fr/a.json" in here.tree(), "the older plan waits for its turn"
            [command] = [row for row in await here.rows("commands") if row.execution_id == oldest]
            assert (command.state, command.deliveries_without_progress) == ("PENDING", 0)
            await here.later()
            await here.later()
            assert set(here.tree()) == {"a.json"}
            assert (await here.block(manifest))["state"] == "reverted"

    asyncio.run(play())


class Broken(Exception):
    """The database fails at this point."""


def revert_and_break(tx: Tx) -> None:
    assert compensating.go_on_reverting(tx, System(), "host/boot/8/8") == 1
    raise Broken


async def five_plans(here: Press) -> str:
    """A manifest whose five documents were published one by one."""
    manifest = await here.manifest()
    for name in "abcde":
        here.put_catalogue(f"{name}.json", hello=f"Hello {name}")
        await here.publish(manifest, await here.settle(manifest, f"{name}.json"))
    here.files.ran.clear()
    return manifest


async def take_turns(here: Press) -> None:
    """Work until nothing waits for what is newer."""
    while any(command.state == "PENDING" for command in await here.rows("commands")):
        await here.later()


def test_a_revert_goes_by_pages_of_plans_wherever_its_worker_dies(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest first; while it is on its way it says so, and what is published meanwhile is not its affair.
    The newest two have nothing in place, and are passed over.
    """
    monkeypatch.setattr(compensating, "REVERT_PLANS", 2)

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await five_plans(here)
            for plan in (await here.rows("executions"))[3:]:
                await here.database.run(compensating.compensate_execution, HERE, plan.id, "mia")
            await take_turns(here)
            here.files.ran.clear()
            assert len(await here.revert(manifest)) == 2
            assert [row.direction for row in await here.rows("requests") if row.state == "pending"] == [
                "backward"
            ]
            await take_turns(here)
            assert here.files.order == ["fr/c.json", "fr/b.json"]
            assert (await here.block(manifest))["state"] == "queued"
            with pytest.raises(Broken):
                await here.database.run(revert_and_break)
            late = await here.settle(manifest, "e.json", "de")
            await here.publish(manifest, late)
            assert await here.planning.revert_step() == 1
            assert await here.planning.revert_step() == 0
            await here.work()
            assert here.files.order == ["fr/c.json", "fr/b.json", "de/e.json", "fr/a.json"]
            assert set(here.tree()) == {*(f"{name}.json" for name in "abcde"), "de/e.json"}
            assert not [row for row in await here.rows("requests") if row.state == "pending"]
            assert (await here.block(manifest))["state"] == "in_place"
            assert len(await here.revert(manifest)) == 1

    asyncio.run(play())


def test_a_revert_under_way_waits_for_a_plan_at_work_and_no_cancel_ends_it(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for once more, it begins anew; a page holds as many plans as its steps allow."""
    monkeypatch.setattr(compensating, "REVERT_STEPS", 2)

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await five_plans(here)
            oldest = (await here.rows("executions"))[0]
            assert len(await here.revert(manifest)) == 2
            with pytest.raises(CallerError) as refused:
                await here.revert(manifest)
            assert refused.value.code == "lease_held"
            await take_turns(here)
            assert len(await here.revert(manifest)) == 2
            back = await here.database.run(compensating.compensate_execution, HERE, oldest.id, "mia")
            await here.database.run(press_rows.cancel, manifest)
            assert await here.planning.revert_step() == 1
            assert await here.planning.revert_step() == 0, "the oldest plan is at work: in a while"
            await take_turns(here)
            assert await here.planning.revert_step() == 1
            assert await here.planning.revert_step() == 0
            backwards = [row.id for row in await here.rows("executions") if row.direction == "backward"]
            assert len(backwards) == 5
            assert back in backwards
            assert set(here.tree()) == {f"{name}.json" for name in "abcde"}
            assert (await here.block(manifest))["state"] == "reverted"

    asyncio.run(play())


def test_what_waits_to_be_published_is_ended_by_a_revert(database_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await two_documents(here)
            late = await here.settle(manifest, "b.json", "de")
            await here.database.run(press_rows.ask, manifest, [late])
            await here.revert(manifest)
            await here.work()
            assert await here.planning.step() == 0
            assert set(here.tree()) == {"a.json", "b.json", "fr/a.json"}
            assert (await here.block(manifest))["state"] == "reverted"

    asyncio.run(play())


def test_nothing_is_reverted_while_it_is_being_published(database_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await two_documents(here)
            await here.plan(manifest, await here.settle(manifest, "b.json", "de"))
            with pytest.raises(CallerError) as refused:
                await here.revert(manifest)
            assert refused.value.code == "lease_held"
            assert {row.action for row in await here.rows("executions")} == {"execute"}
            with pytest.raises(CallerError) as foreign:
                await here.database.run(compensating.revert, Workspace("other"), manifest, "eve")
            assert foreign.value.code == "not_found"

    asyncio.run(play())


def test_a_compensation_that_dies_after_its_write_is_repeated_without_harm(
    database_url: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await two_documents(here)
            for path in ("fr/b.json", "fr/a.json"):
                here.files.after[path] = Killed()
            await here.revert(manifest)
            with pytest.raises(Killed):
                await here.work()
            with pytest.raises(Killed):
                await here.after_the_lease("host/boot/2/2")
            await here.after_the_lease("host/boot/3/3")
            assert set(here.tree()) == {"a.json", "b.json", "fr/a.json"}
            assert here.texts("fr/a.json") == {"bye": "Adieu"}
            assert (await here.block(manifest))["state"] == "reverted"

    asyncio.run(play())


def test_after_a_partial_run_only_what_was_written_is_taken_back(database_url: str, tmp_path: Path) -> None:
    """[T-069] and a compensation that fails is retried in its own direction."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            for name in "abc":
                here.put_catalogue(f"{name}.json", hello="Hello")
            manifest = await here.manifest()
            intents = [await here.settle(manifest, f"{name}.json") for name in "abc"]
            here.files.before["fr/c.json"] = Answer("REJECTED", code="target_refused", message="full")
            await here.publish(manifest, *intents)
            [failed] = await here.rows("executions")
            here.files.ran.clear()
            here.files.before["fr/a.json"] = Answer("REJECTED", code="target_refused", message="read-only")
            made = await here.database.run(compensating.compensate_execution, HERE, failed.id, "mia")
            await here.work()
            assert here.files.order == ["fr/b.json", "fr/a.json"]
            assert set(here.tree()) == {"a.json", "b.json", "c.json", "fr/a.json"}
            await here.database.run(compensating.retry_execution, HERE, made, "mia")
            await here.work()
            assert here.files.order == ["fr/b.json", "fr/a.json", "fr/a.json"]
            assert set(here.tree()) == {"a.json", "b.json", "c.json"}
            assert [row.action for row in await here.rows("executions")] == ["execute", "compensate", "retry"]

    asyncio.run(play())


def test_a_file_that_cannot_be_taken_back_stops_no_other(database_url: str, tmp_path: Path) -> None:
    """It alone is left, the compensation says so, and a retry takes up that file only."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            for name in "abc":
                here.put_catalogue(f"{name}.json", hello="Hello")
            manifest = await here.manifest()
            await here.publish(manifest, *[await here.settle(manifest, f"{name}.json") for name in "abc"])
            here.files.ran.clear()
            here.files.before["fr/b.json"] = Answer("REJECTED", code="target_refused", message="read-only")
            await here.database.run(compensating.revert, HERE, manifest, "mia")
            await here.work()
            assert here.files.order == ["fr/c.json", "fr/b.json", "fr/a.json"]
            assert set(here.tree()) == {"a.json", "b.json", "c.json", "fr/b.json"}
            back = (await here.rows("executions"))[-1]
            assert (back.state, back.error_code, back.error_message) == (
                "FAILED",
                "target_refused",
                "read-only",
            )
            await here.database.run(compensating.retry_execution, HERE, back.id, "mia")
            await here.work()
            assert here.files.order[3:] == ["fr/b.json"]
            assert set(here.tree()) == {"a.json", "b.json", "c.json"}
            assert (await here.rows("executions"))[-1].state == "SUCCEEDED"

    asyncio.run(play())


def test_two_who_compensate_at_once_make_one_execution(database_url: str, tmp_path: Path) -> None:
    """[T-018] one open execution a plan."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await two_documents(here)
            [done] = await here.rows("executions")
            ended = await asyncio.gather(
                *(
                    here.database.run(compensating.compensate_execution, HERE, done.id, "mia")
                    for _ in range(5)
                ),
                return_exceptions=True,
            )
            refused = [outcome for outcome in ended if isinstance(outcome, CallerError)]
            assert [error.code for error in refused] == ["lease_held"] * 4
            assert len(await here.rows("executions")) == 2
            assert len(await here.rows("commands")) == 2

    asyncio.run(play())
