"""The engine's contract over HTTP: submissions, jobs, controls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.store.schema import metadata
from dragoman.store.transaction import Tx
from dragoman.surfaces.web import paging
from tests.surfaces.http.house import House, served

BULK = "/v1/jobs/bulk-content"
JOBS = "/v1/workspaces/default/jobs"
SECRET = "X-Dragoman-Callback-Secret"


def submission(house: House, **changes: Any) -> dict[str, Any]:
    """One submission of two items."""
    return {
        "submissionId": house.services.chance.new_id(),
        "clientJobId": "catalogue-1",
        "sourceLang": "en",
        "items": [
            {"ref": f"item-{locale}", "targetLang": locale, "fields": {"title": "Hello there"}}
            for locale in ("fr", "de")
        ],
        **changes,
    }


def told(
    database_url: str,
    folder: Path,
    story: Callable[[House, dict[str, str]], Coroutine[Any, Any, None]],
    **settings: Any,
) -> None:
    """Runs a story in a house without workers, with a token for everything but administration."""

    async def run() -> None:
        async with served(database_url, folder, **settings) as house:
            await story(house, await house.token())

    asyncio.run(run())


def test_a_submission_makes_one_job_and_the_same_again_gets_it(database_url: str, tmp_path: Path) -> None:
    """[M-206, M-207, M-210, M-211, M-213, M-217, M-219]"""

    async def story(house: House, token: dict[str, str]) -> None:
        body = submission(house)
        answers = await asyncio.gather(
            *(house.client.post(BULK, json=body, headers=token) for _ in range(50))
        )
        assert sorted({answer.status_code for answer in answers}) == [200, 201]
        assert [answer.status_code for answer in answers].count(201) == 1
        jobs = {answer.json()["job_id"] for answer in answers}
        assert len(jobs) == 1
        assert {answer.json()["submissionId"] for answer in answers} == {body["submissionId"]}
        assert (await house.count("jobs"))["jobs"] == 1
        other = await house.client.post(BULK, json={**body, "tone": "formal"}, headers=token)
        assert (other.status_code, other.json()["code"]) == (409, "SUBMISSION_ID_CONFLICT")
        seen = await house.client.get(f"/v1/jobs/{jobs.pop()}", headers=token)
        assert seen.json()["submissionId"] == body["submissionId"]
        assert seen.json()["status"] == "queued"

    told(database_url, tmp_path, story)


def test_a_submission_of_another_principal_is_not_found(sqlite_url: str, tmp_path: Path) -> None:
    """[M-212]"""

    async def story(house: House, token: dict[str, str]) -> None:
        body = submission(house)
        await house.client.post(BULK, json=body, headers=token)
        for stranger in (
            await house.token(actor="grace"),
            await house.token(workspace="elsewhere"),
        ):
            answer = await house.client.post(BULK, json=body, headers=stranger)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")

    told(sqlite_url, tmp_path, story)


@pytest.mark.parametrize(
    ("secret", "status"), [("s" * 15, 422), ("s" * 16, 201), ("s" * 256, 201), ("s" * 257, 422)]
)
def test_a_callback_secret_has_16_to_256_bytes(
    sqlite_url: str, tmp_path: Path, secret: str, status: int
) -> None:
    """[M-214]"""

    async def story(house: House, token: dict[str, str]) -> None:
        answer = await house.client.post(BULK, json=submission(house), headers={**token, SECRET: secret})
        assert answer.status_code == status
        assert secret not in answer.text

    told(sqlite_url, tmp_path, story)


def test_the_secret_is_looked_at_only_after_the_token(sqlite_url: str, tmp_path: Path) -> None:
    """[M-214]"""

    async def story(house: House, _: dict[str, str]) -> None:
        answer = await house.client.post(BULK, json=submission(house), headers={SECRET: "short"})
        assert answer.status_code == 401

    told(sqlite_url, tmp_path, story)


def test_without_a_sealing_key_a_callback_is_not_promised(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DRAGOMAN_SEALING_KEY", raising=False)

    async def story(house: House, token: dict[str, str]) -> None:
        headers = {**token, SECRET: "s" * 32}
        body = submission(house, callbackUrl="https://site.example/callbacks")
        answer = await house.client.post(BULK, json=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (503, "sealing_key_missing")
        assert (await house.count("jobs"))["jobs"] == 0

    told(sqlite_url, tmp_path, story)


def test_a_secret_rests_sealed_and_a_replay_never_changes_it(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-215, M-216]"""
    monkeypatch.setenv("DRAGOMAN_SEALING_KEY", "A" * 43 + "=")

    def kept(tx: Tx) -> list[str]:
        jobs = metadata.tables["jobs"]
        return [str(tuple(row)) for row in tx.all(sa.select(jobs))]

    async def story(house: House, token: dict[str, str]) -> None:
        body = submission(house, callbackUrl="https://site.example/callbacks")
        first = await house.client.post(BULK, json=body, headers={**token, SECRET: "first-secret-of-all"})
        assert first.status_code == 201
        (before,) = await house.services.database.read(kept)
        again = await house.client.post(BULK, json=body, headers={**token, SECRET: "other-secret-later"})
        assert again.status_code == 200
        (after,) = await house.services.database.read(kept)
        assert before == after
        assert "first-secret-of-all" not in after

    told(sqlite_url, tmp_path, story)


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"items": []}, 422, "invalid_request"),
        ({"submissionId": "one"}, 422, "invalid_request"),
        ({"unheard": 1}, 422, "invalid_request"),
        ({"sourceLang": "zz-qq"}, 422, "unsupported_locale"),
        ({"sourceLang": "fr"}, 422, "source_is_target"),
        ({"options": {"provider_config": "nobody"}}, 422, "provider_unknown"),
        ({"items": [{"ref": "a", "targetLang": "fr", "fields": {"a b": "x"}}]}, 422, "invalid_fields"),
        (
            {"items": [{"ref": str(n), "targetLang": "fr", "fields": {"a": "x"}} for n in range(101)]},
            413, "payload_too_large",
        ),
        ({"tone": "x" * 1_100_000}, 413, "payload_too_large"),
    ],
)  # fmt: skip
def test_a_submission_that_is_wrong_is_refused_whole(
    sqlite_url: str, tmp_path: Path, changes: dict[str, Any], status: int, code: str
) -> None:
    """[M-207, M-210]"""

    async def story(house: House, token: dict[str, str]) -> None:
        answer = await house.client.post(BULK, json=submission(house, **changes), headers=token)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert (await house.count("jobs"))["jobs"] == 0

    told(sqlite_url, tmp_path, story)


