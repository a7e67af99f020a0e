"""Second step of publishing: a plan's steps are run in order, each once, each on record before and after.

    claim → verify the plan → begin the first step → executor, look at the next → end and begin → executor …

Different plans run side by side, the steps of one never do, nor do steps of one target: a file may hold all
locales, and each step looks at what the one before it wrote. Whoever takes a delivery over runs an ambiguous
step again under the same key. This module knows no executor and no direction: both are handed in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from dragoman.content import documents, placing, selection
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import DragomanError, LeaseLost, SourceError
from dragoman.kernel.identity import sha256
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import (
    PUBLISH_LOOK_STEPS,
    PUBLISH_STEP_SECONDS,
    STEP_SECONDS,
)
from dragoman.kernel.offload import Offload
from dragoman.ledger.acting import Ledger
from dragoman.model.contracts import Format, Source
from dragoman.model.documents import Document
from dragoman.model.effects import Outgoing
from dragoman.model.publications import (
    Command,
    Direction,
    DirectionName,
    Ending,
    Material,
    Order,
    Pace,
    Snapshot,
    Step,
)
from dragoman.store.acts import executing
from dragoman.store.acts.executing import Verdict
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper, Lease

_log = logger(__name__)

DEFAULT_PACE = Pace()

_SOURCES_KEPT = 16

Place = tuple[str, str]
"""Root and target."""


class Executing:
    """Delivers due commands. `directions` say what a step does: forward places, backward takes back."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        keeper: Keeper,
        clock: Clock,
        offload: Offload,
        directions: Mapping[DirectionName, Direction],
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._keeper = keeper
        self._clock = clock
        self._offload = offload
        self._directions = directions
        self._pace = pace
        self._turns: WeakValueDictionary[Place, asyncio.Lock] = WeakValueDictionary()

    async def step(self) -> int:
        """Claim due commands and work each for a while, side by side; how many were worked.

        Where polling is off nothing is claimed. An error of one delivery is raised once the others have
        ended.
        """
        if not self._pace.polling_enabled:
            return 0
        commands = await self._keeper.claim(
            executing.claim_commands, self._keeper.owner, self._pace.lease_seconds, self._pace.batch_size
        )
        ended = await asyncio.gather(*map(self._begin, commands), return_exceptions=True)
        for outcome in ended:
            if isinstance(outcome, BaseException) and not isinstance(outcome, LeaseLost):
                raise outcome
        return len(commands)

    def _begin(self, command: Command) -> asyncio.Task[None]:
        lease = self._keeper.hold(
            "publication_commands", (command.id,), command.fence, self._pace.lease_seconds
        )
        return self._keeper.work(lease, self._deliver(command, lease))

    async def _deliver(self, command: Command, lease: Lease) -> None:
        """Run the open steps of one command in order, until one does not end or time is over."""
        delivery = await self._database.read(executing.delivery_of, command)
        if not executing.verifies(delivery):
            await self._database.run(
                executing.fail_delivery, command, "plan_mismatch", "the plan is not what was frozen"
            )
            return
        await self._run(command, lease, delivery)

    async def _run(self, command: Command, lease: Lease, delivery: executing.Delivery) -> None:
        steps = [step for step in delivery.steps if step.ordinal in delivery.open_ordinals]
        if command.direction == "backward":
            steps.reverse()
        run = _Run(command, lease, self._clock.monotonic() + STEP_SECONDS, _Turns(self._turns))
        try:
            for first in range(0, len(steps), PUBLISH_LOOK_STEPS):
                if not await self._work(run, steps[first : first + PUBLISH_LOOK_STEPS]):
                    return
        finally:
            run.turns.leave()
        if not steps:
            await self._database.run(executing.end_delivery, command)

    async def _work(self, run: _Run, steps: Sequence[Step]) -> bool:
        """Run these steps in order; False where the execution does not go on."""
        run.known = await self._database.read(executing.materials, run.command, steps)
        run.waiting = deque(steps)
        while run.waiting:
            if run.lease.lost:
                raise LeaseLost(f"execution {run.command.execution_id} is worked by somebody else")
            if self._clock.monotonic() >= run.until:
                await self._database.run(executing.pause_delivery, run.command)
                return False
            step = run.waiting.popleft()
            await run.turns.take(run.place(step))
            start = await self._start_of(run, step)
            begun = await self._database.run(executing.start_step, run.command, start)
            if await self._chain(run, start, begun) not in executing.GOES_ON[run.command.direction]:
                return False
        return True

    async def _chain(self, run: _Run, start: executing.Start, begun: Outgoing | Verdict) -> Verdict:
        """From a step that has begun on, as far as the end of one is the begin of the next."""
        while isinstance(begun, Outgoing):
            run.turns.keep(run.place(start.step))
            finished = await self._ledger.deliver(
                "publication_step",
                begun,
                executing.finish_step,
                (run.command, start.step, start.order),
                partial(self._look_ahead, run),
            )
            if run.following is None or finished.following is None:
                return finished.verdict
            start, begun = run.following, finished.following
        return begun

    async def _look_ahead(self, run: _Run) -> executing.Start | None:
        """How the next step is to begin, once the one under way is in place; None where it waits its turn."""
        run.following = None
        is_over = run.lease.lost or self._clock.monotonic() >= run.until
        if is_over or not run.waiting or not await run.turns.take_if_free(run.place(run.waiting[0])):
            return None
        try:
            run.following = await self._start_of(run, run.waiting[0])
        except Exception:  # noqa: BLE001 - it is met again, once what the target has answered is written down
            _log.exception("next step not looked at", execution=run.command.execution_id)
        else:
            run.waiting.popleft()
        return run.following

    async def _start_of(self, run: _Run, step: Step) -> executing.Start:
        """What a step is to do, decided from what stands now.

        What the store knew when the page of steps was read may be old; a conflict is believed only of fresh
        knowledge.
        """
        known = run.known[step.key]
        direction = self._directions[run.command.direction]
        order = await self._offload.call(direction.order, run.command, step, known)
        if isinstance(order, Ending) and order.event == "conflict":
            fresh = await self._database.read(executing.materials, run.command, [step])
            if fresh[step.key] != known:
                order = await self._offload.call(direction.order, run.command, step, fresh[step.key])
        return executing.Start(
            step,
            order,
            known.begun,
            self._keeper.owner,
            min(PUBLISH_STEP_SECONDS, run.lease.left_seconds()),
            self._pace.lease_seconds,
        )


