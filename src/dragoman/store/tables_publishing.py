"""Tables of publishing: requests, immutable plans, executions with their steps and command, snapshots."""

from __future__ import annotations

from types import SimpleNamespace

import sqlalchemy as sa

from dragoman.kernel.limits import DOCUMENT_REF_CHARS_MAX, LOCALE_CHARS_MAX
from dragoman.machines import tables as machines
from dragoman.store.columns import counted, failure, flag, json_text, optional, required, stamps, state
from dragoman.store.portable import (
    Bytes,
    Count,
    Flag,
    Hash,
    Id,
    Instant,
    LongText,
    Word,
    lease_columns,
    table,
)

STEP_COUNTS = tuple(f"steps_{state.lower()}" for state in sorted(machines.STEP.states))
UNIT_COUNTS = ("units_written", "units_left")

STANDING_COUNTS = (*STEP_COUNTS, *UNIT_COUNTS, "queued", "troubled")
"""What a slot of `publication_sums` holds: steps, units, and how many executions are queued or troubled."""


def publishing_tables(metadata: sa.MetaData) -> SimpleNamespace:
    """All tables of publishing, by name."""
    return SimpleNamespace(**_plans(metadata), **_executions(metadata), **_commands(metadata))


def _plans(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "publication_requests": table(  # written by settlement; those of one manifest are taken together
            "publication_requests",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("manifest_id", Id),
            json_text("intents"),  # ids of the intents just settled; none where all are meant
            optional("behind", Count),  # all that had settled when it was made: planned up to this ordinal
            required("direction", Word(16), server_default="forward"),  # backward: all of it is taken back
            *state(machines.REQUEST),
            *counted("attempt_count"),
            optional("next_attempt_at", Instant),
            optional("plan_id", Id),  # that it came to; backward: of those to take back the last looked at
            *failure(),
            *stamps(),
            *lease_columns(),
            sa.Index("ix_publication_requests_claim", "state", "next_attempt_at", "manifest_id"),
            sa.Index("ix_publication_requests_manifest", "workspace", "manifest_id", "state"),
        ),
        "plans": table(
            "plans",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("manifest_id", Id),
            required("executor", Word(32)),
            required("steps", Count),
            required("fingerprint", Hash),  # over all steps
            required("created_at", Instant),
            sa.Index("ix_plans_manifest", "workspace", "manifest_id", "created_at"),
        ),
        "plan_steps": table(
            "plan_steps",
            metadata,
            sa.Column("plan_id", Id, primary_key=True),
            sa.Column("ordinal", Count, primary_key=True, autoincrement=False),
            required("intent_id", Id),
            required("generation", Count),
            required("document", Word(DOCUMENT_REF_CHARS_MAX)),
            required("locale", Word(LOCALE_CHARS_MAX)),
            required("target", Word(DOCUMENT_REF_CHARS_MAX)),  # the identity resolved when the plan was made
            optional("expected_fingerprint", Hash),  # of what stands at the target; null where nothing stands
            required("write_fingerprint", Hash),  # of what will be written
            json_text("units"),  # per field: key hash, source hash, hash of the text expected at the target
            clustered=True,
        ),
    }


def _executions(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "executions": table(
            "executions",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("plan_id", Id),
            required("manifest_id", Id),
            required("action", Word(16)),  # execute | retry | compensate
            required("direction", Word(16)),  # forward | backward: that of its steps
            *state(machines.EXECUTION),
            optional("open_key", Id),  # the plan, null once terminal: one open execution a plan
            *counted(
                *STEP_COUNTS, *UNIT_COUNTS
            ),  # of steps that are their intents' newest; not while RUNNING
            flag("troubled"),  # by these counts, some intent is not in place
            required("slot", Count),  # of `publication_sums`
            *failure(),
            *stamps(),
            optional("ended_at", Instant),
            sa.UniqueConstraint("open_key"),
            sa.Index("ix_executions_manifest", "workspace", "manifest_id", "created_at"),
            sa.Index("ix_executions_slot", "workspace", "manifest_id", "slot"),
            sa.Index("ix_executions_state", "workspace", "manifest_id", "state"),
            sa.Index("ix_executions_troubled", "workspace", "manifest_id", "troubled", "id"),
            sa.Index("ix_executions_plan", "plan_id", "created_at"),
        ),
        "publication_sums": table(  # what executions of a manifest that do not run sum up to, by slots
            "publication_sums",
            metadata,
            sa.Column("workspace", Word(64), primary_key=True),
            sa.Column("manifest_id", Id, primary_key=True),
            sa.Column("direction", Word(16), primary_key=True),
            sa.Column("slot", Count, primary_key=True, autoincrement=False),
            *counted(*STANDING_COUNTS),
            clustered=True,
        ),
        "publication_steps": table(
            "publication_steps",
            metadata,
            sa.Column("execution_id", Id, primary_key=True),
            sa.Column("ordinal", Count, primary_key=True, autoincrement=False),
            required("workspace", Word(64)),
            required("step_key", Word(191)),  # plan, ordinal, direction: stable over executions and attempts
            required("direction", Word(16)),  # forward | backward
            required("intent_id", Id),
            required("newest", Flag, server_default="1"),  # no later execution has a step of this intent
            *state(machines.STEP),
            *counted("attempt_count", "units_written", "units_left"),
            optional("effect_id", Id),
            optional("receipt", LongText),  # what the target answered, as JSON
            *failure(),
            *stamps(),
            sa.Index("ix_publication_steps_key", "step_key"),
            sa.Index("ix_publication_steps_state", "execution_id", "state"),
            sa.Index("ix_publication_steps_intent", "intent_id"),
            clustered=True,
        ),
    }


def _commands(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "publication_commands": table(
            "publication_commands",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("execution_id", Id, unique=True),
            *state(machines.COMMAND),
            required("due_at", Instant),
            *counted("delivery_count", "deliveries_without_progress"),
            *failure(),
            *stamps(),
            *lease_columns(),
            sa.Index("ix_publication_commands_claim", "state", "due_at"),
            sa.Index("ix_publication_commands_stale", "state", "lease_expires_at"),
        ),
        "snapshots": table(  # what stood at a target just before our first write of a step
            "snapshots",
            metadata,
            sa.Column("step_key", Word(191), primary_key=True),
            required("workspace", Word(64)),
            required("target", Word(DOCUMENT_REF_CHARS_MAX)),
            flag("existed"),
            optional("body", Bytes),
            required("written_fingerprint", Hash),
            json_text("written"),  # which units the step writes, as hashes, and how many it leaves
            optional("entries", LongText),  # what was on record of those units before; null until written
            required("created_at", Instant),
        ),
    }
