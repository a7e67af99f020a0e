"""One bounded run of the workers, for cron and Kubernetes: what is due is done once, then the process ends.

It ends when nothing is due any more, when its time is over, or when so many manifests have come to their end.
Then nothing more is claimed, running steps end within the usual grace, and all leases are let go.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman import __version__
from dragoman.kernel.clock import MICROSECONDS
from dragoman.kernel.limits import DRAIN_MANIFESTS_SEEN
from dragoman.model.scopes import System
from dragoman.store.acts import draining, leasing, readiness, retiring
from dragoman.wiring.services import Services

_LOOK_SECONDS = 0.1
_STUCK_SECONDS = 5.0

Why = Literal["drained", "time", "manifests", "trouble", "stopped"]


@dataclass(frozen=True, slots=True)
class Drained:
    """What a run came to: why it ended, how many manifests ended meanwhile, how many are still at work."""

    why: Why
    ended: int
    at_work: int
    seconds: float


async def drain(
    services: Services,
    roles: Sequence[str],
    time_budget_seconds: float,
    manifests_max: int,
    stopped: asyncio.Event,
) -> Drained:
    """Let the running workers work until one of the bounds is met, and stop them."""
    database, scope = services.database, System()
    began = services.clock.monotonic()
    until = began + time_budget_seconds
    # before the first wait: a small manifest may end within it, and is told all the same
    seen = dict.fromkeys(await database.read(draining.at_work, scope, DRAIN_MANIFESTS_SEEN))
    ended = 0
    why: Why | None = None
    while why is None:
        await _look(stopped)
        idle = services.workers.settled
        at_work = await database.read(draining.at_work, scope, DRAIN_MANIFESTS_SEEN)
        seen.update(dict.fromkeys(at_work[: DRAIN_MANIFESTS_SEEN - len(seen)]))
        ended = await database.read(draining.ended_among, scope, list(seen))
        why = _why(services, idle, stopped.is_set(), ended >= manifests_max, until)
    await services.workers.stop()
    left = await database.read(draining.at_work, scope, DRAIN_MANIFESTS_SEEN)
    ended = await database.read(draining.ended_among, scope, list(seen))
    took = services.clock.monotonic() - began
    await _record(services, roles, why, took)
    return Drained(why, ended, len(left), took)


async def _look(stopped: asyncio.Event) -> None:
    """Wait for the next look, or for a signal."""
    waiting = asyncio.ensure_future(stopped.wait())
    await asyncio.wait({waiting}, timeout=_LOOK_SECONDS)
    waiting.cancel()


def _why(services: Services, idle: bool, stopped: bool, enough: bool, until: float) -> Why | None:
    """Why the run is over; None while it is not. Idle counts only where it lasts over a look."""
    if stopped:
        return "stopped"
    if services.workers.stuck(_STUCK_SECONDS) is not None:
        return "trouble"
    if idle and services.workers.settled:
        return "drained"
    if enough:
        return "manifests"
    return "time" if services.clock.monotonic() >= until else None


async def _record(services: Services, roles: Sequence[str], why: Why, seconds: float) -> None:
    """Leave word of the run: for people, and for nobody's decisions."""
    row = {
        "id": services.keeper.owner,
        "role": "+".join(roles),
        "host": socket.gethostname(),
        "release": __version__,
        "credentials": json.dumps([]),
        "external": True,
        "last_run_at": services.database.now(),
        "duration_microseconds": int(seconds * MICROSECONDS),
        "exit_class": why,
    }
    await services.database.run(leasing.see_worker, row)


async def retention_due(services: Services) -> dict[str, int]:
    """What the next rounds of retention look at, by kind; nothing where the schema is another."""
    if not await services.database.read(readiness.schema_is_current):
        return {}
    return await services.database.read(retiring.past_time, System(), services.settings.retention_days)
