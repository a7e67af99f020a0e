"""Tables of the owner's side: workspaces, manifests, intents, submissions, results, entries, receipts."""

from __future__ import annotations

from types import SimpleNamespace

import sqlalchemy as sa

from dragoman.kernel.limits import DOCUMENT_REF_CHARS_MAX, LOCALE_CHARS_MAX, REQUEST_ID_CHARS_MAX
from dragoman.machines import tables as machines
from dragoman.model.intents import USAGE
from dragoman.store.columns import counted, failure, flag, json_text, optional, required, stamps, state, word
from dragoman.store.portable import Bytes, Count, Hash, Id, Instant, LongText, Word, lease_columns, table

_PARKED = "parked_for IN ('', 'budget', 'provider', 'unknown', 'secret', 'pair', 'held')"

_STATE_COUNTS = (
    "pending",
    "preparing",
    "prepared",
    "queued",
    "processing",
    *sorted(machines.INTENT.terminal),
)
FIELD_COUNTS = ("fields_total", "fields_failed", "via_memory", "via_ai", "passed_through", "in_review")


def site_tables(metadata: sa.MetaData) -> SimpleNamespace:
    """All tables of the site side, by name."""
    return SimpleNamespace(
        **_tenants(metadata),
        **_manifests(metadata),
        **_pages(metadata),
        **_intents(metadata),
        **_texts(metadata),
        **_exchange(metadata),
        **_receipts(metadata),
    )


def _tenants(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "workspaces": table("workspaces", metadata, sa.Column("id", Word(64), primary_key=True), *stamps()),
        "projects": table(
            "projects",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("name", Word(128)),
            json_text("settings"),
            required("version", Count),
            *stamps(),
            sa.UniqueConstraint("workspace", "name"),
        ),
        "tokens": table(
            "tokens",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("actor", Word(128)),
            required("hash", Hash, unique=True),
            required("capabilities", Word(500)),
            optional("revoked_at", Instant),
            optional("last_used_at", Instant),
            *stamps(),
            sa.Index("ix_tokens_workspace", "workspace", "created_at"),
        ),
    }


def _manifests(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "manifests": table(
            "manifests",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("project_id", Id),
            required("actor", Word(128)),
            required("request_id", Word(REQUEST_ID_CHARS_MAX)),
            required("request_fingerprint", Hash),
            json_text(
                "settings"
            ),  # frozen: mode, provider, model, tone, source locale, output pattern, executor …
            *state(machines.MANIFEST, "phase"),
            required("total", Count),
            flag("total_known"),
            flag("canceled"),
            flag("paused"),
            optional("resume_key", Hash),  # unique while active, null once ended
            optional("push_id", Word(255)),
            optional("scope", LongText),  # what is walked; null where pairs were named
            optional("cursor", LongText),  # how far the walk, and a canary's sampling, came
            optional(
                "gaps", LongText
            ),  # collections that could not be listed, with the reason; null for none
            *counted("ignored_without_id", "canary_limit"),
            optional("promotes", Id),  # the canary whose left-out pairs this one goes on with
            *counted("attempt_count"),
            optional("next_attempt_at", Instant),
            optional("started_at", Instant),  # of the first claim; never moves
            optional("canceled_at", Instant),
            *counted("control_revision"),  # of the newest word of its owner: pause, resume, cancel
            optional("retry_after", Count),  # the ordinal up to which a retry under way has come
            optional("retry_asked_at", Instant),
            optional("control_due_at", Instant),  # while the engine has not been heard to know that word
            *failure(),
            *stamps(),
            optional("completed_at", Instant),
            optional("reconciled_at", Instant),
            *lease_columns(),
            sa.CheckConstraint("total >= 0", name="total_counted"),
            sa.UniqueConstraint("workspace", "actor", "request_id"),
            sa.UniqueConstraint("workspace", "resume_key"),
            sa.UniqueConstraint("promotes"),
            sa.Index("ix_manifests_claim", "phase", "next_attempt_at"),
            sa.Index("ix_manifests_control", "control_due_at"),
            sa.Index("ix_manifests_retry", "retry_asked_at"),
            sa.Index("ix_manifests_recent", "workspace", "updated_at"),
            sa.Index("ix_manifests_push", "workspace", "push_id"),
            sa.Index("ix_manifests_stale", "lease_expires_at"),
        ),
    }