class _Turns:
    """The targets that one delivery works at: one at a time, and for a moment the next one beside it."""

    def __init__(self, locks: WeakValueDictionary[Place, asyncio.Lock]) -> None:
        self._locks = locks
        self._held: dict[Place, asyncio.Lock] = {}

    async def take(self, place: Place) -> None:
        """Wait for the turn at a target, and hold no other meanwhile."""
        self.keep(place)
        if place not in self._held:
            lock = self._locks.setdefault(place, asyncio.Lock())
            await lock.acquire()
            self._held[place] = lock

    async def take_if_free(self, place: Place) -> bool:
        """Hold the turn at one more target; False where somebody has it: who holds a turn waits for none."""
        lock = self._locks.setdefault(place, asyncio.Lock())
        if place not in self._held and not lock.locked():
            await lock.acquire()
            self._held[place] = lock
        return place in self._held

    def keep(self, place: Place) -> None:
        """Let every other target go."""
        for other in [held for held in self._held if held != place]:
            self._held.pop(other).release()

    def leave(self) -> None:
        """Let all targets go."""
        while self._held:
            self._held.popitem()[1].release()


@dataclass(slots=True)
class _Run:
    """One delivery at work. `known` and `waiting` are those of the page of steps in hand."""

    command: Command
    lease: Lease
    until: float
    turns: _Turns
    known: Mapping[str, Material] = field(default_factory=dict)
    waiting: deque[Step] = field(default_factory=deque)
    following: executing.Start | None = None

    def place(self, step: Step) -> Place:
        """Where a step writes: below a root, at a target."""
        return str(self.command.settings.get("root", "")), step.planned.target


