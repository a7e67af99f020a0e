"""Pause and cancel in the middle of a great manifest: the whole product at work, in one process.

`DRAGOMAN_PAUSE_INTENTS` says how great (5,000 on SQLite, 400 on the servers). The minute of the pause is
turned forward by hand, on the host's clocks and so on the database's; nobody waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.content import locales
from dragoman.families.completion import Completion
from dragoman.flow.site.admission import Caller
from dragoman.kernel.clock import SystemClock, seconds
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.offload import InlineOffload
from dragoman.model.completions import ProviderAnswer
from dragoman.providers.rehearsal import RehearsalProvider
from dragoman.store.acts import examining
from dragoman.store.database import Database
from dragoman.store.schema import effects, engine, publishing
from dragoman.store.transaction import Tx
from dragoman.wiring import rounds
from dragoman.wiring.services import Services, assemble
from dragoman.wiring.settings import Settings

LOCALES = ("cs", "da", "de", "es", "fi", "fr", "it", "nl", "pl", "sv")
CALLER = Caller("default", "mia")
MINUTE = 60.0
INTENTS_A_CALL = 10


class TurnedClock(SystemClock):
    """The host's clocks, which a test turns forward."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def now(self) -> int:
        return super().now() + seconds(self.ahead_seconds)

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_seconds


def size(url: str) -> int:
    """How many intents."""
    return int(os.environ.get("DRAGOMAN_PAUSE_INTENTS", "5000" if url.startswith("sqlite") else "400"))


class Vendor(RehearsalProvider):
    """Takes money; answers `free` calls, and the others once somebody says so."""

    def __init__(self, free: int) -> None:
        super().__init__("vendor", locales.choose_code, microusd_per_token=2)
        self.free = free
        self.opened = asyncio.Event()

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        if len(self.calls) >= self.free:
            await self.opened.wait()
        return await super().send(body, attempt_id, deadline_seconds)


