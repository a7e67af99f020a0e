"""One manifest's life over HTTP: asked for, watched, read, published, reverted, retried, canceled."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from dragoman.kernel.limits import FAILURES_PAGE_MAX
from tests.surfaces.http.house import MANIFESTS, PAIRS, House, served

ALL_ROLES = ("site", "engine", "publishing")
ENDED = ("completed", "failed", "canceled")
COUNTERS = {
    "total", "preparing", "queued", "processing", "completed", "failed", "protected", "skipped",
}  # fmt: skip
STATUS_KEYS = {
    "manifest_id", "status", "counts", "retryable_failed", "created_at", "updated_at", "completed_at",
    "failures", "total_known", "cost",
}  # fmt: skip


async def until_ended(house: House, path: str, token: dict[str, str], *published: str) -> dict[str, Any]:
    """The status once the manifest has ended, and its publication has come to one of these states."""
    async with asyncio.timeout(60):
        while True:
            status: dict[str, Any] = (await house.client.get(path, headers=token)).json()
            counts = status["counts"]
            assert sum(counts[state] for state in counts if state != "total") == counts["total"]
            done = not published or status["publication"]["state"] in published
            if status["status"] in ENDED and done:
                return status
            await asyncio.sleep(0.05)


def write_documents(folder: Path, count: int) -> list[str]:
    """Small catalogues; their names as documents."""
    for number in range(count):
        text = json.dumps({"greeting": f"Hello number {number}", "farewell": "Good night"})
        (folder / f"page{number}.json").write_text(text, "utf-8")
    return [f"page{number}.json" for number in range(count)]


def test_a_manifest_is_translated_published_and_taken_back(database_url: str, tmp_path: Path) -> None:
    """[M-104, M-123, M-127]"""
    documents = write_documents(tmp_path, 3)
    pairs = [{"document": document, "locale": locale} for document in documents for locale in ("fr", "de")]

    async def story() -> None:
        async with served(database_url, tmp_path, roles=ALL_ROLES, executor="files:v1") as house:
            token, client = await house.token(), house.client
            await house.see_worker()
            path = f"{MANIFESTS}/{await house.admit(token, pairs=pairs)}"
            first = (await client.get(path, headers=token)).json()
            assert first["completed_at"] is None or first["status"] in ENDED
            status = await until_ended(house, path, token, "in_place")
            assert status.keys() >= STATUS_KEYS
            assert status["counts"].keys() == COUNTERS
            assert status["status"] == "completed"
            assert status["counts"]["completed"] == 6
            assert status["created_at"].endswith("+00:00")
            assert status["failures"] == {"items": [], "next": None, "total": 0}

            texts, cursor = [], None
            while True:
                params = {"limit": 4, **({"cursor": cursor} if cursor else {})}
                page = (await client.get(f"{path}/results", headers=token, params=params)).json()
                texts += page["items"]
                cursor = page["next"]
                if cursor is None:
                    break
            assert [(item["document"], item["locale"]) for item in texts] == sorted(
                (pair["document"], pair["locale"]) for pair in pairs
            )
            assert all(field["text"] for item in texts for field in item["fields"].values())

            written = sorted(tmp_path.rglob("page*fr*"))
            assert len(written) == 3
            executions = (await client.get(f"{path}/executions", headers=token)).json()["items"]
            assert {execution["state"] for execution in executions} == {"SUCCEEDED"}
            reverted = await client.post(f"{path}/revert", headers=token)
            assert reverted.status_code == 202, reverted.text
            await until_ended(house, path, token, "reverted")
            assert not any(file.exists() for file in written)
            again = await client.post(f"{path}/revert", headers=token)
            assert (again.status_code, again.json()["code"]) == (409, "already_ended")

    asyncio.run(story())


def test_failures_go_by_pages_and_only_who_asked_retries_them(database_url: str, tmp_path: Path) -> None:
    """[M-128, M-129, M-131, M-135, M-138]"""
    pairs = [{"document": f"missing{number}.json", "locale": "fr"} for number in range(5)]

    async def story() -> None:
        async with served(database_url, tmp_path, roles=ALL_ROLES) as house:
            token, client = await house.token(), house.client
            await house.see_worker()
            path = f"{MANIFESTS}/{await house.admit(token, pairs=pairs)}"
            status = await until_ended(house, path, token)
            assert (status["status"], status["counts"]["failed"]) == ("failed", 5)
            assert status["failures"]["total"] == 5

            failed, cursor = [], None
            for _ in range(3):
                params = {"limit": 2, **({"cursor": cursor} if cursor else {})}
                page = (await client.get(f"{path}/failures", headers=token, params=params)).json()
                failed += page["items"]
                cursor = page["next"]
            assert cursor is None
            assert [failure["document"] for failure in failed] == [pair["document"] for pair in pairs]
            assert {failure["code"] for failure in failed} == {"document_not_found"}
            assert not any(failure["retryable"] for failure in failed)
            assert str(tmp_path) not in json.dumps(failed)

            for limit in (0, FAILURES_PAGE_MAX + 1, "many"):
                answer = await client.get(f"{path}/failures", headers=token, params={"limit": limit})
                assert (answer.status_code, answer.json()["place"]) == (422, "query.limit")

            nothing = await client.post(f"{path}/retry", headers=token)
            assert (nothing.status_code, nothing.json()["code"]) == (409, "nothing_to_retry")
            foreign = {"intent_ids": [house.services.chance.new_id()]}
            answer = await client.post(f"{path}/retry", headers=token, json=foreign)
            assert (answer.status_code, answer.json()["place"]) == (422, "intent_ids")

    asyncio.run(story())


def test_a_retry_that_names_nothing_sensible_is_refused_by_place(sqlite_url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            token = await house.token()
            await house.see_worker()
            path = f"{MANIFESTS}/{await house.admit(token)}/retry"
            for body, place in (
                ({"intent_ids": []}, "intent_ids"),
                ({"intent_ids": "all"}, "intent_ids"),
                ({"intent_ids": [7]}, "intent_ids[0]"),
                ({"ids": []}, "ids"),
            ):
                answer = await house.client.post(path, headers=token, json=body)
                assert (answer.status_code, answer.json()["place"]) == (422, place)

    asyncio.run(story())


def test_a_canceled_manifest_ends_and_a_second_cancel_changes_nothing(
    database_url: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with served(database_url, tmp_path) as house:
            token = await house.token()
            await house.see_worker()
            path = f"{MANIFESTS}/{await house.admit(token)}"
            first = await house.client.post(f"{path}/cancel", headers=token)
            assert (first.status_code, first.json()["changed"]) == (202, True)
            second = await house.client.post(f"{path}/cancel", headers=token)
            assert (second.status_code, second.json()["changed"]) == (202, False)
            assert (await house.client.get(path, headers=token)).json()["status"] == "canceled"

    asyncio.run(story())


def test_a_status_that_has_not_moved_is_not_sent_again(sqlite_url: str, tmp_path: Path) -> None:
    """[M-130]"""

    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            token = await house.token()
            await house.see_worker()
            path = f"{MANIFESTS}/{await house.admit(token)}"
            commits = house.services.database.commits
            first = await house.client.get(path, headers=token)
            known = {**token, "If-None-Match": f'"other", W/{first.headers["etag"]}'}
            same = await house.client.get(path, headers=known)
            assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", first.headers["etag"])
            assert house.services.database.commits == commits
            await house.client.post(f"{path}/cancel", headers=token)
            moved = await house.client.get(path, headers=known)
            assert moved.status_code == 200
            assert moved.headers["etag"] != first.headers["etag"]

    asyncio.run(story())


def test_nothing_is_published_where_nothing_is_translated(sqlite_url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            token = await house.token()
            await house.see_worker()
            path = f"{MANIFESTS}/{await house.admit(token, pairs=PAIRS)}"
            answer = await house.client.post(f"{path}/publish", headers=token)
            assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_retry")

    asyncio.run(story())
