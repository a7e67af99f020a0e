"""The steps of a plan, run once each; what happens when something dies, refuses, races or is not known."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.content.selection import text_hash
from dragoman.kernel import limits
from dragoman.kernel.errors import CallerError, LeaseLost
from dragoman.kernel.identity import key_hash, sha256
from dragoman.model.effects import Answer, Outgoing
from dragoman.model.publications import Order, Pace
from dragoman.model.scopes import Workspace
from dragoman.store.acts import compensating, executing, publications
from tests.flow.publishing import press_rows
from tests.flow.publishing.press import HERE, Killed, Press, press

PROSE = "# Hello\n\nA first paragraph.\n\nA second one.\n"


async def three(here: Press) -> str:
    """A manifest of three catalogues, planned."""
    for name in "abc":
        here.put_catalogue(f"{name}.json", hello=f"Hello {name}")
    manifest = await here.manifest()
    intents = [await here.settle(manifest, f"{name}.json") for name in "abc"]
    await here.plan(manifest, *intents)
    return manifest


def test_steps_run_in_order_and_the_last_one_ends_execution_and_command(
    database_url: str, tmp_path: Path
) -> None:
    """[T-003, T-034, T-037, T-072] with a receipt each; what is in place is on record."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await three(here)
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
            await three(here)
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
            manifest = await three(here)
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
                for table in (
                    "steps",
                    "commands",
                    "executions",
                    "plan_steps",
                    "plans",
                    "entries",
                    "requests",
                ):
                    await here.database.run(press_rows.empty, table)
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
            await three(here)
            [old] = await here.database.run(executing.claim_commands, "host/boot/3/3", 60, 5)
            delivery = await here.database.read(executing.delivery_of, old)
            step = delivery.steps[0]
            known = await here.database.read(executing.material, old, step)
            order = here.placing.order(old, step, known)
            assert isinstance(order, Order)
            begun = await here.database.run(executing.start_step, old, step, order, "host/boot/3/3", 30, 60)
            assert isinstance(begun, Outgoing)
            await here.after_the_lease()
            before = await here.states()
            assert before[2] == ["DELIVERED"]
            late = await here.database.run(
                executing.finish_step, begun, Answer("SUCCEEDED", body=b"{}"), old, step, order
            )
            assert late == "lease_lost"
            for act in (executing.pause_delivery, executing.end_delivery):
                with pytest.raises(LeaseLost):
                    await here.database.run(act, old)
            with pytest.raises(LeaseLost):
                await here.database.run(executing.start_step, old, step, order, "host/boot/3/3", 30, 60)
            assert await here.states() == before
            assert "ACCEPTED_LATE" in [row.outcome for row in await here.rows("attempts")]

    asyncio.run(play())


def test_a_refusal_fails_step_execution_and_command_together_and_later_steps_are_not_begun(
    database_url: str, tmp_path: Path
) -> None:
    """[T-012, T-029, T-035, T-036, T-040, T-042] and nothing claims what has ended."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await three(here)
            refusal = Answer("REJECTED", code="target_refused", message="fr/b.json: the disk is full")
            here.files.before["fr/b.json"] = refusal
            await here.work()
            assert await here.states() == (["FAILED"], ["SUCCEEDED", "FAILED", "PENDING"], ["FAILED"])
            await here.database.run(press_rows.end_leases)
            await here.later()
            assert len(here.files.ran) == 2
            block = await here.block(manifest)
            assert block["state"] == "failed"
            assert [(p["target"], p["state"], p["code"]) for p in block["problems"]] == [
                ("fr/b.json", "failed", "target_refused"),
                ("fr/c.json", "not_run", "target_refused"),
            ]
            assert block["problems"][0]["message"] == "fr/b.json: the disk is full"

    asyncio.run(play())


def test_a_retry_is_a_new_execution_that_writes_only_what_is_missing(
    database_url: str, tmp_path: Path
) -> None:
    """[T-043] the failed one stays as it was."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await three(here)
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
            manifest = await three(here)
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
            manifest = await three(here)
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
            await three(here)
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
            await three(here)
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


