"""Processes on a queue of many: what a signal leaves behind, and what is told of a queue that is down."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import urllib.error
import urllib.request
from typing import Any

import pytest

from dragoman.kernel.identity import SystemChance
from dragoman.kernel.limits import JOB_LEASE_SECONDS
from dragoman.queues.sqs import SqsQueue
from dragoman.queues.sqs_calls import connection
from dragoman.wiring import queueing
from dragoman.wiring.rounds import opened
from dragoman.wiring.settings import Settings, load
from tests.flow.engine.world import submission
from tests.surfaces.cli.desk import Desk, answering, until
from tests.surfaces.cli.test_serving import ask, serving

JOBS = 9


def _hire(desk: Desk, endpoint: str, base_url: str) -> None:
    prefix = f"cli-{SystemChance().token(8)}-"
    more = (
        f'queue = "sqs"\nsqs_endpoint = "{endpoint}"\nsqs_queue_prefix = "{prefix}"\nsqs_poll_seconds = 2\n'
    )
    desk.hire(base_url, more=more + 'jobs_per_process = 2\nprovider = "hired"\n')


async def _accept(settings: Settings) -> None:
    async with opened(settings, roles=()) as services:
        for number in range(JOBS):
            body = submission({"a": {"t": f"Text {number}"}}, callbackUrl="")
            await services.acceptance.accept("ada", "default", "docs", body)


async def _heard(settings: Settings, wanted: set[str]) -> set[str]:
    """Whose messages anybody could receive; a sixth of a lease is the longest wait for all of `wanted`."""
    queue = SqsQueue(
        connection(queueing.sqs_endpoint(settings)),
        queueing.queue_name(settings),
        SystemChance(),
        poll_seconds=1,
    )
    heard: set[str] = set()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(JOB_LEASE_SECONDS / 6):
            while not wanted <= heard:
                job_id, ack, _ = await queue.dequeue()
                heard.add(job_id)
                await ack()
    await queue.close()
    return heard


def _refusal(url: str) -> Any:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, timeout=10)  # noqa: S310 - our own server
    with refused.value as answer:
        return json.loads(answer.read())


def test_a_signal_under_load_drains_the_poll_and_gives_messages_back(desk: Desk, sqs_endpoint: str) -> None:
    """[J-028] F10: calls in flight end and are kept, the exit code is 0, and what was not done can be heard
    by others at once, also what was received and never handed out.
    """
    with answering("hang", "hang", then="translate") as server:
        _hire(desk, sqs_endpoint, server.url)
        settings = load(desk.folder, database_url=desk.database_url)
        asyncio.run(_accept(settings))
        run = desk.start("worker", "--role", "engine")
        until(lambda: len(server.calls) == 2)
        run.send_signal(signal.SIGTERM)
        server.release()
        told = desk.end(run)
    assert (told.code, told.out) == (0, "")
    states = {row.id: row.state for row in desk.rows("jobs", "id", "state")}
    assert all(row.lease_owner is None for row in desk.rows("jobs", "lease_owner"))
    assert {row.outcome for row in desk.rows("attempts", "outcome")} == {"SUCCEEDED"}
    undone = {job_id for job_id, state in states.items() if state == "queued"}
    assert len(undone) >= JOBS - 4
    assert undone <= asyncio.run(_heard(settings, undone))


def test_readiness_and_the_doctor_say_when_the_queue_cannot_be_reached(desk: Desk, sqs_endpoint: str) -> None:
    """Work goes on by the database; new work should go where the queue is."""
    _hire(desk, sqs_endpoint, "http://127.0.0.1:9/v1")
    with serving(desk) as (url, _):
        until(lambda: ask(f"{url}/readyz")["ready"])
    assert desk.run("doctor").code == 0
    _hire(desk, "http://127.0.0.1:9", "http://127.0.0.1:9/v1")
    told = desk.run("doctor", "--json")
    [finding] = told.object["findings"]
    assert told.code == 3
    assert "dragoman-jobs cannot be used: EndpointConnectionError" in finding["problem"]
    assert "credentials" in finding["remedy"]
    with serving(desk) as (url, run):
        refused = _refusal(f"{url}/readyz")
        assert [problem["name"] for problem in refused["problems"]] == ["queue_unavailable"]
        run.send_signal(signal.SIGTERM)
        ended = desk.end(run)
    assert ended.code == 0
    assert ended.err.count("the queue cannot be used") <= 1
