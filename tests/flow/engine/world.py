"""The translating side alone, over a real store: processes that can be killed, and providers on cue.

A `Process` is one worker with its own view of the database. Once it is killed nothing of it acts any more:
every door that it uses asks first whether it still lives, as after `kill -9`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dragoman.content.locales import choose_code
from dragoman.families.completion import Completion
from dragoman.families.withdrawal import Withdrawal
from dragoman.flow.engine.acceptance import Acceptance
from dragoman.flow.engine.controls import Controls
from dragoman.flow.engine.dispatch import Dispatch
from dragoman.flow.engine.jobs import Jobs
from dragoman.flow.engine.translation.gate import Gate
from dragoman.flow.engine.translation.pipeline import Translation
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.offload import InlineOffload
from dragoman.ledger.acting import Ledger
from dragoman.model.budgets import Bounds
from dragoman.model.completions import ProviderAnswer
from dragoman.model.contracts import Family, Provider
from dragoman.model.effects import Answer, Outgoing
from dragoman.model.jobs import Accepted
from dragoman.model.scopes import System, Workspace
from dragoman.providers.rehearsal import RehearsalProvider
from dragoman.queues.memory import MemoryQueue
from dragoman.store.acts.auditing import money_differences
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper
from dragoman.store.rows import lanes
from dragoman.store.schema import effects as ledger_tables
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx
from dragoman.store.writer import Call
from tests.doubles.databases import opened

HOME = Workspace("home")
PRINCIPAL = "ada"


class Killed(BaseException):
    """Not an Exception: no handler of the system may act after it."""


class Life:
    """How long a process lives: for so many moments, or until it has come to a named one so often."""

    def __init__(self, dies_at: int | None = None, after: tuple[str, int] | None = None) -> None:
        self.dead = False
        self.names: list[str] = []
        self._dies_at = dies_at
        self._after = after

    def point(self, name: str) -> None:
        """A moment between two steps of the system."""
        if self.dead:
            raise Killed
        self.names.append(name)
        named = self._after is not None and self.names.count(self._after[0]) == self._after[1]
        if named or len(self.names) == self._dies_at:
            self.dead = True
            raise Killed


class _Mortal:
    """The doors of a database, as long as the process lives."""

    def __init__(self, performer: Any, life: Life) -> None:
        self._performer = performer
        self._life = life

    async def perform(self, call: Call) -> Any:
        self._life.point(f"before {call.act.__name__}")
        result = await self._performer.perform(call)
        self._life.point(f"after {call.act.__name__}")
        return result

    async def close(self) -> None: ...


class _MortalFamily:
    """The family, whose process may die on the way out or on the way back."""

    def __init__(self, family: Family, life: Life) -> None:
        self.name = family.name
        self.idempotency = family.idempotency
        self._family = family
        self._life = life

    async def deliver(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        self._life.point("before send")
        answer = await self._family.deliver(outgoing, deadline_seconds)
        self._life.point("after send")
        return answer

    async def inquire(self, outgoing: Outgoing, deadline_seconds: float) -> Answer | None:
        self._life.point("before ask")
        return await self._family.inquire(outgoing, deadline_seconds)


class Process:
    """One worker: takes jobs and works them, one after the other."""

    _numbers = itertools.count(1)

    def __init__(
        self,
        world: World,
        life: Life | None = None,
        call_timeout_seconds: float = 20.0,
        holds: Sequence[str] = (),
    ) -> None:
        self.life = life or Life()
        real = world.database
        self.database = Database(
            _Mortal(real._writer, self.life),
            _Mortal(real._reader, self.life),
            real.now,
            SystemChance(),
            real.tally,
        )
        self.owner = f"test/boot/{next(self._numbers)}/0"
        self.keeper = Keeper(self.database, SystemClock(), self.owner)
        families = (world.completion, Withdrawal(world.completion.resolve))
        ledger = Ledger(self.database, {one.name: _MortalFamily(one, self.life) for one in families})
        self.dispatch = Dispatch(self.database, world.queue, self.keeper, System(), holds=holds)
        self.translation = Translation(
            self.database,
            ledger,
            world.completion.resolve,
            world.completion.need,
            self.keeper,
            SystemChance(),
            Gate(64, **world.gates),
            System(),
            call_timeout_seconds=call_timeout_seconds,
            fallbacks=world.fallbacks,
            bounds=world.bounds,
            without_examples=world.without_examples,
        )

    async def drain(self) -> list[str]:
        """Work until nothing is due; how each job ended."""
        ends: list[str] = []
        while (claimed := await self.dispatch.take()) is not None:
            ends.append(await self.translation.work(claimed))
        return ends

    async def drain_until_killed(self) -> None:
        """The same, for a process that may die."""
        with contextlib.suppress(Killed):
            await self.drain()
        self.life.dead = True
        await asyncio.sleep(0)


class World:
    """One database, its providers, and everything that stands in the tables."""

    def __init__(
        self, database: Database, providers: Sequence[Provider], batchers: Sequence[Provider] = ()
    ) -> None:
        self.database = database
        self.queue = MemoryQueue()
        self.needs: dict[str, str] = {}
        """Provider → the key that it cannot do without."""
        self.fallbacks: dict[str, tuple[str, ...]] = {}
        self.bounds: dict[str, Bounds] = {}
        self.without_examples: list[str] = []
        self.gates: dict[str, Any] = {}
        makers = {provider.name: functools.partial(_given, provider) for provider in providers}
        batching = {provider.name: functools.partial(_given, provider) for provider in batchers}
        self.completion = Completion(makers, providers[0].name, batching, self.needs)
        asked = self.completion.resolve, self.completion.need
        self.acceptance = Acceptance(database, self.queue, *asked, InlineOffload(), SystemChance())
        self.controls = Controls(database)
        self.jobs = Jobs(database)

    async def accept(self, items: Mapping[str, Any] | Sequence[Any], **more: Any) -> Accepted:
        """Accept a submission of texts: `{ref: {key: field}}` into `fr`, or complete items."""
        workspace, project = more.pop("workspace", HOME.id), more.pop("project", "docs")
        body = submission(items, **more)
        return await self.acceptance.accept(PRINCIPAL, workspace, project, body, None, local=True)

    async def page(self, job_id: str, cursor: str, limit: int) -> Mapping[str, Any]:
        return await self.jobs.items(HOME, job_id, cursor, limit)

    async def view(self, job_id: str) -> Mapping[str, Any]:
        return await self.jobs.get(HOME, job_id)

    async def texts(self, job_id: str) -> dict[str, Any]:
        """wire key → text (or plural forms) of a job's good fields."""
        return {
            key: field.get("text", field.get("plural"))
            for item in (await self.view(job_id))["items"]
            for key, field in item["fields"].items()
            if not field.get("code")
        }

    async def failures(self, job_id: str) -> dict[str, Mapping[str, Any]]:
        return {
            key: field
            for item in (await self.view(job_id))["items"]
            for key, field in item["fields"].items()
            if field.get("code")
        }

    async def rows(self, name: str) -> list[Row]:
        """Every row of a table of the engine or the ledger."""
        table = getattr(tables, name, None)
        if table is None:
            table = getattr(ledger_tables, name)
        return await self.database.read(_all, table)

    async def abandon(self) -> None:
        """Let the leases of whoever is gone run out now."""
        await self.database.run(_expire)

    async def hasten(self, pauses: bool = True) -> None:
        """Let everything that waits for a time come due now; with `pauses`, accounts be called again, too."""
        await self.database.run(_hasten, pauses)

    async def until(self, has_come: Callable[[], bool]) -> None:
        """Wait for a moment that another task brings about."""
        async with asyncio.timeout(20):
            while not has_come():
                await asyncio.sleep(0.001)

    async def put(self, **said: Any) -> Mapping[str, Any]:
        return await self.controls.put(HOME, "manifest-1", said)

    async def assert_money_is_true(self) -> None:
        """The stored sums of money equal a recount (law 6)."""
        assert await self.database.read(money_differences, System()) == []


