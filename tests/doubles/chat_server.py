"""A scripted OpenAI-compatible chat server; see `scripted_server` for acts and scripts.

With `known_headers` it is the hosted vendor, and refuses what that refuses; else it is one of the many
servers that take more. Stores completions that ask for it and lists them by `metadata[attempt_id]`. Azure's
paths are served too: `/openai/deployments/{name}/chat/completions` wants an `api-version`, the list is at
`/openai/v1`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.doubles import vendor_rules
from tests.doubles.scripted_server import Act, Script, ScriptedServer, Seen, main, plain

__all__ = ["Act", "ChatServer", "Script", "Seen"]


class ChatServer(ScriptedServer):
    """The running server. `azure_versions` holds the `api-version` of each request to a deployment."""

    hides_answers = False
    """Whether the key may send and not read: a restricted key with the right to request alone."""

    def _add_routes(self, app: web.Application) -> None:
        self.azure_versions: list[str] = []
        for root in ("/v1", "/openai/v1"):
            app.router.add_post(f"{root}/chat/completions", self._complete)
            app.router.add_get(f"{root}/chat/completions", self._list)
        app.router.add_post("/openai/deployments/{deployment}/chat/completions", self._complete_of_deployment)

    def stranger(self, request: web.Request) -> web.Response | None:
        return keyless(request) if self.script.known_headers else None

    def complaint(self, request: web.Request, said: Mapping[str, Any]) -> web.Response | None:
        if not self.script.known_headers:
            return None
        version = request.query.get("api-version")
        wrong = vendor_rules.azure_deployment(version, said) if version else self.wrong(said)
        return refusal(vendor_rules.openai_headers(request.headers) or wrong)

    def wrong(self, said: Mapping[str, Any]) -> str:
        """What the vendor finds wrong in a body."""
        return vendor_rules.openai_chat(said)

    def question(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(said["messages"][-1]["content"])
        return found

    def completion(self, act: Mapping[str, Any], seen: Seen, said: Mapping[str, Any]) -> dict[str, Any]:
        content, finish, refusal = self._content(act, seen.question), "stop", None
        match act["act"]:
            case "length":
                finish = "length"
            case "refusal":
                content, refusal = "", "I cannot help with that."
            case "stop_filter":
                content, finish = "", "content_filter"
        prompt, output = len(seen.body) // 4, len(content) // 4
        return {
            "id": f"chatcmpl-{seen.number}",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": said["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": content, "refusal": refusal},
                    "finish_reason": finish,
                }
            ],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": output,
                "total_tokens": prompt + output,
                "prompt_tokens_details": {"cached_tokens": prompt // 2},
            },
        }

    def keep(self, completion: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        if said.get("store"):
            self.stored.append({**completion, "metadata": said.get("metadata", {})})

    def slow_down(self, seconds: float) -> web.Response:
        return error(429, "rate_limit_exceeded", {"Retry-After": str(seconds)})

    def spend_limit(self) -> web.Response:
        return error(429, "credit_balance_exhausted", {}, "insufficient_quota")

    def content_filter(self) -> web.Response:
        return error(400, "content_filter", {})

    def wrong_key(self) -> web.Response:
        return error(401, "invalid_api_key", {})

    async def _list(self, request: web.Request) -> web.Response:
        if self.hides_answers:
            return error(401, "insufficient_permissions", self._marks("req_list"))
        wanted = request.query.get("metadata[attempt_id]", "")
        kept = [one for one in self.stored if one["metadata"].get("attempt_id") == wanted]
        listing = {"object": "list", "data": kept, "has_more": False}
        return web.json_response(listing, headers=self._marks("req_list"))

    async def _complete_of_deployment(self, request: web.Request) -> web.StreamResponse:
        version = request.query.get("api-version", "")
        self.azure_versions.append(version)
        return await self._complete(request) if version else plain(404, "Resource not found", {})


def error(
    status: int, code: str, headers: Mapping[str, str], kind: str = "invalid_request_error", message: str = ""
) -> web.Response:
    """An error as OpenAI puts it."""
    said = {"message": message or f"the server plays {code}", "type": kind, "param": None, "code": code}
    return web.json_response({"error": said}, status=status, headers=headers)


def refusal(wrong: str) -> web.Response | None:
    """The answer to a request with something wrong in it."""
    return error(400, "invalid_value", {}, message=wrong) if wrong else None


def keyless(request: web.Request) -> web.Response | None:
    """The answer to a request without a key."""
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    return None if bearer or request.headers.get("api-key") else error(401, "invalid_api_key", {})


if __name__ == "__main__":
    main(ChatServer)
