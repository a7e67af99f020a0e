"""When a plan may be executed, retried or compensated, as data.

The answer hangs on the state of the plan's newest execution, and for compensation on whether anything that it
wrote still stands. One open execution a plan: while one is open, every action is refused.
"""

from __future__ import annotations

from dragoman.machines.tables import EXECUTION

ACTIONS = ("execute", "retry", "compensate")

NEVER = ""
"""Stands for the state of the newest execution where there is none."""

ALLOWED: frozenset[tuple[str, str]] = frozenset(
    {
        ("execute", NEVER),
        ("retry", "FAILED"),
        ("compensate", "FAILED"),
        ("compensate", "SUCCEEDED"),
    }
)
"""(action, state of the newest execution)."""

NEEDS_SOMETHING_TO_UNDO = frozenset({"compensate"})


def refusal(action: str, newest: str, to_undo: int) -> str:
    """The code of a refusal, empty where the action is allowed. `to_undo` counts steps that still stand."""
    if newest in EXECUTION.open:
        return "lease_held"
    if (action, newest) not in ALLOWED:
        return "nothing_to_retry" if action == "retry" else "already_ended"
    if action in NEEDS_SOMETHING_TO_UNDO and not to_undo:
        return "already_ended"
    return ""
