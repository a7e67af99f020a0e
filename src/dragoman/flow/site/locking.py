"""Between `dragoman.lock` and `entries`: a fresh database takes over what the files prove, and what is on
record goes out as lines.

A line counts only where source and translation are both as it says. So a fresh clone pays for nothing that
was translated before, and what a person changed stays a person's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from dragoman.content import documents, lockfile
from dragoman.content.lockfile import Line, LockedUnit, Pair
from dragoman.content.locks import Locks
from dragoman.kernel import canonical
from dragoman.kernel.errors import DragomanError
from dragoman.kernel.limits import LOCK_PAIRS_PER_STEP
from dragoman.kernel.offload import Offload
from dragoman.model.contracts import Format, Source
from dragoman.model.documents import Document
from dragoman.model.scopes import Workspace
from dragoman.store.acts import adopting, estimating
from dragoman.store.database import Database


class Stale(NamedTuple):
    """One pair that the lock does not vouch for, and why."""

    document: str
    locale: str
    why: str


class Locking:
    """Fills what is on record from a lock, and makes a lock of what is on record."""

    def __init__(
        self,
        database: Database,
        source_of: Callable[[Mapping[str, Any]], Source],
        formats: Sequence[Format],
        offload: Offload,
    ) -> None:
        self._database = database
        self._source_of = source_of
        self._formats = formats
        self._offload = offload

    async def fill(
        self,
        workspace: str,
        project: str,
        pairs: Sequence[Pair],
        settings: Mapping[str, Any],
        lines: Mapping[Pair, Sequence[Line]],
    ) -> int:
        """Take over the pairs that nothing is known of and that stand as their lines say; how many."""
        scope, filled = Workspace(workspace), 0
        registered = canonical.encode({"source_locale": settings["source_locale"]}).decode()
        for page in _pages([pair for pair in sorted(pairs) if pair in lines]):
            unknown = await self._database.read(adopting.unknown_pairs, scope, project, page)
            proven = await self._offload.call(self._proven, settings, unknown, lines)
            if proven:
                filled += await self._database.run(adopting.adopt_entries, scope, project, registered, proven)
        return filled

    async def export(
        self,
        workspace: str,
        project: str,
        pairs: Sequence[Pair],
        settings: Mapping[str, Any],
        lines: Mapping[Pair, Sequence[Line]],
    ) -> dict[Pair, Sequence[Line]]:
        """The lines as they shall be: anew for these pairs, the others kept while their document is there."""
        asked = set(pairs)
        others = {pair: several for pair, several in lines.items() if pair not in asked}
        there = await self._offload.call(self._source_of(settings).exists, sorted({d for d, _ in others}))
        made = {pair: several for pair, several in others.items() if there.get(pair[0], False)}
        for page in _pages(sorted(pairs)):
            known = await self._database.read(estimating.known_entries, Workspace(workspace), project, page)
            made |= await self._offload.call(self._lines, settings, page, known)
        return made

    def _proven(
        self, settings: Mapping[str, Any], pairs: Sequence[Pair], lines: Mapping[Pair, Sequence[Line]]
    ) -> dict[Pair, list[adopting.Adopted]]:
        shelf = _Shelf(self._source_of(settings), self._formats, str(settings["source_locale"]))
        found: dict[Pair, list[adopting.Adopted]] = {}
        for pair in pairs:
            units = shelf.matching(pair, lines[pair])
            if isinstance(units, dict):
                found[pair] = [adopting.Adopted(key, *unit) for key, unit in units.items()]
        return found

    def _lines(
        self, settings: Mapping[str, Any], pairs: Sequence[Pair], known: Mapping[Pair, Mapping[str, Any]]
    ) -> dict[Pair, Sequence[Line]]:
        shelf = _Shelf(self._source_of(settings), self._formats, str(settings["source_locale"]))
        made: dict[Pair, Sequence[Line]] = {}
        for pair in pairs:
            keys = shelf.keys(pair[0]) if pair in known else frozenset()
            units = {key: _locked(row) for key, row in known.get(pair, {}).items() if key in keys}
            if units:
                made[pair] = (lockfile.line_of(units),)
        return made


def stale(
    source: Source,
    formats: Sequence[Format],
    source_locale: str,
    pairs: Sequence[Pair],
    lines: Mapping[Pair, Sequence[Line]],
    locks: Locks,
) -> list[Stale]:
    """What a lock does not vouch for, by the files alone; opens no database. What `locks` hold is not missed.

    Pairs that are not as their lines say, or not translated whole, and lines whose document is gone.
    """
    shelf = _Shelf(source, formats, source_locale, locks)
    found: list[Stale] = []
    for pair in sorted(pairs):
        why = shelf.complaint(pair, lines.get(pair, ()))
        if why:
            found.append(Stale(*pair, why))
    asked = {document for document, _ in pairs}
    others = sorted(pair for pair in lines if pair[0] not in asked)
    there = source.exists(sorted({document for document, _ in others}))
    found += [Stale(*pair, "its document is gone") for pair in others if not there.get(pair[0], False)]
    return sorted(found)


class _Shelf:
    """Source documents, each read once, with their translations beside."""

    def __init__(
        self, source: Source, formats: Sequence[Format], source_locale: str, locks: Locks | None = None
    ) -> None:
        self._locks = locks or Locks(())
        self._source = source
        self._formats = formats
        self._locale = source_locale
        self._opened: tuple[str, tuple[Format, Document] | DragomanError] | None = None

    def keys(self, document: str) -> frozenset[str]:
        """Hashes of the keys of a document; none where it cannot be read."""
        opened = self._open(document)
        return frozenset() if isinstance(opened, DragomanError) else lockfile.wanted_keys(opened[1])

    def matching(self, pair: Pair, lines: Sequence[Line]) -> dict[str, LockedUnit] | str:
        """The units of a pair that stand as a line says, else why they do not."""
        opened = self._open(pair[0])
        if isinstance(opened, DragomanError):
            return opened.message
        form, text = opened
        try:
            data = self._source.read_target(*pair)
            if data is None or not data.strip():
                return "its translation is gone"
            path = self._source.target_path(*pair)
            target = documents.open_document(form, path, data, "target", pair[1])
        except DragomanError as error:
            return error.message
        found = lockfile.matching(lines, text, target, form.whole)
        return "source or translation changed since" if found is None else found

    def complaint(self, pair: Pair, lines: Sequence[Line]) -> str:
        """Why a pair is stale; empty where it is whole and as its line says."""
        if not lines:
            return "it has no line" if self._missed(pair[0]) else ""
        units = self.matching(pair, lines)
        if isinstance(units, str):
            return units
        left = len(self._missed(pair[0]) - set(units))
        return f"{left} of its texts are not translated" if left else ""

    def _missed(self, document: str) -> frozenset[str]:
        """Hashes of the keys that somebody would translate."""
        opened = self._open(document)
        if isinstance(opened, DragomanError):
            return frozenset()
        form, text = opened
        return lockfile.wanted_keys(self._locks.unlocked(text, document, form.whole))

    def _open(self, document: str) -> tuple[Format, Document] | DragomanError:
        if self._opened is None or self._opened[0] != document:
            self._opened = (document, self._read(document))
        return self._opened[1]

    def _read(self, document: str) -> tuple[Format, Document] | DragomanError:
        try:
            data = self._source.read(document)
            form = documents.choose_format(self._formats, document, data)
            return form, documents.open_document(form, document, data, "source", self._locale)
        except DragomanError as error:
            return error


def _locked(row: Any) -> LockedUnit:
    """An entry as a line has it. What a person made of a text is on record nowhere."""
    return LockedUnit(row.source_hash, "" if row.origin == "person" else row.written_hash, row.origin)


def _pages(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    waiting = iter(pairs)
    while page := list(islice(waiting, LOCK_PAIRS_PER_STEP)):
        yield page
