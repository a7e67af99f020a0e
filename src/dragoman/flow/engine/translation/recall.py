"""What the project's memory knows of a job's texts: the same text, and texts that are like it.

The same text in the same context fills a field, unless it was translated by AI from something that has
changed since (`basis`); then the same text without any context, as people and files give it. A text that is
only like another fills a field where the project asks for that by its threshold, and numbers and code agree;
else it is shown to a provider that learns from examples. Whatever fills a field has passed its checks now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from dragoman.content import likeness, prompting, sameness, verdicts
from dragoman.flow.engine.translation.work import JobWork
from dragoman.kernel.limits import (
    FUZZY_CHARS_MAX,
    FUZZY_PAGE,
    FUZZY_SCORE_MIN,
    FUZZY_SHOWN,
    FUZZY_SHOWN_CHARS,
    INDEX_PAGE,
    INDEX_PER_JOB,
    RECALL_BATCH,
)
from dragoman.kernel.offload import Offload
from dragoman.model.contracts import ReadsExamples
from dragoman.model.documents import Text
from dragoman.model.jobs import Field, Result
from dragoman.model.memories import Known, Place, Query
from dragoman.model.scopes import Workspace
from dragoman.store.acts import remembering
from dragoman.store.database import Database

T = TypeVar("T")

_FUZZY = "fuzzy_match"
"""Stands beside the checks that ask for a look: the text that was translated is not quite this one."""
_SAME = 100.0


class _Match(NamedTuple):
    """A text of the memory that is like a field's, and how much."""

    source_hash: str
    source: str
    score: float


