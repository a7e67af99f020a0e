"""A translated document held against its source: every finding with its key and line; pure.

Promises to look at each text once, in the target's order, and to judge a plural form against the form that it
was translated from. Beside the checks of single texts there are those of a whole file (`FILE_CHECKS`). Knows
no file and no format but the plural tables of gettext and Qt, which have no form for fractions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dragoman.content import locales
from dragoman.content.checks import Finding, Severity, check
from dragoman.content.passing import is_object_id, passes_through
from dragoman.content.prompting import plural_sources
from dragoman.content.spans import line_spans
from dragoman.model.documents import Block, Document, Plural, Text

FILE_CHECKS: Mapping[str, str] = {
    "unreadable": "The file is of its format, from the first line to the last.",
    "empty": "A text has a translation where it has words, and stays blank where it is.",
    "missing": "Every text of the source has a translation.",
    "lost": "Every text of the translation is still in the source.",
    "unfinished": "No translation is left marked as a guess (fuzzy) or as unfinished.",
    "inconsistent": "One source text is translated in one way throughout a file.",
    "plurals": "A plural has every form that the locale needs, and the source's exact ones (=0).",
}
"""Name → what it asks, as a rule for translators."""

_OWN_PLURAL_TABLES = ("gettext", "qt")
"""Formats, by how their names begin, whose plurals have a form for whole numbers only."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding, and where it lies: the field's key and the line in the target's file, counted from 1."""

    key: str
    line: int
    finding: Finding


def inspect(
    source: Document,
    target: Document,
    *,
    glossary: Sequence[tuple[str, str]] = (),
    kept: Sequence[str] = (),
) -> tuple[Remark, ...]:
    """All that is wrong with a translated document, by line."""
    known = {block.key: block for block in source.blocks if block.state != "obsolete"}
    standing = [block for block in target.blocks if block.state != "obsolete"]
    lines = _Lines(target)
    remarks: list[Remark] = []
    for block in standing:
        asked = known.get(block.key)
        found = [_LOST] if asked is None else _of_block(source, target, asked, block, glossary, kept)
        remarks += [Remark(block.key, lines.of(block), finding) for finding in found]
    present = {block.key for block in standing}
    absent = [block for key, block in known.items() if key not in present and _needs(block)]
    remarks += [Remark(block.key, 1, _MISSING) for block in absent]
    remarks += _inconsistencies(known, standing, lines)
    return tuple(sorted(remarks, key=lambda remark: (remark.line, remark.finding.severity)))


_MISSING = Finding("missing", "warning", "There is no translation.")
_LOST = Finding("lost", "warning", "The source has no such text any more.")
_UNFINISHED = Finding("unfinished", "warning", "The translation is marked as a guess or unfinished.")


class _Lines:
    """Gives the line of a block in one look."""

    def __init__(self, document: Document) -> None:
        self._starts = [start for start, _, _ in line_spans(document.text)]

    def of(self, block: Block) -> int:
        return max(1, bisect_right(self._starts, block.spans[0].start)) if block.spans else 1


def _of_block(
    source: Document,
    target: Document,
    asked: Block,
    block: Block,
    glossary: Sequence[tuple[str, str]],
    kept: Sequence[str],
) -> Iterator[Finding]:
    """What is wrong with one text."""
    if not _is_filled(block.value):
        yield from [_MISSING] if _needs(asked) else []
        return
    unfinished = block.state in ("untranslated", "fuzzy")
    if unfinished:
        yield _UNFINISHED
    if is_object_id(asked.text):
        return
    if asked.plural is not None and block.plural is not None:
        yield from _plural_gaps(target, asked.plural, block.plural)
    for category, was, now, other in _forms(asked, block, target.locale):
        for finding in check(
            was,
            now,
            syntax=asked.syntax,
            source_locale=source.locale,
            target_locale=target.locale,
            max_length=asked.max_length,
            glossary=glossary,
            kept=kept,
            category=category,
            other=other,
        ):
            if unfinished and finding.check == "untranslated":
                continue
            said = f"In {category}: {finding.message}" if category else finding.message
            yield Finding(finding.check, finding.severity, said, finding.missing)


def _forms(asked: Block, block: Block, locale: str) -> Iterator[tuple[str, str, str, str]]:
    """Category, source, translation and the source's `other` of each form that stands there."""
    if asked.plural is None or block.plural is None:
        yield "", asked.text, block.text, ""
        return
    other = asked.plural.get("other", asked.text)
    sources = plural_sources({**asked.plural, "other": other}, locale)
    for category, text in block.plural.items():
        if text:
            yield category, asked.plural.get(category, sources.get(category, other)), text, other


def _plural_gaps(target: Document, asked: Plural, forms: Plural) -> Iterator[Finding]:
    """Forms that the locale needs and that are not there, or empty; an error where small numbers need it."""
    whole = locales.plural_sample(target.locale)
    needed = set(locales.plural_categories(target.locale))
    if target.format.startswith(_OWN_PLURAL_TABLES):
        needed = set(forms)
    exact = {name for name in asked if name.startswith("=")}
    given = {name for name, text in forms.items() if text}
    numbers = {int(name[1:]) for name in given if name[1:].isdecimal() and name.startswith("=")}
    spoken_for = {name for name, members in whole.items() if members <= numbers}
    for name in sorted((needed | exact) - given - spoken_for):
        urgent = name in whole or name == "other" or name in exact
        severity: Severity = "error" if urgent else "warning"
        yield Finding("plurals", severity, f"The plural form {name!r} is missing.", (name,))


def _inconsistencies(
    known: Mapping[str, Block], standing: Sequence[Block], lines: _Lines
) -> Iterator[Remark]:
    """Every translation that differs from the first one of an equal source in an equal context."""
    first: dict[tuple[str, str], Block] = {}
    for block in standing:
        asked = known.get(block.key)
        if asked is None or asked.plural is not None or block.state == "fuzzy" or not block.text.strip():
            continue
        earlier = first.setdefault((asked.text, asked.context), block)
        if earlier.text != block.text:
            said = f"The same source is translated as {earlier.text[:80]!r} in line {lines.of(earlier)}."
            yield Remark(block.key, lines.of(block), Finding("inconsistent", "warning", said))


def _is_filled(value: Text) -> bool:
    return bool(value) if isinstance(value, str) else any(value.values())


def _needs(block: Block) -> bool:
    """Whether a source text needs a translation."""
    texts = (block.text,) if block.plural is None else tuple(block.plural.values())
    return not all(passes_through(text, block.syntax) for text in texts)
