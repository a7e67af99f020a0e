"""Scripted servers of machine translation as their documentation has them: DeepL, LibreTranslate, APY.

`async with DeepLServer(["quota"]) as server: … server.url … server.calls`. A script is a list of acts, the
first for the first call, `then` afterwards; an act is a name or `{"act": name, …}`:

    translate   every text by `translated`, its tags kept    fewer, more   a text less, a text more
    status      `status`, `body`, `headers`                  close, reset  the connection ends, by FIN or RST
    slow_down   429 with the protocol's body                 silent        accepted, never answered
    cut         a `share` of the body, then the end          garbage       200, and no JSON
    hang        answered after `release`

and what else a protocol has: DeepL `quota` (456), `busy` (529), `wrong_key` (403), `bad_tags` (400).
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs
from xml.dom import minidom
from xml.parsers.expat import ExpatError

from aiohttp import web

from tests.doubles import vendor_rules

Act = str | Mapping[str, Any]
_OUTSIDE_TAGS = re.compile(r"(<[^>]*>|&\w+;|\s+)")


@dataclass(frozen=True)
class Seen:
    """One request as it came."""

    act: str
    headers: Mapping[str, str]
    body: bytes
    said: Mapping[str, Any]
    """The body's members."""


def translated(text: str) -> str:
    """Each word outside of tags with an `é` behind it."""
    pieces = _OUTSIDE_TAGS.split(text)
    return "".join(
        piece if not piece or place % 2 or not piece[0].isalpha() else piece + "é"
        for place, piece in enumerate(pieces)
    )


