"""Markdown and MDX with front matter: CommonMark, GFM, footnotes, directives, shortcodes, blocks of HTML.

Promises that a translated file has the blocks of its source, one by one, and the same links, code and
shortcodes; lines keep their indentation and quote marks. Of front matter, parameters and attributes only
those that name a text are translated. Files are rebuilt from their source, complete or not at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from dragoman.content.lexers import front_matter, html_blocks, markdown_emphasis, markdown_fitting
from dragoman.content.lexers.markdown_blocks import Kind, Place, blocks, explicit_references, shape
from dragoman.content.lexers.markdown_masking import SHORTCODE, Piece, masked
from dragoman.content.lexers.markdown_spoken import Naming, Spoken, references, spoken
from dragoman.content.lexers.markdown_spoken import fitted as fitted_words
from dragoman.content.spans import newline_of, splice
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Span, Syntax, Text, Writing

FRONT_MATTER_TEXTS = frozenset(
    (
        "abstract",
        "alt",
        "caption",
        "description",
        "excerpt",
        "heading",
        "headline",
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

SHORTCODE_TEXTS = frozenset(
    ("alt", "caption", "description", "footer", "header", "heading", "label", "subtitle", "summary", "title")
)
"""Named parameters of shortcodes that are commonly texts."""

ATTRIBUTE_TEXTS = SHORTCODE_TEXTS | {"aria-label", "placeholder", "tagline"}
"""Attributes of JSX whose values are texts."""

_URL = re.compile(r"\s*[a-z][a-z0-9+.-]*://\S+\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Slot:
    """A block, and what it stands in: prose of a kind, HTML, front matter, or else words amid code."""

    block: Block
    kind: Kind | None = None
    html: html_blocks.Place | None = None
    value: front_matter.Value | None = None
    words: Spoken | None = None


@dataclass(frozen=True, slots=True)
class _File:
    """What a document remembers of its file."""

    matter: front_matter.Matter
    pieces: list[Piece]
    labels: Collection[str]
    slots: Mapping[str, _Slot]


class MarkdownFormat:
    """The format `markdown` or, with `mdx`, `mdx`.

    `front_matter_texts` are the keys whose values are texts, `attribute_texts` the attributes of JSX that
    are, and `shortcode_texts` the named parameters of shortcodes (as in `title="…"`): none by default, since
    a site's own shortcodes may compare them.
    """

    whole = True
    shared = False
    renames: Mapping[str, str] = {}

    def __init__(
        self,
        mdx: bool = False,
        front_matter_texts: Collection[str] = FRONT_MATTER_TEXTS,
        shortcode_texts: Collection[str] = (),
        attribute_texts: Collection[str] = ATTRIBUTE_TEXTS,
    ) -> None:
        self.name = "mdx" if mdx else "markdown"
        self.extensions: tuple[str, ...] = (".mdx",) if mdx else (".md", ".markdown")
        self._mdx = mdx
        self._matter_texts = frozenset(front_matter_texts)
        self._naming = Naming(shortcode_texts, attribute_texts)

    def detect(self, path: str, head: str) -> bool:
        """By extension alone."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """Markdown is Unicode."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Front matter's texts, then the blocks in file order; a target's keys are its source's."""
        matter = front_matter.located(text)
        masking = masked(text, matter.body, self._mdx)
        found = blocks(text, masking.pieces, self._mdx)
        slots = [*self._matter_slots(text, matter)]
        slots += _spoken_slots(
            (
                *spoken(text, matter.body, masking, self._naming),
                *references(text, masking.pieces, found.free, found.titles),
            )
        )
        slots += map(_prose_slot, found.places)
        slots.sort(key=lambda slot: slot.block.spans[0].start)
        file = _File(
            matter, masking.pieces, frozenset(found.titles), {slot.block.key: slot for slot in slots}
        )
        return Document(
            self.name, text, tuple(slot.block for slot in slots), role, locale, extras={"file": file}
        )

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """The source with every block's text replaced; `base` is the source."""
        file, newline = _file(base), newline_of(base.text)
        edits: list[Edit] = []
        written: dict[str, Text] = {}
        values = {key: _one(key, value) for key, value in translations.items()}
        behind = 0
        for key, slot in file.slots.items():
            if key in written or key not in values:
                continue  # an attribute that went along with the text around it
            span = Span(slot.block.spans[0].start, slot.block.spans[-1].end)
            if span.start < behind:
                raise DragomanError(f"{key!r} lost its tag in the text around it", "verify_failed")
            if values[key] == slot.block.text:
                written[key] = values[key]
                continue
            raw, read = _put(base.text, file, slot, values, locale, newline)
            written |= read
            edits.append(Edit(span, raw, "value", key))
            behind = span.end
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

    def _matter_slots(self, text: str, matter: front_matter.Matter) -> Iterator[_Slot]:
        for value in front_matter.values(text, matter):
            spoken_here = value.is_text and self._is_text(value.path)
            if spoken_here and value.text.strip() and not _URL.fullmatch(value.text):
                key = "/".join(("front", *value.path))
                note = f"front matter: {value.path[-1]}"
                yield _Slot(Block(key, value.text, (value.span,), None, "markdown", note), value=value)

    def _is_text(self, path: Sequence[str]) -> bool:
        """Whether the last name of a path is one of texts; numbers of lists count for nothing."""
        names = [part for part in path if not part.isdigit()]
        return not self._matter_texts.isdisjoint(names[-1:])

    def _shortcodes(self, text: str, file: _File) -> Counter[str]:
        parameter = self._naming.parameter
        found = (
            parameter.sub(r"\g<name>=", match[0]) for match in SHORTCODE.finditer(text, file.matter.body)
        )
        return Counter(found)

    def _other_matter(self, text: str, file: _File) -> Counter[str]:
        """All values of the front matter but those of texts, as the data's own parser reads them."""
        texts = {slot.value.path for slot in file.slots.values() if slot.value}
        found = front_matter.everything(text, file.matter)
        return Counter(f"{'.'.join(path)}: {'' if path in texts else value}" for path, value in found)


