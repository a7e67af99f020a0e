"""One call from its plan to its close: begin, send once, settle, judge, store. Doubt is asked about first.

A call that was begun before, by this worker or by one that is gone, goes on from what is known of it: a kept
answer is judged and never bought again, and what is unknown is asked about before it is paid for twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, Literal

from dragoman.content import prompting
from dragoman.content.verdicts import VERSION, Verdict, judge
from dragoman.flow.engine.translation.aftermath import Aftermath, Again, aftermath
from dragoman.flow.engine.translation.gate import Gate, Place
from dragoman.flow.engine.translation.work import JobWork
from dragoman.kernel.clock import MICROSECONDS, seconds
from dragoman.kernel.identity import Chance
from dragoman.kernel.limits import (
    BATCH_POLL_SECONDS_MAX,
    CALL_TIMEOUT_SECONDS,
    IDLE_POLL_SECONDS,
    PROVIDER_POLL_SECONDS,
    RETRY_FIRST_SECONDS,
)
from dragoman.ledger.acting import Ledger
from dragoman.machines.tables import ATTEMPT
from dragoman.model.completions import Finish, Reply
from dragoman.model.effects import Answer, Outgoing
from dragoman.model.jobs import SLOW_DOWN, CallPlan, Closing, Halt, OpenCall, Result, Settled
from dragoman.model.memories import Remembered
from dragoman.store.acts import calling, closing, inquiring, withdrawing
from dragoman.store.database import Database

_FAMILY, _STOPPING = "completion", "withdrawal"
_Found = Reply | Answer | Literal["unknown", "unreachable", "absent"]
_FATAL_STATUSES = frozenset({401, 403, 404})
"""Key, right or model are wrong: no other call of the job would fare better."""
_TOO_LARGE = 413
"""More texts than this server takes at once: they are asked for in halves."""
_UNANSWERED: Mapping[Finish, str] = {
    "refused": "The provider refuses this text.",
    "length": "The provider's answer was cut short.",
    "unreadable": "The provider's answer cannot be read.",
}
"""What people read of a text without an answer; the model reads that it left it out."""


class Calls:
    """Makes the calls of jobs, each through the ledger."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        chance: Chance,
        worker: str,
        gate: Gate,
        call_timeout_seconds: float = CALL_TIMEOUT_SECONDS,
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._chance = chance
        self._worker = worker
        self._gate = gate
        self._call_timeout_seconds = call_timeout_seconds

    async def advance(self, work: JobWork, call: OpenCall, place: Place) -> tuple[OpenCall, ...]:
        """Bring a call as far as it comes now; gives the calls that follow it. Raises `LeaseLost`.

        `place` is left as soon as the provider has answered: to settle and to judge takes none.
        """
        if call.is_answered:
            return await self._close(work, call, work.account.read(call.answer or b""))
        if call.is_refused:
            return await self._refused(work, call, call.failure, call.message, call.status)
        if call.due_at > self._database.now() and not (work.is_unwanted and call.is_under_way):
            work.runs_on |= call.is_under_way
            work.waits.append(call.due_at)
            return ()
        if call.is_doubtful and not call.idempotent:
            return await self._doubted(work, call, place)
        if call.effect_id:
            return await self._attempt(work, call, place, calling.start_again, call)
        return await self._attempt(work, call, place, calling.start_call, call.plan)

    async def _attempt(
        self, work: JobWork, call: OpenCall, place: Place, begin: Callable[..., Outgoing | Halt], *asked: Any
    ) -> tuple[OpenCall, ...]:
        """Make one attempt, unless something stops the job."""
        if not work.may_start:
            return ()
        start = work.start(call.plan, self._worker, self._call_timeout_seconds)
        came = await self._ledger.act(
            _FAMILY,
            begin,
            (work.fence, work.account, start, *asked),
            calling.settle_call,
            (work.account, self._chance.fraction()),
            lambda answer: None if answer.outcome in ATTEMPT.groups["UNKNOWN"] else place.leave(),
        )
        if isinstance(came, Halt):
            self._halted(work, came)
            return ()
        return await self._settled(
            work,
            replace(
                call,
                effect_id=came.effect_id,
                attempt=came.attempt_id,
                reference=came.reference,
                batched=work.account.speed == "batch",
            ),
            came,
        )

    def _halted(self, work: JobWork, halt: Halt) -> None:
        if halt.cause == "held":
            work.holds = True
        elif halt.cause == "elsewhere":
            work.waits.append(self._database.now() + seconds(IDLE_POLL_SECONDS))
        else:
            work.stop = work.stop or halt

    async def _settled(self, work: JobWork, call: OpenCall, came: Settled) -> tuple[OpenCall, ...]:
        """Go on from what an attempt of this worker came to."""
        if came.reply is not None:
            return await self._close(work, call, came.reply)
        is_unknown = came.outcome in ATTEMPT.groups["UNKNOWN"]
        if is_unknown and work.account.priced and not call.batched:  # no batch ends so soon
            found = await self._ask(work, call)
            if isinstance(found, Reply):
                return await self._close(work, call, found)
        if came.outcome == "REJECTED" and not came.is_pause:
            return await self._refused(work, call, came.code, came.message, came.status or 0)
        if came.code == "provider_credentials_missing":
            work.fail(came.code, came.message)
        elif came.due_at > work.job.deadline_at and not (is_unknown and call.reference):
            work.fail("provider_unavailable", came.message)
        elif came.is_pause:
            work.stop = work.stop or Halt("provider", came.due_at)
        else:
            work.runs_on |= is_unknown and (call.batched or bool(call.reference))
            work.waits.append(came.due_at)
        return ()

    async def _refused(
        self, work: JobWork, call: OpenCall, code: str, message: str, status: int
    ) -> tuple[OpenCall, ...]:
        """The provider has said no: to this content, to the whole job, or to these fields."""
        if code == "content_refused":
            return await self._close(work, call, Reply((), "refused"))
        if status == _TOO_LARGE and len(call.plan.asked) > 1:
            return await self._close(work, call, Reply((), "length"))
        if status in _FATAL_STATUSES:
            work.fail("provider_rejected", message)
            return ()
        asked = {ordinal for _, ordinal, _ in call.plan.asked}
        results = [
            result
            for ordinal in sorted(asked & set(work.open))
            for result in work.failures(work.open[ordinal], "provider_rejected", message)
        ]
        return await self._store(work, Closing(call.effect_id, tuple(results)))

    async def _doubted(self, work: JobWork, call: OpenCall, place: Place) -> tuple[OpenCall, ...]:
        """Nobody knows whether this was paid: ask, and only then let the money policy decide."""
        allowed_at = await self._database.read(inquiring.look_allowed_at, work.account.account)
        if allowed_at:
            work.runs_on |= call.is_under_way
            work.waits.append(allowed_at)
            return ()
        found = await self._ask(work, call)
        if found == "unreachable" and work.is_unwanted and call.is_under_way:
            found = await self._withdrawn(work, call) if call.reference else found
        if isinstance(found, Reply):
            return await self._close(work, call, found)
        if isinstance(found, Answer):
            return await self._refused(work, call, found.code, found.message, found.status or 0)
        if found != "unknown":
            work.runs_on |= found == "unreachable" and call.is_under_way
            work.waits.append(self._database.now() + seconds(self._pause_seconds(work, call)))
            return ()
        options = work.job.options
        policy = calling.Policy(options.on_unknown, options.batch_size)
        return await self._attempt(work, call, place, calling.resend_call, call, policy)

    def _pause_seconds(self, work: JobWork, call: OpenCall) -> float:
        """Until an unknown call is looked at again; of a batch a quarter of its age, within bounds."""
        age_seconds = (self._database.now() - call.due_at) / MICROSECONDS
        if not call.batched or work.is_unwanted:
            return RETRY_FIRST_SECONDS
        return min(max(age_seconds / 4, RETRY_FIRST_SECONDS), BATCH_POLL_SECONDS_MAX)

    async def _withdrawn(self, work: JobWork, call: OpenCall) -> _Found:
        """Have the provider stop what nobody wants any more, once; what it then says of it."""
        left_seconds = min(self._call_timeout_seconds, work.left_seconds())
        begin = (work.fence, work.account, call, self._worker, left_seconds)
        await self._ledger.act(_STOPPING, withdrawing.begin_withdrawal, begin, withdrawing.record_withdrawal)
        return await self._ask(work, call)

    async def _ask(self, work: JobWork, call: OpenCall) -> _Found:
        """What the provider knows of a call's newest attempt, written down; an `Answer` is its refusal."""
        asked, answer = await self._look(work, call)
        found = await self._database.run(
            inquiring.record_inquiry, asked, answer, work.account, call, self._worker
        )
        if found == "found" and answer is not None:
            return work.account.read(answer.body or b"")
        if found == "refused" and answer is not None:
            return answer
        if found == "absent":
            return "absent"
        return "unknown" if answer is None else "unreachable"

    async def _look(self, work: JobWork, call: OpenCall) -> tuple[Outgoing, Answer | None]:
        """Look once; at work in the background again and again, for as long as a plain call may take."""
        left_seconds = min(self._call_timeout_seconds, work.left_seconds())
        deadline_at = self._database.now() + seconds(left_seconds)
        asked = calling.outgoing(work.account, call, deadline_at)
        for pause_seconds in chain(PROVIDER_POLL_SECONDS, repeat(PROVIDER_POLL_SECONDS[-1])):
            await self._gate.turn(work.caller)
            left_seconds = min(work.left_seconds(), (deadline_at - self._database.now()) / MICROSECONDS)
            answer = await self._ledger.inquire(_FAMILY, asked, left_seconds)
            is_last = call.batched or work.is_unwanted or left_seconds <= pause_seconds
            if is_last or self._gate.is_closed or not call.reference or not _is_working(answer):
                break
            await asyncio.sleep(pause_seconds)
        return asked, answer

    async def _close(self, work: JobWork, call: OpenCall, reply: Reply) -> tuple[OpenCall, ...]:
        """Judge a reply and store what it brought, together with the calls that follow from it."""
        verdicts = judge(work.job.source_locale, call.plan.asked, work.open, reply, work.pieces, work.terms)
        after = aftermath(call.plan.purpose, verdicts, reply.finish)
        counted = {
            verdict.field.ordinal: verdict.field.calls + 1
            for again in after.again
            if again.counted
            for verdict in again.verdicts
        }
        closing_ = Closing(
            effect_id=call.effect_id,
            results=tuple(_results(work, after, reply.finish)),
            counted=tuple(sorted(counted.items())),
            target_locale=call.plan.target_locale,
            memorable=tuple(_memorable(work, verdict) for verdict in after.good),
            spent=tuple(work.trial_key(verdict.field) for verdict, _ in after.failed),
            follow_ups=tuple(_plan(work, call, again) for again in after.again),
        )
        follow_ups = await self._store(work, closing_)
        for ordinal, count in counted.items():
            work.open[ordinal] = work.open[ordinal]._replace(calls=count)
        return follow_ups

    async def _store(self, work: JobWork, what: Closing) -> tuple[OpenCall, ...]:
        follow_ups = await self._database.run(closing.close_call, work.fence, work.job, work.account, what)
        work.ended(what.results)
        return follow_ups


