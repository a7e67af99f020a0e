"""What is written where, what is left to its owner, and what is only said."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.kernel.errors import CallerError
from dragoman.kernel.identity import key_hash
from dragoman.model.publications import Pace
from tests.flow.publishing.press import Killed, Press, press

PROSE = "# Hello\n\nA first paragraph.\n\nA second one.\n"


def test_what_a_person_changed_is_left_alone_and_listed_and_the_others_go_on(
    database_url: str, tmp_path: Path
) -> None:
    """Changed between plan and write, or since our last publication."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            first = await here.three()
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
            assert await whose(here) == {"a.json": ["person"], "b.json": ["person"], "c.json": ["ours"]}
            for mode, origin in (("all", "person"), ("force", "ours")):
                third = await here.manifest(mode=mode)
                await here.publish(third, await here.settle(third, "a.json"))
                assert (await whose(here))["a.json"] == [origin]
                assert (here.texts("fr/a.json") == {"hello": "«fr» Hello again a"}) == (mode == "force")

    asyncio.run(play())


def test_a_text_on_record_as_a_persons_is_left_alone_whatever_became_of_its_source(
    database_url: str, tmp_path: Path
) -> None:
    """Also by the manifest that had put it in place, when it is asked to once more, and of a whole file."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put_catalogue("a.json", hello="Hello", bye="Bye")
            here.put("b.md", PROSE)
            first = await here.manifest()
            intents = [await here.settle(first, name) for name in ("a.json", "b.md")]
            await here.publish(first, *intents)
            edited = (here.root / "fr/b.md").read_text().replace("A second", "Ma seconde")
            here.put("fr/b.md", edited)
            here.put_catalogue("fr/a.json", hello="Salut", bye="«fr» Bye")
            for again in range(2):
                here.put_catalogue("a.json", hello=f"Hello {again}", bye="Bye")
                here.put("b.md", PROSE.replace("first", f"first {again}"))
                later = await here.manifest()
                await here.publish(later, *[await here.settle(later, name) for name in ("a.json", "b.md")])
                assert await whose(here) == {"a.json": ["ours", "person"], "b.md": ["ours", "ours", "person"]}
            await here.publish(first, *intents)
            assert here.texts("fr/a.json")["hello"] == "Salut"
            assert (here.root / "fr/b.md").read_text() == edited
            here.put_catalogue("fr/a.json", hello="«fr» Hello", bye="«fr» Bye")
            here.put_catalogue("a.json", hello="Hello once more", bye="Bye")
            last = await here.manifest()
            await here.publish(last, await here.settle(last, "a.json"))
            assert here.texts("fr/a.json")["hello"] == "«fr» Hello once more", "ours was put back before"
            assert (await whose(here))["a.json"] == ["ours", "ours"]

    asyncio.run(play())


async def whose(here: Press) -> dict[str, list[str]]:
    """Document → the origins of its texts."""
    found: dict[str, list[str]] = {}
    for row in await here.rows("entries"):
        found.setdefault(row.document, []).append(row.origin)
    return {document: sorted(origins) for document, origins in found.items()}


def test_force_overwrites_an_older_change_of_a_persons_and_not_one_made_since_the_plan(
    database_url: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await here.three()
            await here.work()
            for name in "ab":
                here.put_catalogue(f"{name}.json", hello=f"Hello again {name}")
            forced = await here.manifest(mode="force")
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
            manifest = await here.three()
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
            manifest = await here.three()
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


@pytest.mark.parametrize("name", ["a.json", "b.md"])
def test_what_stands_there_already_as_it_shall_be_is_nobodys_change(
    database_url: str, tmp_path: Path, name: str
) -> None:
    """Two manifests of one pair; the process that wrote for the first has died before it could say so."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site", Pace(batch_size=1)) as here:
            here.put("b.md", PROSE)
            here.put_catalogue("a.json", hello="Hello", bye="Bye")
            first, second = await here.manifest(), await here.manifest()
            await here.plan(first, await here.settle(first, name))
            await here.plan(second, await here.settle(second, name))
            here.files.after[f"fr/{name}"] = Killed()
            with pytest.raises(Killed):
                await here.work()
            here.start("host/boot/2/2")
            await here.work()
            assert (await here.block(second))["state"] == "in_place"
            await here.after_the_lease("host/boot/3/3")
            assert (await here.block(first))["state"] == "in_place"
            assert (await here.states())[1] == ["SUCCEEDED"] * 2

    asyncio.run(play())


@pytest.mark.parametrize("mode", ["missing", "force"])
def test_what_a_person_wrote_while_it_was_translated_stays(
    database_url: str, tmp_path: Path, mode: str
) -> None:
    """Nothing stood there when the texts were chosen, and something does when the plan is made."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            here.put("b.md", PROSE)
            here.put_catalogue("a.json", hello="Hello", bye="Bye")
            manifest = await here.manifest(mode=mode)
            intents = [await here.settle(manifest, name) for name in ("a.json", "b.md")]
            here.put_catalogue("fr/a.json", hello="Salut, de ma main")
            here.put("fr/b.md", PROSE.replace("first", "premier"))
            await here.plan(manifest, *intents)
            theirs = here.tree()
            await here.work()
            states = (await here.states())[1]
            if mode == "force":
                assert states == ["SUCCEEDED"] * 2, "and force says that it shall not"
            else:
                assert states == ["CONFLICT"] * 2
                assert here.tree() == theirs

    asyncio.run(play())
