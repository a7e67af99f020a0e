"""Walls between workspaces, for every route of the contract: what is another's does not exist.

Not only the answer is the same as for an id that nobody has, but also what the database was asked.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from dragoman.model.runs import RunDraft
from dragoman.store.acts import access, converging, viewing
from dragoman.store.sessions import Session
from tests.surfaces.http.house import House, served
from tests.surfaces.http.test_outbox import add_events

UNKNOWN_ID = "0199d3f0-4a1b-7c55-9c1e-3a7f6f2b8d10"
OPEN_TO_ALL = {"/healthz", "/readyz", "/v1/callbacks/submission"}
NAMED_BY_CALLERS = {"client_job_id", "project"}
"""Ids that a workspace gives itself: the same name in another workspace is another thing."""


class Answered(NamedTuple):
    """An answer without what differs between any two requests, and the SQL that it took."""

    status: int
    body: str
    headers: Mapping[str, str]
    asked: tuple[str, ...]


class Route(NamedTuple):
    """One operation of the contract, and a body for it where it wants one."""

    method: str
    path: str
    body: Any

    def filled(self, workspace: str, ids: Mapping[str, str]) -> str:
        """The path with a workspace and the ids of somebody's things."""
        return re.sub(r"\{(\w+)\}", lambda name: {"workspace": workspace, **ids}[name[1]], self.path)


