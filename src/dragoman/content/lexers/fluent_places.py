"""Fluent seen as places: messages and terms, their values and attributes, and the texts in these.

Promises exact spans, lines that are an entry's own, and that a pattern which chooses by number is one plural
of whole sentences, the text around the choice included; other choices give a text for each variant, and one
for what stands around them. Attributes of terms are grammar, not text. Junk is refused by its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fluent.syntax import FluentParser, ast

from dragoman.content.lexers.fluent_spelling import Element, one_line, shown, span_of
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError

CATEGORIES = ("zero", "one", "two", "few", "many", "other")
_EXACT = re.compile(r"\d{1,9}")
_CONTINUED = re.compile(r"(?:\r\n|\n)( *)(?=[^ \r\n])")
_BLANK = re.compile(r"[ \r\n]*")


@dataclass(frozen=True, slots=True)
class Place:
    """A pattern: its source from `start` to `end`, what precedes it from `head` (behind `=` or `]`) on."""

    head: int
    start: int
    end: int
    block: bool
    """Whether it begins on a line of its own."""
    indent: str
    """Of its further lines."""
    elements: Sequence[Element]


@dataclass(frozen=True, slots=True)
class Form:
    """A variant of a select. `start` to `end` are its lines."""

    name: str
    place: Place
    start: int
    end: int
    default: bool


@dataclass(frozen=True, slots=True)
class Unit:
    """One text. A plural has `forms`, and its select from `chosen[0]` to `chosen[1]`.

    `markers` are the selects that stand in a text: where each begins and ends, and how it is shown.
    """

    key: str
    place: Place
    text: str
    forms: Sequence[Form] = ()
    texts: Sequence[str] = ()
    """Of the forms."""
    chosen: tuple[int, int] = (0, 0)
    markers: Sequence[tuple[int, int, str]] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A message's value (its name is empty) or attribute, and the lines of an attribute."""

    name: str
    place: Place
    start: int
    end: int
    units: Sequence[Unit]


@dataclass(frozen=True, slots=True)
class Entry:
    """A message, a term or a comment. `name` is unique in its file; `start` to `end` are its lines with the
    blank lines above.
    """

    name: str
    kind: type[ast.EntryType]
    start: int
    end: int
    equals: int
    """The offset behind the `=`."""
    note: str = ""
    pieces: Sequence[Piece] = ()

    def piece(self, name: str) -> Piece | None:
        """The piece of this name."""
        return next((piece for piece in self.pieces if piece.name == name), None)


@dataclass(frozen=True, slots=True)
class Resource:
    """All of a file. `needed` are the messages that others refer to."""

    text: str
    entries: Sequence[Entry] = ()
    needed: frozenset[str] = field(default_factory=frozenset)

    def units(self) -> Iterator[tuple[Entry, Unit]]:
        """Every text with its entry, in file order."""
        for entry in self.entries:
            for piece in entry.pieces:
                for unit in piece.units:
                    yield entry, unit


def parse(text: str) -> Resource:
    """Read a file. Raises `DocumentError` for junk, a name that stands twice, and too deep nesting."""
    try:
        body = FluentParser(with_spans=True).parse(text).body
        return _Reading(text).resource(body)
    except RecursionError:
        raise DocumentError("this Fluent is nested too deeply", line=1) from None


