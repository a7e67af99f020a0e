"""The one database of a world: in memory, copied from a template, watched by triggers.

Triggers write down every move of a state and every fence that rises, in the very transaction that does it.
"""

from __future__ import annotations

import functools
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from dragoman.machines import tables as machines
from dragoman.machines.machine import Machine
from dragoman.store.schema import metadata
from dragoman.store.servers import tune
from dragoman.store.statements import Compilations
from tests.doubles.databases import make_schema
from tests.simulation.performing import FaultySession

STATES: dict[str, tuple[str, Machine]] = {
    "manifests": ("phase", machines.MANIFEST),
    "intents": ("state", machines.INTENT),
    "submissions": ("state", machines.SUBMISSION),
    "jobs": ("state", machines.JOB),
    "job_fields": ("state", machines.FIELD),
    "calls": ("state", machines.CALL),
    "effects": ("state", machines.EFFECT),
    "attempts": ("outcome", machines.ATTEMPT),
    "outbox": ("state", machines.OUTBOX),
    "receipts": ("state", machines.RECEIPT),
    "publication_requests": ("state", machines.REQUEST),
    "executions": ("state", machines.EXECUTION),
    "publication_steps": ("state", machines.STEP),
    "publication_commands": ("state", machines.COMMAND),
    "runs": ("state", machines.RUN),
}
"""Tables whose rows stand in a state of a machine, and the column that says in which."""

LEASED = tuple(
    name for name, table in metadata.tables.items() if "fence" in table.c and "lease_owner" in table.c
)

_OF_BOTH = frozenset({"workspaces", "projects", "lanes"})
"""Tables in which a site and an engine of two databases may have a row of the same key."""

_WATCHED = """
CREATE TABLE watched (
    kind TEXT NOT NULL, of_table TEXT NOT NULL, subject TEXT NOT NULL, under TEXT NOT NULL,
    before TEXT, after TEXT, fence INTEGER, owner TEXT, owner_before TEXT, lease_before INTEGER
)
"""

_UNDER = {
    "intents": "NEW.manifest_id || '/' || NEW.shard",
    "attempts": "NEW.worker",
}
"""What a row's move is to be held against: the key of the row whose lease it needs, or who may make it."""

_PARTS_OF_A_JOB = ("calls", "job_fields")


class Sight(NamedTuple):
    """One move of a state, rise of a fence, change of a lease under the same fence, call that was begun, row
    that is gone, or manifest that was proved to be over (`kind` says which).

    They come in the order in which they were made. `owner` is the holder of the row, or of a part's job. Of a
    call, `under` is the client job, `after` whom it goes to, and `fence` when it was begun. Of a row that is
    gone, `before` is its state, and `fence` when it had ended.
    """

    kind: str
    table: str
    subject: str
    under: str
    before: str | None
    after: str | None
    fence: int | None
    owner: str | None
    owner_before: str | None
    lease_before: int | None


class Database:
    """One world's rows."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
        _template().backup(self.connection)
        tune(self.connection, "OFF")
        self.session = FaultySession(self.connection, sqlite3, _compilations())
        self.moves = 0
        """How many moves of states and fences were seen."""

    @property
    def changes(self) -> int:
        """How many rows were changed so far, also by what was rolled back."""
        return self.connection.total_changes

    def sights(self) -> list[Sight]:
        """What the triggers saw since the last look."""
        rows = self.connection.execute(
            "SELECT rowid, * FROM watched WHERE rowid > ? ORDER BY rowid", (self.moves,)
        ).fetchall()
        if rows:
            self.moves = rows[-1][0]
        return [Sight(*row[1:]) for row in rows]

    def all(self, sql: str, *parameters: Any) -> list[Any]:
        """Look at rows, outside of any transaction."""
        return self.connection.execute(sql, parameters).fetchall()

    def one(self, sql: str, *parameters: Any) -> Any:
        """The first column of the first row."""
        row = self.connection.execute(sql, parameters).fetchone()
        return row[0] if row else None

    def set_quota(self, workspace: str, tokens: int) -> None:
        """An operator's word on what a workspace may use in a month."""
        row = "INSERT OR REPLACE INTO ai_quotas (workspace, monthly_tokens, updated_at) VALUES (?, ?, 0)"
        self.connection.execute(row, (workspace, tokens))

    def close(self) -> None:
        """Forget everything."""
        self.connection.close()

    def copy(self) -> sqlite3.Connection:
        """Everything as it stands, to be put back later."""
        made = sqlite3.connect(":memory:")
        self.connection.backup(made)
        return made

    def put_back(self, copy: sqlite3.Connection) -> None:
        """Be again what was copied; whatever was written since is gone."""
        copy.backup(self.connection)
        self.moves = self.one("SELECT coalesce(max(rowid), 0) FROM watched")

    def with_rows_of(self, other: Database) -> Database:
        """A third one that holds what both hold, to be looked at."""
        made = Database()
        self.connection.backup(made.connection)
        for name in metadata.tables:
            rows = other.connection.execute(f"SELECT * FROM {name}").fetchall()
            if rows:
                keep = "OR IGNORE" if name in _OF_BOTH else ""
                places = ", ".join("?" * len(rows[0]))
                made.connection.executemany(f"INSERT {keep} INTO {name} VALUES ({places})", rows)
        return made


