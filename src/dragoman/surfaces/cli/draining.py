"""`dragoman run`: the workers, once, within bounds; tells what it came to."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Sequence
from dataclasses import asdict

from dragoman.kernel.errors import CallerError
from dragoman.surfaces.cli.report import COULD_NOT_RUN, INTERRUPTED, WAITING
from dragoman.wiring.draining import drain as drain_once
from dragoman.wiring.rounds import ROLES, opened
from dragoman.wiring.settings import Settings

_CODES = {
    "drained": 0, "time": WAITING, "manifests": WAITING, "trouble": COULD_NOT_RUN, "stopped": INTERRUPTED,
}  # fmt: skip
_TOLD = {
    "drained": "nothing is due any more",
    "time": "its time is over, and there is more to do",
    "manifests": "so many manifests have ended, and there may be more to do",
    "trouble": "it could not go on; the log says why",
    "stopped": "it was stopped",
}


async def drain(
    settings: Settings, roles: Sequence[str], time_budget_seconds: float, manifests_max: int, as_json: bool
) -> int:
    """Work what is due; gives the exit code: 0 drained, 4 a bound was met first, 1 trouble, 130 stopped."""
    unknown = sorted(set(roles) - set(ROLES))
    if unknown:
        raise CallerError(f"no role {unknown[0]!r}; roles are {', '.join(ROLES)}", place="--role")
    chosen = tuple(roles) or ROLES
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with opened(settings, roles=chosen) as services:
        drained = await drain_once(services, chosen, time_budget_seconds, manifests_max, stopped)
    if as_json:
        print(json.dumps(asdict(drained)))
    else:
        print(
            f"{_TOLD[drained.why]}: {drained.ended} manifests ended, {drained.at_work} still at work,"
            f" {drained.seconds:.1f} s"
        )
    return _CODES[drained.why]