def _prose_slot(place: Place) -> _Slot:
    if place.html is None:
        block = Block(place.key, place.text, place.spans, None, "markdown", place.note)
        return _Slot(block, place.kind)
    syntax: Syntax = "none" if place.html.attribute else "html"
    return _Slot(Block(place.key, place.text, place.spans, None, syntax, place.note), html=place.html)


def _spoken_slots(found: Iterable[Spoken]) -> Iterator[_Slot]:
    """Words amid code, numbered by their name."""
    ordinals: Counter[str] = Counter()
    for words in found:
        if any(map(str.isalpha, words.text)) and not _URL.fullmatch(words.text):
            ordinals[words.name] += 1
            key = f"{words.name}/{ordinals[words.name]}"
            syntax: Syntax = "none" if words.manner == "jsx" else "markdown"
            yield _Slot(Block(key, words.text, (words.span,), None, syntax, words.name), words=words)


def _one(key: str, value: Text) -> str:
    if not isinstance(value, str):
        raise DragomanError(f"{key!r} is one text, and its translation has plural forms", "verify_failed")
    return value


def _put(
    text: str, file: _File, slot: _Slot, values: Mapping[str, str], locale: str, newline: str
) -> tuple[str, Mapping[str, str]]:
    """A translation as it stands in the file, and by key what will be read there."""
    key = slot.block.key
    value = values[key]
    if slot.value:
        put = value.rstrip("\n")
        return front_matter.spelled(text, file.matter, slot.value, put), {key: put}
    if slot.html:
        return html_blocks.filled(text, slot.html, value, values)
    if slot.words:
        put, raw = fitted_words(value, slot.words)
        return raw, {key: put}
    kind = slot.kind or "prose"
    put = explicit_references(markdown_fitting.fitted(value, kind, locale), file.labels)
    put = markdown_emphasis.repaired(put, slot.block.text)
    return markdown_fitting.raw(put, kind, text, slot.block.spans, newline), {key: put}


def _file(document: Document) -> _File:
    return cast(_File, document.extras["file"])
