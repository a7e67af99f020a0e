"""A project's memory as people work with it: taken in from files, given out, counted and searched.

What is taken in is checked like an answer of a provider; what fails is left out and counted. Files are
worked in pages, so that memory does not grow with them. A page is one transaction: an import that breaks off
has taken in whole pages, and may simply be run again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import BinaryIO, NamedTuple, cast

from dragoman.content import likeness, sameness, verdicts
from dragoman.content.exchange import csv_rows, tmx
from dragoman.content.exchange.csv_rows import PROPERTY
from dragoman.content.exchange.tmx import TmxUnit
from dragoman.content.passing import passes_through
from dragoman.kernel.clock import MICROSECONDS
from dragoman.kernel.errors import CallerError, DocumentError
from dragoman.kernel.limits import FIELD_CHARS_MAX, INDEX_PAGE, MEMORY_PAGE
from dragoman.kernel.offload import Offload
from dragoman.model.jobs import Field
from dragoman.model.memories import Origin, Place, Query, Remembered, Shelf, Tally
from dragoman.model.scopes import Workspace
from dragoman.store.acts import remembering
from dragoman.store.database import Database

Progress = Callable[[int], None]
_HASH = re.compile(r"[0-9a-f]{64}")
_SAME = 100.0


class Found(NamedTuple):
    """A translation that a search came upon; 100 is the same text."""

    score: float
    source: str
    text: str
    origin: str


class Memories:
    """The memories of all projects of a process's database."""

    def __init__(self, database: Database, offload: Offload) -> None:
        self._database = database
        self._offload = offload

    async def take_in(
        self, scope: Workspace, place: Place, stream: BinaryIO, kind: str, progress: Progress = lambda _: None
    ) -> Tally:
        """Remember what a file holds (`tmx` or `csv`). Raises `DocumentError` where it cannot be read."""
        read = {"tmx": tmx.read_tmx, "csv": csv_rows.read_units}.get(kind)
        if read is None:
            raise _no_format(kind)
        units = read(stream, place.source_locale, place.target_locale)
        total, unindexed = Tally(), 0
        while True:
            page, tally = await self._offload.call(_checked_page, units)
            if not tally.read:
                break
            new = await self._database.run(remembering.take_in, scope, place, page) if page else 0
            total = total.plus(tally).plus(Tally(kept=new, known=len(page) - new))
            unindexed += len(page)
            if unindexed >= INDEX_PAGE:  # on the way, so that what is shown never stands still for long
                await self._index_page(scope, place.shelf)
                unindexed -= INDEX_PAGE
            progress(total.read)
        await self.index(scope, place.shelf)
        return total

    async def give_out(
        self, scope: Workspace, place: Place, stream: BinaryIO, kind: str, progress: Progress = lambda _: None
    ) -> Tally:
        """Write the memory of a locale pair. Plural forms have no place in these files: they are passed
        over and counted."""
        if kind not in ("tmx", "csv"):
            raise _no_format(kind)
        head = tmx.opening(place.source_locale) if kind == "tmx" else csv_rows.row(csv_rows.UNIT_COLUMNS)
        stream.write(head)
        total, after = Tally(), ("", "")
        while True:
            page = await self._database.read(remembering.memory_page, scope, place, after, MEMORY_PAGE)
            if not page:
                break
            plain = [one for one in page if isinstance(one.source, str)]
            rows = await self._offload.call(_written, plain, place, kind)
            stream.writelines(rows)
            refused = len(plain) - len(rows)
            total = total.plus(Tally(len(page), len(rows), 0, refused, len(page) - len(plain)))
            after = (page[-1].source_hash, page[-1].context_hash)
            progress(total.read)
        if kind == "tmx":
            stream.write(tmx.CLOSING)
        return total

    async def index(self, scope: Workspace, shelf: Shelf) -> None:
        """Let searches find everything that is remembered."""
        while await self._index_page(scope, shelf):
            pass

    async def search(self, scope: Workspace, place: Place, text: str, count: int) -> list[Found]:
        """The translations of this text and of texts like it, best first."""
        await self.index(scope, place.shelf)
        compared = likeness.compared(text)
        query = Query(0, tuple(likeness.asked_grams(compared)), *likeness.band(len(compared)))
        found = await self._database.read(remembering.look_alike, scope, place.shelf, [query])
        alike = likeness.closest(compared, found[0], 2 * count)
        hashes = sorted({one.key for one in alike})
        known = await self._database.read(remembering.recall, scope, place, hashes) if hashes else {}
        listed = [
            Found(round(one.score, 1), found[0][one.key], translation.text, translation.origin)
            for one in alike
            for translation in known.get(one.key, ())
            if isinstance(translation.text, str)
        ]
        return listed[:count]

    async def stats(self, scope: Workspace, project: str) -> dict[str, list[dict[str, object]]]:
        """How much a project remembers, by locale pair and origin, and how many terms it has."""
        return await self._database.read(remembering.stats, scope, project)

    async def _index_page(self, scope: Workspace, shelf: Shelf) -> bool:
        """Whether there may be more."""
        texts = await self._database.read(remembering.unindexed, scope, shelf, INDEX_PAGE)
        if texts:
            segments = await self._offload.call(likeness.segments, texts)
            await self._database.run(remembering.index_texts, scope, shelf, segments)
        if len(texts) < INDEX_PAGE:
            return False
        await self._database.run(remembering.take_stock, scope)
        return True


