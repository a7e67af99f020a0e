"""Whose a target text is: preparation sees what a person changed, and says so on record, on each database."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman.content.selection import text_hash
from dragoman.kernel.identity import key_hash
from dragoman.model.intents import Preparation, Relabel
from dragoman.model.scopes import Workspace
from dragoman.store.acts import adopting, estimating, preparing
from tests.flow.site import rows
from tests.flow.site.stage import Stage, catalogue, stage

PAIR = ("a.json", "fr")
SOURCE = {"a": "Hello", "b": "Bye"}
OURS = {"a": "Salut", "b": "Adieu"}
EDITED = {**OURS, "b": "Ciao"}
HERE = Workspace("default")


async def publish(site: Stage) -> None:
    """As if we had translated and written the document."""
    site.source.targets[PAIR] = catalogue(**OURS)
    units = [
        adopting.Adopted(key_hash(key), text_hash(SOURCE[key]), text_hash(OURS[key]), "ours") for key in OURS
    ]
    assert await site.database.run(adopting.adopt_entries, HERE, "docs", "{}", {PAIR: units}) == 1


async def on_record(site: Stage) -> dict[str, tuple[str, bool]]:
    """Key → origin, and whether the hash on record is that of what we wrote."""
    known = await site.database.read(estimating.known_entries, HERE, "docs", [PAIR])
    found = {key: known[PAIR][key_hash(key)] for key in OURS}
    return {key: (row.origin, row.written_hash == text_hash(OURS[key])) for key, row in found.items()}


async def prepared(site: Stage, mode: str, request_id: str) -> set[str]:
    """The keys that a manifest of this mode would have translated; it is canceled then."""
    await site.admit([PAIR], request_id=request_id, mode=mode)
    while await site.enumeration.step() or await site.preparing.step():
        pass
    manifest = (await site.admit([PAIR], request_id=request_id, mode=mode)).manifest_id
    envelope = await site.database.read(rows.envelope_of, manifest)
    await site.steering.cancel("default", manifest, "mia")
    return set(json.loads(envelope)["fields"]) if envelope else set()


@pytest.mark.parametrize(
    ("mode", "chosen"),
    [("missing", set()), ("changed", {"a"}), ("all", {"a"}), ("force", {"a", "b"})],
)
def test_a_text_that_a_person_changed_is_on_record_as_theirs_and_only_force_takes_it_up(
    database_url: str, mode: str, chosen: set[str]
) -> None:
    """[M-088] whichever mode looks first, and the next one knows it from the record."""

    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(**SOURCE)}) as site:
            await publish(site)
            site.source.targets[PAIR] = catalogue(**EDITED)
            site.source.documents["a.json"] = catalogue(a="Hello, you", b="Bye, you")
            assert await prepared(site, mode, "r-1") == chosen
            assert await on_record(site) == {"a": ("ours", True), "b": ("person", True)}
            assert await prepared(site, mode, "r-2") == chosen
            assert await on_record(site) == {"a": ("ours", True), "b": ("person", True)}

    asyncio.run(play())


def test_our_own_text_put_back_is_ours_again_and_moves_with_its_source(database_url: str) -> None:
    """As when somebody changes branches; a text that is gone is nobody's, and its record stays."""

    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(**SOURCE)}) as site:
            await publish(site)
            site.source.documents["a.json"] = catalogue(a="Hello", b="Bye, you")
            site.source.targets[PAIR] = catalogue(**EDITED)
            assert await prepared(site, "changed", "r-1") == set()
            site.source.targets[PAIR] = catalogue(a=OURS["a"])
            assert await prepared(site, "changed", "r-2") == {"b"}
            assert await on_record(site) == {"a": ("ours", True), "b": ("person", True)}
            site.source.targets[PAIR] = catalogue(**OURS)
            assert await prepared(site, "changed", "r-3") == {"b"}
            assert await on_record(site) == {"a": ("ours", True), "b": ("ours", True)}

    asyncio.run(play())


def test_what_was_written_since_it_was_looked_at_stays_ours(database_url: str) -> None:
    """A preparation that saw the target before a publication says nothing of what that wrote."""

    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(**SOURCE)}) as site:
            await publish(site)
            await site.admit([PAIR])
            await site.enumeration.step()
            work = await site.database.run(preparing.claim_due_intents, site.keeper.owner, 10)
            assert work is not None
            looked: list[Any] = [
                Relabel(key_hash("a"), text_hash("What we wrote before"), "person"),
                Relabel(key_hash("b"), text_hash(OURS["b"]), "person"),
            ]
            outcome = Preparation(work.intents[0], "nothing_to_do", relabeled=tuple(looked))
            await site.database.run(preparing.record_preparations, work, [outcome], 0.0)
            assert await on_record(site) == {"a": ("ours", True), "b": ("person", True)}

    asyncio.run(play())
