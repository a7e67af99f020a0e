"""JSON written in place: texts replaced, taken out with their commas, and put where the source has them.

Promises that a new member stands behind the one that precedes it in the source, looks like its neighbours,
and that escapes keep the file's habit. Which strings are texts is the dialect's to say (`json_units`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from dragoman.content.catalogues.json_units import Shape, Tree, joined, prefixes, strings
from dragoman.content.lexers.json_tokens import Member, Spelling, Value, spelling_of
from dragoman.content.spans import by_place, newline_of
from dragoman.model.documents import Block, Edit, Span


class Trees(NamedTuple):
    """The file that is written to, its source, and which strings of both are texts."""

    base: Tree
    source: Tree
    shape: Shape


class Put(NamedTuple):
    """The edits of a write in file order, the texts that a reader must then find, and the keys that went."""

    edits: tuple[Edit, ...]
    written: Mapping[str, str]
    removed: tuple[str, ...]


class Standing(NamedTuple):
    """A text of a file, and where it stands: in more than one place where its name stands twice."""

    key: str
    text: str
    spans: tuple[Span, ...]


def put(
    text: str,
    places: Iterable[Standing | Block],
    values: Mapping[str, str],
    trees: Callable[[], Trees],
    doomed: Collection[str] = (),
) -> Put:
    """Write `values` into `text`, by key: in place where it has them, else where the source has them.

    `doomed` are the texts that are to go; with them goes what would be left empty. The `trees` are asked for
    where that, or a new text, needs them.
    """
    spelling = spelling_of(text)
    edits: list[Edit] = []
    written: dict[str, str] = {}
    for place in places:
        key = place.key
        if (value := values.get(key)) is not None:
            written[key] = value
            if value != place.text:
                raw = spelling.inner(value)
                for span in place.spans:
                    edits.append(Edit(span, raw, "value", key))
    removed: list[str] = []
    if doomed or len(written) < len(values):
        base, source, shape = trees()
        removals = list(_removals(base.root, shape, None, doomed))
        fresh = {key: value for key, value in values.items() if key not in written}
        growth = _Growth(base, source, fresh, shape, spelling, {edit.key for edit, _ in removals})
        edits += [*(edit for edit, _ in removals), *growth.edits()]
        written |= growth.written
        removed = [*(key for _, keys in removals for key in keys), *growth.replaced]
    edits.sort(key=by_place)
    return Put(tuple(edits), written, tuple(dict.fromkeys(removed)))


def _removals(
    value: Value, shape: Shape, path: str | None, doomed: Collection[str]
) -> Iterator[tuple[Edit, tuple[str, ...]]]:
    """Edits that take texts out of objects, commas and all, with the keys that go.

    An array keeps its untranslated strings as they are, since its positions mean something.
    """
    kept = False
    for index, member in enumerate(value.members):
        key = joined(path, member.name)
        gone = shape.fate(member, path, doomed) if value.kind == "object" else None
        if gone is None:
            kept = True
            if not (shape.entry and path is None):
                yield from _removals(member.value, shape, key, doomed)
            continue
        last = index + 1 == len(value.members)
        start = value.members[index - 1].value.end if kept else member.start
        end = member.value.end if kept or last else value.members[index + 1].start
        yield Edit(Span(start, end), "", "removal", key), gone


class _Growth:
    """Insertions: the texts that a file lacks, each behind the source's preceding member."""

    def __init__(
        self,
        base: Tree,
        source: Tree,
        values: Mapping[str, str],
        shape: Shape,
        spelling: Spelling,
        gone: Collection[str],
    ) -> None:
        self._base, self._source = base, source
        self._shape, self._spelling = shape, spelling
        self._values, self._gone = values, gone
        self._wanted = prefixes(values) | set(shape.followers(values, base.root))
        self._texts = prefixes(unit.key for unit in shape.units(source.root))
        self._newline = newline_of(base.text)
        self._in_lines = "\n" in source.text.strip()
        self._colon, self._unit = ": ", "  "
        for first in base.root.members[:1]:
            self._colon = base.text[first.key_end : first.value.start] or ": "
            self._unit = self._lead_of(first).lstrip("\r\n") or "  "
        self.written: dict[str, str] = {}
        self.replaced: list[str] = []

    def edits(self) -> list[Edit]:
        """All insertions, in the order in which they stand at one place."""
        if not self._values:
            return []
        return list(self._grow(self._source.root, self._base.root, None, self._newline))

    def _grow(self, source: Value, base: Value, path: str | None, outer: str) -> Iterator[Edit]:
        """Into one object or array whose own line begins with `outer`."""
        here = {member.name: member for member in base.members}
        lead = f"{outer}{self._unit}" if "\n" in outer else ""
        if base.members:
            lead = self._lead_of(base.members[0])
        fresh: list[tuple[Member | None, Member]] = []
        neighbour: Member | None = None
        for index, member in enumerate(source.members):
            key = joined(path, member.name)
            twin = here.get(member.name)
            if twin is None:
                rest = source.members[index:] if source.kind == "array" else (member,)
                if any(joined(path, other.name) in self._wanted for other in rest):
                    fresh.append((neighbour, member))
                continue
            if key not in self._gone:
                neighbour = twin
            if twin.value.kind == member.value.kind:
                yield from self._grow(member.value, twin.value, key, lead)
            elif key in self._wanted:
                self.replaced += [unit.key for unit in strings(twin.value, key)]
                self.replaced += [key] if twin.value.kind == "string" else []
                text = self._rendered(member.value, key, lead, inside_array=False)
                yield Edit(Span(twin.value.start, twin.value.end), text, "insertion", key)
        yield from self._inserted(fresh, base, path, lead, outer)

    def _inserted(
        self, fresh: list[tuple[Member | None, Member]], base: Value, path: str | None, lead: str, outer: str
    ) -> Iterator[Edit]:
        """New members of one object or array, each behind its neighbour, or before the first."""
        between = lead
        if "\n" not in lead and base.members:
            between = self._lead_of(base.members[1]) if len(base.members) > 1 else self._colon[1:]
        array = base.kind == "array"
        for index, (neighbour, member) in enumerate(fresh):
            key = joined(path, member.name)
            name = "" if array else self._spelling.quoted(member.name) + self._colon
            item = name + self._rendered(member.value, key, lead, inside_array=array)
            if neighbour:
                span, text = Span(neighbour.value.end, neighbour.value.end), f",{between}{item}"
            elif base.members:
                span, text = Span(base.members[0].start, base.members[0].start), f"{item},{between}"
            else:
                span = Span(base.end - 1 if index else base.start + 1, base.end - 1)
                text = f"{',' if index else ''}{lead}{item}{outer if index + 1 == len(fresh) else ''}"
            yield Edit(span, text, "insertion", key)

    def _rendered(self, value: Value, key: str, lead: str, inside_array: bool) -> str:
        """A value of the source with its translations, on a line that begins with `lead`."""
        if value.kind == "string":
            if key in self._texts:
                self.written[key] = self._values.get(key, value.text)
            return self._spelling.quoted(self._values.get(key, value.text))
        whole = self._source.text[value.start : value.end]
        on_one_line = "\n" not in whole and self._in_lines
        if value.kind == "other" or (on_one_line and key not in self._texts):
            return whole
        array = value.kind == "array"
        inner = f"{lead}{self._unit}"
        items = [
            ("" if array else self._spelling.quoted(member.name) + self._colon)
            + self._rendered(member.value, inner_key, inner, array)
            for member in value.members
            for inner_key in (joined(key, member.name),)
            if array or inner_key in self._wanted or inner_key not in self._texts
        ]
        opening, closing = "[]" if array else "{}"
        if items and on_one_line:
            opening = self._source.text[value.start : value.members[0].start]
            closing = self._source.text[value.members[-1].value.end : value.end]
        if not items or on_one_line or "\n" not in lead:
            return opening + ", ".join(items) + closing
        return opening + inner + f",{inner}".join(items) + lead + closing

    def _lead_of(self, member: Member) -> str:
        """The white space before a member, from the last line end on."""
        text, at = self._base.text, member.start
        while text[at - 1] in " \t\r\n":
            at -= 1
        lead = text[at : member.start]
        return self._newline + lead.rpartition("\n")[2] if "\n" in lead else lead
