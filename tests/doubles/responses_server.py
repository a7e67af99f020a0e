"""A scripted Responses server; see `scripted_server`. Works in the background where it is asked to.

`bad_looks` spoils the next fetches, in turn: `cut`, `slow_down` or a status; '' spoils none.
`failed` ends it without an answer, for the reason `code`.
A response in the background is `queued`, then `in_progress` for `works` looks, then what its act says. It is
kept where `store` is true, is known by its id alone, and is gone once `forget` was called.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.doubles import vendor_rules
from tests.doubles.chat_server import error, keyless, refusal
from tests.doubles.scripted_server import ScriptedServer, Seen, main


class ResponsesServer(ScriptedServer):
    """The running server. `looks` counts fetches; `works` is how many of them find it working."""

    works = 1
    looks = 0

    def _add_routes(self, app: web.Application) -> None:
        self.bad_looks: list[str] = []
        self.canceled: list[str] = []
        self._left: dict[str, int] = {}
        app.router.add_post("/v1/responses", self._complete)
        app.router.add_get("/v1/responses/{id}", self._fetch)
        app.router.add_post("/v1/responses/{id}/cancel", self._cancel)

    def stranger(self, request: web.Request) -> web.Response | None:
        return keyless(request) if self.script.known_headers else None

    def complaint(self, request: web.Request, said: Mapping[str, Any]) -> web.Response | None:
        if not self.script.known_headers:
            return None
        wrong = vendor_rules.openai_headers(request.headers) or vendor_rules.openai_responses(said)
        return refusal(wrong)

    def question(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(said["input"][-1]["content"])
        return found

    def completion(self, act: Mapping[str, Any], seen: Seen, said: Mapping[str, Any]) -> dict[str, Any]:
        ended = self._ended(act, seen, said)
        if not said.get("background"):
            return ended
        self.stored.append(ended)
        self._left[ended["id"]] = self.works
        return _working(ended, "queued")

    def forget(self) -> None:
        """Let what was kept be gone, as after its thirty days."""
        self.stored.clear()

    def slow_down(self, seconds: float) -> web.Response:
        return error(429, "rate_limit_exceeded", {"Retry-After": str(seconds)})

    def spend_limit(self) -> web.Response:
        return error(429, "project_spend_limit_exceeded", {}, "insufficient_quota")

    def content_filter(self) -> web.Response:
        return error(400, "invalid_prompt", {})

    def wrong_key(self) -> web.Response:
        return error(401, "invalid_api_key", {})

    def _ended(self, act: Mapping[str, Any], seen: Seen, said: Mapping[str, Any]) -> dict[str, Any]:
        content, status, incomplete, failure = self._content(act, seen.question), "completed", None, None
        part: dict[str, Any] = {"type": "output_text", "text": content, "annotations": []}
        match act["act"]:
            case "length":
                status, incomplete = "incomplete", {"reason": "max_output_tokens"}
            case "stop_filter":
                part["text"] = ""
                status, incomplete = "incomplete", {"reason": "content_filter"}
            case "refusal":
                part = {"type": "refusal", "refusal": "I cannot help with that."}
            case "failed":
                status, failure = "failed", {"code": act.get("code", "server_error"), "message": "no"}
        prompt, output = len(seen.body) // 4, len(content) // 4
        return {
            "id": f"resp_{seen.number}",
            "object": "response",
            "created_at": 1_790_000_000,
            "status": status,
            "background": bool(said.get("background")),
            "error": failure,
            "incomplete_details": incomplete,
            "instructions": said.get("instructions"),
            "metadata": said.get("metadata", {}),
            "model": said["model"],
            "output": [
                {"type": "reasoning", "id": f"rs_{seen.number}", "summary": []},
                {"type": "message", "role": "assistant", "status": "completed", "content": [part]},
            ]
            if failure is None
            else [],
            "text": said.get("text"),
            "usage": None
            if failure
            else {
                "input_tokens": prompt,
                "input_tokens_details": {"cached_tokens": prompt // 2},
                "output_tokens": output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": prompt + output,
            },
        }

    async def _fetch(self, request: web.Request) -> web.Response:
        self.looks += 1
        spoiled = self.bad_looks.pop(0) if self.bad_looks else ""
        if spoiled == "slow_down":
            return error(429, "rate_limit_exceeded", {**self._marks("req_fetch"), "Retry-After": "30"})
        if spoiled.isdecimal():
            return error(int(spoiled), "server_error", self._marks("req_fetch"))
        kept = next((one for one in self.stored if one["id"] == request.match_info["id"]), None)
        if kept is None:
            return error(404, "not_found", self._marks("req_fetch"))
        self._left[kept["id"]] -= 1
        seen = kept if self._left[kept["id"]] < 0 else _working(kept, "in_progress")
        told = json.dumps(seen)
        if spoiled == "cut":
            told = told[: len(told) // 2]
        return web.Response(text=told, content_type="application/json", headers=self._marks("req_fetch"))

    async def _cancel(self, request: web.Request) -> web.Response:
        kept = next((one for one in self.stored if one["id"] == request.match_info["id"]), None)
        if kept is None:
            return error(404, "not_found", self._marks("req_cancel"))
        self.canceled.append(kept["id"])
        kept |= {"status": "cancelled", "output": [], "usage": None}
        self._left[kept["id"]] = 0
        return web.json_response(kept, headers=self._marks("req_cancel"))


def _working(ended: Mapping[str, Any], status: str) -> dict[str, Any]:
    return {**ended, "status": status, "output": [], "usage": None, "incomplete_details": None, "error": None}


if __name__ == "__main__":
    main(ResponsesServer)