@pytest.mark.parametrize("prefix", ["", "/api"])
def test_one_item_is_translated_looked_at_listed_and_canceled(
    database_url: str, tmp_path: Path, prefix: str
) -> None:
    """[J-084, J-086, J-087, J-088]"""

    async def story(house: House, token: dict[str, str]) -> None:
        client, jobs = house.client, prefix + JOBS
        asked = {"sourceLang": "en", "targetLang": "fr", "item": "banner", "fields": {"title": "Hello"}}
        accepted = await client.post(f"{jobs}/translate", json=asked, headers=token)
        assert accepted.status_code == 202, accepted.text
        said = accepted.json()
        assert said["status"] == "queued"
        seen = await client.get(f"{jobs}/{said['job_id']}", headers=token)
        assert (seen.status_code, seen.json()["status"]) == (200, "queued")
        known = await client.get(
            f"{jobs}/{said['job_id']}", headers={**token, "If-None-Match": seen.headers["etag"]}
        )
        assert (known.status_code, known.content) == (304, b"")
        listed = await client.get(jobs, headers=token)
        assert [job["job_id"] for job in listed.json()["jobs"]] == [said["job_id"]]
        canceled = await client.delete(f"{jobs}/{said['job_id']}", headers=token)
        assert (canceled.status_code, canceled.json()["status"]) == (202, "canceled")
        again = await client.delete(f"{jobs}/{said['job_id']}", headers=token)
        assert (again.status_code, again.json()["code"]) == (409, "already_ended")

    told(database_url, tmp_path, story)


