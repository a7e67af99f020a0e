"""Qt Linguist's TS files: contexts of messages, with Qt's own plurals.

Promises that only translations change, with `type="unfinished"`, which a translation of ours takes away, and
the file's `language`. Plurals have the forms of Qt's table (`qt_plurals`), however many were prepared. A key
is the context with the message's id, or its source and comment. Obsolete and vanished messages stay as they
are. Of variants by length the longest is translated, and the shorter ones go with the text they were of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from lxml import etree

from dragoman.content.catalogues import qt_plurals
from dragoman.content.lexers import xml_places
from dragoman.content.lexers.bilingual import (
    Catalogue,
    Declaration,
    Dialect,
    Group,
    Mark,
    Pair,
    Spell,
    Unit,
    document,
)
from dragoman.content.lexers.bilingual_filling import write
from dragoman.content.lexers.bilingual_rereading import agrees, content, tree
from dragoman.content.lexers.xml_edits import Names, fill, has_markup, lead_of, read_inner, step
from dragoman.content.lexers.xml_places import Element
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import (
    Block,
    BlockState,
    Document,
    Edit,
    EditKind,
    Role,
    Span,
    Syntax,
    Text,
    Writing,
)

_ROOT = re.compile(r"\s*<(?:[?!][^>]*>\s*<)*TS[\s>]")
_GONE = ("obsolete", "vanished")
_BEFORE = (
    "source",
    "oldsource",
    "comment",
    "oldcomment",
    "extracomment",
    "translatorcomment",
)
"""What stands in front of a translation, in this order."""


class QtLinguist:
    """The format `qt`."""

    name = "qt"
    extensions: tuple[str, ...] = (".ts",)
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """By extension and root: TypeScript has the same ending."""
        return path.lower().endswith(self.extensions) and bool(_ROOT.match(head))

    def charset(self, data: bytes) -> str | None:
        """What the XML declaration says."""
        return xml_places.charset(data)

    def read(self, text: str, role: Role, locale: str) -> Document:
        """As source the sources, as target the translations, empty where the file is in another language."""
        root = xml_places.parse(text)
        if root.local != "TS":
            raise DocumentError(
                "this is no file of Qt Linguist: <TS> is wanted here", line_at(text, root.whole.start)
            )
        return document(self.name, text, _Locating(text, root).catalogue(), role, locale, _QT)

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Fill translations; in a target also insert the messages, and the contexts, that it lacks."""
        return write(base, source, translations, locale, _QT)

    def second_opinion(self, before: Document, after: Document) -> str:
        """What libxml2 reads must be our blocks, and obsolete messages must be as they were."""
        root = tree(after.text)
        messages = [one for one in root.iter("message") if not _is_gone(one)]
        if len(messages) != len(after.blocks):
            return f"libxml2 finds {len(messages)} messages, not {len(after.blocks)}"
        for message, block in zip(messages, after.blocks, strict=True):
            if not _agrees(message.find("translation"), block, after.locale):
                return f"libxml2 reads another text at {block.key!r}"
        if Counter(_obsolete(tree(before.text))) - Counter(_obsolete(root)):
            return "an obsolete message would change"
        return ""


class _Plurals(Dialect):
    """A message with `numerus` holds a form a `numerusform`; any text may hold variants by length."""

    syntax: Syntax | None = "printf"

    def original(self, text: str, pair: Pair, markup: bool) -> Text:
        source = super().original(text, pair, markup)
        return {"other": str(source)} if pair.plural else source

    def nothing(self, pair: Pair, locale: str) -> Text:
        return qt_plurals.rule(locale).plural([]) if pair.plural else ""

    def standing(self, text: str, pair: Pair, markup: bool, locale: str) -> Text:
        if pair.target is None:
            return self.nothing(pair, locale)
        if not pair.plural:
            return read_inner(text, _holder(pair.target), markup)
        forms = [read_inner(text, _holder(form), markup) for form in pair.target.each("numerusform")]
        return qt_plurals.rule(locale).plural(forms)

    def asked(self, pair: Pair, value: Text, locale: str) -> Text:
        if not pair.plural:
            return super().asked(pair, value, locale)
        rule = qt_plurals.rule(locale)
        return rule.plural(rule.forms({"other": value} if isinstance(value, str) else value))

    def filled(self, text: str, pair: Pair, target: Element, value: Text, spell: Spell) -> Iterator[Edit]:
        if isinstance(value, str):
            yield from _put(text, target, spell(value), pair.key)
            return
        raws, forms = [spell(form) for form in value.values()], list(target.each("numerusform"))
        if not forms:
            lead = lead_of(text, target.whole.start)
            yield fill(text, target, _numerus(raws, lead), "insertion", pair.key)
            return
        for form, raw in zip(forms, raws, strict=False):
            yield from _put(text, form, raw, pair.key)
        last = forms[-1].whole
        if more := raws[len(forms) :]:
            lead = lead_of(text, last.start)
            added = "".join(f"{lead}<numerusform>{raw}</numerusform>" for raw in more)
            yield Edit(Span(last.end, last.end), added, "plural", pair.key)
        elif len(raws) < len(forms):
            yield Edit(Span(forms[len(raws) - 1].whole.end, last.end), "", "plural", pair.key)

    def blanked(self, text: str, pair: Pair, target: Element) -> Iterator[Edit]:
        for place in list(target.each("numerusform")) if pair.plural else [target]:
            yield from _put(text, place, "", pair.key, "removal")

    def fresh(self, text: str, pair: Pair, value: Text, lead: str, locale: str, spell: Spell) -> str:
        raw = spell(value) if isinstance(value, str) else _numerus(map(spell, value.values()), lead)
        return f"<translation>{raw}</translation>"