def _no_format(kind: str) -> CallerError:
    return CallerError(f"no format {kind!r} for memories; known are tmx and csv", "unsupported_format")


def _checked_page(units: Iterator[TmxUnit]) -> tuple[list[Remembered], Tally]:
    """The next page of a file: what is good of it, and how many were read, refused and passed over."""
    page: dict[tuple[str, str], Remembered] = {}
    read = refused = passed = 0
    for unit in islice(units, MEMORY_PAGE):
        read += 1
        if passes_through(unit.source, unit.syntax):
            passed += 1
            continue
        one = _remembered(unit)
        if one is None:
            refused += 1
        else:
            page[one.source_hash, one.context_hash] = one
    passed += read - passed - refused - len(page)
    return list(page.values()), Tally(read=read, refused=refused, passed_over=passed)


def _remembered(unit: TmxUnit) -> Remembered | None:
    """A unit as the memory keeps it; None where nobody would accept it."""
    said = {name: unit.properties.get(f"{PROPERTY}{name}", "") for name in csv_rows.UNIT_COLUMNS[3:]}
    context = said["context"]
    if not _HASH.fullmatch(context):
        context = sameness.context_hash(unit.syntax, "", "")
    basis = said["basis"] if _HASH.fullmatch(said["basis"]) else ""
    origin: Origin = "imported"
    if said["origin"] == "person" or (said["origin"] == "ai" and basis):
        origin = cast(Origin, said["origin"])
    field = Field(
        0,
        unit.target_locale,
        unit.source,
        unit.syntax,
        "",
        "",
        None,
        sameness.source_hash(unit.source, unit.syntax),
        context,
    )
    if max(len(unit.source), len(unit.target)) > FIELD_CHARS_MAX or "\0" in unit.source + unit.target:
        return None
    if not verdicts.review(unit.source_locale, field, unit.target)[1]:
        return None
    return Remembered(
        source_hash=field.source_hash,
        context_hash=context,
        source=unit.source,
        text=unit.target,
        syntax=unit.syntax,
        origin=origin,
        basis=basis if origin == "ai" else "",
        model=said["model"][:191],
        prompt_version=said["prompt"][:16],
        validator_version=said["validator"][:16],
        created_at=_micros(unit.created_at),
        updated_at=_micros(unit.changed_at or unit.created_at),
    )


def _written(page: list[Remembered], place: Place, kind: str) -> list[bytes]:
    """Rows of a file; what its format cannot hold is left out."""
    write = tmx.written if kind == "tmx" else csv_rows.unit_row
    rows: list[bytes] = []
    for one in page:
        with contextlib.suppress(DocumentError):
            rows.append(write(_unit(one, place)))
    return rows


def _unit(one: Remembered, place: Place) -> TmxUnit:
    told = {
        "context": one.context_hash,
        "origin": one.origin,
        "basis": one.basis,
        "model": one.model,
        "prompt": one.prompt_version,
        "validator": one.validator_version,
    }
    return TmxUnit(
        str(one.source),
        str(one.text),
        place.source_locale,
        place.target_locale,
        syntax=one.syntax,
        created_at=datetime.fromtimestamp(one.created_at / MICROSECONDS, UTC),
        changed_at=datetime.fromtimestamp(one.updated_at / MICROSECONDS, UTC),
        properties={f"{PROPERTY}{name}": value for name, value in told.items() if value},
    )


def _micros(instant: datetime | None) -> int:
    return 0 if instant is None else int(instant.timestamp() * MICROSECONDS)
