"""Memories and glossaries go into files and come back, in pages, on every database."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.content import sameness
from dragoman.content.exchange import csv_rows
from dragoman.content.exchange.tmx import TmxUnit, write_tmx
from dragoman.flow.library.glossaries import Glossaries
from dragoman.flow.library.memories import Memories
from dragoman.kernel.errors import CallerError, DocumentError
from dragoman.kernel.limits import MEMORY_PAGE
from dragoman.kernel.offload import InlineOffload
from dragoman.model.memories import Place, Remembered, Tally, Term
from dragoman.model.scopes import Workspace
from dragoman.store.acts import remembering
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx
from tests.doubles.databases import opened

pytestmark = pytest.mark.anyio

HOME = Workspace("home")
PLACE = Place("docs", "en", "fr")
_UNKEPT = ("created_at", "updated_at", "job_id")


def entry(source: str, text: str, **more: Any) -> Remembered:
    more = {"syntax": "none", "origin": "imported", **more}
    context = sameness.context_hash(more["syntax"], more.pop("context", ""), "")
    return Remembered(sameness.source_hash(source, more["syntax"]), context, source, text, **more)


def _rows(tx: Tx, table: sa.Table) -> list[Row]:
    return tx.all(sa.select(table))


def _told(rows: list[Row]) -> list[dict[str, Any]]:
    told = [{name: v for name, v in row._asdict().items() if name not in _UNKEPT} for row in rows]
    return sorted(told, key=lambda row: (row["source_hash"], row["context_hash"]))


@pytest.mark.parametrize("kind", ["tmx", "csv"])
async def test_a_memory_comes_back_from_its_file_as_it_was(database_url: str, kind: str) -> None:
    """Texts, contexts and provenance survive; plural forms, which the files cannot hold, are told."""
    given = [
        entry("Save <b>%s</b> & go", "Enregistrer <b>%s</b> & aller", syntax="html", context="a button"),
        entry("Hello", "Bonjour", origin="ai", basis="a" * 64, model="m", prompt_version="2"),
        entry("Say \"yes\",\nor 'no'", "Dites « oui »,\nou « non »", origin="person"),
        *[entry(f"Text number {n} of many", f"Texte numéro {n} sur beaucoup") for n in range(MEMORY_PAGE)],
    ]
    forms = {"one": "a", "other": "b"}
    plural = Remembered(sameness.source_hash(forms), "0" * 64, forms, forms, "none", "imported")
    async with opened(database_url) as database:
        memories = Memories(database, InlineOffload())
        await database.run(remembering.take_in, HOME, PLACE, [*given, plural])
        before = await database.read(_rows, tables.memory)
        file = io.BytesIO()
        seen: list[int] = []
        told = await memories.give_out(HOME, PLACE, file, kind, seen.append)
        assert told == Tally(read=len(given) + 1, kept=len(given), passed_over=1)
        assert seen[-1] == told.read
        assert len(seen) > 1
        await database.run(_empty)
        file.seek(0)
        taken = await memories.take_in(HOME, PLACE, file, kind)
        assert taken == Tally(read=len(given), kept=len(given))
        after = await database.read(_rows, tables.memory)
        assert _told(after) == _told([row for row in before if not row.plural])
        file.seek(0)
        assert (await memories.take_in(HOME, PLACE, file, kind)).known == len(given)


def _empty(tx: Tx) -> None:
    names = ("memory", "memory_fresh", "memory_shelves", "memory_segments", "memory_grams")
    for table in [getattr(tables, name) for name in names]:
        tx.touched(sa.delete(table))


async def test_what_fails_a_check_is_left_out_and_the_last_of_two_stays(database_url: str) -> None:
    """Lost placeholders are no translation; numbers alone need none; of two for one text the last stays."""
    units = [
        TmxUnit("Save %s", "Enregistrer", "en", "fr", syntax="printf"),
        TmxUnit("Open", "Ouvert", "en", "fr"),
        TmxUnit("Open", "Ouvrir", "en", "fr"),
        TmxUnit("42", "42", "en", "fr"),
    ]
    file = io.BytesIO()
    write_tmx(file, units, "en")
    file.seek(0)
    async with opened(database_url) as database:
        tally = await Memories(database, InlineOffload()).take_in(HOME, PLACE, file, "tmx")
        assert tally == Tally(read=4, kept=1, refused=1, passed_over=2)
        [row] = await database.read(_rows, tables.memory)
        assert row.text == "Ouvrir"


@pytest.mark.parametrize("kind", ["tmx", "csv"])
async def test_files_are_worked_page_by_page_and_tell_how_far_they_are(sqlite_url: str, kind: str) -> None:
    """Law 12: of a file no more is read than the page needs that is being taken in, and what is given out is
    written before the next page is looked up."""
    pages, ahead, words = 4, 65_536, "many words that follow upon each other " * 3
    units = [
        TmxUnit(f"Text number {n} of {words}", f"Texte numéro {n} of {words}", "en", "fr")
        for n in range(pages * MEMORY_PAGE)
    ]
    file, told = io.BytesIO(), list[tuple[int, int]]()
    if kind == "tmx":
        write_tmx(file, units, "en")
    else:
        file.writelines([b"source,target\n", *map(csv_rows.unit_row, units)])
    size = file.tell()
    file.seek(0)
    async with opened(sqlite_url) as database:
        memories = Memories(database, InlineOffload())
        await memories.take_in(HOME, PLACE, file, kind, lambda count: told.append((count, file.tell())))
        assert [count for count, _ in told] == [MEMORY_PAGE * page for page in range(1, pages + 1)]
        assert all(at <= size * count / len(units) + ahead for count, at in told)
        assert size / pages > ahead
        told.clear()
        out = io.BytesIO()
        await memories.give_out(HOME, PLACE, out, kind, lambda count: told.append((count, out.tell())))
        assert [count for count, _ in told] == [MEMORY_PAGE * page for page in range(1, pages + 1)]
        assert all(at > out.tell() * count / len(units) - ahead for count, at in told)


async def test_a_file_that_is_none_is_refused_with_its_line(database_url: str) -> None:
    """Whole pages before the fault stay; the fault is named."""
    async with opened(database_url) as database:
        memories = Memories(database, InlineOffload())
        with pytest.raises(DocumentError, match="line"):
            await memories.take_in(HOME, PLACE, io.BytesIO(b"<tmx><body>"), "tmx")
        with pytest.raises(DocumentError, match="column"):
            await memories.take_in(HOME, PLACE, io.BytesIO(b"a,b\n1,2\n"), "csv")
        with pytest.raises(CallerError, match="xlsx"):
            await memories.take_in(HOME, PLACE, io.BytesIO(b""), "xlsx")


async def test_a_search_finds_the_same_text_and_those_like_it(database_url: str) -> None:
    """Best first, each with its likeness; another workspace finds nothing."""
    async with opened(database_url) as database:
        memories = Memories(database, InlineOffload())
        given = [
            entry("Move the selected files to the folder", "Déplacer les fichiers choisis dans le dossier"),
            entry("Move the selected file to the folder", "Déplacer le fichier choisi dans le dossier"),
            entry("Something else altogether", "Tout autre chose"),
        ]
        await database.run(remembering.take_in, HOME, PLACE, given)
        found = await memories.search(HOME, PLACE, "Move the selected file to the folder", 5)
        assert [one.text for one in found] == [given[1].text, given[0].text]
        assert found[0].score == 100 > found[1].score > 75
        assert await memories.search(Workspace("other"), PLACE, str(given[0].source), 5) == []
        stats = await memories.stats(HOME, "docs")
        assert stats["memory"] == [
            {"source_locale": "en", "target_locale": "fr", "origin": "imported", "number": 3}
        ]


@pytest.mark.parametrize("kind", ["tbx", "csv"])
async def test_a_glossary_comes_back_from_its_file_as_it_was(database_url: str, kind: str) -> None:
    """Status, case, notes, and what is not translated."""
    given = [
        Term("folder", "dossier", "fr", note="of a file system"),
        Term("folder", "répertoire", "fr", "forbidden"),
        Term("Mail", "Mail", "fr", case_sensitive=True),
        Term("Dragoman", "", "", "kept", case_sensitive=True, note="our name"),
    ]
    async with opened(database_url) as database:
        glossaries = Glossaries(database, InlineOffload())
        assert await glossaries.put(HOME, PLACE.shelf, given) == len(given)
        file = io.BytesIO()
        await glossaries.give_out(HOME, PLACE, file, kind)
        for term in given:
            assert await glossaries.drop(HOME, PLACE.shelf, term)
        file.seek(0)
        assert await glossaries.take_in(HOME, PLACE, file, kind) == Tally(read=4, kept=4)
        library = await database.read(remembering.library, HOME, PLACE.shelf, ["fr"])
        assert {term for some in library.terms.values() for term in some} == set(given)
        file.seek(0)
        assert (await glossaries.take_in(HOME, PLACE, file, kind)).known == 4


async def test_terms_of_another_tool_are_read(database_url: str, tmp_path: Path) -> None:
    """TBX of version 2: a deprecated target is forbidden, a deprecated source is none."""
    martif = """<?xml version="1.0"?><martif type="TBX" xml:lang="en"><text><body>
      <termEntry id="1"><langSet xml:lang="en"><tig><term>screen</term></tig>
        <tig><term>tube</term><termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></tig>
        </langSet>
        <langSet xml:lang="fr"><tig><term>écran</term></tig>
        <tig><term>moniteur</term><termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote>
        </tig></langSet></termEntry></body></text></martif>"""
    async with opened(database_url) as database:
        glossaries = Glossaries(database, InlineOffload())
        tally = await glossaries.take_in(HOME, PLACE, io.BytesIO(martif.encode()), "tbx")
        assert tally == Tally(read=2, kept=2)
        library = await database.read(remembering.library, HOME, PLACE.shelf, ["fr"])
        assert {(term.source, term.target, term.status) for term in library.terms["fr"]} == {
            ("screen", "écran", "preferred"),
            ("screen", "moniteur", "forbidden"),
        }
