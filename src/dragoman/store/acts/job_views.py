"""What is read of a job: by its worker, and by whoever asks for it. Reads only."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

from dragoman.kernel.clock import iso, month
from dragoman.kernel.errors import CallerError
from dragoman.machines.tables import JOB
from dragoman.model.jobs import Field, Job, JobOptions, OpenCall
from dragoman.model.memories import Library, Shelf, Term
from dragoman.model.scopes import System, Workspace
from dragoman.store import payloads
from dragoman.store.acts import remembering
from dragoman.store.rows import budgets, calls, job_fields, jobs, memory
from dragoman.store.transaction import Row, Tx


class Loaded(NamedTuple):
    """A claimed job, what is still open of it, the number of its last call, and its project's library.

    `has_trials`: whether any text of its workspace was ever tried in vain.
    """

    job: Job
    cancel_asked: bool
    fields: tuple[Field, ...]
    calls: tuple[OpenCall, ...]
    last_call: int
    library: Library
    has_trials: bool = False


def load_job(tx: Tx, _system: System, job_id: str) -> Loaded:
    """All that its holder needs of a job."""
    row = jobs.find(tx, System(), job_id)
    if row is None:
        raise LookupError(f"job {job_id} is gone")
    job = Job(
        id=row.id,
        workspace=row.workspace,
        project=row.project,
        client_job_id=row.client_job_id,
        source_locale=row.source_locale,
        options=JobOptions(**json.loads(row.options)),
        deadline_at=row.deadline_at,
    )
    fields = job_fields.open_fields(tx, job_id)
    open_calls = unclosed_calls(tx, job_id)
    shelf = Shelf(job.project, job.source_locale)
    locales = sorted({field.target_locale for field in fields})
    library = _with(row.library, remembering.library(tx, Workspace(job.workspace), shelf, locales))
    return Loaded(
        job,
        row.cancel_asked,
        fields,
        open_calls,
        calls.last_ordinal(tx, job_id),
        library,
        memory.has_trials(tx, job.workspace),
    )


def _with(brought: str | None, own: Library) -> Library:
    """What a site of another database sent along goes before what is known here of its project."""
    if brought is None:
        return own
    said = json.loads(brought)
    terms: dict[str, tuple[Term, ...]] = {}
    for told in said["terms"]:
        term = Term(**told)
        terms[term.target_locale] = (*terms.get(term.target_locale, ()), term)
    named = {(term.source.casefold(), locale) for locale, some in terms.items() for term in some}
    for locale, some in own.terms.items():
        kept = tuple(term for term in some if (term.source.casefold(), locale) not in named)
        terms[locale] = (*terms.get(locale, ()), *kept)
    return Library(replace(own.manner, style=said["style"] or own.manner.style), terms)


def unclosed_calls(tx: Tx, job_id: str) -> tuple[OpenCall, ...]:
    """The calls of a job that are not closed; with the answer that was kept where one is to be judged."""
    return tuple(
        replace(call, answer=calls.answer(tx, call.effect_id)) if call.is_answered else call
        for call in calls.unclosed(tx, job_id)
    )


def tried(tx: Tx, job: Job, trial_keys: list[str]) -> dict[str, int]:
    """Trial key → in how many jobs it has failed, for one page."""
    return dict(memory.tried(tx, job.workspace, trial_keys))


def job_view(tx: Tx, scope: Workspace, job_id: str) -> dict[str, Any]:
    """A job as it stands; an ended one as its frozen event says. Raises `CallerError` not_found."""
    job = jobs.find(tx, scope, job_id)
    if job is None:
        raise CallerError(f"no job {job_id}", "not_found")
    money = budgets.of_job(tx, job_id)
    options = JobOptions(**json.loads(job.options))
    items = job_fields.items(tx, job_id, -1, job.items_total)
    locales = {item.target_locale for item in items}
    frozen = jobs.frozen_event(tx, job_id) if job.state in JOB.terminal else None
    event = json.loads(frozen) if frozen is not None else {}
    return {
        **_summary(job),
        "item_name": items[0].ref if len(items) == 1 else None,
        "target_locale": locales.pop() if len(locales) == 1 else None,
        "batch_size": options.batch_size,
        "concurrency": options.concurrency,
        "tokens_used": money["paid"].tokens,
        "usage": payloads.usage(job, money),
        **event,
    }


def held_calls(tx: Tx, scope: Workspace, client_job_id: str, limit: int) -> list[dict[str, Any]]:
    """Calls of a client job that are held for a person or a wider policy, and what is at risk in each."""
    held = []
    for call in calls.held_of_client(tx, scope.id, client_job_id, limit):
        at_risk = budgets.at_risk_of(tx, call.effect_id)
        held.append(
            {
                "job_id": call.job_id,
                "call": call.ordinal,
                "target_locale": call.target_locale,
                "fields": len({field for _, field, _ in json.loads(call.asked)}),
                "at_risk": {"tokens": at_risk.tokens, "microusd": at_risk.microusd},
                "since": iso(call.created_at),
            }
        )
    return held


def recent_jobs(tx: Tx, scope: Workspace, before: str, limit: int, push_id: str = "") -> dict[str, Any]:
    """Jobs of a workspace, newest first, those of a push or all; `next_cursor` leads to older ones."""
    created, _, job_id = before.partition("_")
    page = jobs.recent(
        tx, scope.id, (int(created), job_id) if job_id and created.isdecimal() else None, limit, push_id
    )
    last = page[-1] if len(page) == limit else None
    return {
        "jobs": [_summary(job) for job in page],
        "next_cursor": f"{last.created_at}_{last.id}" if last else "",
    }


def job_items(tx: Tx, scope: Workspace, job_id: str, cursor: str, limit: int) -> dict[str, Any]:
    """One page of an ended job's results. Raises `CallerError` not_found."""
    job = jobs.find(tx, scope, job_id)
    if job is None or job.state not in JOB.terminal:
        raise CallerError(f"no results of job {job_id}", "not_found")
    after = int(cursor) if cursor.isdecimal() else -1
    page = job_fields.items(tx, job_id, after, limit)
    fields = job_fields.ended(tx, job_id, page[0].ordinal, page[-1].ordinal) if page else {}
    items = [payloads.ended_item(row.ref, fields.get(row.ordinal, [])) for row in page]
    return {
        "items": [{**item.shown, "fields": item.fields} for item in items],
        "next_cursor": str(page[-1].ordinal) if len(page) == limit else "",
    }


