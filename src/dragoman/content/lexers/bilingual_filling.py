"""Filling bilingual XML: targets beside their sources, what tells their state and language, units that lack.

Promises that only translations change, and what must follow them: the attributes that say how far they are,
and in which language. What stands in a file that declares another language is blanked; what the target lacks
is copied from the source, behind the neighbour that precedes it there. Knows no dialect.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, takewhile

from dragoman.content.lexers.bilingual import (
    PLAIN,
    Dialect,
    Frame,
    Group,
    Mark,
    Pair,
    Spell,
    Unit,
    catalogue_of,
    forms_of,
    standing,
    target_tags,
)
from dragoman.content.lexers.xml_edits import (
    declares,
    fill,
    has_markup,
    lead_of,
    put_attribute,
    read_inner,
    spelled,
)
from dragoman.content.lexers.xml_places import Element
from dragoman.content.spans import newline_of, splice
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Document, Edit, Span, Text, Writing

_UNFINISHED = ("untranslated", "fuzzy")

_Said = tuple[Mark, str, str | None]
"""A mark, the key that it changes for, and what it says then."""


def write(
    base: Document,
    source: Document,
    translations: Mapping[str, Text],
    locale: str,
    dialect: Dialect = PLAIN,
) -> Writing:
    """Fill translations into a base; in a target also insert the units that it lacks."""
    filling = _Filling(base, source, translations, locale, dialect)
    edits = filling.all_edits()
    if base.role == "target":
        growth = _Growth(filling, _Filling(source, source, translations, locale, dialect))
        edits += growth.edits()
    edits.sort(key=_place)
    known = {block.key for block in source.blocks}.union(filling.removed)
    lost = tuple(block.key for block in base.blocks if block.key not in known)
    return Writing(splice(base.text, edits), tuple(edits), lost, filling.written, tuple(filling.removed))


class _Filling:
    """The edits of one write inside the units that stand."""

    def __init__(
        self,
        base: Document,
        source: Document,
        translations: Mapping[str, Text],
        locale: str,
        dialect: Dialect,
    ) -> None:
        self.text, self.role = base.text, base.role
        self.found = catalogue_of(base)
        self.newline = newline_of(base.text)
        self._values, self._locale, self._dialect = translations, locale, dialect
        self._source = source
        self._fresh = {unit.key: unit for unit in catalogue_of(source).units}
        self.written: dict[str, Text] = {}
        self.removed: list[str] = []

    def all_edits(self) -> list[Edit]:
        return [*self._declared(), *(edit for unit in self.found.units for edit in self.unit_edits(unit))]

    def has_values(self, unit: Unit) -> bool:
        return any(pair.key in self._values for pair in unit.pairs)

    def same_shape(self, unit: Unit) -> bool:
        """Whether a unit has the segments that the source has for it, or the source does not know it."""
        fresh = self._fresh.get(unit.key)
        return fresh is None or (
            [pair.key for pair in fresh.pairs] == [pair.key for pair in unit.pairs]
            and len(fresh.sources) == len(unit.sources)
        )

    def after(self, unit: Unit) -> dict[str, Text]:
        """What a unit reads as when its edits are made."""
        return {pair.key: self._after(unit, pair) for pair in unit.pairs}

    def _after(self, unit: Unit, pair: Pair) -> Text:
        if (value := self._values.get(pair.key)) is not None:
            return self._dialect.asked(pair, value, self._locale)
        if self._blanks(unit):
            return self._dialect.nothing(pair, self._locale)
        return self._standing(unit, pair)

    def _standing(self, unit: Unit, pair: Pair) -> Text:
        markup = self._markup(unit, pair)
        return standing(self._dialect, self.text, unit, pair, markup, self._locale)

    def _declared(self) -> Iterator[Edit]:
        """The target language, wherever another is declared or, for a translation of ours, none."""
        ours = {unit.group for unit in self.found.units if self.has_values(unit)}
        for place in self.found.declarations:
            said = place.element.attributes.get(place.name, "").strip()
            needed = bool(said) or self.role == "source" or bool(ours & place.groups)
            if needed and not (said and declares(said, self._locale)):
                value = self._locale.replace("-", place.separator)
                yield from put_attribute(self.text, place.element, place.name, value, behind=place.behind)

    def _blanks(self, unit: Unit) -> bool:
        """Whether what stands in a unit is no translation into our locale."""
        if unit.language:
            return not declares(unit.language, self._locale)
        return self.role == "source"

    def unit_edits(self, unit: Unit) -> Iterator[Edit]:
        if not self.same_shape(unit) and self.has_values(self._fresh[unit.key]):
            return  # it is replaced as a whole
        blanks, asked = self._blanks(unit), self.has_values(unit)
        if asked:
            yield from self._followed(unit)
        done: list[_Said] = []
        bare: list[_Said] = []
        for pair in unit.pairs:
            marks = [*pair.marks, *self._language(unit.holder or pair.target)]
            stands = self._standing(unit, pair)
            if pair.key in self._values:
                value = self._after(unit, pair)
                self.written[pair.key] = value
                if blanks or value != stands or pair.state in _UNFINISHED:
                    done += ((mark, pair.key, mark.done) for mark in marks)
                if not unit.frame:
                    yield from self._filled(unit, pair, value, None if blanks else stands)
            elif blanks and (pair.target or unit.frame):
                if any(forms_of(stands)):
                    self.written[pair.key] = self._dialect.nothing(pair, self._locale)
                bare += ((mark, pair.key, mark.bare) for mark in marks)
                if pair.target and not unit.frame:
                    yield from self._dialect.blanked(self.text, pair, pair.target)
        if unit.frame and (asked or blanks):
            yield from self._framed(unit, unit.frame)
        yield from self._marked([*done, *bare])

    def _language(self, target: Element | None) -> Iterator[Mark]:
        """A target may say its own language."""
        said = target.attributes.get("xml:lang", "") if target else ""
        if target and said and not declares(said, self._locale):
            yield Mark(target, "xml:lang", self._locale, self._locale)

    def _marked(self, marks: Sequence[_Said]) -> Iterator[Edit]:
        """Each attribute once: what is done speaks for a unit that is done in part."""
        seen: set[tuple[int, str]] = set()
        for mark, key, value in marks:
            if (mark.element.whole.start, mark.name) not in seen:
                seen.add((mark.element.whole.start, mark.name))
                yield from put_attribute(self.text, mark.element, mark.name, value, key)

    def _markup(self, unit: Unit, pair: Pair) -> bool:
        """How a unit's texts are written: as the source has it, which the unit follows."""
        fresh = self._fresh.get(unit.key)
        if fresh and self.has_values(unit) and self.same_shape(unit):
            twin = next(other for other in fresh.pairs if other.key == pair.key)
            return has_markup(self._source.text, twin.source)
        return has_markup(self.text, pair.source)

    def _followed(self, unit: Unit) -> Iterator[Edit]:
        """The source of a unit that gets a translation is what that was translated from."""
        fresh = self._fresh.get(unit.key)
        if fresh is None or self.role == "source":
            return
        for old, new in zip(unit.sources, fresh.sources, strict=True):
            raw = read_inner(self._source.text, new, markup=True)
            if raw != read_inner(self.text, old, markup=True):
                key = unit.pairs[0].key
                yield fill(self.text, old, raw.replace("\n", self.newline), "metadata", key)

    def _filled(self, unit: Unit, pair: Pair, value: Text, stands: Text | None) -> Iterator[Edit]:
        if value == stands and (pair.target or not value):
            return
        spell = self._spelling(unit, pair)
        if pair.target:
            yield from self._dialect.filled(self.text, pair, pair.target, value, spell)
        else:
            lead = lead_of(self.text, pair.behind.whole.start)
            raw = self._dialect.fresh(self.text, pair, value, lead, self._locale, spell)
            at = pair.behind.whole.end
            yield Edit(Span(at, at), lead + raw, "insertion", pair.key)

    def _spelling(self, unit: Unit, pair: Pair) -> Spell:
        """Texts as the standing translation is written, or where none is, as its source."""
        markup, like = self._markup(unit, pair), self._raw(pair.target) if pair.target else ""
        like = like if like.strip() else self._raw(pair.source)
        return lambda value: spelled(value, markup, like, self.newline)

    def _framed(self, unit: Unit, frame: Frame) -> Iterator[Edit]:
        """A target with the shape of its segmented source."""
        key = next((pair.key for pair in unit.pairs if pair.key in self._values), unit.pairs[0].key)
        raw = ""
        if self.has_values(unit):
            after = self.after(unit)
            inside = [
                fill(self.text, pair.source, self._spelling(unit, pair)(str(after[pair.key])), "value", "")
                for pair in unit.pairs
            ]
            start, end = frame.source.inner.start, frame.source.inner.end
            raw = splice(self.text[:end], inside)[start:]
        if frame.target is None:
            if raw:
                opening, closing = target_tags(frame.source, self._locale)
                lead, at = lead_of(self.text, frame.source.whole.start), frame.source.whole.end
                yield Edit(Span(at, at), f"{lead}{opening}{raw}{closing}", "insertion", key)
        elif raw != self._raw(frame.target):
            yield fill(self.text, frame.target, raw, "insertion", key)

    def _raw(self, element: Element) -> str:
        return self.text[element.inner.start : element.inner.end]


