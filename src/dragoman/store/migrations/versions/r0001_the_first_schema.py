"""The first schema: ai_quotas to gone_endpoints."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.store.migrations import steps
from dragoman.store.portable import Bytes, Count, Flag, Hash, Id, Instant, LongText, Money, Word

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The first schema: ai_quotas to gone_endpoints."""
    _ai_quotas()
    _ai_usage()
    _answers()
    _approvals()
    _attempts()
    _budgets()
    _calls()
    _controls()
    _cursors()
    _effects()
    _effects_1()
    _entries()
    _executions()
    _field_sums()
    _gone_endpoints()


def _ai_quotas() -> None:
    steps.create_table(
        "ai_quotas",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("monthly_tokens", Count, nullable=False),
        sa.Column("monthly_microusd", Money),
        sa.Column("updated_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("workspace", name=steps.f("pk_ai_quotas")),
    )


def _ai_usage() -> None:
    steps.create_table(
        "ai_usage",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("project", Word(128), nullable=False),
        sa.Column("job_id", Word(36), nullable=False, server_default=""),
        sa.Column("attempt_id", Id, nullable=False),
        sa.Column("client_job_id", Word(191), nullable=False, server_default=""),
        sa.Column("model", Word(191), nullable=False),
        sa.Column("prompt_tokens", Count, nullable=False, server_default="0"),
        sa.Column("output_tokens", Count, nullable=False, server_default="0"),
        sa.Column("cached_tokens", Count, nullable=False, server_default="0"),
        sa.Column("total_tokens", Count, nullable=False, server_default="0"),
        sa.Column("microusd", Money, nullable=False, server_default="0"),
        sa.Column("prices", Word(64), nullable=False, server_default=""),
        sa.Column("wasted", Flag(), nullable=False, server_default="0"),
        sa.Column("created_at", Instant, nullable=False),
        sa.CheckConstraint("wasted IN (0, 1)", name=steps.f("ck_ai_usage_wasted_flag")),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_ai_usage")),
        sa.UniqueConstraint("attempt_id", name=steps.f("uq_ai_usage_attempt_id")),
    )
    steps.create_index("idx_ai_usage_workspace_period", "ai_usage", ["workspace", "created_at"])
    steps.create_index("ix_ai_usage_client", "ai_usage", ["workspace", "client_job_id"])
    steps.create_index("ix_ai_usage_job", "ai_usage", ["job_id"])


def _answers() -> None:
    steps.create_table(
        "answers",
        sa.Column("attempt_id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("body", Bytes, nullable=False),
        sa.Column("received_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("attempt_id", name=steps.f("pk_answers")),
    )


def _approvals() -> None:
    steps.create_table(
        "approvals",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("effect_id", Id, nullable=False),
        sa.Column("kind", Word(32), nullable=False),
        sa.Column("by", Word(160), nullable=False),
        sa.Column("reason", Word(255), nullable=False, server_default=""),
        sa.Column("correlation_id", Word(191), nullable=False, server_default=""),
        sa.Column("expires_at", Instant),
        sa.Column("used_at", Instant),
        sa.Column("created_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_approvals")),
    )
    steps.create_index("ix_approvals_client", "approvals", ["workspace", "correlation_id", "kind"])
    steps.create_index("ix_approvals_effect", "approvals", ["workspace", "effect_id"])


def _attempts() -> None:
    steps.create_table(
        "attempts",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("effect_id", Id, nullable=False),
        sa.Column("number", Count, nullable=False),
        sa.Column("provider", Word(191), nullable=False),
        sa.Column("correlation_id", Word(191), nullable=False, server_default=""),
        sa.Column("worker", Word(160), nullable=False),
        sa.Column("fence", Count, nullable=False),
        sa.Column("request_fingerprint", Hash, nullable=False),
        sa.Column("started_at", Instant, nullable=False),
        sa.Column("deadline_at", Instant, nullable=False),
        sa.Column("completed_at", Instant),
        sa.Column("outcome", Word(32), nullable=False),
        sa.Column("failure_code", Word(64), nullable=False, server_default=""),
        sa.Column("message", Word(500), nullable=False, server_default=""),
        sa.Column("response_status", Count),
        sa.Column("provider_ref", Word(255), nullable=False, server_default=""),
        sa.Column("resend", Flag(), nullable=False, server_default="0"),
        sa.Column("reserved_tokens", Count, nullable=False, server_default="0"),
        sa.Column("reserved_microusd", Money, nullable=False, server_default="0"),
        sa.Column("budget_month", Word(7), nullable=False),
        sa.CheckConstraint(
            "outcome IN ('ABSENT', 'ACCEPTED', 'ACCEPTED_LATE', 'CALLBACK_PENDING', "
            "'CONNECTION_UNKNOWN', 'INVALID_RESPONSE_UNKNOWN', 'LOCAL_PERSIST_FAILED', "
            "'NOT_STARTED', 'REJECTED', 'STARTED', 'SUCCEEDED', 'TIMEOUT_UNKNOWN')",
            name=steps.f("ck_attempts_outcome_known"),
        ),
        sa.CheckConstraint("resend IN (0, 1)", name=steps.f("ck_attempts_resend_flag")),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_attempts")),
        sa.UniqueConstraint("effect_id", "number", name=steps.f("uq_attempts_effect_id_number")),
    )
    steps.create_index("ix_attempts_client", "attempts", ["workspace", "correlation_id", "outcome"])


def _budgets() -> None:
    steps.create_table(
        "budgets",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("scope", Word(16), nullable=False),
        sa.Column("scope_key", Word(191), nullable=False),
        sa.Column("limit_tokens", Count),
        sa.Column("limit_microusd", Money),
        sa.Column("reserved_tokens", Count, nullable=False, server_default="0"),
        sa.Column("spent_tokens", Count, nullable=False, server_default="0"),
        sa.Column("reserved_microusd", Count, nullable=False, server_default="0"),
        sa.Column("spent_microusd", Count, nullable=False, server_default="0"),
        sa.Column("updated_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("workspace", "scope", "scope_key", name=steps.f("pk_budgets")),
        clustered=True,
    )


def _calls() -> None:
    steps.create_table(
        "calls",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.Column("client_job_id", Word(191), nullable=False),
        sa.Column("ordinal", Count, nullable=False),
        sa.Column("parent", Count),
        sa.Column("purpose", Word(16), nullable=False),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("effect_id", Id, nullable=False),
        sa.Column("target_locale", Word(64), nullable=False),
        sa.Column("asked", LongText, nullable=False),
        sa.Column("request", Bytes),
        sa.Column("request_fingerprint", Hash, nullable=False),
        sa.Column("next_attempt_at", Instant),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("closed_at", Instant),
        sa.CheckConstraint("state IN ('closed', 'held', 'open')", name=steps.f("ck_calls_state_known")),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_calls")),
        sa.UniqueConstraint("job_id", "ordinal", name=steps.f("uq_calls_job_id_ordinal")),
    )
    steps.create_index("ix_calls_client", "calls", ["workspace", "client_job_id", "state"])
    steps.create_index("ix_calls_effect", "calls", ["effect_id"])
    steps.create_index("ix_calls_open", "calls", ["job_id", "state"])


def _controls() -> None:
    steps.create_table(
        "controls",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("client_job_id", Word(191), nullable=False),
        sa.Column("revision", Count, nullable=False, server_default="0"),
        sa.Column("paused", Flag(), nullable=False, server_default="0"),
        sa.Column("canceled", Flag(), nullable=False, server_default="0"),
        sa.Column("on_unknown", Word(32), nullable=False, server_default=""),
        sa.Column("updated_at", Instant, nullable=False),
        sa.CheckConstraint("canceled IN (0, 1)", name=steps.f("ck_controls_canceled_flag")),
        sa.CheckConstraint("paused IN (0, 1)", name=steps.f("ck_controls_paused_flag")),
        sa.PrimaryKeyConstraint("workspace", "client_job_id", name=steps.f("pk_controls")),
    )


def _cursors() -> None:
    steps.create_table(
        "cursors",
        sa.Column("name", Word(64), nullable=False),
        sa.Column("value", Word(255), nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("name", name=steps.f("pk_cursors")),
    )


def _effects() -> None:
    steps.create_table(
        "effects",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("family", Word(32), nullable=False),
        sa.Column("effect_key", Word(255), nullable=False),
        sa.Column("owned", Flag(), nullable=False, server_default="0"),
        sa.Column("idempotency", Word(32), nullable=False),
        sa.Column("purpose", Word(255), nullable=False),
        sa.Column("source_kind", Word(32), nullable=False),
        sa.Column("source_id", Word(191), nullable=False),
        sa.Column("actor", Word(128), nullable=False, server_default=""),
        sa.Column("request_token", Word(255), nullable=False, server_default=""),
        sa.Column("correlation_id", Word(191), nullable=False, server_default=""),
        sa.Column("credential_ref", Word(191), nullable=False, server_default=""),
        sa.Column("payload_version", Count, nullable=False),
        sa.Column("payload_fingerprint", Hash, nullable=False),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("work_state", Word(32)),
        sa.Column("attempt_count", Count, nullable=False, server_default="0"),
        sa.Column("starts", Count, nullable=False, server_default="0"),
        sa.Column("required_by", Instant),
        sa.Column("next_eligible_at", Instant),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("lease_owner", Word(160)),
        sa.Column("lease_expires_at", Instant),
        sa.Column("fence", Count, nullable=False, server_default="0"),
        sa.CheckConstraint("owned IN (0, 1)", name=steps.f("ck_effects_owned_flag")),
        sa.CheckConstraint(
            "state IN ('CANCELED', 'CLAIMED', 'COMPENSATION_REQUIRED', 'FAILED_MANUAL', "
            "'FAILED_RETRYABLE', 'IN_FLIGHT', 'NOT_REQUIRED', "
            "'PROVIDER_ACCEPTED_LOCAL_PENDING', 'READY', 'SUCCEEDED', 'SUPPRESSED', "
            "'UNKNOWN')",
            name=steps.f("ck_effects_state_known"),
        ),
        sa.CheckConstraint(
            "work_state IS NULL OR work_state IN ('AVAILABLE', 'CANCELED', 'COMPLETED', "
            "'EXPIRED', 'LEASED', 'MANUAL_REVIEW', 'RUNNING', 'WAITING_CALLBACK', "
            "'WAITING_RETRY')",
            name=steps.f("ck_effects_work_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_effects")),
        sa.UniqueConstraint(
            "workspace", "family", "effect_key", name=steps.f("uq_effects_workspace_family_effect_key")
        ),
    )
    steps.create_index("ix_effects_claim", "effects", ["work_state", "next_eligible_at"])
    steps.create_index("ix_effects_correlation", "effects", ["workspace", "correlation_id", "state"])


def _effects_1() -> None:
    steps.create_index("ix_effects_source", "effects", ["workspace", "source_kind", "source_id"])
    steps.create_index("ix_effects_state", "effects", ["workspace", "state", "updated_at"])


def _entries() -> None:
    steps.create_table(
        "entries",
        sa.Column("project_id", Id, nullable=False),
        sa.Column("document_hash", Hash, nullable=False),
        sa.Column("locale", Word(64), nullable=False),
        sa.Column("key_hash", Hash, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("document", Word(512), nullable=False),
        sa.Column("source_hash", Hash, nullable=False),
        sa.Column("written_hash", Hash, nullable=False),
        sa.Column("origin", Word(16), nullable=False),
        sa.Column("basis", Word(64), nullable=False, server_default=""),
        sa.Column("manifest_id", Id),
        sa.Column("updated_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint(
            "project_id", "document_hash", "locale", "key_hash", name=steps.f("pk_entries")
        ),
        clustered=True,
    )


def _executions() -> None:
    steps.create_table(
        "executions",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("plan_id", Id, nullable=False),
        sa.Column("manifest_id", Id, nullable=False),
        sa.Column("action", Word(16), nullable=False),
        sa.Column("direction", Word(16), nullable=False),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("open_key", Id),
        sa.Column("steps_conflict", Count, nullable=False, server_default="0"),
        sa.Column("steps_failed", Count, nullable=False, server_default="0"),
        sa.Column("steps_pending", Count, nullable=False, server_default="0"),
        sa.Column("steps_running", Count, nullable=False, server_default="0"),
        sa.Column("steps_succeeded", Count, nullable=False, server_default="0"),
        sa.Column("steps_unknown", Count, nullable=False, server_default="0"),
        sa.Column("units_written", Count, nullable=False, server_default="0"),
        sa.Column("units_left", Count, nullable=False, server_default="0"),
        sa.Column("troubled", Flag(), nullable=False, server_default="0"),
        sa.Column("slot", Count, nullable=False),
        sa.Column("error_code", Word(64)),
        sa.Column("error_message", Word(500)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("ended_at", Instant),
        sa.CheckConstraint(
            "state IN ('FAILED', 'QUEUED', 'RUNNING', 'SUCCEEDED')", name=steps.f("ck_executions_state_known")
        ),
        sa.CheckConstraint("troubled IN (0, 1)", name=steps.f("ck_executions_troubled_flag")),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_executions")),
        sa.UniqueConstraint("open_key", name=steps.f("uq_executions_open_key")),
    )
    steps.create_index("ix_executions_manifest", "executions", ["workspace", "manifest_id", "created_at"])
    steps.create_index("ix_executions_plan", "executions", ["plan_id", "created_at"])
    steps.create_index("ix_executions_slot", "executions", ["workspace", "manifest_id", "slot"])
    steps.create_index("ix_executions_state", "executions", ["workspace", "manifest_id", "state"])
    steps.create_index("ix_executions_troubled", "executions", ["workspace", "manifest_id", "troubled", "id"])


def _field_sums() -> None:
    steps.create_table(
        "field_sums",
        sa.Column("manifest_id", Id, nullable=False),
        sa.Column("bucket", Count, nullable=False, autoincrement=False),
        sa.Column("fields_total", Count, nullable=False, server_default="0"),
        sa.Column("fields_failed", Count, nullable=False, server_default="0"),
        sa.Column("via_memory", Count, nullable=False, server_default="0"),
        sa.Column("via_ai", Count, nullable=False, server_default="0"),
        sa.Column("passed_through", Count, nullable=False, server_default="0"),
        sa.Column("in_review", Count, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("manifest_id", "bucket", name=steps.f("pk_field_sums")),
        clustered=True,
    )


def _gone_endpoints() -> None:
    steps.create_table(
        "gone_endpoints",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("url_hash", Hash, nullable=False),
        sa.Column("endpoint", Word(191), nullable=False),
        sa.Column("created_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("workspace", "url_hash", name=steps.f("pk_gone_endpoints")),
        clustered=True,
    )
