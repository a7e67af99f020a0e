"""What a translation must keep of its source, and what its locale asks of it: one function a check.

Promises that an `error` is a fault that no reader would accept (it blocks the result), a `warning` something
that a person should look at. Texts are whole, without markers: what `restore` gives. Knows no provider.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.content.checks.catalogue import CHECKS, Check
from dragoman.content.checks.pair import Finding, Pair, Severity
from dragoman.content.checks.reading import empty
from dragoman.model.documents import Syntax

__all__ = ["CHECKS", "Check", "Finding", "Pair", "Severity", "check"]


def check(
    source: str,
    target: str,
    *,
    syntax: Syntax,
    source_locale: str,
    target_locale: str,
    max_length: int | None = None,
    glossary: Sequence[tuple[str, str]] = (),
    kept: Sequence[str] = (),
    avoided: Sequence[tuple[str, str]] = (),
    category: str = "",
    other: str = "",
) -> tuple[Finding, ...]:
    """Everything that is wrong with a translation, errors first. `max_length` counts characters.

    `glossary` holds terms and their translations (a term that comes again has several, each of them right),
    `kept` terms that are not translated, `avoided` terms and words not to be used for them; `category` says
    which plural form the two texts are, `other` the source's form for most numbers.
    """
    pair = Pair(
        source, target, syntax, source_locale, target_locale,
        max_length, tuple(glossary), tuple(kept), tuple(avoided), category, other,
    )  # fmt: skip
    blank = tuple(empty(pair))
    if blank or not source.strip():
        return blank
    found = [finding for run in CHECKS.values() for finding in run(pair)]
    return tuple(sorted(found, key=lambda finding: finding.severity))
