"""What becomes true of a job's fields: by a call that was judged, or without any call.

Both lock the job under its holder's fence, write results and recount: a poll sees every call's progress.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.machines.tables import EFFECT
from dragoman.model.jobs import Account, CallPlan, Closing, Job, OpenCall, Result
from dragoman.model.memories import Place
from dragoman.store.rows import calls, effects, job_fields, jobs, memory, segments
from dragoman.store.transaction import Tx


def close_call(tx: Tx, fence: int, job: Job, account: Account, closing: Closing) -> tuple[OpenCall, ...]:
    """Store what a call brought, remember what passed, and write down the calls that follow: these are given.

    The call's request is purged; its effect is done. Raises `LeaseLost` under a stale fence.
    """
    jobs.hold(tx, job.id, fence)
    if not calls.close(tx, closing.effect_id):
        return ()
    _end_effect(tx, closing.effect_id)
    job_fields.end(tx, job.id, closing.results)
    job_fields.count_calls(tx, job.id, closing.counted)
    _remember(tx, job, closing)
    memory.note_trials(tx, job.workspace, job.id, closing.spent)
    follow_ups = tuple([_write_down(tx, account, plan) for plan in closing.follow_ups])
    jobs.recount(tx, job.id)
    return follow_ups


def _remember(tx: Tx, job: Job, closing: Closing) -> None:
    """Keep what passed its checks, and let searches know of it."""
    if not closing.memorable:
        return
    place = Place(job.project, job.source_locale, closing.target_locale)
    memory.keep(tx, job.workspace, place, closing.memorable)
    plain = {one.source_hash: one.source for one in closing.memorable if isinstance(one.source, str)}
    segments.add_fresh(tx, job.workspace, place.shelf, plain)


def _write_down(tx: Tx, account: Account, plan: CallPlan) -> OpenCall:
    call_id = tx.new_id()
    effect = effects.ensure(tx, calls.effect(account, plan, call_id))
    calls.insert(tx, account, plan, call_id, effect.id)
    return OpenCall(plan, call_id, effect.id, effect.state)


def record_results(tx: Tx, fence: int, job: Job, results: Sequence[Result]) -> None:
    """Store what needed no call. Raises `LeaseLost`."""
    jobs.hold(tx, job.id, fence)
    job_fields.end(tx, job.id, results)
    jobs.recount(tx, job.id)


def _end_effect(tx: Tx, effect_id: str) -> None:
    """An answer that was judged ends its effect; a refusal that was dealt with needs nobody."""
    effect = effects.find(tx, effect_id)
    if effect is not None and effect.state not in EFFECT.terminal:
        effects.move(tx, effect_id, "link") or effects.move(tx, effect_id, "cancel")
