"""What follows from a judged reply: what is done, what has failed, and who is asked for again, how.

    a fault            in its group → one repair call, with the exact complaint → alone, if that held more
    left out           by a length stop or an unreadable answer: the rest in two halves; it does not count
    refused            in two halves, down to the one field that is refused: it alone fails
    three times        is the most that a field is asked for in a job

Pure: decides, and does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.content.verdicts import Verdict
from dragoman.kernel.limits import CALLS_PER_FIELD_MAX
from dragoman.model.completions import Finish
from dragoman.model.jobs import Purpose


@dataclass(frozen=True, slots=True)
class Again:
    """One call to be made. `counted` says that its fields were really answered, or left out, before."""

    purpose: Purpose
    verdicts: tuple[Verdict, ...]
    counted: bool


@dataclass(frozen=True, slots=True)
class Aftermath:
    """`failed` pairs a verdict with the code with which its field ends."""

    good: tuple[Verdict, ...]
    failed: tuple[tuple[Verdict, str], ...]
    again: tuple[Again, ...]


def aftermath(purpose: Purpose, verdicts: Sequence[Verdict], finish: Finish) -> Aftermath:
    """Decide over all fields of a call."""
    good = tuple(verdict for verdict in verdicts if verdict.value is not None)
    bad = [verdict for verdict in verdicts if verdict.value is None]
    silent = [] if finish == "complete" else [verdict for verdict in bad if not verdict.answered]
    faulty = [verdict for verdict in bad if verdict not in silent]
    lone = len(verdicts) == 1
    if lone and silent and finish == "refused":
        return Aftermath(good, ((silent[0], "content_refused"),), ())
    if lone and silent:
        silent, faulty = [], silent  # one text alone that is cut or garbled: it cannot be split any further
    spent = [verdict for verdict in faulty if _is_spent(purpose, verdict, lone)]
    repaired = [verdict for verdict in faulty if verdict not in spent]
    halving: Purpose = "bisect" if finish == "refused" else "split"
    again = (*_repairs(purpose, repaired, lone), *_halves(halving, silent))
    return Aftermath(good, tuple((verdict, "checks_failed") for verdict in spent), again)


def _is_spent(purpose: Purpose, verdict: Verdict, lone: bool) -> bool:
    """Whether a faulty field is asked for no more: it was repaired alone, or has had its calls."""
    had_its_repair = purpose == "alone" or (purpose == "repair" and lone)
    return had_its_repair or verdict.field.calls + 1 >= CALLS_PER_FIELD_MAX


def _repairs(purpose: Purpose, faulty: Sequence[Verdict], lone: bool) -> Iterator[Again]:
    if not faulty:
        return
    if purpose == "repair" and not lone:
        yield from (Again("alone", (verdict,), counted=True) for verdict in faulty)
    else:
        yield Again("repair", tuple(faulty), counted=True)


def _halves(purpose: Purpose, silent: Sequence[Verdict]) -> Iterator[Again]:
    middle = (len(silent) + 1) // 2
    for half in (silent[:middle], silent[middle:]):
        if half:
            yield Again(purpose, tuple(half), counted=False)
