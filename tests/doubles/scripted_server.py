"""What every scripted language model server does: answers, spoils, cuts, hangs and breaks on cue.

In a test: `async with ChatServer(["translate", "close"]) as server: … server.url … server.calls`. Members of
this family (`chat_server`, `responses_server`, `anthropic_server`, `gemini_server`) say what their protocol's
documentation says; the acts are the same for all. As a process of its own, for tests that kill their client:
`python -m tests.doubles.chat_server --port 0 --script script.json --log calls.jsonl` prints its base URL on
the first line and appends one JSON line a moment (`received`, `answered`).
`GET /moments/{received|answered}/{n}` answers once that moment has come, `POST /release` ends hangs.

A script is a list of acts, the first for the first call; what comes after the last is `then`. An act is a
name or an object `{"act": name, …}`:

    translate      by dictionary, else "<locale> <text>"; `replace` {"old": "new"} spoils texts. A text
                   asked for in several forms stands in the dictionary as "<text> (<note>)"
    echo           the source texts
    omit           without the item at `index`            duplicate   the item at `index` twice
    length         the bound of the answer is reached, the JSON cut inside the item at `index`
    garbage        200, and no JSON
    status         `status`, `body`, `headers`             slow_down   429 that names `retry_after` seconds
    spend_limit    no money left, as the vendor says it    content_filter  a refusal as an error
    wrong_key      a key that the vendor does not know
    refusal        200 with a refusal                      stop_filter 200 that was stopped for its content
    hang           accepted, answered after release        silent      accepted, never answered
    close, reset   the connection ends after the request was read, by FIN or RST
    cut            the head and a `share` of the body, then the connection ends
    lost, late     all is done and kept; the connection ends, or stays mute until release

What the vendor's documentation forbids is refused as the vendor does (`vendor_rules`), and is no call.

`seconds` on any act waits before the answer, `content` takes the place of the reply's text. `rules` come
before the acts and take no turn of theirs: `{"contains": text, "act": …}` for questions with such a text,
`{"items_over": n, "act": …}` for larger ones.
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
from aiohttp.typedefs import Handler

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
    """Whether answers carry the header that is on each of the hosted vendor's."""

    def act(self, turn: int, question: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """The act for a question, and whether it took a turn."""
        texts = [item["text"] for item in question["items"]]
        for rule in self.rules:
            hit = any(rule.get("contains", "\0") in text for text in texts)
            if hit or len(texts) > rule.get("items_over", len(texts)):
                return _spelled(rule["act"]), False
        return _spelled(self.acts[turn] if turn < len(self.acts) else self.then), True


class ScriptedServer:
    """The running server. `calls` holds each paid request that was read to its end."""

    root = "/v1"
    """What the base URL ends with."""
    known_header = "x-request-id"
    """What the hosted vendor puts on each of its answers; '' for none."""

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
        app = web.Application(client_max_size=64 * 1024 * 1024, middlewares=[self._guard])
        self._add_routes(app)
        app.router.add_get("/moments/{name}/{count}", self._moments)
        app.router.add_post("/release", self._release)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        bound = self._runner.addresses[0]
        self.url = f"http://127.0.0.1:{bound[1]}{self.root}"
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

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Nobody is served who does not say who it is; whoever plays the script needs no key."""
        played = request.path.startswith(("/moments/", "/release"))
        stranger = None if played else self.stranger(request)
        if stranger is None:
            return await handler(request)
        stranger.headers.update(self._marks("req_stranger"))
        return stranger

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        said = json.loads(body)
        refused = self.complaint(request, said)
        if refused is not None:
            refused.headers.update(self._marks("req_refused"))
            return refused
        question = self.question(said)
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
        answer.headers.update(self._marks(f"req_{seen.number}"))
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
                return plain(act["status"], act.get("body", ""), act.get("headers", {}))
            case "garbage":
                return plain(200, "<html>upstream had a bad day</html>", {"Content-Type": "text/html"})
            case "slow_down":
                return self.slow_down(act.get("retry_after", 1))
            case "spend_limit":
                return self.spend_limit()
            case "content_filter":
                return self.content_filter()
            case "wrong_key":
                return self.wrong_key()
        completion = self.completion(act, seen, said)
        self.keep(completion, said)
        if act["act"] == "late":
            await self._released.wait()
        if act["act"] == "lost":
            _hang_up(request, abruptly=False)
            await asyncio.Event().wait()
        return web.json_response(completion)

    def _add_routes(self, app: web.Application) -> None:
        """Where the protocol is spoken; `_complete` takes the paid requests."""
        raise NotImplementedError

    def stranger(self, request: web.Request) -> web.Response | None:
        """What the vendor answers to a request of any kind without a key, or without what else it wants."""
        return None

    def complaint(self, request: web.Request, said: Mapping[str, Any]) -> web.Response | None:
        """What the vendor answers to a request that its documentation forbids; such a one is no call."""
        return None

    def question(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        """The question in a request's body."""
        raise NotImplementedError

    def completion(self, act: Mapping[str, Any], seen: Seen, said: Mapping[str, Any]) -> dict[str, Any]:
        """The answer's body; its text is `_content`."""
        raise NotImplementedError

    def slow_down(self, seconds: float) -> web.Response:
        """Too many requests."""
        raise NotImplementedError

    def spend_limit(self) -> web.Response:
        """No money left."""
        raise NotImplementedError

    def content_filter(self) -> web.Response:
        """A refusal of the content, as an error."""
        raise NotImplementedError

    def wrong_key(self) -> web.Response:
        """A key that nobody has."""
        raise NotImplementedError

    def keep(self, completion: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        """What the vendor stores of an answer, and under which conditions."""

    def _marks(self, reference: str) -> dict[str, str]:
        """The headers that prove an answer."""
        return {self.known_header: reference} if self.script.known_headers and self.known_header else {}

    def _content(self, act: Mapping[str, Any], question: Mapping[str, Any]) -> str:
        if "content" in act:
            return str(act["content"])
        items = [
            {"id": item["id"], "text": self._translated(act, item, question["target_locale"])}
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

    def _translated(self, act: Mapping[str, Any], item: Mapping[str, Any], locale: str) -> str:
        text, known = str(item["text"]), self.script.dictionary
        if act["act"] == "echo":
            return text
        noted = known.get(f"{text} ({item.get('note', '')})")
        translation = noted or known.get(text, f"{locale} {text}")
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
                "request_bytes": len(seen.body),
            }
            with self._log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(line, ensure_ascii=False) + "\n")
        async with self._moment:
            self._moment.notify_all()


def _spelled(act: Act) -> dict[str, Any]:
    return {"act": act} if isinstance(act, str) else dict(act)


def plain(status: int, body: str | Mapping[str, Any], headers: Mapping[str, str]) -> web.Response:
    text = body if isinstance(body, str) else json.dumps(body)
    return web.Response(status=status, text=text, headers={"Content-Type": "text/plain", **headers})


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


async def _serve(kind: type[ScriptedServer], port: int, script: Script, log: Path | None) -> None:
    async with kind(script, log, port) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


def main(kind: type[ScriptedServer]) -> None:
    """Run as a process of its own until it is ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--script", type=Path, help="JSON: {acts, then, rules, dictionary, seconds, known_headers}"
    )
    parser.add_argument("--log", type=Path, help="where one JSON line a moment goes")
    chosen = parser.parse_args()
    script = Script(**json.loads(chosen.script.read_text(encoding="utf-8"))) if chosen.script else Script()
    asyncio.run(_serve(kind, chosen.port, script, chosen.log))
