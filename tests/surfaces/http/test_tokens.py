"""Who may ask what: tokens, workspaces, capabilities."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa

from dragoman.kernel.identity import sha256
from dragoman.model.scopes import Workspace
from dragoman.store.acts import access
from dragoman.store.schema import metadata
from dragoman.store.transaction import Tx
from tests.surfaces.http.house import MANIFESTS, PAIRS, House, served

SOME_ID = "0199d3f0-4a1b-7c55-9c1e-3a7f6f2b8d10"
GUARDED = [
    ("POST", MANIFESTS),
    ("GET", f"{MANIFESTS}/{SOME_ID}"),
    ("POST", f"{MANIFESTS}/{SOME_ID}/give-up"),
    ("GET", f"{MANIFESTS}/{SOME_ID}/failures"),
    ("GET", f"{MANIFESTS}/{SOME_ID}/results"),
    ("POST", f"{MANIFESTS}/{SOME_ID}/retry"),
    ("POST", f"{MANIFESTS}/{SOME_ID}/cancel"),
    ("POST", f"{MANIFESTS}/{SOME_ID}/pause"),
    ("POST", f"{MANIFESTS}/{SOME_ID}/resume"),
    ("GET", f"{MANIFESTS}/{SOME_ID}/events"),
    ("POST", f"{MANIFESTS}/{SOME_ID}/publish"),
    ("POST", f"{MANIFESTS}/{SOME_ID}/revert"),
    ("GET", f"{MANIFESTS}/{SOME_ID}/executions"),
    ("POST", "/v1/workspaces/default/jobs/translate"),
    ("GET", "/v1/workspaces/default/jobs"),
    ("GET", f"/v1/workspaces/default/jobs/{SOME_ID}"),
    ("DELETE", f"/v1/workspaces/default/jobs/{SOME_ID}"),
    ("GET", "/v1/workspaces/default/ai/usage"),
    ("POST", "/v1/jobs/bulk-content"),
    ("GET", f"/v1/jobs/{SOME_ID}"),
    ("GET", f"/v1/jobs/{SOME_ID}/items"),
    ("PUT", "/v1/engine/controls/one"),
    ("GET", "/v1/engine/capacity"),
    ("GET", "/v1/admin/webhook-outbox"),
    ("GET", "/metrics"),
    ("POST", f"/v1/admin/jobs/{SOME_ID}/redrive"),
    ("POST", f"{MANIFESTS}/{SOME_ID}/promote"),
    ("POST", f"{MANIFESTS}/estimate"),
    ("POST", "/v1/workspaces/default/projects/docs/runs"),
    ("GET", f"/v1/workspaces/default/projects/docs/runs/{SOME_ID}"),
    ("GET", "/v1/workspaces/default/projects/docs/files"),
    ("GET", "/v1/workspaces/default/projects/docs/file?path=a"),
    ("PUT", "/v1/workspaces/default/projects/docs/file?path=a"),
    ("DELETE", "/v1/workspaces/default/projects/docs/file?path=a"),
    ("POST", "/v1/projects/docs/sync/translate"),
    ("POST", f"/v1/admin/webhook-outbox/{SOME_ID}/redrive"),
    ("POST", "/api/v1/workspaces/default/jobs/translate"),
    ("GET", "/api/v1/workspaces/default/jobs"),
    ("GET", f"/api/v1/workspaces/default/jobs/{SOME_ID}"),
    ("DELETE", f"/api/v1/workspaces/default/jobs/{SOME_ID}"),
    ("GET", "/api/v1/workspaces/default/ai/usage"),
]
"""Every route that answers a caller of a workspace."""


def routes_of(house: House) -> set[tuple[str, str]]:
    """(method, path template) of the whole contract and of the older clients' paths."""
    contract = {
        (method.upper(), path) for path, methods in house.app.openapi()["paths"].items() for method in methods
    }
    seed = {(method, f"/api{path}") for method, path in contract if path.startswith("/v1/workspaces") and (
        "/jobs" in path or "/ai/" in path
    )}  # fmt: skip
    return contract | seed


