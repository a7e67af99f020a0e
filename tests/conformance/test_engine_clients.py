"""What every way to the engine promises: in this process or across the network, the same words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from dragoman.families.submission import CALLBACK_SECRET, HttpEngine, LocalEngine, Submission
from dragoman.kernel.errors import CODES, CallerError, CommitUnknown, DragomanError, OutsideError
from dragoman.model.contracts import EngineClient
from dragoman.model.effects import Outgoing

ANSWER = {"job_id": "j-1", "status": "queued", "submissionId": "s-1", "created": True}
JOB = {"job_id": "j-1", "status": "completed"}
PAGE = {"items": [{"ref": "r"}], "next_cursor": ""}


class Engine:
    """The other side: takes what comes, or fails as it is told."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []
        self.error: DragomanError | None = None
        self.stalls = False

    async def _take(self, body: bytes) -> None:
        self.bodies.append(body)
        if self.stalls:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error

    async def accept(self, workspace: str, body: bytes) -> Mapping[str, Any]:
        await self._take(body)
        return ANSWER

    async def control(self, workspace: str, client_job_id: str, body: bytes) -> Mapping[str, Any]:
        await self._take(body)
        return {"revision": 1}

    async def job(self, workspace: str, job_id: str) -> Mapping[str, object] | None:
        await self._take(b"")
        return JOB if job_id == "j-1" else None

    async def items(self, workspace: str, job_id: str, cursor: str) -> Mapping[str, object]:
        await self._take(b"")
        return PAGE


@asynccontextmanager
async def local(engine: Engine) -> AsyncIterator[EngineClient]:
    yield LocalEngine(accept=engine.accept, control=engine.control, job=engine.job, items=engine.items)


@asynccontextmanager
async def http(engine: Engine) -> AsyncIterator[EngineClient]:
    async def answer(request: web.Request, said: Any, status: int = 200) -> web.Response:
        engine.headers.append(dict(request.headers))
        try:
            told = await said
        except DragomanError as error:
            problem = {"code": error.code, "detail": error.message, "place": error.place}
            return web.json_response(problem, status=CODES[error.code].status)
        if told is None:
            return web.json_response({"code": "not_found", "detail": "no job"}, status=404)
        return web.json_response(told, status=status)

    async def submit(request: web.Request) -> web.Response:
        return await answer(request, engine.accept("default", await request.read()), 201)

    async def control(request: web.Request) -> web.Response:
        body = await request.read()
        return await answer(request, engine.control("default", request.match_info["id"], body))

    async def job(request: web.Request) -> web.Response:
        return await answer(request, engine.job("default", request.match_info["id"]))

    async def items(request: web.Request) -> web.Response:
        return await answer(
            request, engine.items("default", request.match_info["id"], request.query["cursor"])
        )

    application = web.Application()
    application.router.add_post("/v1/jobs/bulk-content", submit)
    application.router.add_put("/v1/engine/controls/{id}", control)
    application.router.add_get("/v1/jobs/{id}", job)
    application.router.add_get("/v1/jobs/{id}/items", items)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    client = HttpEngine(
        f"http://127.0.0.1:{port}/", token=lambda: "t-1", callback_secrets=lambda: ["the callback secret"]
    )
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()


Way = Callable[[Engine], AbstractAsyncContextManager[EngineClient]]
ways = pytest.mark.parametrize("way", [local, http])


def outgoing(body: bytes, **facts: str) -> Outgoing:
    return Outgoing("a", "e", "default", 1, "engine", 0, body, dict(facts))


@ways
def test_a_submission_is_handed_over_as_the_bytes_that_it_is(way: Way) -> None:
    async def play() -> None:
        engine = Engine()
        async with way(engine) as client:
            body = '{"submissionId":"s-1","é":1}'.encode()
            answer = await Submission(client).deliver(outgoing(body, submission_id="s-1"), 5)
        assert answer.outcome == "SUCCEEDED"
        assert json.loads(answer.body or b"") == ANSWER
        assert engine.bodies == [body]

    asyncio.run(play())