class Office:
    """Everything at work in one process; the vendor answers the first third and then waits."""

    def __init__(self, services: Services, vendor: Vendor, clock: TurnedClock, folder: Path) -> None:
        self.services = services
        self.vendor = vendor
        self.clock = clock
        self.folder = folder

    async def ask(self, intents: int, publish: str) -> str:
        """A manifest over so many pairs."""
        names = [f"d{number:04}.json" for number in range(intents // len(LOCALES))]
        for name in names:
            (self.folder / name).write_text(json.dumps({"k": f"Text of {name}", "j": "Good night"}), "utf-8")
        frozen = {
            "project": "docs", "source_locale": "en", "mode": "missing", "provider": "vendor",
            "root": str(self.folder), "out": "{locale}/{path}{ext}", "executor": "files:v1",
            "partial": "auto", "publish": publish,
        }  # fmt: skip
        pairs = sorted((name, locale) for name in names for locale in LOCALES)
        admitted = await self.services.admission.admit_pairs(CALLER, "docs", "r-1", pairs, frozen)
        return admitted.manifest_id

    async def status(self, manifest: str) -> dict[str, Any]:
        """As it stands; the counters sum to the total whenever somebody looks."""
        status = await self.services.views.status("default", manifest)
        counts = status["counts"]
        assert sum(counts[name] for name in counts if name != "total") == counts["total"]
        return status

    async def until(self, manifest: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first status of which something holds."""
        async with asyncio.timeout(240):
            while not holds(status := await self.status(manifest)):
                await asyncio.sleep(0.02)
        return status

    async def held(self) -> None:
        """Until the vendor keeps somebody waiting."""
        async with asyncio.timeout(120):
            while len(self.vendor.calls) < self.vendor.free or not await self.services.database.read(
                under_way
            ):
                await asyncio.sleep(0.02)

    async def rests(self) -> None:
        """Until no attempt is under way and every loop has looked and found nothing."""
        async with asyncio.timeout(120):
            while not self.services.workers.idle or await self.services.database.read(under_way) > 0:
                await asyncio.sleep(0.02)

    async def minute(self) -> None:
        """A minute passes: every loop looks again, everything that was to be due in it is."""
        self.clock.ahead_seconds += MINUTE
        self.services.workers.wake()
        await asyncio.sleep(0)
        await self.rests()


@contextlib.asynccontextmanager
async def office(url: str, folder: Path, intents: int) -> AsyncIterator[Office]:
    """All roles, started."""
    clock = TurnedClock()
    database = await Database.open(url, clock=clock, chance=SystemChance())
    vendor = Vendor(intents // INTENTS_A_CALL // 3)
    settings = Settings(database_url=url, root=folder, state_folder=folder / ".dragoman", jobs_per_process=1)
    completion = Completion({"vendor": lambda model: vendor}, "vendor")
    services = assemble(settings, database, clock, SystemChance(), InlineOffload(), completion=completion)
    try:
        await rounds.start(services)
        yield Office(services, vendor, clock, folder)
    finally:
        await services.close()


def under_way(tx: Tx) -> int:
    """Attempts that have begun and not ended."""
    table = effects.attempts
    return int(tx.scalar(sa.select(sa.func.count()).where(table.c.outcome == "STARTED")))


def attempts(tx: Tx) -> dict[str, int]:
    """How many attempts were ever begun, by family.

    Those that tell of an end do not count: what was under way when the pause came ends, and its end is told.
    """
    table, family = effects.attempts, effects.effects.c.family
    both = sa.join(table, effects.effects, table.c.effect_id == effects.effects.c.id)
    begun = sa.select(family, sa.func.count().label("number")).select_from(both).group_by(family)
    return {row.family: int(row.number) for row in tx.all(begun.where(family != "webhook"))}


def last_begun(tx: Tx) -> int:
    """When the last of them was begun."""
    table, family = effects.attempts, effects.effects.c.family
    both = sa.join(table, effects.effects, table.c.effect_id == effects.effects.c.id)
    last = sa.select(sa.func.max(table.c.started_at).label("last")).select_from(both)
    return int(tx.scalar(last.where(family != "webhook")))


def attempts_per_effect(tx: Tx) -> int:
    """The most attempts that any one effect took."""
    return int(tx.scalar(sa.select(sa.func.max(effects.effects.c.attempt_count))))


def reserved(tx: Tx) -> list[int]:
    """What any budget still holds back."""
    return [row.reserved_tokens for row in tx.all(sa.select(engine.budgets.c.reserved_tokens))]


def steps_begun(tx: Tx) -> int:
    """Publication steps that were ever begun."""
    table = publishing.publication_steps
    return int(tx.scalar(sa.select(sa.func.count()).where(table.c.attempt_count > 0)))


def written(folder: Path) -> set[str]:
    """Every target that is there."""
    return {str(path.relative_to(folder)) for locale in LOCALES for path in (folder / locale).rglob("*.json")}


@pytest.mark.timeout(600)
def test_a_minutes_pause_in_the_middle_starts_nothing_and_ends_alike(
    database_url: str, tmp_path: Path
) -> None:
    """No attempt starts after the acknowledgement, on either side; resumed, everything is done, once."""
    intents = size(database_url)

    async def story() -> None:
        async with office(database_url, tmp_path, intents) as here:
            database, steering = here.services.database, here.services.steering
            manifest = await here.ask(intents, "none")
            await here.until(manifest, lambda status: status["counts"]["completed"] >= intents // 4)
            await here.held()
            paused = await steering.pause("default", manifest, "mia")
            assert paused.changed
            await here.until(manifest, lambda status: status["health"]["engine_told"])  # on a slow machine
            acknowledged, begun = database.now(), await database.read(attempts)
            here.vendor.opened.set()  # what was under way is answered during the pause
            await here.rests()
            middle = await here.status(manifest)
            assert middle["status"] == "paused"
            assert middle["counts"]["completed"] < intents, "it was paused in its middle"
            await here.minute()
            assert await database.read(attempts) == begun, "an attempt was begun during the pause"
            assert await database.read(last_begun) <= acknowledged
            assert (await here.status(manifest))["counts"] == middle["counts"]
            assert (await steering.resume("default", manifest, "mia")).changed
            ended = await here.until(manifest, lambda status: status["completed_at"] is not None)
            assert ended["counts"] == {**ended["counts"], "completed": intents, "total": intents}
            assert ended["status"] == "completed"
            assert ended["fields"]["fields_total"] == 2 * intents
            assert await database.read(attempts_per_effect) == 1, "nothing was asked twice"
            assert set(await database.read(reserved)) == {0}
            assert await database.read(examining.findings) == []

    asyncio.run(story())


@pytest.mark.timeout(600)
def test_a_cancel_in_the_middle_writes_nothing_more_and_adds_up(database_url: str, tmp_path: Path) -> None:
    """After the answer nothing is begun or written; done + canceled + failed = total; no money is held."""
    intents = size(database_url)

    async def story() -> None:
        async with office(database_url, tmp_path, intents) as here:
            database = here.services.database
            manifest = await here.ask(intents, "auto")
            async with asyncio.timeout(240):
                while len(written(tmp_path)) < intents // 10:
                    await asyncio.sleep(0.02)
            await here.held()
            assert (await here.services.steering.cancel("default", manifest, "mia")).changed
            await here.until(manifest, lambda status: status["health"]["engine_told"])  # on a slow machine
            begun = await database.read(attempts)
            steps = await database.read(steps_begun)
            here.vendor.opened.set()  # what was under way is answered after the cancel
            await here.rests()  # a step that had begun comes to its end
            files = written(tmp_path)
            await here.minute()
            ended = await here.until(manifest, lambda status: status["completed_at"] is not None)
            assert ended["status"] == "canceled"
            counts = ended["counts"]
            assert counts["completed"] + counts["skipped"] + counts["failed"] == counts["total"] == intents
            assert counts["skipped"] > 0, "it was canceled in its middle"
            after = await database.read(attempts)
            assert after == begun, "a call or a step was begun after the answer"
            assert (await database.read(steps_begun), written(tmp_path)) == (steps, files)
            assert ended["publication"]["state"] in ("in_place", "none")
            assert set(await database.read(reserved)) == {0}
            assert await database.read(examining.findings) == []

    asyncio.run(story())
