"""A scripted server of Anthropic's Message Batches beside its messages; see `scripted_server`.

Acts as in `openai_batch_server`: `expire`, `line_error` with the error's `type`, `vanish`; what spoils a
plain answer spoils that to the making of the batch. Batches are listed newest first, without custom ids.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from tests.doubles import vendor_rules
from tests.doubles.anthropic_server import AnthropicServer, error
from tests.doubles.scripted_server import Seen, main


class AnthropicBatchServer(AnthropicServer):
    """The running server. `calls` holds the batches that were made, one request each."""

    works = 1
    looks = 0
    winds_down = 1
    """How many looks find a batch working that was canceled."""

    def _add_routes(self, app: web.Application) -> None:
        super()._add_routes(app)
        self.batches: dict[str, dict[str, Any]] = {}
        self.results: dict[str, bytes] = {}
        self.canceled: list[str] = []
        self._left: dict[str, int] = {}
        app.router.add_post("/v1/messages/batches", self._complete)
        app.router.add_get("/v1/messages/batches", self._list_batches)
        app.router.add_get("/v1/messages/batches/{id}", self._look)
        app.router.add_get("/v1/messages/batches/{id}/results", self._results)
        app.router.add_post("/v1/messages/batches/{id}/cancel", self._cancel)

    def wrong(self, said: Mapping[str, Any], removed: Collection[str]) -> str:
        if "requests" not in said:
            return super().wrong(said, removed)
        return vendor_rules.anthropic_batch(said, removed)

    def question(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        return super().question(said["requests"][0]["params"] if "requests" in said else said)

    def completion(self, act: Mapping[str, Any], seen: Seen, said: Mapping[str, Any]) -> dict[str, Any]:
        if "requests" not in said:
            return super().completion(act, seen, said)
        [asked] = said["requests"]
        name, counted = f"msgbatch_{seen.number}", "succeeded"
        result: dict[str, Any] = {"type": counted, "message": super().completion(act, seen, asked["params"])}
        if act["act"] == "expire":
            counted, result = "expired", {"type": "expired"}
        elif act["act"] == "line_error":
            counted = "errored"
            said_error = {"type": act["type"], "message": act.get("message", "no")}
            result = {"type": "errored", "error": {"type": "error", "error": said_error}}
        if act["act"] != "vanish":
            self.results[name] = _lines(asked["custom_id"], result)
        batch = {
            "id": name,
            "type": "message_batch",
            "processing_status": "ended",
            "request_counts": dict.fromkeys(_COUNTS, 0) | {counted: 1},
            "created_at": datetime.now(UTC).isoformat(),
            "results_url": f"https://api.example/v1/messages/batches/{name}/results",
        }
        self.batches[name] = batch
        self._left[name] = self.works
        return _working(batch)

    def hasten(self) -> None:
        """Let every batch have ended."""
        self._left = dict.fromkeys(self._left, 0)

    async def _list_batches(self, request: web.Request) -> web.Response:
        newest, after = list(reversed(self.batches)), request.query.get("after_id")
        start, limit = newest.index(after) + 1 if after else 0, int(request.query.get("limit", "20"))
        if not 1 <= limit <= _PAGE_MAX:
            return error(400, "invalid_request_error", self._marks("req_list"))
        page = newest[start : start + limit]
        listing: dict[str, Any] = {"data": [self._seen(name) for name in page]}
        ends = {"first_id": page[0], "last_id": page[-1]} if page else {"first_id": None, "last_id": None}
        return self._told(listing | ends | {"has_more": start + len(page) < len(newest)})

    async def _look(self, request: web.Request) -> web.Response:
        self.looks += 1
        name = request.match_info["id"]
        if name not in self.batches:
            return error(404, "not_found_error", self._marks("req_look"))
        return self._told(self._seen(name))

    async def _results(self, request: web.Request) -> web.Response:
        kept = self.results.get(request.match_info["id"])
        if kept is None:
            return error(404, "not_found_error", self._marks("req_results"))
        return web.Response(body=kept, content_type="application/x-jsonl", headers=self._marks("req_results"))

    async def _cancel(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if name not in self.batches:
            return error(404, "not_found_error", self._marks("req_cancel"))
        self.canceled.append(name)
        if self._left[name] > 0:
            self._left[name] = self.winds_down
            custom_id = json.loads(self.results[name])["custom_id"]
            self.results[name] = _lines(custom_id, {"type": "canceled"})
        return self._told(self.batches[name] | {"processing_status": "canceling"})

    def _seen(self, name: str) -> dict[str, Any]:
        self._left[name] -= 1
        return self.batches[name] if self._left[name] < 0 else _working(self.batches[name])

    def _told(self, said: Mapping[str, Any]) -> web.Response:
        return web.json_response(said, headers=self._marks("req_batch"))


_PAGE_MAX = 1_000
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")


def _working(batch: Mapping[str, Any]) -> dict[str, Any]:
    counts = dict.fromkeys(_COUNTS, 0) | {"processing": 1}
    return {**batch, "processing_status": "in_progress", "request_counts": counts, "results_url": None}


def _lines(custom_id: str, result: Mapping[str, Any]) -> bytes:
    return json.dumps({"custom_id": custom_id, "result": result}).encode() + b"\n"


if __name__ == "__main__":
    main(AnthropicBatchServer)
