"""The steps of a plan, run once each; what happens when something dies, refuses, races or is not known."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.content.selection import text_hash
from dragoman.kernel import limits
from dragoman.kernel.errors import CallerError, LeaseLost
from dragoman.kernel.identity import sha256
from dragoman.model.effects import Answer, Outgoing
from dragoman.model.publications import Order
from dragoman.store.acts import compensating, executing, steering
from tests.flow.publishing import press_rows
from tests.flow.publishing.press import HERE, Killed, press


def test_steps_run_in_order_and_the_last_one_ends_execution_and_command(
    database_url: str, tmp_path: Path
) -> None:
    """[T-003, T-034, T-037, T-072] with a receipt each; what is in place is on record."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await here.three()
            await here.work()
            assert here.files.order == ["fr/a.json", "fr/b.json", "fr/c.json"]
            assert await here.states() == (["SUCCEEDED"], ["SUCCEEDED"] * 3, ["DELIVERED"])
            assert here.texts("fr/b.json") == {"hello": "«fr» Hello b"}
            for step, name in zip(await here.rows("steps"), "abc", strict=True):
                receipt = json.loads(step.receipt)
                assert receipt["sha256"] == sha256(here.tree()[f"fr/{name}.json"])
                assert (step.units_written, step.units_left, step.attempt_count) == (1, 0, 1)
            entries = await here.rows("entries")
            assert {(row.origin, row.manifest_id) for row in entries} == {("ours", manifest)}
            assert {row.written_hash for row in entries} == {
                text_hash(f"«fr» Hello {name}") for name in "abc"
            }
            block = await here.block(manifest)
            assert (block["state"], block["written"], block["problems"]) == ("in_place", 3, [])

    asyncio.run(play())


@pytest.mark.parametrize("died_at", ["fr/a.json", "fr/b.json", "fr/c.json"])
def test_a_worker_that_dies_after_the_write_has_its_step_delivered_again_under_the_same_key(
    database_url: str, tmp_path: Path, died_at: str
) -> None:
    """[T-004, T-005, T-006, T-026, T-038, T-041, T-045, T-071, T-073] one write, nothing twice."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await here.three()
            here.files.after[died_at] = Killed()
            with pytest.raises(Killed):
                await here.work()
            written = (here.root / died_at).stat()
            [command] = await here.rows("commands")
            assert (command.state, command.fence, command.lease_owner) == ("PROCESSING", 1, "host/boot/1/1")
            await here.work()
            assert here.files.order[-1] == died_at, "a live lease is nobody else's"
            await here.after_the_lease()
            assert await here.states() == (["SUCCEEDED"], ["SUCCEEDED"] * 3, ["DELIVERED"])
            assert here.files.order.count(died_at) == 2
            assert len(here.files.order) == 4
            assert len({o.facts["step_key"] for o in here.files.ran if o.facts["target"] == died_at}) == 1
            assert (here.root / died_at).stat().st_mtime_ns == written.st_mtime_ns
            [command] = await here.rows("commands")
            assert (command.fence, command.delivery_count) == (2, 2)
            outcomes = sorted(row.outcome for row in await here.rows("attempts"))
            assert outcomes == ["CONNECTION_UNKNOWN", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]

    asyncio.run(play())


def test_a_worker_that_dies_before_the_write_loses_nothing(database_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await here.three()
            here.files.before["fr/b.json"] = Killed()
            with pytest.raises(Killed):
                await here.work()
            await here.after_the_lease()
            assert here.texts("fr/b.json") == {"hello": "«fr» Hello b"}
            assert (await here.block(manifest))["state"] == "in_place"

    asyncio.run(play())


def test_the_repeat_of_a_step_gives_the_receipt_of_the_first(database_url: str, tmp_path: Path) -> None:
    """[T-039, T-068] also where the source moved between the two: what was written is what is on record."""

    async def play() -> None:
        receipts = []
        for name, dies in (("calm", False), ("storm", True)):
            async with press(database_url, tmp_path / name) as here:
                await here.database.run(press_rows.forget_everything)
                manifest = await here.manifest()
                here.put_catalogue("a.json", hello="Hello", bye="Bye")
                await here.plan(manifest, await here.settle(manifest, "a.json"))
                if dies:
                    here.files.after["fr/a.json"] = Killed()
                    with pytest.raises(Killed):
                        await here.work()
                    here.put_catalogue("a.json", hello="Hello", bye="Good bye")
                    await here.after_the_lease()
                await here.work()
                [step] = await here.rows("steps")
                receipts.append((step.receipt, step.units_written, step.units_left))
                assert len(await here.rows("entries")) == 2
        assert receipts[0] == receipts[1]

    asyncio.run(play())


def test_a_stale_holder_begins_nothing_and_ends_nothing(database_url: str, tmp_path: Path) -> None:
    """[T-028] its answer is on record all the same."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await here.three()
            [old] = await here.database.run(executing.claim_commands, "host/boot/3/3", 60, 5)
            delivery = await here.database.read(executing.delivery_of, old)
            step = delivery.steps[0]
            known = await here.database.read(executing.materials, old, [step])
            order = here.placing.order(old, step, known[step.key])
            assert isinstance(order, Order)
            start = executing.Start(step, order, False, "host/boot/3/3", 30, 60)
            begun = await here.database.run(executing.start_step, old, start)
            assert isinstance(begun, Outgoing)
            await here.after_the_lease()
            before = await here.states()
            assert before[2] == ["DELIVERED"]
            late = await here.database.run(
                executing.finish_step, begun, Answer("SUCCEEDED", body=b"{}"), old, step, order
            )
            assert late == executing.Finished("lease_lost")
            for act in (executing.pause_delivery, executing.end_delivery):
                with pytest.raises(LeaseLost):
                    await here.database.run(act, old)
            with pytest.raises(LeaseLost):
                await here.database.run(executing.start_step, old, start)
            assert await here.states() == before
            assert "ACCEPTED_LATE" in [row.outcome for row in await here.rows("attempts")]

    asyncio.run(play())


