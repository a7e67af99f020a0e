"""The outside of a world, wrapped from the outside: families, the engine's face, reading.

Each wrapper puts a point before and after the call, and refuses to be used while a transaction is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import ParamSpec, Protocol, TypeVar

from dragoman.families.outbound import Exchange, judge
from dragoman.model.contracts import EngineClient, Family
from dragoman.model.effects import Answer, Idempotency, Outgoing
from tests.simulation.faults import CALL, Kind
from tests.simulation.processes import Process

P = ParamSpec("P")
T = TypeVar("T")

_SAFE_TO_REPEAT = ("submission", "webhook", "withdrawal")
"""Families whose receivers know repeats: a network may carry to them one send two times, or after its sender
has given it up."""


class Rules(Protocol):
    """What a world says about calls to the outside."""

    receiver_says: int

    def leave(self, label: str) -> None:
        """Somebody asks the outside; a problem where a transaction is open."""
        ...

    def tell(self, process: Process, text: str) -> None:
        """Write down what the outside did."""
        ...

    def hold_up(self, attempt_id: str) -> None:
        """What this attempt sends arrives once its sender waits no more."""
        ...

    def hear(self, process: Process, attempt_id: str, outcome: str) -> None:
        """An answer of the vendor's has come to a process."""
        ...


class Door:
    """A family, as seen through the ledger's registry."""

    def __init__(self, rules: Rules, process: Process, family: Family) -> None:
        self.name = family.name
        self.idempotency: Idempotency = family.idempotency
        self._rules = rules
        self._process = process
        self._family = family
        self._late: set[asyncio.Task[Answer]] = set()

    async def deliver(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """One try, which the world's weather may spoil."""
        label = f"{self.name} try {outgoing.number}"
        self._rules.leave(label)
        fault = await self._process.point(f"before {label}", self._weather)
        if fault == "late":
            return await self._give_up(outgoing, deadline_seconds, label)
        if fault == "twice":
            await self._carry(outgoing, deadline_seconds)
            self._rules.tell(self._process, f"{label} was carried twice")
        answer = await self._carry(outgoing, deadline_seconds)
        self._rules.tell(self._process, f"{label}: {answer.outcome} {answer.code}".rstrip())
        await self._process.point(f"after {label}")
        if fault == "answer lost":
            return _lost()
        if self.name == "completion":
            self._rules.hear(self._process, outgoing.attempt_id, answer.outcome)
        return answer

    async def inquire(self, outgoing: Outgoing, deadline_seconds: float) -> Answer | None:
        """One question about an attempt."""
        label = f"question about {self.name} try {outgoing.number}"
        self._rules.leave(label)
        fault = await self._process.point(f"before {label}", ("answer lost",))
        answer = await self._family.inquire(outgoing, deadline_seconds)
        self._rules.tell(self._process, f"{label}: {answer.outcome if answer else 'not known'}")
        await self._process.point(f"after {label}")
        return _lost() if fault else answer

    @property
    def _weather(self) -> tuple[Kind, ...]:
        if self.name == "publication_step":
            return ("answer lost",)
        return CALL if self.name in _SAFE_TO_REPEAT else ("answer lost", "late")

    async def _carry(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """To the family, or to a receiver that is ill."""
        if self.name == "webhook" and self._rules.receiver_says:
            return judge(Exchange(connected=True, status=self._rules.receiver_says))
        return await self._family.deliver(outgoing, deadline_seconds)

    async def _give_up(self, outgoing: Outgoing, deadline_seconds: float, label: str) -> Answer:
        """The sender waits in vain; what it sent arrives afterwards."""
        self._rules.tell(self._process, f"{label} is held up on its way")
        self._rules.hold_up(outgoing.attempt_id)
        task = asyncio.create_task(self._arrive(outgoing, deadline_seconds, label))
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        await asyncio.sleep(deadline_seconds)
        return Answer("TIMEOUT_UNKNOWN", code="PROVIDER_TIMEOUT_UNKNOWN", message="no answer in time")

    async def _arrive(self, outgoing: Outgoing, deadline_seconds: float, label: str) -> Answer:
        await asyncio.sleep(deadline_seconds * 1.5)
        self._rules.tell(self._process, f"{label} arrives after all")
        return await self._carry(outgoing, deadline_seconds)


def _lost() -> Answer:
    return Answer("CONNECTION_UNKNOWN", code="PROVIDER_CONNECTION_UNKNOWN", message="the answer was lost")


class EngineFace:
    """The engine as reconciliation asks it."""

    def __init__(self, rules: Rules, process: Process, engine: EngineClient) -> None:
        self._rules = rules
        self._process = process
        self._engine = engine

    async def job(self, workspace: str, job_id: str, deadline_seconds: float) -> Mapping[str, object] | None:
        """One job."""
        async with self._asking("a job"):
            return await self._engine.job(workspace, job_id, deadline_seconds)

    async def items(
        self, workspace: str, job_id: str, cursor: str, deadline_seconds: float
    ) -> Mapping[str, object]:
        """One page of results."""
        async with self._asking("a page"):
            return await self._engine.items(workspace, job_id, cursor, deadline_seconds)

    @asynccontextmanager
    async def _asking(self, what: str) -> AsyncIterator[None]:
        label = f"asking the engine for {what}"
        self._rules.leave(label)
        await self._process.point(f"before {label}")
        yield
        await self._process.point(f"after {label}")


class WatchedOffload:
    """Work in place. Work that reads a source has a point before and after, for a source is outside."""

    def __init__(self, rules: Rules, process: Process) -> None:
        self._rules = rules
        self._process = process

    async def call(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `fn` returns."""
        if not hasattr(getattr(fn, "__self__", None), "_source_of"):
            return fn(*args, **kwargs)
        label = f"reading sources for {getattr(fn, '__name__', 'work').lstrip('_')}"
        self._rules.leave(label)
        await self._process.point(f"before {label}")
        answer = fn(*args, **kwargs)
        await self._process.point(f"after {label}")
        return answer

    def close(self) -> None:
        """Nothing is held."""
