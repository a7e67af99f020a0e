"""Android's string resources: `res/values/strings.xml`, and any XML whose root is `<resources>`.

Promises that texts are what the app shows (escapes, quotes and white space read as aapt2 reads them) and are
written in the file's own habit; that markup, CDATA and `<xliff:g>` stay; that a plural gets the categories of
its locale. A new target leaves out what is not translated, and what is marked as not for translators, as lint
asks for; an array is kept whole, since its positions mean something. `donottranslate.xml` is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from lxml import etree

from dragoman.content.lexers.android_entries import (
    QUANTITIES,
    Resources,
    Unit,
    Value,
    items,
    resources,
    value_of,
)
from dragoman.content.lexers.android_rereading import letters, reread, reread_section
from dragoman.content.lexers.android_values import Spelling
from dragoman.content.lexers.xml_entries import Entry, Insertions, removal
from dragoman.content.lexers.xml_places import Element, charset, is_cdata
from dragoman.content.spans import newline_of, splice
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Block, Document, Edit, Plural, Role, Span, Syntax, Text, Writing

_ROOT = re.compile(
    r"\s*(?>(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(?:\[[^\]]*\]\s*)?>)\s*)*+<resources\b", re.DOTALL
)
_NAME = re.compile(r"(?:^|[\\/])donottranslate[^\\/]*$", re.IGNORECASE)
_PREFIX = re.compile(r"</?([\w.-]+):|\s([\w.-]+):[\w.-]+\s*=")
_LOCALE = re.compile(r"(?<=\s)tools:locale\s*=\s*[\"']([^\"']*)")
_QUANTITY = re.compile(r"(\squantity\s*=\s*[\"'])\w+")
_BARE = re.compile(r"<!\[CDATA\[.*?\]\]>|&(?!#?\w+;)|<(?![A-Za-z_:/!?])", re.DOTALL)
_ENTITY = re.compile(r"&([A-Za-z_][\w.-]*);")
_PARSER = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True, strip_cdata=False)


class AndroidStrings:
    """The format `android`. `syntax` is that of texts without markup."""

    name = "android"
    extensions: tuple[str, ...] = (".xml",)
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def __init__(self, syntax: Syntax = "printf") -> None:
        self._syntax = syntax

    def detect(self, path: str, head: str) -> bool:
        """An XML file whose root is `<resources>`, or a broken `strings.xml`; no `donottranslate.xml`."""
        lower = path.lower()
        if not lower.endswith(self.extensions) or _NAME.search(path):
            return False
        return bool(_ROOT.match(head)) or lower.replace("\\", "/").endswith("/strings.xml")

    def charset(self, data: bytes) -> str | None:
        """What the XML declaration says."""
        return charset(data)

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Every text for translators as a block, in file order."""
        found = resources(text)
        blocks = tuple(self._block(unit, role) for unit in found.units.values())
        return Document(self.name, text, blocks, role, locale, extras={"resources": found})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Replace values; then, in a target, insert what it lacks; else take out what has no translation."""
        writer = _Writer(base, source, translations)
        edits = writer.replacements()
        removed: list[str] = []
        lost: tuple[str, ...] = ()
        if base.role == "source":
            edits += writer.removals(removed)
            edits += writer.leave_takings(locale) if edits else ()
        else:
            edits += writer.insertions()
            known = {block.key for block in source.blocks}
            lost = tuple(block.key for block in base.blocks if block.key not in known)
        edits += writer.namespaces(edits)
        edits.sort(key=lambda edit: (edit.span.start, edit.span.end))
        return Writing(splice(base.text, edits), tuple(edits), lost, writer.written, tuple(removed))

    def second_opinion(self, before: Document, after: Document) -> str:
        """libxml2, and another reader of values, must find our texts; nothing else may differ or be new."""
        try:
            found, known = _elements(after.text), _elements(before.text)
        except etree.XMLSyntaxError as error:
            return f"libxml2 does not read the result: {error}"
        for units in _resources(after).by_entry.values():
            if complaint := _differs(units, found):
                return complaint
        texts = {_identity(unit.entry.element) for unit in _resources(after).units.values()}
        for identity, element in found.items():
            earlier = known.get(identity)
            if earlier is not None and dict(earlier.attrib) != dict(element.attrib):
                return f"the attributes of {identity[1]!r} would change"
            same = earlier is not None and etree.tostring(earlier) == etree.tostring(element)
            if identity not in texts and not same:
                return f"{identity[1]!r}, which is no text, would change"
        return ""

    def _block(self, unit: Unit, role: Role) -> Block:
        texts = unit.texts
        note = unit.entry.element.attributes.get("description", "")
        return Block(
            key=unit.key,
            text=next(iter(texts.values())) if not unit.plural else texts.get("other", ""),
            spans=tuple(value.span for value in unit.values.values()),
            plural=texts if unit.plural else None,
            syntax="html" if unit.markup else self._syntax,
            note="\n".join(part for part in (unit.entry.note, note) if part),
            state="untranslated" if role == "target" and not all(map(str.strip, texts.values())) else "",
        )


class _Writer:
    """Collects the edits of one write."""

    def __init__(self, base: Document, source: Document, translations: Mapping[str, Text]) -> None:
        self._base, self._source = base.text, source.text
        self._standing, self._offered = _resources(base), _resources(source)
        self._values = translations
        self._spelling = Spelling(_raws(self._standing), _raws(self._offered), newline_of(base.text))
        self.written: dict[str, Text] = {}

    def replacements(self) -> list[Edit]:
        """New values for what stands in the base."""
        edits: list[Edit] = []
        for key, unit in self._standing.units.items():
            if key in self._values:
                edits += self._unit(self._base, unit)
        return edits

    def _unit(self, text: str, unit: Unit) -> Iterator[Edit]:
        """The edits that give a unit its translation, in whichever file it stands."""
        value, markup = self._values[unit.key], self._is_markup(unit)
        if not unit.plural:
            if not isinstance(value, str):
                raise DragomanError(f"{unit.key!r} has no plural, and its translation has", "verify_failed")
            self.written[unit.key] = value
            if value != unit.texts[""]:
                yield unit.values[""].edit(self._spelled(value, unit.values[""].raw, markup), unit.key)
            return
        forms = _forms({"other": value} if isinstance(value, str) else value)
        self.written[unit.key] = forms
        if forms != unit.texts:
            yield from self._plural(text, unit, forms, markup)

    def _plural(self, text: str, unit: Unit, forms: Plural, markup: bool) -> Iterator[Edit]:
        """Replace quantities, take out those that the locale does not have, and add those it has."""
        standing = unit.texts
        at = unit.entry.element.inner.start
        for quantity, value in unit.values.items():
            if quantity not in forms:
                yield Edit(Span(at, value.element.whole.end), "", "plural", unit.key)
            elif forms[quantity] != standing[quantity]:
                yield value.edit(self._spelled(forms[quantity], value.raw, markup), unit.key)
            at = value.element.whole.end
        model = unit.values.get("other") or next(iter(unit.values.values()))
        for quantity in forms:
            if quantity in unit.values:
                continue
            rank = QUANTITIES.index(quantity)
            before = [value for name, value in unit.values.items() if QUANTITIES.index(name) < rank]
            raw = self._spelled(forms[quantity], model.raw, markup)
            item = _QUANTITY.sub(rf"\g<1>{quantity}", _opening(text, model.element)) + f"{raw}</item>"
            first = next(iter(unit.values.values())).element
            place = before[-1].element.whole.end if before else first.whole.start
            lead = _lead(text, model.element)
            yield Edit(Span(place, place), f"{lead}{item}" if before else f"{item}{lead}", "plural", unit.key)

    def removals(self, removed: list[str]) -> Iterator[Edit]:
        """Entries of which nothing is translated."""
        for units in self._standing.by_entry.values():
            bare = not any(unit.key in self._values for unit in units)
            if bare and any(map(_has_words, units)):
                removed += [unit.key for unit in units]
                yield removal(units[0].entry, units[0].key)

    def insertions(self) -> list[Edit]:
        """What the base lacks, each behind the one that precedes it in the source, and items of arrays."""
        insertions = Insertions(self._base, self._standing.root, self._source, self._offered.root)
        for entry, at in insertions.places():
            units = self._offered.by_entry.get(entry.element.whole, [])
            wanted = [
                unit for unit in units if unit.key in self._values and unit.key not in self._standing.units
            ]
            if not wanted:
                continue
            edits = [edit for unit in wanted for edit in self._unit(self._source, unit)]
            self.written |= {unit.key: unit.texts[""] for unit in units if unit.key not in self._values}
            insertions.add(at, entry, items(entry.element), edits, wanted[0].key)
        return [*insertions.edits(), *self._longer_arrays()]

    def _longer_arrays(self) -> Iterator[Edit]:
        """Items that an array of the base lacks at its end, with those before them."""
        arrays = {_identity(unit.entry.element): unit.entry.element for unit in self._standing.units.values()}
        done: set[tuple[str | None, ...]] = set()
        for unit in self._offered.units.values():
            identity = _identity(unit.entry.element)
            twin = arrays.get(identity)
            if identity in done or twin is None or twin.name != "string-array":
                continue
            done.add(identity)
            yield from self._appended(unit.entry, items(twin))

    def _appended(self, entry: Entry, standing: Sequence[Element]) -> Iterator[Edit]:
        offered = self._offered.by_entry[entry.element.whole]
        units = {unit.values[""].element.whole: unit for unit in offered}
        more = items(entry.element)[len(standing) :]
        last = max((at for at, item in enumerate(more) if self._wants(units.get(item.whole))), default=-1)
        for item in more[: last + 1]:
            unit, raw = units.get(item.whole), value_of(self._source, item).raw
            if unit:
                text = self._values.get(unit.key, unit.texts[""])
                self.written[unit.key] = text
                raw = self._spelled(str(text), raw, unit.markup) if unit.key in self._values else raw
            place = standing[-1].whole.end
            opening = _opening(self._source, item)
            text_ = f"{_lead(self._base, standing[-1])}{opening}{raw}</item>"
            yield Edit(Span(place, place), text_, "insertion", unit.key if unit else "")

    def _wants(self, unit: Unit | None) -> bool:
        return unit is not None and unit.key in self._values

    def leave_takings(self, locale: str) -> Iterator[Edit]:
        """What makes a source a target: the root's `tools:locale`, and nothing kept from translators."""
        for entry in self._standing.kept_back:
            yield removal(entry, entry.element.attributes.get("name", ""))
        root = self._standing.root
        declared = _LOCALE.search(self._base, root.whole.start, root.inner.start)
        if declared and declared[1] != locale:
            yield Edit(Span(*declared.span(1)), locale, "metadata", "tools:locale")

    def namespaces(self, edits: Sequence[Edit]) -> list[Edit]:
        """Declarations of the prefixes that came in with new values and that the base does not declare."""
        root = self._standing.root
        used = {one or other for edit in edits for one, other in _PREFIX.findall(edit.text)}
        declared = self._offered.root.attributes
        names = sorted(f"xmlns:{prefix}" for prefix in used)
        missing = [name for name in names if name in declared and name not in root.attributes]
        at = root.inner.start - (0 if root.closed else 1)
        texts = [f' {name}="{declared[name]}"' for name in missing]
        return [Edit(Span(at, at), "".join(texts), "metadata")] if texts else []

    def _is_markup(self, unit: Unit) -> bool:
        """A translation is spelled as its source is, whatever stands in the target."""
        return self._offered.units.get(unit.key, unit).markup

    def _spelled(self, text: str, like: str, markup: bool) -> str:
        return self._spelling.markup(text) if markup else self._spelling.plain(text, like)