def test_the_list_of_guarded_routes_is_whole(sqlite_url: str, tmp_path: Path) -> None:
    async def story() -> set[tuple[str, str]]:
        async with served(sqlite_url, tmp_path) as house:
            return routes_of(house)

    open_to_all = {("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/v1/callbacks/submission")}
    assert len(asyncio.run(story()) - open_to_all) == len(GUARDED)


def test_every_guarded_route_refuses_who_bears_no_token_in_force(sqlite_url: str, tmp_path: Path) -> None:
    """[M-106]"""

    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            strangers = [{}, {"Authorization": "Bearer nobody"}, {"Authorization": "Basic YTpi"}]
            for method, path in GUARDED:
                for headers in strangers:
                    answer = await house.client.request(method, path, headers=headers)
                    assert (method, path, answer.status_code) == (method, path, 401)
                    assert answer.json()["code"] == "unauthorized"
                    assert answer.headers["www-authenticate"] == "Bearer"

    asyncio.run(story())


def test_a_revoked_token_opens_nothing_from_that_commit_on(database_url: str, tmp_path: Path) -> None:
    async def story() -> tuple[int, int]:
        async with served(database_url, tmp_path) as house:
            token = await house.token()
            database = house.services.database
            (kept,) = await database.read(access.list_tokens, Workspace("default"))
            before = await house.client.get(f"{MANIFESTS}/{SOME_ID}", headers=token)
            assert await database.run(access.revoke_token, "default", kept.id)
            assert not await database.run(access.revoke_token, "default", kept.id)
            after = await house.client.get(f"{MANIFESTS}/{SOME_ID}", headers=token)
            return before.status_code, after.status_code

    assert asyncio.run(story()) == (404, 401)


def test_of_a_token_only_its_hash_is_kept(sqlite_url: str, tmp_path: Path) -> None:
    def rows(tx: Tx) -> list[tuple[object, ...]]:
        return [tuple(row) for row in tx.all(sa.select(metadata.tables["tokens"]))]

    async def story() -> tuple[str, str]:
        async with served(sqlite_url, tmp_path) as house:
            token = (await house.token())["Authorization"].removeprefix("Bearer ")
            return token, str(await house.services.database.read(rows))

    token, kept = asyncio.run(story())
    assert token not in kept
    assert sha256(token) in kept


def test_a_capability_that_does_not_exist_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            with pytest.raises(Exception, match="no capability 'manifests:wirte'"):
                await house.token("manifests:wirte")

    asyncio.run(story())


@pytest.mark.parametrize(("method", "path"), [route for route in GUARDED if "/workspaces/" in route[1]])
def test_what_lies_in_another_workspace_is_not_found_whatever_the_token_may(
    sqlite_url: str, tmp_path: Path, method: str, path: str
) -> None:
    """[M-124]"""

    async def story() -> tuple[int, str]:
        async with served(sqlite_url, tmp_path) as house:
            foreign = await house.exact_token(["admin"], workspace="elsewhere")
            answer = await house.client.request(method, path, headers=foreign)
            return answer.status_code, answer.json()["code"]

    assert asyncio.run(story()) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "capability"),
    [
        ("POST", MANIFESTS, "manifests:write"),
        ("POST", f"{MANIFESTS}/{SOME_ID}/retry", "manifests:write"),
        ("POST", f"{MANIFESTS}/{SOME_ID}/cancel", "manifests:write"),
        ("POST", f"{MANIFESTS}/{SOME_ID}/pause", "manifests:write"),
        ("POST", f"{MANIFESTS}/{SOME_ID}/resume", "manifests:write"),
        ("POST", f"{MANIFESTS}/{SOME_ID}/publish", "publications:write"),
        ("POST", f"{MANIFESTS}/{SOME_ID}/revert", "publications:write"),
        ("POST", "/v1/jobs/bulk-content", "jobs:write"),
        ("POST", "/v1/workspaces/default/jobs/translate", "jobs:write"),
        ("DELETE", f"/v1/workspaces/default/jobs/{SOME_ID}", "jobs:write"),
        ("PUT", "/v1/engine/controls/one", "jobs:write"),
        ("GET", f"/v1/jobs/{SOME_ID}", "jobs:read"),
        ("GET", f"/v1/jobs/{SOME_ID}/items", "jobs:read"),
        ("GET", "/v1/workspaces/default/jobs", "jobs:read"),
        ("GET", "/v1/admin/webhook-outbox", "admin"),
        ("GET", "/metrics", "metrics:read"),
        ("POST", f"/v1/admin/webhook-outbox/{SOME_ID}/redrive", "admin"),
    ],
)
def test_an_act_needs_its_capability_and_the_refusal_names_it(
    sqlite_url: str, tmp_path: Path, method: str, path: str, capability: str
) -> None:
    """[M-106, M-249]"""

    async def story() -> tuple[int, str, str]:
        async with served(sqlite_url, tmp_path) as house:
            others = {"manifests:write", "jobs:read", "publications:write"} - {capability}
            answer = await house.client.request(method, path, headers=await house.token(*others))
            said = answer.json()
            return answer.status_code, said["code"], said["place"]

    assert asyncio.run(story()) == (403, "forbidden", capability)


