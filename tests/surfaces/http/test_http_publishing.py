"""Translations put in place at a server, and taken back, whole: from the request to the server's files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from dragoman.kernel.errors import SettingsError
from dragoman.wiring.settings import ProjectSettings, load
from tests.conformance.test_sources import TOKEN, reference_server, running, written
from tests.doubles.proxy import Proxy
from tests.surfaces.http.house import House, served
from tests.surfaces.http.test_scopes import SECONDS, ended, post

ALL = ("site", "engine", "publishing")


async def published(house: House, token: dict[str, str], manifest_id: str, state: str) -> dict[str, Any]:
    """The status once publishing has come to rest in this state."""
    async with asyncio.timeout(SECONDS):
        while True:
            status = await ended(house, token, manifest_id)
            if status["publication"]["state"] == state:
                return status
            assert status["publication"]["state"] != "failed", status
            await asyncio.sleep(0.02)


def files(folder: Path) -> dict[str, bytes]:
    """Every translation that the server holds."""
    found = {str(place.relative_to(folder)): place.read_bytes() for place in folder.rglob("*.*")}
    return {name: data for name, data in found.items() if not name.startswith("en/")}


def test_a_project_behind_a_server_is_published_and_taken_back(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[T-044] an answer lost after the write is found out; a person's text stays, before and after; what was
    not there is removed by a revert.
    """
    monkeypatch.setenv("CMS_TOKEN", TOKEN)
    folder = tmp_path / "cms"
    written(folder, {f"en/posts/{n}.json": json.dumps({"t": f"Post {n}", "u": "More"}) for n in range(3)})
    written(folder, {"en/pages/a.md": "# A page\n\nWords.\n", "en/site.json": '{"name": "Site"}'})
    written(folder, {"fr/posts/0.json": '{"t": "Déjà là"}'})
    before = files(folder)

    async def play(url: str, proxy: Proxy) -> None:
        cms = ProjectSettings(source="http", url=url, token_variable="CMS_TOKEN", executor="http:v1")
        async with served(database_url, tmp_path, ALL, projects={"cms": cms}) as house:
            token = await house.token("manifests:write", "publications:write")
            await house.see_worker()
            lost = proxy.on(b"PUT /documents/posts/1.json?locale=fr", "cut_answer")
            scope = {"collections": ["posts", "pages"], "globals": ["site.json"], "locales": ["fr"]}
            answer = await post(house, token, request_id="r-1", project="cms", scope=scope)
            manifest = answer.json()["manifest_id"]
            status = await published(house, token, manifest, "in_place")
            assert lost.happened.is_set()
            assert status["publication"]["executor"] == "http:v1"
            there = files(folder)
            assert set(there) == {"fr/pages/a.md", "fr/site.json", *(f"fr/posts/{n}.json" for n in range(3))}
            kept = json.loads(there["fr/posts/0.json"])
            assert kept["t"] == "Déjà là"
            assert kept["u"] not in ("", "More")
            assert await puts_repeated(house) == 0
            again = await post(house, token, request_id="r-2", project="cms", scope=scope)
            status = await ended(house, token, again.json()["manifest_id"])
            assert status["counts"]["skipped"] == 5
            person = '{"t": "une personne", "u": "a écrit"}'
            written(folder, {"fr/posts/2.json": person})
            said = await post(house, token, f"/{manifest}/revert")
            assert said.status_code == 202, said.text
            async with asyncio.timeout(SECONDS):
                while await open_executions(house):
                    await asyncio.sleep(0.02)
            assert files(folder) == {**before, "fr/posts/2.json": person.encode()}
            assert TOKEN not in str(
                [await house.rows(name) for name in ("effects", "attempts", "publication_steps")]
            )

    with running(reference_server().serve(folder, 0, TOKEN)) as url:
        proxy = Proxy("127.0.0.1", urlsplit(url).port or 0)
        try:
            asyncio.run(play(f"http://127.0.0.1:{proxy.port}", proxy))
        finally:
            proxy.close()


async def puts_repeated(house: House) -> int:
    """Steps that took more than one attempt."""
    return sum(row.attempt_count > 1 for row in await house.rows("publication_steps"))


async def open_executions(house: House) -> int:
    return sum(row.open_key is not None for row in await house.rows("executions"))


@pytest.mark.parametrize(
    "said", ['source = "http"\nurl = "http://x"\nexecutor = "files:v1"', 'executor = "http:v1"']
)
def test_an_executor_that_does_not_write_to_the_source_is_refused_at_start(tmp_path: Path, said: str) -> None:
    (tmp_path / "dragoman.toml").write_text(f"[projects.a]\n{said}\n")
    with pytest.raises(SettingsError, match="does not write to a source"):
        load(tmp_path)
