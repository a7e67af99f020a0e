"""The columns of usage and quota that the queue seed asks for."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from dragoman.kernel.errors import StoreError
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx
from tests.doubles.databases import opened

REQUIRED = (
    "workspace", "project", "job_id", "attempt_id", "model", "prompt_tokens", "output_tokens",
    "cached_tokens", "total_tokens", "microusd", "created_at",
)  # fmt: skip


@pytest.mark.parametrize("name", REQUIRED)
def test_usage_leaves_nothing_open(name: str) -> None:
    """[J-068, J-069, J-071]: no column of a usage row is ever null."""
    assert not tables.ai_usage.c[name].nullable


def _bare_rows(tx: Tx) -> tuple[Row, Row]:
    usage, quotas = tables.ai_usage, tables.ai_quotas
    row = {
        "id": tx.new_id(),
        "workspace": "home",
        "project": "docs",
        "attempt_id": tx.new_id(),
        "model": "m",
        "created_at": tx.now,
    }
    tx.insert(usage, [row])
    tx.insert(quotas, [{"workspace": "home", "monthly_tokens": 1 << 40, "updated_at": tx.now}])
    [used], [quota] = tx.all(sa.select(usage)), tx.all(sa.select(quotas))
    return used, quota


def _twice(tx: Tx) -> None:
    tx.insert(tables.ai_quotas, [{"workspace": "home", "monthly_tokens": 1, "updated_at": 1}])


def test_counts_begin_at_nothing_and_a_workspace_has_one_quota(database_url: str) -> None:
    """[J-067, J-070, J-072..J-075, J-077..J-079]: defaults, 64 bits, one row a workspace."""

    async def story() -> None:
        async with opened(database_url) as database:
            used, quota = await database.run(_bare_rows)
            assert (used.job_id, used.wasted, used.microusd) == ("", False, 0)
            assert (used.prompt_tokens, used.output_tokens, used.cached_tokens, used.total_tokens) == (0,) * 4
            assert len(used.id) == 36
            assert used.created_at > 0
            assert (quota.monthly_tokens, quota.monthly_microusd) == (1 << 40, None)
            with pytest.raises(StoreError):
                await database.run(_twice)

    asyncio.run(story())
