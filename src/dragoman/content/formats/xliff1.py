"""XLIFF 1.2: trans-units with source and target, segmented or not.

Promises that only targets change, and what says how far they are (`state`, `approved`, `target-language`).
A segmented unit (`seg-source`) gives a block a segment, and its target gets the same segments. A key is the
file's `original`, the unit's id and, in a segmented one, the segment's. Units that are not to be translated,
`alt-trans` and binary units stay as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from lxml import etree

from dragoman.content.lexers import xml_places
from dragoman.content.lexers.bilingual import (
    Catalogue,
    Declaration,
    Frame,
    Group,
    Mark,
    Pair,
    Unit,
    document,
)
from dragoman.content.lexers.bilingual_filling import write
from dragoman.content.lexers.bilingual_rereading import complaint, local, tree
from dragoman.content.lexers.xml_edits import Names, step
from dragoman.content.lexers.xml_places import Element
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import BlockState, Document, Role, Text, Writing

_STATES: Mapping[str, BlockState] = {
    "new": "untranslated",
    "needs-translation": "untranslated",
    "needs-adaptation": "fuzzy",
    "needs-l10n": "fuzzy",
    "needs-review-adaptation": "fuzzy",
    "needs-review-l10n": "fuzzy",
    "needs-review-translation": "fuzzy",
    "signed-off": "approved",
    "final": "approved",
}


class Xliff1:
    """The format `xliff1`."""

    name = "xliff1"
    extensions: tuple[str, ...] = (".xlf", ".xliff")
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """By extension; the later versions are asked first, and a broken file is refused by its line."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """What the XML declaration says."""
        return xml_places.charset(data)

    def read(self, text: str, role: Role, locale: str) -> Document:
        """As source the sources, as target the targets, empty where the file is in another language."""
        root = xml_places.parse(text)
        if root.local != "xliff" or root.attributes.get("version", "1").startswith("2"):
            raise DocumentError(
                'this is not XLIFF 1.2: <xliff version="1.2"> is wanted here', line_at(text, root.whole.start)
            )
        return document(self.name, text, _Locating(text, root).catalogue(), role, locale)

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Fill targets; in a target file also insert the units, and the files, that it lacks."""
        return write(base, source, translations, locale)

    def second_opinion(self, before: Document, after: Document) -> str:
        """What libxml2 reads must be our blocks, and what is not to be translated must be as it was."""
        root = tree(after.text)
        if wrong := complaint(list(_reread(root)), after.blocks):
            return wrong
        if Counter(_locked(tree(before.text))) - Counter(_locked(root)):
            return "a unit that is not to be translated would change"
        return ""


class _Locating:
    """One walk over the elements of a file."""

    def __init__(self, text: str, root: Element) -> None:
        self._text = text
        self._root = root
        self._names = Names()

    def catalogue(self) -> Catalogue:
        units: list[Unit] = []
        groups: dict[str, Group] = {}
        declarations: list[Declaration] = []
        for file in self._root.each("file"):
            name = self._names.unique(step(file.attributes.get("original", "")))
            body = file.find("body") or file
            groups[name] = Group(file, body)
            declarations.append(Declaration(file, "target-language", "source-language", frozenset((name,))))
            language = file.attributes.get("target-language", "").strip()
            units += self._units(name, body, language, _limit(file), _translates(file, True))
        return Catalogue(tuple(units), groups, tuple(declarations))

    def _units(
        self, group: str, parent: Element, language: str, limit: int | None, wanted: bool
    ) -> Iterator[Unit]:
        for element in parent.each("group", "trans-unit"):
            own = _limit(element) or limit
            translates = _translates(element, wanted)
            if element.local == "group":
                yield from self._units(group, element, language, own, translates)
            elif translates and (source := element.find("source")):
                yield self._unit(group, element, source, language, own)

    def _unit(self, group: str, element: Element, source: Element, language: str, limit: int | None) -> Unit:
        identity = element.attributes.get("id") or element.attributes.get("resname", "")
        key = self._names.unique(f"{group}/{step(identity)}")
        segmented, target = element.find("seg-source"), element.find("target")
        said = target.attributes.get("xml:lang", "") if target else ""
        pair = Pair(
            key,
            source,
            target,
            segmented or source,
            state=_state(element, target),
            note="\n".join(filter(None, map(self._note, element.each("note")))),
            context=element.attributes.get("resname", ""),
            max_length=limit,
            marks=tuple(_marks(element, target)),
        )
        unit = Unit(key, group, element, (pair,), (source,), said or language)
        return _segmented(unit, pair, segmented) if segmented else unit

    def _note(self, element: Element) -> str:
        return xml_places.unescaped(self._text[element.inner.start : element.inner.end]).strip()


