"""Tables of the ledger and the system: effects, attempts, inquiries, approvals, history, workers, cursors."""

from __future__ import annotations

from types import SimpleNamespace

import sqlalchemy as sa

from dragoman.machines import tables as machines
from dragoman.store.columns import counted, flag, optional, required, stamps, state, word
from dragoman.store.portable import (
    OWNER_CHARS_MAX,
    Count,
    Hash,
    Id,
    Instant,
    LongText,
    Money,
    Word,
    lease_columns,
    table,
)


def effects_tables(metadata: sa.MetaData) -> SimpleNamespace:
    """All tables of the ledger and the system, by name."""
    return SimpleNamespace(
        **_ledger(metadata), **_attempts(metadata), **_decisions(metadata), **_system(metadata)
    )


def _ledger(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "effects": table(
            "effects",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("family", Word(32)),
            required("effect_key", Word(255)),
            flag("owned"),  # written under its owner's fence; has no lease or due time of its own
            required("idempotency", Word(32)),
            required("purpose", Word(255)),
            required("source_kind", Word(32)),  # calls | submissions | outbox | publication_steps …
            required("source_id", Word(191)),
            word("actor", 128),
            word("request_token", 255),
            word("correlation_id", 191),
            word("credential_ref", 191),
            required("payload_version", Count),
            required("payload_fingerprint", Hash),
            *state(machines.EFFECT),
            optional("work_state", Word(32)),
            sa.CheckConstraint(
                f"work_state IS NULL OR {machines.WORK.check_sql('work_state')}", name="work_known"
            ),
            *counted("attempt_count", "starts"),
            optional("required_by", Instant),
            optional("next_eligible_at", Instant),
            *stamps(),
            *lease_columns(),
            sa.UniqueConstraint("workspace", "family", "effect_key"),
            sa.Index("ix_effects_claim", "work_state", "next_eligible_at"),
            sa.Index("ix_effects_source", "workspace", "source_kind", "source_id"),
            sa.Index("ix_effects_state", "workspace", "state", "updated_at"),
            sa.Index("ix_effects_correlation", "workspace", "correlation_id", "state"),
        ),
    }


def _attempts(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "attempts": table(
            "attempts",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("effect_id", Id),
            required("number", Count),
            required("provider", Word(191)),
            word("correlation_id", 191),  # the client job whose money this is
            required("worker", Word(OWNER_CHARS_MAX)),
            required("fence", Count),
            required("request_fingerprint", Hash),
            required("started_at", Instant),
            required("deadline_at", Instant),
            optional("completed_at", Instant),
            *state(machines.ATTEMPT, "outcome"),
            word("failure_code", 64),
            word("message", 500),
            optional("response_status", Count),
            word("provider_ref", 255),
            flag("resend"),  # repeats an unknown one under an approval
            required("reserved_tokens", Count, server_default="0"),
            required("reserved_microusd", Money, server_default="0"),
            required("budget_month", Word(7)),  # the month in which the reserve was taken, e.g. 2026-11
            sa.UniqueConstraint("effect_id", "number"),
            sa.Index("ix_attempts_client", "workspace", "correlation_id", "outcome"),
        ),
    }


def _decisions(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "reconciliations": table(  # append-only: one row an inquiry, also for "still unknown"
            "reconciliations",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("effect_id", Id),
            optional("attempt_id", Id),
            required("disposition", Word(48)),
            word("object_ref", 255),
            word("next_action", 64),
            required("by", Word(OWNER_CHARS_MAX)),
            required("at", Instant),
            sa.Index("ix_reconciliations_effect", "workspace", "effect_id", "at"),
        ),
        "approvals": table(  # append-only but for `used_at`
            "approvals",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("effect_id", Id),
            required("kind", Word(32)),  # policy:resend | retry | compensate | …
            required("by", Word(OWNER_CHARS_MAX)),
            word("reason", 255),
            word("correlation_id", 191),
            optional("expires_at", Instant),
            optional("used_at", Instant),
            required("created_at", Instant),
            sa.Index("ix_approvals_effect", "workspace", "effect_id"),
            sa.Index("ix_approvals_client", "workspace", "correlation_id", "kind"),
        ),
        "history": table(  # append-only: intent transitions and audit in one
            "history",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("kind", Word(16)),  # intent | audit
            required("subject", Word(191)),
            required("action", Word(48)),
            word("before", 32),
            word("after", 32),
            word("actor", OWNER_CHARS_MAX),
            *counted("generation", "attempt", "generation_attempt"),
            optional("submission_id", Id),
            word("code", 64),
            word("message", 500),
            optional("metadata", Word(500)),  # JSON of references and times
            word("correlation_id", 191),  # the manifest
            required("at", Instant),
            sa.Index("ix_history_subject", "workspace", "subject", "at"),
        ),
    }


def _system(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        # diagnostic: emptying it changes readiness and what a door without a key takes, never what is claimed
        "workers": table(
            "workers",
            metadata,
            sa.Column("id", Word(OWNER_CHARS_MAX), primary_key=True),
            required("role", Word(32)),
            required("host", Word(128)),
            required("release", Word(32)),
            required("credentials", LongText),  # JSON list of credential references that it holds
            required("started_at", Instant),
            required("last_seen_at", Instant),
            optional("last_run_at", Instant),
            flag("external"),  # a run started by cron or an orchestrator
            optional("duration_microseconds", Count),
            word("exit_class", 32),
            sa.Index("ix_workers_seen", "last_seen_at"),
        ),
        "cursors": table(
            "cursors",
            metadata,
            sa.Column("name", Word(64), primary_key=True),
            required("value", Word(255)),
            required("updated_at", Instant),
        ),
    }
