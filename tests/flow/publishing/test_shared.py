"""One file for all locales: steps take turns, look again after a race, and are taken back text by text."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

from tests.flow.publishing.press import Killed, Press, press

NAME = "a.xcstrings"


def catalogue(**strings: Any) -> str:
    return json.dumps({"sourceLanguage": "en", "strings": strings, "version": "1.0"}, indent=2)


EMPTY = catalogue(Hello={"comment": "c"}, Bye={"comment": "c"})


def said(here: Press) -> dict[str, dict[str, str]]:
    """Key → language → text."""
    strings = json.loads((here.root / NAME).read_text())["strings"]
    return {
        key: {code: unit["stringUnit"]["value"] for code, unit in entry.get("localizations", {}).items()}
        for key, entry in strings.items()
    }


def texts(*codes: str) -> dict[str, dict[str, str]]:
    return {key: {code: f"«{code}» {key}" for code in codes} for key in ("Hello", "Bye")}


async def two_locales(here: Press) -> list[str]:
    """A manifest for each of French and German, planned side by side."""
    here.put(NAME, EMPTY)
    manifests = []
    for locale in ("fr", "de"):
        manifest = await here.manifest()
        await here.plan(manifest, await here.settle(manifest, NAME, locale))
        manifests.append(manifest)
    return manifests


def test_plans_of_one_file_take_turns_and_each_keeps_what_the_other_wrote(
    database_url: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            await two_locales(here)
            assert await here.executing.step() == 2
            assert said(here) == texts("fr", "de")
            assert (await here.states())[1] == ["SUCCEEDED", "SUCCEEDED"]
            assert len(here.files.ran) == 2, "nobody lost a race"
            assert here.tree().keys() == {NAME}

    asyncio.run(play())


def test_a_step_that_finds_the_file_changed_looks_and_writes_again(database_url: str, tmp_path: Path) -> None:
    """Whoever wrote, another host's worker or a person: what they wrote stays."""

    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            manifest, _ = await two_locales(here)
            here.files.meanwhile[NAME] = lambda: here.put(NAME, catalogue(Hello={}, Bye={}, New={}))
            await here.work()
            assert sorted((await here.states())[1]) == ["PENDING", "SUCCEEDED"]
            await here.later()
            assert said(here) == texts("fr", "de") | {"New": {}}
            assert (await here.block(manifest))["problems"] == []

    asyncio.run(play())


def test_the_earlier_of_two_is_taken_back_out_of_the_later_ones_file(
    database_url: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            french, german = await two_locales(here)
            await here.work()
            await here.revert(french)
            await here.work()
            assert said(here) == texts("de")
            await here.revert(german)
            await here.work()
            assert (here.root / NAME).read_text() == EMPTY
            assert await here.rows("entries") == []
            for manifest in (french, german):
                block = await here.block(manifest)
                assert (block["state"], block["problems"]) == ("reverted", [])

    asyncio.run(play())


def test_taking_back_that_died_unseen_is_taken_back_once(database_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            french, _ = await two_locales(here)
            await here.work()
            await here.revert(french)
            here.files.after[NAME] = Killed()
            with contextlib.suppress(Killed):
                await here.work()
            assert said(here) == texts("de")
            await here.after_the_lease()
            assert said(here) == texts("de")
            assert (await here.block(french))["state"] == "reverted"

    asyncio.run(play())


def test_a_persons_text_stays_and_what_is_on_record_of_it(database_url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with press(database_url, tmp_path / "site") as here:
            french, german = await two_locales(here)
            await here.work()
            here.put(NAME, (here.root / NAME).read_text().replace("«fr» Bye", "Salut"))
            await here.revert(french)
            await here.work()
            assert said(here) == {"Hello": {"de": "«de» Hello"}, "Bye": {"fr": "Salut", "de": "«de» Bye"}}
            records = [row for row in await here.rows("entries") if row.locale == "fr"]
            assert len(records) == 1, "of the text that stands there still"
            here.put(NAME, (here.root / NAME).read_text().replace("«de»", "Von mir:"))
            await here.revert(german)
            await here.work()
            assert [problem["code"] for problem in (await here.block(german))["problems"]] == [
                "target_conflict"
            ]
            assert said(here)["Hello"] == {"de": "Von mir: Hello"}

    asyncio.run(play())