def _pages(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "manifest_pages": table(  # the request's pairs, immutable, 1,000 a page, in ordinal order
            "manifest_pages",
            metadata,
            sa.Column("manifest_id", Id, primary_key=True),
            sa.Column("page", Count, primary_key=True, autoincrement=False),
            json_text("pairs"),
            clustered=True,
        ),
        "shards": table(  # 10,000 intents each: their lease and their counts, recounted in every transition
            "shards",
            metadata,
            sa.Column("manifest_id", Id, primary_key=True),
            sa.Column("shard", Count, primary_key=True, autoincrement=False),
            required("workspace", Word(64)),
            *counted("intents", *_STATE_COUNTS, "retryable_failed"),
            *counted(*FIELD_COUNTS),
            optional("prepare_due_at", Instant),  # the earliest intent here that wants preparation
            optional("submit_due_at", Instant),  # the earliest one prepared and in no submission
            required("prepare_served_at", Instant, server_default="0"),  # its turns: due again after others
            required("submit_served_at", Instant, server_default="0"),
            *lease_columns(),
            sa.CheckConstraint(
                "pending + preparing + prepared + queued + processing"
                " + completed + failed + protected + skipped = intents",
                name="sums",
            ),
            sa.CheckConstraint(" AND ".join(f"{name} >= 0" for name in _STATE_COUNTS), name="counted"),
            sa.Index("ix_shards_prepare", "prepare_due_at", "manifest_id", "shard"),
            sa.Index("ix_shards_submit", "submit_due_at", "manifest_id", "shard"),
        ),
        "field_sums": table(  # of 100 intents each, recounted where their fields are; shards sum them up
            "field_sums",
            metadata,
            sa.Column("manifest_id", Id, primary_key=True),
            sa.Column("bucket", Count, primary_key=True, autoincrement=False),
            *counted(*FIELD_COUNTS),
            clustered=True,
        ),
    }


def _intents(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "intents": table(
            "intents",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("manifest_id", Id),
            required("project_id", Id),
            required("shard", Count),
            required("ordinal", Count),
            required("document", Word(DOCUMENT_REF_CHARS_MAX)),
            required("locale", Word(LOCALE_CHARS_MAX)),
            required("pair_hash", Hash),
            *state(machines.INTENT),
            word("parked_for", 16),
            sa.CheckConstraint(_PARKED, name="parked_known"),
            optional("blocked_by", Id),  # the other intent that holds the pair
            optional("active_key", Hash),  # (project, document, locale), null once terminal
            required("generation", Count, server_default="1"),
            *counted("generation_attempt_count", "attempt_count", "last_event_sequence"),
            flag("retryable"),
            optional("next_attempt_at", Instant),
            optional("source_fingerprint", Hash),
            optional("selection_fingerprint", Hash),
            optional("prepared", LongText),  # the envelope; null before preparation and after acceptance
            optional("key_map", LongText),  # wire key → block key, kept for settlement and publishing
            *counted(*FIELD_COUNTS),
            optional("submission_id", Id),
            optional("remote_job_id", Word(191)),
            *failure(),
            *stamps(),
            optional("completed_at", Instant),
            sa.UniqueConstraint("manifest_id", "ordinal"),
            sa.UniqueConstraint("manifest_id", "pair_hash"),
            sa.UniqueConstraint("active_key"),
            sa.Index("ix_intents_claim", "manifest_id", "shard", "state", "next_attempt_at"),
            sa.Index("ix_intents_submission", "submission_id"),
            sa.Index("ix_intents_blocked", "blocked_by"),
            sa.Index("ix_intents_failures", "manifest_id", "state", "ordinal"),
        ),
    }


