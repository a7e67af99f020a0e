"""What becomes true of a job's fields: by a call that was judged, or without any call.

Both write results under the fence of the job's holder and recount: a poll sees every call's progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.model.jobs import Account, CallPlan, Closing, Job, OpenCall, Result
from dragoman.model.memories import Place, Shelf
from dragoman.store.joining import together
from dragoman.store.rows import calls, effects, job_fields, jobs, memory, segments
from dragoman.store.transaction import Tx


class Judged(NamedTuple):
    """A call whose answer was judged under the fence of its job."""

    fence: int
    job: Job
    account: Account
    closing: Closing


@together(Judged)
def close_call(tx: Tx, askings: Sequence[Judged]) -> list[tuple[OpenCall, ...]]:
    """Store what calls brought, remember what passed, and write down the calls that follow: these are given.

    The calls' requests are purged; their effects are done. Jobs are locked last, for as long as it takes to
    count, so that their other calls can begin meanwhile. Raises `LeaseLost` where a fence is stale.
    """
    closed = calls.close(tx, {one.closing.effect_id for one in askings})
    done = [one for one in askings if one.closing.effect_id in closed]
    _end_effects(tx, closed)
    results: dict[str, list[Result]] = {}
    counted: dict[str, list[tuple[int, int]]] = {}
    for _, job, _, closing in done:
        results.setdefault(job.id, []).extend(closing.results)
        counted.setdefault(job.id, []).extend(closing.counted)
    job_fields.end(tx, results)
    job_fields.count_calls(tx, counted)
    _remember(tx, done)
    for _, job, _, closing in done:
        memory.note_trials(tx, job.workspace, job.id, closing.spent)
    follow_ups = {
        one.closing.effect_id: tuple([_write_down(tx, one.account, plan) for plan in one.closing.follow_ups])
        for one in done
    }
    for job_id, fence in sorted({(one.job.id, one.fence) for one in askings}):
        jobs.hold(tx, job_id, fence)
        jobs.recount(tx, job_id)
    return [follow_ups.get(one.closing.effect_id, ()) for one in askings]


def _remember(tx: Tx, done: Sequence[Judged]) -> None:
    """Keep what passed its checks, and let searches know of it."""
    made: list[memory.Made] = []
    plain: dict[tuple[str, Shelf], dict[str, str]] = {}
    for _, job, _, closing in done:
        place = Place(job.project, job.source_locale, closing.target_locale)
        made += [(job.workspace, place, one) for one in closing.memorable]
        plain.setdefault((job.workspace, place.shelf), {}).update(
            (one.source_hash, one.source) for one in closing.memorable if isinstance(one.source, str)
        )
    memory.keep(tx, made)
    for (workspace, shelf), sources in sorted(plain.items()):
        segments.add_fresh(tx, workspace, shelf, sources)


def _write_down(tx: Tx, account: Account, plan: CallPlan) -> OpenCall:
    call_id = tx.new_id()
    effect = effects.ensure(tx, calls.effect(account, plan, call_id))
    calls.insert(tx, [calls.New(account, plan, call_id, effect.id)])
    return OpenCall(plan, call_id, effect.id, effect.state)


def record_results(tx: Tx, fence: int, job: Job, results: Sequence[Result]) -> None:
    """Store what needed no call. Raises `LeaseLost`."""
    jobs.hold(tx, job.id, fence)
    job_fields.end(tx, {job.id: results})
    jobs.recount(tx, job.id)


def _end_effects(tx: Tx, effect_ids: set[str]) -> None:
    """An answer that was judged ends its effect; a refusal that was dealt with needs nobody."""
    linked = effects.move_all(tx, effect_ids, "link")
    effects.move_all(tx, effect_ids - linked, "cancel")
