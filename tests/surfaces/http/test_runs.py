"""Runs of convergence over HTTP: begun, joined, nothing to do, looked at."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from dragoman.wiring.rounds import start
from tests.surfaces.http.house import served

RUNS = "/v1/workspaces/default/projects/docs/runs"
SETTINGS: dict[str, Any] = {
    "locales": ("de", "fr"), "sources": ("en",), "executor": "files:v1",
    "projects": {"docs": {"on_push": True}},
}  # fmt: skip


def test_a_run_is_begun_joined_and_ends_complete_and_then_nothing_is_to_do(
    database_url: str, tmp_path: Path
) -> None:
    """[J-009] [J-098] [J-100] [J-105] 202, 200 for who comes second and for the same push, 204 at the end."""
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "a.json").write_text('{"k": "Hello"}')

    async def story() -> None:
        async with served(database_url, tmp_path, **SETTINGS) as house:
            await house.see_worker()
            token = await house.token()
            push = {"trigger": "push", "push_id": "p-1"}
            begun = await house.client.post(RUNS, json=push, headers=token)
            assert (begun.status_code, begun.json()["joined"]) == (202, False)
            for body in (push, None, {"trigger": "manual"}):
                joined = await house.client.post(RUNS, json=body, headers=token)
                assert (joined.status_code, joined.json()["joined"]) == (200, True)
                assert joined.json()["run_id"] == begun.json()["run_id"]
            url = begun.headers["Location"]
            while (await house.client.get(url, headers=token)).json()["ended_at"] is None:
                await work(house.services)
            report = (await house.client.get(url, headers=token)).json()
            assert (report["state"], report["push_id"]) == ("complete", "p-1")
            assert report["fields"] == {"done": 2, "via_memory": 0, "via_ai": 2}
            jobs = "/v1/workspaces/default/jobs?push_id="
            found = (await house.client.get(f"{jobs}p-1", headers=token)).json()["jobs"]
            assert sorted(job["push_id"] for job in found) == ["p-1"] * len(await house.rows("jobs"))
            assert (await house.client.get(f"{jobs}p-2", headers=token)).json()["jobs"] == []
            assert {row.push_id for row in await house.rows("manifests")} == {"p-1"}
            assert (await house.client.post(RUNS, json=push, headers=token)).status_code == 200
            assert (await house.client.post(RUNS, headers=token)).status_code == 204
            elsewhere = await house.client.get(url.replace("/docs/", "/other/"), headers=token)
            assert elsewhere.status_code == 404

    asyncio.run(story())


async def work(services: Any) -> None:
    """Let workers run for one look at everything."""
    await start(services)
    await asyncio.sleep(0.5)
    await services.workers.stop()


def test_pushes_to_a_project_that_does_not_run_on_push_begin_nothing(sqlite_url: str, tmp_path: Path) -> None:
    """[J-098] 204; and what cannot be read is refused by name."""

    async def story() -> None:
        async with served(sqlite_url, tmp_path, locales=("de",)) as house:
            await house.see_worker()
            token = await house.token()
            answer = await house.client.post(RUNS, json={"trigger": "push", "push_id": "p"}, headers=token)
            assert answer.status_code == 204
            for body, place in (({"trigger": "whim"}, "trigger"), ({"push_id": ""}, "push_id")):
                answer = await house.client.post(RUNS, json=body, headers=token)
                assert (answer.status_code, answer.json()["place"]) == (422, place)
            assert await house.count("runs") == {"runs": 0}

    asyncio.run(story())
