"""The first schema: runs to workspaces."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.store.migrations import steps
from dragoman.store.portable import Bytes, Count, Flag, Hash, Id, Instant, LongText, Word

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The first schema: runs to workspaces."""
    _runs()
    _shards()
    _snapshots()
    _submission_intents()
    _submissions()
    _terms()
    _tokens()
    _trials()
    _usage_sums()
    _workers()
    _workspaces()


def _runs() -> None:
    steps.create_table(
        "runs",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("project", Word(128), nullable=False),
        sa.Column("actor", Word(128), nullable=False),
        sa.Column("trigger_kind", Word(16), nullable=False),
        sa.Column("push_id", Word(255)),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("open_key", Hash),
        sa.Column("asked", LongText, nullable=False),
        sa.Column("passes", LongText, nullable=False),
        sa.Column("manifest_id", Id),
        sa.Column("next_attempt_at", Instant),
        sa.Column("error_code", Word(64)),
        sa.Column("error_message", Word(500)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("ended_at", Instant),
        sa.Column("lease_owner", Word(160)),
        sa.Column("lease_expires_at", Instant),
        sa.Column("fence", Count, nullable=False, server_default="0"),
        sa.CheckConstraint(
            "state IN ('canceled', 'complete', 'failed', 'looking', 'passing', 'stalled')",
            name=steps.f("ck_runs_state_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_runs")),
        sa.UniqueConstraint("open_key", name=steps.f("uq_runs_open_key")),
    )
    steps.create_index("ix_runs_claim", "runs", ["next_attempt_at"])
    steps.create_index("ix_runs_push", "runs", ["workspace", "project", "push_id"])
    steps.create_index("ix_runs_stale", "runs", ["lease_expires_at"])


def _shards() -> None:
    steps.create_table(
        "shards",
        sa.Column("manifest_id", Id, nullable=False),
        sa.Column("shard", Count, nullable=False, autoincrement=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("intents", Count, nullable=False, server_default="0"),
        sa.Column("pending", Count, nullable=False, server_default="0"),
        sa.Column("preparing", Count, nullable=False, server_default="0"),
        sa.Column("prepared", Count, nullable=False, server_default="0"),
        sa.Column("queued", Count, nullable=False, server_default="0"),
        sa.Column("processing", Count, nullable=False, server_default="0"),
        sa.Column("completed", Count, nullable=False, server_default="0"),
        sa.Column("failed", Count, nullable=False, server_default="0"),
        sa.Column("protected", Count, nullable=False, server_default="0"),
        sa.Column("skipped", Count, nullable=False, server_default="0"),
        sa.Column("retryable_failed", Count, nullable=False, server_default="0"),
        sa.Column("fields_total", Count, nullable=False, server_default="0"),
        sa.Column("fields_failed", Count, nullable=False, server_default="0"),
        sa.Column("via_memory", Count, nullable=False, server_default="0"),
        sa.Column("via_ai", Count, nullable=False, server_default="0"),
        sa.Column("passed_through", Count, nullable=False, server_default="0"),
        sa.Column("in_review", Count, nullable=False, server_default="0"),
        sa.Column("prepare_due_at", Instant),
        sa.Column("submit_due_at", Instant),
        sa.Column("prepare_served_at", Instant, nullable=False, server_default="0"),
        sa.Column("submit_served_at", Instant, nullable=False, server_default="0"),
        sa.Column("lease_owner", Word(160)),
        sa.Column("lease_expires_at", Instant),
        sa.Column("fence", Count, nullable=False, server_default="0"),
        sa.CheckConstraint(
            "pending >= 0 AND preparing >= 0 AND prepared >= 0 AND queued >= 0 AND processing "
            ">= 0 AND completed >= 0 AND failed >= 0 AND protected >= 0 AND skipped >= 0",
            name=steps.f("ck_shards_counted"),
        ),
        sa.CheckConstraint(
            "pending + preparing + prepared + queued + processing + completed + failed + "
            "protected + skipped = intents",
            name=steps.f("ck_shards_sums"),
        ),
        sa.PrimaryKeyConstraint("manifest_id", "shard", name=steps.f("pk_shards")),
    )
    steps.create_index("ix_shards_prepare", "shards", ["prepare_due_at", "manifest_id", "shard"])
    steps.create_index("ix_shards_submit", "shards", ["submit_due_at", "manifest_id", "shard"])


def _snapshots() -> None:
    steps.create_table(
        "snapshots",
        sa.Column("step_key", Word(191), nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("target", Word(512), nullable=False),
        sa.Column("existed", Flag(), nullable=False, server_default="0"),
        sa.Column("body", Bytes),
        sa.Column("written_fingerprint", Hash, nullable=False),
        sa.Column("written", LongText, nullable=False),
        sa.Column("entries", LongText),
        sa.Column("created_at", Instant, nullable=False),
        sa.CheckConstraint("existed IN (0, 1)", name=steps.f("ck_snapshots_existed_flag")),
        sa.PrimaryKeyConstraint("step_key", name=steps.f("pk_snapshots")),
    )


def _submission_intents() -> None:
    steps.create_table(
        "submission_intents",
        sa.Column("submission_id", Id, nullable=False),
        sa.Column("intent_id", Id, nullable=False),
        sa.Column("part", Count, nullable=False, autoincrement=False),
        sa.Column("parts", Count, nullable=False),
        sa.Column("generation", Count, nullable=False),
        sa.Column("ref", Word(128), nullable=False),
        sa.Column("fields_hash", Hash, nullable=False),
        sa.Column("settled_at", Instant),
        sa.PrimaryKeyConstraint("submission_id", "intent_id", "part", name=steps.f("pk_submission_intents")),
        clustered=True,
    )
    steps.create_index("ix_submission_intents_intent", "submission_intents", ["intent_id", "generation"])


def _submissions() -> None:
    steps.create_table(
        "submissions",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("manifest_id", Id, nullable=False),
        sa.Column("state", Word(32), nullable=False),
        sa.Column("parked_for", Word(16), nullable=False, server_default=""),
        sa.Column("engine", Word(600), nullable=False),
        sa.Column("secret_mark", Word(16), nullable=False, server_default=""),
        sa.Column("fingerprint", Hash, nullable=False),
        sa.Column("body", Bytes),
        sa.Column("remote_job_id", Word(191)),
        sa.Column("attempt_count", Count, nullable=False, server_default="0"),
        sa.Column("next_attempt_at", Instant),
        sa.Column("payload_purged_at", Instant),
        sa.Column("accepted_at", Instant),
        sa.Column("settled_at", Instant),
        sa.Column("reconcile_at", Instant),
        sa.Column("paid_tokens", Count, nullable=False, server_default="0"),
        sa.Column("paid_microusd", Count, nullable=False, server_default="0"),
        sa.Column("wasted_tokens", Count, nullable=False, server_default="0"),
        sa.Column("wasted_microusd", Count, nullable=False, server_default="0"),
        sa.Column("at_risk_tokens", Count, nullable=False, server_default="0"),
        sa.Column("at_risk_microusd", Count, nullable=False, server_default="0"),
        sa.Column("error_code", Word(64)),
        sa.Column("error_message", Word(500)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("lease_owner", Word(160)),
        sa.Column("lease_expires_at", Instant),
        sa.Column("fence", Count, nullable=False, server_default="0"),
        sa.CheckConstraint(
            "body IS NOT NULL OR remote_job_id IS NOT NULL OR state = 'failed'",
            name=steps.f("ck_submissions_evidence"),
        ),
        sa.CheckConstraint(
            "state IN ('accepted', 'failed', 'pending', 'retry_wait', 'submitting')",
            name=steps.f("ck_submissions_state_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_submissions")),
    )
    steps.create_index("ix_submissions_claim", "submissions", ["next_attempt_at"])
    steps.create_index("ix_submissions_failed", "submissions", ["manifest_id", "error_code", "updated_at"])
    steps.create_index("ix_submissions_manifest", "submissions", ["manifest_id", "next_attempt_at"])
    steps.create_index("ix_submissions_reconcile", "submissions", ["reconcile_at"])
    steps.create_index("ix_submissions_remote", "submissions", ["remote_job_id"])
    steps.create_index("ix_submissions_stale", "submissions", ["lease_expires_at"])


def _terms() -> None:
    steps.create_table(
        "terms",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("project", Word(128), nullable=False),
        sa.Column("source_locale", Word(64), nullable=False),
        sa.Column("target_locale", Word(64), nullable=False),
        sa.Column("term_key", Hash, nullable=False),
        sa.Column("source", Word(500), nullable=False),
        sa.Column("target", Word(500), nullable=False, server_default=""),
        sa.Column("status", Word(16), nullable=False),
        sa.Column("case_sensitive", Flag(), nullable=False, server_default="0"),
        sa.Column("note", Word(1000), nullable=False, server_default=""),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.CheckConstraint("case_sensitive IN (0, 1)", name=steps.f("ck_terms_case_sensitive_flag")),
        sa.PrimaryKeyConstraint(
            "workspace", "project", "source_locale", "target_locale", "term_key", name=steps.f("pk_terms")
        ),
        clustered=True,
    )


def _tokens() -> None:
    steps.create_table(
        "tokens",
        sa.Column("id", Id, nullable=False),
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("actor", Word(128), nullable=False),
        sa.Column("hash", Hash, nullable=False),
        sa.Column("capabilities", Word(500), nullable=False),
        sa.Column("revoked_at", Instant),
        sa.Column("last_used_at", Instant),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=steps.f("uq_tokens_hash")),
    )
    steps.create_index("ix_tokens_workspace", "tokens", ["workspace", "created_at"])


def _trials() -> None:
    steps.create_table(
        "trials",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("trial_key", Hash, nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.Column("created_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("workspace", "trial_key", "job_id", name=steps.f("pk_trials")),
        clustered=True,
    )


def _usage_sums() -> None:
    steps.create_table(
        "usage_sums",
        sa.Column("workspace", Word(64), nullable=False),
        sa.Column("client_job_id", Word(191), nullable=False),
        sa.Column("slot", Count, nullable=False, autoincrement=False),
        sa.Column("tokens", Count, nullable=False, server_default="0"),
        sa.Column("microusd", Count, nullable=False, server_default="0"),
        sa.Column("wasted_tokens", Count, nullable=False, server_default="0"),
        sa.Column("wasted_microusd", Count, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("workspace", "client_job_id", "slot", name=steps.f("pk_usage_sums")),
        clustered=True,
    )


def _workers() -> None:
    steps.create_table(
        "workers",
        sa.Column("id", Word(160), nullable=False),
        sa.Column("role", Word(32), nullable=False),
        sa.Column("host", Word(128), nullable=False),
        sa.Column("release", Word(32), nullable=False),
        sa.Column("credentials", LongText, nullable=False),
        sa.Column("started_at", Instant, nullable=False),
        sa.Column("last_seen_at", Instant, nullable=False),
        sa.Column("last_run_at", Instant),
        sa.Column("external", Flag(), nullable=False, server_default="0"),
        sa.Column("duration_microseconds", Count),
        sa.Column("exit_class", Word(32), nullable=False, server_default=""),
        sa.CheckConstraint("external IN (0, 1)", name=steps.f("ck_workers_external_flag")),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_workers")),
    )
    steps.create_index("ix_workers_seen", "workers", ["last_seen_at"])


def _workspaces() -> None:
    steps.create_table(
        "workspaces",
        sa.Column("id", Word(64), nullable=False),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("id", name=steps.f("pk_workspaces")),
    )