def test_a_refusal_fails_step_execution_and_command_together_and_later_steps_are_not_begun(
    database_url: str, tmp_path: Path
) -> None:
    """[T-012, T-029, T-035, T-036, T-040, T-042] and nothing claims what has ended."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await here.three()
            refusal = Answer("REJECTED", code="target_refused", message="fr/b.json: the disk is full")
            here.files.before["fr/b.json"] = refusal
            await here.work()
            assert await here.states() == (["FAILED"], ["SUCCEEDED", "FAILED", "PENDING"], ["FAILED"])
            await here.database.run(press_rows.end_leases)
            await here.later()
            assert len(here.files.ran) == 2

    asyncio.run(play())


def test_a_file_that_cannot_be_written_stops_no_other(database_url: str, tmp_path: Path) -> None:
    """What a failed execution did not begin gets plans of its own."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await here.three()
            refusal = Answer("REJECTED", code="target_refused", message="fr/a.json: the disk is full")
            here.files.before["fr/a.json"] = refusal
            await here.work()
            assert (await here.block(manifest))["state"] == "queued"
            assert await here.planning.step() == 2
            await here.work()
            assert here.files.order == ["fr/a.json", "fr/b.json", "fr/c.json"]
            block = await here.block(manifest)
            assert block["state"] == "failed"
            [problem] = block["problems"]
            assert (problem["target"], problem["state"], problem["code"]) == (
                "fr/a.json",
                "failed",
                "target_refused",
            )
            assert problem["message"] == "fr/a.json: the disk is full"

    asyncio.run(play())


