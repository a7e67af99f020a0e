"""Convergence: passes of manifests over a whole project, until nothing is wanted or a pass gains nothing.

What is wanted is read anew from sources and translations before each pass, and never carried over. A run
sleeps in the database while its pass is at work, so that any process goes on with it after any death: a pass
is admitted under a request id of its own, and admitting it twice makes one manifest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from dragoman.kernel.errors import DragomanError, SourceError, StoreError
from dragoman.kernel.limits import (
    RETRY_FIRST_SECONDS,
    RUN_LEASE_SECONDS,
    RUN_LOOK_SECONDS,
    RUN_PASSES_MAX,
    SOURCE_ASK_SECONDS,
)
from dragoman.model.runs import Order, RunDraft, Started
from dragoman.model.scopes import Workspace
from dragoman.store.acts import converging
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper
from dragoman.store.transaction import Row

OrderOf = Callable[[str, str, Mapping[str, Any]], Awaitable[Order]]
"""What a workspace's project comes to now, under what its run was asked for."""
Coverage = Callable[[str, str, Order], Awaitable[int]]
"""How many fields of it are wanted."""
Admit = Callable[[str, str, str, str, Order, str], Awaitable[str]]
"""Admits (workspace, actor, project, request id, order, push id); the manifest's id."""


class Asks(NamedTuple):
    """What a run asks of a project."""

    order_of: OrderOf
    coverage: Coverage
    admit: Admit


class Convergence:
    """Starts runs and brings them to their end."""

    def __init__(
        self,
        database: Database,
        keeper: Keeper,
        asks: Asks,
        wake: Callable[[], Awaitable[None]],
    ) -> None:
        self._database = database
        self._keeper = keeper
        self._order_of, self._coverage, self._admit = asks
        self._wake = wake

    async def start(self, draft: RunDraft) -> Started | None:
        """Start a run, or join the one at work or the one of the same push; None where nothing is wanted.

        What cannot be told within two seconds is left for the run to find out.
        """
        at_work = await self._database.read(converging.open_run, Workspace(draft.workspace), draft.project)
        if at_work is None and not draft.push_id and await self._is_complete(draft):
            return None
        started = await self._database.run(converging.start_run, draft)
        await self._wake()
        return started

    async def _is_complete(self, draft: RunDraft) -> bool:
        try:
            async with asyncio.timeout(SOURCE_ASK_SECONDS):
                order = await self._order_of(draft.workspace, draft.project, draft.asked)
                return await self._coverage(draft.workspace, draft.project, order) == 0
        except TimeoutError:
            return False

    async def report(self, workspace: str, run_id: str) -> dict[str, Any]:
        """A run as it stands: state, passes, what came from memory and from AI, money."""
        return await self._database.read(converging.run_report, Workspace(workspace), run_id)

    async def step(self) -> int:
        """Take up one run that is due; 1 where it has moved."""
        run = await self._keeper.claim(converging.claim_run, self._keeper.owner)
        if run is None:
            return 0
        lease = self._keeper.hold("runs", (run.id,), run.fence, RUN_LEASE_SECONDS)
        try:
            return await (self._look(run) if run.state == "looking" else self._watch(run))
        except StoreError:
            raise
        except SourceError:
            await self._database.run(converging.wait, run, RETRY_FIRST_SECONDS)
        except DragomanError as error:
            await self._database.run(converging.end_run, run, "fail", error.code, error.message)
            return 1
        finally:
            self._keeper.drop(lease)
        return 0

    async def _look(self, run: Row) -> int:
        """Find out what is wanted, and begin a pass or end the run."""
        passes = json.loads(run.passes)
        request_id = f"run:{run.id}:{len(passes) + 1}"
        begun = await self._database.read(converging.manifest_of, run.workspace, run.actor, request_id)
        order = await self._order_of(run.workspace, run.project, json.loads(run.asked))
        wanted = await self._coverage(run.workspace, run.project, order)
        if begun is None:
            end = _end(passes, wanted, str(order.frozen.get("executor", "")))
            if end:
                await self._database.run(converging.end_run, run, end)
                return 1
            begun = await self._admit(
                run.workspace, run.actor, run.project, request_id, order, run.push_id or ""
            )
        await self._database.run(converging.begin_pass, run, begun, wanted)
        return 1

    async def _watch(self, run: Row) -> int:
        """Sleep on while the pass is at work; else write down what it came to."""
        numbers = await self._database.read(converging.pass_numbers, run.manifest_id)
        if numbers is None:
            await self._database.run(converging.wait, run, RUN_LOOK_SECONDS)
            return 0
        await self._database.run(converging.end_pass, run, numbers)
        return 1


def _end(passes: list[dict[str, Any]], wanted: int, executor: str) -> str:
    """The event that ends a run before its next pass; empty where that is to begin.

    A dry run writes nothing, so that what it has translated is wanted still: it is complete without failures.
    """
    if wanted == 0:
        return "complete"
    if not passes:
        return ""
    last = passes[-1]
    if last.get("canceled"):
        return "cancel"
    if executor.startswith("dry-run") and last.get("completed") and not last.get("failed"):
        return "complete"
    gains = bool(last.get("completed")) and wanted < last["wanted"]
    return "" if gains and len(passes) < RUN_PASSES_MAX else "stall"
