"""Read-only questions about manifests: status, failures, results. None of them works or waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.errors import CallerError
from dragoman.machines.tables import ATTEMPT, INTENT
from dragoman.model.scopes import Scope
from dragoman.store.rows import field_sums, manifests, shards, submissions
from dragoman.store.schema import effects as effect_tables
from dragoman.store.schema import engine as engine_tables
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_INTENTS, _RESULTS, _SUBMISSIONS = tables.intents, tables.results, tables.submissions
_USAGE, _ATTEMPTS, _JOBS = engine_tables.ai_usage, effect_tables.attempts, engine_tables.jobs


def manifest_row(tx: Tx, scope: Scope, manifest_id: str) -> Row:
    """The manifest, or `not_found`."""
    row = manifests.find(tx, scope, manifest_id)
    if row is None:
        raise CallerError(f"no manifest {manifest_id}", "not_found")
    return row


def counts(tx: Tx, manifest: Row) -> dict[str, int]:
    """The eight public counters; seven of them sum to the total at every commit."""
    sums = shards.totals(tx, manifest.id)
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


def field_split(tx: Tx, manifest_id: str) -> dict[str, int]:
    """Sums over the intents: fields in all, failed, by where they came from, and in review."""
    return field_sums.of_manifest(tx, manifest_id)


def money(tx: Tx, workspace: str, manifest_id: str) -> dict[str, int]:
    """What a manifest cost: paid and wasted (tokens, micro-USD), and what is at risk in unknown attempts.

    Of a far engine what its events have told, at the end of each job.
    """
    if not _is_worked_here(tx, workspace, manifest_id):
        return _told(submissions.usage_of(tx, manifest_id))
    paid: dict[str, Any] = {"tokens": 0, "microusd": 0, "wasted_tokens": 0, "wasted_microusd": 0}
    for row in tx.all(
        sa.select(
            _USAGE.c.wasted,
            sa.func.sum(_USAGE.c.total_tokens).label("tokens"),
            sa.func.sum(_USAGE.c.microusd).label("microusd"),
        )
        .where(_USAGE.c.workspace == workspace, _USAGE.c.client_job_id == manifest_id)
        .group_by(_USAGE.c.wasted)
    ):
        prefix = "wasted_" if row.wasted else ""
        paid[prefix + "tokens"] = int(row.tokens)
        paid[prefix + "microusd"] = int(row.microusd)
    risk = tx.first(
        sa.select(
            sa.func.count().label("attempts"),
            sa.func.coalesce(sa.func.sum(_ATTEMPTS.c.reserved_tokens), 0).label("tokens"),
            sa.func.coalesce(sa.func.sum(_ATTEMPTS.c.reserved_microusd), 0).label("microusd"),
        ).where(
            _ATTEMPTS.c.workspace == workspace,
            _ATTEMPTS.c.correlation_id == manifest_id,
            _ATTEMPTS.c.outcome.in_(sorted(ATTEMPT.groups["UNKNOWN"])),
            _ATTEMPTS.c.provider != "engine",
            ~sa.exists().where(_USAGE.c.attempt_id == _ATTEMPTS.c.id),
        )
    )
    return {
        **{name: int(value) for name, value in paid.items()},
        "at_risk_attempts": int(risk.attempts if risk else 0),
        "at_risk_tokens": int(risk.tokens if risk else 0),
        "at_risk_microusd": int(risk.microusd if risk else 0),
    }


def _is_worked_here(tx: Tx, workspace: str, manifest_id: str) -> bool:
    here = sa.select(_JOBS.c.id).where(_JOBS.c.workspace == workspace, _JOBS.c.client_job_id == manifest_id)
    return tx.first(here.limit(1)) is not None


def _told(sums: Mapping[str, int]) -> dict[str, int]:
    """An engine's own sums, whose `paid` holds what was wasted; calls at risk it does not count."""
    return {
        "tokens": sums["paid_tokens"] - sums["wasted_tokens"],
        "microusd": sums["paid_microusd"] - sums["wasted_microusd"],
        **{name: sums[name] for name in sums if not name.startswith("paid_")},
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
