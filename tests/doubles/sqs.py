"""An SQS server inside the test: the client's methods, with the rules of its documentation and its bad days.

A standard queue: at least once, in no promised order. A receipt that is not the newest deletes nothing, and
is told that it did; a message that is hidden no longer can be deleted, and its visibility cannot be changed;
none is hidden for more than twelve hours from its receipt. A name is free again a minute after its queue was
deleted. Faults:
`twice` gives every message a second time at once, `undead` gives it again after its deletion, and `weather`
holds one word for each of the next calls: `ok`, `500`, `throttled`, `cut` (done, and the answer is lost),
`late` (done, and answered after `late_seconds`), `hang` (never answered); after them `mood` says. Time is the
event loop's.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import (  # type: ignore[import-untyped]
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
)

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_FREE_SECONDS = 60
_HIDDEN_SECONDS_MAX = 12 * 3600
_URL = "http://sqs.test/000000000000/"


@dataclass(eq=False)
class Kept:
    """A message on the server."""

    body: str
    visible_at: float
    receipt: str = ""
    count: int = 0
    received_at: float = 0.0


@dataclass
class FakeSqs:
    """One server with any number of queues. `connect` is what `SqsQueue` is given."""

    twice: bool = False
    undead: bool = False
    weather: deque[str] = field(default_factory=deque)
    mood: Callable[[], str] = lambda: "ok"
    late_seconds: float = 8.0
    down: bool = False
    """Whether nobody listens at its address."""
    queues: dict[str, list[Kept]] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    calls: list[tuple[str, int]] = field(default_factory=list)
    """Every call that came: its operation, and how many entries it had."""
    closed: int = 0
    deleted: dict[str, float] = field(default_factory=dict)
    """When each queue that was deleted was."""
    _receipts: int = 0
    _arrival: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[FakeSqs]:
        try:
            yield self
        finally:
            self.closed += 1

    def counted(self, operation: str) -> list[int]:
        """How many entries each call of an operation had."""
        return [entries for name, entries in self.calls if name == operation]

    def visible(self) -> int:
        """How many messages could be received now."""
        now = asyncio.get_running_loop().time()
        return sum(kept.visible_at <= now for queue in self.queues.values() for kept in queue)

    def waiting(self) -> int:
        """How many messages there are, seen or not."""
        return sum(map(len, self.queues.values()))

    def delete_queue(self, name: str) -> None:
        """As somebody with other means does."""
        del self.queues[name]
        self.deleted[name] = asyncio.get_running_loop().time()

    async def get_queue_url(self, QueueName: str) -> dict[str, str]:  # noqa: N803
        return await self._answer("get_queue_url", 0, lambda: self._url(QueueName))

    async def create_queue(self, QueueName: str, Attributes: dict[str, str]) -> dict[str, str]:  # noqa: N803
        def make() -> dict[str, str]:
            if not _NAME.fullmatch(QueueName):
                raise _error("InvalidParameterValue", 400, "create_queue")
            if (
                asyncio.get_running_loop().time()
                < self.deleted.get(QueueName, -_FREE_SECONDS) + _FREE_SECONDS
            ):
                raise _error("AWS.SimpleQueueService.QueueDeletedRecently", 400, "create_queue")
            self.queues.setdefault(QueueName, [])
            self.attributes[QueueName] = Attributes
            return self._url(QueueName)

        return await self._answer("create_queue", 0, make)

    async def get_queue_attributes(
        self,
        QueueUrl: str,  # noqa: N803
        AttributeNames: list[str],  # noqa: N803
    ) -> dict[str, Any]:
        def count() -> dict[str, Any]:
            hidden = len(self._of(QueueUrl)) - self.visible()
            counts = (self.visible(), hidden)
            return {"Attributes": dict(zip(AttributeNames, map(str, counts), strict=True))}

        return await self._answer("get_queue_attributes", 0, count)

    async def send_message_batch(
        self,
        QueueUrl: str,  # noqa: N803
        Entries: list[dict[str, Any]],  # noqa: N803
    ) -> dict[str, Any]:
        def send() -> dict[str, Any]:
            _check_batch(Entries)
            now = asyncio.get_running_loop().time()
            self._of(QueueUrl).extend(Kept(entry["MessageBody"], now) for entry in Entries)
            return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

        answer = await self._answer("send_message_batch", len(Entries), send)
        async with self._arrival:
            self._arrival.notify_all()
        return answer

    async def receive_message(
        self,
        QueueUrl: str,  # noqa: N803
        MaxNumberOfMessages: int,  # noqa: N803
        WaitTimeSeconds: int,  # noqa: N803
        VisibilityTimeout: int,  # noqa: N803
        MessageSystemAttributeNames: list[str],  # noqa: N803
    ) -> dict[str, Any]:
        if not (1 <= MaxNumberOfMessages <= 10 and 0 <= WaitTimeSeconds <= 20):
            raise _error("InvalidParameterValue", 400, "receive_message")
        loop = asyncio.get_running_loop()
        until = loop.time() + WaitTimeSeconds
        while loop.time() < until and not self.down and not self.visible():
            soon = min((kept.visible_at for queue in self.queues.values() for kept in queue), default=until)
            async with self._arrival:
                try:
                    async with asyncio.timeout_at(min(soon, until)):
                        await self._arrival.wait()
                except TimeoutError:
                    continue

        def receive() -> dict[str, Any]:
            now = loop.time()
            due = [kept for kept in self._of(QueueUrl) if kept.visible_at <= now][:MaxNumberOfMessages]
            told = [self._deliver(kept, now + VisibilityTimeout) for kept in due]
            if self.twice and len(told) * 2 <= MaxNumberOfMessages:
                told += [self._deliver(kept, now + VisibilityTimeout) for kept in due]
            return {"Messages": told} if told else {}

        return await self._answer("receive_message", 0, receive)

    async def delete_message_batch(
        self,
        QueueUrl: str,  # noqa: N803
        Entries: list[dict[str, Any]],  # noqa: N803
    ) -> dict[str, Any]:
        def delete(kept: Kept | None, _: dict[str, Any]) -> str:
            if kept is not None and self.undead and kept.count < 2:
                kept.visible_at = 0.0
            elif kept is not None:
                self._of(QueueUrl).remove(kept)
            return ""

        return await self._each("delete_message_batch", QueueUrl, Entries, delete)

    async def change_message_visibility_batch(
        self,
        QueueUrl: str,  # noqa: N803
        Entries: list[dict[str, Any]],  # noqa: N803
    ) -> dict[str, Any]:
        def change(kept: Kept | None, entry: dict[str, Any]) -> str:
            now, seconds = asyncio.get_running_loop().time(), entry["VisibilityTimeout"]
            if kept is None:
                return "ReceiptHandleIsInvalid"
            if kept.visible_at <= now:
                return "AWS.SimpleQueueService.MessageNotInflight"
            if now + seconds > kept.received_at + _HIDDEN_SECONDS_MAX:
                return "InvalidParameterValue"
            kept.visible_at = now + seconds
            return ""

        answer = await self._each("change_message_visibility_batch", QueueUrl, Entries, change)
        async with self._arrival:
            self._arrival.notify_all()
        return answer

    async def _each(
        self,
        operation: str,
        url: str,
        entries: list[dict[str, Any]],
        act: Callable[[Kept | None, dict[str, Any]], str],
    ) -> dict[str, Any]:
        def all_of_them() -> dict[str, Any]:
            _check_batch(entries)
            failed, done = [], []
            for entry in entries:
                kept = next((one for one in self._of(url) if one.receipt == entry["ReceiptHandle"]), None)
                code = act(kept, entry)
                if code:
                    failed.append({"Id": entry["Id"], "Code": code, "SenderFault": True})
                else:
                    done.append({"Id": entry["Id"]})
            return {"Successful": done, "Failed": failed}

        return await self._answer(operation, len(entries), all_of_them)

    async def _answer(
        self, operation: str, entries: int, act: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        self.calls.append((operation, entries))
        await asyncio.sleep(0)
        if self.down:
            raise EndpointConnectionError(endpoint_url=_URL)
        mood = self.weather.popleft() if self.weather else self.mood()
        if mood == "500":
            raise _error("InternalFailure", 500, operation)
        if mood == "throttled":
            raise _error("ThrottlingException", 400, operation)
        if mood == "hang":
            await asyncio.Event().wait()
        answer = act()
        if mood == "late":
            await asyncio.sleep(self.late_seconds)
        if mood == "cut":
            raise ConnectionClosedError(endpoint_url=_URL)
        return answer

    def _deliver(self, kept: Kept, visible_at: float) -> dict[str, Any]:
        self._receipts += 1
        kept.receipt, kept.visible_at, kept.count = f"receipt-{self._receipts}", visible_at, kept.count + 1
        kept.received_at = asyncio.get_running_loop().time()
        return {
            "MessageId": str(id(kept)),
            "ReceiptHandle": kept.receipt,
            "Body": kept.body,
            "Attributes": {"ApproximateReceiveCount": str(kept.count)},
        }

    def _url(self, name: str) -> dict[str, str]:
        if name not in self.queues:
            raise _error("AWS.SimpleQueueService.NonExistentQueue", 400, "get_queue_url")
        return {"QueueUrl": _URL + name}

    def _of(self, url: str) -> list[Kept]:
        name = url.removeprefix(_URL)
        if name not in self.queues:
            raise _error("AWS.SimpleQueueService.NonExistentQueue", 400, "call")
        return self.queues[name]


def _check_batch(entries: list[dict[str, Any]]) -> None:
    """One to ten entries, each under an id of its own."""
    names = [entry["Id"] for entry in entries]
    code = "BatchEntryIdsNotDistinct" if len(set(names)) < len(names) else ""
    if not 1 <= len(entries) <= 10:
        code = "TooManyEntriesInBatchRequest" if entries else "EmptyBatchRequest"
    if code:
        raise _error(f"AWS.SimpleQueueService.{code}", 400, "batch")


def _error(code: str, status: int, operation: str) -> ClientError:
    told = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(told, operation)