def _forms(plural: Plural) -> dict[str, str]:
    """The quantities that Android knows, in order; it needs `other`."""
    forms = {quantity: plural[quantity] for quantity in QUANTITIES if quantity in plural}
    if forms and "other" not in forms:
        forms["other"] = list(forms.values())[-1]
    return forms


def _opening(text: str, element: Element) -> str:
    tag = text[element.whole.start : element.inner.start]
    return f"{tag.rstrip()}>" if element.closed else tag


def _lead(text: str, element: Element) -> str:
    """The white space before an element."""
    before = text[: element.whole.start]
    return before[len(before.rstrip(" \t\r\n")) :]


def _has_words(unit: Unit) -> bool:
    return any(any(map(str.isalpha, text)) for text in unit.texts.values())


def _raws(found: Resources) -> Iterator[str]:
    values = (value for unit in found.units.values() for value in unit.values.values())
    return (value.raw for value in values if "<" not in value.raw)


def _identity(element: Element) -> tuple[str | None, ...]:
    return element.name, *map(element.attributes.get, ("name", "product"))


def _elements(text: str) -> dict[tuple[str | None, ...], etree._Element]:
    """The root's children as libxml2 reads them."""
    root = etree.fromstring(text.encode("utf-8"), _PARSER)
    children = (child for child in root.iterchildren() if isinstance(child.tag, str))
    found: dict[tuple[str | None, ...], etree._Element] = {}
    for child in children:
        found[str(child.tag), child.get("name"), child.get("product")] = child
    for child in found.values():
        child.tail = None
    return found