def routes_of(house: House) -> list[Route]:
    """Every route behind a token, with the contract's own example as body."""
    found = []
    for path, methods in house.app.openapi()["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            if path not in OPEN_TO_ALL:
                found.append(Route(method.upper(), path, body.get("example")))
    return found


@contextmanager
def statements() -> Iterator[list[str]]:
    """The SQL text of everything that any session of this process is asked, in order."""
    asked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("query", "change", "change_many"):
            plain = getattr(Session, name)

            def noted(self: Session, sql: str, given: Any, plain: Any = plain) -> Any:
                asked.append(sql)
                return plain(self, sql, given)

            patch.setattr(Session, name, noted)
        yield asked


async def ask(house: House, route: Route, path: str, headers: Mapping[str, str]) -> Answered:
    """Ask once, and note what it took."""
    with statements() as asked:
        answer: httpx2.Response = await house.client.request(
            route.method, path, headers={**headers, "X-Request-Id": "same"}, json=route.body
        )
    shown = {name: value for name, value in answer.headers.items() if name != "date"}
    return Answered(answer.status_code, answer.text, shown, tuple(asked))


async def things_of(house: House, workspace: str) -> dict[str, str]:
    """The ids of one of everything that a workspace can have, by the name of its path parameter."""
    await house.see_worker()
    token = await house.token()
    asked = {"sourceLang": "en", "targetLang": "fr", "fields": {"title": "Hello"}}
    job = await house.client.post(f"/v1/workspaces/{workspace}/jobs/translate", json=asked, headers=token)
    (event,) = await house.services.database.run(add_events, workspace, 1)
    draft = RunDraft(workspace, "docs", "ada", "manual", "", {})
    run = await house.services.database.run(converging.start_run, draft)
    return {
        "manifest_id": await house.admit(token),
        "job_id": str(job.json()["job_id"]),
        "delivery_id": event,
        "client_job_id": "theirs",
        "project": "docs",
        "run_id": run.run_id,
    }


def unlike(foreign: Answered, unknown: Answered, ids: Mapping[str, str]) -> list[str]:
    """In what two answers differ, but for the id that was asked for."""
    body = foreign.body
    for known in ids.values():
        body = body.replace(known, UNKNOWN_ID)
    differing = {
        "status": foreign.status != unknown.status,
        "body": body != unknown.body,
        "headers": foreign.headers != unknown.headers,
        "statements": foreign.asked != unknown.asked,
    }
    return [name for name, differs in differing.items() if differs]


def test_what_is_anothers_is_answered_as_what_nobody_has(database_url: str, tmp_path: Path) -> None:
    """[M-125, M-308] every route: 404, the same body and headers, the same statements as an unknown id."""

    async def story() -> None:
        async with served(database_url, tmp_path) as house:
            theirs = await things_of(house, "default")
            nobodys = dict.fromkeys(theirs, UNKNOWN_ID)
            mine = await house.exact_token(["admin"], workspace="elsewhere", actor="eve")
            before = await house.count("manifests", "jobs", "outbox", "controls", "effects", "tokens")
            routes = routes_of(house)
            await house.client.get(f"/v1/jobs/{UNKNOWN_ID}", headers=mine)  # the schema was looked at
            tried = 0
            for route in routes:
                names = set(re.findall(r"\{(\w+)\}", route.path)) - {"workspace"}
                assert names <= set(theirs), f"{route.path}: a thing of that kind must be made above"
                if not names or names <= NAMED_BY_CALLERS:
                    continue
                tried += 1
                foreign = await ask(house, route, route.filled("elsewhere", theirs), mine)
                unknown = await ask(house, route, route.filled("elsewhere", nobodys), mine)
                said = (route.method, route.path, foreign.status, unlike(foreign, unknown, theirs))
                assert said == (route.method, route.path, 404, [])
                assert foreign.asked, "somebody looked"
            assert tried >= 16
            assert await house.count(*before) == before

    asyncio.run(story())


def test_a_foreign_workspace_in_the_path_is_no_workspace(database_url: str, tmp_path: Path) -> None:
    """[M-124] whatever the token may do, and whatever is asked for behind that name."""

    async def story() -> None:
        async with served(database_url, tmp_path) as house:
            theirs = await things_of(house, "default")
            mine = await house.exact_token(["admin"], workspace="elsewhere", actor="eve")
            before = await house.count("manifests", "jobs", "intents", "history")
            await house.client.get(f"/v1/jobs/{UNKNOWN_ID}", headers=mine)
            for route in routes_of(house):
                if "{workspace}" not in route.path:
                    continue
                foreign = await ask(house, route, route.filled("default", theirs), mine)
                unknown = await ask(house, route, route.filled("nowhere", theirs), mine)
                said = (route.method, route.path, foreign.status, unlike(foreign, unknown, {}))
                assert said == (route.method, route.path, 404, [])
            assert await house.count(*before) == before

    asyncio.run(story())


def test_a_control_names_the_callers_own_work_whatever_others_call_theirs(
    sqlite_url: str, tmp_path: Path
) -> None:
    """Two workspaces may use one name: a decision of one is none of the other's."""

    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            theirs = await things_of(house, "default")
            mine = await house.exact_token(["admin"], workspace="elsewhere", actor="eve")
            path = f"/v1/engine/controls/{theirs['manifest_id']}"
            answer = await house.client.put(path, json={"revision": 9, "canceled": True}, headers=mine)
            assert answer.status_code == 200
            token = await house.token()
            url = f"/v1/workspaces/default/manifests/{theirs['manifest_id']}"
            assert (await house.client.get(url, headers=token)).json()["status"] == "preparing"

    asyncio.run(story())


def test_the_walls_of_this_test_are_seen_to_fall(sqlite_url: str, tmp_path: Path) -> None:
    """Planted: an act that first looks whether the id exists at all is caught by its statements."""

    async def story() -> list[str]:
        async with served(sqlite_url, tmp_path) as house:
            theirs = await things_of(house, "default")
            mine = await house.exact_token(["admin"], workspace="elsewhere", actor="eve")
            await house.client.get(f"/v1/jobs/{UNKNOWN_ID}", headers=mine)
            plain = access.readable_manifest

            def leaking(tx: Any, scope: Any, manifest_id: str, *more: Any) -> Any:
                if manifest_id == theirs["manifest_id"]:
                    viewing.active_manifests(tx, scope, 1)
                return plain(tx, scope, manifest_id, *more)

            route = Route("GET", "/v1/workspaces/{workspace}/manifests/{manifest_id}", None)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(access, "readable_manifest", leaking)
                foreign = await ask(house, route, route.filled("elsewhere", theirs), mine)
            nobodys = dict.fromkeys(theirs, UNKNOWN_ID)
            unknown = await ask(house, route, route.filled("elsewhere", nobodys), mine)
            return unlike(foreign, unknown, theirs)

    assert asyncio.run(story()) == ["statements"]
