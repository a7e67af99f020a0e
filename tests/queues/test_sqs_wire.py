"""The queue `sqs` with the real client library, on a line that answers badly."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web

from dragoman.kernel.errors import QueueError
from dragoman.kernel.identity import SystemChance
from dragoman.queues.sqs import SqsQueue
from dragoman.queues.sqs_calls import connection

pytestmark = pytest.mark.anyio

FAULTS = ("503 page", "throttled", "no json", "cut", "lost")


class Line:
    """Between the client and the server. Each call takes the next fault; `lost` reaches the server first."""

    def __init__(self, server: str) -> None:
        self.faults: deque[str] = deque()
        self._server = server

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        fault = self.faults.popleft() if self.faults else ""
        if fault == "503 page":
            return web.Response(status=503, text="<html>Service Unavailable</html>", content_type="text/html")
        if fault == "throttled":
            told = {"__type": "com.amazonaws.sqs#RequestThrottled", "message": "Rate exceeded"}
            return web.json_response(told, status=400, content_type="application/x-amz-json-1.0")
        if fault == "no json":
            return web.Response(text="{", content_type="application/x-amz-json-1.0")
        if fault != "cut":
            answer = await self._ask(request)
            if not fault:
                return answer
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def _ask(self, request: web.Request) -> web.Response:
        kept = {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
        async with (
            ClientSession() as session,
            session.post(self._server + request.path, data=await request.read(), headers=kept) as answer,
        ):
            head = {"Content-Type": answer.headers["Content-Type"]}
            return web.Response(status=answer.status, body=await answer.read(), headers=head)


@asynccontextmanager
async def lined(endpoint: str) -> AsyncIterator[tuple[Line, SqsQueue]]:
    """A queue at the end of a line."""
    line = Line(endpoint)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", line.pass_on)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    chance = SystemChance()
    name = f"line-{chance.token(10)}"
    queue = SqsQueue(  # what a lost answer held is visible again after two seconds
        connection(f"http://127.0.0.1:{port}"), name, chance, visibility_seconds=2, poll_seconds=1
    )
    try:
        yield line, queue
    finally:
        await queue.close()
        await runner.cleanup()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_bad_answer_is_one_error_with_a_reason_and_the_next_call_goes(
    sqs_endpoint: str, fault: str
) -> None:
    """[J-030] Of a send it is told as `queue_unavailable`; a consumer never hears of it."""
    async with lined(sqs_endpoint) as (line, queue):
        await queue.enqueue("first")
        line.faults.append(fault)
        with pytest.raises(QueueError, match="line-"):
            await queue.enqueue("second")
        await _insist(queue)
        line.faults.append(fault)
        job_id, ack, _ = await queue.dequeue()
        assert not line.faults
        assert job_id in {"first", "second", "third"}
        await ack()


async def _insist(queue: SqsQueue) -> None:
    """Send until it is taken, as the sweep does."""
    while True:
        try:
            return await queue.enqueue("third")
        except QueueError:
            await asyncio.sleep(0.05)
