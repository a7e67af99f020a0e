"""Scopes and canaries over HTTP, whole: from the request to results, from a folder and from a server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.kernel.errors import SettingsError
from dragoman.wiring.settings import ProjectSettings, load
from tests.conformance.test_sources import TOKEN, reference_server, running, written
from tests.surfaces.http.house import MANIFESTS, House, served

SECONDS = 60


async def ended(house: House, token: dict[str, str], manifest_id: str) -> dict[str, Any]:
    """The status once it is over; the workers of this process bring it there."""
    async with asyncio.timeout(SECONDS):
        while True:
            status: dict[str, Any] = (
                await house.client.get(f"{MANIFESTS}/{manifest_id}", headers=token)
            ).json()
            if status["completed_at"]:
                return status
            await asyncio.sleep(0.02)


async def post(house: House, token: dict[str, str], path: str = "", **body: Any) -> httpx2.Response:
    answer: httpx2.Response = await house.client.post(f"{MANIFESTS}{path}", json=body, headers=token)
    return answer


def test_a_scope_over_a_server_is_read_translated_and_rehearsed(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[C-026, C-040, C-052, M-116] end to end: collections, a global, a document that is gone; dry run."""
    monkeypatch.setenv("CMS_TOKEN", TOKEN)
    folder = tmp_path / "cms"
    written(folder, {f"en/posts/{n}.json": json.dumps({"t": f"Post {n}"}) for n in range(3)})
    written(folder, {"en/pages/a.md": "# A page\n", "en/site.json": '{"name": "Site"}'})
    written(folder, {"fr/posts/0.json": '{"t": "Déjà là"}'})

    async def play(url: str) -> None:
        projects = {"cms": ProjectSettings(source="http", url=url, token_variable="CMS_TOKEN")}
        async with served(sqlite_url, tmp_path, ("site", "engine", "publishing"), projects=projects) as house:
            token = await house.token("manifests:write")
            await house.see_worker()
            scope = {"collections": ["posts", "pages"], "globals": ["site.json"], "locales": ["fr", "de"]}
            answer = await post(house, token, request_id="r-1", project="cms", scope=scope)
            assert (answer.status_code, answer.json()["total_known"]) == (202, False), answer.text
            status = await ended(house, token, answer.json()["manifest_id"])
            assert status["total_known"]
            assert (status["status"], status["counts"]["completed"], status["counts"]["skipped"]) == (
                "completed", 9, 1,
            )  # fmt: skip
            results = await house.client.get(
                f"{MANIFESTS}/{answer.json()['manifest_id']}/results", headers=token
            )
            refs = {item["document"] for item in results.json()["items"]}
            assert refs == {"posts/0.json", "posts/1.json", "posts/2.json", "pages/a.md", "site.json"}
            named = {"documents": ["posts/1.json", "posts/gone.json"], "locales": ["it"]}
            answer = await post(house, token, request_id="r-2", project="cms", scope=named)
            status = await ended(house, token, answer.json()["manifest_id"])
            assert (status["status"], status["counts"]["completed"]) == ("failed", 1)
            [failure] = status["failures"]["items"]
            assert (failure["document"], failure["code"]) == ("posts/gone.json", "document_not_found")
            wrong = await post(
                house, token, request_id="r-3", project="cms", scope={"collections": ["x"], "locales": ["fr"]}
            )
            assert (wrong.status_code, wrong.json()["code"]) == (422, "unsupported_collection")
            monkeypatch.setenv("CMS_TOKEN", "")
            silent = await post(house, token, request_id="r-4", project="cms", scope=scope)
            assert (silent.status_code, silent.json()["code"]) == (503, "source_unavailable")
            assert TOKEN not in silent.text

    with running(reference_server().serve(folder, 0, TOKEN)) as url:
        asyncio.run(play(url))


