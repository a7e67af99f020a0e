"""A scripted server of Anthropic's Messages API; see `scripted_server`.

Wants the headers and members that its documentation wants, refuses those that version 2026-10-21 removed, and
keeps nothing. Errors are `{"type": "error", "error": {…}, "request_id": …}`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from aiohttp import web

from tests.doubles import vendor_rules
from tests.doubles.scripted_server import ScriptedServer, Seen, main

REMOVED = frozenset({"temperature", "top_p", "top_k"})
_STOPS = {"length": "max_tokens", "refusal": "refusal", "stop_filter": "refusal"}


class AnthropicServer(ScriptedServer):
    """The running server."""

    root = ""
    known_header = "request-id"

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/messages", self._complete)

    def stranger(self, request: web.Request) -> web.Response | None:
        if not request.headers.get("x-api-key"):
            return error(401, "authentication_error")
        wrong = vendor_rules.anthropic_headers(request.headers)
        return error(400, "invalid_request_error", message=wrong) if wrong else None

    def complaint(self, request: web.Request, said: Mapping[str, Any]) -> web.Response | None:
        removed = REMOVED if request.headers["anthropic-version"] >= "2026-10-21" else ()
        wrong = self.wrong(said, removed)
        return error(400, "invalid_request_error", message=wrong) if wrong else None

    def wrong(self, said: Mapping[str, Any], removed: Collection[str]) -> str:
        """What the vendor finds wrong in a body."""
        return vendor_rules.anthropic_message(said, removed)

    def question(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(said["messages"][-1]["content"])
        return found

    def completion(self, act: Mapping[str, Any], seen: Seen, said: Mapping[str, Any]) -> dict[str, Any]:
        content = "" if act["act"] in ("refusal", "stop_filter") else self._content(act, seen.question)
        prompt, output = len(seen.body) // 4, len(content) // 4
        return {
            "id": f"msg_{seen.number}",
            "type": "message",
            "role": "assistant",
            "model": said["model"],
            "content": [{"type": "text", "text": content}] if content else [],
            "stop_reason": _STOPS.get(act["act"], "end_turn"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": prompt - prompt // 2 - prompt // 4,
                "cache_read_input_tokens": prompt // 2,
                "cache_creation_input_tokens": prompt // 4,
                "output_tokens": output,
                "service_tier": "standard",
            },
        }

    def slow_down(self, seconds: float) -> web.Response:
        return error(429, "rate_limit_error", {"retry-after": str(seconds)})

    def spend_limit(self) -> web.Response:
        return error(429, "rate_limit_error", details={"error_code": "enforced_spend_limit_reached"})

    def wrong_key(self) -> web.Response:
        return error(401, "authentication_error", message="invalid x-api-key")

    def content_filter(self) -> web.Response:
        return web.json_response(
            {
                "id": "msg_refused",
                "type": "message",
                "role": "assistant",
                "content": [],
                "stop_reason": "refusal",
                "usage": {"input_tokens": 9, "output_tokens": 0},
            }
        )


def error(
    status: int,
    kind: str,
    headers: Mapping[str, str] | None = None,
    details: object = None,
    message: str = "",
) -> web.Response:
    """An error as Anthropic puts it."""
    said: dict[str, Any] = {"type": kind, "message": message or f"the server plays {kind}"}
    if details:
        said["details"] = details
    body = {"type": "error", "error": said, "request_id": "req_x"}
    return web.json_response(body, status=status, headers=headers)


if __name__ == "__main__":
    main(AnthropicServer)
