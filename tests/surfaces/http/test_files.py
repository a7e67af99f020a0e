"""Files of a project that are sent: each change under its condition, inside the tree, behind the wall."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.kernel.identity import sha256
from dragoman.wiring.settings import ProjectSettings
from tests.surfaces.http.house import House, served

APP = {"app": ProjectSettings(source="upload")}
NOTHING, OLD, NEW = {"If-None-Match": "*"}, b"old", b"new"


def place(workspace: str = "default", project: str = "app") -> str:
    return f"/v1/workspaces/{workspace}/projects/{project}"


def when(data: bytes) -> dict[str, str]:
    return {"If-Match": f'"{sha256(data)}"'}


async def change(
    house: House, token: dict[str, str], path: str, condition: dict[str, str], data: bytes
) -> int:
    answer = await house.client.put(
        f"{place()}/file", params={"path": path}, content=data, headers={**token, **condition}
    )
    return int(answer.status_code)


def test_a_file_is_changed_only_where_it_stands_as_said(sqlite_url: str, tmp_path: Path) -> None:
    """[J-106] the same call again is done; a page of the list goes on where the one before ended."""

    async def story() -> None:
        async with served(sqlite_url, tmp_path, projects=APP) as house:
            token = await house.token("manifests:write")
            for path in ("en/b.json", "en/a.json", "c.json"):
                assert await change(house, token, path, NOTHING, OLD) == 204
                assert await change(house, token, path, NOTHING, OLD) == 204
            assert await change(house, token, "en/a.json", NOTHING, NEW) == 409
            assert await change(house, token, "en/a.json", when(NEW), NEW + OLD) == 409
            assert await change(house, token, "en/a.json", when(OLD), NEW) == 204
            assert await change(house, token, "en/a.json", {}, NEW) == 422
            page = (await house.client.get(f"{place()}/files?limit=2", headers=token)).json()
            assert [item["path"] for item in page["items"]] == ["c.json", "en/a.json"]
            assert page["items"][1]["sha256"] == sha256(NEW)
            rest = await house.client.get(f"{place()}/files", params={"after": page["next"]}, headers=token)
            assert ([item["path"] for item in rest.json()["items"]], rest.json()["next"]) == (
                ["en/b.json"],
                None,
            )
            gone = {**token, **when(OLD)}
            for _ in range(2):
                answer = await house.client.delete(f"{place()}/file?path=c.json", headers=gone)
                assert answer.status_code == 204
            answer = await house.client.get(f"{place()}/file?path=c.json", headers=token)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
            answer = await house.client.get(f"{place()}/file?path=en/a.json", headers=token)
            assert (answer.content, answer.headers["etag"]) == (NEW, f'"{sha256(NEW)}"')

    asyncio.run(story())


@pytest.mark.parametrize(
    "path",
    [
        "../a.json",
        "/a.json",
        "en/../../a.json",
        ".git/config",
        "en/.hidden",
        "a\\b",
        "en//a",
        "a\x00b",
        "out/a",
    ],
)
def test_no_path_leads_out_of_the_tree(sqlite_url: str, tmp_path: Path, path: str) -> None:
    """Neither for writing nor for reading, nor through a link."""
    tree = tmp_path / ".dragoman/trees/default/app"
    tree.mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(OLD)
    (tree / "out").symlink_to(outside)

    async def story() -> None:
        async with served(sqlite_url, tmp_path, projects=APP) as house:
            token = await house.token("manifests:write")
            assert await change(house, token, path, when(OLD), NEW) in (403, 409, 422)
            answer = await house.client.get(f"{place()}/file", params={"path": path}, headers=token)
            assert answer.status_code in (404, 422)
            assert OLD not in answer.content

    asyncio.run(story())
    assert (outside / "a").read_bytes() == OLD
    assert [file.name for file in tree.rglob("*")] == ["out"]


def test_another_workspaces_tree_and_other_projects_are_not_there(sqlite_url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with served(sqlite_url, tmp_path, projects=APP) as house:
            token = await house.token("manifests:write")
            assert await change(house, token, "a.json", NOTHING, OLD) == 204
            stranger = await house.token("manifests:write", workspace="elsewhere")
            answer = await house.client.get(f"{place('elsewhere')}/files", headers=stranger)
            assert answer.json()["items"] == []
            for where in (place(), place(project="docs")):
                answer = await house.client.get(f"{where}/file?path=a.json", headers=stranger)
                assert answer.status_code == 404
            answer = await house.client.get(f"{place(project='docs')}/files", headers=token)
            assert answer.status_code == 404

    asyncio.run(story())
