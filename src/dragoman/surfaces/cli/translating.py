"""`dragoman translate`: find sources, admit one manifest (or resume it), work it here, tell what came of
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from dragoman.kernel import canonical
from dragoman.kernel.errors import OutsideError
from dragoman.kernel.limits import CALLS_PER_PROCESS_TRANSLATE, CONTROL_SECONDS
from dragoman.model import budgets
from dragoman.model.intents import Admitted
from dragoman.surfaces.cli.following import follow, report
from dragoman.surfaces.cli.lock_file import LockFile, hold_to
from dragoman.surfaces.cli.ordering import Order, plan, reach
from dragoman.surfaces.cli.report import INTERRUPTED
from dragoman.surfaces.cli.telling import tell, terminal
from dragoman.surfaces.cli.typed import Asked
from dragoman.wiring.rounds import opened
from dragoman.wiring.services import Services
from dragoman.wiring.settings import Settings

_OWNER = "local"
_LEFT_OUT_SHOWN = 3


async def translate(settings: Settings, asked: Asked) -> int:
    """Translate; gives the exit code."""
    alone = {"calls_per_process": CALLS_PER_PROCESS_TRANSLATE, "queue": "memory", "queue_backend": ""}
    settings = settings.model_copy(update=alone)  # it wakes its own loops; other processes find work by poll
    order = plan(settings, asked)
    if asked.frozen:
        return hold_to(settings, order.project, reach(settings, order), order.frozen, asked.as_json)
    lock = LockFile(settings, order.frozen)
    async with opened(settings, base_url=asked.base_url) as services:
        pairs = await services.offload.call(reach, settings, order) if lock.is_kept else ()
        await lock.fill(services, order.project, pairs)
        admitted = await _admit(services, order)
        await _apply_policy(services, admitted, asked)
        code = await _work(services, admitted, asked, order.left_out)
        if not asked.dry_run and code != INTERRUPTED:
            await lock.write(services, order.project, pairs)
        return code


async def _admit(services: Services, order: Order) -> Admitted:
    caller, request_id = services.caller(_OWNER), services.chance.new_id()
    if order.walk is not None:
        return await services.admission.admit_scope(
            caller,
            order.project,
            request_id,
            order.walk,
            order.frozen,
            canary_limit=order.canary_limit,
            resume_key=order.resume_key,
        )
    return await services.admission.admit_pairs(
        caller,
        order.project,
        request_id,
        order.pairs,
        order.frozen,
        order.resume_key,
        canary_limit=order.canary_limit,
    )


async def _apply_policy(services: Services, admitted: Admitted, asked: Asked) -> None:
    """A policy given on a rerun holds for calls that the first run left unknown, too; so does a budget."""
    if admitted.how == "resumed" and (asked.on_unknown or asked.budget):
        control: dict[str, Any] = {"revision": services.database.now()}
        if asked.on_unknown:
            control["on_unknown"] = asked.on_unknown
        if asked.budget:
            control["budget"] = budgets.spelled(asked.budget, "--budget")
        scope, body = services.settings.workspace, canonical.encode(control)
        answer = await services.engine.control(scope, admitted.manifest_id, body, CONTROL_SECONDS)
        if answer.outcome != "SUCCEEDED":
            raise OutsideError(f"the engine was not told what was decided: {answer.message}")


async def _work(services: Services, admitted: Admitted, asked: Asked, left_out: Mapping[str, str]) -> int:
    console = terminal(stderr=True)
    live = console.is_terminal and not asked.as_json
    if not asked.as_json:
        await _name_work(services, admitted, console)
    with _interruptible() as interrupted:
        following = asyncio.create_task(follow(services, admitted.manifest_id, console, live, asked.stay))
        waiting = asyncio.create_task(interrupted.wait())
        await asyncio.wait({following, waiting}, return_when=asyncio.FIRST_COMPLETED)
        for task in (following, waiting):
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        if interrupted.is_set():
            await services.workers.stop()
    if not interrupted.is_set():
        following.result()
    told = await report(services, admitted.manifest_id, explain=asked.explain)
    told.again, told.flags = asked.again, asked.flags
    told.notes += _left_out(left_out)
    if asked.canary:
        told.notes.append(f"a canary: go on by `dragoman promote {admitted.manifest_id}{asked.flags}`")
    told.interrupted = interrupted.is_set()
    return tell(told, asked.as_json)


def _left_out(documents: Mapping[str, str]) -> list[str]:
    notes = [f"left out {document}: {why}" for document, why in sorted(documents.items())]
    more = len(notes) - _LEFT_OUT_SHOWN
    return notes[:_LEFT_OUT_SHOWN] + ([f"… and {more} more are left out"] if more > 0 else [])


async def _name_work(services: Services, admitted: Admitted, console: Console) -> None:
    """Say what this process also brings to its end: it works whatever is due in its database."""
    active = await services.views.active(services.settings.workspace)
    older = [manifest_id for manifest_id in active if manifest_id != admitted.manifest_id]
    if admitted.how == "resumed":
        console.print(f"going on with manifest {admitted.manifest_id}")
    for manifest_id in older:
        console.print(f"also going on with manifest {manifest_id}", markup=False, highlight=False)


@contextlib.contextmanager
def _interruptible() -> Iterator[asyncio.Event]:
    """The first Ctrl-C ends the run in order, a second one ends the process at once."""
    loop = asyncio.get_running_loop()
    interrupted = asyncio.Event()

    def interrupt() -> None:
        if interrupted.is_set():
            sys.stderr.write("interrupted twice: stopping at once; run the same command again to go on\n")
            os._exit(INTERRUPTED)  # nothing to tidy up: every row is as after a crash
        interrupted.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        yield interrupted
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
