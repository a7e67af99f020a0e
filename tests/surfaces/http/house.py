"""One process of ours behind its HTTP door: real services and database, workers where a test says so."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from dragoman.flow.site.admission import Admission
from dragoman.kernel.identity import secret, sha256
from dragoman.model.identities import CAPABILITIES
from dragoman.store.acts import access
from dragoman.store.rows import tenants
from dragoman.store.schema import metadata
from dragoman.store.transaction import Row, Tx
from dragoman.surfaces.http.app import build_app
from dragoman.wiring.rounds import opened
from dragoman.wiring.services import Services
from dragoman.wiring.settings import Settings
from tests.doubles.sources import MemorySource

PAIRS = [{"document": "a.json", "locale": "fr"}, {"document": "a.json", "locale": "de"}]


@dataclasses.dataclass(slots=True)
class House:
    """What a test needs: the app, a client for it, and the services below."""

    services: Services
    app: FastAPI
    client: httpx2.AsyncClient

    async def token(
        self, *capabilities: str, workspace: str = "default", actor: str = "ada"
    ) -> dict[str, str]:
        """The header of a fresh token; without capabilities named it has all of them but `admin`."""
        chosen = capabilities or [name for name in CAPABILITIES if name not in ("admin", "metrics:read")]
        return await self.exact_token(chosen, workspace, actor)

    async def exact_token(
        self, capabilities: Iterable[str], workspace: str = "default", actor: str = "ada"
    ) -> dict[str, str]:
        """The header of a fresh token with exactly these capabilities."""
        text = secret()
        await self.services.database.run(
            access.create_token, workspace, actor, sha256(text), list(capabilities)
        )
        return {"Authorization": f"Bearer {text}"}

    async def see_worker(self) -> None:
        """A worker lives, as far as the database knows."""
        await self.services.database.run(see_worker)

    async def count(self, *names: str) -> dict[str, int]:
        """How many rows these tables hold."""
        return await self.services.database.read(rows_in, names)

    async def rows(self, name: str) -> list[Row]:
        """Every row of a table."""
        return await self.services.database.read(all_rows, name)

    async def admit(self, headers: Mapping[str, str], **changes: Any) -> str:
        """The id of a manifest asked for over HTTP."""
        body = {"request_id": self.services.chance.new_id(), "pairs": PAIRS, **changes}
        answer = await self.client.post(MANIFESTS, json=body, headers=headers)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["manifest_id"])


MANIFESTS = "/v1/workspaces/default/manifests"


def see_worker(tx: Tx) -> None:
    """Write down that a worker was seen now."""
    tenants.see_worker(
        tx,
        {"id": "host/boot/1/1", "role": "all", "host": "host", "release": "0", "credentials": "[]"},
    )


def all_rows(tx: Tx, name: str) -> list[Row]:
    """Every row of a table."""
    return tx.all(sa.select(metadata.tables[name]))


def rows_in(tx: Tx, names: Iterable[str]) -> dict[str, int]:
    """Table → how many rows."""
    return {
        name: int(tx.scalar(sa.select(sa.func.count()).select_from(metadata.tables[name]))) for name in names
    }


@contextlib.asynccontextmanager
async def served(
    database_url: str, folder: Path, roles: tuple[str, ...] = (), **settings: Any
) -> AsyncIterator[House]:
    """The app over services of its own, in this event loop; `roles` says which workers run."""
    made = Settings(database_url=database_url, root=folder, state_folder=folder / ".dragoman", **settings)
    async with opened(made, roles=roles) as services:
        app = build_app(services)
        async with client_of(app) as client:
            yield House(services, app, client)


@contextlib.asynccontextmanager
async def admitting(
    database_url: str, folder: Path, source: MemorySource, **settings: Any
) -> AsyncIterator[House]:
    """As `served`, with no worker at all, though one was seen lately, and a source that counts its calls."""
    async with served(database_url, folder, **settings) as house:
        services = house.services

        async def wake() -> None:
            """Nobody is there."""

        admission = Admission(
            services.database, lambda *_: {"source_locale": "en", "mode": "missing"}, lambda _: source, wake
        )
        app = build_app(dataclasses.replace(services, admission=admission))
        await house.see_worker()
        async with client_of(app) as client:
            yield House(services, app, client)


def client_of(app: FastAPI) -> httpx2.AsyncClient:
    """A client that speaks to the app without a network."""
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=True)
    return httpx2.AsyncClient(transport=transport, base_url="http://dragoman.test", timeout=60)


@contextlib.asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[str]:
    """The app on a free port of the loopback; gives its address."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
