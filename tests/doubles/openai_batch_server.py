"""A scripted server of OpenAI's files and batches beside its chats; see `scripted_server`.

The act of a batch is its one request's: it is worked when the batch is made, and shown once `works` looks
have found it `in_progress`. Acts that spoil a plain answer (`close`, `lost`, `status`, `silent` …) spoil the
answer to the making of the batch. Beside them there are

    expire         the day is over, the request was not worked    expire_done   it was, and is paid for
    line_error     the line's own error, of `status` and `body`   invalid       the whole batch is refused
    vanish         the batch has ended, and its files are gone

A batch that is canceled before it has ended has worked nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.doubles import vendor_rules
from tests.doubles.chat_server import ChatServer, error
from tests.doubles.scripted_server import Seen, main

BATCH_ACTS = frozenset({"expire", "expire_done", "line_error", "invalid", "vanish"})


class OpenAIBatchServer(ChatServer):
    """The running server. `calls` holds the batches that were made, each as the request of its one line."""

    works = 1
    looks = 0
    winds_down = 1
    """How many looks find a batch working that was canceled."""

    def _add_routes(self, app: web.Application) -> None:
        super()._add_routes(app)
        self.files: dict[str, bytes] = {}
        self.uploads: list[dict[str, str]] = []
        self.batches: dict[str, dict[str, Any]] = {}
        self.canceled: list[str] = []
        self.refuse_uploads = 0
        self._left: dict[str, int] = {}
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._content_of_file)
        app.router.add_post("/v1/batches", self._complete)
        app.router.add_get("/v1/batches", self._list_batches)
        app.router.add_get("/v1/batches/{id}", self._look)
        app.router.add_post("/v1/batches/{id}/cancel", self._cancel)

    def wrong(self, said: Mapping[str, Any]) -> str:
        if "input_file_id" not in said:
            return super().wrong(said)
        return vendor_rules.openai_batch(said, [self._line(said)])

    def question(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        if "input_file_id" not in said:
            return super().question(said)
        return super().question(self._line(said)["body"])

    def completion(self, act: Mapping[str, Any], seen: Seen, said: Mapping[str, Any]) -> dict[str, Any]:
        if "input_file_id" not in said:
            return super().completion(act, seen, said)
        line, name = self._line(said), f"batch_{seen.number}"
        batch = {
            "id": name,
            "object": "batch",
            "endpoint": said["endpoint"],
            "input_file_id": said["input_file_id"],
            "completion_window": "24h",
            "status": "completed",
            "created_at": int(time.time()),
            "output_file_id": None,
            "error_file_id": None,
            "errors": None,
            "metadata": said.get("metadata"),
        }
        self.batches[name] = batch | self._end(act, seen, line, name)
        self._left[name] = self.works
        return batch | {"status": "validating"}

    def hasten(self) -> None:
        """Let every batch have ended."""
        self._left = dict.fromkeys(self._left, 0)

    def _end(self, act: Mapping[str, Any], seen: Seen, line: Mapping[str, Any], name: str) -> dict[str, Any]:
        answer = super().completion(act, seen, line["body"])
        status, output = act.get("status", 200), act.get("body", answer)
        told: dict[str, Any] = {
            "id": f"batch_req_{seen.number}",
            "custom_id": line["custom_id"],
            "response": {"status_code": status, "request_id": f"req_{seen.number}", "body": output},
            "error": None,
        }
        match act["act"]:
            case "invalid":
                failure = {"code": act.get("code", "invalid_json_line"), "message": "no", "line": 1}
                return {"status": "failed", "errors": {"object": "list", "data": [failure]}}
            case "expire":
                expired = {"code": "batch_expired", "message": "not worked in time"}
                self.files[f"err_{name}"] = _lines(told | {"response": None, "error": expired})
                return {"status": "expired", "error_file_id": f"err_{name}"}
            case "expire_done":
                self.files[f"out_{name}"] = _lines(told)
                return {"status": "expired", "output_file_id": f"out_{name}"}
            case "line_error":
                self.files[f"err_{name}"] = _lines(told)
                return {"error_file_id": f"err_{name}"}
            case "vanish":
                return {"output_file_id": f"out_{name}"}
        self.files[f"out_{name}"] = _lines(told)
        return {"output_file_id": f"out_{name}"}

    def _line(self, said: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.files[said["input_file_id"]])
        return found

    async def _upload(self, request: web.Request) -> web.Response:
        if self.refuse_uploads:
            self.refuse_uploads -= 1
            return error(500, "server_error", {})
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        name, lines = f"file-{len(self.files) + 1}", file.file.read()
        fields = {key: value for key, value in form.items() if isinstance(value, str)}
        wrong = vendor_rules.openai_file(fields, file.filename, [*map(json.loads, lines.splitlines())])
        if wrong:
            return error(400, "invalid_file", self._marks("req_file"), message=wrong)
        self.files[name] = lines
        self.uploads.append(fields)
        return self._told({"id": name, "object": "file", "purpose": form["purpose"]})

    async def _content_of_file(self, request: web.Request) -> web.Response:
        kept = self.files.get(request.match_info["id"])
        if kept is None:
            return error(404, "not_found", self._marks("req_file"))
        return web.Response(body=kept, content_type="application/jsonl", headers=self._marks("req_file"))

    async def _list_batches(self, request: web.Request) -> web.Response:
        if self.hides_answers:
            return error(401, "insufficient_permissions", self._marks("req_list"))
        newest = list(reversed(self.batches))
        after = request.query.get("after")
        start = newest.index(after) + 1 if after else 0
        page = newest[start : start + int(request.query.get("limit", "20"))]
        listed = [self._seen(name) for name in page]
        has_more = start + len(page) < len(newest)
        return self._told({"object": "list", "data": listed, "has_more": has_more})

    async def _look(self, request: web.Request) -> web.Response:
        self.looks += 1
        name = request.match_info["id"]
        if name not in self.batches:
            return error(404, "not_found", self._marks("req_look"))
        return self._told(self._seen(name))

    async def _cancel(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if name not in self.batches:
            return error(404, "not_found", self._marks("req_cancel"))
        self.canceled.append(name)
        if self._left[name] > 0:
            self._left[name] = self.winds_down
            self.batches[name] |= {"status": "cancelled", "output_file_id": None, "error_file_id": None}
        return self._told(self.batches[name])

    def _seen(self, name: str) -> dict[str, Any]:
        batch = self.batches[name]
        self._left[name] -= 1
        if self._left[name] < 0:
            return batch
        return batch | {
            "status": "in_progress",
            "output_file_id": None,
            "error_file_id": None,
            "errors": None,
        }

    def _told(self, said: Mapping[str, Any]) -> web.Response:
        return web.json_response(said, headers=self._marks("req_batch"))


def _lines(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line).encode() + b"\n"


if __name__ == "__main__":
    main(OpenAIBatchServer)