def _is_working(answer: Answer | None) -> bool:
    """Whether a look has decided nothing, and another one may follow soon."""
    unknown = answer is not None and answer.outcome in ATTEMPT.groups["UNKNOWN"]
    return unknown and answer is not None and answer.code not in SLOW_DOWN


def _results(work: JobWork, after: Aftermath, finish: Finish) -> Iterator[Result]:
    for verdict in after.good:
        yield from work.results(verdict.field, verdict.value or "", "ai", verdict.review)
    for verdict, code in after.failed:
        fault = verdict.faults[0]
        said = fault.message if verdict.answered else _UNANSWERED.get(finish, fault.message)
        check = "" if finish == "refused" else fault.check
        yield from work.failures(verdict.field, code, said, check, fault.missing)


def _memorable(work: JobWork, verdict: Verdict) -> Remembered:
    field = verdict.field
    return Remembered(
        source_hash=field.source_hash,
        context_hash=field.context_hash,
        source=field.value,
        text=verdict.value or "",
        syntax=field.syntax,
        origin="ai",
        basis=work.basis(field),
        job_id=work.job.id,
        model=work.provider.model,
        prompt_version=prompting.VERSION,
        validator_version=VERSION,
    )


def _plan(work: JobWork, call: OpenCall, again: Again) -> CallPlan:
    """The call that asks again, with the exact complaint about each text."""
    complaints = {
        (verdict.field.ordinal, fault.category): fault.message
        for verdict in again.verdicts
        if again.counted
        for fault in verdict.faults
    }
    fields = [verdict.field for verdict in again.verdicts]
    return work.plan(again.purpose, fields, complaints, parent=call.plan.ordinal)
