"""Read-only questions about manifests: status, failures, results. None of them works or waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.errors import CallerError
from dragoman.machines.tables import ATTEMPT, INTENT
from dragoman.model.scopes import Scope
from dragoman.store.rows import budgets, manifests, shards, submissions
from dragoman.store.schema import effects as effect_tables
from dragoman.store.schema import engine as engine_tables
from dragoman.store.schema import site as tables
from dragoman.store.tables_site import FIELD_COUNTS
from dragoman.store.transaction import Row, Tx

_INTENTS, _RESULTS, _SUBMISSIONS = tables.intents, tables.results, tables.submissions
_USAGE, _ATTEMPTS, _JOBS = engine_tables.ai_usage, effect_tables.attempts, engine_tables.jobs

_A_JOB_HERE = (
    sa.select(_JOBS.c.id)
    .where(_JOBS.c.workspace == sa.bindparam("ws"), _JOBS.c.client_job_id == sa.bindparam("manifest"))
    .limit(1)
)
_HELD = (
    sa.select(
        _ATTEMPTS.c.outcome,
        sa.func.count().label("attempts"),
        sa.func.sum(_ATTEMPTS.c.reserved_tokens).label("tokens"),
        sa.func.sum(_ATTEMPTS.c.reserved_microusd).label("microusd"),
    )
    .where(
        _ATTEMPTS.c.workspace == sa.bindparam("ws"),
        _ATTEMPTS.c.correlation_id == sa.bindparam("manifest"),
        _ATTEMPTS.c.outcome.in_([ATTEMPT.initial, *sorted(ATTEMPT.groups["UNKNOWN"])]),
        _ATTEMPTS.c.provider != "engine",
        ~sa.exists().where(_USAGE.c.attempt_id == _ATTEMPTS.c.id),
    )
    .group_by(_ATTEMPTS.c.outcome)
)
"""What is reserved for the calls of a manifest that are under way, and for those of which nobody knows."""


def manifest_row(tx: Tx, scope: Scope, manifest_id: str) -> Row:
    """The manifest, or `not_found`."""
    row = manifests.find(tx, scope, manifest_id)
    if row is None:
        raise CallerError(f"no manifest {manifest_id}", "not_found")
    return row


def sums_of(tx: Tx, manifest: Row) -> dict[str, Any]:
    """What the shards of a manifest sum up to: intents by state, fields, due times, leases that ran out."""
    return shards.totals_and_due(tx, manifest.id)


def counts(tx: Tx, manifest: Row) -> dict[str, int]:
    """The eight public counters; seven of them sum to the total at every commit."""
    return counters(manifest, sums_of(tx, manifest))


def counters(manifest: Row, sums: Mapping[str, Any]) -> dict[str, int]:
    """`counts`, where what the shards sum up to is known."""
    unexpanded = manifest.total - sums["intents"]
    return {
        "total": manifest.total,
        "preparing": unexpanded + sum(sums[state] for state in INTENT.groups["PREPARING"]),
        "queued": sums["queued"],
        "processing": sums["processing"],
        **{state: sums[state] for state in ("completed", "failed", "protected", "skipped")},
        "retryable_failed": sums["retryable_failed"],
    }


def derived_status(manifest: Row, numbers: dict[str, int]) -> str:
    """The public status: what follows from phase, flags and counters, and from nothing else."""
    if manifest.phase == "ended":
        if manifest.canceled:
            return "canceled"
        return "failed" if numbers["failed"] or manifest.gaps else "completed"
    if manifest.paused:
        return "paused"
    return next((state for state in ("processing", "queued") if numbers[state]), "preparing")


def failures(tx: Tx, manifest_id: str, after_ordinal: int, limit: int) -> list[Row]:
    """Failed intents in ordinal order."""
    return tx.all(
        sa.select(_INTENTS)
        .where(
            _INTENTS.c.manifest_id == manifest_id,
            _INTENTS.c.state == "failed",
            _INTENTS.c.ordinal > after_ordinal,
        )
        .order_by(_INTENTS.c.ordinal)
        .limit(limit)
    )


def open_intents(tx: Tx, manifest_id: str, after_ordinal: int, limit: int) -> list[Row]:
    """Intents that are not terminal, in ordinal order."""
    return tx.all(
        sa.select(_INTENTS)
        .where(
            _INTENTS.c.manifest_id == manifest_id,
            _INTENTS.c.state.in_(sorted(INTENT.open)),
            _INTENTS.c.ordinal > after_ordinal,
        )
        .order_by(_INTENTS.c.ordinal)
        .limit(limit)
    )


def results_page(tx: Tx, manifest_id: str, after_ordinal: int, limit: int) -> list[tuple[Row, list[Row]]]:
    """Intents in ordinal order, each with its fields' results."""
    found = tx.all(
        sa.select(_INTENTS)
        .where(_INTENTS.c.manifest_id == manifest_id, _INTENTS.c.ordinal > after_ordinal)
        .order_by(_INTENTS.c.ordinal)
        .limit(limit)
    )
    fields = tx.all(sa.select(_RESULTS).where(_RESULTS.c.intent_id.in_([row.id for row in found])))
    return [(row, [field for field in fields if field.intent_id == row.id]) for row in found]


