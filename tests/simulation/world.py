"""One world: processes that run the real system, a database, a vendor, a client, and what became of it."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import logging
import math
import os
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from dragoman.kernel import processes
from dragoman.kernel.errors import LeaseLost, StoreError
from dragoman.kernel.identity import SeededChance
from dragoman.store import database as store
from dragoman.store.writer import Tally
from dragoman.wiring import rounds
from dragoman.wiring.services import Services, assemble
from dragoman.workers import Loop, free_vanished
from tests.simulation import across, queueing, verdict
from tests.simulation.bounds import bounded
from tests.simulation.faults import COMMIT, JUMPS_SECONDS, PAUSES_SECONDS, WIRE, Kind, Place
from tests.simulation.floors import LOST, Floor
from tests.simulation.listening import Answered, Request, answer
from tests.simulation.outside import Door, EngineFace, WatchedOffload
from tests.simulation.people import People
from tests.simulation.performing import InlineReader, InlineWriter
from tests.simulation.processes import HERE, Killed, Process, Side
from tests.simulation.providing import SECRETS, SECRETS_AFTERWARDS, TOKEN, completion_of, settings_of
from tests.simulation.recording import Ears, Line, Outcome
from tests.simulation.scene import Ask
from tests.simulation.settings import Setting
from tests.simulation.staffing import Post, posts_of
from tests.simulation.vendors import HEIRS, vendor_of
from tests.simulation.virtual import HostClock, Stuck, VirtualLoop
from tests.simulation.wire import Network

POINTS_MAX = 60_000
"""More than any world needs: somebody goes round in circles."""
PAUSE_MAX_SECONDS = 500.0
OVERTAKEN_POINTS_MAX = 9
_LOOK_SECONDS = 10.0
_POLL_FACTORS = (20.0, 300.0)
"""Polls are the contract, wakes a favour: slower polls change nothing but what idling costs. Where nothing
happens for long, they come to the second factor."""
_DELAYS_SECONDS = (0.0, 0.0, 0.001, 0.01, 0.1, 0.7)
_STEADY_SECONDS = 0.001


class World:
    """Everything that exists while one setting is played."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        self.setting = setting
        self.loop = VirtualLoop()
        self.clock = HostClock(self.loop)
        self.floors = [Floor(self, setting.groups, self._is_dead) for _ in range(2 if setting.far else 1)]
        self.database, self.engines = self.floors[0].database, self.floors[-1].database
        self.folder = folder
        self.places: dict[Place, int] = {"point": 0, "commit": 0, "call": 0, "wire": 0}
        self.points: list[str] = []
        self.commits: list[str] = []
        self.story: list[Line] = []
        self.problems: list[str] = []
        self.vendors = {name: vendor_of(setting, name) for name in HEIRS}
        for vendor in self.vendors.values():
            vendor.rules = self
        self._queue_server = queueing.server_of(setting)
        self._dice = random.Random(f"dice of {setting.seed}")
        self._frozen: dict[Process, float] = {}
        self.held_up: set[str] = set()
        """Attempts that came to a vendor after their senders had given them up."""
        self.heard: dict[str, tuple[Process, str]] = {}
        self.lost: set[str] = set()
        """Attempts that an engine's database has forgotten with everything since it was copied."""
        self.receiver_says = 0
        self._states: Mapping[str, Sequence[str]] | None = None
        self.in_transaction = ""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._polls: list[tuple[Loop, float]] = []
        self._poll_factor, self._moves_seen = 0.0, 0
        self._lives: list[tuple[Process, Services]] = []
        self._known: dict[str, Process] = {}
        self._network = Network(self, random.Random(f"network of {setting.seed}"))
        self.people = People(self, self._dice)
        if setting.far:
            self.floors[-1].admit(TOKEN, self.clock.now())

    # what processes ask of the world

    def strike(self, process: Process, label: str, can: tuple[Kind, ...]) -> Kind | None:
        """Count a point and give its fault."""
        places: dict[Place, int] = {"point": self._count("point")}
        if places["point"] == POINTS_MAX:
            self.problem(f"so much happens, and nothing ends: {self._what_is_open()}")
        self.points.append(label)
        if can:
            place: Place = "commit" if can == COMMIT else "wire" if can == WIRE else "call"
            places[place] = self._count(place)
            if place == "commit":
                self.commits.append(label.removeprefix("before "))
        kind = self.setting.plan.at(places, can, self._dice)
        self._thaw()
        if kind is not None:
            where = ", ".join(f"{name} {number}" for name, number in places.items())
            self.tell(process, f"*** {kind} {label} ({where})")
        process.missed_a_commit |= kind in ("commit lost", "commit unmade")
        if kind == "stop":
            self._task(process, self._stop(process))
        if kind == "jump":
            self.clock.set_by_seconds += self._dice.choice(JUMPS_SECONDS)
        return kind

    async def _stop(self, process: Process) -> None:
        """End a process in good order: what runs may end, what cannot is given back."""
        for living, services in list(self._lives):
            if living is process:
                await services.close()
                self.tell(process, "has stopped")
        process.die()

    def _count(self, place: Place) -> int:
        self.places[place] += 1
        return self.places[place]

    def delay_seconds(self) -> float:
        """How long this step takes."""
        return self._dice.choice(_DELAYS_SECONDS) if self.setting.is_shuffled else _STEADY_SECONDS

    def pause_seconds(self, process: Process) -> float:
        """How long a stopped process stands still. One of three wakes just after it was overtaken."""
        if self._dice.random() < 0.67:
            self._frozen[process] = math.inf
            return PAUSE_MAX_SECONDS
        return self._dice.choice(PAUSES_SECONDS)

    def _thaw(self) -> None:
        """Let go on who was overtaken a few points ago."""
        for process in list(self._frozen):
            self._frozen[process] -= 1
            if self._frozen[process] <= 0:
                del self._frozen[process]
                self.tell(process, "goes on")
                process.thaw()

    def tell(self, process: Process, text: str) -> None:
        """Add a line to the story."""
        self.story.append(Line(self.loop.time(), process.name, text))

    def leave(self, label: str) -> None:
        """Nobody asks the outside from within a transaction."""
        if self.in_transaction:
            self.problem(f"{label} within the transaction of {self.in_transaction}")

    def problem(self, text: str) -> None:
        """Write down what must not be."""
        self.problems.append(f"{self.loop.time():.3f} s, point {self.places['point']}: {text}")

    def overtake(self, owners: set[str]) -> None:
        """Something was taken from these: who of them stands still wakes soon."""
        for process in self._frozen:
            if process.owner in owners:
                self._frozen[process] = self._dice.randint(1, OVERTAKEN_POINTS_MAX)

    def hear(self, process: Process, attempt_id: str, outcome: str) -> None:
        """An answer of the vendor's has come to a process."""
        self.heard[attempt_id] = (process, outcome)

    def hold_up(self, attempt_id: str) -> None:
        """What this attempt sends arrives once its sender waits no more."""
        self.held_up.add(attempt_id)

    def _is_dead(self, owner: str) -> bool:
        return owner in self._known and self._known[owner].dead

    def is_gone(self, owner: str) -> bool:
        """Whether it is known that this owner is no more."""
        return self.setting.frees and self._is_dead(owner)

    # the play

    def play(self) -> Outcome:
        """Run until everything has settled, or patience ends; then look at what there is."""
        setting = self.setting
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(self._untended)
        self.loop.set_task_factory(self._keep)
        try:
            with self._stage():
                self.loop.run_until_complete(asyncio.wait_for(self._live(), setting.patience_seconds))
        except TimeoutError:
            self.problem(f"not settled after {setting.patience_seconds:.0f} s: {self._what_is_open()}")
        except Stuck as stuck:
            self.problem(f"{stuck}: {self._what_is_open()}")
        outside = self._outside()
        self._close()
        if not self.problems and self._states is None:
            self._judge(outside)
        targets = verdict.targets_of(self.folder)
        states = self._states or verdict.states_of(self.database)
        self._forget()
        return Outcome(
            self.setting,
            places=self.places,
            points=self.points,
            commits=self.commits,
            problems=self.problems,
            story=self.story,
            targets=targets,
            states=states,
            before=self.people.wrote,
        )

    def look_back(self) -> None:
        """Judge what there is, before some of it goes."""
        self._judge(self._outside())
        self._states = verdict.states_of(self.database)

    async def put_engine_back(self, seconds: float) -> None:
        """After a while the far engine's database is lost, and what it was before that while is put back."""
        copy = self.engines.copy()
        self.note("the engine's database is copied")
        await asyncio.sleep(seconds)
        for process, _ in self._living("engine"):
            process.die()
        self.lost |= self.floors[-1].put_back(copy)
        self.heard.clear()
        self.note(f"the engine's database is put back; {len(self.lost)} attempts are lost")

    def change_secret(self) -> None:
        """Restart a site under another callback secret; the one before is kept beside it."""
        for process, _ in self._living("site"):
            process.die()
        os.environ.update(SECRETS_AFTERWARDS)

    def _judge(self, outside: verdict.Outside) -> None:
        if not self.setting.far:
            self.problems += verdict.problems(self.database, self.setting, outside, self.folder)
            return
        whole = self.database.with_rows_of(self.engines)
        self.problems += verdict.problems(whole, self.setting, outside, self.folder)
        self.problems += across.problems(whole, self.setting)
        whole.close()

    def _forget(self) -> None:
        for floor in self.floors:
            floor.database.close()

    def set_clock_on(self, seconds: float) -> None:
        """Set the wall clock, as if so much time had passed."""
        self.clock.set_by_seconds += seconds
        self.note(f"{seconds / 86_400:.0f} days pass")

    def _outside(self) -> verdict.Outside:
        sent = {
            name: {attempt: calls for attempt, calls in vendor.sent().items() if attempt not in self.lost}
            for name, vendor in self.vendors.items()
        }
        running = {attempt for vendor in self.vendors.values() for attempt in vendor.left_running()}
        return verdict.Outside(self._surely_heard, sent, running, self.held_up)

    def visit(self, play: Callable[[Services], Coroutine[Any, Any, None]]) -> None:
        """Let one process that runs no loops do something, on virtual time."""
        asyncio.set_event_loop(self.loop)
        self.loop.set_task_factory(self._keep)
        process = Process(self, "a1", 1)
        self._known[process.owner] = process
        try:
            with self._stage():
                self.loop.run_until_complete(self._task(process, play(self._assemble(process))))
        finally:
            self._close()
            self._forget()

    async def _live(self) -> None:
        towers = [self.loop.create_task(self._supervise(post)) for post in posts_of(self.setting)]
        await self.people.live()
        for tower in towers:
            tower.cancel()

    def _slowed(self, loops: list[Loop]) -> list[Loop]:
        """The same loops with slower polls."""
        self._moves_seen = -1
        self._polls += [(loop, loop.poll_seconds) for loop in loops]
        self._pace()
        return loops

    def _pace(self) -> None:
        """The longer nothing moves, the slower the polls."""
        least, most = _POLL_FACTORS
        is_quiet = self._moves == self._moves_seen
        self._poll_factor = min(most, self._poll_factor * 1.3) if is_quiet else least
        self._moves_seen = self._moves
        for loop, seconds in self._polls:
            loop.poll_seconds = seconds * self._poll_factor

    @property
    def _moves(self) -> int:
        """How many moves were seen on all floors."""
        return sum(floor.database.moves for floor in self.floors)

    async def _supervise(self, post: Post) -> None:
        """Start a process, and another one whenever it has died."""
        for life in itertools.count(1):
            number = len(self._known) + 1
            process = Process(self, f"{post.letter}{life}", number, post.side)
            self._known[process.owner] = process
            running, gone = (
                self._task(process, self._run(process, post.roles)),
                self.loop.create_task(process.gone.wait()),
            )
            await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not process.dead:
                process.die()
                if not isinstance(error := running.exception(), Killed | StoreError | None):
                    raise error
            await asyncio.sleep(self.setting.restart_seconds)

    async def _run(self, process: Process, roles: Sequence[str]) -> None:
        services = self._assemble(process)
        await free_vanished(services.database)
        services.workers.start(self._slowed(rounds.loops(services, roles)))
        self._lives.append((process, services))
        await process.gone.wait()

    def _task(self, process: Process, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task of a process."""
        context = contextvars.copy_context()
        context.run(HERE.set, process)
        return self.loop.create_task(work, context=context)

    def _assemble(self, process: Process) -> Services:
        chance = SeededChance(f"{self.setting.seed} {process.name}")
        tally = Tally()
        floor = self.floors[-1 if process.side == "engine" else 0]
        queue = None if process.side == "site" else self._queue_server
        database = store.Database(
            InlineWriter(floor, process, chance, tally),
            InlineReader(floor, process, chance),
            process.time.now,
            chance,
            tally,
        )
        services = assemble(
            settings_of(self.setting, self.folder, process.side),
            database,
            self.clock,
            chance,
            WatchedOffload(self, process),
            owner=process.owner,
            completion=completion_of(self.vendors),
            woken=queueing.end_of(queue, process, database, self.clock, chance),
        )
        self._lay_doors(process, services)
        return services

    def _lay_doors(self, process: Process, services: Services) -> None:
        """Between a process and everything outside of it; what goes over the network has its points there."""
        if process.side != "both":
            self._network.connect(process, services)
        on_the_wire = () if process.side == "both" else ("submission", "webhook")
        families: dict[str, Any] = services.ledger._families  # type: ignore[assignment]
        for name, family in list(families.items()):
            if name not in on_the_wire:
                families[name] = Door(self, process, family)
        if process.side == "both":
            services.engine = EngineFace(self, process, services.engine)  # type: ignore[assignment]

    # what processes ask of each other

    def serving(self, side: Side, request: Request) -> Awaitable[Answered | None] | None:
        """The answer of a process of that side, None where it dies over it; None where nobody lives there."""
        alive = self._living(side)
        return self._serve(*self._dice.choice(alive), request) if alive else None

    async def _serve(self, process: Process, services: Services, request: Request) -> Answered | None:
        serving = self._task(process, answer(services, request))
        await self._outlived(serving, process)
        return serving.result() if serving.done() and not serving.exception() else None

    async def _outlived(self, task: asyncio.Task[Any], process: Process) -> None:
        """Wait until a task has ended, or its process."""
        death = self.loop.create_task(process.gone.wait())
        try:
            await asyncio.wait({task, death}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            death.cancel()

    def _living(self, side: Side) -> list[tuple[Process, Services]]:
        return [life for life in self._lives if not life[0].dead and life[0].side in (side, "both")]

    # what people ask of the world

    async def as_client(self, ask: Ask, *forgiven: str, side: Side = "site") -> Any:
        """Ask a process that lives, and ask again when it dies or stays silent."""
        while True:
            if alive := self._living(side):
                process, services = self._dice.choice(alive)
                asking = self._task(process, ask(services))
                await self._outlived(asking, process)
                if asking.done() and not asking.cancelled():
                    error = asking.exception()
                    if error is None:
                        return asking.result()
                    if not isinstance(error, Killed | StoreError | LeaseLost):
                        if getattr(error, "code", "") not in forgiven:
                            self.problem(f"a client was told: {error!r}")
                        return None
            await asyncio.sleep(_LOOK_SECONDS / 10)

    async def settled(self) -> None:
        """Wait until nothing is open, everybody is awake and nothing moves, or something is wrong."""
        seen = -1
        while not self.problems and (self._is_busy or seen != self._moves):
            seen = self._moves
            if any(floor.holds_calls for floor in self.floors):
                await asyncio.sleep(_LOOK_SECONDS)
                await self.people.let_go()
            if self.database.one(LOST):
                await self.people.give_up()
            await asyncio.sleep(_LOOK_SECONDS)
            self._pace()

    @property
    def _is_busy(self) -> bool:
        return (
            any(floor.is_open for floor in self.floors)
            or any(process.is_still for process, _ in self._lives)
            or bool(self._network.held)
        )

    async def pass_time(self, seconds: float) -> None:
        """Let people wait."""
        await asyncio.sleep(seconds)

    def note(self, text: str) -> None:
        """Add what somebody did to the story."""
        self.story.append(Line(self.loop.time(), "people", text))

    @property
    def _surely_heard(self) -> Mapping[str, str]:
        """Attempt → outcome, where the process that heard it lives and knows of all its commits."""
        return {
            attempt: outcome
            for attempt, (process, outcome) in self.heard.items()
            if not process.dead and not process.missed_a_commit
        }

    # scenery

    @contextmanager
    def _stage(self) -> Iterator[None]:
        ears = Ears(self)
        journal = logging.getLogger("dragoman")
        journal.addHandler(ears)
        was, journal.propagate = journal.propagate, False
        try:
            with (
                mock.patch.object(processes, "is_gone", self.is_gone),
                mock.patch.dict(os.environ, SECRETS if self.setting.far else {}),
                bounded(self.setting.bounds),
            ):
                yield
        finally:
            journal.removeHandler(ears)
            journal.propagate = was

    def _keep(self, loop: asyncio.AbstractEventLoop, what: Any, **more: Any) -> asyncio.Task[Any]:
        """Tasks of dead processes wait for ever: somebody has to remember them."""
        task: asyncio.Task[Any] = asyncio.Task(what, loop=loop, **more)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _untended(self, loop: asyncio.AbstractEventLoop, said: dict[str, Any]) -> None:
        error = said.get("exception")
        if not isinstance(error, Killed | asyncio.CancelledError):
            self.problem(f"untended: {said.get('message')} {error!r}")

    def _close(self) -> None:
        self._network.is_over = True
        for process in self._known.values():
            process.gone.set()
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.wait(tasks, timeout=60))
        self.loop.close()
        asyncio.set_event_loop(None)

    def _what_is_open(self) -> str:
        """What has not come to its end, for the story."""
        return " | ".join(floor.what_is_open for floor in self.floors)