def test_a_retry_is_a_new_execution_that_writes_only_what_is_missing(
    database_url: str, tmp_path: Path
) -> None:
    """[T-043] the failed one stays as it was."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await here.three()
            here.files.before["fr/b.json"] = Answer("REJECTED", code="target_refused", message="full")
            await here.work()
            [failed] = await here.rows("executions")
            retried = await here.database.run(compensating.retry_execution, HERE, failed.id, "mia")
            await here.work()
            executions, steps, commands = await here.states()
            assert (executions, commands) == (["FAILED", "SUCCEEDED"], ["FAILED", "DELIVERED"])
            assert steps == ["SUCCEEDED", "FAILED", "PENDING", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]
            assert here.files.order == ["fr/a.json", "fr/b.json", "fr/b.json", "fr/c.json"]
            first, *_ = await here.rows("steps")
            taken_over = next(
                s for s in await here.rows("steps") if (s.execution_id, s.ordinal) == (retried, 1)
            )
            assert (taken_over.receipt, taken_over.step_key) == (first.receipt, first.step_key)
            assert await here.planning.step() == 1  # what the failed one left: in place by now, so no step
            await here.work()
            assert (await here.block(manifest))["state"] == "in_place"
            with pytest.raises(CallerError) as again:
                await here.database.run(compensating.retry_execution, HERE, failed.id, "mia")
            assert again.value.code == "nothing_to_retry"

    asyncio.run(play())


def test_a_lost_race_is_run_again_by_the_retry_rule(database_url: str, tmp_path: Path) -> None:
    """Somebody wrote elsewhere in the file meanwhile: that stays, and the step is rendered anew."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello", bye="Bye")
            here.put_catalogue("fr/a.json", bye="Adieu")
            manifest = await here.manifest()
            intent = await here.settle(manifest, "a.json", failed=list(here.results("a.json"))[1:])
            await here.plan(manifest, intent)
            here.files.meanwhile["fr/a.json"] = lambda: here.put_catalogue("fr/a.json", bye="Au revoir")
            await here.work()
            assert await here.states() == (["QUEUED"], ["PENDING"], ["PENDING"])
            [command] = await here.rows("commands")
            assert command.due_at > here.database.now() + 20_000_000
            assert command.error_code == "target_raced"
            await here.later()
            assert here.texts("fr/a.json") == {"hello": "«fr» Hello", "bye": "Au revoir"}
            assert (await here.block(manifest))["state"] == "in_place"

    asyncio.run(play())


def test_an_unknown_end_is_kept_as_unknown_and_read_back_by_the_next_delivery(
    database_url: str, tmp_path: Path
) -> None:
    """[T-010] neither failed nor done until somebody has looked."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await here.three()
            here.files.after["fr/b.json"] = Answer("TIMEOUT_UNKNOWN", code="PROVIDER_TIMEOUT_UNKNOWN")
            await here.work()
            assert await here.states() == (["QUEUED"], ["SUCCEEDED", "UNKNOWN", "PENDING"], ["PENDING"])
            block = await here.block(manifest)
            assert (block["state"], block["problems"][0]["state"]) == ("queued", "unknown")
            await here.later()
            assert await here.states() == (["SUCCEEDED"], ["SUCCEEDED"] * 3, ["DELIVERED"])
            assert here.files.order == ["fr/a.json", "fr/b.json", "fr/b.json", "fr/c.json"]

    asyncio.run(play())


def test_after_five_deliveries_without_an_ended_step_nobody_tries_again(
    database_url: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await here.three()
            for _ in range(1 + limits.DELIVERIES_WITHOUT_PROGRESS_MAX):  # the first one ended a step
                here.files.before["fr/b.json"] = Answer("TIMEOUT_UNKNOWN", code="PROVIDER_TIMEOUT_UNKNOWN")
                await here.later()
            assert await here.states() == (["FAILED"], ["SUCCEEDED", "FAILED", "PENDING"], ["FAILED"])
            assert here.files.order.count("fr/b.json") == 6
            problem = (await here.block(manifest))["problems"][0]
            assert (problem["target"], problem["code"]) == ("fr/b.json", "gave_up")

    asyncio.run(play())


def test_a_step_that_kills_its_worker_is_delivered_five_times_at_most(
    database_url: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await here.three()
            here.files.before["fr/a.json"] = Killed()
            with pytest.raises(Killed):
                await here.work()
            for life in range(2, limits.DELIVERIES_WITHOUT_PROGRESS_MAX + 1):
                here.files.before["fr/a.json"] = Killed()
                with pytest.raises(Killed):
                    await here.after_the_lease(f"host/boot/{life}/{life}")
            await here.after_the_lease("host/boot/9/9")
            assert await here.states() == (["FAILED"], ["FAILED", "PENDING", "PENDING"], ["FAILED"])
            assert len(here.files.ran) == limits.DELIVERIES_WITHOUT_PROGRESS_MAX
            [execution] = await here.rows("executions")
            assert execution.error_code == "gave_up"

    asyncio.run(play())


def test_a_plan_that_no_longer_verifies_fails_before_any_call(database_url: str, tmp_path: Path) -> None:
    """[T-014, T-020, T-031] and no execution can be made of it."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await here.three()
            await here.database.run(press_rows.tamper)
            await here.work()
            [execution] = await here.rows("executions")
            assert (execution.state, execution.error_code) == ("FAILED", "plan_mismatch")
            assert here.files.ran == []
            with pytest.raises(CallerError) as refused:
                await here.database.run(compensating.retry_execution, HERE, execution.id, "mia")
            assert refused.value.code == "plan_mismatch"
            assert len(await here.rows("executions")) == 1

    asyncio.run(play())