class Recall:
    """Looks into the memory of a job's project, and of no other. The `unshown` are shown no examples."""

    def __init__(self, database: Database, offload: Offload, unshown: Collection[str] = ()) -> None:
        self._database = database
        self._offload = offload
        self._unshown = unshown

    async def known(self, work: JobWork, fields: Sequence[Field]) -> list[Result]:
        """What the memory fills of these fields; what is like them is put down in `work` for the prompt."""
        results = await self._exact(work, fields)
        filled = {result.ordinal for result in results}
        rest = [field for field in fields if field.ordinal not in filled and _is_comparable(field)]
        lenient = work.library.manner.threshold < _SAME
        learns = isinstance(work.provider, ReadsExamples) and work.provider.name not in self._unshown
        if rest and (lenient or learns):
            await self._index(work)
            results += await self._alike(work, rest)
        return results

    async def _exact(self, work: JobWork, fields: Sequence[Field]) -> list[Result]:
        results: list[Result] = []
        for locale, page in _pages(fields, RECALL_BATCH):
            hashes = sorted({field.source_hash for field in page})
            known = await self._database.read(remembering.recall, *_at(work, locale), hashes)
            for field in page:
                for text in _choices(work, field, known.get(field.source_hash, ())):
                    found = _recalled(work, field, text)
                    if found:
                        results += found
                        break
        return results

    async def _index(self, work: JobWork) -> None:
        """Make findable what was remembered since somebody last searched; a bounded part of it."""
        scope, shelf = Workspace(work.job.workspace), work.shelf
        for _ in range(max(1, INDEX_PER_JOB // INDEX_PAGE)):
            fresh = await self._database.read(remembering.unindexed, scope, shelf, INDEX_PAGE)
            if fresh:
                segments = await self._offload.call(likeness.segments, fresh)
                await self._database.run(remembering.index_texts, scope, shelf, segments)
            if len(fresh) < INDEX_PAGE:
                return

    async def _alike(self, work: JobWork, fields: Sequence[Field]) -> list[Result]:
        """A text is looked for once, whatever the locales are that it goes into."""
        results: list[Result] = []
        of_text: dict[str, list[Field]] = {}
        for field in fields:
            of_text.setdefault(likeness.compared(str(field.value)), []).append(field)
        scope, listed = Workspace(work.job.workspace), list(of_text)
        for start in range(0, len(listed), FUZZY_PAGE):
            texts = listed[start : start + FUZZY_PAGE]
            queries = [_query(number, text) for number, text in enumerate(texts)]
            found = await self._database.read(remembering.look_alike, scope, work.shelf, queries)
            scored = await self._offload.call(_scored, texts, found)
            matches = {
                field.ordinal: some
                for text, some in zip(texts, scored, strict=True)
                for field in of_text[text]
            }
            asked = [field for text in texts for field in of_text[text] if matches[field.ordinal]]
            for locale, page in _pages(asked, FUZZY_PAGE):
                hashes = sorted({match.source_hash for field in page for match in matches[field.ordinal]})
                known = await self._database.read(remembering.recall, *_at(work, locale), hashes)
                for field in page:
                    results += _used(work, field, matches[field.ordinal], known)
        return results


def _query(key: int, text: str) -> Query:
    return Query(key, tuple(likeness.asked_grams(text)), *likeness.band(len(text)))


def _scored(texts: Sequence[str], found: Mapping[int, Mapping[str, str]]) -> list[list[_Match]]:
    """What is like each of these texts, best first."""
    return [
        [
            _Match(alike.key, found[number][alike.key], alike.score)
            for alike in likeness.closest(text, found[number], 2 * FUZZY_SHOWN, FUZZY_SCORE_MIN)
        ]
        for number, text in enumerate(texts)
    ]


def _used(
    work: JobWork, field: Field, matches: Sequence[_Match], known: Mapping[str, Sequence[Known]]
) -> list[Result]:
    """A field filled by the best match that may fill it; else its examples are put down."""
    shown: list[tuple[str, str]] = []
    text = str(field.value)
    for match in matches:
        there = known.get(match.source_hash, ())
        usable = [one.text for one in there if isinstance(one.text, str) and _is_good(work, field, one)]
        enough = work.library.manner.threshold <= match.score < _SAME
        if usable and enough and likeness.agree(text, match.source, field.syntax):
            filled = _recalled(work, field, usable[0], (_FUZZY,))
            if filled:
                return filled
        shown += [(match.source, one) for one in usable[:1]]
    work.similar[field.ordinal] = tuple(
        prompting.example(source, target, field.syntax) for source, target in shown[:FUZZY_SHOWN]
    )
    return []


def _is_good(work: JobWork, field: Field, known: Known) -> bool:
    """Whether a translation may serve another text: one by AI was made as it would be made now."""
    size = len(known.text) if isinstance(known.text, str) else 0
    return size <= FUZZY_SHOWN_CHARS and (known.origin != "ai" or known.basis == work.basis(field))


def _choices(work: JobWork, field: Field, known: Sequence[Known]) -> Iterator[Text]:
    """What may fill a field, best first: its own context, then none."""
    for one in known:
        is_current = one.origin != "ai" or one.basis == work.basis(field)
        if one.context_hash == field.context_hash and is_current:
            yield one.text
    for plain in sameness.plain_contexts(field.syntax):
        for one in known:
            if one.context_hash == plain != field.context_hash and one.origin != "ai":
                yield one.text


def _recalled(work: JobWork, field: Field, text: Text, said: tuple[str, ...] = ()) -> list[Result]:
    """A field's results out of the memory; none where the text does not pass its checks here."""
    fitted = sameness.refitted(field.value, text)
    longest = len(fitted) if isinstance(fitted, str) else max(map(len, fitted.values()))
    if field.max_length is not None and longest > field.max_length:
        return []
    review, passes = verdicts.review(work.job.source_locale, field, fitted, work.terms(field))
    if not passes:
        return []
    return work.results(field, fitted, "memory", (*review, *said))


def _is_comparable(field: Field) -> bool:
    return isinstance(field.value, str) and field.syntax != "icu" and len(field.value) <= FUZZY_CHARS_MAX


def _at(work: JobWork, locale: str) -> tuple[Workspace, Place]:
    return Workspace(work.job.workspace), Place(work.job.project, work.job.source_locale, locale)


def _pages(fields: Sequence[Field], size: int) -> Iterator[tuple[str, Sequence[Field]]]:
    """Fields of one locale at a time, so many at most."""
    for locale in sorted({field.target_locale for field in fields}):
        mine = [field for field in fields if field.target_locale == locale]
        for start in range(0, len(mine), size):
            yield locale, mine[start : start + size]
