"""Planted faults where work goes on in the background, is handed on, waits, or may not begin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

from dragoman.families.completion import Completion
from dragoman.flow.engine.translation.fallback import Fallback
from dragoman.ledger.acting import Ledger
from dragoman.machines.tables import ATTEMPT
from dragoman.model.effects import Answer, Outgoing
from dragoman.model.jobs import Job, OpenCall
from dragoman.store.acts import falling_back
from dragoman.store.rows import budgets, jobs
from dragoman.store.transaction import Tx


def left_running() -> AbstractContextManager[object]:
    """A job that nobody wants ends at once, whatever a provider works on for it."""
    return mock.patch.object(OpenCall, "is_under_way", property(lambda self: False))


def failed_look_taken_for_an_end() -> AbstractContextManager[object]:
    """A look that finds nothing has found that there is nothing."""
    inquire = Ledger.inquire

    async def hasty(self: Ledger, family: str, outgoing: Outgoing, seconds: float) -> Answer | None:
        answer = await inquire(self, family, outgoing, seconds)
        if answer is not None and answer.outcome in ATTEMPT.groups["UNKNOWN"]:
            return replace(answer, outcome="NOT_STARTED", final=True)
        return answer

    return mock.patch.object(Ledger, "inquire", hasty)


def made_again_where_its_id_was_lost() -> AbstractContextManager[object]:
    """What has no reference is not asked about."""
    inquire = Completion.inquire

    async def incurious(self: Completion, outgoing: Outgoing, seconds: float) -> Answer | None:
        return await inquire(self, outgoing, seconds) if outgoing.facts.get("reference") else None

    return mock.patch.object(Completion, "inquire", incurious)


def reserve_kept() -> AbstractContextManager[object]:
    """What an attempt had reserved that came to nothing stays reserved."""
    return mock.patch.object(budgets, "release", return_value=None)


def handed_over_in_doubt() -> AbstractContextManager[object]:
    """A job is handed on though somebody may be owed money for it."""
    return mock.patch.object(falling_back, "_owes_nothing", return_value=True)


def heirs_of_heirs() -> AbstractContextManager[object]:
    """The list of whoever has the job counts."""
    ways = Fallback._ways

    def his(self: Fallback, name: str, job: Job, fields: Any) -> Any:
        return ways(self, name, replace(job, options=replace(job.options, first="")), fields)

    return mock.patch.object(Fallback, "_ways", his)


@contextmanager
def _permitted(**changed: object) -> Iterator[None]:
    permissions = jobs.permissions

    def permitted(tx: Tx, *asked: Any) -> Any:
        rows = permissions(tx, *asked)
        return {job: SimpleNamespace(**{**row._asdict(), **changed}) for job, row in rows.items()}

    with mock.patch.object(jobs, "permissions", permitted):
        yield


def deaf_to_people() -> AbstractContextManager[object]:
    """A pause and a cancel are not looked at by those who begin calls."""
    return _permitted(paused=False, canceled=False, cancel_asked=False)


def deaf_to_providers() -> AbstractContextManager[object]:
    """A time that a provider has named is not looked at."""
    return _permitted(until=None)
