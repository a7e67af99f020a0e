"""A scripted server of the Gemini API's `generateContent`; see `scripted_server`. Keeps nothing.

A blocked prompt has `promptFeedback.blockReason` and no candidate; a candidate that was stopped for its
content has a finish reason and no parts. Errors are Google's: `code`, `message`, `status`, `details`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.doubles import vendor_rules
from tests.doubles.scripted_server import ScriptedServer, Seen, main

_FINISHES = {"length": "MAX_TOKENS", "stop_filter": "SAFETY"}
_ERROR = "type.googleapis.com/google.rpc.ErrorInfo"
_RETRY = "type.googleapis.com/google.rpc.RetryInfo"


class GeminiServer(ScriptedServer):
    """The running server."""

    root = "/v1beta"
    known_header = ""

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1beta/models/{call}", self._generate)

    def stranger(self, request: web.Request) -> web.Response | None:
        if request.headers.get("x-goog-api-key"):
            return None
        return error(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers")

    def complaint(self, request: web.Request, said: Mapping[str, Any]) -> web.Response | None:
        wrong = vendor_rules.gemini_request(said)
        return error(400, "INVALID_ARGUMENT", wrong) if wrong else None

    def question(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(said["contents"][-1]["parts"][0]["text"])
        return found

    def completion(self, act: Mapping[str, Any], seen: Seen, said: Mapping[str, Any]) -> dict[str, Any]:
        prompt = len(seen.body) // 4
        usage = {
            "promptTokenCount": prompt,
            "cachedContentTokenCount": prompt // 2,
            "totalTokenCount": prompt,
        }
        answer = {"modelVersion": "double", "responseId": f"response-{seen.number}"}
        if act["act"] == "refusal":
            return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage, **answer}
        text = self._content(act, seen.question)
        finish = act.get("finish") or _FINISHES.get(act["act"], "STOP")
        content: dict[str, Any] = {"role": "model", "parts": [{"text": text}]}
        if finish not in ("STOP", "MAX_TOKENS"):
            text, content = "", {}
        output = len(text) // 4
        usage |= {"candidatesTokenCount": output, "thoughtsTokenCount": 7}
        usage["totalTokenCount"] = prompt + output + 7
        candidate = {"content": content, "finishReason": finish, "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage, **answer}

    def slow_down(self, seconds: float) -> web.Response:
        return error(429, "RESOURCE_EXHAUSTED", details=[{"@type": _RETRY, "retryDelay": f"{seconds}s"}])

    def spend_limit(self) -> web.Response:
        return error(
            429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted. Please go to AI Studio."
        )

    def wrong_key(self) -> web.Response:
        told = {"@type": _ERROR, "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
        return error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", [told])

    def content_filter(self) -> web.Response:
        return web.json_response({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}})

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        if not request.match_info["call"].endswith(":generateContent"):
            return error(404, "NOT_FOUND")
        return await self._complete(request)


def error(status: int, kind: str, message: str = "", details: object = None) -> web.Response:
    """An error as Google puts it."""
    said: dict[str, Any] = {"code": status, "message": message or f"the server plays {kind}", "status": kind}
    if details:
        said["details"] = details
    return web.json_response({"error": said}, status=status)


if __name__ == "__main__":
    main(GeminiServer)
