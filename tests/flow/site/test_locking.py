"""What a lock puts on record, on each database: once, whole, and never over what is known."""

from __future__ import annotations

import asyncio

from dragoman.content import lockfile
from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.content.lockfile import Line, LockedUnit
from dragoman.content.selection import text_hash
from dragoman.flow.site.locking import Locking
from dragoman.kernel.identity import key_hash
from dragoman.kernel.offload import InlineOffload
from dragoman.model.scopes import Workspace
from dragoman.store.acts import adopting, estimating
from tests.flow.site.stage import Stage, catalogue, stage

PAIRS = [(f"posts/{number:03}.json", "fr") for number in range(120)]
SETTINGS = {"source_locale": "en"}
HERE = Workspace("default")


def line(document: str) -> Line:
    """As it was written where all texts stand as they do here: the second was met, the third edited."""
    units = {
        key_hash("t"): LockedUnit(text_hash(f"Text of {document}"), text_hash("Texte"), "ours"),
        key_hash("u"): LockedUnit(text_hash("More"), text_hash("Plus"), "imported"),
        key_hash("v"): LockedUnit(text_hash("Most"), "", "person"),
    }
    return lockfile.line_of(units)


async def on_record(site: Stage) -> dict[tuple[str, str], dict[str, str]]:
    """Pair → key hash → origin."""
    known = await site.database.read(estimating.known_entries, HERE, "docs", PAIRS)
    return {pair: {key: row.origin for key, row in rows.items()} for pair, rows in known.items()}


def test_what_files_prove_is_on_record_once_and_goes_out_as_it_came_in(database_url: str) -> None:
    """Of more pairs than one step takes, by two processes at once, but for a pair that is known already."""

    async def play() -> None:
        sources = {document: catalogue(t=f"Text of {document}", u="More", v="Most") for document, _ in PAIRS}
        async with stage(database_url, sources) as site:
            for pair in PAIRS:
                site.source.targets[pair] = catalogue(t="Texte", u="Plus", v=f"Une personne, {pair[0]}")
            edited, known = PAIRS[7], PAIRS[8]
            site.source.targets[edited] = catalogue(t="Une personne", u="Plus", v="Une autre")
            other = {known: [adopting.Adopted(key_hash("t"), "s" * 64, "w" * 64, "imported")]}
            assert await site.database.run(adopting.adopt_entries, HERE, "docs", "{}", other) == 1
            lines = {pair: (line(pair[0]),) for pair in PAIRS}
            locking = Locking(site.database, lambda _: site.source, [JsonCatalogue()], InlineOffload())
            fill = (HERE.id, "docs", PAIRS, SETTINGS, lines)
            filled = await asyncio.gather(locking.fill(*fill), locking.fill(*fill))
            assert sum(filled) == len(PAIRS) - 2
            found = await on_record(site)
            assert edited not in found
            assert found.pop(known) == {key_hash("t"): "imported"}
            origins = {key_hash("t"): "ours", key_hash("u"): "imported", key_hash("v"): "person"}
            assert list(found.values()) == [origins] * 118
            told = await locking.export(*fill[:4], lines)
            del lines[edited], lines[known], told[known]
            assert told == lines

    asyncio.run(play())
