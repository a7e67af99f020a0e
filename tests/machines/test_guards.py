"""When a publication may be executed, retried or compensated: every action in every state."""

from __future__ import annotations

import itertools

import pytest

from dragoman.kernel.errors import CODES
from dragoman.machines import guards
from dragoman.machines.tables import EXECUTION

STATES = (guards.NEVER, *sorted(EXECUTION.states))


@pytest.mark.parametrize(
    "action, newest, to_undo",
    list(itertools.product(guards.ACTIONS, STATES, (0, 1))),
    ids=lambda value: f"{value}",
)
def test_every_action_is_allowed_or_refused_by_name_in_every_state(
    action: str, newest: str, to_undo: int
) -> None:
    """[T-015, T-067]"""
    allowed = {
        "execute": newest == "",
        "retry": newest == "FAILED",
        "compensate": newest in ("FAILED", "SUCCEEDED") and to_undo > 0,
    }
    code = guards.refusal(action, newest, to_undo)
    assert (code == "") is allowed[action]
    if code:
        assert CODES[code].status == 409


@pytest.mark.parametrize("newest", sorted(EXECUTION.open))
def test_while_one_is_open_no_other_begins(newest: str) -> None:
    assert {guards.refusal(action, newest, 1) for action in guards.ACTIONS} == {"lease_held"}
