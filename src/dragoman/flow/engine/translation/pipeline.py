"""Step 3 of the engine: a claimed job is translated, and ends or is parked.

    finish open calls → what is known → group the rest → for each group: reserve, attempt, settle, judge,
    store → finish with one event in the outbox, or park until what is missing has come

What passes through, and what repeats another text of the job, was found out at acceptance.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Literal

from dragoman.content import prompting
from dragoman.flow.engine.translation.calls import Calls
from dragoman.flow.engine.translation.fallback import Fallback
from dragoman.flow.engine.translation.gate import Gate, Place
from dragoman.flow.engine.translation.knowing import Knowing
from dragoman.flow.engine.translation.work import JobWork
from dragoman.kernel.clock import seconds
from dragoman.kernel.errors import CommitUnknown, DragomanError, LeaseLost, OutsideError, StoreError
from dragoman.kernel.identity import Chance
from dragoman.kernel.journal import about, logger
from dragoman.kernel.limits import (
    BUDGET_RETRY_SECONDS,
    BUDGET_WAITERS_WOKEN,
    CALL_TIMEOUT_SECONDS,
    IDLE_POLL_SECONDS,
    JOB_LEASE_SECONDS,
    JOB_STARTS_MAX,
    RETRY_FIRST_SECONDS,
    UNRECORDED_FIELDS_MAX,
)
from dragoman.kernel.offload import InlineOffload, Offload
from dragoman.ledger.acting import Ledger
from dragoman.machines.tables import ATTEMPT
from dragoman.model.budgets import UNBOUNDED, Bounds
from dragoman.model.contracts import Needed, Resolver
from dragoman.model.jobs import QUARANTINED, Claimed, Field, OpenCall, Status
from dragoman.model.scopes import System
from dragoman.store.acts import claiming, finishing, inquiring, job_views
from dragoman.store.acts.job_views import Loaded
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper, Lease

_log = logger(__name__)

_POISON = f"{JOB_STARTS_MAX} workers vanished while they worked on this job, without any progress"

End = Status | Literal["parked", "lost"]


class Translation:
    """Works jobs, one a call of `work`, any number side by side. `gate` is the process's one.

    `bounds` are what each provider, by name, may cost a workspace in a calendar month, `fallbacks` who goes
    on where it refuses to serve; those `without_examples` are shown none.
    """

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        resolve: Resolver,
        need: Needed,
        keeper: Keeper,
        chance: Chance,
        gate: Gate,
        system: System,
        *,
        lease_seconds: float = JOB_LEASE_SECONDS,
        call_timeout_seconds: float = CALL_TIMEOUT_SECONDS,
        offload: Offload | None = None,
        bounds: Mapping[str, Bounds] | None = None,
        fallbacks: Mapping[str, Sequence[str]] | None = None,
        without_examples: Collection[str] = (),
    ) -> None:
        self._database = database
        self._resolve = resolve
        self._keeper = keeper
        self._chance = chance
        self._gate = gate
        self._system = system
        self._lease_seconds = lease_seconds
        self._bounds = bounds or {}
        self._fallback = Fallback(database, resolve, need, fallbacks)
        self._knowing = Knowing(database, offload or InlineOffload(), without_examples)
        self._calls = Calls(database, ledger, chance, keeper.owner, gate, call_timeout_seconds)

    async def work(self, claimed: Claimed) -> End:
        """Bring a claimed job to its end, or as far as it comes now; `lost` where somebody else has it."""
        lease = self._keeper.hold("jobs", (claimed.job_id,), claimed.fence, self._lease_seconds)
        try:
            with about(job=claimed.job_id, fence=claimed.fence):
                return await self._work(claimed, lease)
        except (LeaseLost, CommitUnknown) as lost:
            _log.info("job given up", job=claimed.job_id, code=lost.code)
            self._keeper.drop(lease, lost)
            return "lost"
        except asyncio.CancelledError:
            await self._release(claimed)
            raise
        except Exception as error:
            self._keeper.drop(lease, error)
            raise
        finally:
            self._keeper.drop(lease)

    async def _work(self, claimed: Claimed, lease: Lease) -> End:
        poison = claimed.vanished >= JOB_STARTS_MAX
        if poison and not await self._may_look(claimed):
            return await self._finish(claimed, "failed", QUARANTINED, _POISON)
        loaded = await self._load(claimed)
        options = loaded.job.options
        try:
            provider = self._resolve(options.provider, options.model, options.speed)
        except OutsideError as error:
            return await self._wait(claimed, loaded, error)
        except DragomanError as error:
            if loaded.cancel_asked:
                return await self._finish(claimed, "canceled", "canceled", "the job was canceled")
            if poison:
                return await self._finish(claimed, "failed", QUARANTINED, _POISON)
            if await self._fallback.hand_over(
                claimed, loaded.job, options.provider, loaded.fields, error.code
            ):
                return "parked"
            return await self._finish(claimed, "failed", error.code, error.message)
        bounds = self._bounds.get(provider.name, UNBOUNDED)
        work = JobWork(claimed, loaded, provider, lease, self._chance, bounds)
        if poison:
            work.quarantine(QUARANTINED, _POISON)
            await self._finish_open_calls(work, [call for call in loaded.calls if call.is_doubtful])
            return await self._end(claimed, work)
        await self._finish_open_calls(work, loaded.calls)
        await self._knowing.record(work, _uncalled(work, loaded.calls))
        await self._translate(work, _uncalled(work, loaded.calls))
        return await self._end(claimed, work)

    async def _may_look(self, claimed: Claimed) -> bool:
        """Whether a job that must end has calls in doubt, and no worker has vanished yet from asking."""
        calls = await self._database.read(job_views.unclosed_calls, claimed.job_id)
        in_doubt = any(call.is_doubtful or call.attempt_outcome == ATTEMPT.initial for call in calls)
        return in_doubt and claimed.vanished == JOB_STARTS_MAX

    async def _wait(self, claimed: Claimed, loaded: Loaded, error: OutsideError) -> End:
        """A provider that cannot be asked what it offers is away, as it would be for a call."""
        due_at = self._database.now() + seconds(RETRY_FIRST_SECONDS)
        if due_at > loaded.job.deadline_at:
            return await self._finish(claimed, "failed", "provider_unavailable", error.message)
        await self._database.run(finishing.park_job, claimed.job_id, claimed.fence, "provider", due_at)
        _log.info("job parked", reason="provider", code=error.code)
        return "parked"

    async def _load(self, claimed: Claimed) -> Loaded:
        """The job; what a former holder was sending when it vanished is given up as unknown first."""
        loaded = await self._database.read(job_views.load_job, self._system, claimed.job_id)
        if any(call.attempt_outcome == ATTEMPT.initial for call in loaded.calls):
            await self._database.run(inquiring.take_over_calls, claimed.job_id, claimed.fence)
            loaded = await self._database.read(job_views.load_job, self._system, claimed.job_id)
        return loaded

    async def _finish_open_calls(self, work: JobWork, calls: Sequence[OpenCall]) -> None:
        work.holds = any(call.held for call in calls)
        await _together(self._pursue(work, call) for call in calls if not call.held)

    async def _translate(self, work: JobWork, fields: Sequence[Field]) -> None:
        size = min(work.job.options.batch_size, UNRECORDED_FIELDS_MAX)  # a call is recorded as one
        groups = prompting.groups(fields, size, work.provider.texts_max or sys.maxsize)
        await _together(self._pursue_group(work, group) for group in groups)

    async def _pursue_group(self, work: JobWork, group: Sequence[Field]) -> None:
        tokens, wanted = prompting.tokens(group), lambda: work.may_start
        async with work.slots, self._gate.slot(work.caller, tokens, wanted) as place:
            if not (place and work.may_start):
                return
            call = OpenCall(work.plan("first", group, {}))
            follow_ups = await self._calls.advance(work, call, place)
        await _together(self._pursue(work, call) for call in follow_ups)

    async def _pursue(self, work: JobWork, call: OpenCall) -> None:
        """Bring a call, and all that follow from it, as far as they come now."""
        async with work.slots, self._place_for(work, call) as place:
            if not place:
                return
            follow_ups = await self._calls.advance(work, call, place)
        await _together(self._pursue(work, following) for following in follow_ups)

    @contextlib.asynccontextmanager
    async def _place_for(self, work: JobWork, call: OpenCall) -> AsyncIterator[Place]:
        """A place at the gate; what the provider has said already needs none to be dealt with."""
        if call.is_answered or call.is_refused:
            yield Place(None if self._gate.is_closed else _nothing)
            return
        async with self._gate.slot(work.caller, _tokens(call)) as place:
            yield place

    async def _end(self, claimed: Claimed, work: JobWork) -> End:
        if work.open and not work.is_unwanted:
            failure, fields = (work.failure or ("",))[0], tuple(work.open.values())
            if await self._fallback.hand_over(claimed, work.job, work.provider, fields, failure):
                return "parked"
        settles = work.runs_on and self._database.now() < work.job.deadline_at
        if work.failure and not settles:
            return await self._finish(claimed, "failed", *work.failure)
        if not work.open:
            return await self._completed(claimed, work)
        if work.is_unwanted and not settles:
            return await self._finish(claimed, "canceled", "canceled", "the job was canceled")
        reason, due_at = self._parking(work)
        await self._database.run(finishing.park_job, claimed.job_id, claimed.fence, reason, due_at)
        _log.info("job parked", reason=reason)
        return "parked"

    async def _completed(self, claimed: Claimed, work: JobWork) -> End:
        """End a job that is all worked; what it reserved and did not use may be what others wait for."""
        end = await self._finish(claimed, "completed")
        if work.account.priced:
            await self._database.run(
                claiming.wake_budget_waiters, self._system, claimed.workspace, BUDGET_WAITERS_WOKEN
            )
        return end

    def _parking(self, work: JobWork) -> tuple[str, int | None]:
        """What the job waits for, and when it comes due; None where that is for somebody else to say."""
        now = self._database.now()
        if work.stop and work.stop.cause == "paused":
            return "", None
        waits = [(due_at, "provider") for due_at in work.waits]
        if work.stop and work.stop.cause == "budget":
            # calls that were under way beside it have been settled since, to less than their worst case
            later = 0 if work.has_progressed else seconds(BUDGET_RETRY_SECONDS)
            waits.append((now + later, "budget"))
        if work.stop and work.stop.cause == "provider":
            waits.append((work.stop.until or now, "provider"))
        if waits:
            due_at, reason = min(waits)
            return reason, due_at
        return ("unknown", None) if work.holds else ("", now + seconds(IDLE_POLL_SECONDS))

    async def _finish(self, claimed: Claimed, status: Status, code: str = "", message: str = "") -> End:
        ended = await self._database.run(
            finishing.finish_job, claimed.job_id, claimed.fence, status, code, message
        )
        _log.info("job ended", reason=ended, code=code)
        return ended

    async def _release(self, claimed: Claimed) -> None:
        """Give the job back at once; where that fails, its lease runs out."""
        with contextlib.suppress(LeaseLost, StoreError):
            await self._database.run(claiming.release_job, claimed.job_id, claimed.fence)


def _uncalled(work: JobWork, calls: Sequence[OpenCall]) -> list[Field]:
    """Open fields that belong to no call of an earlier holder: those calls, or what follows them, go on."""
    called = {ordinal for call in calls for _, ordinal, _ in call.plan.asked}
    return [field for field in work.open.values() if field.ordinal not in called]


def _nothing() -> None:
    """Nobody waits for a place that was not taken."""


def _tokens(call: OpenCall) -> int:
    """About how many tokens a call that is written down takes, the answer among them; asking takes none."""
    asks = call.is_doubtful and not call.idempotent
    return 0 if asks else len(call.plan.request) // 2


async def _together(pursuits: Iterable[Coroutine[Any, Any, None]]) -> None:
    """All side by side, each to its own end: a call that is under way is paid for, and is settled whatever
    befalls its neighbours. Then the first trouble is raised.
    """
    ends = await asyncio.gather(*pursuits, return_exceptions=True)
    troubles = [end for end in ends if isinstance(end, BaseException)]
    if troubles:
        raise next((trouble for trouble in troubles if isinstance(trouble, LeaseLost)), troubles[0])