def ai_usage(tx: Tx, scope: Workspace) -> dict[str, Any]:
    """The month's quota of a workspace, what of it is used and reserved, and what remains."""
    in_month = month(tx.now)
    tokens, microusd = budgets.quota(tx, scope.id)
    held = budgets.of_scope(tx, scope.id, "month", in_month)
    money_left = None if microusd is None else microusd - held.spent.microusd - held.reserved.microusd
    begins, ends = budgets.period(tx.now)
    return {
        "period_start": iso(begins),
        "period_end": iso(ends),
        "monthly_tokens": tokens,
        "metered": budgets.metered(tx, scope.id, begins, ends).tokens,
        "used": held.spent.tokens,
        "reserved": held.reserved.tokens,
        "remaining": max(0, tokens - held.spent.tokens - held.reserved.tokens),
        "monthly_microusd": microusd,
        "used_microusd": held.spent.microusd,
        "reserved_microusd": held.reserved.microusd,
        "remaining_microusd": None if money_left is None else max(0, money_left),
    }


def _summary(job: Row) -> dict[str, Any]:
    """What a list and a view say of a job."""
    total, done = job.total_fields, job.done_fields + job.failed_fields
    progress = 100 if job.state == "completed" else min(99, 100 * done // total if total else 0)
    return {
        **payloads.identity(job, job.state, job.delivery_sequence),
        "workspace": job.workspace,
        "project": job.project,
        "provider_config_id": job.provider,
        "model": job.model,
        "push_id": job.push_id,
        "parked_for": job.parked_for,
        "progress": progress,
        "total_fields": total,
        "done_fields": job.done_fields,
        "failed_fields": job.failed_fields,
        "via_memory": job.via_memory,
        "via_tm": job.via_memory,
        "via_ai": job.via_ai,
        "passed_through": job.passed_through,
        "items_total": job.items_total,
        "items_failed": job.items_failed,
        "code": job.error_code or "",
        "message": job.error_message or "",
        "created_at": iso(job.created_at),
        "updated_at": iso(job.updated_at),
        "next_attempt_at": iso(job.next_attempt_at),
    }
