"""From settled intents to a frozen plan with its execution, in one transaction, with nobody called."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.kernel import limits
from dragoman.kernel.errors import LeaseLost
from dragoman.model.publications import PlannedStep, PlanningWork, Postponed
from dragoman.store.acts import planning
from dragoman.store.transaction import Tx
from tests.flow.publishing import press_rows
from tests.flow.publishing.press import press


def test_what_is_settled_becomes_a_plan_an_execution_its_steps_in_order_and_one_command(
    database_url: str, tmp_path: Path
) -> None:
    """[T-001, T-002, T-017, T-019, T-066] and no executor is called."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            for name in "cab":
                here.put_catalogue(f"{name}.json", hello="Hello")
            manifest = await here.manifest()
            intents = [
                await here.settle(manifest, f"{name}.json", lc) for name in "cab" for lc in ("fr", "de")
            ]
            await here.plan(manifest, *intents)
            [plan] = await here.rows("plans")
            assert (plan.steps, plan.executor) == (6, "files:v1")
            planned = await here.rows("plan_steps")
            assert [(row.ordinal, row.target) for row in planned] == [
                (1, "de/a.json"),
                (2, "fr/a.json"),
                (3, "de/b.json"),
                (4, "fr/b.json"),
                (5, "de/c.json"),
                (6, "fr/c.json"),
            ]
            assert await here.states() == (["QUEUED"], ["PENDING"] * 6, ["PENDING"])
            [request] = await here.rows("requests")
            assert (request.state, request.plan_id) == ("planned", plan.id)
            assert here.files.ran == []
            assert (await here.block(manifest))["state"] == "queued"

    asyncio.run(play())


class Broken(Exception):
    """The database fails at this point."""


def write_and_break(tx: Tx, work: PlanningWork, steps: list[PlannedStep], postponed: list[Postponed]) -> None:
    planning.write_plan(tx, work, steps, postponed)
    raise Broken


def test_a_failure_before_the_commit_leaves_nothing_and_the_request_is_planned_again(
    database_url: str, tmp_path: Path
) -> None:
    """[T-013, T-021, T-065]"""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello")
            manifest = await here.manifest()
            intent = await here.settle(manifest, "a.json")
            await here.database.run(press_rows.ask, manifest, [intent])
            work = await here.database.run(planning.claim_requests, "host/boot/9/9", 60)
            assert work is not None
            with pytest.raises(Broken):
                await here.database.run(write_and_break, work, [], [])
            for name in ("plans", "plan_steps", "executions", "steps", "commands"):
                assert await here.rows(name) == []
            assert await here.planning.step() == 0, "a live lease is nobody else's"
            await here.database.run(press_rows.end_leases)
            assert await here.planning.step() == 1
            with pytest.raises(LeaseLost):
                await here.database.run(planning.write_plan, work, [], [])
            assert len(await here.rows("plans")) == 1

    asyncio.run(play())


