"""The queue `sqs` on bad days of its server: nothing is lost that the database does not give back, and
nothing stops. Time is virtual: long polls, visibility and pauses pass in no time.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable

import pytest

from dragoman.kernel.errors import QueueClosed, QueueError
from dragoman.kernel.identity import SeededChance
from dragoman.kernel.limits import QUEUE_PAUSE_MAX_SECONDS
from dragoman.queues.sqs import SqsQueue
from tests.doubles.sqs import FakeSqs
from tests.simulation.virtual import VirtualLoop

Story = Callable[[FakeSqs, SqsQueue], Awaitable[None]]


def play(story: Story, server: FakeSqs | None = None) -> FakeSqs:
    """A story with one server and one queue on it, which is closed at the end."""
    here = server or FakeSqs()

    async def told() -> None:
        queue = SqsQueue(here.connect, "jobs", SeededChance(1))
        try:
            async with asyncio.timeout(100_000):
                await story(here, queue)
        finally:
            await queue.close()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(told())
    return here


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_missing_queue_is_made_with_the_lease_of_a_job_as_its_visibility() -> None:
    """[J-030] By its name; no redrive, because the database quarantines."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("a")

    assert play(story).attributes == {
        "jobs": {
            "VisibilityTimeout": "180",
            "ReceiveMessageWaitTimeSeconds": "20",
            "MessageRetentionPeriod": "86400",
        }
    }


def test_a_queue_that_somebody_deleted_is_made_again() -> None:
    """After the minute for which its name is not free; meanwhile the sweep's enqueues are told why."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("a")
        server.delete_queue("jobs")
        for reason in ("NonExistentQueue", "QueueDeletedRecently"):
            with pytest.raises(QueueError, match=reason):
                await queue.enqueue("b")
            await asyncio.sleep(2)
        await asyncio.sleep(QUEUE_PAUSE_MAX_SECONDS)
        await queue.enqueue("c")
        job_id, ack, _ = await queue.dequeue()
        assert job_id == "c"
        await ack()

    play(story)


def test_a_message_says_which_job_and_nothing_else() -> None:
    """[J-001, M-094] No text, no workspace, no secret."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("0199-a")
        assert [json.loads(kept.body) for kept in server.queues["jobs"]] == [
            {"job_id": "0199-a", "version": 1}
        ]

    play(story)


def test_many_sends_deletions_and_receives_share_calls_of_ten() -> None:
    """[J-030] What comes at one moment goes in batches; one receive feeds ten consumers."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await asyncio.gather(*(queue.enqueue(f"job-{number}") for number in range(25)))
        assert server.counted("send_message_batch") == [10, 10, 5]
        taken = await asyncio.gather(*(queue.dequeue() for _ in range(25)))
        assert {job_id for job_id, _, _ in taken} == {f"job-{number}" for number in range(25)}
        assert len(server.counted("receive_message")) == 3
        await asyncio.gather(*(ack() for _, ack, _ in taken))
        assert server.counted("delete_message_batch") == [10, 10, 5]
        assert server.waiting() == 0

    play(story)


def test_a_long_poll_waits_for_what_comes_later() -> None:
    """[J-025, J-030] An idle hour costs 180 calls; a message ends the wait at once."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        waiting = asyncio.create_task(queue.dequeue())
        await asyncio.sleep(3605)
        assert len(server.counted("receive_message")) == 180
        await queue.enqueue("a")
        sent_at = now()
        await waiting
        assert now() == sent_at

    play(story)


def test_nobody_else_sees_a_message_while_its_job_is_worked() -> None:
    """[J-026] Its visibility is prolonged by one call a tick for ten messages, for an hour if need be."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await asyncio.gather(*(queue.enqueue(f"job-{number}") for number in range(10)))
        taken = [await queue.dequeue() for _ in range(10)]
        for _ in range(36):
            await asyncio.sleep(99)
            assert server.visible() == 0
        assert server.counted("change_message_visibility_batch") == [10] * 59
        await asyncio.gather(*(ack() for _, ack, _ in taken))
        await asyncio.sleep(1000)
        assert server.waiting() == 0
        assert len(server.counted("change_message_visibility_batch")) <= 60, (
            "nothing is held, nothing is sent"
        )

    play(story)


def test_what_waits_here_too_long_is_left_to_others() -> None:
    """Nobody here took it within its visibility, so it is somebody else's by now: it is not handed out."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await asyncio.gather(queue.enqueue("a"), queue.enqueue("b"))
        _, ack, _ = await queue.dequeue()
        await ack()
        await asyncio.sleep(181)
        other = SqsQueue(server.connect, "jobs", SeededChance(2))
        job_id, acknowledge, _ = await other.dequeue()
        waiting = asyncio.create_task(queue.dequeue())
        await asyncio.sleep(60)
        assert job_id == "b"
        assert not waiting.done()
        await acknowledge()
        waiting.cancel()
        await other.close()

    play(story)


def test_what_has_waited_here_is_hidden_anew_as_it_is_handed_out() -> None:
    """[J-026] Received with others and taken late, it has its whole visibility from then on."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await asyncio.gather(queue.enqueue("a"), queue.enqueue("b"))
        _, ack, _ = await queue.dequeue()
        await ack()
        await asyncio.sleep(170)
        job_id, ack, _ = await queue.dequeue()
        for _ in range(10):
            await asyncio.sleep(19)
            assert server.visible() == 0
        assert job_id == "b"
        await ack()
        assert server.waiting() == 0

    play(story)


def test_a_job_of_more_than_twelve_hours_has_its_message_seen_again_and_deleted_all_the_same() -> None:
    """[J-035] No message is hidden for longer; whoever sees it then finds the job held, and lets it go."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("a")
        _, ack, _ = await queue.dequeue()
        await asyncio.sleep(12 * 3600 - 400)
        assert server.visible() == 0
        await asyncio.sleep(1000)
        assert server.visible() == 1
        await ack()
        assert server.waiting() == 0

    play(story)


