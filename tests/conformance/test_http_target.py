"""The executor `http:v1` before the reference server, a proxy that loses answers, and servers at fault."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dragoman.families.publication.http_target import HttpTarget
from dragoman.kernel.identity import sha256
from dragoman.model.effects import Answer, Outgoing
from tests.conformance.test_sources import TOKEN, reference_server, running, written
from tests.doubles.proxy import Proxy

OLD, NEW = b'{"t": "alt"}', '{"t": "neu und schön"}'.encode()


@dataclass
class Server:
    """The reference server over a folder, asked through a proxy."""

    folder: Path
    proxy: Proxy

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.proxy.port}"

    def target(self, locale: str = "fr") -> Path:
        return self.folder / locale / "posts/a.json"

    def put(self, data: bytes) -> None:
        written(self.folder, {"fr/posts/a.json": data.decode()})

    def order(self, body: bytes | None = NEW, expected: bytes | None = None, locale: str = "fr") -> Outgoing:
        return order(self.url, body, expected, locale)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    written(tmp_path, {"en/posts/a.json": '{"t": "old"}'})
    with running(reference_server().serve(tmp_path, 0, TOKEN)) as url:
        proxy = Proxy("127.0.0.1", urlsplit(url).port or 0)
        try:
            yield Server(tmp_path, proxy)
        finally:
            proxy.close()


def order(url: str, body: bytes | None, expected: bytes | None, locale: str = "fr") -> Outgoing:
    facts: dict[str, str | int] = {
        "executor": "http:v1",
        "root": url,
        "token_variable": "CMS_TOKEN",
        "target": f"{locale}/posts/a.json",
        "act": "remove" if body is None else "write",
        "expected": "" if expected is None else sha256(expected),
        "step_key": "plan:1:forward",
    }
    return Outgoing("a", "e", "default", 1, "http:v1", 0, body or b"", facts)


def run(what: Outgoing, token: str = TOKEN, seconds: float = 5) -> Answer:
    async def once() -> Answer:
        target = HttpTarget(lambda variable: token if variable == "CMS_TOKEN" else "")
        try:
            return await target.run(what, seconds)
        finally:
            await target.close()

    return asyncio.run(once())


@pytest.mark.parametrize("stood", [None, OLD, NEW])
@pytest.mark.parametrize("wanted", [None, NEW, b"{}"])
def test_the_same_step_twice_has_one_effect_and_equal_receipts(
    server: Server, stood: bytes | None, wanted: bytes | None
) -> None:
    """[T-039, T-063, T-068]"""
    if stood is not None:
        server.put(stood)
    what = server.order(wanted, stood)
    first, second = run(what), run(replace(what, attempt_id="b", number=2))
    assert (first.outcome, first.body) == (second.outcome, second.body)
    assert first.outcome == "SUCCEEDED", first
    assert (server.target().read_bytes() if server.target().exists() else None) == wanted
    receipt = json.loads(first.body or b"")
    assert (receipt["executor"], receipt["applied"], receipt["target"]) == (
        "http:v1",
        True,
        "fr/posts/a.json",
    )
    assert receipt["sha256"] == ("" if wanted is None else sha256(wanted))


@pytest.mark.parametrize("wanted", [None, NEW])
@pytest.mark.parametrize("stands, expected", [(OLD, None), (OLD, b"else"), (None, OLD)])
def test_what_is_not_as_expected_is_a_lost_race_and_stays(
    server: Server, wanted: bytes | None, stands: bytes | None, expected: bytes | None
) -> None:
    if stands is not None:
        server.put(stands)
    answer = run(server.order(wanted, expected))
    if wanted is None and stands is None:
        assert answer.outcome == "SUCCEEDED", "what shall be gone is gone"
    else:
        assert (answer.outcome, answer.code) == ("REJECTED", "target_raced")
    assert (server.target().read_bytes() if server.target().exists() else None) == stands


def test_of_many_writers_at_once_one_wins(server: Server) -> None:
    """The condition goes with the write: a look before it would let several through."""
    server.put(OLD)
    wanted = [f'{{"t": "writer {number}"}}'.encode() for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda body: run(server.order(body, OLD)), wanted))
    won = [body for body, answer in zip(wanted, answers, strict=True) if answer.outcome == "SUCCEEDED"]
    assert won == [server.target().read_bytes()]
    assert {answer.code for answer in answers} == {"", "target_raced"}


@pytest.mark.parametrize("wanted", [None, NEW])
def test_an_answer_that_was_lost_after_the_write_is_found_out(server: Server, wanted: bytes | None) -> None:
    server.put(OLD)
    lost = server.proxy.on(b"If-Match", "cut_answer")
    answer = run(server.order(wanted, OLD))
    assert lost.happened.is_set()
    assert answer.outcome == "SUCCEEDED", answer


def test_a_write_that_never_arrived_is_unknown_and_the_same_step_again_settles_it(server: Server) -> None:
    """It may still be under way, so what stands now proves nothing."""
    server.put(OLD)
    lost = server.proxy.on(b"If-Match", "cut_before")
    what = server.order(NEW, OLD)
    answer = run(what)
    assert lost.happened.is_set()
    assert (answer.outcome, answer.code) == ("CONNECTION_UNKNOWN", "PROVIDER_CONNECTION_UNKNOWN")
    assert run(what).outcome == "SUCCEEDED"
    assert server.target().read_bytes() == NEW


def test_a_server_that_is_not_there_is_told_as_not_reached() -> None:
    answer = run(order("http://127.0.0.1:9", NEW, None))
    assert (answer.outcome, answer.code) == ("NOT_STARTED", "PROVIDER_NOT_REACHED")


def test_an_unknown_token_is_refused_and_told_without_it(server: Server) -> None:
    answer = run(server.order(), token="another-secret")
    assert (answer.outcome, answer.code) == ("REJECTED", "target_refused")
    assert "does not know our token" in answer.message
    assert "another-secret" not in answer.message
    assert not server.target().exists()


@pytest.mark.parametrize("locale, ref", [("en", "posts/a.json"), ("fr", "posts/b.json"), ("../x", "a.json")])
def test_only_translations_of_documents_that_are_there_are_taken(
    server: Server, locale: str, ref: str
) -> None:
    """The reference server writes nothing in the source locale, and nothing outside of its folder."""
    what = server.order()
    answer = run(replace(what, facts={**what.facts, "target": f"{locale}/{ref}"}))
    assert answer.code in ("target_refused", "target_raced"), answer
    assert {str(place.relative_to(server.folder)) for place in server.folder.rglob("*.json")} == {
        "en/posts/a.json"
    }


Replies = dict[str, list[tuple[int, dict[str, str], bytes]]]
GONE: tuple[int, dict[str, str], bytes] = (404, {}, b"")


@contextmanager
def scripted(replies: Replies) -> Iterator[tuple[str, list[str]]]:
    """A server that answers by method, in order, the last one ever again; status 0 hangs up."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked.append(self.command)
            script = replies[self.command]
            status, headers, body = script.pop(0) if len(script) > 1 else script[0]
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_DELETE = _answer  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
        yield url, asked


