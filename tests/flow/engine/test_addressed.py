"""A provider whose address a command line gave is asked by who was given it, and by nobody else."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from dragoman.flow.engine.dispatch import Dispatch
from dragoman.model.scopes import System
from dragoman.store.acts import examining
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Tx
from tests.flow.engine.world import Process, World, rehearsal, world

pytestmark = pytest.mark.anyio

NAME = "openai@0123456789ab"


def bring_deadline(tx: Tx) -> None:
    tx.touched(sa.update(tables.jobs).values(deadline_at=tx.now - 1))


def given(here: World) -> Dispatch:
    """A process that was given the address."""
    return Dispatch(here.database, here.queue, "test/boot/given/0", System(), addressed=[NAME])


async def test_a_job_waits_for_a_process_that_has_its_address(database_url: str) -> None:
    """Accepted anywhere, claimed there only; others behind it are not kept waiting, and doctor tells."""
    async with world(database_url, rehearsal()) as here:
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"provider_config": NAME})
        other = await here.accept({"a": {"t": "World"}}, workspace="third")
        assert await Process(here).drain() == ["completed"]
        assert (await here.view(accepted.job_id))["status"] == "queued"
        assert [job.state for job in await here.rows("jobs") if job.id == other.job_id] == ["completed"]
        told = await here.database.read(examining.findings)
        assert any(NAME in one["problem"] and "--base-url" in one["remedy"] for one in told)
        claimed = await given(here).take()
        assert claimed is not None
        assert claimed.job_id == accepted.job_id


async def test_a_job_past_its_time_is_ended_by_anybody(sqlite_url: str) -> None:
    async with world(sqlite_url, rehearsal()) as here:
        accepted = await here.accept({"a": {"t": "Hello"}}, options={"provider_config": NAME})
        await here.database.run(bring_deadline)
        assert await Process(here).drain() == ["failed"]
        assert (await here.view(accepted.job_id))["code"] == "provider_unknown"
