"""Second step of publishing: a plan's steps are run in order, each once, each on record before and after.

    claim → verify the plan → for each open step: read again, begin (transaction), executor, end (transaction)

Different plans run side by side, the steps of one never do, nor do steps of one target: a file may hold all
locales, and each step looks at what the one before it wrote. Whoever takes a delivery over runs an ambiguous
step again under the same key. This module knows no executor and no direction: both are handed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from dragoman.content import documents, placing
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import DragomanError, LeaseLost, SourceError
from dragoman.kernel.identity import sha256
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import PUBLISH_STEP_SECONDS, STEP_SECONDS
from dragoman.kernel.offload import Offload
from dragoman.ledger.acting import Ledger
from dragoman.model.contracts import Format, Lease, LeaseKeeper, Source
from dragoman.model.documents import Document
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

_log = logger(__name__)

DEFAULT_PACE = Pace()

_GOES_ON = {"forward": ("done", "conflict"), "backward": ("done", "conflict", "refused")}


class Executing:
    """Delivers due commands. `directions` say what a step does: forward places, backward takes back."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        keeper: LeaseKeeper,
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
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def step(self) -> int:
        """Claim due commands and work each for a while, side by side; how many were worked.

        Where polling is off nothing is claimed. An error of one delivery is raised once the others have
        ended.
        """
        if not self._pace.polling_enabled:
            return 0
        commands = await self._database.run(
            executing.claim_commands, self._keeper.owner, self._pace.lease_seconds, self._pace.batch_size
        )
        ended = await asyncio.gather(*map(self._deliver, commands), return_exceptions=True)
        for outcome in ended:
            if isinstance(outcome, BaseException) and not isinstance(outcome, LeaseLost):
                raise outcome
        return len(commands)

    async def _deliver(self, command: Command) -> None:
        """Run the open steps of one command in order, until one does not end or time is over."""
        lease = self._keeper.hold(
            "publication_commands", (command.id,), command.fence, self._pace.lease_seconds
        )
        try:
            delivery = await self._database.read(executing.delivery_of, command)
            if not executing.verifies(delivery):
                await self._database.run(
                    executing.fail_delivery, command, "plan_mismatch", "the plan is not what was frozen"
                )
                return
            await self._run(command, lease, delivery)
        finally:
            self._keeper.drop(lease)

    async def _run(self, command: Command, lease: Lease, delivery: executing.Delivery) -> None:
        until = self._clock.monotonic() + STEP_SECONDS
        steps = [step for step in delivery.steps if step.ordinal in delivery.open_ordinals]
        for step in reversed(steps) if command.direction == "backward" else steps:
            place = (str(command.settings.get("root", "")), step.planned.target)
            async with self._turns.setdefault(place, asyncio.Lock()):
                if lease.lost:
                    raise LeaseLost(f"execution {command.execution_id} is worked by somebody else")
                if self._clock.monotonic() >= until:
                    await self._database.run(executing.pause_delivery, command)
                    return
                if await self._work(command, lease, step) not in _GOES_ON[command.direction]:
                    return
        if not steps:
            await self._database.run(executing.end_delivery, command)

    async def _work(self, command: Command, lease: Lease, step: Step) -> Verdict:
        """One step: what to do is decided from what stands now, and done under the ledger."""
        known = await self._database.read(executing.material, command, step)
        direction = self._directions[command.direction]
        order = await self._offload.call(direction.order, command, step, known)
        if isinstance(order, Ending):
            return await self._database.run(executing.end_step, command, step, order)
        deadline_seconds = min(PUBLISH_STEP_SECONDS, lease.left_seconds())
        begin = (command, step, order, self._keeper.owner, deadline_seconds, self._pace.lease_seconds)
        return await self._ledger.act(
            "publication_step",
            executing.start_step,
            begin,
            executing.finish_step,
            (command, step, order),
        )


class Placing:
    """The forward direction: puts an intent's results in place."""

    def __init__(self, source_of: Callable[[Mapping[str, Any]], Source], formats: Sequence[Format]) -> None:
        self._source_of = source_of
        self._formats = formats

    def order(self, command: Command, step: Step, material: Material) -> Order | Ending:
        """Read source and target again and render what still belongs there.

        A source that cannot be read now puts the step off; a document that cannot be written ends it, and the
        others go on.
        """
        try:
            return self._order(command, step, material, self._source_of(command.settings))
        except SourceError as error:
            return Ending("wait", code=error.code, message=error.message)
        except DragomanError as error:
            return Ending("conflict", code=error.code, message=error.message)
        except Exception as error:  # noqa: BLE001 - a defect of ours that one document shows stops no other
            _log.exception("document failed", intent=step.planned.intent_id)
            said = f"{step.planned.target}: {type(error).__name__} while it was rendered"
            return Ending("conflict", code="internal_error", message=said)

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
        before = snapshot.written if snapshot else None
        if count := placing.theirs(form.whole, target, planned, material.records, before, force):
            return Ending("conflict", fit.left, "target_conflict", _changed(planned.target, count))
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