def _marks(unit: Element, target: Element | None) -> Iterator[Mark]:
    """A translation of ours was approved by nobody, and comes from no memory."""
    if "approved" in unit.attributes:
        yield Mark(unit, "approved", "no", "no")
    for name, done, bare in (("state", "translated", "new"), ("state-qualifier", None, None)):
        if target and name in target.attributes:
            yield Mark(target, name, done, bare)


def _segmented(unit: Unit, whole: Pair, source: Element) -> Unit:
    """The unit with a pair a segment; where its target lacks one, with the frame to make it from."""
    segments = dict(_segments(source))
    if not segments:
        return unit
    targets = dict(_segments(whole.target)) if whole.target else {}
    pairs = tuple(
        replace(whole, key=f"{unit.key}/{step(name)}", source=segment, target=targets.get(name))
        for name, segment in segments.items()
    )
    frame = None if targets.keys() >= segments.keys() else Frame(source, whole.target)
    return replace(unit, pairs=pairs, sources=(*unit.sources, source), frame=frame, holder=whole.target)


def _segments(element: Element) -> Iterator[tuple[str, Element]]:
    """The outermost segments inside, by their `mid`, or where they have none, their place."""
    names = Names()
    stack = list(reversed(element.children))
    while stack:
        inner = stack.pop()
        if inner.local == "mrk" and inner.attributes.get("mtype") == "seg":
            yield names.unique(inner.attributes.get("mid", "")), inner
        else:
            stack.extend(reversed(inner.children))


def _translates(element: Element, wanted: bool) -> bool:
    """Whether units inside are to be translated, as an element itself says or what it lies in."""
    said = element.attributes.get("translate", "")
    return said == "yes" if said in ("yes", "no") else wanted


def _limit(element: Element) -> int | None:
    """The most characters that a text may have; other units of size say nothing that can be checked."""
    width = element.attributes.get("maxwidth", "")
    counts = element.attributes.get("size-unit") == "char" and re.fullmatch(r"[1-9]\d{0,5}", width)
    return int(width) if counts else None


def _state(unit: Element, target: Element | None) -> BlockState:
    said = _STATES.get(target.attributes.get("state", ""), "") if target else ""
    return "approved" if not said and unit.attributes.get("approved") == "yes" else said


def _reread(root: etree._Element) -> Iterator[etree._Element | None]:
    """The elements that hold the translations, as libxml2 sees them; None where one is missing."""
    for unit in root.iter("{*}trans-unit"):
        source, target = unit.find("{*}source"), unit.find("{*}target")
        if source is None or not _wanted(unit):
            continue
        segmented = unit.find("{*}seg-source")
        wanted = _reread_segments(segmented) if segmented is not None else []
        if not wanted:
            yield target
            continue
        there = dict(_reread_segments(target)) if target is not None else {}
        yield from (there.get(name) for name, _ in wanted)


def _reread_segments(element: etree._Element) -> list[tuple[str, etree._Element]]:
    names = Names()
    found = [inner for inner in element.iter("{*}mrk") if inner.get("mtype") == "seg"]
    outer = [one for one in found if not any(up in found for up in one.iterancestors())]
    return [(names.unique(one.get("mid", "")), one) for one in outer]


def _wanted(unit: etree._Element) -> bool:
    said = (up.get("translate") for up in (unit, *unit.iterancestors()) if local(up) != "xliff")
    return next((word for word in said if word in ("yes", "no")), "yes") == "yes"


def _locked(root: etree._Element) -> Iterator[str]:
    for unit in root.iter("{*}trans-unit"):
        if not _wanted(unit):
            yield etree.tostring(unit, encoding="unicode", with_tail=False)
