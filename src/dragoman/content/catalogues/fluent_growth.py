"""Edits over Fluent: texts in place, variants of a plural, entries that go, and what a target lacks.

Promises that a new entry is the source's own lines behind the entry that precedes it there, that a value or
attribute which goes leaves the rest of its message, and that terms and messages which others refer to stay.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fluent.syntax import ast

from dragoman.content.lexers.fluent_places import CATEGORIES, Entry, Form, Piece, Place, Resource, Unit
from dragoman.content.lexers.fluent_spelling import blank_ends, spelled
from dragoman.content.spans import newline_of
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Edit, EditKind, Span, Text

_LINE_END = re.compile(r"\r\n|\n")


def named(forms: Mapping[str, str]) -> dict[str, str]:
    """Forms by the names of variants as a block has them: `[0]` is `=0`."""
    return {name if name in CATEGORIES else f"={name}": text for name, text in forms.items()}


@dataclass(slots=True)
class Filling:
    """Values put into one file; what is doomed goes where it can."""

    resource: Resource
    values: Mapping[str, Text]
    doomed: Collection[str] = ()
    passed: Collection[str] = ()
    """Texts that are left alone."""
    written: dict[str, Text] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)

    def edits(self) -> Iterator[Edit]:
        """All edits of the file."""
        for entry in self.resource.entries:
            gone = [piece for piece in entry.pieces if self._goes(entry, piece)]
            if gone and len(gone) == len(entry.pieces):
                self.removed += [unit.key for piece in gone for unit in piece.units]
                yield Edit(Span(entry.start, entry.end), "", "removal", entry.name)
            else:
                yield from self.entry_edits(entry)

    def entry_edits(self, entry: Entry) -> Iterator[Edit]:
        """The edits of an entry that stays."""
        for piece in entry.pieces:
            if self._goes(entry, piece):
                self.removed += [unit.key for unit in piece.units]
                yield Edit(Span(piece.start, piece.end), "", "removal", piece.units[0].key)
            else:
                yield from self.piece_edits(piece)

    def piece_edits(self, piece: Piece) -> Iterator[Edit]:
        """The edits of a value or attribute that stays."""
        for unit in piece.units:
            if unit.key in self.values and unit.key not in self.passed:
                yield from self._unit(unit, self.values[unit.key])

    def _goes(self, entry: Entry, piece: Piece) -> bool:
        if entry.kind is not ast.Message or entry.name in self.resource.needed:
            return False
        return bool(piece.units) and all(unit.key in self.doomed for unit in piece.units)

    def _unit(self, unit: Unit, value: Text) -> Iterator[Edit]:
        if unit.forms:
            yield from self._plural(unit, value)
            return
        text = value if isinstance(value, str) else _on_disk(value)["other"]
        self.written[unit.key] = text
        if text == unit.text:
            return
        markers = [marker for _, _, marker in unit.markers]
        parts = self._spelled(unit.place, text, markers), ""
        at = unit.place.start
        for start, end, marker in unit.markers:
            head, found, rest = parts[0].partition(marker)
            if not found:
                raise DragomanError(f"the choice {marker!r} of {unit.key!r} is lost", "verify_failed")
            yield Edit(Span(at, start), head, "value", unit.key)
            parts, at = (rest, ""), end
        yield Edit(Span(at, unit.place.end), parts[0], "value", unit.key)

    def _spelled(self, place: Place, text: str, known: Collection[str] = ()) -> str:
        return spelled(
            text,
            block=place.block,
            indent=place.indent,
            newline=newline_of(self.resource.text),
            ends=blank_ends(place.elements),
            known=known,
        )

    def _plural(self, unit: Unit, value: Text) -> Iterator[Edit]:
        """Variants replaced, those without a text taken out, new ones put in CLDR's order.

        Where anything changes, the sentence's text around the select goes into its variants.
        """
        standing = dict(zip([form.name for form in unit.forms], unit.texts, strict=True))
        wanted = dict.fromkeys(standing, value) if isinstance(value, str) else _on_disk(value)
        self.written[unit.key] = named(wanted)
        if wanted == standing:
            return
        around = [Span(unit.place.start, unit.chosen[0]), Span(unit.chosen[1], unit.place.end)]
        yield from (Edit(span, "", "plural", unit.key) for span in around if span.start < span.end)
        moved = any(span.start < span.end for span in around)
        for form in unit.forms:
            if form.name not in wanted:
                yield Edit(Span(form.start, form.end), "", "plural", unit.key)
            elif moved or wanted[form.name] != standing[form.name]:
                raw = self._spelled(form.place, wanted[form.name])
                yield Edit(Span(form.place.start, form.place.end), raw, "value", unit.key)
        kept = [form for form in unit.forms if form.name in wanted]
        for name, text in wanted.items():
            if name not in standing:
                yield self._variant(unit, kept, name, text)

    def _variant(self, unit: Unit, kept: Sequence[Form], name: str, text: str) -> Edit:
        """A new variant before the next one, and like its neighbours."""
        whole, newline = self.resource.text, newline_of(self.resource.text)
        behind = min(
            (form for form in kept if _rank(form.name) > _rank(name)), key=lambda one: _rank(one.name)
        )
        like = next((form for form in kept if not form.default), behind)
        lead = whole[like.start : whole.index("[", like.start)].replace("*", " ")
        gap = whole[like.place.head : like.place.start]
        raw = spelled(text, block=False, indent=f"{lead}    ", newline=newline)
        line = f"{lead}[{name}]{' ' if like.place.block else gap}{raw}{newline}"
        return Edit(Span(behind.start, behind.start), line, "plural", unit.key)


class Growth:
    """What a source has and a target lacks, put where the source has it."""

    def __init__(self, source: Resource, base: Resource, values: Mapping[str, Text]) -> None:
        self._source, self._base = source, base
        self._values = values
        self._standing = {unit.key: unit for _, unit in base.units()}
        self._newline = newline_of(base.text)
        self._bare = {unit.key for _, unit in source.units() if unit.key not in values}
        self.written: dict[str, Text] = {}
        self.exchanged: set[str] = set()
        """Texts of the target whose pattern is written anew."""

    def edits(self) -> Iterator[Edit]:
        """All insertions; those at one place in their order."""
        here = {entry.name: entry for entry in self._base.entries}
        at = self._base.entries[0].start if self._base.entries else len(self._base.text)
        for entry in self._source.entries:
            twin = here.get(entry.name)
            if twin:
                at = twin.end
                yield from self._pieces(entry, twin)
            elif any(map(self._is_missing, entry.pieces)):
                filling = self._filling()
                text = self._filled(filling, Span(entry.start, entry.end), filling.entry_edits(entry))
                self._tell(filling, entry.pieces)
                yield self._lines(at, text, "insertion", entry.name)

    def _is_missing(self, piece: Piece) -> bool:
        """Whether a translation of a value or attribute has no place in the target."""
        return any(
            unit.key in self._values
            and (unit.key not in self._standing or (unit.forms and not self._standing[unit.key].forms))
            for unit in piece.units
        )

    def _pieces(self, entry: Entry, twin: Entry) -> Iterator[Edit]:
        at = max([piece.end for piece in twin.pieces[:1] if not piece.name], default=twin.equals)
        at = self._base.text.find("\n", at) + 1 or len(self._base.text)
        for piece in entry.pieces:
            there = twin.piece(piece.name)
            if self._is_missing(piece):
                yield self._piece(entry, piece, twin, there, at)
            if there and there.name:
                at = there.end

    def _piece(self, entry: Entry, piece: Piece, twin: Entry, there: Piece | None, at: int) -> Edit:
        """A value or attribute that the target lacks, or has in another shape."""
        filling = self._filling(there)
        key = piece.units[0].key
        if there is None and piece.name:
            text = self._filled(filling, Span(piece.start, piece.end), filling.piece_edits(piece))
            self._tell(filling, [piece])
            return self._lines(at, text, "insertion", key)
        head = piece.place.head
        text = self._filled(filling, Span(head, piece.place.end), filling.piece_edits(piece))
        self._tell(filling, [piece])
        if there is None:
            return Edit(Span(twin.equals, twin.equals), text, "insertion", key)
        self.exchanged |= {unit.key for unit in there.units}
        return Edit(Span(there.place.head, there.place.end), text, "insertion", key)

    def _filling(self, there: Piece | None = None) -> Filling:
        """Over the source; what the target has of a pattern already is kept where nothing else is asked."""
        kept = {unit.key: value_of(unit) for unit in there.units} if there else {}
        values = {**kept, **self._values} if kept else self._values
        return Filling(self._source, values, self._bare - kept.keys() if kept else self._bare)

    def _tell(self, filling: Filling, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            for unit in piece.units:
                if unit.key not in filling.removed:
                    self.written[unit.key] = filling.written.get(unit.key, value_of(unit))

    def _filled(self, filling: Filling, span: Span, edits: Iterator[Edit]) -> str:
        """A part of the source with its translations, in the target's line ends."""
        parts, at, text = [], span.start, filling.resource.text
        for edit in sorted(edits, key=lambda one: (one.span.start, one.span.end)):
            parts += [text[at : edit.span.start], edit.text]
            at = edit.span.end
        return _LINE_END.sub(lambda _: self._newline, "".join([*parts, text[at : span.end]]))

    def _lines(self, at: int, lines: str, kind: EditKind, key: str) -> Edit:
        """Whole lines at the start of a line, or behind a last line that has no end."""
        text = self._base.text
        if at == len(text) and text and not text.endswith("\n"):
            return Edit(Span(at, at), self._newline + lines.rstrip("\r\n"), kind, key)
        return Edit(Span(at, at), lines if lines.endswith("\n") else lines + self._newline, kind, key)


def value_of(unit: Unit) -> Text:
    """What a unit holds."""
    return named(dict(zip([form.name for form in unit.forms], unit.texts, strict=True))) or unit.text


def _on_disk(value: Mapping[str, str]) -> dict[str, str]:
    """Forms by the names of variants, in order."""
    found = {name.removeprefix("="): text for name, text in value.items()}
    found.setdefault("other", next(reversed(found.values())))
    return {name: found[name] for name in sorted(found, key=_rank)}


def _rank(name: str) -> tuple[int, int]:
    return (1, CATEGORIES.index(name)) if name in CATEGORIES else (0, int(name))
