"""Step 5b: the engine is asked about accepted submissions, so that a dead callback strands no finished
work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import Halted, OutsideError, StoreError
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import RECONCILE_AGE_SECONDS, RECONCILE_PER_RUN, RECONCILE_RUN_SECONDS
from dragoman.machines.tables import JOB
from dragoman.model.contracts import EngineClient
from dragoman.model.events import event_of, pages_needed
from dragoman.model.intents import LOCAL
from dragoman.model.jobs import PARKINGS
from dragoman.store.acts import giving_up, reconciling, settling
from dragoman.store.database import Database

_ASK_SECONDS = 10.0
_LOST = (
    "the engine knows no job {}: it has lost it, or the token is another account's than the one that sent it;"
    " see `dragoman give-up`"
)
_log = logger(__name__)


class Reconciliation:
    """Asks about at most 20 submissions a run, for at most 20 seconds; about each every `age_seconds`.

    Only about those that were made for this `account` at an engine.
    """

    def __init__(
        self,
        database: Database,
        engine: EngineClient,
        clock: Clock,
        age_seconds: float = RECONCILE_AGE_SECONDS,
        account: str = LOCAL,
    ) -> None:
        self._database = database
        self._engine = engine
        self._clock = clock
        self._age_seconds = age_seconds
        self._account = account
        self._account_is_here = account == LOCAL

    async def step(self) -> int:
        """Ask about the submissions that are due; how many were asked about.

        Those that a slow engine left no time for come first next time; one that is answered with nonsense, or
        not at all, costs the others nothing, and its manifest's health says so.
        """
        due = await self._database.run(
            reconciling.due_inquiries, RECONCILE_PER_RUN, self._age_seconds, self._account
        )
        until = self._clock.monotonic() + RECONCILE_RUN_SECONDS
        for asked, inquiry in enumerate(due):
            if self._clock.monotonic() >= until:
                left = [one.submission_id for one in due[asked:]]
                await self._database.run(reconciling.give_turns_back, left)
                return asked
            await self._ask(inquiry)
        return len(due)

    async def _ask(self, inquiry: reconciling.Inquiry) -> None:
        """Ask about one submission, and use what is said; its next turn is in a minute, whatever comes."""
        code = message = ""
        try:
            view = await self._engine.job(inquiry.workspace, inquiry.remote_job_id, _ASK_SECONDS)
            if view is None:
                code, message = giving_up.UNKNOWN, _LOST.format(inquiry.remote_job_id)
                if await self._database.run(giving_up.end_canceled, inquiry.submission_id) > 0:
                    return
            else:
                await self._use(inquiry, view)
        except (StoreError, Halted):
            raise
        except OutsideError as error:
            code, message = error.code, error.message
        except Exception:  # noqa: BLE001 - whatever an engine says: the next submission has its turn
            _log.exception("reconciliation.unreadable", submission=inquiry.submission_id)
            code, message = "backend_unavailable", "the engine's answer about this job cannot be used"
        if code != inquiry.error_code:
            await self._database.run(reconciling.note_answer, inquiry.submission_id, code, message)

    async def _use(self, inquiry: reconciling.Inquiry, view: Mapping[str, Any]) -> None:
        if not self._account_is_here and view["status"] not in JOB.terminal:
            parked_for = str(view.get("parked_for") or "")
            await self._database.run(
                reconciling.note_parking, inquiry.submission_id, parked_for if parked_for in PARKINGS else ""
            )
        if view["status"] == "processing":
            await self._database.run(reconciling.mark_processing, inquiry.submission_id)
        if view["status"] not in JOB.terminal:
            return
        if pages_needed(view):  # the view of an ended job is its frozen event
            view = {**view, "items": await self._pages(inquiry), "results": "inline"}
        await self._database.run(settling.settle_event, event_of(view))

    async def _pages(self, inquiry: reconciling.Inquiry) -> list[Any]:
        items: list[Any] = []
        cursor = ""
        while True:
            page = await self._engine.items(inquiry.workspace, inquiry.remote_job_id, cursor, _ASK_SECONDS)
            items += cast(list[Any], page["items"])
            cursor = str(page.get("next_cursor") or "")
            if not cursor:
                return items
