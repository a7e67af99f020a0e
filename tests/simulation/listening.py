"""What listens at a host of a world: the product's own HTTP app, asked without a socket.

The app is made once, and answers for whichever process the request came to.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fastapi import FastAPI

from dragoman.surfaces.http.app import build_app
from dragoman.surfaces.web.bearer import services_of
from dragoman.wiring.services import Services

_HERE: ContextVar[Services] = ContextVar("_HERE")
"""The parts of the process that answers."""
_ID_CHARS = 36


class Request(NamedTuple):
    """What is sent."""

    method: str
    origin: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @classmethod
    def to(cls, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Request:
        """A request to this URL."""
        at = urlsplit(url)
        origin = f"{at.scheme}://{at.netloc}"
        return cls(method, origin, at.path, at.query, tuple(headers.items()), body or b"")

    @property
    def place(self) -> str:
        """Its path without ids, for the story."""
        return "/".join("…" if len(part) == _ID_CHARS else part for part in self.path.split("/"))


class Answered(NamedTuple):
    """What is answered; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def answer(services: Services, request: Request) -> Answered:
    """What a process with these parts answers."""
    _HERE.set(services)
    status, headers, pieces = 0, dict[str, str](), list[bytes]()

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            headers.update({name.decode("latin-1").lower(): value.decode("latin-1")
                            for name, value in message["headers"]})  # fmt: skip
        pieces.append(message.get("body", b""))

    await _app()(_scope(request), receive, send)  # type: ignore[arg-type]
    return Answered(status, headers, b"".join(pieces))


def _scope(request: Request) -> dict[str, Any]:
    said = [*request.headers, ("content-length", str(len(request.body)))]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "https",
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": request.query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in said],
        "client": ("192.0.2.1", 40_000),
        "server": (urlsplit(request.origin).netloc, 443),
    }


@functools.cache
def _app() -> FastAPI:
    app = build_app(SimpleNamespace(chance=SimpleNamespace(new_id=_new_id)))  # type: ignore[arg-type]
    app.state.schema_is_current = True
    app.dependency_overrides[services_of] = _services
    return app


async def _services() -> Services:
    """Not in a thread of its own, as what waits for nothing would be."""
    return _HERE.get()


def _new_id() -> str:
    return _HERE.get().chance.new_id()
