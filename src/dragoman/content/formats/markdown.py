"""Markdown and MDX with YAML front matter: CommonMark, GFM, footnotes, directives, shortcodes.

Promises that a translated file has the blocks of its source, one by one, and the same links, code and
shortcodes; lines keep their indentation and quote marks. Of the front matter only keys that name a text are
translated, and front matter in TOML stays as it is. Files are rebuilt from their source, complete or not at
all.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from dragoman.content.lexers import markdown_fitting
from dragoman.content.lexers.markdown_blocks import Kind, explicit_references, places, shape
from dragoman.content.lexers.markdown_masking import SHORTCODE, Piece, pieces, shortcode_name
from dragoman.content.lexers.yaml_scalars import Scalar, replaced, scalars
from dragoman.content.spans import line_at, newline_of, splice
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Span, Text, Writing

FRONT_MATTER_TEXTS = frozenset(
    (
        "abstract",
        "caption",
        "description",
        "excerpt",
        "lead",
        "linkTitle",
        "linktitle",
        "pagination_label",
        "sidebar_label",
        "subtitle",
        "summary",
        "tagline",
        "title",
    )
)
"""Keys of front matter whose values are texts, at any depth."""

_MATTER = re.compile(r"(?P<mark>---|\+\+\+)[ \t]*(?:\r\n|\n|\r)")
_MATTER_END = {
    "---": re.compile(r"(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)"),
    "+++": re.compile(r"(?<=[\r\n])\+\+\+[ \t]*(?:\r\n|\n|\r|\Z)"),
}
_URL = re.compile(r"\s*[a-z][a-z0-9+.-]*://\S+\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Slot:
    """A block, and what it stands in: Markdown of a kind, a YAML scalar, or else a shortcode's quotes."""

    block: Block
    kind: Kind | None = None
    scalar: Scalar | None = None


@dataclass(frozen=True, slots=True)
class _File:
    """What a document remembers of its file."""

    matter: Span
    body: int
    pieces: list[Piece]
    labels: Collection[str]
    slots: Mapping[str, _Slot]


