"""`sync/translate`: an open door that spends money stays shut, unless a setting opens it to this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.surfaces.http.house import served

BODY = {"sourceLang": "en", "targetLang": "fr", "item": "a.md", "fields": {"body": "Hello"}}


@pytest.mark.parametrize("prefix", ["/v1", "/api/v1"])
def test_without_a_token_it_is_shut(sqlite_url: str, tmp_path: Path, prefix: str) -> None:
    """[J-085] and with one it is a job of the token's workspace, in the project of the path."""

    async def story() -> None:
        async with served(sqlite_url, tmp_path, roles=("engine",)) as house:
            url = f"{prefix}/projects/docs/sync/translate"
            answer = await house.client.post(url, json=BODY)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
            reader = await house.token("jobs:read")
            assert (await house.client.post(url, json=BODY, headers=reader)).status_code == 403
            assert (await house.count("jobs"))["jobs"] == 0
            writer = await house.token("jobs:write", "jobs:read")
            answer = await house.client.post(url, json=BODY, headers=writer)
            assert answer.status_code == 202, answer.text
            job = (await house.client.get(answer.json()["status_url"], headers=writer)).json()
            assert (job["project"], job["item_name"]) == ("docs", "a.md")

    asyncio.run(story())


def test_a_batch_is_refused_there_and_leaves_nothing(sqlite_url: str, tmp_path: Path) -> None:
    """[J-085] A batch may take a day; `jobs/translate` takes them."""

    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            writer = await house.token("jobs:write")
            body = {**BODY, "options": {"speed": "batch"}}
            answer = await house.client.post("/v1/projects/docs/sync/translate", json=body, headers=writer)
            assert (answer.status_code, answer.json()["place"]) == (422, "$.options.speed"), answer.text
            assert "sync/translate" in answer.json()["detail"]
            assert (await house.count("jobs"))["jobs"] == 0

    asyncio.run(story())


def test_a_setting_opens_it_to_this_machine_only(sqlite_url: str, tmp_path: Path) -> None:
    """[J-085] the actor is `anonymous`; what a proxy or a browser passes on is not of this machine."""

    async def story() -> None:
        async with served(sqlite_url, tmp_path, allow_anonymous_sync=True) as house:
            url = "/v1/projects/docs/sync/translate"
            answer = await house.client.post(url, json=BODY)
            assert answer.status_code == 202, answer.text
            assert [row.principal for row in await house.rows("jobs")] == ["anonymous"]
            for passed_on in ({"X-Forwarded-For": "203.0.113.9"}, {"Origin": "https://elsewhere.example"}):
                assert (await house.client.post(url, json=BODY, headers=passed_on)).status_code == 401
            wrong = {"Authorization": "Bearer nobody-has-this"}
            assert (await house.client.post(url, json=BODY, headers=wrong)).status_code == 401
            jobs = "/v1/workspaces/default/jobs"
            assert (await house.client.get(jobs)).status_code == 401, "no other door is open"

    asyncio.run(story())
