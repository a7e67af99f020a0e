"""The owner's tables, column by column, and what they refuse. `test_migrations` shows that these are made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from dragoman.kernel.errors import StoreError
from dragoman.store.schema import effects
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Tx
from tests.doubles.databases import opened
from tests.doubles.filler import filling

MANIFESTS = """
id CHAR(36) not null, workspace VARCHAR(64) not null, actor VARCHAR(128) not null,
request_id VARCHAR(255) not null, request_fingerprint CHAR(64) not null, settings TEXT not null,
phase VARCHAR(32) not null, total BIGINT not null, canceled SMALLINT not null 0, paused SMALLINT not null 0,
attempt_count BIGINT not null 0, next_attempt_at BIGINT, lease_owner VARCHAR(160), lease_expires_at BIGINT,
fence BIGINT not null 0, error_code VARCHAR(64), error_message VARCHAR(500), reconciled_at BIGINT,
created_at BIGINT not null, updated_at BIGINT not null, started_at BIGINT, completed_at BIGINT
"""
SHARDS = """
intents BIGINT not null 0, pending BIGINT not null 0, preparing BIGINT not null 0, prepared BIGINT not null 0,
queued BIGINT not null 0, processing BIGINT not null 0, completed BIGINT not null 0,
failed BIGINT not null 0, protected BIGINT not null 0, skipped BIGINT not null 0,
retryable_failed BIGINT not null 0, lease_owner VARCHAR(160), lease_expires_at BIGINT, fence BIGINT not null 0
"""
INTENTS = """
id CHAR(36) not null, manifest_id CHAR(36) not null, ordinal BIGINT not null,
document VARCHAR(512) not null, locale VARCHAR(64) not null, state VARCHAR(32) not null,
retryable SMALLINT not null 0, generation BIGINT not null 1, generation_attempt_count BIGINT not null 0,
attempt_count BIGINT not null 0, last_event_sequence BIGINT not null 0, next_attempt_at BIGINT,
submission_id CHAR(36), remote_job_id VARCHAR(191), prepared TEXT, error_code VARCHAR(64),
error_message VARCHAR(500), created_at BIGINT not null, updated_at BIGINT not null, completed_at BIGINT
"""
SUBMISSIONS = """
id CHAR(36) not null, manifest_id CHAR(36) not null, state VARCHAR(32) not null,
fingerprint CHAR(64) not null, body BLOB, remote_job_id VARCHAR(191), attempt_count BIGINT not null 0,
next_attempt_at BIGINT, lease_owner VARCHAR(160), lease_expires_at BIGINT, fence BIGINT not null 0,
error_code VARCHAR(64), error_message VARCHAR(500), payload_purged_at BIGINT, created_at BIGINT not null,
updated_at BIGINT not null, accepted_at BIGINT
"""
LINKS = """
submission_id CHAR(36) not null, intent_id CHAR(36) not null, generation BIGINT not null,
ref VARCHAR(128) not null, fields_hash CHAR(64) not null
"""
HISTORY = """
subject VARCHAR(191) not null, correlation_id VARCHAR(191) not null '', generation BIGINT not null 0,
attempt BIGINT not null 0, generation_attempt BIGINT not null 0, action VARCHAR(48) not null,
before VARCHAR(32) not null '', after VARCHAR(32) not null '', submission_id CHAR(36),
code VARCHAR(64) not null '', message VARCHAR(500) not null '', metadata VARCHAR(500), at BIGINT not null
"""


def said(text: str) -> list[str]:
    return [" ".join(one.split()) for one in text.split(",")]


def as_said(column: sa.Column[Any]) -> str:
    """A column in the words of this page: name, type, whether it may be null, what it begins with."""
    default = column.server_default.arg if isinstance(column.server_default, sa.DefaultClause) else None
    words = [column.name, str(column.type.compile()), "" if column.nullable else "not null"]
    words.append("" if default is None else str(default) or "''")
    return " ".join(word for word in words if word)


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        (tables.manifests, MANIFESTS),
        (tables.shards, SHARDS),
        (tables.intents, INTENTS),
        (tables.submissions, SUBMISSIONS),
        (tables.submission_intents, LINKS),
        (effects.history, HISTORY),
    ],
    ids=lambda value: value.name if isinstance(value, sa.Table) else "",
)
def test_the_owners_tables_have_the_columns_of_the_contract(table: sa.Table, columns: str) -> None:
    """[M-142, M-143, M-145, M-149, M-150, M-152, M-159, M-165, C-103]"""
    assert set(said(columns)) <= {as_said(column) for column in table.columns}


def test_what_is_derived_is_stored_nowhere() -> None:
    """[M-144] how far a manifest is expanded is told by its rows."""
    names = {column.name for table in vars(tables).values() for column in table.columns}
    assert not {name for name in names if name.startswith("expanded")}


INDEXES = {
    "manifests": {"phase,next_attempt_at", "lease_expires_at", "workspace,updated_at"},
    "intents": {"manifest_id,shard,state,next_attempt_at", "manifest_id,state,ordinal", "submission_id"},
    "shards": {"prepare_due_at,manifest_id,shard", "submit_due_at,manifest_id,shard"},
    "submissions": {"next_attempt_at", "lease_expires_at", "manifest_id", "remote_job_id"},
}


def test_indexes_lead_with_what_is_asked_for() -> None:
    """[M-147, M-155, M-160] that claims walk them is shown in test_claim_plans."""
    for name, wanted in INDEXES.items():
        indexes = [
            ",".join(column.name for column in index.columns) for index in getattr(tables, name).indexes
        ]
        missing = {
            lead for lead in wanted if not any(f"{index},".startswith(f"{lead},") for index in indexes)
        }
        assert not missing, name


class Case(NamedTuple):
    """Rows that a table refuses, and the one thing by which it would take them."""

    table: sa.Table
    values: dict[str, Any]
    mended: dict[str, Any]
    number: int = 1


_M, _I, _S = tables.manifests, tables.intents, tables.submissions
_FREE: dict[str, Any] = {"resume_key": None, "promotes": None}
REFUSED = {
    "a manifest's phase that no machine knows": Case(_M, {**_FREE, "phase": "almost"}, {"phase": "open"}),
    "a total below nothing": Case(_M, {**_FREE, "phase": "open", "total": -1}, {"total": 0}),
    "an intent's state that no machine knows": Case(_I, {"state": "almost"}, {"state": "failed"}),
    "a submission's state that no machine knows": Case(
        _S, {"state": "almost", "body": b"{}"}, {"state": "pending"}
    ),
    "bytes gone while no job is known": Case(
        _S, {"state": "submitting", "body": None, "remote_job_id": None}, {"remote_job_id": "job-1"}
    ),
    "counts that do not sum": Case(tables.shards, {"intents": 2, "pending": 1}, {"intents": 1}),
    "a count below nothing": Case(
        tables.shards, {"intents": 0, "pending": -1, "failed": 1}, {"pending": 0, "failed": 0}
    ),
    "two of one request": Case(
        _M,
        {**_FREE, "phase": "ended", "workspace": "w", "actor": "a", "request_id": "r"},
        {"request_id": None},
        2,
    ),
    "two of one ordinal": Case(
        _I, {"state": "failed", "manifest_id": "m", "ordinal": 1}, {"ordinal": None}, 2
    ),
    "two of one pair": Case(
        _I, {"state": "failed", "manifest_id": "m", "pair_hash": "p"}, {"pair_hash": None}, 2
    ),
    "two at work on one pair": Case(_I, {"state": "pending", "active_key": "k"}, {"active_key": None}, 2),
}


class Undone(Exception):
    """What was inserted is taken back."""


def inserted(tx: Tx, case: Case, mended: Mapping[str, Any]) -> None:
    given: dict[str, Any] = {}
    for name, value in {**case.values, **mended}.items():
        if value is not None or case.table.c[name].nullable:
            given[name] = lambda _, value=value: value
    tx.insert(case.table, list(filling(case.table, case.number, given)))
    raise Undone


def test_a_row_that_contradicts_itself_or_another_is_refused(database_url: str) -> None:
    """[M-142, M-143, M-146, M-153, M-154, M-164] and nothing else is wrong with it."""

    async def play() -> None:
        async with opened(database_url) as database:
            for name, case in REFUSED.items():
                with pytest.raises(Undone):
                    await database.run(inserted, case, case.mended)
                try:
                    await database.run(inserted, case, {})
                except StoreError:
                    continue
                except Undone:
                    pytest.fail(f"{name} was taken")

    asyncio.run(play())
