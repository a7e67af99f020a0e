"""What came out of a world beside what comes out where nothing goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from tests.simulation.people import THEIRS
from tests.simulation.settings import Setting
from tests.simulation.world import Outcome


def compared(outcome: Outcome, calm: Outcome) -> Outcome:
    """The same outcome, with a problem for each thing that came out otherwise than it may.

    `calm` is the world in which nothing goes wrong, of the same documents.
    """
    if not outcome.problems:
        outcome.problems += _states(outcome, calm)
        outcome.problems += (
            _taken_back(outcome) if "revert" in outcome.setting.people else _targets(outcome, calm)
        )
    return outcome


def _states(outcome: Outcome, calm: Outcome) -> Iterator[str]:
    for pair in calm.states:
        states = outcome.states.get(pair, ())
        if not states and "cancel" not in outcome.setting.people:
            yield f"{pair} was asked for, and there is nothing of it"
        if any(state not in _allowed(outcome.setting, place) for place, state in enumerate(states)):
            yield f"{pair} ended {states}"


def _allowed(setting: Setting, place: int) -> set[str]:
    """How the intents of the manifest at this `place` may end."""
    people = set(setting.people)
    allowed = {"completed"}
    if place or people & {"cancel", "rival"}:
        allowed.add("skipped")
    if setting.may_fail and ("retry" not in people or people & {"rival", "cancel"}):
        allowed.add("failed")
    return allowed


def _targets(outcome: Outcome, calm: Outcome) -> Iterator[str]:
    for pair, states in outcome.states.items():
        document, locale = pair.split()
        target = f"{locale}/{document}"
        stands = outcome.targets.get(target)
        if target in outcome.before:
            if THEIRS.encode() not in (stands or b""):
                yield f"{target} has lost what a person wrote"
        elif _is_due(outcome.setting, states, stands) and not _is_same(
            outcome.setting, target, stands, calm.targets[target]
        ):
            yield f"{target} is not what it is in calm weather"
    for target in sorted(outcome.targets.keys() - calm.targets.keys()):
        yield f"{target} should not be there"


def _is_due(setting: Setting, states: Sequence[str], stands: bytes | None) -> bool:
    """Whether a target must hold everything: one of its intents was completed, and nobody canceled that."""
    is_left = "cancel" in setting.people and stands is None
    return "completed" in states and not is_left


def _is_same(setting: Setting, target: str, stands: bytes | None, wanted: bytes) -> bool:
    """The same bytes; where a file came to be in parts, the same texts in whatever layout."""
    in_parts = setting.may_fail or "edit" in setting.people
    if stands is not None and in_parts and target.endswith(".json"):
        return bool(json.loads(stands) == json.loads(wanted))
    return stands == wanted


def _taken_back(outcome: Outcome) -> Iterator[str]:
    for target in sorted(outcome.targets.keys() | outcome.before.keys()):
        if outcome.targets.get(target) != outcome.before.get(target):
            yield f"{target} is not what it was before all was taken back"
