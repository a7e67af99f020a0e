"""What a translation must keep of its source, and what its locale asks of it: one function a check.

Promises that an `error` is a fault that no reader would accept (it blocks the result), a `warning` something
that a person should look at. Texts are whole, without markers: what `restore` gives. Knows no provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dragoman.content.checks.catalogue import CHECKS, Check, Run
from dragoman.content.checks.pair import Finding, Pair, Severity
from dragoman.content.checks.reading import empty
from dragoman.content.tokens import Family
from dragoman.model.documents import Syntax

__all__ = ["CHECKS", "Check", "Finding", "Pair", "Severity", "check", "examined"]


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
    return examined(pair)


def examined(pair: Pair) -> tuple[Finding, ...]:
    """Everything that is wrong with a pair, errors first."""
    if not pair.source.strip() or not pair.target.strip():
        blank = tuple(empty(pair))
        if blank or not pair.source.strip():
            return blank
    found: list[Finding] = []
    for run in _holding(pair.syntax, pair.families):
        said = run(pair)
        if said:  # not even a generator is made where a look is enough
            found += said
    return tuple(sorted(found, key=lambda finding: finding.severity)) if found else ()


@lru_cache(maxsize=1024)
def _holding(syntax: Syntax, families: frozenset[Family]) -> tuple[Run, ...]:
    """The checks that can have something to say of two texts which hold such code."""
    return tuple(check.run for check in CHECKS.values() if check.holds(syntax, families))
