"""A manifest's status as it changes: server-sent events, resumed from the database.

Each event is the whole status, and its id says which one: what a client has missed is told by the next event,
from whatever process it asks. Nothing is kept for a stream, and none writes anything. A stream looks once a
second, says that it lives every fifteen, and ends with the manifest, with its token, with the process, and
after half an hour at the latest; a client that asks again then goes on where it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import Response, StreamingResponse

from dragoman.kernel import limits
from dragoman.kernel.errors import CallerError, StoreError
from dragoman.kernel.identity import sha256
from dragoman.model.identities import Identity
from dragoman.store.acts import access
from dragoman.surfaces.http.contract import refuses
from dragoman.surfaces.web.bearer import Allowed, TheServices, see_manifest
from dragoman.wiring.services import Services

router = APIRouter(prefix="/v1/workspaces/{workspace}/manifests", tags=["manifests"])

Reader = Annotated[Identity, Depends(Allowed())]

_TYPE = "text/event-stream"
_HEADERS = {"X-Accel-Buffering": "no"}
_OPENED = b"retry: 3000\n\n"
_HEARTBEAT = b": heartbeat\n\n"
_EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
}
_EXAMPLE = {"id": "5d41402abc4b2a76b9719d911017c592", "event": "status", "data": '{"status": "queued"}'}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `status`, each with the status as it then was, and `end` after the last one.",
        "content": {_TYPE: {"schema": _EVENT, "example": _EXAMPLE}},
    },
    204: {"description": "It has ended, and the event in `Last-Event-ID` was the last one."},
}


@router.get(
    "/{manifest_id}/events",
    response_class=Response,
    responses={**_STREAM, **refuses("rate_limited")},
)
async def stream_manifest(
    request: Request,
    workspace: str,
    manifest_id: str,
    identity: Reader,
    services: TheServices,
    last_event_id: Annotated[str | None, Header(description="The id of the last event seen.")] = None,
) -> Response:
    """The manifest's status now, and again whenever it has changed, until it ends."""
    await see_manifest(services, identity, manifest_id)
    seen = last_event_id or ""
    if seen:
        status = await services.views.status(workspace, manifest_id, identity.actor)
        if _is_over(status) and _id_of(status) == seen:
            return Response(status_code=204)
    streams: set[object] = request.app.state.streams
    if len(streams) >= limits.STREAMS_MAX:
        raise CallerError("too many streams are open at this process", "rate_limited")
    token = request.headers.get("authorization", "").partition(" ")[2].strip()
    watched = _Watched(services, request, manifest_id, identity, sha256(token))
    return StreamingResponse(_counted(streams, watched, seen), media_type=_TYPE, headers=_HEADERS)


class _Watched:
    """One manifest, looked at for one reader."""

    def __init__(
        self, services: Services, request: Request, manifest_id: str, reader: Identity, hashed_token: str
    ) -> None:
        self._services = services
        self._request = request
        self._manifest_id = manifest_id
        self._reader = reader
        self._hashed_token = hashed_token

    async def events(self, seen: str) -> AsyncIterator[bytes]:
        """Events from the one after `seen` on. What the database cannot say now, the next stream says."""
        now = self._services.clock.monotonic
        until = now() + limits.STREAM_SECONDS_MAX
        yield _OPENED
        spoke_at = now()
        with contextlib.suppress(StoreError):
            while now() < until:
                status = await self._look()
                fresh = _id_of(status)
                if fresh != seen:
                    seen, spoke_at = fresh, now()
                    yield _event(fresh, "status", status)
                if _is_over(status):
                    yield _event(fresh, "end", {})
                    return
                if now() - spoke_at >= limits.STREAM_HEARTBEAT_SECONDS:
                    if not await self._may_still_look():
                        return
                    spoke_at = now()
                    yield _HEARTBEAT
                if await self._stops():
                    return

    async def _look(self) -> dict[str, Any]:
        reader = self._reader
        return await self._services.views.status(reader.workspace, self._manifest_id, reader.actor)

    async def _may_still_look(self) -> bool:
        return await self._services.database.read(access.find_token, self._hashed_token) == self._reader

    async def _stops(self) -> bool:
        """Wait until it is time to look again; True where the process is to stop, or nobody listens."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._services.stopping.wait(), limits.STREAM_LOOK_SECONDS)
        return self._services.stopping.is_set() or await self._request.is_disconnected()


async def _counted(streams: set[object], watched: _Watched, seen: str) -> AsyncIterator[bytes]:
    streams.add(watched)
    try:
        async for event in watched.events(seen):
            yield event
    finally:
        streams.discard(watched)


def _is_over(status: dict[str, Any]) -> bool:
    return status["completed_at"] is not None and status["publication"]["state"] not in ("queued", "running")


def _id_of(status: dict[str, Any]) -> str:
    """Which status this is: two that say the same are one."""
    return sha256(_json(status))[:32]


def _event(event_id: str, name: str, body: dict[str, Any]) -> bytes:
    return f"id: {event_id}\nevent: {name}\ndata: ".encode() + _json(body) + b"\n\n"


def _json(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