class _Reading:
    """One text under the reader."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._names: dict[str, int] = {}
        self._group = self._resource = ""

    def resource(self, body: Sequence[ast.EntryType]) -> Resource:
        entries: list[Entry] = []
        end = 0
        for node in body:
            if isinstance(node, ast.Junk):
                found = node.annotations[0] if node.annotations else None
                at = min(found.span.start if found and found.span else span_of(node)[0], len(self._text))
                told = found.message if found else "cannot be read"
                raise self._refused(f"this is not Fluent: {told}", at)
            entries.append(self._entry(node, end))
            end = entries[-1].end
        needed = {
            node.id.name for entry in body for node in _walk(entry) if isinstance(node, ast.MessageReference)
        }
        return Resource(self._text, entries, frozenset(needed))

    def _entry(self, node: ast.EntryType, before: int) -> Entry:
        start, end = span_of(node)
        blank = _BLANK.match(self._text, before)
        start = before if blank and blank.end() >= start else start
        end = self._line_end(end)
        if isinstance(node, ast.Message | ast.Term):
            sign = "-" if isinstance(node, ast.Term) else ""
            name = self._named(f"{sign}{node.id.name}", span_of(node.id)[0])
            equals = self._text.index("=", span_of(node.id)[1]) + 1
            pieces = list(self._pieces(node, name, equals))
            return Entry(name, type(node), start, end, equals, self._note(node.comment), pieces)
        content = getattr(node, "content", "") or ""
        if isinstance(node, ast.GroupComment):
            self._group = content
        elif isinstance(node, ast.ResourceComment):
            self._resource = content
        count = self._names[f"#{content}"] = self._names.get(f"#{content}", 0) + 1
        return Entry(f"#{count} {content}", type(node), start, end, end)

    def _note(self, comment: ast.Comment | None) -> str:
        own = comment.content if comment else ""
        notes = [told.strip() for told in (own or "", self._group, self._resource)]
        return "\n".join(filter(None, notes))

    def _pieces(self, node: ast.Message | ast.Term, name: str, equals: int) -> Iterator[Piece]:
        if node.value:
            place = self._place(node.value, equals)
            yield Piece("", place, equals, place.end, list(self._units(name, place)))
        if isinstance(node, ast.Term):
            return
        for attribute in node.attributes:
            start, end = span_of(attribute)
            key = self._named(f"{name}.{attribute.id.name}", start)
            place = self._place(attribute.value, self._text.index("=", span_of(attribute.id)[1]) + 1)
            units = list(self._units(key, place))
            yield Piece(f".{attribute.id.name}", place, self._line_start(start), self._line_end(end), units)

    def _place(self, pattern: ast.Pattern, head: int) -> Place:
        text, end = self._text, span_of(pattern)[1]
        blank = _BLANK.match(text, head)
        first = blank.end() if blank else head
        block = "\n" in text[head:first]
        code = [span_of(element) for element in pattern.elements if isinstance(element, ast.Placeable)]
        outside = zip([head, *(stop for _, stop in code)], [*(start for start, _ in code), end], strict=True)
        leads = [found[1] for start, stop in outside for found in _CONTINUED.finditer(text, start, stop + 1)]
        if leads:
            indent = min(leads, key=len)
        else:
            line = text[self._line_start(head) : head]
            indent = line[: len(line) - len(line.lstrip(" *"))].replace("*", " ") + "    "
        start = self._line_start(first) + len(indent) if block else first
        return Place(head, start, end, block, indent, pattern.elements)

    def _units(self, key: str, place: Place) -> Iterator[Unit]:
        """The texts of a pattern, in file order."""
        selects = [
            (element, element.expression)
            for element in place.elements
            if isinstance(element, ast.Placeable) and isinstance(element.expression, ast.SelectExpression)
        ]
        if not selects:
            yield Unit(key, place, shown(self._text, place.elements, block=place.block))
        elif len(selects) == 1 and _chooses_by_number(selects[0][1]):
            yield self._plural(key, place, *selects[0])
        else:
            yield from self._choices(key, place, selects)

    def _plural(self, key: str, place: Place, element: ast.Placeable, select: ast.SelectExpression) -> Unit:
        index = list(place.elements).index(element)
        before, behind = place.elements[:index], place.elements[index + 1 :]
        forms = list(self._forms(select, key))
        texts = [
            shown(
                self._text,
                [*before, *form.place.elements, *behind],
                block=place.block if before else form.place.block,
            )
            for form in forms
        ]
        other = texts[[form.default for form in forms].index(True)]
        return Unit(key, place, other, forms, texts, span_of(element))

    def _choices(
        self, key: str, place: Place, selects: Sequence[tuple[ast.Placeable, ast.SelectExpression]]
    ) -> Iterator[Unit]:
        markers: list[tuple[int, int, str]] = []
        for element, select in selects:
            start, end = span_of(element)
            first, last = span_of(select.selector)
            markers.append((start, end, f"{{ {one_line(self._text[first:last])} -> … }}"))
        told = {start: marker for start, _, marker in markers}
        text = shown(self._text, place.elements, block=place.block, markers=told)
        if any(isinstance(element, ast.TextElement) and element.value.strip() for element in place.elements):
            yield Unit(key, place, text, markers=markers)
        for number, (_, select) in enumerate(selects, 1):
            path = key if number == 1 else f"{key}/#{number}"
            for form in self._forms(select, path):
                yield from self._units(f"{path}/{form.name}", form.place)

    def _forms(self, select: ast.SelectExpression, path: str) -> Iterator[Form]:
        for variant in select.variants:
            start, end = span_of(variant)
            name = variant.key.name if isinstance(variant.key, ast.Identifier) else variant.key.value
            self._named(f"{path}/{name}", start)
            place = self._place(variant.value, self._text.index("]", span_of(variant.key)[1]) + 1)
            yield Form(name, place, self._line_start(start), self._line_end(end), variant.default)

    def _named(self, name: str, at: int) -> str:
        if name in self._names:
            raise self._refused(f"{name!r} stands here a second time", at)
        self._names[name] = at
        return name

    def _refused(self, told: str, at: int) -> DocumentError:
        return DocumentError(told, line_at(self._text, at))

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        if self._text.startswith("\n", at - 1) and at:
            return at
        return self._text.find("\n", at) + 1 or len(self._text)


def _chooses_by_number(select: ast.SelectExpression) -> bool:
    """Whether a select is a cardinal plural: by a number, among CLDR's categories and exact numbers."""
    names = [v.key.name if isinstance(v.key, ast.Identifier) else v.key.value for v in select.variants]
    default = next((name for name, v in zip(names, select.variants, strict=True) if v.default), "")
    nested = any(isinstance(node, ast.SelectExpression) for v in select.variants for node in _walk(v.value))
    selector = select.selector
    if isinstance(selector, ast.FunctionReference):
        arguments = selector.arguments.named
        counts = selector.id.name == "NUMBER" and all(one.name.name != "type" for one in arguments)
    else:
        counts = isinstance(selector, ast.VariableReference)
    fits = all(name in CATEGORIES or _EXACT.fullmatch(name) for name in names)
    return counts and fits and default == "other" and not nested


def _walk(node: ast.BaseNode) -> Iterator[ast.BaseNode]:
    stack: list[object] = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack.extend(one)
        elif isinstance(one, ast.BaseNode):
            yield one
            stack.extend(value for name, value in vars(one).items() if name != "span")