def test_what_a_person_changed_is_left_alone_and_listed_and_the_others_go_on(
    database_url: str, tmp_path: Path
) -> None:
    """Changed between plan and write, or since our last publication."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            first = await three(here)
            await here.work()
            for name in "abc":
                here.put_catalogue(f"{name}.json", hello=f"Hello again {name}")
            second = await here.manifest()
            intents = [await here.settle(second, f"{name}.json") for name in "abc"]
            here.put_catalogue("fr/a.json", hello="Salut, de ma main")
            await here.plan(second, *intents)
            here.put_catalogue("fr/b.json", hello="Bonjour, de ma main")
            await here.work()
            assert here.texts("fr/a.json") == {"hello": "Salut, de ma main"}
            assert here.texts("fr/b.json") == {"hello": "Bonjour, de ma main"}
            assert here.texts("fr/c.json") == {"hello": "«fr» Hello again c"}
            assert (await here.states())[1] == ["SUCCEEDED"] * 3 + ["CONFLICT", "CONFLICT", "SUCCEEDED"]
            block = await here.block(second)
            assert block["state"] == "failed"
            assert [(p["document"], p["code"]) for p in block["problems"]] == [
                ("a.json", "target_conflict"),
                ("b.json", "target_conflict"),
            ]
            assert (await here.block(first))["state"] == "in_place"

    asyncio.run(play())


def test_force_overwrites_an_older_change_of_a_persons_and_not_one_made_since_the_plan(
    database_url: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await three(here)
            await here.work()
            for name in "ab":
                here.put_catalogue(f"{name}.json", hello=f"Hello again {name}")
            forced = await here.manifest(force=True)
            intents = [await here.settle(forced, f"{name}.json") for name in "ab"]
            here.put_catalogue("fr/a.json", hello="Salut, de ma main")
            await here.plan(forced, *intents)
            here.put_catalogue("fr/b.json", hello="Bonjour, de ma main")
            await here.work()
            assert here.texts("fr/a.json") == {"hello": "«fr» Hello again a"}
            assert here.texts("fr/b.json") == {"hello": "Bonjour, de ma main"}

    asyncio.run(play())


def test_fields_whose_source_moved_are_left_and_counted(database_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello", bye="Bye")
            here.put("b.md", PROSE)
            manifest = await here.manifest()
            intents = [await here.settle(manifest, name) for name in ("a.json", "b.md")]
            await here.plan(manifest, *intents)
            here.put_catalogue("a.json", hello="Hello", bye="Good bye")
            here.put("b.md", PROSE.replace("second", "last"))
            await here.work()
            assert here.texts("fr/a.json") == {"hello": "«fr» Hello"}
            assert "fr/b.md" not in here.tree(), "a whole file is written complete or not at all"
            block = await here.block(manifest)
            assert (block["written"], block["source_moved"], block["state"]) == (1, 4, "in_place")

    asyncio.run(play())


def test_one_document_that_cannot_be_written_does_not_stop_the_others(
    database_url: str, tmp_path: Path
) -> None:
    """It is gone, or it is no longer valid: listed with its reason."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await three(here)
            (here.root / "a.json").unlink()
            here.put("b.json", '{"hello": ')
            await here.work()
            assert (await here.states())[1] == ["CONFLICT", "CONFLICT", "SUCCEEDED"]
            problems = (await here.block(manifest))["problems"]
            assert [problem["code"] for problem in problems] == ["document_not_found", "invalid_fields"]
            assert "line 1" in problems[1]["message"]

    asyncio.run(play())