@contextlib.asynccontextmanager
async def world(
    url: str, *providers: Provider, batchers: Sequence[Provider] = (), **options: Any
) -> AsyncIterator[World]:
    async with opened(url, **options) as database:
        here = World(database, providers or (rehearsal(),), batchers)
        try:
            yield here
        finally:
            await here.completion.close()


def rehearsal(**how: Any) -> RehearsalProvider:
    """A provider on cue; `Hello` becomes `fr Hello`."""
    kind: type[RehearsalProvider] = how.pop("kind", RehearsalProvider)
    return kind(how.pop("name", "rehearsal"), choose_code, **how)


class Hurried(RehearsalProvider):
    """The time for a call is over once the provider has it, however slow the machine is on the way there."""

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        return await super().send(body, attempt_id, 0.0)


class Stalled(RehearsalProvider):
    """Works its first call at once, and brings the answer only when it is released."""

    def __init__(self, **how: Any) -> None:
        super().__init__("rehearsal", choose_code, **how)
        self.release = asyncio.Event()

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> Answer:
        first = not self.calls
        answer = await super().send(body, attempt_id, deadline_seconds)
        if first:
            await self.release.wait()
        return answer


def accepted_calls(provider: RehearsalProvider) -> int:
    """How many calls the provider has worked, and would have charged for."""
    return len(provider.accepted)


def submission(items: Mapping[str, Any] | Sequence[Any], **more: Any) -> bytes:
    """The bytes of a submission; `more` are other members of the body."""
    if isinstance(items, Mapping):
        items = [{"ref": ref, "targetLang": "fr", "fields": fields} for ref, fields in items.items()]
    body = {
        "submissionId": more.pop("submission_id", None) or SystemChance().new_id(),
        "clientJobId": "manifest-1",
        "sourceLang": "en",
        "callbackUrl": "local:callbacks",
        "items": items,
        **more,
    }
    return json.dumps(body).encode()


def numbered(count: int, words: str = "Message number") -> dict[str, str]:
    """That many different texts."""
    return {f"k{n}": f"{words} {_LETTERS[n // 26]}{_LETTERS[n % 26]}" for n in range(count)}


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _given(provider: Provider, _model: str) -> Provider:
    return provider


def _all(tx: Tx, table: sa.Table) -> list[Row]:
    return tx.all(sa.select(table))


def _expire(tx: Tx) -> None:
    jobs = tables.jobs
    tx.touched(sa.update(jobs).where(jobs.c.lease_owner.is_not(None)).values(lease_expires_at=tx.now - 1))
    _wake_lanes(tx)


def _hasten(tx: Tx, pauses: bool) -> None:
    jobs, calls = tables.jobs, tables.calls
    tx.touched(sa.update(jobs).where(jobs.c.next_attempt_at.is_not(None)).values(next_attempt_at=tx.now))
    tx.touched(sa.update(calls).values(next_attempt_at=None))
    if pauses:
        tx.touched(sa.delete(tables.pauses))
    _wake_lanes(tx)


def _wake_lanes(tx: Tx) -> None:
    for lane in tx.all(sa.select(tables.lanes)):
        lanes.wake(tx, lane.workspace, lanes.ENGINE, tx.now)
