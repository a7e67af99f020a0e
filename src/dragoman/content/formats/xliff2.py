"""XLIFF 2.0, 2.1 and 2.2: units of segments, each with its own source and target.

Promises that only targets of segments change, with what says how far they are (`state`, `subState`) and
`trgLang`; a new target stands right behind its source. What lies between segments (`ignorable`) is no text,
nor is `originalData`. A key is the file's id, the unit's, and where a unit has several segments, the
segment's id or its place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from lxml import etree

from dragoman.content.lexers import xml_places
from dragoman.content.lexers.bilingual import Catalogue, Declaration, Group, Mark, Pair, Unit, document
from dragoman.content.lexers.bilingual_filling import write
from dragoman.content.lexers.bilingual_rereading import complaint, local, tree
from dragoman.content.lexers.xml_edits import Names, step
from dragoman.content.lexers.xml_places import Element
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import BlockState, Document, Role, Text, Writing

_VERSION = re.compile(
    r"""<(?:\w+:)?xliff\b[^>]*?\sversion\s*=\s*["']2\.|urn:oasis:names:tc:xliff:document:2"""
)
_STATES: Mapping[str, BlockState] = {"initial": "untranslated", "reviewed": "approved", "final": "approved"}
_RESTRICTION = re.compile(r"(?:\d+\s*,\s*)?([1-9]\d{0,5})")


class Xliff2:
    """The format `xliff2`."""

    name = "xliff2"
    extensions: tuple[str, ...] = (".xlf", ".xliff")
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """By extension and version."""
        return path.lower().endswith(self.extensions) and bool(_VERSION.search(head))

    def charset(self, data: bytes) -> str | None:
        """What the XML declaration says."""
        return xml_places.charset(data)

    def read(self, text: str, role: Role, locale: str) -> Document:
        """As source the sources, as target the targets, empty where the file is in another language."""
        root = xml_places.parse(text)
        if root.local != "xliff" or not root.attributes.get("version", "").startswith("2"):
            line = line_at(text, root.whole.start)
            raise DocumentError('this is not XLIFF 2: <xliff version="2.0"> is wanted here', line)
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
        self._language = root.attributes.get("trgLang", "").strip()

    def catalogue(self) -> Catalogue:
        units: list[Unit] = []
        groups: dict[str, Group] = {}
        for file in self._root.each("file"):
            name = self._names.unique(step(file.attributes.get("id", "")))
            groups[name] = Group(file, file)
            units += self._units(name, file, _translates(file, True))
        declaration = Declaration(self._root, "trgLang", "srcLang", frozenset(groups))
        return Catalogue(tuple(units), groups, (declaration,))

    def _units(self, group: str, parent: Element, wanted: bool) -> Iterator[Unit]:
        for element in parent.each("group", "unit"):
            translates = _translates(element, wanted)
            if element.local == "group":
                yield from self._units(group, element, translates)
            elif translates and (unit := self._unit(group, element)):
                yield unit

    def _unit(self, group: str, element: Element) -> Unit | None:
        segments = [
            (segment, source) for segment in element.each("segment") if (source := segment.find("source"))
        ]
        if not segments:
            return None
        key = self._names.unique(f"{group}/{step(element.attributes.get('id', ''))}")
        names = Names()
        inside = [
            names.unique(step(segment.attributes.get("id") or str(index)))
            for index, (segment, _) in enumerate(segments)
        ]
        keys = [key] if len(segments) == 1 else [f"{key}/{name}" for name in inside]
        pairs = tuple(self._pair(own, element, *segment) for own, segment in zip(keys, segments, strict=True))
        return Unit(key, group, element, pairs, tuple(pair.source for pair in pairs), self._language)

    def _pair(self, key: str, unit: Element, segment: Element, source: Element) -> Pair:
        target, notes = segment.find("target"), unit.find("notes")
        return Pair(
            key,
            source,
            target,
            source,
            state=_STATES.get(segment.attributes.get("state", ""), "") if target else "",
            note="\n".join(filter(None, map(self._note, notes.each("note")))) if notes else "",
            context=unit.attributes.get("name", ""),
            max_length=_limit(segment) or _limit(unit),
            marks=tuple(_marks(segment)),
        )

    def _note(self, element: Element) -> str:
        return xml_places.unescaped(self._text[element.inner.start : element.inner.end]).strip()


def _marks(segment: Element) -> Iterator[Mark]:
    """A sub-state belongs to the state that it was given with."""
    for name, done, bare in (("state", "translated", "initial"), ("subState", None, None)):
        if name in segment.attributes:
            yield Mark(segment, name, done, bare)


def _translates(element: Element, wanted: bool) -> bool:
    """Whether texts inside are to be translated, as an element itself says or what it lies in."""
    said = element.attributes.get("translate", "")
    return said == "yes" if said in ("yes", "no") else wanted


def _limit(element: Element) -> int | None:
    """The upper bound of the module for size and length, which counts characters by default."""
    said = next((said for name, said in element.attributes.items() if name.endswith(":sizeRestriction")), "")
    bound = _RESTRICTION.fullmatch(said.strip())
    return int(bound[1]) if bound else None


def _reread(root: etree._Element) -> Iterator[etree._Element | None]:
    """The elements that hold the translations, as libxml2 sees them; None where one is missing."""
    for segment in root.iter("{*}segment"):
        if segment.find("{*}source") is not None and _wanted(segment):
            yield segment.find("{*}target")


def _wanted(element: etree._Element) -> bool:
    said = (up.get("translate") for up in (element, *element.iterancestors()) if local(up) != "xliff")
    return next((word for word in said if word in ("yes", "no")), "yes") == "yes"


def _locked(root: etree._Element) -> Iterator[str]:
    for unit in root.iter("{*}unit"):
        if not _wanted(unit):
            yield etree.tostring(unit, encoding="unicode", with_tail=False)