def test_a_manifest_is_seen_by_who_asked_for_it_and_by_who_may_see_all(
    database_url: str, tmp_path: Path
) -> None:
    """[M-124, M-125, M-308]"""

    async def story() -> None:
        async with served(database_url, tmp_path) as house:
            await house.see_worker()
            ada = await house.token("manifests:write")
            grace = await house.token("manifests:write", actor="grace")
            auditor = await house.token("manifests:read_all", actor="alan")
            manifest_id = await house.admit(ada)
            for page in ("", "/failures", "/results", "/executions"):
                path = f"{MANIFESTS}/{manifest_id}{page}"
                named = {"X-Request-Id": "same"}
                assert (await house.client.get(path, headers=ada)).status_code == 200
                assert (await house.client.get(path, headers=auditor)).status_code == 200
                foreign = await house.client.get(path, headers={**grace, **named})
                unknown = await house.client.get(
                    path.replace(manifest_id, SOME_ID), headers={**grace, **named}
                )
                assert (foreign.status_code, unknown.status_code) == (404, 404)
                assert foreign.text.replace(manifest_id, SOME_ID) == unknown.text
                assert foreign.headers == unknown.headers

    asyncio.run(story())


def test_who_may_see_all_may_still_not_steer_what_others_asked_for(sqlite_url: str, tmp_path: Path) -> None:
    """[M-133]"""

    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            await house.see_worker()
            manifest_id = await house.admit(await house.token("manifests:write"))
            auditor = await house.token("manifests:read_all", "manifests:write", actor="alan")
            grace = await house.token("manifests:write", actor="grace")
            for act in ("retry", "cancel", "pause", "resume"):
                path = f"{MANIFESTS}/{manifest_id}/{act}"
                seen = await house.client.post(path, headers=auditor)
                assert (seen.status_code, seen.json()["code"]) == (403, "not_owner")
                unseen = await house.client.post(path, headers=grace)
                assert (unseen.status_code, unseen.json()["code"]) == (404, "not_found")

    asyncio.run(story())


def test_a_request_id_that_the_client_gives_comes_back_and_a_strange_one_does_not(
    sqlite_url: str, tmp_path: Path
) -> None:
    async def story() -> tuple[str, str]:
        async with served(sqlite_url, tmp_path) as house:
            named = await house.client.get("/healthz", headers={"X-Request-Id": "trace-1"})
            strange = await house.client.get("/healthz", headers={"X-Request-Id": "<script>"})
            return named.headers["x-request-id"], strange.headers["x-request-id"]

    named, strange = asyncio.run(story())
    assert named == "trace-1"
    assert "<" not in strange
    assert len(strange) == 36


def test_pairs_are_worth_nothing_without_a_workspace_of_ones_own(sqlite_url: str, tmp_path: Path) -> None:
    """A token of one workspace cannot ask in another, and leaves no row there."""

    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            await house.see_worker()
            foreign = await house.exact_token(["admin"], workspace="elsewhere")
            body = {"request_id": "r", "pairs": PAIRS}
            answer = await house.client.post(MANIFESTS, json=body, headers=foreign)
            assert answer.status_code == 404
            assert (await house.count("manifests"))["manifests"] == 0

    asyncio.run(story())