class _Growth:
    """Units that the source has and the target lacks or has in another shape, copied with translations."""

    def __init__(self, base: _Filling, source: _Filling) -> None:
        self._base, self._source = base, source
        self._standing = {unit.key: unit for unit in base.found.units}

    def edits(self) -> list[Edit]:
        return [*self._replaced(), *self._new()]

    @cached_property
    def _edits(self) -> list[Edit]:
        """What makes the source its own target."""
        return sorted(self._source.all_edits(), key=_place)

    def _copy(self, element: Element) -> str:
        """An element of the source as the source's own target would have it."""
        start, end = element.whole.start, element.whole.end
        first = bisect_left(self._edits, start, key=lambda edit: edit.span.start)
        within = [
            edit._replace(span=Span(edit.span.start - start, edit.span.end - start))
            for edit in takewhile(lambda edit: edit.span.end <= end, islice(self._edits, first, None))
        ]
        piece = splice(self._source.text[start:end], within)
        return piece.replace("\r\n", "\n").replace("\n", self._base.newline)

    def _replaced(self) -> Iterator[Edit]:
        for unit in self._source.found.units:
            old = self._standing.get(unit.key)
            if old and self._source.has_values(unit) and not self._base.same_shape(old):
                after = self._source.after(unit)
                self._base.written.update(after)
                self._base.removed += [pair.key for pair in old.pairs if pair.key not in after]
                yield Edit(old.element.whole, self._copy(unit.element), "value", unit.pairs[0].key)

    def _new(self) -> Iterator[Edit]:
        """Each behind the unit, or the group, that precedes it in the source."""
        group_before: Element | None = None
        for name, group in self._source.found.groups.items():
            units = [unit for unit in self._source.found.units if unit.group == name]
            if here := self._base.found.groups.get(name):
                group_before = here.element
                yield from self._into(here, units)
            elif any(map(self._source.has_values, units)):
                for unit in units:
                    self._base.written.update(self._source.after(unit))
                yield self._behind(group_before, None, self._copy(group.element), units[0].pairs[0].key)

    def _into(self, group: Group, units: Sequence[Unit]) -> Iterator[Edit]:
        before: Element | None = None
        for unit in units:
            if old := self._standing.get(unit.key):
                before = old.element
            elif self._source.has_values(unit):
                self._base.written.update(self._source.after(unit))
                yield self._behind(before, group, self._copy(unit.element), unit.pairs[0].key)

    def _behind(self, before: Element | None, group: Group | None, piece: str, key: str) -> Edit:
        text = self._base.text
        if before:
            at = before.whole.end
            return Edit(Span(at, at), lead_of(text, before.whole.start) + piece, "insertion", key)
        if group is None:
            first = next(iter(self._base.found.groups.values()), None)
            if first is None:
                raise DragomanError(f"the target has no place for {key!r}", "verify_failed")
            sibling = first.element
        else:
            units = (unit.element for unit in self._base.found.units)
            inside = next((element for element in units if _within(element, group.body)), None)
            if inside is None:
                return self._alone(group.body, piece, key)
            sibling = inside
        at = sibling.whole.start
        return Edit(Span(at, at), piece + lead_of(text, at), "insertion", key)

    def _alone(self, body: Element, piece: str, key: str) -> Edit:
        """Into an element that has no unit yet, at its end."""
        text, lead = self._base.text, lead_of(self._base.text, body.whole.start)
        inner = text[body.inner.start : body.inner.end].rstrip()
        unit = f"{lead}  {piece}" if lead else piece
        if body.closed:
            return fill(text, body, f"{unit}{lead}", "insertion", key)
        at = body.inner.start + len(inner)
        return Edit(Span(at, body.inner.end), f"{unit}{lead}", "insertion", key)


def _place(edit: Edit) -> tuple[int, int]:
    return edit.span.start, edit.span.end


def _within(element: Element, body: Element) -> bool:
    return body.whole.start <= element.whole.start and element.whole.end <= body.whole.end