def tagged(data: bytes) -> dict[str, str]:
    return {"ETag": f'"{sha256(data)}"'}


@pytest.mark.parametrize(
    ("put", "after", "outcome", "code"),
    [
        ((200, tagged(NEW), b""), GONE, "SUCCEEDED", ""),
        ((204, {}, b""), (200, tagged(NEW), b""), "SUCCEEDED", ""),
        ((204, {}, b""), (200, {}, NEW), "SUCCEEDED", ""),
        ((200, tagged(OLD), b""), GONE, "REJECTED", "target_refused"),
        ((204, {}, b""), (200, tagged(OLD), b""), "REJECTED", "target_refused"),
        ((412, {}, b""), (200, tagged(OLD), b""), "REJECTED", "target_raced"),
        ((412, {}, b""), (200, tagged(NEW), b""), "SUCCEEDED", ""),
        ((409, {}, b""), (200, tagged(OLD), b""), "REJECTED", "target_raced"),
        ((403, {}, b""), GONE, "REJECTED", "target_refused"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), GONE, "REJECTED", "target_refused"),
        ((429, {"Retry-After": "9"}, b""), GONE, "NOT_STARTED", "PROVIDER_NOT_REACHED"),
        ((500, {}, b"oops"), GONE, "CONNECTION_UNKNOWN", "PROVIDER_CONNECTION_UNKNOWN"),
        ((500, {}, b"oops"), (200, tagged(NEW), b""), "SUCCEEDED", ""),
        ((504, {}, b""), (500, {}, b""), "TIMEOUT_UNKNOWN", "PROVIDER_TIMEOUT_UNKNOWN"),
        ((0, {}, b""), (0, {}, b""), "CONNECTION_UNKNOWN", "PROVIDER_CONNECTION_UNKNOWN"),
    ],
)
def test_what_a_server_answers_is_told_as_what_it_means(
    put: tuple[int, dict[str, str], bytes],
    after: tuple[int, dict[str, str], bytes],
    outcome: str,
    code: str,
) -> None:
    """Where the answer leaves the end open, what stands decides; one write goes out, whatever comes back."""
    looks = [after] if after[0] != 200 or "ETag" in after[1] else [(200, {}, b"")]
    with scripted({"HEAD": [GONE, *looks], "GET": [after], "PUT": [put]}) as (url, asked):
        answer = run(order(url, NEW, None))
    assert (answer.outcome, answer.code) == (outcome, code), answer
    assert asked.count("PUT") == 1
    if outcome == "NOT_STARTED":
        assert answer.retry_after_seconds == 9


@pytest.mark.parametrize("look", [(500, {}, b""), (0, {}, b""), (429, {}, b"")])
def test_nothing_is_written_where_nobody_can_say_what_stands(look: tuple[int, dict[str, str], bytes]) -> None:
    with scripted({"HEAD": [look], "PUT": [(200, tagged(NEW), b"")]}) as (url, asked):
        answer = run(order(url, NEW, None))
    assert answer.outcome == "NOT_STARTED"
    assert "PUT" not in asked
