"""Calls to one queue of an SQS server: found or made by its name, each bounded in time, none repeated.

After a failure no call is made for a pause that grows up to a minute: whoever asks meanwhile is told so at
once, and nobody waits for a server that is down.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.session import get_session  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from dragoman.kernel.backoff import delay_seconds
from dragoman.kernel.errors import QueueError
from dragoman.kernel.identity import Chance
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import (
    QUEUE_CALL_SECONDS,
    QUEUE_CONNECT_SECONDS,
    QUEUE_PAUSE_FIRST_SECONDS,
    QUEUE_PAUSE_MAX_SECONDS,
    QUEUE_POLL_SECONDS,
)
from dragoman.queues.batches import Entry

_log = logger(__name__)

Connect = Callable[[], AbstractAsyncContextManager[Any]]
"""Opens a client with the methods of botocore's SQS client, to be awaited."""

_UNNAMED = "not confirmed"
_MISSING = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
_MADE_OTHERWISE = frozenset({"QueueAlreadyExists", "QueueNameExists"})


def connection(endpoint: str = "", region: str = "") -> Connect:
    """Connects as the usual AWS environment says, or to another server at `endpoint`."""
    config = AioConfig(
        connect_timeout=QUEUE_CONNECT_SECONDS,
        read_timeout=QUEUE_POLL_SECONDS + QUEUE_CALL_SECONDS,
        retries={"total_max_attempts": 1},
    )

    def connect() -> AbstractAsyncContextManager[Any]:
        client: AbstractAsyncContextManager[Any] = get_session().create_client(
            "sqs", endpoint_url=endpoint or None, region_name=region or None, config=config
        )
        return client

    return connect


class Calls:
    """The calls of one process to one queue."""

    def __init__(self, connect: Connect, name: str, attributes: Mapping[str, str], chance: Chance) -> None:
        self.name = name
        self.trouble: QueueError | None = None
        """Why the last call failed; None where it went well."""
        self._connect = connect
        self._attributes = attributes
        self._chance = chance
        self._held = contextlib.AsyncExitStack()
        self._opening = asyncio.Lock()
        self._client: Any = None
        self._url = ""
        self._failures = 0
        self._rest_until = 0.0

    def rest_seconds(self) -> float:
        """For how long no call is made after a failure."""
        return max(0.0, self._rest_until - asyncio.get_running_loop().time())

    async def call(self, operation: str, seconds: float = QUEUE_CALL_SECONDS, **values: Any) -> Any:
        """One call of an operation of the queue. Raises `QueueError`."""
        if self.trouble is not None and self.rest_seconds() > 0:
            raise QueueError(self.trouble.message)
        try:
            async with asyncio.timeout(seconds):
                url = await self._find()
                answer = await getattr(self._client, operation)(QueueUrl=url, **values)
        except Exception as error:  # noqa: BLE001 - whatever the library lets out, the worker goes on
            raise self._failed(error) from None
        self._went_well()
        return answer

    async def batch(self, operation: str, entries: Sequence[Entry]) -> Mapping[str, str]:
        """One call for many entries: the code of each that did not succeed, by its `Id`. Raises `QueueError`.

        botocore takes an unreadable answer for an empty one: what it does not name has not succeeded.
        """
        answer = await self.call(operation, Entries=list(entries))
        well = {entry["Id"] for entry in answer.get("Successful") or ()}
        codes = {entry["Id"]: str(entry.get("Code") or _UNNAMED) for entry in answer.get("Failed") or ()}
        return {entry["Id"]: codes.get(entry["Id"], _UNNAMED) for entry in entries if entry["Id"] not in well}

    async def close(self) -> None:
        """Let go of all connections."""
        self._client = None
        await self._held.aclose()

    async def _find(self) -> str:
        """The queue's address; it is made where it is missing."""
        async with self._opening:
            if self._client is None:
                self._client = await self._held.enter_async_context(self._connect())
            if not self._url:
                self._url = str((await self._find_or_make())["QueueUrl"])
            return self._url

    async def _find_or_make(self) -> Any:
        try:
            return await self._client.get_queue_url(QueueName=self.name)
        except ClientError as error:
            if _code(error) not in _MISSING:
                raise
        try:
            return await self._client.create_queue(QueueName=self.name, Attributes=dict(self._attributes))
        except ClientError as error:
            if _code(error) not in _MADE_OTHERWISE:
                raise
        return await self._client.get_queue_url(QueueName=self.name)

    def _failed(self, error: Exception) -> QueueError:
        if isinstance(error, ClientError) and _code(error) in _MISSING:
            self._url = ""  # somebody has deleted it: the next call makes it again
        told = QueueError(f"the queue {self.name} cannot be used: {_told(error)}")
        if self.rest_seconds() > 0:  # its pause was set by a call that failed at the same moment
            return told
        self._failures += 1
        if self.trouble is None:
            _log.warning("the queue cannot be used", code=told.code, reason=told.message)
        self.trouble = told
        pause = delay_seconds(
            self._failures,
            first_seconds=QUEUE_PAUSE_FIRST_SECONDS,
            max_seconds=QUEUE_PAUSE_MAX_SECONDS,
            fraction=self._chance.fraction(),
        )
        self._rest_until = asyncio.get_running_loop().time() + pause
        return told

    def _went_well(self) -> None:
        if self.trouble is not None:
            _log.warning("the queue can be used again", queue=self.name)
        self.trouble, self._failures, self._rest_until = None, 0, 0.0


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _told(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
        return f"{_code(error)} ({status}) {error.response.get('Error', {}).get('Message', '')}"
    return f"{type(error).__name__}: {error}"
