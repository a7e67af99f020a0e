"""The first schema: memory_fresh to results."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.store.migrations import steps
from dragoman.store.portable import Bytes, Count, Flag, Hash, Id, Instant, LongText, Word

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The first schema: memory_fresh to results."""
    _memory_fresh()
    _memory_grams()
    _memory_segments()
    _memory_shelves()
    _outbox()
    _pauses()
    _plan_steps()
    _plans()
    _projects()
    _publication_commands()
    _publication_requests()
    _publication_steps()
    _publication_sums()
    _receipts()
    _reconciliations()
    _results()


def _memory_fresh() -> None:
    steps.create_table(
        "memory_fresh",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("project", Word(128), nullable=False),
        sa.Column("source_locale", Word(64), nullable=False),
        sa.Column("source_hash", Hash, nullable=False),
        sa.Column("source", LongText, nullable=False),
        sa.PrimaryKeyConstraint(
            "workspace", "project", "source_locale", "source_hash", name=steps.f("pk_memory_fresh")
        ),
        clustered=True,
    )


def _memory_grams() -> None:
    steps.create_table(
        "memory_grams",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("project", Word(128), nullable=False),
        sa.Column("source_locale", Word(64), nullable=False),
        sa.Column("bucket", Count, nullable=False, autoincrement=False),
        sa.Column("run", Count, nullable=False, autoincrement=False),
        sa.Column("postings", Bytes, nullable=False),
        sa.PrimaryKeyConstraint(
            "workspace", "project", "source_locale", "bucket", "run", name=steps.f("pk_memory_grams")
        ),
    )


def _memory_segments() -> None:
    steps.create_table(
        "memory_segments",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("project", Word(128), nullable=False),
        sa.Column("source_locale", Word(64), nullable=False),
        sa.Column("segment", Count, nullable=False, autoincrement=False),
        sa.Column("source_hash", Hash, nullable=False),
        sa.Column("source", LongText, nullable=False),
        sa.PrimaryKeyConstraint(
            "workspace", "project", "source_locale", "segment", name=steps.f("pk_memory_segments")
        ),
        clustered=True,
    )


def _memory_shelves() -> None:
    steps.create_table(
        "memory_shelves",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("project", Word(128), nullable=False),
        sa.Column("source_locale", Word(64), nullable=False),
        sa.Column("texts", Count, nullable=False),
        sa.PrimaryKeyConstraint("workspace", "project", "source_locale", name=steps.f("pk_memory_shelves")),
        clustered=True,
    )


