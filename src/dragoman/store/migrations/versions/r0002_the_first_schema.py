"""The first schema: history to memory."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.store.migrations import steps
from dragoman.store.portable import Count, Flag, Hash, Id, Instant, LongText, Word

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The first schema: history to memory."""
    _history()
    _intents()
    _intents_1()
    _job_fields()
    _job_items()
    _jobs()
    _jobs_1()
    _lanes()
    _manifest_pages()
    _manifests()
    _manifests_1()
    _manners()
    _memory()


def _history() -> None:
    steps.create_table(
        "history",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("kind", Word(16), nullable=False),
        sa.Column("subject", Word(191), nullable=False),
        sa.Column("action", Word(48), nullable=False),
        sa.Column("before", Word(32), nullable=False, server_default=""),
        sa.Column("after", Word(32), nullable=False, server_default=""),
        sa.Column("actor", Word(160), nullable=False, server_default=""),
        sa.Column("generation", Count, nullable=False, server_default="0"),
        sa.Column("attempt", Count, nullable=False, server_default="0"),
        sa.Column("generation_attempt", Count, nullable=False, server_default="0"),
        sa.Column("submission_id", Id),
        sa.Column("code", Word(64), nullable=False, server_default=""),
        sa.Column("message", Word(500), nullable=False, server_default=""),
        sa.Column("metadata", Word(500)),
        sa.Column("correlation_id", Word(191), nullable=False, server_default=""),
        sa.Column("at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_history")),
    )
    steps.create_index("ix_history_subject", "history", ["workspace", "subject", "at"])


