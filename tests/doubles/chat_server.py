"""A scripted OpenAI-compatible server: answers, spoils, cuts, hangs and breaks on cue; records every request.

In a test: `async with ChatServer(["translate", "close"]) as server: … server.url … server.calls`. As a
process of its own, for tests that kill their client: `python -m tests.doubles.chat_server --port 0
--script script.json --log calls.jsonl` prints its base URL on the first line and appends one JSON line a
moment (`received`, `answered`). `GET /moments/{received|answered}/{n}` answers once that moment has come,
`POST /release` ends hangs.

A script is a list of acts, the first for the first call; what comes after the last is `then`. An act is a
name or an object `{"act": name, …}`:

    translate      by dictionary, else "<locale> <text>"; `replace` {"old": "new"} spoils texts
    echo           the source texts
    omit           without the item at `index`            duplicate   the item at `index` twice
    length         finish_reason length, the JSON cut inside the item at `index`
    garbage        200, and no JSON
    status         `status`, `body`, `headers`             slow_down   429, Retry-After `retry_after`
    spend_limit    429 insufficient_quota                  content_filter  400 content_filter
    refusal        200 with a refusal                      stop_filter 200 with finish_reason content_filter
    hang           accepted, answered after release        silent      accepted, never answered
    close, reset   the connection ends after the request was read, by FIN or RST
    cut            the head and a `share` of the body, then the connection ends

`seconds` on any act waits before the answer, `content` takes the place of the message's content. `rules`
come before the acts and take no turn of theirs: `{"contains": text, "act": …}` for questions with such a
text, `{"items_over": n, "act": …}` for larger ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

Act = str | Mapping[str, Any]


@dataclass(frozen=True)
class Seen:
    """One request as it came."""

    number: int
    act: str
    headers: Mapping[str, str]
    body: bytes
    question: Mapping[str, Any]
    client_port: int
    """Names the connection that it came on."""

    @property
    def attempt_id(self) -> str:
        return self.headers.get("x-client-request-id", "")

    @property
    def texts(self) -> list[str]:
        return [item["text"] for item in self.question["items"]]


@dataclass
class Script:
    """What the server does with its calls, in order."""

    acts: Sequence[Act] = ()
    then: Act = "translate"
    rules: Sequence[Mapping[str, Any]] = ()
    dictionary: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """Waited before every answer."""
    known_headers: bool = False
    """Whether answers carry `x-request-id`, as the hosted vendor's do."""

    def act(self, turn: int, question: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """The act for a question, and whether it took a turn."""
        texts = [item["text"] for item in question["items"]]
        for rule in self.rules:
            hit = any(rule.get("contains", "\0") in text for text in texts)
            if hit or len(texts) > rule.get("items_over", len(texts)):
                return _spelled(rule["act"]), False
        return _spelled(self.acts[turn] if turn < len(self.acts) else self.then), True


class ChatServer:
    """The running server. `calls` holds each completion request that was read to its end."""

    def __init__(self, script: Script | Sequence[Act] = (), log: Path | None = None, port: int = 0) -> None:
        self.script = script if isinstance(script, Script) else Script(acts=script)
        self.calls: list[Seen] = []
        self.answered = 0
        self.stored: list[dict[str, Any]] = []
        self.url = ""
        self._log = log
        self._port = port
        self._turns = 0
        self._moment = asyncio.Condition()
        self._released = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def start(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/chat/completions", self._list)
        app.router.add_get("/moments/{name}/{count}", self._moments)
        app.router.add_post("/release", self._release)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        bound = self._runner.addresses[0]
        self.url = f"http://127.0.0.1:{bound[1]}/v1"
        return self

    async def stop(self) -> None:
        self.release()
        if self._runner is not None:
            await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def release(self) -> None:
        """Let the hanging calls be answered."""
        self._released.set()

    async def received(self, count: int) -> None:
        """Wait until so many requests have been read."""
        async with self._moment:
            await self._moment.wait_for(lambda: len(self.calls) >= count)

    async def has_answered(self, count: int) -> None:
        """Wait until so many answers have been written to their end."""
        async with self._moment:
            await self._moment.wait_for(lambda: self.answered >= count)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        said = json.loads(body)
        question = json.loads(said["messages"][-1]["content"])
        act, took_turn = self.script.act(self._turns, question)
        self._turns += took_turn
        headers = {name.lower(): value for name, value in request.headers.items()}
        client_port = request.transport.get_extra_info("peername")[1] if request.transport else 0
        seen = Seen(len(self.calls) + 1, act["act"], headers, body, question, client_port)
        self.calls.append(seen)
        await self._note("received", seen)
        await asyncio.sleep(act.get("seconds", 0) or self.script.seconds)
        answer = await self._play(act, seen, said, request)
        answer.headers["Connection"] = act.get("connection", "keep-alive")
        if self.script.known_headers:
            answer.headers["x-request-id"] = f"req_{seen.number}"
        if act["act"] == "cut":
            return await self._cut(answer, request, act.get("share", 0.5))
        await answer.prepare(request)
        await answer.write_eof()
        self.answered += 1
        await self._note("answered", seen)
        return answer

    async def _play(
        self, act: Mapping[str, Any], seen: Seen, said: Mapping[str, Any], request: web.Request
    ) -> web.Response:
        match act["act"]:
            case "hang":
                await self._released.wait()
            case "silent":
                await asyncio.Event().wait()
            case "close" | "reset" as way:
                _hang_up(request, abruptly=way == "reset")
                await asyncio.Event().wait()
            case "status":
                return _plain(act["status"], act.get("body", ""), act.get("headers", {}))
            case "garbage":
                return _plain(200, "<html>upstream had a bad day</html>", {"Content-Type": "text/html"})
            case "slow_down":
                return _error(429, "rate_limit_exceeded", {"Retry-After": str(act.get("retry_after", 1))})
            case "spend_limit":
                return _error(429, "insufficient_quota", {})
            case "content_filter":
                return _error(400, "content_filter", {})
        completion = self._completion(act, seen, said)
        if said.get("store"):
            self.stored.append(completion | {"metadata": said.get("metadata", {})})
        return web.json_response(completion)

    def _completion(self, act: Mapping[str, Any], seen: Seen, said: Mapping[str, Any]) -> dict[str, Any]:
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

    def _content(self, act: Mapping[str, Any], question: Mapping[str, Any]) -> str:
        if "content" in act:
            return str(act["content"])
        items = [
            {"id": item["id"], "text": self._translated(act, item["text"], question["target_locale"])}
            for item in question["items"]
        ]
        index = act.get("index", 0)
        match act["act"]:
            case "omit":
                del items[index]
            case "duplicate":
                items.append(items[index] | {"text": items[index]["text"] + "!"})
            case "length":
                whole, last = items[:index], json.dumps(items[index], ensure_ascii=False)
                head = json.dumps({"items": whole}, ensure_ascii=False)[:-2]
                return f"{head}{', ' if whole else ''}{last[: len(last) * 2 // 3]}"
        return json.dumps({"items": items}, ensure_ascii=False)

    def _translated(self, act: Mapping[str, Any], text: str, locale: str) -> str:
        if act["act"] == "echo":
            return text
        translation = self.script.dictionary.get(text, f"{locale} {text}")
        for old, new in act.get("replace", {}).items():
            translation = translation.replace(old, new)
        return translation

    async def _cut(self, answer: web.Response, request: web.Request, share: float) -> web.StreamResponse:
        whole = answer.body if isinstance(answer.body, bytes) else b""
        stream = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
        stream.content_length = len(whole)
        await stream.prepare(request)
        await stream.write(whole[: int(len(whole) * share)])
        _hang_up(request, abruptly=False)
        await asyncio.Event().wait()
        return stream

    async def _list(self, request: web.Request) -> web.Response:
        wanted = request.query.get("metadata[attempt_id]", "")
        kept = [one for one in self.stored if one["metadata"].get("attempt_id") == wanted]
        headers = {"x-request-id": "req_list"} if self.script.known_headers else {}
        return web.json_response({"object": "list", "data": kept, "has_more": False}, headers=headers)

    async def _moments(self, request: web.Request) -> web.Response:
        count = int(request.match_info["count"])
        await (self.received if request.match_info["name"] == "received" else self.has_answered)(count)
        return web.json_response({"received": len(self.calls), "answered": self.answered})

    async def _release(self, _request: web.Request) -> web.Response:
        self.release()
        return web.json_response({})

    async def _note(self, moment: str, seen: Seen) -> None:
        if self._log is not None:
            line = {
                "moment": moment,
                "number": seen.number,
                "act": seen.act,
                "attempt_id": seen.attempt_id,
                "target_locale": seen.question["target_locale"],
                "texts": seen.texts,
            }
            with self._log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(line, ensure_ascii=False) + "\n")
        async with self._moment:
            self._moment.notify_all()


def _spelled(act: Act) -> dict[str, Any]:
    return {"act": act} if isinstance(act, str) else dict(act)


def _plain(status: int, body: str | Mapping[str, Any], headers: Mapping[str, str]) -> web.Response:
    text = body if isinstance(body, str) else json.dumps(body)
    return web.Response(status=status, text=text, headers={"Content-Type": "text/plain", **headers})


def _error(status: int, code: str, headers: Mapping[str, str]) -> web.Response:
    error = {"message": f"the server plays {code}", "type": "invalid_request_error", "code": code}
    return web.json_response({"error": error}, status=status, headers=headers)


def _hang_up(request: web.Request, *, abruptly: bool) -> None:
    """End the connection below HTTP: by RST where `abruptly`, else by FIN."""
    transport = request.transport
    if transport is None:
        return
    if abruptly:
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()


async def _serve(port: int, script: Script, log: Path | None) -> None:
    async with ChatServer(script, log, port) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Run as a process of its own until it is ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--script", type=Path, help="JSON: {acts, then, rules, dictionary, seconds, known_headers}"
    )
    parser.add_argument("--log", type=Path, help="where one JSON line a moment goes")
    chosen = parser.parse_args()
    script = Script(**json.loads(chosen.script.read_text(encoding="utf-8"))) if chosen.script else Script()
    asyncio.run(_serve(chosen.port, script, chosen.log))


if __name__ == "__main__":
    main()