def _differs(units: Sequence[Unit], found: Mapping[tuple[str | None, ...], etree._Element]) -> str:
    """What libxml2 and the second reader hold against the units of one entry."""
    entry = units[0].entry.element
    element = found.get(_identity(entry))
    if element is None:
        return f"libxml2 does not find {units[0].key!r}"
    read = dict(zip((item.whole for item in items(entry)), element.iterchildren("item"), strict=True))
    read[entry.whole] = element
    for unit in units:
        texts, markup = unit.texts, unit.markup
        for quantity, value in unit.values.items():
            if not _agrees(value, texts[quantity], markup, read[value.element.whole]):
                return f"a second reader finds another text at {unit.key!r}"
    return ""


def _agrees(value: Value, text: str, markup: bool, element: etree._Element) -> bool:
    content = _characters(element)
    if not markup:
        section = is_cdata(value.raw)
        return reread_section(content).strip() == text.strip() if section else reread(content) == text
    inner = _BARE.sub(lambda match: {"&": "&amp;", "<": "&lt;"}.get(match[0], match[0]), text)
    own = sorted(set(_ENTITY.findall(inner)) - {"lt", "gt", "amp", "quot", "apos"})
    declared = "".join(f'<!ENTITY {name} "">' for name in own)
    wrapped = f"<!DOCTYPE i [{declared}]><i {' '.join(_declarations(element))}>{inner}</i>"
    try:
        fragment = etree.fromstring(wrapped.encode("utf-8", "surrogatepass"), _PARSER)
    except etree.XMLSyntaxError:
        return False
    tags = [(child.tag, dict(child.attrib)) for child in element.iterdescendants(etree.Element)]
    meant = [(child.tag, dict(child.attrib)) for child in fragment.iterdescendants(etree.Element)]
    words = _characters(fragment)
    return tags == meant and letters(reread_section(content)) in (
        letters(words),
        letters(reread_section(words)),
    )


def _characters(element: etree._Element) -> str:
    """The text nodes of an element: no comments, and no entities of the file's own."""
    return "".join(map(str, cast(list[str], element.xpath(".//text()"))))


def _declarations(element: etree._Element) -> Iterator[str]:
    return (f'xmlns:{prefix}="{name}"' for prefix, name in element.nsmap.items() if prefix)


def _resources(document: Document) -> Resources:
    return cast(Resources, document.extras["resources"])