def _intents() -> None:
    steps.create_table(
        "intents",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("manifest_id", Id, nullable=False),
        sa.Column("project_id", Id, nullable=False),
        sa.Column("shard", Count, nullable=False),
        sa.Column("ordinal", Count, nullable=False),
        sa.Column("document", Word(512), nullable=False),
        sa.Column("locale", Word(64), nullable=False),
        sa.Column("pair_hash", Hash, nullable=False),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("parked_for", Word(16), nullable=False, server_default=""),
        sa.Column("blocked_by", Id),
        sa.Column("active_key", Hash),
        sa.Column("generation", Count, nullable=False, server_default="1"),
        sa.Column("generation_attempt_count", Count, nullable=False, server_default="0"),
        sa.Column("attempt_count", Count, nullable=False, server_default="0"),
        sa.Column("last_event_sequence", Count, nullable=False, server_default="0"),
        sa.Column("retryable", Flag(), nullable=False, server_default="0"),
        sa.Column("next_attempt_at", Instant),
        sa.Column("source_fingerprint", Hash),
        sa.Column("selection_fingerprint", Hash),
        sa.Column("prepared", LongText),
        sa.Column("key_map", LongText),
        sa.Column("fields_total", Count, nullable=False, server_default="0"),
        sa.Column("fields_failed", Count, nullable=False, server_default="0"),
        sa.Column("via_memory", Count, nullable=False, server_default="0"),
        sa.Column("via_ai", Count, nullable=False, server_default="0"),
        sa.Column("passed_through", Count, nullable=False, server_default="0"),
        sa.Column("in_review", Count, nullable=False, server_default="0"),
        sa.Column("submission_id", Id),
        sa.Column("remote_job_id", Word(191)),
        sa.Column("error_code", Word(64)),
        sa.Column("error_message", Word(500)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("completed_at", Instant),
        sa.CheckConstraint(
            "parked_for IN ('', 'budget', 'provider', 'unknown', 'secret', 'pair', 'held')",
            name=steps.f("ck_intents_parked_known"),
        ),
        sa.CheckConstraint("retryable IN (0, 1)", name=steps.f("ck_intents_retryable_flag")),
        sa.CheckConstraint(
            "state IN ('completed', 'failed', 'pending', 'prepared', 'preparing', "
            "'processing', 'protected', 'queued', 'skipped')",
            name=steps.f("ck_intents_state_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_intents")),
        sa.UniqueConstraint("active_key", name=steps.f("uq_intents_active_key")),
        sa.UniqueConstraint("manifest_id", "ordinal", name=steps.f("uq_intents_manifest_id_ordinal")),
        sa.UniqueConstraint("manifest_id", "pair_hash", name=steps.f("uq_intents_manifest_id_pair_hash")),
    )


def _intents_1() -> None:
    steps.create_index("ix_intents_blocked", "intents", ["blocked_by"])
    steps.create_index("ix_intents_claim", "intents", ["manifest_id", "shard", "state", "next_attempt_at"])
    steps.create_index("ix_intents_failures", "intents", ["manifest_id", "state", "ordinal"])
    steps.create_index("ix_intents_submission", "intents", ["submission_id"])


def _job_fields() -> None:
    steps.create_table(
        "job_fields",
        sa.Column("job_id", Id, nullable=False),
        sa.Column("ordinal", Count, nullable=False, autoincrement=False),
        sa.Column("item", Count, nullable=False),
        sa.Column("wire_key", Word(64), nullable=False),
        sa.Column("text", LongText),
        sa.Column("plural", Flag(), nullable=False, server_default="0"),
        sa.Column("syntax", Word(16), nullable=False),
        sa.Column("source_hash", Hash, nullable=False),
        sa.Column("context_hash", Hash, nullable=False),
        sa.Column("note", LongText),
        sa.Column("context", LongText),
        sa.Column("max_length", Count),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("repeat_of", Count),
        sa.Column("calls", Count, nullable=False, server_default="0"),
        sa.Column("result", LongText),
        sa.Column("via", Word(16), nullable=False, server_default=""),
        sa.Column("code", Word(64), nullable=False, server_default=""),
        sa.Column("check_name", Word(32), nullable=False, server_default=""),
        sa.Column("message", Word(500), nullable=False, server_default=""),
        sa.Column("missing", LongText),
        sa.Column("review", Word(255), nullable=False, server_default=""),
        sa.CheckConstraint("plural IN (0, 1)", name=steps.f("ck_job_fields_plural_flag")),
        sa.CheckConstraint(
            "state IN ('done', 'failed', 'open', 'passed')", name=steps.f("ck_job_fields_state_known")
        ),
        sa.PrimaryKeyConstraint("job_id", "ordinal", name=steps.f("pk_job_fields")),
        clustered=True,
    )
    steps.create_index("ix_job_fields_state", "job_fields", ["job_id", "state", "via"])


def _job_items() -> None:
    steps.create_table(
        "job_items",
        sa.Column("job_id", Id, nullable=False),
        sa.Column("ordinal", Count, nullable=False, autoincrement=False),
        sa.Column("ref", Word(128), nullable=False),
        sa.Column("target_locale", Word(64), nullable=False),
        sa.Column("fields", Count, nullable=False),
        sa.Column("status", Word(16), nullable=False, server_default=""),
        sa.Column("code", Word(64), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("job_id", "ordinal", name=steps.f("pk_job_items")),
        sa.UniqueConstraint("job_id", "ref", name=steps.f("uq_job_items_job_id_ref")),
        clustered=True,
    )


def _jobs() -> None:
    steps.create_table(
        "jobs",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("project", Word(128), nullable=False),
        sa.Column("principal", Word(128), nullable=False),
        sa.Column("submission_id", Id, nullable=False),
        sa.Column("submission_fingerprint", Hash, nullable=False),
        sa.Column("client_job_id", Word(191), nullable=False),
        sa.Column("source_locale", Word(64), nullable=False),
        sa.Column("tone", Word(255), nullable=False, server_default=""),
        sa.Column("options", LongText, nullable=False),
        sa.Column("provider", Word(128), nullable=False, server_default=""),
        sa.Column("model", Word(191), nullable=False, server_default=""),
        sa.Column("needs", Word(128), nullable=False, server_default=""),
        sa.Column("library", LongText),
        sa.Column("callback_url", Word(500), nullable=False, server_default=""),
        sa.Column("callback_secret", Word(1000), nullable=False, server_default=""),
        sa.Column("queue_payload", LongText, nullable=False),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("parked_for", Word(16), nullable=False, server_default=""),
        sa.Column("cancel_asked", Flag(), nullable=False, server_default="0"),
        sa.Column("items_total", Count, nullable=False, server_default="0"),
        sa.Column("items_failed", Count, nullable=False, server_default="0"),
        sa.Column("total_fields", Count, nullable=False, server_default="0"),
        sa.Column("done_fields", Count, nullable=False, server_default="0"),
        sa.Column("failed_fields", Count, nullable=False, server_default="0"),
        sa.Column("passed_through", Count, nullable=False, server_default="0"),
        sa.Column("via_memory", Count, nullable=False, server_default="0"),
        sa.Column("via_ai", Count, nullable=False, server_default="0"),
        sa.Column("starts", Count, nullable=False, server_default="0"),
        sa.Column("delivery_sequence", Count, nullable=False, server_default="0"),
        sa.Column("next_attempt_at", Instant),
        sa.Column("deadline_at", Instant, nullable=False),
        sa.Column("push_id", Word(255)),
        sa.Column("error_code", Word(64)),
        sa.Column("error_message", Word(500)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("started_at", Instant),
        sa.Column("ended_at", Instant),
        sa.Column("purged_at", Instant),
        sa.Column("lease_owner", Word(160)),
        sa.Column("lease_expires_at", Instant),
        sa.Column("fence", Count, nullable=False, server_default="0"),
        sa.CheckConstraint("cancel_asked IN (0, 1)", name=steps.f("ck_jobs_cancel_asked_flag")),
        sa.CheckConstraint(
            "state IN ('canceled', 'completed', 'failed', 'processing', 'queued')",
            name=steps.f("ck_jobs_state_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_jobs")),
        sa.UniqueConstraint("submission_id", name=steps.f("uq_jobs_submission_id")),
    )


def _jobs_1() -> None:
    steps.create_index("ix_jobs_claim", "jobs", ["workspace", "state", "next_attempt_at"])
    steps.create_index("ix_jobs_client", "jobs", ["workspace", "client_job_id", "state", "next_attempt_at"])
    steps.create_index("ix_jobs_due", "jobs", ["state", "next_attempt_at"])
    steps.create_index("ix_jobs_push", "jobs", ["workspace", "push_id"])
    steps.create_index("ix_jobs_recent", "jobs", ["workspace", "created_at"])
    steps.create_index("ix_jobs_stale", "jobs", ["state", "lease_expires_at"])


def _lanes() -> None:
    steps.create_table(
        "lanes",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("role", Word(16), nullable=False),
        sa.Column("ready_at", Instant),
        sa.Column("served_at", Instant, nullable=False, server_default="0"),
        sa.Column("weight", Count, nullable=False, server_default="1"),
        sa.PrimaryKeyConstraint("workspace", "role", name=steps.f("pk_lanes")),
    )
    steps.create_index("ix_lanes_turn", "lanes", ["role", "served_at"])


def _manifest_pages() -> None:
    steps.create_table(
        "manifest_pages",
        sa.Column("manifest_id", Id, nullable=False),
        sa.Column("page", Count, nullable=False, autoincrement=False),
        sa.Column("pairs", LongText, nullable=False),
        sa.PrimaryKeyConstraint("manifest_id", "page", name=steps.f("pk_manifest_pages")),
        clustered=True,
    )


def _manifests() -> None:
    steps.create_table(
        "manifests",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("project_id", Id, nullable=False),
        sa.Column("actor", Word(128), nullable=False),
        sa.Column("request_id", Word(255), nullable=False),
        sa.Column("request_fingerprint", Hash, nullable=False),
        sa.Column("settings", LongText, nullable=False),
        sa.Column("phase", Word(32), nullable=False),
        sa.Column("total", Count, nullable=False),
        sa.Column("total_known", Flag(), nullable=False, server_default="0"),
        sa.Column("canceled", Flag(), nullable=False, server_default="0"),
        sa.Column("paused", Flag(), nullable=False, server_default="0"),
        sa.Column("resume_key", Hash),
        sa.Column("push_id", Word(255)),
        sa.Column("scope", LongText),
        sa.Column("cursor", LongText),
        sa.Column("gaps", LongText),
        sa.Column("ignored_without_id", Count, nullable=False, server_default="0"),
        sa.Column("canary_limit", Count, nullable=False, server_default="0"),
        sa.Column("promotes", Id),
        sa.Column("attempt_count", Count, nullable=False, server_default="0"),
        sa.Column("next_attempt_at", Instant),
        sa.Column("started_at", Instant),
        sa.Column("canceled_at", Instant),
        sa.Column("control_revision", Count, nullable=False, server_default="0"),
        sa.Column("retry_after", Count),
        sa.Column("retry_asked_at", Instant),
        sa.Column("control_due_at", Instant),
        sa.Column("error_code", Word(64)),
        sa.Column("error_message", Word(500)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("completed_at", Instant),
        sa.Column("reconciled_at", Instant),
        sa.Column("lease_owner", Word(160)),
        sa.Column("lease_expires_at", Instant),
        sa.Column("fence", Count, nullable=False, server_default="0"),
        sa.CheckConstraint("canceled IN (0, 1)", name=steps.f("ck_manifests_canceled_flag")),
        sa.CheckConstraint("paused IN (0, 1)", name=steps.f("ck_manifests_paused_flag")),
        sa.CheckConstraint(
            "phase IN ('ended', 'enumerating', 'open')", name=steps.f("ck_manifests_phase_known")
        ),
        sa.CheckConstraint("total >= 0", name=steps.f("ck_manifests_total_counted")),
        sa.CheckConstraint("total_known IN (0, 1)", name=steps.f("ck_manifests_total_known_flag")),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_manifests")),
        sa.UniqueConstraint("promotes", name=steps.f("uq_manifests_promotes")),
        sa.UniqueConstraint(
            "workspace", "actor", "request_id", name=steps.f("uq_manifests_workspace_actor_request_id")
        ),
        sa.UniqueConstraint("workspace", "resume_key", name=steps.f("uq_manifests_workspace_resume_key")),
    )


def _manifests_1() -> None:
    steps.create_index("ix_manifests_claim", "manifests", ["phase", "next_attempt_at"])
    steps.create_index("ix_manifests_control", "manifests", ["control_due_at"])
    steps.create_index("ix_manifests_push", "manifests", ["workspace", "push_id"])
    steps.create_index("ix_manifests_recent", "manifests", ["workspace", "updated_at"])
    steps.create_index("ix_manifests_retry", "manifests", ["retry_asked_at"])
    steps.create_index("ix_manifests_stale", "manifests", ["lease_expires_at"])


def _manners() -> None:
    steps.create_table(
        "manners",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("project", Word(128), nullable=False),
        sa.Column("threshold", Count, nullable=False, server_default="100"),
        sa.Column("style", Word(2000), nullable=False, server_default=""),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("workspace", "project", name=steps.f("pk_manners")),
        clustered=True,
    )


def _memory() -> None:
    steps.create_table(
        "memory",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("project", Word(128), nullable=False),
        sa.Column("source_locale", Word(64), nullable=False),
        sa.Column("target_locale", Word(64), nullable=False),
        sa.Column("source_hash", Hash, nullable=False),
        sa.Column("context_hash", Hash, nullable=False),
        sa.Column("source", LongText, nullable=False),
        sa.Column("text", LongText, nullable=False),
        sa.Column("plural", Flag(), nullable=False, server_default="0"),
        sa.Column("syntax", Word(16), nullable=False, server_default=""),
        sa.Column("origin", Word(16), nullable=False),
        sa.Column("basis", Word(64), nullable=False, server_default=""),
        sa.Column("job_id", Word(36), nullable=False, server_default=""),
        sa.Column("model", Word(191), nullable=False, server_default=""),
        sa.Column("prompt_version", Word(16), nullable=False, server_default=""),
        sa.Column("validator_version", Word(16), nullable=False, server_default=""),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.CheckConstraint("plural IN (0, 1)", name=steps.f("ck_memory_plural_flag")),
        sa.PrimaryKeyConstraint(
            "workspace",
            "project",
            "source_locale",
            "target_locale",
            "source_hash",
            "context_hash",
            name=steps.f("pk_memory"),
        ),
        clustered=True,
    )