def failed_fields(tx: Tx, intent_ids: list[str]) -> list[Row]:
    """The fields that failed of these intents."""
    return tx.all(
        sa.select(_RESULTS)
        .where(_RESULTS.c.intent_id.in_(intent_ids), _RESULTS.c.code != "")
        .order_by(_RESULTS.c.field_key)
    )


def field_split(sums: Mapping[str, Any]) -> dict[str, int]:
    """Sums over the intents: fields in all, failed, by where they came from, and in review."""
    return {name: sums[name] for name in FIELD_COUNTS}


def money(tx: Tx, workspace: str, manifest_id: str) -> dict[str, int]:
    """What a manifest cost: paid and wasted (tokens, micro-USD), reserved for calls under way, and at risk in
    unknown attempts.

    Of a far engine what its events have told, at the end of each job; `lost_jobs` never told anything.
    """
    here = {"ws": workspace, "manifest": manifest_id}
    useful, wasted = budgets.used_by_client(tx, workspace, manifest_id)
    if useful == wasted == budgets.Sum() and tx.first(_A_JOB_HERE, here) is None:
        return _told(submissions.usage_of(tx, manifest_id)) | {"lost_jobs": submissions.lost(tx, manifest_id)}
    held = tx.all(_HELD, here)
    under_way = [row for row in held if row.outcome == ATTEMPT.initial]
    unknown = [row for row in held if row.outcome != ATTEMPT.initial]
    return {
        "tokens": useful.tokens,
        "microusd": useful.microusd,
        "wasted_tokens": wasted.tokens,
        "wasted_microusd": wasted.microusd,
        "reserved_tokens": sum(row.tokens for row in under_way),
        "reserved_microusd": sum(row.microusd for row in under_way),
        "at_risk_attempts": sum(row.attempts for row in unknown),
        "at_risk_tokens": sum(row.tokens for row in unknown),
        "at_risk_microusd": sum(row.microusd for row in unknown),
        "lost_jobs": 0,
    }


def _told(sums: Mapping[str, int]) -> dict[str, int]:
    """An engine's own sums, whose `paid` holds what was wasted; it tells no calls at risk and no reserves."""
    return {
        "tokens": sums["paid_tokens"] - sums["wasted_tokens"],
        "microusd": sums["paid_microusd"] - sums["wasted_microusd"],
        **{name: sums[name] for name in sums if not name.startswith("paid_")},
        "reserved_tokens": 0,
        "reserved_microusd": 0,
        "at_risk_attempts": 0,
    }


def parked_jobs(tx: Tx, workspace: str, manifest_id: str) -> list[Row]:
    """The jobs of a manifest that wait for money, a provider, or a person."""
    return tx.all(
        sa.select(_JOBS).where(
            _JOBS.c.workspace == workspace, _JOBS.c.client_job_id == manifest_id, _JOBS.c.parked_for != ""
        )
    )


def parked_submissions(tx: Tx, manifest_id: str) -> dict[str, str]:
    """Submission → what it waits for: a secret here, or what a far engine says of its job."""
    return submissions.parked(tx, manifest_id)


def active_manifests(tx: Tx, scope: Scope, limit: int) -> list[str]:
    """The ids of the newest manifests that have not ended."""
    return [row.id for row in manifests.recent(tx, scope, limit, active_only=True)]