def test_the_limits_of_time_give_a_command_back_with_the_rest_to_do(sqlite_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(sqlite_url, tmp_path / "site") as here:
            await here.three()
            here.clock.step_seconds = limits.STEP_SECONDS / 2
            assert await here.executing.step() == 1
            assert await here.states() == (["QUEUED"], ["SUCCEEDED", "PENDING", "PENDING"], ["PENDING"])
            await here.work()
            assert (await here.states())[2] == ["DELIVERED"]

    asyncio.run(play())


def test_while_the_executor_is_asked_everything_is_on_record_and_nothing_is_open(
    database_url: str, tmp_path: Path
) -> None:
    """[T-001, T-007, T-030, T-032, T-033] the step runs, its attempt has begun, what stood there is kept."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello")
            stood = here.put_catalogue("fr/a.json", other="Autre").read_bytes()
            manifest = await here.manifest()
            await here.plan(manifest, await here.settle(manifest, "a.json"))
            seen: list[str] = []

            async def watch() -> None:
                assert await here.states() == (["RUNNING"], ["RUNNING"], ["PROCESSING"])
                assert [row.outcome for row in await here.rows("attempts")] == ["STARTED"]
                assert [row.body for row in await here.rows("snapshots")] == [stood]
                [command] = await here.rows("commands")
                assert command.lease_expires_at > here.database.now() + 50_000_000
                seen.append(await here.manifest())  # a transaction of somebody else's does not wait

            here.files.watch = watch
            await here.work()
            assert len(seen) == 1
            assert await here.states() == (["SUCCEEDED"], ["SUCCEEDED"], ["DELIVERED"])

    asyncio.run(play())


def test_what_ended_while_its_manifest_rested_is_put_in_place_after_the_resume(
    database_url: str, tmp_path: Path
) -> None:
    """The last job came back during the pause: the manifest has ended, and its owner can still say go on."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await here.three()
            await here.database.run(steering.pause_manifest, HERE, manifest, "mia")
            await here.database.run(press_rows.end_manifest, manifest)
            await here.work()
            assert here.files.order == [], "nothing is put in place while it rests"
            block = await here.block(manifest)
            assert (block["state"], block["paused"]) == ("queued", True)
            assert await here.database.run(steering.pause_manifest, HERE, manifest, "mia") is not None
            resumed = await here.database.run(steering.resume_manifest, HERE, manifest, "mia")
            assert resumed is not None
            assert not resumed.paused
            await here.later()
            block = await here.block(manifest)
            assert (block["state"], block["paused"], block["written"]) == ("in_place", False, 3)
            await here.database.run(steering.pause_manifest, HERE, manifest, "mia")
            assert not (await here.block(manifest))["paused"], "what has ended is not paused any more"

    asyncio.run(play())
