"""A site and an engine on two sides of a network: the site's own client at the engine's own door."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.families.submission import HttpEngine
from dragoman.flow.engine.controls import Controls
from dragoman.kernel.identity import SystemChance
from dragoman.model.jobs import Capacity
from dragoman.model.scopes import Workspace
from dragoman.store.acts import steering
from dragoman.surfaces.http.app import build_app
from dragoman.wiring import linking
from dragoman.wiring.settings import EngineSettings, Settings, SubmissionSettings
from tests.surfaces.http.house import MANIFESTS, listening, served

WORKSPACE = "default"
SECONDS = 20.0


def submission(submission_id: str) -> bytes:
    """Two items of one text each, without a callback: the site asks."""
    items = [
        {"ref": f"item-{locale}", "targetLang": locale, "fields": {"title": "Hello there"}}
        for locale in ("fr", "de")
    ]
    said = {"submissionId": submission_id, "clientJobId": "m-1", "sourceLang": "en", "items": items}
    return json.dumps(said).encode()


async def ended(engine: HttpEngine, job_id: str) -> dict[str, Any]:
    """The job's view once it has ended."""
    async with asyncio.timeout(60):
        while True:
            view = await engine.job(WORKSPACE, job_id, SECONDS)
            assert view is not None
            if view["status"] in ("completed", "failed", "canceled"):
                return dict(view)
            await asyncio.sleep(0.05)


def test_a_site_submits_replays_asks_and_reads_across_the_network(database_url: str, tmp_path: Path) -> None:
    """[M-211, M-219]"""

    async def story() -> None:
        async with (
            served(database_url, tmp_path, roles=("engine",)) as house,
            listening(house.app) as address,
        ):
            token = (await house.token("jobs:write"))["Authorization"].removeprefix("Bearer ")
            engine = HttpEngine(address, token=lambda: token, callback_secrets=lambda: ["s" * 32])
            try:
                submission_id = SystemChance().new_id()
                body = submission(submission_id)
                first = await engine.submit(WORKSPACE, submission_id, body, SECONDS)
                again = await engine.submit(WORKSPACE, submission_id, body, SECONDS)
                assert (first.outcome, first.status) == ("SUCCEEDED", 201), first
                assert (again.outcome, again.status) == ("SUCCEEDED", 200), again
                told = json.loads(first.body or b"")
                assert told["submissionId"] == submission_id
                assert told["job_id"] == json.loads(again.body or b"")["job_id"]
                view = await ended(engine, told["job_id"])
                assert (view["status"], view["submission_id"]) == ("completed", submission_id)
                page = await engine.items(WORKSPACE, told["job_id"], "", SECONDS)
                items: Any = page["items"]
                assert {item["ref"]: bool(item["fields"]["title"]["text"]) for item in items} == {
                    "item-fr": True, "item-de": True,
                }  # fmt: skip
                other = await engine.submit(
                    WORKSPACE, submission_id, body.replace(b"Hello", b"Adieu"), SECONDS
                )
                assert (other.outcome, other.code) == ("REJECTED", "submission_conflict")
                assert await engine.job(WORKSPACE, SystemChance().new_id(), SECONDS) is None
                control = json.dumps({"revision": 1, "canceled": True}).encode()
                assert (await engine.control(WORKSPACE, "m-1", control, SECONDS)).outcome == "SUCCEEDED"
            finally:
                await engine.close()

    asyncio.run(story())


class _Slow(Controls):
    """Writes a decision down at once, and answers when it is let."""

    answers: asyncio.Event

    async def put(self, scope: Workspace, client_job_id: str, said: Mapping[str, Any]) -> Mapping[str, Any]:
        written = await super().put(scope, client_job_id, said)
        await self.answers.wait()
        return written


@pytest.mark.parametrize(("act", "other"), [("pause", "resume"), ("cancel", "cancel")])
def test_an_engine_that_answers_late_leaves_a_control_pending(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str, other: str
) -> None:
    """The site answers 202 in its own time and says so, until the engine has been heard to know it."""
    monkeypatch.setattr(steering, "CONTROL_SECONDS", 0.2)

    async def story() -> None:
        async with served(f"sqlite:///{tmp_path / 'far.db'}", tmp_path / "far") as far:
            slow = _Slow(far.services.database)
            slow.answers = asyncio.Event()
            app = build_app(dataclasses.replace(far.services, controls=slow))
            bearer = (await far.token("jobs:write"))["Authorization"].removeprefix("Bearer ")
            monkeypatch.setenv("DRAGOMAN_ENGINE_TOKEN", bearer)
            async with (
                listening(app) as address,
                served(database_url, tmp_path, engine=EngineSettings(url=address)) as house,
            ):
                await house.see_worker()
                token = await house.token()
                path = f"{MANIFESTS}/{await house.admit(token)}"

                async def ask(what: str) -> tuple[int, str]:
                    answer = await house.client.post(f"{path}/{what}", headers=token)
                    return answer.status_code, answer.json()["control"]

                assert await ask(act) == (202, "pending")
                assert await ask(act) == (202, "pending"), "asked again, it is still not known"
                [control] = await far.rows("controls")
                assert (bool(control.paused), bool(control.canceled)) == (act == "pause", act == "cancel")
                slow.answers.set()
                monkeypatch.setattr(steering, "CONTROL_SECONDS", SECONDS)
                assert await ask(act) == (202, "told")
                assert await ask(other) == (202, "told")

    asyncio.run(story())