class TextServerDouble:
    """What the three servers have in common. `calls` holds each request for a translation."""

    path = "/translate"
    answers_with: Mapping[str, str] = {}

    def __init__(self, acts: Sequence[Act] = (), then: Act = "translate") -> None:
        self.acts, self.then = list(acts), then
        self.calls: list[Seen] = []
        self.url = ""
        self._released = asyncio.Event()
        self._moment = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post(self.path, self._translate)
        for path, show in self.shows().items():
            app.router.add_get(path, _showing(show))
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        if self._runner is not None:
            await self._runner.cleanup()

    def release(self) -> None:
        """Let the hanging calls be answered."""
        self._released.set()

    async def received(self, count: int) -> None:
        """Wait until so many requests have been read."""
        async with self._moment:
            await self._moment.wait_for(lambda: len(self.calls) >= count)

    def shows(self) -> Mapping[str, object]:
        """What GET gives, by path."""
        return {}

    def members(self, body: bytes) -> Mapping[str, Any]:
        """The members of a request's body."""
        said: Mapping[str, Any] = json.loads(body)
        return said

    def answer(self, said: Mapping[str, Any], edit: Callable[[list[str]], list[str]]) -> web.Response:
        """The answer to a good request."""
        raise NotImplementedError

    def refusal(self, status: int, message: str) -> web.Response:
        """An error in the protocol's own words."""
        raise NotImplementedError

    def own_act(self, act: Mapping[str, Any]) -> web.Response:
        """An act that only this protocol has."""
        raise NotImplementedError(act["act"])

    def complaint(self, seen: Seen) -> web.Response | None:
        """What the server holds against a request."""
        return None

    async def _translate(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        spelled = self.acts.pop(0) if self.acts else self.then
        act = {"act": spelled} if isinstance(spelled, str) else dict(spelled)
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen = Seen(act["act"], headers, body, self.members(body))
        self.calls.append(seen)
        async with self._moment:
            self._moment.notify_all()
        answer = await self._play(act, seen, request)
        answer.headers.update(self.answers_with)
        if act["act"] == "cut":
            return await _cut(answer, request, float(act.get("share", 0.5)))
        return answer

    async def _play(self, act: Mapping[str, Any], seen: Seen, request: web.Request) -> web.Response:
        match act["act"]:
            case "hang":
                await self._released.wait()
            case "silent":
                await asyncio.Event().wait()
            case "close" | "reset" as way:
                _hang_up(request, abruptly=way == "reset")
                await asyncio.Event().wait()
            case "status":
                return web.Response(
                    status=act["status"], text=act.get("body", ""), headers=act.get("headers", {})
                )
            case "garbage":
                return web.Response(text="<html>upstream had a bad day</html>", content_type="text/html")
            case "slow_down":
                refusal = self.refusal(429, "Too many requests")
                refusal.headers.update(act.get("headers", {}))
                return refusal
            case "fewer":
                return self.answer(seen.said, lambda texts: texts[:-1])
            case "more":
                return self.answer(seen.said, lambda texts: [*texts, "one more"])
            case "translate" | "cut":
                pass
            case _:
                return self.own_act(act)
        return self.complaint(seen) or self.answer(seen.said, lambda texts: texts)


class DeepLServer(TextServerDouble):
    """`POST /v2/translate` by DeepL's OpenAPI; answers carry X-Trace-ID."""

    path = "/v2/translate"
    answers_with: Mapping[str, str] = {"X-Trace-ID": "5a1e7c0ffee"}

    def answer(self, said: Mapping[str, Any], edit: Callable[[list[str]], list[str]]) -> web.Response:
        translations = [
            {"detected_source_language": said["source_lang"], "text": text}
            | (
                {"billed_characters": len(text) - text.count("é")}
                if said.get("show_billed_characters")
                else {}
            )
            for text in edit([translated(text) for text in said["text"]])
        ]
        return web.json_response({"translations": translations})

    def refusal(self, status: int, message: str) -> web.Response:
        return web.json_response({"message": message}, status=status)

    def complaint(self, seen: Seen) -> web.Response | None:
        if not seen.headers.get("authorization", "").removeprefix("DeepL-Auth-Key "):
            return self.refusal(403, "Forbidden")
        status, wrong = vendor_rules.deepl_request(seen.said, seen.body)
        if status:
            return self.refusal(status, wrong)
        if seen.said.get("tag_handling") == "xml":
            try:
                for text in seen.said["text"]:
                    minidom.parseString(f"<text>{text}</text>")  # noqa: S318 - our own text, parsed strictly
            except ExpatError:
                return self.bad_tags()
        return None

    def bad_tags(self) -> web.Response:
        """What its strict parser says: the one error whose text stands under another name."""
        return web.json_response({"Message": "Tag handling parsing failed, please check input."}, status=400)

    def own_act(self, act: Mapping[str, Any]) -> web.Response:
        match act["act"]:
            case "quota":
                return self.refusal(456, "Quota Exceeded")
            case "busy":
                return self.refusal(529, "Too many requests")
            case "wrong_key":
                return self.refusal(403, "Forbidden")
            case "too_large":
                return self.refusal(413, "Request Entity Too Large")
        return self.bad_tags()


class LibreTranslateServer(TextServerDouble):
    """`POST /translate` and `GET /languages`; unescapes all that it gives, as the real one does.

    `texts_max` and `characters_max` are the operator's bounds (`--batch-limit`, `--char-limit`), `needs_key`
    says that nobody is served without one.
    """

    texts_max: int | None = None
    characters_max: int | None = None
    needs_key = False

    LANGUAGES: Sequence[Mapping[str, Any]] = (
        {"code": "en", "name": "English", "targets": ["de", "en", "es", "pt-BR", "zh-Hans", "zh-Hant"]},
        {"code": "de", "name": "German", "targets": ["de", "en"]},
        {"code": "es", "name": "Spanish", "targets": ["en", "es"]},
        {"code": "pt-BR", "name": "Portuguese (Brazil)", "targets": ["en"]},
        {"code": "zh-Hans", "name": "Chinese", "targets": ["en"]},
        {"code": "zh-Hant", "name": "Chinese (traditional)", "targets": ["en"]},
    )

    def shows(self) -> Mapping[str, object]:
        return {"/languages": self.LANGUAGES}

    def answer(self, said: Mapping[str, Any], edit: Callable[[list[str]], list[str]]) -> web.Response:
        texts = [translated(text) for text in said["q"]]
        if said["format"] == "html":  # a parser spells empty tags out
            texts = [re.sub(r"<([a-z]\d+)/>", r"<\1></\1>", text) for text in texts]
        return web.json_response({"translatedText": edit([*map(unescape, texts)])})

    def complaint(self, seen: Seen) -> web.Response | None:
        said = seen.said
        texts, codes = said.get("q") or [], [str(one["code"]) for one in self.LANGUAGES]
        if self.needs_key and not said.get("api_key"):
            return self.refusal(400, "Please contact the server operator to get an API key")
        missing = next((name for name in ("q", "source", "target") if not said.get(name)), "")
        if missing:
            return self.refusal(400, f"Invalid request: missing {missing} parameter")
        for size, limit in ((len(texts), self.texts_max), (sum(map(len, texts)), self.characters_max)):
            if limit is not None and size > limit:
                return self.refusal(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")
        strange = next((said[name] for name in ("source", "target") if said[name] not in codes), "")
        if strange:
            return self.refusal(400, f"{strange} is not supported")
        if said.get("format", "text") not in ("text", "html"):
            return self.refusal(400, f"{said['format']} format is not supported")
        return None

    def refusal(self, status: int, message: str) -> web.Response:
        return web.json_response({"error": message}, status=status)

    def own_act(self, act: Mapping[str, Any]) -> web.Response:
        return self.refusal(400, f"{act['act']} is not supported")


class ApertiumServer(TextServerDouble):
    """`POST /translate` (a form) and `GET /listPairs` by the wiki of APY."""

    PAIRS: Sequence[tuple[str, str]] = (("eng", "spa"), ("spa", "eng"), ("spa", "eng_US"))

    def shows(self) -> Mapping[str, object]:
        pairs = [{"sourceLanguage": start, "targetLanguage": end} for start, end in self.PAIRS]
        return {"/listPairs": {"responseData": pairs, "responseDetails": None, "responseStatus": 200}}

    def members(self, body: bytes) -> Mapping[str, Any]:
        return {name: values[0] for name, values in parse_qs(body.decode()).items()}

    def answer(self, said: Mapping[str, Any], edit: Callable[[list[str]], list[str]]) -> web.Response:
        texts = edit(re.findall(r"<p>.*?</p>", said["q"], re.DOTALL))
        together = "".join(translated(text) for text in texts)
        data = {"responseData": {"translatedText": together}, "responseDetails": None, "responseStatus": 200}
        return web.json_response(data)

    def complaint(self, seen: Seen) -> web.Response | None:
        if tuple(seen.said["langpair"].split("|")) in self.PAIRS:
            return None
        return self.refusal(400, "That pair is not installed")

    def refusal(self, status: int, message: str) -> web.Response:
        error = {"status": "error", "code": status, "message": "Bad Request", "explanation": message}
        return web.json_response(error, status=status)


def _showing(what: object) -> Callable[[web.Request], Any]:
    async def show(_request: web.Request) -> web.Response:
        return web.json_response(what)

    return show


async def _cut(answer: web.Response, request: web.Request, share: float) -> web.StreamResponse:
    whole = answer.body if isinstance(answer.body, bytes) else b""
    stream = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
    stream.content_length = len(whole)
    await stream.prepare(request)
    await stream.write(whole[: int(len(whole) * share)])
    _hang_up(request, abruptly=False)
    await asyncio.Event().wait()
    return stream


def _hang_up(request: web.Request, *, abruptly: bool) -> None:
    transport = request.transport
    if transport is None:
        return
    if abruptly:
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()
