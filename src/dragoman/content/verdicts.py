"""A reply judged, field by field: what is good is good alone, and what is not says why.

Texts are matched by their id only. An id that came twice is rejected twice, one that nobody asked for is
passed over. A field of several pieces counts and fails as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.content import prompting
from dragoman.content.checks import Finding, Pair, examined
from dragoman.content.glossary import NO_TERMS, Terms
from dragoman.content.prompting import Piece
from dragoman.content.protection import MarkersBroken, restore
from dragoman.model.completions import Reply
from dragoman.model.documents import Text
from dragoman.model.jobs import Asked, Field

VERSION = "3"
"""Of what a translation must pass: a field that failed under one version is tried again under the next."""

_DOUBLED = "The id of this text came more than once: answer it exactly once."
_LEFT_OUT = "This text was left out: answer every id."


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one piece: the check that it failed, in words, and what it lost."""

    category: str
    check: str
    message: str
    missing: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """One field of a reply. `value` is its translation where there are no `faults`.

    `answered` says that each of its pieces came back, however well; `review` names the warnings of checks.
    """

    field: Field
    value: Text | None
    faults: tuple[Fault, ...]
    answered: bool
    review: tuple[str, ...] = ()


def _no_terms(_field: Field) -> Terms:
    return NO_TERMS


class _Court(NamedTuple):
    """What every piece of a field is judged by."""

    source_locale: str
    field: Field
    terms: Terms

    def findings(self, source: str, target: str, category: str = "") -> tuple[Finding, ...]:
        pair = Pair(
            source, target, self.field.syntax, self.source_locale, self.field.target_locale,
            self.field.max_length, self.terms.wanted, self.terms.kept, self.terms.avoided, category,
        )  # fmt: skip
        return examined(pair)


def judge(
    source_locale: str,
    asked: Sequence[Asked],
    fields: Mapping[int, Field],
    reply: Reply,
    pieces_of: Callable[[Field], tuple[Piece, ...]] = prompting.pieces,
    terms_of: Callable[[Field], Terms] = _no_terms,
) -> tuple[Verdict, ...]:
    """A verdict for every field that was asked for and is still open, in the order of the question.

    `pieces_of` gives what of a field went out, for callers that have it at hand, `terms_of` the terms in it.
    """
    texts = dict(reply.items)
    once = len(texts) == len(reply.items)
    counts = dict.fromkeys(texts, 1) if once else Counter([name for name, _ in reply.items])
    names: dict[int, dict[str, str]] = {}
    for name, ordinal, category in asked:
        names.setdefault(ordinal, {})[category] = name
    return tuple(
        _verdict(
            _Court(source_locale, fields[ordinal], terms_of(fields[ordinal])),
            pieces_of(fields[ordinal]),
            mine,
            counts,
            texts,
        )
        for ordinal, mine in names.items()
        if ordinal in fields
    )


def _verdict(
    court: _Court,
    pieces: Sequence[Piece],
    names: Mapping[str, str],
    counts: Mapping[str, int],
    texts: Mapping[str, str],
) -> Verdict:
    translated: dict[str, str] = {}
    faults: list[Fault] = []
    warnings: set[str] = set()
    for piece in pieces:
        name = names.get(piece.category, "")
        count = counts.get(name, 0)
        if count != 1:
            said = _DOUBLED if count else _LEFT_OUT
            faults.append(Fault(piece.category, "doubled" if count else "missing", said))
            continue
        found = _examined(court, piece, texts[name])
        if isinstance(found, Fault):
            faults.append(found)
        else:
            translated[piece.category], warned = found
            warnings |= warned
    answered = all(map(counts.__contains__, names.values()))
    value = None if faults else prompting.assembled(court.field, translated)
    return Verdict(court.field, value, tuple(faults), answered, tuple(sorted(warnings)))


def review(
    source_locale: str, field: Field, value: Text, terms: Terms = NO_TERMS
) -> tuple[tuple[str, ...], bool]:
    """What checks say of a translation accepted before: their names, and whether all are warnings."""
    court = _Court(source_locale, field, terms)
    sources = prompting.sources(field) if isinstance(field.value, Mapping) else {"": field.value}
    forms = {"": value} if isinstance(value, str) else value
    found = [
        finding
        for category in sources.keys() & forms.keys()
        for finding in court.findings(sources[category], forms[category], category)
    ]
    names = tuple(sorted({finding.check for finding in found}))
    complete = isinstance(field.value, str) == isinstance(value, str) and sources.keys() <= forms.keys()
    return names, complete and all(finding.severity == "warning" for finding in found)


def _examined(court: _Court, piece: Piece, answer: str) -> tuple[str, set[str]] | Fault:
    """A piece's translation, whole again, with the names of its warnings; or what nobody would accept."""
    try:
        text = restore(piece.protected, answer)
    except MarkersBroken as broken:
        return Fault(piece.category, "placeholders", broken.reason, broken.missing)
    findings = court.findings(piece.source, text)
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors:
        return text, {finding.check for finding in findings}
    message = " ".join(finding.message for finding in errors)
    return Fault(piece.category, errors[0].check, message, errors[0].missing)
