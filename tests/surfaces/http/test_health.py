"""Liveness, readiness, and a database that is gone, older or newer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from dragoman.kernel.clock import seconds
from dragoman.kernel.errors import StoreError
from dragoman.kernel.limits import OLDEST_DUE_SECONDS
from dragoman.store.acts import readiness
from dragoman.store.engines import engine_of
from dragoman.store.migrate import migrate
from dragoman.store.revisions import FLOOR_NAME, head
from dragoman.store.schema import metadata
from dragoman.store.transaction import Tx
from tests.doubles.databases import opened
from tests.surfaces.http.house import MANIFESTS, served


def age_workers(tx: Tx, age_seconds: float) -> None:
    """All workers were last seen so long ago."""
    tx.touched(sa.update(metadata.tables["workers"]).values(last_seen_at=tx.now - seconds(age_seconds)))


def age_manifests(tx: Tx, age_seconds: float) -> None:
    """All manifests have been due for so long."""
    tx.touched(sa.update(metadata.tables["manifests"]).values(next_attempt_at=tx.now - seconds(age_seconds)))


def test_readiness_says_what_is_missing_and_liveness_asks_nobody(database_url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with served(database_url, tmp_path) as house:
            client, database = house.client, house.services.database
            assert (await client.get("/healthz")).json() == {"status": "alive"}
            bare = await client.get("/readyz")
            assert bare.status_code == 503
            assert [problem["name"] for problem in bare.json()["problems"]] == ["worker_unavailable"]

            await house.see_worker()
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()) == (200, {"ready": True, "problems": [], "warnings": []})

            await database.run(age_workers, 140)
            assert (await client.get("/readyz")).status_code == 200
            await database.run(age_workers, 151)
            assert (await client.get("/readyz")).status_code == 503
            await house.see_worker()
            await house.admit(await house.token())
            assert (await client.get("/readyz")).status_code == 200
            await database.run(age_manifests, OLDEST_DUE_SECONDS + 5)
            late = await client.get("/readyz")
            assert late.status_code == 503
            assert late.json()["problems"][0]["name"] == "work_overdue"
            assert "manifests for 18" in late.json()["problems"][0]["detail"]

    asyncio.run(story())


def refused_start(database_url: str, folder: Path, version: str) -> str:
    """The code with which a process does not begin over a database of this schema."""

    async def story() -> None:
        async with served(database_url, folder):
            pass

    with versioned(database_url, version), pytest.raises(StoreError) as refused:
        asyncio.run(story())
    return refused.value.code


def test_a_process_does_not_begin_over_a_newer_schema(database_url: str, tmp_path: Path) -> None:
    """[M-141]"""
    assert refused_start(database_url, tmp_path, "9999") == "database_newer"


def test_a_release_can_be_taken_back_where_the_newer_schema_only_adds(
    database_url: str, tmp_path: Path
) -> None:
    """[M-324] the newer migration says down to which programs it reaches; then this one goes on, whole."""
    (tmp_path / "a.json").write_text('{"hello": "Hello"}')
    roles = ("site", "engine", "publishing")

    async def story() -> None:
        async with served(database_url, tmp_path, roles) as house:
            await house.see_worker()
            token = await house.token()
            manifest_id = await house.admit(token)
            while (await house.client.get(f"{MANIFESTS}/{manifest_id}", headers=token)).json()["counts"][
                "completed"
            ] < 2:
                await asyncio.sleep(0.02)
            assert (await house.client.get("/readyz")).status_code == 200

    with versioned(database_url, "9999", reaches=head()):
        assert migrate(database_url) is False
        asyncio.run(story())
    with versioned(database_url, "9999", reaches="9998"), pytest.raises(StoreError) as refused:
        asyncio.run(story())
    assert refused.value.code == "database_newer"


def test_a_process_does_not_begin_over_an_older_schema_of_a_server(server_url: str, tmp_path: Path) -> None:
    """A server is migrated by `dragoman migrate`, never in passing. [M-141]"""
    assert refused_start(server_url, tmp_path, "0000") == "schema_unavailable"


def test_a_schema_that_is_not_this_programs_closes_every_route(database_url: str, tmp_path: Path) -> None:
    """[M-141]"""

    async def story() -> None:
        async with served(database_url, tmp_path) as house:
            with versioned(database_url, "0000"):
                for path in (f"{MANIFESTS}/x", "/v1/admin/webhook-outbox"):
                    answer = await house.client.get(path, headers={"Authorization": "Bearer x"})
                    assert (answer.status_code, answer.json()["code"]) == (503, "schema_unavailable")
                ready = await house.client.get("/readyz")
                assert (ready.status_code, ready.json()["problems"][0]["name"]) == (503, "schema_unavailable")

    asyncio.run(story())


def test_a_database_without_any_table_is_older(sqlite_url: str, tmp_path: Path) -> None:
    async def story() -> bool:
        async with opened(f"sqlite:///{tmp_path / 'empty.db'}", any_schema=True) as database:
            return await database.read(readiness.schema_is_current)

    assert asyncio.run(story()) is False


def test_an_error_of_ours_is_told_without_hosts_paths_or_traces(sqlite_url: str, tmp_path: Path) -> None:

    async def story() -> tuple[int, str]:
        async with served(sqlite_url, tmp_path) as house:
            token = await house.token()
            house.app.state.services.database.read = _gone(tmp_path)
            answer = await house.client.get(f"{MANIFESTS}/x", headers=token)
            return answer.status_code, answer.text

    status, text = asyncio.run(story())
    assert status == 503
    assert "database_unavailable" in text
    assert str(tmp_path) not in text


def _gone(folder: Path) -> object:
    async def read(*_: object) -> None:
        raise StoreError(f"the database at {folder} is locked")

    return read


@contextlib.contextmanager
def versioned(database_url: str, version: str, reaches: str = "") -> Iterator[None]:
    """The database says that it has this schema, and down to which programs it reaches, for a while."""
    _set_version(database_url, version, reaches)
    try:
        yield
    finally:
        _set_version(database_url, head(), "")


def _set_version(database_url: str, version: str, reaches: str) -> None:
    cursors = metadata.tables["cursors"]
    engine = engine_of(database_url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :v"), {"v": version})
        connection.execute(sa.delete(cursors).where(cursors.c.name == FLOOR_NAME))
        if reaches:
            row = {"name": FLOOR_NAME, "value": reaches, "updated_at": 0}
            connection.execute(sa.insert(cursors).values(row))
    engine.dispose()
