"""HTML pages and templates of pages: `.html`, `.htm`, `.xhtml`.

Promises that a translated page has the elements, attributes and templates of its source, and texts where it
has texts; only words change, attributes that are read out, and the language and direction that the root
element declares. What the page's encoding cannot hold is written as a reference. A page is rebuilt from its
source, complete or not at all. Texts in scripts are not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import cast

from lxml import etree

from dragoman.content import locales
from dragoman.content.lexers.html_blocks import INLINE, SPOKEN, Page, filled, page, skeleton
from dragoman.content.lexers.html_tags import PLAIN_TEXT, RAW_TEXT, TEMPLATE, Mark
from dragoman.content.spans import splice
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Text, Writing

_CHANGING = SPOKEN | {"content", "value", "lang", "xml:lang", "dir"}
_CHARSET = re.compile(
    rb"""<(?:meta|\?xml)[^>]{0,300}?(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z][\w.:-]{0,40})""", re.I
)
_CHARSET_BYTES = 2_048
_LATIN = ("iso-8859-1", "iso8859-1", "latin1", "latin-1", "l1", "cp1252", "us-ascii", "ascii")


class HtmlDocument:
    """The format `html`."""

    name = "html"
    extensions: tuple[str, ...] = (".html", ".htm", ".xhtml")
    whole = True
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """By extension alone."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """What the page declares near its beginning; Latin-1 means Windows-1252, as it does to browsers."""
        declared = _CHARSET.search(data, 0, _CHARSET_BYTES)
        name = declared[1].decode("ascii").lower() if declared else ""
        if not name or name.startswith("utf-16"):
            return None  # one who reads that in bytes has not read UTF-16
        return "windows-1252" if name in _LATIN else name

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Texts and read-out attributes, in file order."""
        found = page(text)
        blocks = tuple(
            Block(
                place.key,
                place.text,
                (place.span,),
                syntax="none" if place.attribute else "html",
                note=place.note,
            )
            for place in found.places
        )
        return Document(self.name, text, blocks, role, locale, extras={"page": found})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """The source with every text replaced; `base` is the source."""
        found = _page(base)
        values = {key: _one(key, value) for key, value in translations.items()}
        edits: list[Edit] = []
        written: dict[str, Text] = {}
        behind = 0
        for place in found.places:
            if place.key in written or place.key not in values:
                continue  # an attribute that went along with the text around it
            if place.span.start < behind:
                raise DragomanError(f"{place.key!r} lost its tag in the text around it", "verify_failed")
            if values[place.key] == place.text:
                written[place.key] = place.text
                continue
            value = values[place.key] if place.attribute else _held(values[place.key], base.encoding)
            raw, read = filled(base.text, place, value, values)
            written |= read
            raw = _held(raw, base.encoding)
            edits.append(Edit(place.span, raw, "value", place.key))
            behind = place.span.end
        edits += _metadata(found, locale)
        edits.sort(key=lambda edit: edit.span.start)
        return Writing(splice(base.text, edits), tuple(edits), (), written)

    def second_opinion(self, before: Document, after: Document) -> str:
        """Another parser must see the same elements and, where it agrees with ours, the same words."""
        old, new = (skeleton(document.text, _page(document)) for document in (before, after))
        if changed := [*(old - new), *(new - old)]:
            return f"the tags and templates would change: {changed[0][:80]!r}"
        old_shape, old_words = _seen(before)
        new_shape, new_words = _seen(after)
        for one, other in zip(old_shape, new_shape, strict=False):
            if one != other:
                return f"an element would turn from {one[:80]!r} into {other[:80]!r}"
        if len(old_shape) != len(new_shape):
            return f"the page would have {len(new_shape)} elements instead of {len(old_shape)}"
        if old_words == _words(before) and new_words != _words(after):
            return "another parser would read other words"
        return ""


def _one(key: str, value: Text) -> str:
    if not isinstance(value, str):
        raise DragomanError(f"{key!r} is one text, and its translation has plural forms", "verify_failed")
    return value


def _held(text: str, encoding: str) -> str:
    """A text with references for the characters that the file's encoding does not hold."""
    return text.encode(encoding, "xmlcharrefreplace").decode(encoding)


def _metadata(found: Page, locale: str) -> Iterator[Edit]:
    """The root's language and direction, where it declares them itself."""
    declared = {
        "lang": locales.canonical(locale),
        "xml:lang": locales.canonical(locale),
        "dir": locales.direction(locale),
    }
    for attribute in found.root.attributes if found.root else ():
        value = declared.get(attribute.name)
        if value and attribute.raw.strip() and not TEMPLATE.search(attribute.raw) and value != attribute.raw:
            yield Edit(attribute.span, value, "metadata")


def _seen(document: Document) -> tuple[list[str], str]:
    """What libxml2 sees: each block-level element with what stands in it, in any order; and all words."""
    masked = "".join(_masked(document.text, mark) for mark in _page(document).marks)
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(masked.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        return [], ""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for element in root.iter():
        attributes = (f"{name}={value}" for name, value in element.items() if name not in _CHANGING)
        shown = " ".join((str(element.tag), *sorted(attributes)))
        if element.tag in INLINE:
            blocks[-1][1].append(shown)
        else:
            blocks.append((shown, []))
    etree.strip_elements(root, *RAW_TEXT, with_tail=False)
    shape = [f"{shown}: {', '.join(sorted(inside))}" for shown, inside in blocks]
    return shape, _without_spaces("".join(map(str, root.itertext())))


def _masked(text: str, mark: Mark) -> str:
    """A mark for a parser that knows no templates: outside tags they are nothing, within them letters."""
    raw = text[mark.start : mark.end]
    if mark.kind in ("expression", "statement"):
        return ""
    return TEMPLATE.sub("x", raw) if mark.kind in ("open", "close") else raw


def _words(document: Document) -> str:
    """All words as our own parser sees them."""
    found = (
        document.text[mark.start : mark.end]
        for mark in _page(document).marks
        if mark.kind == "text" or (mark.kind == "raw" and mark.name in PLAIN_TEXT)
    )
    return _without_spaces("".join(map(unescape, found)))


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _page(document: Document) -> Page:
    return cast(Page, document.extras["page"])