def test_a_source_that_is_away_for_a_while_puts_the_step_off(database_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await three(here)
            here.away.add("b.json")
            await here.work()
            assert await here.states() == (["QUEUED"], ["SUCCEEDED", "PENDING", "PENDING"], ["PENDING"])
            here.away.clear()
            await here.later()
            assert (await here.block(manifest))["state"] == "in_place"

    asyncio.run(play())


def test_a_whole_file_with_a_persons_paragraph_is_left_alone(database_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put("a.md", PROSE)
            here.put("b.md", PROSE)
            first = await here.manifest()
            await here.publish(first, *[await here.settle(first, name) for name in ("a.md", "b.md")])
            assert "«fr» A second one." in (here.root / "fr/a.md").read_text()
            added = here.put("fr/a.md", (here.root / "fr/a.md").read_text() + "\nA word of mine.\n")
            for name in ("a.md", "b.md"):
                here.put(name, PROSE.replace("second", "last"))
            second = await here.manifest()
            await here.publish(second, *[await here.settle(second, name) for name in ("a.md", "b.md")])
            assert "A word of mine." in added.read_text()
            assert "«fr» A second one." in added.read_text()
            assert "«fr» A last one." in (here.root / "fr/b.md").read_text()
            [problem] = (await here.block(second))["problems"]
            assert (problem["target"], problem["code"]) == ("fr/a.md", "target_conflict")

    asyncio.run(play())


def test_entries_of_a_whole_file_are_those_of_its_present_blocks(database_url: str, tmp_path: Path) -> None:
    """So a paragraph that the source lost is not taken for one that a person removed."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            for text in (PROSE, "# Hello\n\nA first paragraph.\n", "# Hello\n\nAnother one.\n"):
                here.put("a.md", text)
                manifest = await here.manifest()
                await here.publish(manifest, await here.settle(manifest, "a.md"))
                assert (await here.block(manifest))["state"] == "in_place"
                expected = {key_hash(key) for key in here.results("a.md")}
                assert {row.key_hash for row in await here.rows("entries")} == expected

    asyncio.run(play())


def test_a_dry_run_says_what_it_would_write_and_touches_nothing(database_url: str, tmp_path: Path) -> None:
    """[T-060, T-061]"""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello")
            manifest = await here.manifest(executor="dry-run:v1")
            await here.publish(manifest, await here.settle(manifest, "a.json"))
            assert set(here.tree()) == {"a.json"}
            [step] = await here.rows("steps")
            receipt = json.loads(step.receipt)
            assert (receipt["would"], receipt["target"], receipt["applied"]) == ("write", "fr/a.json", False)
            assert (await here.rows("entries"), await here.rows("snapshots")) == ([], [])
            assert (await here.block(manifest))["state"] == "none"
            with pytest.raises(CallerError, match="nothing in place"):
                await here.revert(manifest)

    asyncio.run(play())


def test_an_executor_that_nobody_knows_is_a_refusal(sqlite_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(sqlite_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello")
            manifest = await here.manifest(executor="sql:v1")
            await here.publish(manifest, await here.settle(manifest, "a.json"))
            problem = (await here.block(manifest))["problems"][0]
            assert (problem["code"], "sql:v1" in problem["message"]) == ("invalid_settings", True)

    asyncio.run(play())


def test_edits_that_are_asked_for_turn_the_base_into_what_was_written(
    sqlite_url: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with press(sqlite_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello", bye="Bye")
            manifest = await here.manifest(explain_edits=True)
            await here.publish(manifest, await here.settle(manifest, "a.json"))
            [step] = await here.rows("steps")
            receipt = json.loads(step.receipt)
            assert receipt["base"] == "source"
            data = bytearray(here.tree()["a.json"])
            for edit in reversed(receipt["edits"]):
                data[edit["start"] : edit["end"]] = edit["text"].encode(edit["encoding"])
            assert bytes(data) == here.tree()["fr/a.json"]

    asyncio.run(play())


def test_the_limits_of_time_give_a_command_back_with_the_rest_to_do(sqlite_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(sqlite_url, tmp_path / "site") as here:
            await three(here)
            here.clock.step_seconds = limits.STEP_SECONDS / 2
            assert await here.executing.step() == 1
            assert await here.states() == (["QUEUED"], ["SUCCEEDED", "PENDING", "PENDING"], ["PENDING"])
            await here.work()
            assert (await here.states())[2] == ["DELIVERED"]

    asyncio.run(play())


def test_a_command_is_claimed_at_its_instant_and_a_lease_only_after_its_end(
    database_url: str, tmp_path: Path
) -> None:
    """[T-022, T-024, T-025, T-027, T-058]"""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await three(here)
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
            claimed = await asyncio.gather(
                *(here.database.run(executing.claim_commands, f"host/boot/{n}/1", 60, 3) for n in range(6))
            )
            ids = [command.id for batch in claimed for command in batch]
            assert len(ids) == len(set(ids)) == 12

    asyncio.run(play())


def test_where_polling_is_off_nothing_is_claimed_and_planning_goes_on(
    sqlite_url: str, tmp_path: Path
) -> None:
    """[T-055]"""

    async def play() -> None:
        async with press(sqlite_url, tmp_path / "site", Pace(polling_enabled=False)) as here:
            manifest = await three(here)
            assert await here.executing.step() == 0
            assert (await here.block(manifest))["state"] == "queued"

    asyncio.run(play())


def test_history_shows_state_deliveries_lease_and_last_error(database_url: str, tmp_path: Path) -> None:
    """[T-051, T-052] to its own workspace only."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest = await three(here)
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
            await three(here)
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
