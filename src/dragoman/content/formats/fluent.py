"""Fluent (FTL): messages with their attributes, and terms.

Promises that only texts change; that placeables stay as they are written; that what would be read as code at
the beginning of a line is quoted (`{ "[" }`), and nothing else is; that a plural has the variants of its
locale. The key of a value is its message's name, of an attribute `message.attribute`, of a variant
`message/variant`. Attributes of terms are grammar and stay. Terms, and messages that others refer to, are
never taken out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from dragoman.content.catalogues.fluent_growth import Filling, Growth, value_of
from dragoman.content.lexers.fluent_places import Resource, Unit, parse
from dragoman.content.spans import splice
from dragoman.model.documents import Block, Document, Role, Span, Text, Writing

_ENTRY = re.compile(r"(-?[A-Za-z][\w-]*) *=", re.ASCII)
_LINE_END = re.compile(r"\r?\n")
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"\{\s*\"([^\"\\{}]*)\"\s*\}")


class FluentResource:
    """The format `fluent`."""

    name = "fluent"
    extensions: tuple[str, ...] = (".ftl",)
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """By extension: nothing else has it."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """Fluent is UTF-8."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Every value, attribute and variant, in file order."""
        resource = parse(text)
        blocks = tuple(_block(unit, entry.note, role) for entry, unit in resource.units())
        return Document(self.name, text, blocks, role, locale, extras={"resource": resource})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Replace texts; then insert what a target lacks, or take out what has no translation."""
        resource, fresh = _resource(base), base.role == "source"
        bare = {key for key, value in _values(base).items() if key not in translations and _has_words(value)}
        growth = Growth(_resource(source), resource, translations)
        edits = [] if fresh else list(growth.edits())
        filling = Filling(resource, translations, bare if fresh else (), growth.exchanged)
        edits += filling.edits()
        edits.sort(key=lambda edit: (edit.span.start, edit.span.end))
        written = filling.written | growth.written
        removed = (*filling.removed, *sorted(growth.exchanged - written.keys()))
        known = {block.key for block in source.blocks}.union(removed)
        lost = tuple(block.key for block in base.blocks if block.key not in known)
        return Writing(splice(base.text, edits), tuple(edits), lost, written, removed)

    def second_opinion(self, before: Document, after: Document) -> str:
        """A reader of lines must find the same entries, untouched ones to the letter, and all their words."""
        earlier, later = _by_lines(before.text), _by_lines(after.text)
        if later.keys() != {entry.name for entry in _resource(after).entries if entry.name[0] != "#"}:
            return "a reader of lines finds other messages"
        was, now = _by_entry(before), _by_entry(after)
        for name, lines in later.items():
            if name in earlier and was.get(name) == now.get(name) and earlier[name] != lines:
                return f"the message {name!r} would change, and none of its texts does"
            plain = _plain(lines)
            for key, value in now.get(name, {}).items():
                texts = [value] if isinstance(value, str) else value.values()
                if not all(word in plain for text in texts for word in _WORD.findall(_plain(text))):
                    return f"a reader of lines does not find the words of {key!r}"
        return ""


def _block(unit: Unit, note: str, role: Role) -> Block:
    value = value_of(unit)
    end = unit.markers[0][0] if unit.markers else unit.place.end
    places = [form.place for form in unit.forms]
    bare = not all(map(str.strip, unit.texts or [unit.text]))
    return Block(
        key=unit.key,
        text=unit.text,
        spans=tuple(Span(place.start, place.end) for place in places) or (Span(unit.place.start, end),),
        plural=None if isinstance(value, str) else value,
        syntax="fluent",
        note=note,
        state="untranslated" if role == "target" and bare else "",
    )


def _by_lines(text: str) -> dict[str, str]:
    """Each message with its lines, comments and blank lines left out: entries alone begin at the margin."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in _LINE_END.split(text):
        if entry := _ENTRY.match(line):
            lines = found.setdefault(entry[1], [])
        if line.strip() and not line.startswith("#"):
            lines.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def _by_entry(document: Document) -> dict[str, dict[str, Text]]:
    found: dict[str, dict[str, Text]] = {}
    for key, value in _values(document).items():
        found.setdefault(key.partition("/")[0].partition(".")[0], {})[key] = value
    return found


def _plain(text: str) -> str:
    """A text whose quoted letters are without their quotes."""
    return _QUOTED.sub(r"\1", text)


def _values(document: Document) -> dict[str, Text]:
    return {block.key: block.value for block in document.blocks}


def _has_words(value: Text) -> bool:
    forms = [value] if isinstance(value, str) else value.values()
    return any(any(map(str.isalpha, form)) for form in forms)


def _resource(document: Document) -> Resource:
    return cast(Resource, document.extras["resource"])
