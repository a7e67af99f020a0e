"""A project's terms as people work with them: taken in from files, and given out.

A TBX concept gives a pair for each of its source terms and target terms. What TBX cannot say stands as a line
of the source term's note: `do not translate`, `case sensitive`. Files are worked in pages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice
from typing import BinaryIO

from dragoman.content import locales
from dragoman.content.exchange import csv_rows, tbx
from dragoman.content.exchange.tbx import Concept
from dragoman.kernel.errors import CallerError, LocaleError
from dragoman.kernel.limits import MEMORY_PAGE, TERM_CHARS_MAX
from dragoman.kernel.offload import Offload
from dragoman.model.memories import Place, Shelf, Tally, Term, TermStatus
from dragoman.model.scopes import Workspace
from dragoman.store.acts import remembering
from dragoman.store.database import Database

Progress = Callable[[int], None]

_KEPT = "do not translate"
_CASE = "case sensitive"
_NOTE_CHARS_MAX = 1000


class Glossaries:
    """The glossaries of all projects of a process's database."""

    def __init__(self, database: Database, offload: Offload) -> None:
        self._database = database
        self._offload = offload

    async def take_in(
        self, scope: Workspace, place: Place, stream: BinaryIO, kind: str, progress: Progress = lambda _: None
    ) -> Tally:
        """Write down the terms of a file (`tbx` or `csv`). Raises `DocumentError` where it cannot be read."""
        if kind == "tbx":
            terms = _of_concepts(tbx.read_tbx(stream), place)
        elif kind == "csv":
            terms = csv_rows.read_terms(stream, place.source_locale, place.target_locale)
        else:
            raise _no_format(kind)
        total = Tally()
        while page := await self._offload.call(_next_page, terms):
            fit = [term for term in page if len(term.source) <= TERM_CHARS_MAX >= len(term.target)]
            new = await self._database.run(remembering.put_terms, scope, place.shelf, fit)
            total = total.plus(Tally(len(page), new, len(fit) - new, len(page) - len(fit)))
            progress(total.read)
        return total

    async def give_out(
        self, scope: Workspace, place: Place, stream: BinaryIO, kind: str, progress: Progress = lambda _: None
    ) -> Tally:
        """Write the terms of a locale pair, those for all target locales among them."""
        if kind not in ("tbx", "csv"):
            raise _no_format(kind)
        terms = [term async for term in self._terms(scope, place)]
        progress(len(terms))
        if kind == "csv":
            stream.write(csv_rows.row(csv_rows.TERM_COLUMNS))
            stream.writelines(map(csv_rows.term_row, terms))
        else:
            tbx.write_tbx(stream, _concepts(terms, place))
        return Tally(len(terms), len(terms))

    async def put(self, scope: Workspace, shelf: Shelf, terms: Iterable[Term]) -> int:
        """Write down a page of terms; how many were new."""
        return await self._database.run(remembering.put_terms, scope, shelf, list(terms))

    async def drop(self, scope: Workspace, shelf: Shelf, term: Term) -> bool:
        """Take a term out; False where it does not stand."""
        return await self._database.run(remembering.drop_term, scope, shelf, term)

    async def _terms(self, scope: Workspace, place: Place) -> AsyncIterator[Term]:
        for locale in ("", place.target_locale):
            after, here = "", place._replace(target_locale=locale)
            while True:
                page, after = await self._database.read(
                    remembering.terms_page, scope, here, after, MEMORY_PAGE
                )
                for term in page:
                    yield term
                if not after:
                    break


def _no_format(kind: str) -> CallerError:
    return CallerError(f"no format {kind!r} for glossaries; known are tbx and csv", "unsupported_format")


def _next_page(terms: Iterator[Term]) -> list[Term]:
    return list(islice(terms, MEMORY_PAGE))


def _of_concepts(concepts: Iterator[Concept], place: Place) -> Iterator[Term]:
    for concept in concepts:
        sources = [term for term in concept.terms if _speaks(term.locale, place.source_locale)]
        targets = [term for term in concept.terms if _speaks(term.locale, place.target_locale)]
        for source in sources:
            if source.status in ("deprecated", "forbidden"):
                continue
            lines = [line.strip() for line in source.note.splitlines()]
            case = _CASE in lines
            note = "\n".join(line for line in lines if line not in (_KEPT, _CASE))[:_NOTE_CHARS_MAX]
            if _KEPT in lines:
                yield Term(source.text, "", "", "kept", case, note)
                continue
            for target in targets:
                wrong = target.status in ("deprecated", "forbidden")
                status: TermStatus = "forbidden" if wrong else "preferred"
                yield Term(source.text, target.text, place.target_locale, status, case, note)


def _speaks(said: str, locale: str) -> bool:
    """Whether terms of one tag are for a locale: the same, or its language alone."""
    try:
        tag = locales.canonical(said)
    except LocaleError:
        return False
    return tag == locale or locales.equivalent(tag, locale) or tag == locale.partition("-")[0]


def _concepts(terms: Iterable[Term], place: Place) -> Iterator[Concept]:
    for number, term in enumerate(terms, 1):
        marks = (_KEPT if term.status == "kept" else "", _CASE if term.case_sensitive else "", term.note)
        source = tbx.Term(term.source, place.source_locale, note="\n".join(filter(None, marks)))
        status: tbx.Status = "forbidden" if term.status == "forbidden" else "preferred"
        target = [tbx.Term(term.target, place.target_locale, status)] if term.status != "kept" else []
        yield Concept(f"c{number}", (source, *target))
