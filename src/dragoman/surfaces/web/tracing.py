"""The outermost layer of every request: it has an id, its answer has safe headers, and nothing escapes it.

A client may name its request (`X-Request-Id`); the answer and the log carry the same id.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.kernel.errors import DragomanError
from dragoman.kernel.journal import logger
from dragoman.surfaces.web.problems import render

REQUEST_ID = "X-Request-Id"

_log = logger(__name__)
_NAMED = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Traced:
    """Wraps an app: `new_id` makes the id of a request that came without one."""

    def __init__(self, app: ASGIApp, new_id: Callable[[], str]) -> None:
        self._app = app
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out one request; what nobody expected is written down and answered with its id only."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        named = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = named if _NAMED.fullmatch(named) else self._new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = request_id
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except Exception:  # noqa: BLE001 - the last door: its words are not for the caller, so they stop here
            _log.exception("request broke", request=request_id)
            if not begun:
                await render(DragomanError("unexpected"), request_id)(scope, receive, answer)