def _texts(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "results": table(  # one row a field of an intent, kept as long as the manifest
            "results",
            metadata,
            sa.Column("intent_id", Id, primary_key=True),
            sa.Column("key_hash", Hash, primary_key=True),
            required("field_key", LongText),
            required("source_hash", Hash),
            optional("text", LongText),  # plain text, or JSON of the plural forms; null for a failed field
            flag("plural"),
            word("via", 16),  # memory | ai | passed
            required("generation", Count),
            word("code", 64),
            word("check_name", 32),
            word("message", 500),
            word("review", 255),  # the checks that warned of a good text, joined by spaces
            word("basis", 64),  # what it was made from beside the text: note, terms, model, versions
            clustered=True,
        ),
        "entries": table(  # what we know of every target text; outlives manifests
            "entries",
            metadata,
            sa.Column("project_id", Id, primary_key=True),
            sa.Column("document_hash", Hash, primary_key=True),
            sa.Column("locale", Word(LOCALE_CHARS_MAX), primary_key=True),
            sa.Column("key_hash", Hash, primary_key=True),
            required("workspace", Word(64)),
            required("document", Word(DOCUMENT_REF_CHARS_MAX)),
            required("source_hash", Hash),  # of the source when it was last translated
            required("written_hash", Hash),  # of what we wrote, or of what stood there when first seen
            required(
                "origin", Word(16)
            ),  # ours | person | imported; a person's: what we wrote is no more there
            word("basis", 64),  # that of the result that we wrote
            optional("manifest_id", Id),
            required("updated_at", Instant),
            clustered=True,
        ),
    }


def _exchange(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "submissions": table(
            "submissions",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("manifest_id", Id),
            *state(machines.SUBMISSION),
            word("parked_for", 16),
            required("engine", Word(600)),  # the account that it was made for: nobody else sends it
            word("secret_mark", 16),  # of the callback secret that it was first sent under
            required("fingerprint", Hash),
            optional("body", Bytes),  # the exact bytes, null once accepted
            optional("remote_job_id", Word(191)),
            *counted("attempt_count"),
            optional("next_attempt_at", Instant),
            optional("payload_purged_at", Instant),
            optional("accepted_at", Instant),
            optional(
                "settled_at", Instant
            ),  # all linked generations terminal: reconciliation leaves it alone
            optional("reconcile_at", Instant),  # next time to ask the engine
            *counted(*USAGE),  # what the engine said at the job's end
            *failure(),
            *stamps(),
            *lease_columns(),
            sa.CheckConstraint(
                "body IS NOT NULL OR remote_job_id IS NOT NULL OR state = 'failed'", name="evidence"
            ),
            sa.Index("ix_submissions_claim", "next_attempt_at"),  # null unless open
            sa.Index("ix_submissions_reconcile", "reconcile_at"),
            sa.Index("ix_submissions_manifest", "manifest_id", "next_attempt_at"),
            sa.Index("ix_submissions_failed", "manifest_id", "error_code", "updated_at"),
            sa.Index("ix_submissions_remote", "remote_job_id"),
            sa.Index("ix_submissions_stale", "lease_expires_at"),
        ),
        "submission_intents": table(
            "submission_intents",
            metadata,
            sa.Column("submission_id", Id, primary_key=True),
            sa.Column("intent_id", Id, primary_key=True),
            sa.Column("part", Count, primary_key=True, autoincrement=False),
            required("parts", Count),
            required("generation", Count),
            required("ref", Word(128)),
            required("fields_hash", Hash),
            optional("settled_at", Instant),
            sa.Index("ix_submission_intents_intent", "intent_id", "generation"),
            clustered=True,
        ),
    }


def _receipts(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "receipts": table(
            "receipts",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("family", Word(32)),
            required("event_id", Word(255)),
            required("object_ref", Word(191)),
            *counted("event_sequence"),
            *state(machines.RECEIPT),
            required("signature_state", Word(16)),
            required("fingerprint", Hash),
            optional("body", LongText),  # kept until applied
            *counted("attempt_count", "repeats"),
            optional("next_attempt_at", Instant),
            *failure(),
            required("received_at", Instant),
            optional("applied_at", Instant),
            sa.UniqueConstraint("workspace", "family", "event_id"),
            sa.Index("ix_receipts_claim", "state", "next_attempt_at"),
            sa.Index("ix_receipts_object", "workspace", "object_ref"),
        ),
    }
