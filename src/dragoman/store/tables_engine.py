"""Tables of the translating side: jobs, fields, calls, answers, memory, money, lanes, outbox."""

from __future__ import annotations

from types import SimpleNamespace

import sqlalchemy as sa

from dragoman.kernel.limits import CREDENTIAL_NAME_CHARS_MAX, LOCALE_CHARS_MAX
from dragoman.machines import tables as machines
from dragoman.store.columns import counted, failure, flag, json_text, optional, required, stamps, state, word
from dragoman.store.portable import (
    Bytes,
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
from dragoman.store.tables_memory import memory_tables


def engine_tables(metadata: sa.MetaData) -> SimpleNamespace:
    """All tables of the engine side, by name."""
    return SimpleNamespace(
        **_jobs(metadata),
        **_job_parts(metadata),
        **_calls(metadata),
        **memory_tables(metadata),
        **_money(metadata),
        **_flow(metadata),
        **_delivery(metadata),
    )


def _jobs(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "jobs": table(
            "jobs",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("project", Word(128)),
            required("principal", Word(128)),
            required("submission_id", Id, unique=True),
            required("submission_fingerprint", Hash),
            required("client_job_id", Word(191)),
            required("source_locale", Word(LOCALE_CHARS_MAX)),
            word("tone", 255),
            json_text("options"),
            word(
                "provider", 128
            ),  # the name in the settings; empty and `platform` are the platform's own account
            word("model", 191),
            word(
                "needs", CREDENTIAL_NAME_CHARS_MAX
            ),  # what a process must hold to work it: a credential reference, or
            # the name of a provider whose address a command line gave; '' where anybody can
            optional("library", LongText),  # style and terms that came along; purged with the source texts
            word("callback_url", 500),
            word("callback_secret", 1000),  # sealed, or `local` where site and engine share the database
            json_text("queue_payload"),
            *state(machines.JOB),
            word("parked_for", 16),
            flag("cancel_asked"),
            *counted(
                "items_total",
                "items_failed",
                "total_fields",
                "done_fields",
                "failed_fields",
                "passed_through",
            ),
            *counted("via_memory", "via_ai", "starts", "delivery_sequence"),
            optional("next_attempt_at", Instant),
            required("deadline_at", Instant),
            optional("push_id", Word(255)),
            *failure(),
            *stamps(),
            optional("started_at", Instant),
            optional("ended_at", Instant),
            optional("purged_at", Instant),
            *lease_columns(),
            sa.Index("ix_jobs_claim", "workspace", "state", "next_attempt_at"),
            sa.Index("ix_jobs_due", "state", "next_attempt_at"),
            sa.Index("ix_jobs_stale", "state", "lease_expires_at"),
            sa.Index("ix_jobs_recent", "workspace", "created_at"),
            sa.Index("ix_jobs_client", "workspace", "client_job_id", "state", "next_attempt_at"),
            sa.Index("ix_jobs_push", "workspace", "push_id"),
        ),
    }


def _job_parts(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "job_items": table(
            "job_items",
            metadata,
            sa.Column("job_id", Id, primary_key=True),
            sa.Column("ordinal", Count, primary_key=True, autoincrement=False),
            required("ref", Word(128)),
            required("target_locale", Word(LOCALE_CHARS_MAX)),
            required("fields", Count),
            word("status", 16),  # '' while open, then completed | failed
            word("code", 64),
            sa.UniqueConstraint("job_id", "ref"),
            clustered=True,
        ),
        "job_fields": table(
            "job_fields",
            metadata,
            sa.Column("job_id", Id, primary_key=True),
            sa.Column("ordinal", Count, primary_key=True, autoincrement=False),
            required("item", Count),
            required("wire_key", Word(64)),
            optional("text", LongText),  # plain text or JSON of the plural forms; purged once delivered
            flag("plural"),
            required("syntax", Word(16)),
            required("source_hash", Hash),
            required("context_hash", Hash),
            optional("note", LongText),
            optional("context", LongText),
            optional("max_length", Count),
            *state(machines.FIELD),
            optional("repeat_of", Count),  # an equal field of this job, translated once
            *counted("calls"),  # how often it was asked for, at most three
            optional("result", LongText),
            word("via", 16),
            word("code", 64),
            word("check_name", 32),
            word("message", 500),
            optional("missing", LongText),  # JSON list of what a failed check missed
            word("review", 255),  # the checks that warned of a good text, joined by spaces
            sa.Index("ix_job_fields_state", "job_id", "state", "via"),
            clustered=True,
        ),
    }


def _calls(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "calls": table(
            "calls",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("job_id", Id),
            required("client_job_id", Word(191)),
            required("ordinal", Count),
            optional("parent", Count),
            required("purpose", Word(16)),  # first | repair | alone | split | bisect
            *state(machines.CALL),
            required("effect_id", Id),
            required("target_locale", Word(LOCALE_CHARS_MAX)),
            json_text("asked"),  # [[prompt id, field ordinal, plural category or ""], …]
            optional("request", Bytes),  # canonical request, purged once closed
            required("request_fingerprint", Hash),
            optional("next_attempt_at", Instant),
            required("created_at", Instant),
            optional("closed_at", Instant),
            sa.UniqueConstraint("job_id", "ordinal"),
            sa.Index("ix_calls_open", "job_id", "state"),
            sa.Index("ix_calls_client", "workspace", "client_job_id", "state"),
            sa.Index("ix_calls_effect", "effect_id"),
        ),
        "answers": table(  # an answer's bytes as received, kept before anyone parsed them
            "answers",
            metadata,
            sa.Column("attempt_id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("body", Bytes),
            required("received_at", Instant),
        ),
    }


def _money(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "ai_usage": table(
            "ai_usage",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("project", Word(128)),
            word("job_id", 36),
            required("attempt_id", Id, unique=True),
            word("client_job_id", 191),
            required("model", Word(191)),
            *counted("prompt_tokens", "output_tokens", "cached_tokens", "total_tokens"),
            required("microusd", Money, server_default="0"),
            word("prices", 64),  # the list of prices that this was reckoned by; '' where nobody bills
            flag("wasted"),  # paid for and of no use: cut, unreadable, repeated or too late
            required("created_at", Instant),
            sa.Index("idx_ai_usage_workspace_period", "workspace", "created_at"),
            sa.Index("ix_ai_usage_job", "job_id"),
            sa.Index("ix_ai_usage_client", "workspace", "client_job_id"),
        ),
        "usage_sums": table(  # what the calls of a client job have used, in slots that its jobs share out
            "usage_sums",
            metadata,
            sa.Column("workspace", Word(64), primary_key=True),
            sa.Column("client_job_id", Word(191), primary_key=True),
            sa.Column("slot", Count, primary_key=True, autoincrement=False),
            *counted("tokens", "microusd", "wasted_tokens", "wasted_microusd"),
            clustered=True,
        ),
        "ai_quotas": table(
            "ai_quotas",
            metadata,
            sa.Column("workspace", Word(64), primary_key=True),
            required("monthly_tokens", Count),
            optional("monthly_microusd", Money),
            required("updated_at", Instant),
        ),
        "budgets": table(  # moved by the very amounts of the attempts that the same transaction moved
            "budgets",
            metadata,
            sa.Column("workspace", Word(64), primary_key=True),
            sa.Column("scope", Word(16), primary_key=True),  # month | provider | client_job
            sa.Column("scope_key", Word(191), primary_key=True),
            optional("limit_tokens", Count),
            optional("limit_microusd", Money),
            *counted("reserved_tokens", "spent_tokens", "reserved_microusd", "spent_microusd"),
            required("updated_at", Instant),
            clustered=True,
        ),
    }


def _flow(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "controls": table(  # what the site decided for all present and future jobs of one client job
            "controls",
            metadata,
            sa.Column("workspace", Word(64), primary_key=True),
            sa.Column("client_job_id", Word(191), primary_key=True),
            *counted("revision"),
            flag("paused"),
            flag("canceled"),
            word("on_unknown", 32),  # '' and resend: within the bound · resend:unlimited · hold
            required("updated_at", Instant),
        ),
        "lanes": table(  # a workspace with ready work of one role; claims go round them
            "lanes",
            metadata,
            sa.Column("workspace", Word(64), primary_key=True),
            sa.Column("role", Word(16), primary_key=True),
            optional("ready_at", Instant),
            required("served_at", Instant, server_default="0"),
            required("weight", Count, server_default="1"),
            sa.Index("ix_lanes_turn", "role", "served_at"),
        ),
        "pauses": table(  # a provider account that asked to slow down, or has no money left
            "pauses",
            metadata,
            sa.Column("account", Word(191), primary_key=True),
            required("until", Instant),
            required("code", Word(64)),
            required("updated_at", Instant),
        ),
    }


def _delivery(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "gone_endpoints": table(  # a URL that answered 410: its events are dead until a person redrives one
            "gone_endpoints",
            metadata,
            sa.Column("workspace", Word(64), primary_key=True),
            sa.Column("url_hash", Hash, primary_key=True),
            required("endpoint", Word(191)),  # scheme and host: what people see of it
            required("created_at", Instant),
            clustered=True,
        ),
        "outbox": table(
            "outbox",
            metadata,
            sa.Column("id", Id, primary_key=True),  # the delivery id, the same at every attempt
            required("workspace", Word(64)),
            required("job_id", Id),
            required("delivery_sequence", Count),
            required("event", Word(32)),
            word("url", 500),
            word("secret", 1000),
            required("payload", Bytes),  # the frozen body
            *state(machines.OUTBOX),
            *counted("attempt_count"),
            optional("next_attempt_at", Instant),
            optional("first_attempt_at", Instant),
            optional("last_attempt_at", Instant),
            optional("delivered_at", Instant),
            optional("dead_at", Instant),
            optional("response_status", Count),
            *failure(),
            *stamps(),
            *lease_columns(),
            sa.UniqueConstraint("job_id", "delivery_sequence"),
            sa.Index("ix_outbox_claim", "state", "next_attempt_at"),
            sa.Index("ix_outbox_recent", "workspace", "state", "created_at"),
            sa.Index("ix_outbox_stale", "state", "lease_expires_at"),
        ),
    }