_QT = _Plurals()


def _numerus(raws: Iterable[str], lead: str) -> str:
    """Forms on lines of their own, where the translation has one."""
    inner = f"{lead}    " if lead.strip(" \t") else ""
    return "".join(f"{inner}<numerusform>{raw}</numerusform>" for raw in raws) + (lead if inner else "")


def _holder(element: Element) -> Element:
    """The element that holds a text: the first of its variants by length, which is the longest."""
    return element.find("lengthvariant") or element


def _put(text: str, element: Element, raw: str, key: str, kind: EditKind = "value") -> Iterator[Edit]:
    """One text into its place; a new one leaves no shorter variants of the old."""
    holder = _holder(element)
    if raw == text[holder.inner.start : holder.inner.end]:
        return
    yield fill(text, holder, raw, kind, key)
    variants = list(element.each("lengthvariant"))[1:]
    if variants:
        yield Edit(Span(holder.whole.end, variants[-1].whole.end), "", "removal", key)


class _Locating:
    """One walk over the messages of a file."""

    def __init__(self, text: str, root: Element) -> None:
        self._text = text
        self._root = root
        self._names = Names()
        self._language = root.attributes.get("language", "").strip()

    def catalogue(self) -> Catalogue:
        units: list[Unit] = []
        groups: dict[str, Group] = {}
        loose = [self._root] if self._root.find("message") else []
        for context in (*loose, *self._root.each("context")):
            name = context.find("name") if context is not self._root else None
            said = self._said(name)
            group = self._names.unique(step(said))
            groups[group] = Group(context, context)
            for message in context.each("message"):
                if (source := message.find("source")) and not _is_obsolete(message):
                    units.append(self._unit(group, said, message, source))
        declaration = Declaration(self._root, "language", "version", frozenset(groups), "_")
        return Catalogue(tuple(units), groups, (declaration,))

    def _unit(self, group: str, context: str, message: Element, source: Element) -> Unit:
        comment = self._said(message.find("comment"))
        name = message.attributes.get("id") or read_inner(self._text, source, has_markup(self._text, source))
        key = f"{group}/{step(name)}" + (f"/{step(comment)}" if comment else "")
        target = message.find("translation")
        notes = (self._said(message.find(name)) for name in ("extracomment", "translatorcomment"))
        pair = Pair(
            self._names.unique(key),
            source,
            target,
            [element for element in message.children if element.local in _BEFORE][-1],
            state=self._state(target),
            note="\n".join(filter(None, notes)),
            context=" / ".join(filter(None, (context, comment))),
            marks=(Mark(target, "type", None, "unfinished"),) if target else (),
            plural=message.attributes.get("numerus") == "yes",
        )
        return Unit(pair.key, group, message, (pair,), (source,), self._language)

    def _said(self, element: Element | None) -> str:
        return read_inner(self._text, element, markup=False).strip() if element else ""

    def _state(self, target: Element | None) -> BlockState:
        """An unfinished translation that says something is a guess."""
        return "fuzzy" if target and target.attributes.get("type") == "unfinished" else ""


def _is_obsolete(message: Element) -> bool:
    target = message.find("translation")
    return target is not None and target.attributes.get("type") in _GONE


def _is_gone(message: etree._Element) -> bool:
    target = message.find("translation")
    return message.find("source") is None or (target is not None and target.get("type") in _GONE)


def _obsolete(root: etree._Element) -> Iterator[str]:
    for message in root.iter("message"):
        if _is_gone(message):
            yield etree.tostring(message, encoding="unicode", with_tail=False)


def _agrees(target: etree._Element | None, block: Block, locale: str) -> bool:
    """Whether a translation holds what we read of it; of variants by length, the first."""
    if target is None:
        return not block.text
    places = [target] if block.plural is None else list(target.iter("numerusform"))
    values = [block.text]
    if block.plural is not None:
        names = qt_plurals.rule(locale).names
        values = [block.plural[name] for name in names[: len(places)] if name]
        places = [place for place, name in zip(places, names, strict=False) if name]
    holders = [next(place.iter("lengthvariant"), place) for place in places]
    return all(agrees(*content(holder), block, value) for holder, value in zip(holders, values, strict=True))
