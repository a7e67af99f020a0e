"""What needs no call: locales that the provider does not know, the memory, texts tried in vain before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

from dragoman.flow.engine.translation.recall import Recall
from dragoman.flow.engine.translation.work import JobWork
from dragoman.kernel.errors import LocaleError
from dragoman.kernel.limits import JOBS_PER_FIELD_MAX, RECALL_BATCH
from dragoman.kernel.offload import Offload
from dragoman.model.completions import CompletionRequest
from dragoman.model.jobs import Field, Result
from dragoman.store.acts import closing, job_views
from dragoman.store.database import Database

T = TypeVar("T")

_GAVE_UP = "it has failed in earlier jobs: change the text, the model or the prompt, or retry with force"


class Knowing:
    """Finds out before any money is spent, and writes it down in one transaction."""

    def __init__(self, database: Database, offload: Offload, without_examples: Collection[str] = ()) -> None:
        self._database = database
        self._recall = Recall(database, offload, without_examples)

    async def record(self, work: JobWork, fields: Sequence[Field]) -> None:
        """End every one of these open fields whose end is known without asking. Raises `LeaseLost`."""
        refused = _refused_locales(work, fields)
        results = [
            result
            for field in fields
            if field.target_locale in refused
            for result in work.failures(field, "unsupported_locale", refused[field.target_locale])
        ]
        rest = [field for field in fields if field.target_locale not in refused]
        remembered = await self._recall.known(work, rest)
        results += remembered
        filled = {result.ordinal for result in remembered}
        rest = [field for field in rest if field.ordinal not in filled]
        results += await self._given_up(work, rest)
        if results:
            await self._database.run(closing.record_results, work.fence, work.job, results)
            work.ended(results)

    async def _given_up(self, work: JobWork, fields: Sequence[Field]) -> list[Result]:
        """Fields that have failed in as many jobs as a field is tried in."""
        results: list[Result] = []
        if work.job.options.force or not work.has_trials:
            return results
        for page in _pages(fields):
            keys = {field.ordinal: work.trial_key(field) for field in page}
            tried = await self._database.read(job_views.tried, work.job, sorted(set(keys.values())))
            for field in page:
                if tried.get(keys[field.ordinal], 0) >= JOBS_PER_FIELD_MAX:
                    results += work.failures(field, "gave_up", _GAVE_UP)
        return results


def _refused_locales(work: JobWork, fields: Sequence[Field]) -> dict[str, str]:
    """Locale → why this provider cannot be asked for it; where that is all of them, the job is impossible."""
    locales = {field.target_locale for field in fields}
    refused: dict[str, str] = {}
    for locale in sorted(locales):
        try:
            work.provider.target_code(locale)
            work.provider.render(CompletionRequest(work.job.source_locale, locale, ()))  # the pair, too
        except LocaleError as error:
            refused[locale] = error.message
    if refused and len(refused) == len(locales) == len({field.target_locale for field in work.open.values()}):
        work.fail("unsupported_locale", next(iter(refused.values())))
    return refused


def _pages(listed: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(listed), RECALL_BATCH):
        yield listed[start : start + RECALL_BATCH]