def _outbox() -> None:
    steps.create_table(
        "outbox",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.Column("delivery_sequence", Count, nullable=False),
        sa.Column("event", Word(32), nullable=False),
        sa.Column("url", Word(500), nullable=False, server_default=""),
        sa.Column("secret", Word(1000), nullable=False, server_default=""),
        sa.Column("payload", Bytes, nullable=False),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("attempt_count", Count, nullable=False, server_default="0"),
        sa.Column("next_attempt_at", Instant),
        sa.Column("first_attempt_at", Instant),
        sa.Column("last_attempt_at", Instant),
        sa.Column("delivered_at", Instant),
        sa.Column("dead_at", Instant),
        sa.Column("response_status", Count),
        sa.Column("error_code", Word(64)),
        sa.Column("error_message", Word(500)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("lease_owner", Word(160)),
        sa.Column("lease_expires_at", Instant),
        sa.Column("fence", Count, nullable=False, server_default="0"),
        sa.CheckConstraint(
            "state IN ('dead', 'delivered', 'delivering', 'pending')", name=steps.f("ck_outbox_state_known")
        ),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_outbox")),
        sa.UniqueConstraint(
            "job_id", "delivery_sequence", name=steps.f("uq_outbox_job_id_delivery_sequence")
        ),
    )
    steps.create_index("ix_outbox_claim", "outbox", ["state", "next_attempt_at"])
    steps.create_index("ix_outbox_recent", "outbox", ["workspace", "state", "created_at"])
    steps.create_index("ix_outbox_stale", "outbox", ["state", "lease_expires_at"])


def _pauses() -> None:
    steps.create_table(
        "pauses",
        sa.Column("account", Word(191), nullable=False),
        sa.Column("until", Instant, nullable=False),
        sa.Column("code", Word(64), nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("account", name=steps.f("pk_pauses")),
    )


def _plan_steps() -> None:
    steps.create_table(
        "plan_steps",
        sa.Column("plan_id", Id, nullable=False),
        sa.Column("ordinal", Count, nullable=False, autoincrement=False),
        sa.Column("intent_id", Id, nullable=False),
        sa.Column("generation", Count, nullable=False),
        sa.Column("document", Word(512), nullable=False),
        sa.Column("locale", Word(64), nullable=False),
        sa.Column("target", Word(512), nullable=False),
        sa.Column("expected_fingerprint", Hash),
        sa.Column("write_fingerprint", Hash, nullable=False),
        sa.Column("units", LongText, nullable=False),
        sa.PrimaryKeyConstraint("plan_id", "ordinal", name=steps.f("pk_plan_steps")),
        clustered=True,
    )


def _plans() -> None:
    steps.create_table(
        "plans",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("manifest_id", Id, nullable=False),
        sa.Column("executor", Word(32), nullable=False),
        sa.Column("steps", Count, nullable=False),
        sa.Column("fingerprint", Hash, nullable=False),
        sa.Column("created_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_plans")),
    )
    steps.create_index("ix_plans_manifest", "plans", ["workspace", "manifest_id", "created_at"])


def _projects() -> None:
    steps.create_table(
        "projects",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("name", Word(128), nullable=False),
        sa.Column("settings", LongText, nullable=False),
        sa.Column("version", Count, nullable=False),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_projects")),
        sa.UniqueConstraint("workspace", "name", name=steps.f("uq_projects_workspace_name")),
    )


def _publication_commands() -> None:
    steps.create_table(
        "publication_commands",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("execution_id", Id, nullable=False),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("due_at", Instant, nullable=False),
        sa.Column("delivery_count", Count, nullable=False, server_default="0"),
        sa.Column("deliveries_without_progress", Count, nullable=False, server_default="0"),
        sa.Column("error_code", Word(64)),
        sa.Column("error_message", Word(500)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("lease_owner", Word(160)),
        sa.Column("lease_expires_at", Instant),
        sa.Column("fence", Count, nullable=False, server_default="0"),
        sa.CheckConstraint(
            "state IN ('DELIVERED', 'FAILED', 'PENDING', 'PROCESSING')",
            name=steps.f("ck_publication_commands_state_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_publication_commands")),
        sa.UniqueConstraint("execution_id", name=steps.f("uq_publication_commands_execution_id")),
    )
    steps.create_index("ix_publication_commands_claim", "publication_commands", ["state", "due_at"])
    steps.create_index("ix_publication_commands_stale", "publication_commands", ["state", "lease_expires_at"])


def _publication_requests() -> None:
    steps.create_table(
        "publication_requests",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("manifest_id", Id, nullable=False),
        sa.Column("intents", LongText, nullable=False),
        sa.Column("behind", Count),
        sa.Column("direction", Word(16), nullable=False, server_default="forward"),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("attempt_count", Count, nullable=False, server_default="0"),
        sa.Column("next_attempt_at", Instant),
        sa.Column("plan_id", Id),
        sa.Column("error_code", Word(64)),
        sa.Column("error_message", Word(500)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("lease_owner", Word(160)),
        sa.Column("lease_expires_at", Instant),
        sa.Column("fence", Count, nullable=False, server_default="0"),
        sa.CheckConstraint(
            "state IN ('failed', 'pending', 'planned')", name=steps.f("ck_publication_requests_state_known")
        ),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_publication_requests")),
    )
    steps.create_index(
        "ix_publication_requests_claim", "publication_requests", ["state", "next_attempt_at", "manifest_id"]
    )
    steps.create_index(
        "ix_publication_requests_manifest", "publication_requests", ["workspace", "manifest_id", "state"]
    )


def _publication_steps() -> None:
    steps.create_table(
        "publication_steps",
        sa.Column("execution_id", Id, nullable=False),
        sa.Column("ordinal", Count, nullable=False, autoincrement=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("step_key", Word(191), nullable=False),
        sa.Column("direction", Word(16), nullable=False),
        sa.Column("intent_id", Id, nullable=False),
        sa.Column("newest", Flag(), nullable=False, server_default="1"),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("attempt_count", Count, nullable=False, server_default="0"),
        sa.Column("units_written", Count, nullable=False, server_default="0"),
        sa.Column("units_left", Count, nullable=False, server_default="0"),
        sa.Column("effect_id", Id),
        sa.Column("receipt", LongText),
        sa.Column("error_code", Word(64)),
        sa.Column("error_message", Word(500)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.CheckConstraint("newest IN (0, 1)", name=steps.f("ck_publication_steps_newest_flag")),
        sa.CheckConstraint(
            "state IN ('CONFLICT', 'FAILED', 'PENDING', 'RUNNING', 'SUCCEEDED', 'UNKNOWN')",
            name=steps.f("ck_publication_steps_state_known"),
        ),
        sa.PrimaryKeyConstraint("execution_id", "ordinal", name=steps.f("pk_publication_steps")),
        clustered=True,
    )
    steps.create_index("ix_publication_steps_intent", "publication_steps", ["intent_id"])
    steps.create_index("ix_publication_steps_key", "publication_steps", ["step_key"])
    steps.create_index("ix_publication_steps_state", "publication_steps", ["execution_id", "state"])


def _publication_sums() -> None:
    steps.create_table(
        "publication_sums",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("manifest_id", Id, nullable=False),
        sa.Column("direction", Word(16), nullable=False),
        sa.Column("slot", Count, nullable=False, autoincrement=False),
        sa.Column("steps_conflict", Count, nullable=False, server_default="0"),
        sa.Column("steps_failed", Count, nullable=False, server_default="0"),
        sa.Column("steps_pending", Count, nullable=False, server_default="0"),
        sa.Column("steps_running", Count, nullable=False, server_default="0"),
        sa.Column("steps_succeeded", Count, nullable=False, server_default="0"),
        sa.Column("steps_unknown", Count, nullable=False, server_default="0"),
        sa.Column("units_written", Count, nullable=False, server_default="0"),
        sa.Column("units_left", Count, nullable=False, server_default="0"),
        sa.Column("queued", Count, nullable=False, server_default="0"),
        sa.Column("troubled", Count, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint(
            "workspace", "manifest_id", "direction", "slot", name=steps.f("pk_publication_sums")
        ),
        clustered=True,
    )


def _receipts() -> None:
    steps.create_table(
        "receipts",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("family", Word(32), nullable=False),
        sa.Column("event_id", Word(255), nullable=False),
        sa.Column("object_ref", Word(191), nullable=False),
        sa.Column("event_sequence", Count, nullable=False, server_default="0"),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("signature_state", Word(16), nullable=False),
        sa.Column("fingerprint", Hash, nullable=False),
        sa.Column("body", LongText),
        sa.Column("attempt_count", Count, nullable=False, server_default="0"),
        sa.Column("repeats", Count, nullable=False, server_default="0"),
        sa.Column("next_attempt_at", Instant),
        sa.Column("error_code", Word(64)),
        sa.Column("error_message", Word(500)),
        sa.Column("received_at", Instant, nullable=False),
        sa.Column("applied_at", Instant),
        sa.CheckConstraint(
            "state IN ('APPLIED', 'DUPLICATE', 'FAILED_MANUAL', 'FAILED_RETRYABLE', "
            "'IGNORED', 'OUT_OF_ORDER', 'RECEIVED', 'UNKNOWN')",
            name=steps.f("ck_receipts_state_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_receipts")),
        sa.UniqueConstraint(
            "workspace", "family", "event_id", name=steps.f("uq_receipts_workspace_family_event_id")
        ),
    )
    steps.create_index("ix_receipts_claim", "receipts", ["state", "next_attempt_at"])
    steps.create_index("ix_receipts_object", "receipts", ["workspace", "object_ref"])


def _reconciliations() -> None:
    steps.create_table(
        "reconciliations",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("effect_id", Id, nullable=False),
        sa.Column("attempt_id", Id),
        sa.Column("disposition", Word(48), nullable=False),
        sa.Column("object_ref", Word(255), nullable=False, server_default=""),
        sa.Column("next_action", Word(64), nullable=False, server_default=""),
        sa.Column("by", Word(160), nullable=False),
        sa.Column("at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_reconciliations")),
    )
    steps.create_index("ix_reconciliations_effect", "reconciliations", ["workspace", "effect_id", "at"])


def _results() -> None:
    steps.create_table(
        "results",
        sa.Column("intent_id", Id, nullable=False),
        sa.Column("key_hash", Hash, nullable=False),
        sa.Column("field_key", LongText, nullable=False),
        sa.Column("source_hash", Hash, nullable=False),
        sa.Column("text", LongText),
        sa.Column("plural", Flag(), nullable=False, server_default="0"),
        sa.Column("via", Word(16), nullable=False, server_default=""),
        sa.Column("generation", Count, nullable=False),
        sa.Column("code", Word(64), nullable=False, server_default=""),
        sa.Column("check_name", Word(32), nullable=False, server_default=""),
        sa.Column("message", Word(500), nullable=False, server_default=""),
        sa.Column("review", Word(255), nullable=False, server_default=""),
        sa.Column("basis", Word(64), nullable=False, server_default=""),
        sa.CheckConstraint("plural IN (0, 1)", name=steps.f("ck_results_plural_flag")),
        sa.PrimaryKeyConstraint("intent_id", "key_hash", name=steps.f("pk_results")),
        clustered=True,
    )
