"""Amazon SQS, or any server that speaks its protocol: wakes the workers of many processes.

A message names a job and nothing else. It is taken by long polls in batches of ten and handed out one at a
time; while somebody has it, its visibility is prolonged; acknowledged it is deleted, given back it is visible
again. Every receive runs to its end, whoever stops waiting for it: what it brings goes to the next who waits,
and back to the server where nobody does.

A message may come twice, late, after its deletion or never, and a receipt may be stale: the database decides
about the job, so none of that matters. Nor does a server that is down: the queue then wakes nobody.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.kernel.errors import QueueClosed, QueueError
from dragoman.kernel.identity import Chance
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import (
    JOB_LEASE_SECONDS,
    QUEUE_BATCH,
    QUEUE_CALL_SECONDS,
    QUEUE_PAUSE_MAX_SECONDS,
    QUEUE_POLL_SECONDS,
    QUEUE_RETENTION_SECONDS,
    RENEW_SHARE,
)
from dragoman.queues.batches import Batches, Entry
from dragoman.queues.sqs_calls import Calls, Connect

_log = logger(__name__)
_VERSION = 1
_COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
_Act = Callable[[], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Message:
    """One delivery of a message, and until when it is ours alone (time of the event loop)."""

    job_id: str
    receipt: str
    count: int
    visible_at: float


class SqsQueue:
    """One process's end of a queue on a server. `visibility_seconds` is the lease of a job."""

    def __init__(
        self,
        connect: Connect,
        name: str,
        chance: Chance,
        visibility_seconds: float = JOB_LEASE_SECONDS,
        poll_seconds: int = QUEUE_POLL_SECONDS,
    ) -> None:
        self._visibility_seconds = int(visibility_seconds)
        self._poll_seconds = poll_seconds
        attributes = {
            "VisibilityTimeout": str(self._visibility_seconds),
            "ReceiveMessageWaitTimeSeconds": str(poll_seconds),
            "MessageRetentionPeriod": str(QUEUE_RETENTION_SECONDS),
        }
        self._calls = Calls(connect, name, attributes, chance)
        self._sends = Batches(self._send)
        self._deletions = Batches(self._delete)
        self._changes = Batches(self._change)
        self._arrival = asyncio.Condition()
        self._arrived: deque[_Message] = deque()
        self._out: set[_Message] = set()
        """Handed out, and neither acknowledged nor given back."""
        self._waiting = 0
        self._closing = asyncio.Event()
        self._receiving: asyncio.Task[None] | None = None
        self._prolonging: asyncio.Task[None] | None = None
        self._renewals: set[asyncio.Task[None]] = set()

    async def enqueue(self, job_id: str) -> None:
        """Say that a job is due. Raises `QueueClosed` once closed, `QueueError` where the server fails."""
        self._refuse_when_closed()
        failed = await self._sends.put({"MessageBody": json.dumps({"job_id": job_id, "version": _VERSION})})
        if failed:
            raise QueueError(f"the queue {self._calls.name} took no message: {failed}")

    async def dequeue(self) -> tuple[str, _Act, _Act]:
        """Wait for a job id: `(job_id, ack, nack)`. Raises `QueueClosed` once closed, also while it waits.

        Never raises for what the server does. `ack` and `nack` neither; a second call of them does nothing.
        """
        async with self._arrival:
            self._waiting += 1
            try:
                while True:
                    self._refuse_when_closed()
                    message = self._next()
                    if message is not None:
                        break
                    if self._receiving is None or self._receiving.done():
                        self._receiving = asyncio.create_task(self._receive(), name="queue receive")
                    await self._arrival.wait()
            finally:
                self._waiting -= 1
        self._hand_out(message)

        async def ack() -> None:
            """Delete it. What cannot be deleted comes again, and finds its job worked."""
            if message in self._out:
                self._out.discard(message)
                await _quietly(self._deletions.put({"ReceiptHandle": message.receipt}))

        async def nack() -> None:
            """Let others see it: at once, and after a while where it has come back before."""
            if message in self._out:
                self._out.discard(message)
                await _quietly(self._changes.put(_visible_in(message, _pause_seconds(message.count))))

        return message.job_id, ack, nack

    async def close(self) -> None:
        """Let the running receive end, and give back all that is not acknowledged. A second close does
        nothing.
        """
        if self._closing.is_set():
            return
        self._closing.set()
        async with self._arrival:
            self._arrival.notify_all()
        if self._receiving is not None:
            await asyncio.wait({self._receiving}, timeout=self._poll_seconds + QUEUE_CALL_SECONDS)
            self._receiving.cancel()
        if self._prolonging is not None:
            self._prolonging.cancel()
        returned = [*self._out, *self._arrived]
        self._out.clear()
        self._arrived.clear()
        await asyncio.gather(*(_quietly(self._changes.put(_visible_in(message, 0))) for message in returned))
        for batches in (self._sends, self._deletions, self._changes):
            await batches.finish()
        await self._calls.close()

    async def depth(self) -> int:
        """About how many messages there are, seen or not; the queue is made where it is missing. Raises
        `QueueError` where the server cannot be used.
        """
        answer = await self._calls.call("get_queue_attributes", AttributeNames=list(_COUNTS))
        return sum(int(answer["Attributes"].get(name, 0)) for name in _COUNTS)

    def _refuse_when_closed(self) -> None:
        if self._closing.is_set():
            raise QueueClosed("the queue is closed")

    def _next(self) -> _Message | None:
        """What waits here longest, and is still ours."""
        now = asyncio.get_running_loop().time()
        while self._arrived:
            message = self._arrived.popleft()
            if message.visible_at > now:
                return message
        return None

    def _hand_out(self, message: _Message) -> None:
        """Keep it from others as long as somebody has it; from now on, where it has waited here."""
        self._out.add(message)
        left_seconds = message.visible_at - asyncio.get_running_loop().time()
        if left_seconds < self._visibility_seconds * (1 - RENEW_SHARE):
            renewal = asyncio.create_task(self._hide([message]), name="queue visibility of one")
            self._renewals.add(renewal)
            renewal.add_done_callback(self._renewals.discard)
        if self._prolonging is None or self._prolonging.done():
            self._prolonging = asyncio.create_task(self._prolong(), name="queue visibility")

    async def _receive(self) -> None:
        """Receive as long as somebody waits. Nobody cancels it but a close that has waited for it."""
        while self._waiting and not self._arrived and not self._closing.is_set():
            try:
                messages = await self._poll()
            except QueueError:
                await self._rest()
                continue
            async with self._arrival:
                self._arrived.extend(messages)
                self._arrival.notify_all()

    async def _poll(self) -> Sequence[_Message]:
        answer = await self._calls.call(
            "receive_message",
            self._poll_seconds + QUEUE_CALL_SECONDS,
            MaxNumberOfMessages=QUEUE_BATCH,
            WaitTimeSeconds=self._poll_seconds,
            VisibilityTimeout=self._visibility_seconds,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        found = answer.get("Messages") or ()
        readable = [message for one in found if (message := self._read(one)) is not None]
        strange = [str(one["ReceiptHandle"]) for one in found if _job_of(one) is None]
        for receipt in strange:
            _log.warning("a message that nobody understands is deleted", queue=self._calls.name)
            await _quietly(self._deletions.put({"ReceiptHandle": receipt}))
        return readable

    def _read(self, received: Mapping[str, Any]) -> _Message | None:
        job_id = _job_of(received)
        if job_id is None:
            return None
        count = str((received.get("Attributes") or {}).get("ApproximateReceiveCount", "1"))
        return _Message(
            job_id,
            str(received["ReceiptHandle"]),
            int(count) if count.isdecimal() else 1,
            asyncio.get_running_loop().time() + self._visibility_seconds,
        )

    async def _rest(self) -> None:
        """Wait until the server may be asked again, or the queue closes."""
        try:
            await asyncio.wait_for(self._closing.wait(), self._calls.rest_seconds())
        except TimeoutError:
            return

    async def _prolong(self) -> None:
        """Keep what is handed out from others, in one call a tick for each ten."""
        while self._out:
            await asyncio.sleep(self._visibility_seconds * RENEW_SHARE)
            await self._hide(list(self._out))

    async def _hide(self, messages: Sequence[_Message]) -> None:
        entries = (_visible_in(message, self._visibility_seconds) for message in messages)
        await asyncio.gather(*(_quietly(self._changes.put(entry)) for entry in entries))

    async def _send(self, entries: Sequence[Entry]) -> Mapping[str, str]:
        return await self._calls.batch("send_message_batch", entries)

    async def _delete(self, entries: Sequence[Entry]) -> Mapping[str, str]:
        return await self._calls.batch("delete_message_batch", entries)

    async def _change(self, entries: Sequence[Entry]) -> Mapping[str, str]:
        return await self._calls.batch("change_message_visibility_batch", entries)


async def _quietly(act: Awaitable[str]) -> None:
    """What fails here makes a message come again, and no more: the failure is on record in `Calls`."""
    try:
        await act
    except QueueError:
        return


def _visible_in(message: _Message, seconds: int) -> Entry:
    return {"ReceiptHandle": message.receipt, "VisibilityTimeout": seconds}


def _pause_seconds(count: int) -> int:
    """0 when it came for the first time, then 2, 4, 8 … up to a minute."""
    return 0 if count <= 1 else min(2 ** min(count - 1, 10), QUEUE_PAUSE_MAX_SECONDS)


def _job_of(received: Mapping[str, Any]) -> str | None:
    """The job that a message names; None where it is not of this program, or of a version to come."""
    try:
        body = json.loads(received["Body"])
    except (ValueError, KeyError, RecursionError):
        return None
    if (
        not isinstance(body, dict)
        or body.get("version") != _VERSION
        or not isinstance(body.get("job_id"), str)
    ):
        return None
    return str(body["job_id"])
