"""Those who look after the installation of a world: they redrive what is dead and what is in quarantine,
and see what has had its time go.

What they were answered they rely on, as people do who ask.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence

from dragoman.model.runs import RunDraft, Started
from dragoman.model.scopes import Workspace
from dragoman.store.acts import delivering, redriving
from dragoman.wiring.services import Services
from tests.simulation import keeping
from tests.simulation.ground import Database
from tests.simulation.scene import CALLER, Scene
from tests.simulation.shelves import LOCALES

ILL = (410, 503)
"""What a receiver of events answers before it is mended: that it is gone, or that it cannot."""

ROUNDS_MAX = 10
"""Of redrives: more than a world has faults."""
LOOKS_MAX = 60
"""At whether what has had its time is gone."""
_OVER = """
    SELECT id FROM jobs j WHERE state IN ('completed', 'failed', 'canceled') AND NOT EXISTS
    (SELECT 1 FROM calls c JOIN effects e ON e.id = c.effect_id WHERE c.job_id = j.id
    AND (c.state != 'closed' OR e.state IN ('UNKNOWN', 'IN_FLIGHT', 'PROVIDER_ACCEPTED_LOCAL_PENDING')))
"""
"""Jobs of which nothing is unknown."""
_DEAD = "SELECT id FROM outbox WHERE state = 'dead' ORDER BY id"
_IN_QUARANTINE = "SELECT id FROM jobs WHERE state = 'failed' AND error_code = 'gave_up' ORDER BY id"
_FAILED = """
    SELECT count(*) FROM intents i WHERE state = 'failed' AND NOT EXISTS (SELECT 1 FROM intents j
    WHERE j.document = i.document AND j.locale = i.locale AND j.id > i.id)
"""
"""Pairs that failed when they were asked for last."""
_NOT_SO = ("EFFECT_ALREADY_COMPLETE", "EFFECT_IN_FLIGHT", "nothing_to_retry")

Ask = Callable[..., Awaitable[None]]
"""Asks for everything, under this request id; for what is missing, or in another mode."""


class Operators:
    """The operators of one world; `dice` decide when they act."""

    def __init__(self, scene: Scene, dice: random.Random, ask: Ask) -> None:
        self._scene = scene
        self._dice = dice
        self._ask = ask
        if "redrive" in scene.setting.people:
            scene.receiver_says = dice.choice(ILL)

    async def run(self) -> None:
        """Start a run over all there is; who starts another while it is at work joins it."""
        await self._scene.pass_time(self._dice.random() * 4.0)
        at_work = "SELECT id FROM runs WHERE state IN ('looking', 'passing')"
        before = self._scene.database.one(at_work)
        started = await self._start()
        self._scene.note(f"a run is started: {started}")
        if before and before == self._scene.database.one(at_work) and started and started.run_id != before:
            self._scene.problem(f"run {started.run_id} was begun beside run {before}")

    async def find_nothing(self) -> None:
        """After a run that is complete nothing is wanted: none begins, or one that finds that out later."""
        states = {state for (state,) in self._scene.database.all("SELECT state FROM runs")}
        if states == {"complete"} and (started := await self._start()):
            await self._scene.settled()
            passes = self._scene.database.one("SELECT passes FROM runs WHERE id = ?", started.run_id)
            if passes != "[]":
                self._scene.problem(f"run {started.run_id} has made {passes}, and nothing was wanted")

    async def _start(self) -> Started | None:
        draft = RunDraft(CALLER.workspace, "docs", CALLER.actor, "up", "", {"locales": list(LOCALES)})
        started: Started | None = await self._scene.as_client(
            lambda services: services.convergence.start(draft)
        )
        return started

    async def look(self) -> None:
        """Somebody tries to redrive whatever is on record, and mends the receiver meanwhile, or later."""
        await self._scene.pass_time(self._dice.random() * 40.0)
        if self._dice.random() < 0.5:
            self._mend()
        for (delivery,) in self._scene.engines.all("SELECT id FROM outbox ORDER BY id"):
            await self._redrive_delivery(delivery)
        for (job,) in self._scene.engines.all("SELECT id FROM jobs ORDER BY id"):
            await self._redrive_job(job)

    async def redrive(self) -> None:
        """What is dead arrives, what is in quarantine ends well, and what had failed with it is bought by
        nobody again.
        """
        self._mend()
        for round_ in range(ROUNDS_MAX):
            await self._redrive_all()
            if not self._scene.database.one(_FAILED):
                return
            await self._ask(f"r-6 {round_}")
            await self._scene.settled()

    async def retain(self) -> None:
        """A month later the manifests go that nothing keeps, two months later their jobs; meanwhile what is
        asked for anew comes out of memory.
        """
        self._scene.look_back()
        database = self._scene.database
        jobs = [job for (job,) in self._scene.engines.all(_OVER)]
        manifests = [manifest for (manifest,) in database.all(keeping.REASONS)]
        self._scene.set_clock_on((keeping.DAYS + 1) * 24 * 3600)
        await self._ask("r-7", "all")
        await self._scene.settled()
        await self._until_gone(database, "manifests", manifests)
        self._scene.set_clock_on((keeping.DAYS + 1) * 24 * 3600)
        await self._until_gone(self._scene.engines, "jobs", jobs)

    async def _until_gone(self, database: Database, table: str, ids: Sequence[str]) -> None:
        held = f"SELECT count(*) FROM {table} WHERE id IN ({', '.join('?' * len(ids))})"
        for _ in range(LOOKS_MAX):
            if not database.one(held, *ids):
                return
            await self._scene.pass_time(100.0)
            await self._scene.settled()
        left = database.one(held, *ids)
        self._scene.problem(f"{left} {table} stay, and their time is over")

    def _mend(self) -> None:
        if self._scene.receiver_says:
            self._scene.receiver_says = 0
            self._scene.note("the receiver is mended")

    async def _redrive_all(self) -> None:
        for _ in range(ROUNDS_MAX):
            dead = self._scene.engines.all(_DEAD)
            lost = self._scene.engines.all(_IN_QUARANTINE)
            for (delivery,) in dead:
                await self._redrive_delivery(delivery)
            for (job,) in lost:
                await self._redrive_job(job)
            if not (dead or lost):
                return
            self._scene.note(f"{len(dead)} deliveries and {len(lost)} jobs are redriven")
            await self._scene.settled()
        self._scene.problem(f"something is dead or in quarantine after {ROUNDS_MAX} rounds of redrives")

    async def _redrive_delivery(self, delivery: str) -> None:
        async def redrive(services: Services) -> None:
            scope = Workspace(CALLER.workspace)
            await services.database.run(delivering.redrive_delivery, scope, delivery, CALLER.actor)

        await self._scene.as_client(redrive, *_NOT_SO, side="engine")

    async def _redrive_job(self, job: str) -> None:
        async def redrive(services: Services) -> None:
            scope = Workspace(CALLER.workspace)
            await services.database.run(redriving.redrive_job, scope, job, CALLER.actor)

        await self._scene.as_client(redrive, *_NOT_SO, side="engine")