class Placing:
    """The forward direction: puts an intent's results in place."""

    def __init__(self, source_of: Callable[[Mapping[str, Any]], Source], formats: Sequence[Format]) -> None:
        self._source_of = source_of
        self._formats = formats
        self._sources: dict[tuple[str, int], Source] = {}

    def order(self, command: Command, step: Step, material: Material) -> Order | Ending:
        """Read source and target again and render what still belongs there.

        A source that cannot be read now puts the step off; a document that cannot be written ends it, and the
        others go on.
        """
        try:
            return self._order(command, step, material, self._source(command))
        except SourceError as error:
            return Ending("wait", code=error.code, message=error.message)
        except DragomanError as error:
            return Ending("conflict", code=error.code, message=error.message)
        except Exception as error:  # noqa: BLE001 - a defect of ours that one document shows stops no other
            _log.exception("document failed", intent=step.planned.intent_id)
            said = f"{step.planned.target}: {type(error).__name__} while it was rendered"
            return Ending("conflict", code="internal_error", message=said)

    def _source(self, command: Command) -> Source:
        """One a delivery, so that a folder is looked through once and not at every step."""
        source = self._sources.get(key := (command.id, command.fence))
        if source is None:
            if len(self._sources) >= _SOURCES_KEPT:
                self._sources.clear()
            source = self._sources[key] = self._source_of(command.settings)
        return source

    def _order(self, command: Command, step: Step, material: Material, source: Source) -> Order | Ending:
        planned, snapshot = step.planned, material.snapshot
        if source.target_path(planned.document, planned.locale) != planned.target:
            return Ending("conflict", code="target_conflict", message=f"{planned.target} is another file now")
        stands = source.read_target(planned.document, planned.locale)
        found = "" if stands is None else sha256(stands)
        if snapshot is not None and found == snapshot.written_fingerprint:
            return Order(stands, found, snapshot.written)  # an earlier try has come to its end unseen
        if not source.exists([planned.document]).get(planned.document, False):
            return Ending("conflict", code="document_not_found", message=f"no document {planned.document}")
        form, original, target = self._open(command, step, source, stands)
        fit = placing.fitting(form.whole, original, planned, material.results)
        if not fit.translations:
            return Ending("succeed", left=fit.left)
        force = command.settings.get("mode") == "force"
        before, known = snapshot.written if snapshot else None, material.records
        if target and (count := placing.theirs(form.whole, target, planned, known, before, force)):
            relabeled = selection.relabeled(form.whole, target, known)
            return Ending("conflict", fit.left, "target_conflict", _changed(planned.target, count), relabeled)
        rendered = documents.render(form, target, original, fit.translations, planned.locale)
        explain = bool(command.settings.get("explain_edits"))
        written = placing.written(form, planned, rendered, fit, explain)
        fresh = Snapshot(stands, sha256(rendered.data), written)
        kept = rendered.data == stands and snapshot is not None
        return Order(rendered.data, found, written, None if kept else fresh)

    def _open(
        self, command: Command, step: Step, source: Source, stands: bytes | None
    ) -> tuple[Format, Document, Document | None]:
        """Format, source and target of a step; an empty target counts as none."""
        planned = step.planned
        data = source.read(planned.document)
        form = documents.choose_format(self._formats, planned.document, data)
        locale = str(command.settings["source_locale"])
        original = documents.open_document(form, planned.document, data, "source", locale)
        if stands is None or not stands.strip():
            return form, original, None
        return form, original, documents.open_document(form, planned.target, stands, "target", planned.locale)


def _changed(target: str, count: int) -> str:
    return f"somebody changed {count} of the texts of {target} that would be written"
