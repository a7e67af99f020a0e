"""A far engine whose database was put back knows nothing of what it took: a person ends what waits for it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from dragoman.store.acts import examining
from dragoman.store.schema import engine, site
from dragoman.store.transaction import Tx
from dragoman.surfaces.cli import steering
from dragoman.wiring.rounds import loops
from dragoman.wiring.settings import EngineSettings
from tests.surfaces.http.house import MANIFESTS, House, listening, served


def put_back(tx: Tx) -> None:
    """An older state, in which no job was taken yet."""
    for table in (engine.job_fields, engine.jobs):
        tx.touched(sa.delete(table))


def make_due(tx: Tx) -> None:
    asked = site.submissions.c.reconcile_at.is_not(None)
    tx.touched(sa.update(site.submissions).where(asked).values(reconcile_at=tx.now))


async def submit(house: House) -> None:
    """Bring what is open to the far engine."""
    steps = {loop.name: loop.step for loop in loops(house.services, ("site",))}
    while sum([await steps[name]() for name in ("enumerate", "prepare", "submit", "resubmit")]):
        """Until nothing is due."""


async def ask(house: House) -> None:
    """Reconciliation's next turn."""
    await house.services.database.run(make_due)
    [reconcile] = [loop.step for loop in loops(house.services, ("site",)) if loop.name == "reconcile"]
    await reconcile()


def test_what_a_far_engine_has_lost_is_given_up_over_http_and_at_the_shell(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text('{"k": "Hello"}')

    async def story() -> None:
        async with (
            served(f"sqlite:///{tmp_path / 'far.db'}", tmp_path / "far") as far,
            listening(far.app) as address,
        ):
            await far.see_worker()
            bearer = (await far.token("jobs:write"))["Authorization"].removeprefix("Bearer ")
            monkeypatch.setenv("DRAGOMAN_ENGINE_TOKEN", bearer)
            async with served(database_url, tmp_path, engine=EngineSettings(url=address)) as house:
                await house.see_worker()
                token = await house.token()
                manifest = await house.admit(token)
                await submit(house)
                await far.services.database.run(put_back)
                path = f"{MANIFESTS}/{manifest}"

                async def give_up(header: dict[str, str]) -> tuple[int, str]:
                    answer = await house.client.post(f"{path}/give-up", headers=header)
                    return answer.status_code, answer.json().get("code", "")

                assert await give_up(token) == (409, "nothing_lost"), "nobody has asked the engine yet"
                await ask(house)
                status = (await house.client.get(path, headers=token)).json()
                assert "the token is another account" in status["health"]["last_error"]["message"]
                found = await house.services.database.read(examining.findings)
                assert any("give-up" in finding["remedy"] for finding in found)
                stranger = await house.token("manifests:write", actor="eve")
                assert await give_up(stranger) == (404, "not_found")
                reader = await house.token("manifests:write", "manifests:read_all", actor="eve")
                assert await give_up(reader) == (403, "not_owner")
                assert await give_up(token) == (202, "")
                status = (await house.client.get(path, headers=token)).json()
                assert (status["status"], status["cost"]["lost_jobs"]) == ("failed", 1)
                failures = (await house.client.get(f"{path}/failures", headers=token)).json()["items"]
                assert {item["code"] for item in failures} == {"job_lost"}
                assert await give_up(token) == (409, "nothing_lost")
                assert (await house.client.post(f"{path}/retry", headers=token)).status_code == 202

                await submit(house)
                status = (await house.client.get(path, headers=token)).json()
                assert (status["status"], status["cost"]["lost_jobs"]) == ("queued", 1)
                await far.services.database.run(put_back)
                await ask(house)
                capsys.readouterr()
                await steering.give_up(house.services.settings, manifest, as_json=True)
                told = json.loads(capsys.readouterr().out)
                assert {failure["code"] for failure in told["failures"]} == {"job_lost"}

    asyncio.run(story())