def test_a_canary_is_promoted_and_nothing_is_translated_twice(database_url: str, tmp_path: Path) -> None:
    """[C-075, C-082, C-084] over a folder's collections; the promoted manifest takes exactly the rest."""
    written(tmp_path, {f"posts/{n:02}.json": json.dumps({"t": f"Post {n}"}) for n in range(12)})
    written(tmp_path, {f"pages/{n:02}.json": json.dumps({"t": f"Page {n}"}) for n in range(2)})

    async def play() -> None:
        async with served(database_url, tmp_path, ("site", "engine", "publishing")) as house:
            token = await house.token("manifests:write")
            await house.see_worker()
            scope = {"collections": ["posts", "pages"], "locales": ["fr"]}
            answer = await post(house, token, request_id="r-1", scope=scope, canary_limit=4)
            canary = answer.json()["manifest_id"]
            status = await ended(house, token, canary)
            assert (status["status"], status["counts"]["completed"]) == ("completed", 4)
            assert status["counts"]["skipped"] == 10
            page = (await house.client.get(f"{MANIFESTS}/{canary}/results", headers=token)).json()
            done = [item["document"] for item in page["items"] if item["state"] == "completed"]
            assert sorted(ref.partition("/")[0] for ref in done) == ["pages", "pages", "posts", "posts"]
            answers = [await post(house, token, f"/{canary}/promote") for _ in range(3)]
            assert {answer.status_code for answer in answers} == {202}
            [promoted] = {answer.json()["manifest_id"] for answer in answers}
            assert answers[0].json()["total"] == 10
            status = await ended(house, token, promoted)
            assert (status["status"], status["counts"]["completed"]) == ("completed", 10)
            assert status["canary"]["promotes"] == canary
            nothing = await post(house, token, f"/{promoted}/promote")
            assert (nothing.status_code, nothing.json()["code"]) == (409, "nothing_to_promote")
            forced = await post(
                house, await house.token("manifests:write", "manifests:force"),
                request_id="r-2", scope=scope, canary_limit=1, mode="force",
            )  # fmt: skip
            await ended(house, token, forced.json()["manifest_id"])
            unable = await post(house, token, f"/{forced.json()['manifest_id']}/promote")
            assert (unable.status_code, unable.json()["code"]) == (403, "forbidden")
            stranger = await house.token("manifests:write", workspace="elsewhere")
            hidden = await house.client.post(
                f"/v1/workspaces/elsewhere/manifests/{canary}/promote", headers=stranger
            )
            assert hidden.status_code == 404

    asyncio.run(play())


@pytest.mark.parametrize(
    ("written_settings", "said"),
    [
        ('[projects.a]\nsource = "http"\n', "url must be"),
        ('[projects.a]\nsource = "http"\nurl = "https://me:secret@cms.example"\n', "url must be"),
        ('[projects.a]\nsource = "http"\nurl = "ftp://cms.example"\n', "url must be"),
        ('[projects.a]\nurl = "https://cms.example"\n', "of a source http"),
        (
            '[projects.a]\nsource = "http"\nurl = "https://cms.example"\ncollections = {x = ["*"]}\n',
            "cut by the source itself",
        ),
        ('[projects.a]\nsource = "ftp"\n', "projects.a.source"),
    ],
)
def test_settings_of_a_source_that_contradict_are_refused(
    tmp_path: Path, written_settings: str, said: str
) -> None:
    """[M-301] before anything starts, and no address with a secret in it is taken."""
    (tmp_path / "dragoman.toml").write_text(written_settings)
    with pytest.raises(SettingsError, match=said) as refused:
        load(tmp_path)
    assert "secret" not in refused.value.message


def test_every_mode_works_over_a_scope(sqlite_url: str, tmp_path: Path) -> None:
    """[C-026, C-075] missing finds gaps, changed what moved, all everything; force has its own right."""
    written(tmp_path, {f"posts/{n}.json": json.dumps({"t": f"Post {n}"}) for n in range(4)})

    async def play() -> None:
        settings = {"executor": "files:v1"}
        async with served(sqlite_url, tmp_path, ("site", "engine", "publishing"), **settings) as house:
            token = await house.token("manifests:write")
            await house.see_worker()

            async def run(mode: str) -> tuple[int, int]:
                scope = {"collections": ["posts"], "locales": ["fr"]}
                answer = await post(house, token, request_id=f"r-{mode}-{len(seen)}", mode=mode, scope=scope)
                seen.append(answer.json()["manifest_id"])
                status = await ended(house, token, seen[-1])
                async with asyncio.timeout(SECONDS):
                    while status["publication"]["state"] in ("queued", "running"):
                        await asyncio.sleep(0.02)
                        status = await ended(house, token, seen[-1])
                return status["counts"]["completed"], status["counts"]["skipped"]

            seen: list[str] = []
            assert await run("missing") == (4, 0)
            assert (tmp_path / "posts/3.fr.json").exists()
            assert await run("missing") == (0, 4)
            written(tmp_path, {"posts/1.json": '{"t": "Another post"}', "posts/4.json": '{"t": "Post 4"}'})
            assert await run("changed") == (2, 3)
            (tmp_path / "posts/0.fr.json").unlink()
            assert await run("missing") == (1, 4)
            assert (await run("all"))[0] == 5
            scope = {"collections": ["posts"], "locales": ["fr"]}
            refused = await post(house, token, request_id="r-f", mode="force", scope=scope)
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")

    asyncio.run(play())
