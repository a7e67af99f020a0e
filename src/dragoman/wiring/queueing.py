"""Which queue the settings name, and whether it does what it is there for."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from dragoman.kernel import processes
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import CODES, QueueError, SettingsError
from dragoman.kernel.identity import Chance
from dragoman.kernel.limits import QUEUE_NAME_CHARS_MAX, QUEUE_SEEN_SECONDS
from dragoman.model.contracts import Queue
from dragoman.queues.memory import MemoryQueue
from dragoman.store.acts import readiness
from dragoman.store.database import Database
from dragoman.wiring.settings import Settings

_NAME = "dragoman-jobs"
_ALLOWED = re.compile(r"[A-Za-z0-9_-]+")
_LOCAL_REGION = "us-east-1"


@dataclass(slots=True)
class Waking:
    """The queue of this process, and what can be told about it."""

    queue: Queue
    _database: Database
    _clock: Clock
    _depth: Callable[[], Awaitable[int]] | None
    """Asks the server about the queue; None where there is no server."""
    _asked_at: float | None = None
    _trouble: QueueError | None = field(default=None)

    async def trouble(self) -> QueueError | None:
        """Why the queue cannot be used; None where it can. Asked every few seconds at most."""
        now = self._clock.monotonic()
        if self._depth is not None and (self._asked_at is None or now - self._asked_at >= QUEUE_SEEN_SECONDS):
            self._asked_at = now
            try:
                await self._depth()
                self._trouble = None
            except QueueError as error:
                self._trouble = error
        return self._trouble

    async def warnings(self) -> Mapping[str, str]:
        """What works, and slowly: engines that the queue does not reach. Name → what is wrong."""
        if self._depth is not None:
            return {}
        engines = await self._database.read(readiness.live_engines)
        living = sum(not processes.is_gone(engine) for engine in engines)
        if living < 2:
            return {}
        return {"queue_not_shared": f"{living} engine processes live, and the queue reaches one process only"}


def waking(settings: Settings, database: Database, clock: Clock, chance: Chance) -> Waking:
    """The queue that the settings name; nothing is connected yet. Raises `SettingsError`."""
    if settings.queue_kind == "memory":
        return Waking(MemoryQueue(), database, clock, None)
    name = queue_name(settings)
    try:
        from dragoman.queues.sqs import SqsQueue
        from dragoman.queues.sqs_calls import connection
    except ImportError as error:
        raise SettingsError(
            f"setting queue: sqs needs a package that is not installed ({error.name}): "
            "pip install 'dragoman[sqs]'"
        ) from None
    endpoint = sqs_endpoint(settings)
    region = settings.sqs_region or os.environ.get("AWS_REGION", "")
    if endpoint and not (region or os.environ.get("AWS_DEFAULT_REGION")):
        region = _LOCAL_REGION  # a server of one's own does not care, but the signature needs one
    queue = SqsQueue(
        connection(endpoint, region), name, chance, settings.job_lease_seconds, settings.sqs_poll_seconds
    )
    return Waking(queue, database, clock, queue.depth)


def queue_name(settings: Settings) -> str:
    """The queue's name, prefix first. Raises `SettingsError` where no SQS queue can be called so."""
    name = settings.sqs_queue_prefix + _NAME
    if len(name) > QUEUE_NAME_CHARS_MAX or not _ALLOWED.fullmatch(name):
        raise SettingsError(
            f"setting sqs_queue_prefix: {name!r} is no name of a queue "
            f"(letters, digits, - and _, {QUEUE_NAME_CHARS_MAX} at most)"
        )
    return name


def sqs_endpoint(settings: Settings) -> str:
    """The server: ours before `SQS_ENDPOINT`; empty for Amazon's, or what AWS's own settings say."""
    return settings.sqs_endpoint or settings.queue_server or os.environ.get("SQS_ENDPOINT", "")


def remedy(name: str) -> str:
    """What to do about a warning or a trouble of this module."""
    if name in CODES:
        return CODES[name].remedy
    return 'Set `queue = "sqs"` for many processes; until then each finds the others\' work by its poll.'
