"""Bilingual XML of any dialect: sources with their translations beside them, and the edits that fill those.

Promises blocks that read alike whichever member located them, and that what stands in a file which declares
another language counts for nothing. `bilingual_filling` writes. Knows no dialect but the plain one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from dragoman.content.lexers.xml_edits import declares as _declares
from dragoman.content.lexers.xml_edits import (
    fill,
    has_markup,
    read_inner,
    syntax_of,
)
from dragoman.content.lexers.xml_places import Element, escaped
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Block, BlockState, Document, Edit, Role, Span, Syntax, Text

Spell = Callable[[str], str]
"""A text as raw content of its place."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An attribute about a translation: what it says of one that is ours, and of none; None: it goes."""

    element: Element
    name: str
    done: str | None
    bare: str | None


@dataclass(frozen=True, slots=True)
class Pair:
    """A source and its translation, which where it is missing goes right behind `behind`."""

    key: str
    source: Element
    target: Element | None
    behind: Element
    state: BlockState = ""
    note: str = ""
    context: str = ""
    max_length: int | None = None
    marks: tuple[Mark, ...] = ()
    plural: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A segmented source whose target has not all segments: the target gets the source's shape."""

    source: Element
    target: Element | None


@dataclass(frozen=True, slots=True)
class Unit:
    """What comes and goes as a whole. `sources` are the elements that say what its source is."""

    key: str
    group: str
    element: Element
    pairs: tuple[Pair, ...]
    sources: tuple[Element, ...]
    language: str
    """What its translations are declared to be in; empty where nothing is declared."""
    frame: Frame | None = None
    holder: Element | None = None
    """The element around the translations of a segmented unit: it says their language."""


@dataclass(frozen=True, slots=True)
class Group:
    """What units lie in, and the element that new ones go into."""

    element: Element
    body: Element


@dataclass(frozen=True, slots=True)
class Declaration:
    """Where a file, or a part of it, says its target language: an attribute, and the one it follows."""

    element: Element
    name: str
    behind: str
    groups: frozenset[str]
    separator: str = "-"
    """What it writes between language and region."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What a member located in a text. The keys of all pairs are unique."""

    units: tuple[Unit, ...]
    groups: Mapping[str, Group]
    declarations: tuple[Declaration, ...]


class Dialect:
    """How one text is held by its element: here as its content. A dialect with plurals overrides this."""

    syntax: Syntax | None = None
    """Of all texts, raw or not; None where each file shows it, and raw markup is `html`."""

    def original(self, text: str, pair: Pair, markup: bool) -> Text:
        """The source."""
        return read_inner(text, pair.source, markup)

    def standing(self, text: str, pair: Pair, markup: bool, locale: str) -> Text:
        """The translation that stands in the target."""
        return read_inner(text, pair.target, markup) if pair.target else self.nothing(pair, locale)

    def nothing(self, pair: Pair, locale: str) -> Text:
        """What a target reads as that is missing, or empty."""
        return ""

    def asked(self, pair: Pair, value: Text, locale: str) -> Text:
        """What a translation will read as. Raises `DragomanError` for one of the wrong kind."""
        if isinstance(value, str):
            return value
        raise DragomanError(
            f"{pair.key!r} is one text, and its translation has plural forms", "verify_failed"
        )

    def filled(self, text: str, pair: Pair, target: Element, value: Text, spell: Spell) -> Iterator[Edit]:
        """The edits that put a value, as `asked` gave it, into a target."""
        raw = spell(str(value))
        if raw != text[target.inner.start : target.inner.end]:
            yield fill(text, target, raw, "value", pair.key)

    def blanked(self, text: str, pair: Pair, target: Element) -> Iterator[Edit]:
        """The edits after which a target is empty."""
        if target.inner.start < target.inner.end:
            yield Edit(target.inner, "", "removal", pair.key)

    def fresh(self, text: str, pair: Pair, value: Text, lead: str, locale: str, spell: Spell) -> str:
        """A new target on a line that begins with `lead`."""
        opening, closing = target_tags(pair.source, locale)
        return f"{opening}{spell(str(value))}{closing}"


PLAIN = Dialect()


def document(
    name: str, text: str, found: Catalogue, role: Role, locale: str, dialect: Dialect = PLAIN
) -> Document:
    """The blocks of a located file, by role the sources or the translations."""
    pairs = [(unit, pair, has_markup(text, pair.source)) for unit in found.units for pair in unit.pairs]
    plain = [read_inner(text, pair.source, markup=False) for _, pair, markup in pairs if not markup]
    syntax = dialect.syntax or syntax_of(plain)
    blocks = tuple(
        _block(
            pair,
            dialect.original(text, pair, markup),
            standing(dialect, text, unit, pair, markup, locale) if role == "target" else None,
            "html" if markup and not dialect.syntax else syntax,
        )
        for unit, pair, markup in pairs
    )
    return Document(name, text, blocks, role, locale, extras={"catalogue": found})


def catalogue_of(document: Document) -> Catalogue:
    """What was located in a document that `document` made."""
    return cast(Catalogue, document.extras["catalogue"])


def target_tags(source: Element, locale: str) -> tuple[str, str]:
    """The tags of a new target: like its source's, which may say its language and its space."""
    name = source.name[: len(source.name) - len(source.local)] + "target"
    kept = {"xml:lang": locale, "xml:space": source.attributes.get("xml:space", "")}
    attributes = "".join(
        f' {attribute}="{escaped(value, chr(34))}"'
        for attribute, value in kept.items()
        if attribute in source.attributes
    )
    return f"<{name}{attributes}>", f"</{name}>"


def _block(pair: Pair, original: Text, standing: Text | None, syntax: Syntax) -> Block:
    """As source, or with a `standing` translation as target."""
    value, span = original, pair.source.inner
    state: BlockState = ""
    if standing is not None:
        behind = pair.behind.whole.end
        value, span = standing, pair.target.inner if pair.target else Span(behind, behind)
        bare = any(map(str.strip, forms_of(original))) and not all(map(str.strip, forms_of(value)))
        state = "untranslated" if bare else pair.state if any(forms_of(value)) else ""
    plural = None if isinstance(value, str) else value
    return Block(
        pair.key,
        next(iter(forms_of(value)), ""),
        (span,),
        plural,
        syntax,
        pair.note,
        pair.context,
        pair.max_length,
        state,
    )


def forms_of(value: Text) -> tuple[str, ...]:
    """The text, or every form of a plural."""
    return (value,) if isinstance(value, str) else tuple(value.values())


def standing(dialect: Dialect, text: str, unit: Unit, pair: Pair, markup: bool, locale: str) -> Text:
    """What counts as the translation that a unit has: nothing where it is in another language."""
    if pair.target is None or (unit.language and not _declares(unit.language, locale)):
        return dialect.nothing(pair, locale)
    return dialect.standing(text, pair, markup, locale)
