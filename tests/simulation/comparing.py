"""What came out of a world beside what comes out where nothing goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from tests.simulation.people import SPOKEN_FOR, TAKEN, THEIRS
from tests.simulation.recording import Outcome
from tests.simulation.settings import Setting
from tests.simulation.shelves import LOCALES, SHARED, Texts, target_of


def compared(outcome: Outcome, calm: Outcome) -> Outcome:
    """The same outcome, with a problem for each thing that came out otherwise than it may.

    `calm` is the world in which nothing goes wrong, of the same documents.
    """
    if not outcome.problems:
        outcome.problems += _states(outcome, calm)
        outcome.problems += (
            _taken_back(outcome) if "revert" in outcome.setting.people else _targets(outcome, calm)
        )
        for name in SHARED.keys() & calm.targets.keys():
            outcome.problems += _shared(outcome, calm, name)
    return outcome


def _states(outcome: Outcome, calm: Outcome) -> Iterator[str]:
    for pair in calm.states:
        states = outcome.states.get(pair, ())
        if not states and "cancel" not in outcome.setting.people:
            yield f"{pair} was asked for, and there is nothing of it"
        allowed = [_allowed(outcome.setting, place, place == len(states) - 1) for place in range(len(states))]
        if any(state not in ends for state, ends in zip(states, allowed, strict=True)):
            yield f"{pair} ended {states}"


def _allowed(setting: Setting, place: int, is_last: bool) -> set[str]:
    """How the intents of the manifest at this `place`, or the last one, may end."""
    people = set(setting.people)
    allowed = {"completed"}
    if place or people & {"cancel", "rival"} or setting.asks == "canary":
        allowed.add("skipped")
    if setting.may_fail and ("retry" not in people or people & {"rival", "cancel"}):
        allowed.add("failed")
    if "redrive" in people and (not is_last or "rival" in people):
        allowed.add("failed")  # with a job in quarantine; which of two rivals is the last says nothing
    return allowed


def _targets(outcome: Outcome, calm: Outcome) -> Iterator[str]:
    for pair, states in outcome.states.items():
        document, locale = pair.split()
        if document in SHARED:
            continue
        target = target_of(document, locale, "run" in outcome.setting.people)
        stands = outcome.targets.get(target)
        if _is_taken(outcome.setting, locale):
            if stands != outcome.before.get(target):
                yield f"{target} is not what it was before it was taken back"
            continue
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
    in_parts = setting.may_fail or bool({"edit", "redrive"} & set(setting.people))
    if stands is not None and in_parts and target.endswith(".json"):
        return bool(json.loads(stands) == json.loads(wanted))
    return stands == wanted


def _taken_back(outcome: Outcome) -> Iterator[str]:
    for target in sorted((outcome.targets.keys() | outcome.before.keys()) - SHARED.keys()):
        if outcome.targets.get(target) != outcome.before.get(target):
            yield f"{target} is not what it was before all was taken back"


def _is_taken(setting: Setting, locale: str) -> bool:
    """Whether what was put in place in this locale was taken back in the end."""
    people = set(setting.people)
    return "revert" in people or ("part" in people and locale == TAKEN and "again" not in people)


def _shared(outcome: Outcome, calm: Outcome, name: str) -> Iterator[str]:
    """A file of all locales holds just what was published and not taken back, and what people wrote."""
    beside, said = SHARED[name].read(outcome.targets[name])
    beside_in_calm, wanted = SHARED[name].read(calm.targets[name])
    if beside != beside_in_calm:
        yield f"{name} has changed beside its translations"
    for locale in LOCALES:
        by_hand = {"word", "correct"} & set(outcome.setting.people) and locale == SPOKEN_FOR
        theirs = {SHARED[name].key: THEIRS} if by_hand else {}
        states = outcome.states.get(f"{name} {locale}", ())
        if not _may_hold(outcome.setting, locale, states, said[locale], {**wanted[locale], **theirs}, theirs):
            yield f"{name} holds {said[locale]} in {locale}; people wrote {theirs}, its intents {states}"


def _may_hold(
    setting: Setting, locale: str, states: Sequence[str], said: Texts, whole: Texts, theirs: Texts
) -> bool:
    """Whether a locale of a shared file may come to hold this: all of it, or what people alone wrote."""
    if _is_taken(setting, locale):
        return said == theirs
    if theirs or "cancel" in setting.people:
        in_part = "failed" in states and theirs.items() <= said.items() <= whole.items()
        return said in (whole, theirs) or in_part
    if "completed" in states:
        return said == whole
    return said.items() <= whole.items()
