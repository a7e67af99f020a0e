"""`dragoman outbox`: events on their way out, and a dead one sent once more."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console

from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import FAILURES_PAGE
from dragoman.machines.tables import OUTBOX
from dragoman.model.scopes import Workspace
from dragoman.store.acts import delivering
from dragoman.wiring.rounds import opened
from dragoman.wiring.settings import Settings

_OPERATOR = "operator"
"""Who acts at the machine's own command line."""


async def show(settings: Settings, state: str, as_json: bool) -> int:
    """Print the newest events of the workspace, those in one state or all."""
    if state and state not in OUTBOX.states:
        raise CallerError(
            f"no state {state!r}; known are {', '.join(sorted(OUTBOX.states))}", place="--state"
        )
    async with opened(settings, roles=()) as services:
        scope = Workspace(settings.workspace)
        found = await services.database.read(delivering.outbox_page, scope, state, "", FAILURES_PAGE)
    if as_json:
        print(json.dumps({"items": found}, ensure_ascii=False))
        return 0
    console = Console()
    for event in found:
        console.print(_line(event), markup=False, highlight=False, soft_wrap=True)
    if not found:
        console.print("nothing")
    return 0


async def redrive(settings: Settings, delivery_id: str, as_json: bool) -> int:
    """Send a dead event again: the same id, the same bytes. That somebody did is written down."""
    async with opened(settings, roles=()) as services:
        scope = Workspace(settings.workspace)
        await services.database.run(delivering.redrive_delivery, scope, delivery_id, _OPERATOR)
    told = {"id": delivery_id, "state": OUTBOX.initial}
    print(json.dumps(told) if as_json else f"delivery {delivery_id} is due; a worker sends it")
    return 0


def _line(event: dict[str, Any]) -> str:
    answer = f" · HTTP {event['response_status']}" if event["response_status"] else ""
    trouble = f" · {event['error_message'] or event['error_code']}" if event["error_code"] else ""
    tries = f"{event['attempts']} attempts"
    return f"{event['id']} {event['state']} {event['event']} → {event['endpoint']} · {tries}{answer}{trouble}"
