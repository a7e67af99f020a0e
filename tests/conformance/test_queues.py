"""One suite for every queue: it wakes, it waits, it gives back, and it closes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dragoman.kernel.errors import QueueClosed
from dragoman.kernel.identity import SystemChance
from dragoman.model.contracts import Queue
from dragoman.queues.memory import MemoryQueue
from dragoman.queues.sqs import SqsQueue
from dragoman.queues.sqs_calls import connection
from tests.doubles.sqs import FakeSqs

MEMBERS = ("memory", "sqs", "sqs of documentation")

_SECONDS = 20.0


@pytest.fixture(params=MEMBERS)
def make(request: pytest.FixtureRequest) -> Callable[[], Queue]:
    """Makes a queue of its own at every call, to be called inside the event loop."""
    chance = SystemChance()

    def on_a_server() -> Queue:
        endpoint = request.getfixturevalue("sqs_endpoint")
        return SqsQueue(connection(endpoint), f"conformance-{chance.token(12)}", chance, poll_seconds=1)

    def on_the_fake() -> Queue:
        return SqsQueue(FakeSqs().connect, "conformance", chance, poll_seconds=1)

    if request.param == "sqs":
        request.getfixturevalue("sqs_endpoint")
    return {"memory": MemoryQueue, "sqs": on_a_server, "sqs of documentation": on_the_fake}[request.param]


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(_SECONDS):
            await story()

    asyncio.run(bounded())


def test_what_is_enqueued_is_handed_over(make: Callable[[], Queue]) -> None:
    """[J-023, J-024, J-001] an id and nothing else, with an acknowledgement and a way to give it back."""

    async def story() -> None:
        queue = make()
        for job_id in ("a", "b", "c"):
            await queue.enqueue(job_id)
        taken = []
        for _ in range(3):
            job_id, ack, _ = await queue.dequeue()
            await ack()
            taken.append(job_id)
        assert sorted(taken) == ["a", "b", "c"]
        await queue.close()

    play(story)


def test_what_is_enqueued_is_handed_over_in_order() -> None:
    """[J-023, J-024] By the memory queue; no queue on a server promises it: the database's order leads."""

    async def story() -> None:
        queue = MemoryQueue()
        for job_id in ("a", "b", "c"):
            await queue.enqueue(job_id)
        assert [(await queue.dequeue())[0] for _ in range(3)] == ["a", "b", "c"]

    play(story)


def test_ack_and_nack_count_once_and_nothing_after_the_other(make: Callable[[], Queue]) -> None:
    """[J-024, J-027] A second word about one delivery is harmless."""

    async def story() -> None:
        queue = make()
        for job_id in ("a", "b"):
            await queue.enqueue(job_id)
        first, ack, _ = await queue.dequeue()
        second, _, nack = await queue.dequeue()
        await ack()
        await ack()
        await nack()
        again, ack_again, _ = await queue.dequeue()
        assert {first, second} == {"a", "b"}
        assert again == second
        await ack_again()
        await queue.close()
        await ack()
        await nack()

    play(story)


def test_a_consumer_waits_until_something_comes(make: Callable[[], Queue]) -> None:
    """J-025: it never returns empty."""

    async def story() -> None:
        queue = make()
        waiting = asyncio.create_task(queue.dequeue())
        await asyncio.sleep(0)
        assert not waiting.done()
        await queue.enqueue("a")
        job_id, _, _ = await waiting
        assert job_id == "a"
        await queue.close()

    play(story)


def test_what_is_given_back_comes_again(make: Callable[[], Queue]) -> None:
    """J-027: for trouble that may pass."""

    async def story() -> None:
        queue = make()
        await queue.enqueue("a")
        job_id, _, nack = await queue.dequeue()
        await nack()
        again, ack, _ = await queue.dequeue()
        await ack()
        assert (job_id, again) == ("a", "a")
        await queue.close()

    play(story)


def test_a_canceled_consumer_loses_no_message(make: Callable[[], Queue]) -> None:
    """J-025: whoever waits next gets it, also when it came in the very moment."""

    async def story() -> None:
        for turns in range(5):
            queue = make()
            impatient = asyncio.create_task(queue.dequeue())
            patient = asyncio.create_task(queue.dequeue())
            await asyncio.sleep(0)
            await queue.enqueue("a")
            for _ in range(turns):
                await asyncio.sleep(0)
            impatient.cancel()
            ends = await asyncio.gather(impatient, return_exceptions=True)
            if isinstance(ends[0], BaseException):
                job_id, _, _ = await patient
                assert job_id == "a"
            else:
                patient.cancel()
                await asyncio.gather(patient, return_exceptions=True)
            await queue.close()

    play(story)


def test_closing_ends_all_waiting_and_a_second_close_does_nothing(make: Callable[[], Queue]) -> None:
    """J-028: a waiter gets `QueueClosed`, and so does everybody later."""

    async def story() -> None:
        queue = make()
        waiting = [asyncio.create_task(queue.dequeue()) for _ in range(3)]
        await asyncio.sleep(0)
        await queue.close()
        await queue.close()
        for ended in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(ended, QueueClosed)
        with pytest.raises(QueueClosed):
            await queue.dequeue()

    play(story)


def test_each_message_goes_to_one_consumer(make: Callable[[], Queue]) -> None:
    """Many consumers, many messages, none twice while none is given back."""

    async def story() -> None:
        queue = make()
        taken: list[str] = []

        async def consume() -> None:
            while True:
                job_id, ack, _ = await queue.dequeue()
                taken.append(job_id)
                await ack()

        consumers = [asyncio.create_task(consume()) for _ in range(4)]
        for number in range(50):
            await queue.enqueue(f"job-{number}")
        while len(taken) < 50:
            await asyncio.sleep(0)
        await queue.close()
        await asyncio.gather(*consumers, return_exceptions=True)
        assert sorted(taken) == sorted(f"job-{number}" for number in range(50))

    play(story)