@ways
@pytest.mark.parametrize(
    "said, code",
    [
        ("submission_id_conflict", "submission_conflict"),
        ("not_found", "submission_conflict"),
        ("request_too_large", "payload_too_large"),
        ("payload_too_large", "payload_too_large"),
        ("invalid_request", "invalid_fields"),
        ("invalid_fields", "invalid_fields"),
        ("unsupported_locale", "unsupported_locale"),
        ("provider_unknown", "provider_unknown"),
        ("provider_credentials_missing", "provider_credentials_missing"),
        ("rate_limited", "backend_rate_limited"),
        ("admission_closed", "backend_unavailable"),
        ("sealing_key_missing", "sealing_key_missing"),
        ("unauthorized", "backend_unavailable"),
    ],
)
def test_a_refusal_comes_back_in_the_words_of_intents(way: Way, said: str, code: str) -> None:
    async def play() -> None:
        engine = Engine()
        engine.error = CallerError("the engine's own words", said, "$.items[3].ref")
        async with way(engine) as client:
            answer = await client.submit("default", "s-1", b"{}", 5)
        assert (answer.outcome, answer.code, answer.place) == ("REJECTED", code, "$.items[3].ref")
        assert "the engine's own words" in answer.message

    asyncio.run(play())


@ways
@pytest.mark.parametrize("error", [CommitUnknown("gone after COMMIT"), DragomanError("a defect")])
def test_what_may_have_been_taken_is_unknown(way: Way, error: DragomanError) -> None:
    async def play() -> None:
        engine = Engine()
        engine.error = error
        async with way(engine) as client:
            assert (await client.submit("default", "s-1", b"{}", 5)).outcome == "CONNECTION_UNKNOWN"
            engine.error, engine.stalls = None, True
            assert (await client.submit("default", "s-1", b"{}", 0.2)).outcome == "TIMEOUT_UNKNOWN"

    asyncio.run(play())


@ways
def test_a_control_goes_to_its_client_job(way: Way) -> None:
    async def play() -> None:
        engine = Engine()
        async with way(engine) as client:
            order = outgoing(b'{"revision":1,"paused":true}', client_job_id="m-1")
            answer = await Submission(client).deliver(order, 5)
        assert answer.outcome == "SUCCEEDED"
        assert engine.bodies == [b'{"revision":1,"paused":true}']

    asyncio.run(play())


@ways
def test_a_job_is_asked_about_and_an_unknown_one_is_none(way: Way) -> None:
    async def play() -> None:
        engine = Engine()
        async with way(engine) as client:
            assert await client.job("default", "j-1", 5) == JOB
            assert await client.job("default", "j-2", 5) is None
            assert await client.items("default", "j-1", "c=1&d", 5) == PAGE
            engine.error = OutsideError("no database")
            with pytest.raises(OutsideError):
                await client.job("default", "j-1", 5)

    asyncio.run(play())


def test_secrets_are_read_at_send_time_and_travel_in_headers_only() -> None:
    """[M-056, M-101] Without a callback secret nothing is sent."""

    async def play() -> None:
        engine = Engine()
        async with http(engine) as client:
            await client.submit("default", "s-1", b"{}", 5)
            [headers] = engine.headers
            assert headers[CALLBACK_SECRET] == "the callback secret"
            assert headers["Authorization"] == "Bearer t-1"
            assert b"secret" not in b"".join(engine.bodies)
        unset = HttpEngine("http://127.0.0.1:9", token=lambda: "t", callback_secrets=list)
        answer = await unset.submit("default", "s-1", b"{}", 5)
        assert (answer.outcome, answer.code) == ("NOT_STARTED", "callback_secret_missing")

    asyncio.run(play())


def test_nobody_at_the_engines_door_means_that_nothing_was_sent() -> None:
    async def play() -> None:
        client = HttpEngine("http://127.0.0.1:9", token=lambda: "t", callback_secrets=lambda: ["s" * 16])
        answer = await client.submit("default", "s-1", b"{}", 5)
        assert (answer.outcome, answer.code) == ("NOT_STARTED", "backend_unavailable")
        with pytest.raises(OutsideError):
            await client.job("default", "j-1", 5)
        await client.close()

    asyncio.run(play())


@pytest.mark.parametrize("told", [b"not json", b"[]", b'{"status": "queued"}'])
def test_an_answer_that_cannot_be_read_is_kept_and_not_believed(told: bytes) -> None:
    async def play() -> None:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(status=200, body=told)

        application = web.Application()
        application.router.add_post("/v1/jobs/bulk-content", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        client = HttpEngine(address, token=lambda: "t", callback_secrets=lambda: ["s" * 16])
        got = await client.submit("default", "s-1", b"{}", 5)
        await client.close()
        await runner.cleanup()
        assert (got.outcome, got.body) == ("INVALID_RESPONSE_UNKNOWN", told)

    asyncio.run(play())