def test_an_engine_tells_what_it_takes_and_means_it(database_url: str, tmp_path: Path) -> None:
    """[M-066, M-098, M-227] As whom the site is known, and the bounds that its submissions keep to."""

    async def story() -> None:
        bounds = SubmissionSettings(items=1, fields_per_item=3, field_characters=1_000, bytes=70_000)
        async with (
            served(database_url, tmp_path, submissions=bounds) as house,
            listening(house.app) as address,
        ):
            token = (await house.token("jobs:write", actor="site-7"))["Authorization"]
            bearer = token.removeprefix("Bearer ")
            engine = HttpEngine(address, token=lambda: bearer, callback_secrets=None)
            try:
                told = await engine.capacity(SECONDS)
                assert (told["account"], told["workspace"]) == ("site-7", WORKSPACE)
                far = Settings(root=tmp_path, engine=EngineSettings(url=address))
                way = linking.way_to(far, engine, house.services.clock)
                capacity = await way.capacity()
                assert capacity == Capacity(1, 70_000, 3, 1_000)
                assert way.far
                submission_id = SystemChance().new_id()
                two_items = await engine.submit(WORKSPACE, submission_id, submission(submission_id), SECONDS)
                assert (two_items.status, two_items.code) == (413, "payload_too_large")
                whole = json.dumps({"x": "y" * 70_000}).encode()
                assert (await engine.submit(WORKSPACE, submission_id, whole, SECONDS)).status == 413
            finally:
                await engine.close()

    asyncio.run(story())


def test_a_job_that_stands_is_found_by_bytes_that_would_be_refused_now(
    database_url: str, tmp_path: Path
) -> None:
    """Its answer was lost, then the engine's bounds were lowered: refused, it would be paid for again."""

    async def story() -> None:
        submission_id = SystemChance().new_id()
        said = json.loads(submission(submission_id))
        said["items"][0]["fields"] = {"title": "long " * 20_000}
        body = json.dumps(said).encode()
        outcomes = []
        for bounds in (SubmissionSettings(), SubmissionSettings(bytes=70_000)):
            async with (
                served(database_url, tmp_path, submissions=bounds) as house,
                listening(house.app) as address,
            ):
                token = (await house.token("jobs:write"))["Authorization"].removeprefix("Bearer ")
                engine = HttpEngine(address, token=lambda held=token: held, callback_secrets=None)  # type: ignore[misc]
                try:
                    answer = await engine.submit(WORKSPACE, submission_id, body, SECONDS)
                    outcomes.append((answer.outcome, answer.status, json.loads(answer.body or b"")["job_id"]))
                    new = body.replace(submission_id.encode(), SystemChance().new_id().encode())
                    refused = await engine.submit(WORKSPACE, submission_id, new, SECONDS)
                finally:
                    await engine.close()
        job_id = outcomes[0][2]
        assert outcomes == [("SUCCEEDED", 201, job_id), ("SUCCEEDED", 200, job_id)]
        assert (refused.status, refused.code) == (413, "payload_too_large")

    asyncio.run(story())


def test_an_engine_that_does_not_say_is_taken_for_the_usual(sqlite_url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            engine = HttpEngine("http://127.0.0.1:9", token=lambda: "t", callback_secrets=None)
            try:
                far = Settings(root=tmp_path, engine=EngineSettings(url="http://127.0.0.1:9"))
                way = linking.way_to(far, engine, house.services.clock)
                assert await way.capacity() == Capacity()
            finally:
                await engine.close()

    asyncio.run(story())


@pytest.mark.parametrize("capability", ["jobs:read", "manifests:write"])
def test_a_token_that_may_not_write_jobs_submits_nothing(
    sqlite_url: str, tmp_path: Path, capability: str
) -> None:
    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house, listening(house.app) as address:
            token = (await house.token(capability))["Authorization"].removeprefix("Bearer ")
            engine = HttpEngine(address, token=lambda: token, callback_secrets=lambda: ["s" * 32])
            try:
                submission_id = SystemChance().new_id()
                answer = await engine.submit(WORKSPACE, submission_id, submission(submission_id), SECONDS)
                assert answer.status == 403
                assert (await house.count("jobs"))["jobs"] == 0
            finally:
                await engine.close()

    asyncio.run(story())