def test_a_canceled_consumer_leaves_the_receive_running_and_the_next_one_gets_what_it_brings() -> None:
    """[J-025] A receive is never canceled half-way, also when its answer is late."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("a")
        server.weather = deque(["late"])
        impatient = asyncio.create_task(queue.dequeue())
        await asyncio.sleep(1)
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        job_id, ack, _ = await queue.dequeue()
        assert (job_id, len(server.counted("receive_message"))) == ("a", 1)
        await ack()

    play(story)


def test_closing_waits_for_the_receive_and_gives_back_what_came_late_and_what_was_not_acknowledged() -> None:
    """[J-028, J-027] F10: the poll is drained, and everything is visible to others at once."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("held")
        job_id, _, _ = await queue.dequeue()
        server.weather = deque(["ok", "late"])
        await queue.enqueue("late")
        waiting = asyncio.create_task(queue.dequeue())
        await asyncio.sleep(1)
        await queue.close()
        with pytest.raises(QueueClosed):
            await waiting
        assert (job_id, server.waiting(), server.visible(), server.closed) == ("held", 2, 2, 1)

    play(story)


def test_closing_does_not_wait_for_ever_for_a_server_that_hangs() -> None:
    """[J-028] A poll and a few seconds at most."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("a")
        server.weather = deque(["hang", "hang"])
        waiting = asyncio.create_task(queue.dequeue())
        await asyncio.sleep(1)
        began = now()
        await queue.close()
        await asyncio.gather(waiting, return_exceptions=True)
        assert now() - began < 40

    play(story)


def test_what_keeps_coming_back_comes_back_slower() -> None:
    """[J-027] Given back it is visible at once; after that in 2, 4, 8 … seconds, a minute at most."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("a")
        gaps = []
        for _ in range(8):
            before = now()
            _, _, nack = await queue.dequeue()
            gaps.append(round(now() - before))
            await nack()
        assert gaps == [0, 0, 2, 4, 8, 16, 32, 60]

    play(story)


def test_duplicates_are_handed_out_and_their_stale_receipts_are_harmless() -> None:
    """[J-035] At least once: each delivery has its own ack; the stale one of them changes nothing."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("a")
        first, ack_first, nack_first = await queue.dequeue()
        second, ack_second, _ = await queue.dequeue()
        assert (first, second) == ("a", "a")
        await ack_first()
        assert server.waiting() == 1, "the first receipt is stale"
        await ack_second()
        await nack_first()
        assert server.waiting() == 0

    play(story, FakeSqs(twice=True))


def test_a_message_may_come_again_after_its_deletion() -> None:
    """[J-035] Then it is deleted once more."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("a")
        for _ in range(2):
            job_id, ack, _ = await queue.dequeue()
            assert job_id == "a"
            await ack()
        assert server.waiting() == 0

    play(story, FakeSqs(undead=True))


@pytest.mark.parametrize(
    "body", ["no json", "[]", '{"job_id": 7, "version": 1}', '{"job_id": "a", "version": 2}']
)
def test_what_nobody_understands_is_deleted(body: str) -> None:
    """With a warning that does not repeat it; what the sweep finds in the database needs no message."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("a")
        server.queues["jobs"][0].body = body
        await queue.enqueue("b")
        job_id, ack, _ = await queue.dequeue()
        await ack()
        assert (job_id, server.waiting()) == ("b", 0)

    play(story)


@pytest.mark.parametrize("mood", ["500", "throttled", "cut", "hang"])
def test_errors_of_the_server_never_reach_a_consumer(mood: str) -> None:
    """It waits, a little longer each time, and goes on."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("a")
        server.weather = deque([mood, mood, mood])
        job_id, ack, _ = await queue.dequeue()
        assert job_id == "a"
        server.weather = deque([mood])
        await ack()
        await asyncio.sleep(QUEUE_PAUSE_MAX_SECONDS * 5)

    server = play(story)
    assert len(server.counted("receive_message")) >= 4


def test_a_server_that_is_down_costs_one_call_a_pause_and_is_found_again() -> None:
    """Pauses grow to a minute; who enqueues meanwhile is told at once, and acks are left for later."""

    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        await queue.enqueue("a")
        _, ack, _ = await queue.dequeue()
        server.down = True
        with pytest.raises(QueueError, match="Could not connect"):
            await queue.enqueue("b")
        called = len(server.calls)
        with pytest.raises(QueueError, match="Could not connect"):
            await queue.enqueue("c")
        await ack()
        assert len(server.calls) == called, "no call is made in the pause"
        waiting = asyncio.create_task(queue.dequeue())
        await asyncio.sleep(3600)
        assert 55 <= len(server.calls) - called <= 70
        server.down = False
        job_id, acknowledge, _ = await waiting
        assert job_id == "a", "what could not be deleted comes again"
        await queue.enqueue("d")
        await acknowledge()

    play(story)


def test_an_error_names_the_queue_and_the_reason_and_says_what_to_do() -> None:
    async def story(server: FakeSqs, queue: SqsQueue) -> None:
        server.weather = deque(["throttled"])
        with pytest.raises(QueueError, match=r"the queue jobs cannot be used: ThrottlingException") as told:
            await queue.depth()
        assert told.value.code == "queue_unavailable"
        assert "credentials" in told.value.remedy

    play(story)