@functools.cache
def _compilations() -> Compilations:
    return Compilations(SQLiteDialect_pysqlite(dbapi=sqlite3))


@functools.cache
def _template() -> sqlite3.Connection:
    """An empty database with all tables and triggers, made once."""
    made = sqlite3.connect(":memory:")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        make_schema(f"sqlite:///{path}")
        with closing(sqlite3.connect(path)) as file:
            file.backup(made)
    made.execute(_WATCHED)
    for statement in _triggers():
        made.execute(statement)
    made.commit()
    return made


_ENDED_AT = {"manifests": "OLD.completed_at", "jobs": "OLD.ended_at", "receipts": "OLD.received_at"}
_LAST_STATE = {"outbox": "CASE OLD.url WHEN '' THEN 'delivered' ELSE OLD.state END"}
"""What a row was when it went: an event that nobody is to be sent is owed to nobody."""
_KEPT_APART = ("effects", "attempts")
"""Tables of which nothing ever goes."""


def _triggers() -> Iterator[str]:
    yield from (_BEGUN, _PROVED, _PURGED)
    for name, (column, _) in STATES.items():
        key = _key(metadata.tables[name]).replace("NEW.", "OLD.")
        stood = _LAST_STATE.get(name, f"OLD.{column}")
        yield f"""
            CREATE TRIGGER watch_{name}_gone AFTER DELETE ON {name}
            BEGIN INSERT INTO watched VALUES ('gone', '{name}', {key}, '{name in _KEPT_APART:d}',
            {stood}, NULL, {_ENDED_AT.get(name, "NULL")}, NULL, NULL, NULL); END"""
    for name, (column, _) in STATES.items():
        table = metadata.tables[name]
        under = _UNDER.get(name, "''")
        lease = "NULL, NULL, NULL, NULL"
        if name in LEASED:
            lease = "NEW.fence, NEW.lease_owner, OLD.lease_owner, OLD.lease_expires_at"
        elif name in _PARTS_OF_A_JOB:
            lease = "NULL, (SELECT lease_owner FROM jobs WHERE id = NEW.job_id), NULL, NULL"
        yield f"""
            CREATE TRIGGER watch_{name}_state AFTER UPDATE OF {column} ON {name}
            WHEN OLD.{column} IS NOT NEW.{column}
            BEGIN INSERT INTO watched VALUES ('state', '{name}', {_key(table)}, {under},
            OLD.{column}, NEW.{column}, {lease}); END"""
    for name in LEASED:
        key = _key(metadata.tables[name])
        yield f"""
            CREATE TRIGGER watch_{name}_fence AFTER UPDATE OF fence ON {name} WHEN OLD.fence IS NOT NEW.fence
            BEGIN INSERT INTO watched VALUES ('fence', '{name}', {key}, '',
            OLD.fence, NEW.fence, NEW.fence, NEW.lease_owner, OLD.lease_owner, OLD.lease_expires_at); END"""
        yield f"""
            CREATE TRIGGER watch_{name}_lease AFTER UPDATE OF lease_owner, lease_expires_at ON {name}
            WHEN OLD.lease_owner IS NOT NULL AND OLD.fence IS NEW.fence
            BEGIN INSERT INTO watched VALUES ('lease', '{name}', {key}, '',
            NULL, NULL, NEW.fence, NEW.lease_owner, OLD.lease_owner, OLD.lease_expires_at); END"""
        yield f"""
            CREATE TRIGGER watch_{name}_birth AFTER INSERT ON {name} WHEN NEW.fence > 0
            BEGIN INSERT INTO watched VALUES ('fence', '{name}', {key}, '',
            0, NEW.fence, NEW.fence, NEW.lease_owner, NULL, NULL); END"""


_BEGUN = """
    CREATE TRIGGER watch_attempts_begun AFTER INSERT ON attempts
    WHEN (SELECT family FROM effects WHERE id = NEW.effect_id) = 'completion'
    BEGIN INSERT INTO watched VALUES ('begun', 'attempts', NEW.id, NEW.correlation_id,
    NULL, NEW.provider, NEW.started_at, NEW.worker, NULL, NULL); END
"""
_PROVED = """
    CREATE TRIGGER watch_manifests_proved AFTER UPDATE OF reconciled_at ON manifests
    WHEN OLD.reconciled_at IS NULL AND NEW.reconciled_at IS NOT NULL
    BEGIN INSERT INTO watched VALUES ('proved', 'manifests', NEW.id, '',
    NEW.phase, NULL, NEW.completed_at, NULL, NULL, NULL); END
"""
_PURGED = """
    CREATE TRIGGER watch_jobs_purged AFTER UPDATE OF purged_at ON jobs
    WHEN OLD.purged_at IS NULL AND NEW.purged_at IS NOT NULL
    BEGIN INSERT INTO watched VALUES ('purged', 'jobs', NEW.id, '',
    NEW.state, NULL, NEW.ended_at, NULL, NULL, NULL); END
"""


def _key(table: sa.Table) -> str:
    return " || '/' || ".join(f"NEW.{column.name}" for column in table.primary_key.columns)
