"""Android's string resources by place: strings, the items of arrays, and plurals.

Promises a key for each text that is one (`name`, `name/2` in an array, `name/tablet` of a product) and tells
apart what is not to be translated: `translatable="false"`, lint told not to miss it, references to other
resources. Two texts of one key are refused, as aapt2 does. Knows how values are read, not how they change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from dragoman.content.lexers.android_values import is_markup, shown, shown_markup
from dragoman.content.lexers.xml_entries import Entry, entries, valued
from dragoman.content.lexers.xml_places import Element, is_cdata, parse
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Edit, Span

QUANTITIES = ("zero", "one", "two", "few", "many", "other")
_REFERENCE = re.compile(
    r"@(?:null|empty|[+*]?(?:[\w.]+:)?[\w.]+/[\w.]+)|\?(?:[\w.]+:)?(?:attr/)?[A-Za-z_][\w.]*"
)
_UNTRANSLATED = re.compile(r"\b(?:MissingTranslation|ExtraTranslation|Untranslatable)\b")


@dataclass(frozen=True, slots=True)
class Value:
    """The content of one string or item. A CDATA section's place is without the white space around it."""

    element: Element
    span: Span
    raw: str

    @property
    def is_text(self) -> bool:
        """Whether it is no reference to another resource or to a theme's attribute."""
        return not _REFERENCE.fullmatch(self.raw.strip())

    def edit(self, raw: str, key: str) -> Edit:
        """The edit that puts another raw value in its place."""
        return valued(self.element, raw, key) if self.element.closed else Edit(self.span, raw, "value", key)


@dataclass(frozen=True, slots=True)
class Unit:
    """One text, or the quantities of a plural (`values` by quantity, "" for a text)."""

    key: str
    entry: Entry
    values: Mapping[str, Value]

    @property
    def plural(self) -> bool:
        """Whether it has quantities."""
        return "" not in self.values

    @property
    def markup(self) -> bool:
        """Whether any of its values holds markup: then all are read so."""
        return any(is_markup(value.raw) for value in self.values.values())

    @property
    def texts(self) -> dict[str, str]:
        """What the app shows, by quantity."""
        read = shown_markup if self.markup else shown
        return {quantity: read(value.raw) for quantity, value in self.values.items()}


@dataclass(frozen=True)
class Resources:
    """A file: its units by key, in file order, and the entries that are not for translators."""

    root: Element
    units: Mapping[str, Unit]
    kept_back: tuple[Entry, ...]

    @cached_property
    def by_entry(self) -> dict[Span, list[Unit]]:
        """The units of each entry, by the entry's place."""
        found: dict[Span, list[Unit]] = {}
        for unit in self.units.values():
            found.setdefault(unit.entry.element.whole, []).append(unit)
        return found


def resources(text: str) -> Resources:
    """Read a file. Raises `DocumentError` for what aapt2 would refuse."""
    root = parse(text)
    if root.name != "resources":
        what = f"the root element is <{root.name}>; that of Android's values is <resources>"
        raise DocumentError(what, line_at(text, root.whole.start))
    units: dict[str, Unit] = {}
    kept_back: list[Entry] = []
    found = entries(text, root)
    strings = {_name(entry.element, text) for entry in found if _kind(entry.element) == "string"}
    for entry in found:
        kind = _kind(entry.element)
        if kind and not _translatable(entry.element):
            kept_back.append(entry)
            continue
        for unit in _units(text, entry, kind, strings):
            if unit.key in units:
                line = line_at(text, entry.element.whole.start)
                raise DocumentError(f"the resource {unit.key!r} stands here a second time", line)
            units[unit.key] = unit
    return Resources(root, units, tuple(kept_back))


def items(element: Element) -> tuple[Element, ...]:
    """The items of an array or a plural."""
    return tuple(element.each("item"))


def value_of(text: str, element: Element) -> Value:
    """The raw content of a string or item."""
    raw = text[element.inner.start : element.inner.end]
    core = raw.strip(" \t\r\n")
    if not is_cdata(core):
        return Value(element, element.inner, raw)
    start = element.inner.start + raw.index(core)
    return Value(element, Span(start, start + len(core)), core)


def _units(text: str, entry: Entry, kind: str, strings: set[str]) -> Iterator[Unit]:
    if not kind:
        return
    name = _name(entry.element, text)
    if kind == "string":
        found = {name: {"": value_of(text, entry.element)}}
    elif kind == "string-array":
        found = {
            f"{name}/{index}": {"": value_of(text, item)} for index, item in enumerate(items(entry.element))
        }
    else:
        found = {f"plurals/{name}" if name in strings else name: _quantities(text, entry.element)}
    for key, values in found.items():
        if values and any(value.is_text for value in values.values()):
            yield Unit(key, entry, values)


def _quantities(text: str, element: Element) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for item in items(element):
        quantity = item.attributes.get("quantity", "")
        if quantity not in QUANTITIES or quantity in values:
            what = f"the quantity {quantity!r} stands here twice, or is none of {', '.join(QUANTITIES)}"
            raise DocumentError(what, line_at(text, item.whole.start))
        values[quantity] = value_of(text, item)
    return values


def _kind(element: Element) -> str:
    """What kind of text an entry is; empty for other resources."""
    if element.name == "item":
        return "string" if element.attributes.get("type") == "string" else ""
    return element.name if element.name in ("string", "string-array", "plurals") else ""


def _translatable(element: Element) -> bool:
    told = element.attributes.get("translatable", "").strip().lower() == "false"
    return not told and not _UNTRANSLATED.search(element.attributes.get("tools:ignore", ""))


def _name(element: Element, text: str) -> str:
    name = element.attributes.get("name")
    if name is None:
        raise DocumentError(f"this <{element.name}> has no name", line_at(text, element.whole.start))
    product = element.attributes.get("product", "default")
    spelled = name.replace("~", "~0").replace("/", "~1")
    return spelled if product == "default" else f"{spelled}/{product}"