def test_the_list_of_jobs_goes_on_by_cursor_without_a_gap(database_url: str, tmp_path: Path) -> None:
    """[J-087]"""

    async def story(house: House, token: dict[str, str]) -> None:
        made = []
        for _ in range(53):
            answer = await house.client.post(BULK, json=submission(house), headers=token)
            made.append(answer.json()["job_id"])
        first = (await house.client.get(JOBS, headers=token)).json()
        assert len(first["jobs"]) == 50
        second = await house.client.get(JOBS, headers=token, params={"cursor": first["next_cursor"]})
        pages = [job["job_id"] for page in (first, second.json()) for job in page["jobs"]]
        assert pages == made[::-1]
        assert second.json()["next_cursor"] == ""

    told(database_url, tmp_path, story)


def test_a_cursor_of_another_list_leads_nowhere(sqlite_url: str, tmp_path: Path) -> None:
    async def story(house: House, token: dict[str, str]) -> None:
        great = paging.seal("jobs", "9" * 40 + "_x")
        for cursor in ("nonsense", "aXRlbXMgMQ", "am9icw", "x" * 10_000, "\x00", "é", great):
            answer = await house.client.get(JOBS, headers=token, params={"cursor": cursor})
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")

    told(sqlite_url, tmp_path, story)


def test_usage_shows_this_months_tokens_and_what_is_left(database_url: str, tmp_path: Path) -> None:
    """[J-089]"""

    async def story(house: House, token: dict[str, str]) -> None:
        said = (await house.client.get("/v1/workspaces/default/ai/usage", headers=token)).json()
        assert said["monthly_tokens"] == 10_000_000
        assert (said["used"], said["reserved"], said["remaining"]) == (0, 0, 10_000_000)
        assert said["period_start"] < said["period_end"]

    told(database_url, tmp_path, story)


def test_a_control_holds_for_all_jobs_of_a_client_job_and_an_older_one_changes_nothing(
    database_url: str, tmp_path: Path
) -> None:
    async def story(house: House, token: dict[str, str]) -> None:
        async def put(**body: Any) -> Any:
            answer = await house.client.put("/v1/engine/controls/catalogue-1", json=body, headers=token)
            assert answer.status_code == 200, answer.text
            return answer.json()

        await house.client.post(BULK, json=submission(house), headers=token)
        assert await put(revision=2, paused=True) == {"revision": 2, "applied": True}
        assert await put(revision=1, paused=False) == {"revision": 1, "applied": False}
        assert await put(revision=3, canceled=True) == {"revision": 3, "applied": True}
        (job,) = (await house.client.get(JOBS, headers=token)).json()["jobs"]
        assert job["status"] == "canceled"
        wrong = await house.client.put(
            "/v1/engine/controls/catalogue-1", json={"revision": 4, "budget": {"tokens": 0}}, headers=token
        )
        assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_request")

    told(database_url, tmp_path, story)


def test_a_job_of_another_workspace_is_not_found_by_any_route(sqlite_url: str, tmp_path: Path) -> None:
    async def story(house: House, token: dict[str, str]) -> None:
        made = (await house.client.post(BULK, json=submission(house), headers=token)).json()["job_id"]
        foreign = await house.exact_token(["admin"], workspace="elsewhere")
        for method, path in (
            ("GET", f"/v1/jobs/{made}"),
            ("GET", f"/v1/jobs/{made}/items"),
            ("GET", f"/v1/workspaces/elsewhere/jobs/{made}"),
            ("DELETE", f"/v1/workspaces/elsewhere/jobs/{made}"),
        ):
            answer = await house.client.request(method, path, headers=foreign)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert (await house.client.get(f"/v1/jobs/{made}", headers=token)).json()["status"] == "queued"

    told(sqlite_url, tmp_path, story)