class MarkdownFormat:
    """The format `markdown` or, with `mdx`, `mdx`.

    `front_matter_texts` are the keys whose values are texts, and `shortcode_texts` the named parameters of
    shortcodes that are (as in `title="…"`): none by default.
    """

    whole = True
    shared = False
    renames: Mapping[str, str] = {}

    def __init__(
        self,
        mdx: bool = False,
        front_matter_texts: Collection[str] = FRONT_MATTER_TEXTS,
        shortcode_texts: Collection[str] = (),
    ) -> None:
        self.name = "mdx" if mdx else "markdown"
        self.extensions: tuple[str, ...] = (".mdx",) if mdx else (".md", ".markdown")
        self._mdx = mdx
        self._matter_texts = frozenset(front_matter_texts)
        names = "|".join(map(re.escape, sorted(shortcode_texts))) or r"(?!)"
        self._parameter = re.compile(rf'(?<![\w.-])(?P<name>{names})\s*=\s*"(?P<text>(?:[^"\\]|\\.)*)"')

    def detect(self, path: str, head: str) -> bool:
        """By extension alone."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """Markdown is Unicode."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Front matter's texts, then the blocks in file order; a target's keys are its source's."""
        matter, body = _front_matter(text)
        masked = pieces(text, body, self._mdx)
        found, labels = places(text, masked, self._mdx)
        slots = [*self._matter_slots(text, matter), *self._parameter_slots(text, body, masked)]
        for place in found:
            slots.append(
                _Slot(Block(place.key, place.text, place.spans, None, "markdown", place.note), place.kind)
            )
        slots.sort(key=lambda slot: slot.block.spans[0].start)
        file = _File(matter, body, masked, labels, {slot.block.key: slot for slot in slots})
        blocks = tuple(slot.block for slot in slots)
        return Document(self.name, text, blocks, role, locale, extras={"file": file})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """The source with every block's text replaced; `base` is the source."""
        file, newline = _file(base), newline_of(base.text)
        edits: list[Edit] = []
        written: dict[str, Text] = {}
        for key, slot in file.slots.items():
            if key not in translations:
                continue
            value = translations[key]
            if not isinstance(value, str):
                raise DragomanError(
                    f"{key!r} is one text, and its translation has plural forms", "verify_failed"
                )
            written[key] = value
            if value != slot.block.text:
                written[key], raw = _put(base.text, file, slot, value, locale, newline)
                span = Span(slot.block.spans[0].start, slot.block.spans[-1].end)
                edits.append(Edit(span, raw, "value", key))
        return Writing(splice(base.text, edits), tuple(edits), (), written)

    def second_opinion(self, before: Document, after: Document) -> str:
        """The full parser must see the same blocks, links and code; the rest must be as it was."""
        old, new = _file(before), _file(after)
        old_blocks, old_inlines = shape(before.text, old.pieces, self._mdx)
        new_blocks, new_inlines = shape(after.text, new.pieces, self._mdx)
        for one, other in zip(old_blocks, new_blocks, strict=False):
            if one != other:
                return f"a block would turn from {one[:80]!r} into {other[:80]!r}"
        if len(old_blocks) != len(new_blocks):
            return f"the file would have {len(new_blocks)} blocks instead of {len(old_blocks)}"
        for what, one_count, other_count in (
            ("links, code and tags", old_inlines, new_inlines),
            ("shortcodes", self._shortcodes(before.text, old), self._shortcodes(after.text, new)),
            ("front matter", self._other_matter(before.text, old), self._other_matter(after.text, new)),
        ):
            if changed := [*(one_count - other_count), *(other_count - one_count)]:
                return f"the {what} would change: {str(changed[0])[:80]!r}"
        return ""

    def _matter_slots(self, text: str, matter: Span) -> Iterator[_Slot]:
        for scalar in _matter_scalars(text, matter):
            if self._is_text(scalar):
                span = Span(matter.start + scalar.span.start, matter.start + scalar.span.end)
                key = "/".join(("front", *scalar.path))
                note = f"front matter: {scalar.path[-1]}"
                yield _Slot(Block(key, scalar.value, (span,), None, "markdown", note), scalar=scalar)

    def _is_text(self, scalar: Scalar) -> bool:
        names = [part for part in scalar.path if not part.isdigit()]
        named = scalar.is_text and not self._matter_texts.isdisjoint(names[-1:])
        return named and bool(scalar.value.strip()) and not _URL.fullmatch(scalar.value)

    def _parameter_slots(self, text: str, body: int, masked: list[Piece]) -> Iterator[_Slot]:
        """Named parameters of the shortcodes that stand on lines of their own."""
        shown = [piece for piece in masked if piece.start < piece.end]
        starts = [piece.start for piece in shown]
        ordinals: Counter[str] = Counter()
        for shortcode in SHORTCODE.finditer(text, body):
            index = bisect_right(starts, shortcode.start()) - 1
            if index >= 0 and shortcode.start() < shown[index].end:
                continue
            for match in self._parameter.finditer(text, *shortcode.span()):
                name = f"{shortcode_name(shortcode[0])[0]}.{match['name']}"
                ordinals[name] += 1
                key, value = f"{name}/{ordinals[name]}", match["text"].replace('\\"', '"')
                if value.strip():
                    yield _Slot(Block(key, value, (Span(*match.span("text")),), None, "markdown", name))

    def _shortcodes(self, text: str, file: _File) -> Counter[str]:
        found = (self._parameter.sub(r"\g<name>=", match[0]) for match in SHORTCODE.finditer(text, file.body))
        return Counter(found)

    def _other_matter(self, text: str, file: _File) -> Counter[str]:
        found = _matter_scalars(text, file.matter)
        return Counter(
            f"{'.'.join(scalar.path)}: {'' if self._is_text(scalar) else scalar.value}" for scalar in found
        )


def _put(text: str, file: _File, slot: _Slot, value: str, locale: str, newline: str) -> tuple[str, str]:
    """A translation as it will be read back, and as it stands in the file."""
    if slot.scalar:
        fitted = value.rstrip("\n")
        return fitted, replaced(text[file.matter.start : file.matter.end], slot.scalar, fitted)
    if slot.kind is None:
        fitted = " ".join(value.split("\n"))
        return fitted, fitted.replace('"', '\\"')
    fitted = explicit_references(markdown_fitting.fitted(value, slot.kind, locale), file.labels)
    return fitted, markdown_fitting.raw(fitted, slot.kind, text, slot.block.spans, newline)


def _front_matter(text: str) -> tuple[Span, int]:
    """The span of the YAML between the marks, empty where there is none, and where the body begins."""
    opening = _MATTER.match(text)
    if opening:
        closing = _MATTER_END[opening["mark"]].search(text, opening.end())
        if closing and opening["mark"] == "+++":
            return Span(0, 0), closing.end()
        if closing and scalars(text[opening.end() : closing.start()], 2) is not None:
            return Span(opening.end(), closing.start()), closing.end()
    return Span(0, 0), 0


def _matter_scalars(text: str, matter: Span) -> list[Scalar]:
    return scalars(text[matter.start : matter.end], line_at(text, matter.start)) or []


def _file(document: Document) -> _File:
    return cast(_File, document.extras["file"])
