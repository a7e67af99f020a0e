"""Commands: who may claim them when, what history says of them, and what a person can do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.kernel.errors import CallerError, StoreError
from dragoman.model.publications import Pace
from dragoman.model.scopes import Workspace
from dragoman.store.acts import compensating, executing, publications
from tests.flow.publishing import press_rows
from tests.flow.publishing.press import HERE, Killed, press


def test_a_command_is_claimed_at_its_instant_and_a_lease_only_after_its_end(
    database_url: str, tmp_path: Path
) -> None:
    """[T-022, T-024, T-025, T-027, T-058]"""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await here.three()
            assert await here.database.run(press_rows.claim_at, "due_at", 1) == 0
            assert await here.database.run(press_rows.claim_at, "due_at", 0) == 1
            [command] = await here.rows("commands")
            assert (command.state, command.delivery_count) == ("PROCESSING", 1)
            assert await here.database.run(press_rows.claim_at, "lease_expires_at", 0) == 0
            assert await here.database.run(press_rows.claim_at, "lease_expires_at", -1) == 1

    asyncio.run(play())


def test_racing_workers_never_get_one_command_twice(database_url: str, tmp_path: Path) -> None:
    """[T-018, T-023, T-070]"""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello")
            for n in range(12):
                manifest = await here.manifest()
                await here.plan(manifest, await here.settle(manifest, "a.json", f"fr-{n:03d}"))
            ids: list[str] = []
            while len(ids) < 12:
                claimed = await asyncio.gather(
                    *(
                        here.database.run(executing.claim_commands, f"host/boot/{n}/1", 60, 3)
                        for n in range(6)
                    )
                )
                assert any(claimed), "what nobody claimed is found by the next who looks"
                ids += [command.id for batch in claimed for command in batch]
            assert len(ids) == len(set(ids)) == 12

    asyncio.run(play())


def test_where_polling_is_off_nothing_is_claimed_and_planning_goes_on(
    sqlite_url: str, tmp_path: Path
) -> None:
    """[T-055]"""

    async def play() -> None:
        async with press(sqlite_url, tmp_path / "site", Pace(polling_enabled=False)) as here:
            manifest = await here.three()
            assert await here.executing.step() == 0
            assert (await here.block(manifest))["state"] == "queued"

    asyncio.run(play())


def test_history_shows_state_deliveries_lease_and_last_error(database_url: str, tmp_path: Path) -> None:
    """[T-051, T-052] to its own workspace only."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await here.three()
            here.files.after["fr/b.json"] = Killed()
            with pytest.raises(Killed):
                await here.work()
            [shown] = await here.database.read(publications.executions_of, HERE, manifest)
            assert (shown["state"], shown["action"], shown["steps"]) == (
                "RUNNING",
                "execute",
                {"succeeded": 1, "running": 1, "pending": 1},
            )
            assert shown["command"]["lease_owner"] == "host/boot/1/1"
            assert shown["command"]["lease_expires_at"]
            assert (shown["command"]["state"], shown["command"]["delivery_count"]) == ("PROCESSING", 1)
            one = await here.database.read(publications.execution_of, HERE, shown["id"], 1, 1)
            assert [(step["ordinal"], step["target"], step["state"]) for step in one["steps"]] == [
                (2, "fr/b.json", "RUNNING")
            ]
            for question in (publications.execution_of, publications.executions_of):
                with pytest.raises(CallerError) as foreign:
                    await here.database.read(question, Workspace("other"), shown["id"])
                assert foreign.value.code == "not_found"

    asyncio.run(play())


def test_reconciling_frees_what_is_stuck_and_leaves_everything_else(
    database_url: str, tmp_path: Path
) -> None:
    """[T-046, T-047, T-048, T-049, T-050]"""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await here.three()
            [execution] = await here.rows("executions")

            async def reconcile() -> str:
                return await here.database.run(compensating.reconcile_execution, HERE, execution.id, "mia")

            assert await reconcile() == "PENDING"
            here.files.after["fr/b.json"] = Killed()
            with pytest.raises(Killed):
                await here.work()
            with pytest.raises(CallerError, match="under a lease until 20") as held:
                await reconcile()
            assert held.value.code == "lease_held"
            await here.database.run(press_rows.end_leases)
            assert await reconcile() == "PENDING"
            assert await here.states() == (["QUEUED"], ["SUCCEEDED", "PENDING", "PENDING"], ["PENDING"])
            [command] = await here.rows("commands")
            assert (command.fence, command.lease_owner) == (2, None)
            await here.work()
            assert await reconcile() == "DELIVERED"
            assert len(here.files.ran) == 4
            audited = [row.action for row in await here.rows("history") if row.kind == "audit"]
            assert audited == ["reconcile"]

    asyncio.run(play())


def test_numbers_out_of_bounds_are_clamped_with_a_warning() -> None:
    """[T-056, T-057, T-059]"""
    assert Pace.clamped() == Pace(True, 5, 5, 60)
    assert Pace.clamped().warnings == ()
    low = Pace.clamped(True, 0, -3, 1)
    assert (low.poll_interval_seconds, low.batch_size, low.lease_seconds) == (1, 1, 10)
    high = Pace.clamped(True, 10**9, 10**9, 10**9)
    assert (high.poll_interval_seconds, high.batch_size, high.lease_seconds) == (3600, 100, 3600)
    assert len(low.warnings) == len(high.warnings) == 3
    assert "publishing.batch_size = -3" in low.warnings[1]


@pytest.mark.parametrize("name", ["executions", "steps", "commands"])
def test_no_row_can_stand_in_a_state_that_the_machines_do_not_know(
    database_url: str, tmp_path: Path, name: str
) -> None:
    """[T-009, T-010, T-011]"""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await here.three()
            before = await here.states()
            with pytest.raises(StoreError):
                await here.database.run(press_rows.put_in_state, name, "ELSEWHERE")
            assert await here.states() == before

    asyncio.run(play())
