"""The table of convergence: one run is passes of manifests until a project is complete, or gains nothing."""

from __future__ import annotations

from types import SimpleNamespace

import sqlalchemy as sa

from dragoman.machines import tables as machines
from dragoman.store.columns import failure, json_text, optional, required, stamps, state
from dragoman.store.portable import Hash, Id, Instant, Word, lease_columns, table


def run_tables(metadata: sa.MetaData) -> SimpleNamespace:
    """All tables of convergence, by name."""
    return SimpleNamespace(
        runs=table(
            "runs",
            metadata,
            sa.Column("id", Id, primary_key=True),
            required("workspace", Word(64)),
            required("project", Word(128)),
            required("actor", Word(128)),
            required("trigger_kind", Word(16)),  # manual | push | up
            optional("push_id", Word(255)),
            *state(machines.RUN),
            optional("open_key", Hash),  # workspace and project, null once ended: one open run a project
            json_text("asked"),  # executor, mode, locales
            json_text("passes"),  # in order: manifest, what was wanted before it, what it came to
            optional("manifest_id", Id),  # of the pass at work
            optional("next_attempt_at", Instant),  # null once ended
            *failure(),
            *stamps(),
            optional("ended_at", Instant),
            *lease_columns(),
            sa.UniqueConstraint("open_key"),
            sa.Index("ix_runs_claim", "next_attempt_at"),
            sa.Index("ix_runs_push", "workspace", "project", "push_id"),
            sa.Index("ix_runs_stale", "lease_expires_at"),
        )
    )
