"""A server that admits: `python -m bench.admission_server {ours|minimal} URL` prints address, token and pid.

`ours` is the whole HTTP door over open services; no worker runs, so that nothing but admission is measured.
`minimal` is FastAPI with pydantic, canonical bytes by rfc8785, their SHA-256, and one row.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import sys
from collections.abc import Callable
from typing import Annotated, Any

import psycopg
import rfc8785
import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, Field

from bench.places import folder
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance, secret, sha256
from dragoman.kernel.offload import ThreadOffload
from dragoman.model.identities import CAPABILITIES
from dragoman.store.acts import access, leasing
from dragoman.store.database import Database
from dragoman.surfaces.http.app import build_app
from dragoman.wiring.services import assemble
from dragoman.wiring.settings import load

_TABLE = "CREATE TABLE admitted (id VARCHAR(36) PRIMARY KEY, digest VARCHAR(64), payload TEXT)"
_INSERT = "INSERT INTO admitted VALUES ({0}, {0}, {0})"

Store = Callable[[tuple[str, str, str]], object]


class Pair(BaseModel):
    """A document and a locale."""

    document: Annotated[str, Field(min_length=1, max_length=512)]
    locale: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]


class Asked(BaseModel):
    """A request for translations."""

    request_id: str
    project: str
    pairs: Annotated[list[Pair], Field(min_length=1, max_length=100_000)]


def minimal(url: str) -> FastAPI:
    """The peer."""
    app, store = FastAPI(), _store(url)

    @app.post("/manifests", status_code=202)
    def admit(asked: Asked) -> dict[str, Any]:
        canonical = rfc8785.dumps(asked.model_dump())
        digest = hashlib.sha256(canonical).hexdigest()
        manifest_id = SystemChance().new_id()
        store((manifest_id, digest, canonical.decode()))
        return {"manifest_id": manifest_id, "total": len(asked.pairs)}

    return app


def _store(url: str) -> Store:
    """Writes one row, durably, on one connection."""
    address = sa.make_url(url)
    if address.get_backend_name() == "sqlite":
        file = sqlite3.connect(str(address.database), isolation_level=None, check_same_thread=False)
        file.execute("PRAGMA synchronous=FULL")
        file.execute(_TABLE)
        return lambda row: file.execute(_INSERT.format("?"), row)
    plain = address.set(drivername="postgresql").render_as_string(hide_password=False)
    server = psycopg.connect(plain, autocommit=True)
    server.execute(_TABLE)
    return lambda row: server.execute(_INSERT.format("%s"), row)


async def serve(kind: str, url: str) -> None:
    """Serve on a free port until terminated."""
    if kind == "minimal":
        await _listen(minimal(url), "/manifests", "")
        return
    clock, chance = SystemClock(), SystemChance()
    with folder() as place:
        settings = load(place, database_url=url)
        database = await Database.open(url, clock=clock, chance=chance)
        services = assemble(settings, database, clock, chance, ThreadOffload())
        token = secret()
        await database.run(access.create_token, settings.workspace, "bench", sha256(token), CAPABILITIES)
        life = {"id": services.keeper.owner, "role": "site", "host": "", "release": "", "credentials": "[]"}
        await database.run(leasing.see_worker, life)
        await _listen(build_app(services), f"/v1/workspaces/{settings.workspace}/manifests", token)
        await services.close()


async def _listen(app: FastAPI, path: str, token: str) -> None:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}{path} {token or '-'} {os.getpid()}", flush=True)
    await serving


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2]))
