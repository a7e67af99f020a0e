"""Live events of a manifest, over a real connection: pushed, resumed, kept alive, bounded, closed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.kernel import limits
from dragoman.model.scopes import Workspace
from dragoman.store.acts import access
from tests.surfaces.http.house import MANIFESTS, House, listening, served
from tests.surfaces.http.test_manifests import ALL_ROLES, write_documents


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks and heartbeats come at once: no test waits for seconds."""
    monkeypatch.setattr(limits, "STREAM_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(limits, "STREAM_HEARTBEAT_SECONDS", 0.05)


class Ear:
    """One client that listens, as a browser's EventSource does."""

    def __init__(self, response: httpx2.Response) -> None:
        self._chunks = response.aiter_text()
        self._rest = ""

    async def blocks(self) -> AsyncIterator[str]:
        """Blocks as they come, comments too."""
        async for chunk in self._chunks:
            self._rest += chunk
            while "\n\n" in self._rest:
                block, _, self._rest = self._rest.partition("\n\n")
                yield block

    async def events(self) -> AsyncIterator[tuple[str, str, Any]]:
        """(id, event, data) of each event."""
        async for block in self.blocks():
            lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if "event" in lines:
                yield lines["id"], lines["event"], json.loads(lines["data"])


@contextlib.asynccontextmanager
async def listen(address: str, path: str, headers: dict[str, str]) -> AsyncIterator[httpx2.Response]:
    """An open stream; whoever leaves the block hangs up."""
    async with (
        httpx2.AsyncClient(base_url=address, timeout=30) as client,
        client.stream("GET", path, headers=headers) as response,
    ):
        yield response


async def admitted(house: House, folder: Path, token: dict[str, str], count: int = 1) -> str:
    """The path of a manifest over some documents."""
    await house.see_worker()
    pairs = [{"document": name, "locale": "fr"} for name in write_documents(folder, count)]
    return f"{MANIFESTS}/{await house.admit(token, pairs=pairs)}"


def test_a_stream_tells_each_change_and_ends_with_the_manifest(database_url: str, tmp_path: Path) -> None:
    """The first event is where it stands, the last one where it ended; asked again there is nothing more."""

    async def story() -> None:
        async with served(database_url, tmp_path, roles=ALL_ROLES) as house, listening(house.app) as address:
            token = await house.token()
            path = await admitted(house, tmp_path, token, 5)
            heard: list[tuple[str, str, Any]] = []
            async with asyncio.timeout(60), listen(address, f"{path}/events", token) as response:
                assert response.status_code == 200
                assert response.headers["content-type"].startswith("text/event-stream")
                assert response.headers["cache-control"] == "no-store"
                heard = [event async for event in Ear(response).events()]
            statuses = [data for _, name, data in heard if name == "status"]
            assert [name for _, name, _ in heard] == ["status"] * len(statuses) + ["end"]
            assert all(before != after for before, after in pairwise(statuses))
            assert statuses[-1]["status"] == "completed"
            assert statuses[-1]["counts"]["completed"] == 5
            shown = (await house.client.get(path, headers=token)).json()
            assert {name: shown[name] for name in statuses[-1]} == statuses[-1]
            again = {**token, "Last-Event-ID": heard[-1][0]}
            assert (await house.client.get(f"{path}/events", headers=again)).status_code == 204

    asyncio.run(story())


def test_a_stream_goes_on_from_the_last_event_in_another_process(database_url: str, tmp_path: Path) -> None:
    """Nothing is kept for a client: whoever is asked reads the database, also after a restart."""

    async def story() -> None:
        async with served(database_url, tmp_path) as house:
            token = await house.token()
            path = await admitted(house, tmp_path, token)
            async with listening(house.app) as address, listen(address, f"{path}/events", token) as first:
                ear = Ear(first)
                seen, name, _ = await anext(ear.events())
                assert name == "status"
                house.services.stopping.set()
        async with served(database_url, tmp_path) as house, listening(house.app) as address:
            again = {**token, "Last-Event-ID": seen}
            async with asyncio.timeout(60), listen(address, f"{path}/events", again) as second:
                ear = Ear(second)
                assert (await anext(ear.blocks())).startswith("retry:")
                assert await anext(ear.blocks()) == ": heartbeat", "what was seen is not told again"
                assert (await house.client.post(f"{path}/pause", headers=token)).status_code == 202
                fresh, _, data = await anext(ear.events())
                assert (data["status"], fresh != seen) == ("paused", True)
                house.services.stopping.set()

    asyncio.run(story())


def test_a_stream_closes_when_the_process_stops_and_when_its_token_is_revoked(
    sqlite_url: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house, listening(house.app) as address:
            token = await house.token()
            path = await admitted(house, tmp_path, token)
            database = house.services.database
            async with asyncio.timeout(60), listen(address, f"{path}/events", token) as response:
                ear = Ear(response)
                await anext(ear.events())
                (kept,) = await database.read(access.list_tokens, Workspace("default"))
                assert await database.run(access.revoke_token, "default", kept.id)
                assert [event async for event in ear.events()] == []
            fresh = await house.token()
            async with asyncio.timeout(60), listen(address, f"{path}/events", fresh) as response:
                ear = Ear(response)
                await anext(ear.events())
                house.services.stopping.set()
                assert [event async for event in ear.events()] == []

    asyncio.run(story())


def test_streams_are_bounded_and_one_that_goes_makes_room(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STREAMS_MAX", 2)

    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house, listening(house.app) as address:
            token = await house.token()
            path = await admitted(house, tmp_path, token)
            async with listen(address, f"{path}/events", token) as one:
                ear = Ear(one)
                await anext(ear.events())
                async with listen(address, f"{path}/events", token) as two:
                    another = Ear(two)
                    await anext(another.events())
                    refused = await house.client.get(f"{path}/events", headers=token)
                    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
                    assert refused.headers["retry-after"]
            streams: set[object] = house.app.state.streams
            async with asyncio.timeout(60):
                while streams:
                    await asyncio.sleep(0.01)
            house.services.stopping.set()

    asyncio.run(story())


def test_another_actors_stream_is_not_found(sqlite_url: str, tmp_path: Path) -> None:
    """[M-125] the same 404 as for an id that nobody has."""

    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            path = await admitted(house, tmp_path, await house.token())
            grace = {**await house.token("manifests:write", actor="grace"), "X-Request-Id": "same"}
            unknown = f"{MANIFESTS}/0199d3f0-4a1b-7c55-9c1e-3a7f6f2b8d10"
            foreign = await house.client.get(f"{path}/events", headers=grace)
            nobodys = await house.client.get(f"{unknown}/events", headers=grace)
            assert foreign.status_code == nobodys.status_code == 404
            assert foreign.text.replace(path.rsplit("/", 1)[1], unknown.rsplit("/", 1)[1]) == nobodys.text

    asyncio.run(story())
