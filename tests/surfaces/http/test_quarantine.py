"""An administrator lets a quarantined job be tried again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import sqlalchemy as sa

from dragoman.store.acts import finishing
from dragoman.store.rows import jobs, lanes
from dragoman.store.schema import metadata
from dragoman.store.transaction import Tx
from tests.surfaces.http.house import House, served
from tests.surfaces.http.test_outbox import audit_of


def quarantine(tx: Tx, job_id: str) -> None:
    """As after five starts, of which no worker came back."""
    job = jobs.claim(tx, "default", "host/boot/1/1", 60)
    assert job is not None
    finishing.finish_job(tx, job_id, job.fence, "failed", "gave_up", "five workers vanished")
    lanes.rest(tx, lanes.ready(tx, lanes.ENGINE, 1)[0], None)


def due(tx: Tx) -> list[str]:
    """Jobs that a worker would take now."""
    table = metadata.tables["jobs"]
    return [row.id for row in tx.all(sa.select(table.c.id).where(table.c.next_attempt_at <= tx.now))]


async def accept(house: House) -> str:
    item = {"ref": "a", "targetLang": "fr", "fields": {"t": "Hello"}}
    said = {
        "submissionId": house.services.chance.new_id(),
        "clientJobId": "m-1",
        "sourceLang": "en",
        "items": [item],
    }
    body = json.dumps(said).encode()
    return (await house.services.acceptance.accept("ada", "default", "", body, local=True)).job_id


def test_a_quarantined_job_is_redriven_once(database_url: str, tmp_path: Path) -> None:
    """F8: only by an administrator of its workspace, only out of quarantine; the act is written down."""

    async def story() -> None:
        async with served(database_url, tmp_path) as house:
            database, client = house.services.database, house.client
            job_id = await accept(house)
            path = f"/v1/admin/jobs/{job_id}/redrive"
            admin = await house.exact_token(["admin"])
            assert (await client.post(path, headers=admin)).status_code == 409
            await database.run(quarantine, job_id)
            assert await database.read(due) == []
            assert (await client.post(path, headers=await house.token())).status_code == 403
            foreign = await house.exact_token(["admin"], workspace="elsewhere")
            assert (await client.post(path, headers=foreign)).status_code == 404
            redriven = await client.post(path, headers=admin)
            assert (redriven.status_code, redriven.json()) == (202, {"id": job_id, "status": "queued"})
            assert await database.read(due) == [job_id]
            again = await client.post(path, headers=admin)
            assert (again.status_code, again.json()["code"]) == (409, "nothing_to_retry")
            assert await database.read(audit_of, job_id) == [("ada", "redrive_job")]

    asyncio.run(story())