def test_the_requests_of_one_manifest_are_planned_together_and_those_of_another_apart(
    database_url: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello")
            mine, other = await here.manifest(), await here.manifest()
            for locale in ("fr", "de"):
                intent = await here.settle(mine, "a.json", locale)
                await here.database.run(press_rows.ask, mine, [intent])
            intent = await here.settle(other, "a.json", "it")
            await here.database.run(press_rows.ask, other, [intent])
            assert [await here.planning.step(), await here.planning.step()] == [2, 1]
            assert [(row.manifest_id, row.steps) for row in await here.rows("plans")] == [
                (mine, 2),
                (other, 1),
            ]

    asyncio.run(play())


def test_a_request_for_more_than_one_plan_holds_is_planned_bit_by_bit(
    database_url: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello")
            manifest = await here.manifest()
            for n in range(limits.PLAN_INTENTS_MAX + 3):
                here.put_catalogue(f"d{n:03d}.json", hello="Hello")
            intents = [
                await here.settle(manifest, f"d{n:03d}.json") for n in range(limits.PLAN_INTENTS_MAX + 3)
            ]
            await here.database.run(press_rows.ask, manifest, intents)
            while await here.planning.step():
                pass
            plans = await here.rows("plans")
            assert [plan.steps for plan in plans] == [limits.PLAN_INTENTS_MAX, 3]
            assert {row.intent_id for row in await here.rows("plan_steps")} == set(intents)
            [request] = await here.rows("requests")
            assert (request.state, request.plan_id) == ("planned", plans[1].id)

    asyncio.run(play())


@pytest.mark.parametrize("settled", [4, 5])
def test_a_request_for_all_goes_through_the_manifest_by_plans_wherever_its_worker_dies(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: int
) -> None:
    """What has settled is planned once, at most a plan's worth in a transaction, and so is what settles while
    it goes through them, by whatever clock; what is named beside it is planned apart.
    """
    monkeypatch.setattr(planning, "PLAN_INTENTS_MAX", 2)

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            for name in "abcdefg":
                here.put_catalogue(f"{name}.json", hello="Hello", bye="Bye")
            manifest = await here.manifest()
            failed = await here.settle(manifest, "a.json", failed=["bye"])
            meant = [
                failed,
                *[await here.settle(manifest, f"{name}.json") for name in "bcdef"[: settled - 1]],
            ]
            reopened = await here.settle(manifest, "g.json", "it")
            await here.database.run(press_rows.reopen, reopened, "pending")
            await here.database.run(press_rows.ask_for_all, manifest)
            await here.database.run(press_rows.set_clock_back)
            late = await here.settle(manifest, "g.json")
            pages = [2, 2, 2] if settled == 5 else [2, 2, 1]
            for done in range(len(pages)):
                work = await here.database.run(planning.claim_requests, "host/boot/9/9", 60)
                assert work is not None
                assert len(work.intent_ids) == pages[done]
                with pytest.raises(Broken):
                    await here.database.run(write_and_break, work, [], [])
                await here.database.run(press_rows.end_leases)
                assert (await here.block(manifest))["state"] == "queued"
                if done == 0:
                    await here.database.run(press_rows.ask, manifest, [failed])
                assert await here.planning.step() == pages[done]
                with pytest.raises(LeaseLost):
                    await here.database.run(planning.write_plan, work, [], [])
                if done == 0:
                    assert await here.planning.step() == 1, "what is named has its turn between the pages"
            assert await here.planning.step() == 0
            planned = [row.intent_id for row in await here.rows("plan_steps")]
            assert sorted(planned) == sorted([*meant, late, failed])
            assert sorted(plan.steps for plan in await here.rows("plans")) == sorted([*pages, 1])
            assert [row.state for row in await here.rows("requests")] == ["planned"] * 2
            await here.work()
            assert (await here.block(manifest))["state"] == "in_place"
            assert here.texts("fr/a.json") == {"hello": "«fr» Hello"}

    asyncio.run(play())


def test_a_request_for_all_ends_with_what_is_taken_back(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "PLAN_INTENTS_MAX", 2)

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await here.manifest()
            for name in "abc":
                here.put_catalogue(f"{name}.json", hello="Hello")
                await here.settle(manifest, f"{name}.json")
            await here.database.run(press_rows.ask_for_all, manifest)
            assert await here.planning.step() == 2
            await here.work()
            await here.revert(manifest)
            assert await here.planning.step() == 0
            await here.work()
            assert (await here.block(manifest))["state"] == "reverted"

    asyncio.run(play())


def test_a_source_that_cannot_be_read_keeps_nothing_else_waiting_and_is_asked_for_again(
    database_url: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            for name in "ab":
                here.put_catalogue(f"{name}.json", hello="Hello")
            manifest = await here.manifest()
            intents = [await here.settle(manifest, f"{name}.json") for name in "ab"]
            here.away.add("a.json")
            await here.publish(manifest, *intents)
            assert here.texts("fr/b.json") == {"hello": "«fr» Hello"}
            waiting = [row for row in await here.rows("requests") if row.state == "pending"]
            assert [(row.attempt_count, row.error_code) for row in waiting] == [(1, "source_unavailable")]
            assert (await here.block(manifest))["state"] == "queued"
            here.away.clear()
            await here.database.run(press_rows.make_due)
            assert await here.planning.step() == 1
            await here.work()
            assert here.texts("fr/a.json") == {"hello": "«fr» Hello"}
            assert (await here.block(manifest))["state"] == "in_place"

    asyncio.run(play())


def test_after_five_tries_a_source_that_stays_away_is_reported(database_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello")
            manifest = await here.manifest()
            intent = await here.settle(manifest, "a.json")
            here.away.add("a.json")
            await here.plan(manifest, intent)
            for _ in range(limits.RETRIES_PER_GENERATION - 1):
                await here.database.run(press_rows.make_due)
                assert await here.planning.step() == 1
            await here.database.run(press_rows.make_due)
            assert await here.planning.step() == 0
            block = await here.block(manifest)
            assert block["state"] == "failed"
            [problem] = block["problems"]
            assert (problem["intent_id"], problem["code"]) == (intent, "source_unavailable")

    asyncio.run(play())


def test_of_a_failed_intent_a_catalogue_gets_what_is_good_and_a_whole_file_waits(
    database_url: str, tmp_path: Path
) -> None:
    """`partial: never` writes nothing of either."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello", bye="Good bye")
            here.put("b.md", "# Hello\n\nGood bye.\n")
            careful, manifest = await here.manifest(partial="never"), await here.manifest()
            for asked in (careful, manifest):
                catalogue = await here.settle(asked, "a.json", failed=list(here.results("a.json"))[1:])
                [first, *_] = here.results("b.md")
                prose = await here.settle(asked, "b.md", failed=[first])
                await here.publish(asked, catalogue, prose)
                if asked == careful:
                    assert set(here.tree()) == {"a.json", "b.md"}
            assert here.texts("fr/a.json") == {"hello": "«fr» Hello"}
            assert "fr/b.md" not in here.tree()

    asyncio.run(play())


def test_an_intent_that_was_opened_again_is_left_to_its_own_end(database_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello")
            manifest = await here.manifest()
            intent = await here.settle(manifest, "a.json")
            await here.database.run(press_rows.reopen, intent, "pending")
            await here.publish(manifest, intent)
            assert here.files.ran == []

    asyncio.run(play())


def test_what_is_in_place_is_not_written_again_and_a_plan_of_no_steps_succeeds(
    database_url: str, tmp_path: Path
) -> None:
    """[T-037] in its first delivery."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello")
            manifest = await here.manifest()
            intent = await here.settle(manifest, "a.json")
            await here.publish(manifest, intent)
            await here.publish(manifest, intent)
            assert [row.steps for row in await here.rows("plans")] == [1, 0]
            executions, steps, commands = await here.states()
            assert (executions, steps, commands) == (["SUCCEEDED"] * 2, ["SUCCEEDED"], ["DELIVERED"] * 2)
            assert [row.delivery_count for row in await here.rows("commands")] == [1, 1]
            assert len(here.files.ran) == 1
            assert (await here.block(manifest))["state"] == "in_place"

    asyncio.run(play())


def test_a_document_without_a_target_is_reported_and_leaves_nothing_durable_behind(
    database_url: str, tmp_path: Path
) -> None:
    """[T-016, T-020] identities are resolved when the plan is made: a link out of the tree is none."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            for name in "ab":
                here.put_catalogue(f"{name}.json", hello="Hello")
            manifest = await here.manifest()
            (here.root / "de").symlink_to(tmp_path, target_is_directory=True)
            intents = [
                await here.settle(manifest, "a.json", "de"),
                await here.settle(manifest, "b.json", "fr"),
            ]
            await here.publish(manifest, *intents)
            assert here.files.order == ["fr/b.json"]
            block = await here.block(manifest)
            assert block["state"] == "failed"
            [problem] = block["problems"]
            assert (problem["intent_id"], problem["code"]) == (intents[0], "output_outside_tree")
            assert not (tmp_path / "a.json").exists()

    asyncio.run(play())


def test_fields_that_are_selected_otherwise_by_now_are_not_written(database_url: str, tmp_path: Path) -> None:
    """[C-064] compared again at publishing; the others go on."""

    async def story() -> None:
        async with press(database_url, tmp_path / "tree") as here:
            for name in "ab":
                here.put_catalogue(f"{name}.json", hello=f"Hello {name}")
            manifest = await here.manifest()
            first, second = [await here.settle(manifest, f"{name}.json") for name in "ab"]
            await here.database.run(press_rows.select_otherwise, first)
            await here.publish(manifest, first, second)
            assert here.texts("fr/a.json") == {}
            assert here.texts("fr/b.json") == {"hello": "«fr» Hello b"}
            asked = await here.rows("requests")
            assert [row.error_code for row in asked if row.error_code] == ["source_moved"]

    asyncio.run(story())
