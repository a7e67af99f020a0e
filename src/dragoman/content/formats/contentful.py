"""Contentful's rich text as JSON, alone or inside an entry of one locale, as the delivery API gives it.

Promises one text for each paragraph, heading and cell, with marks and hyperlinks as pairs and inline entries
as tags; that translated pieces are copies of the nodes that they came from; and that nothing else changes.
Code is kept, and so are embedded entries and assets, whose texts are documents of their own. Is written
whole, and rebuilt from its source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dragoman.content.catalogues.rich_text import CODE, Dialect, RichTextFormat, Seen
from dragoman.content.lexers.inline_nodes import Node
from dragoman.content.lexers.json_tokens import Value
from dragoman.model.documents import Span

_DOCUMENT = re.compile(r'"nodeType"\s*:\s*"(?:document|paragraph|heading-\d)"')
_ELEMENTS = ("hyperlink", "entry-hyperlink", "asset-hyperlink", "resource-hyperlink")
_INLINE = ("embedded-entry-inline", "embedded-resource-inline")


def _inline(text: str, value: Value, parent: Value) -> Node | None:
    kind, content = value.member("nodeType"), value.member("content")
    words, held = value.member("value"), value.member("marks")
    if kind is None:
        return None
    name, span = kind.value.text, Span(value.start, value.end)
    if name in _ELEMENTS and content:
        inside = [_inline(text, child.value, value) for child in content.value.members]
        nodes = tuple(node for node in inside if node)
        return (
            Node("element", span, name, nodes=nodes) if nodes and all(inside) else Node("object", span, name)
        )
    if name != "text" or not words or words.value.kind != "string":
        return Node("object", span, name) if name in _INLINE else None
    types = [member.value.member("type") for member in held.value.members] if held else []
    marks = [found.value.text for found in types if found]
    if CODE in marks:
        return Node("object", span, CODE)
    return Node(
        "text",
        span,
        "-".join(marks),
        " ".join(sorted(marks)),
        words.value.text,
        Span(words.value.start, words.value.end),
        ((Span(held.value.start, held.value.end), "[]"),) if held else (),
    )


def _seen(node: Mapping[str, Any]) -> Seen | None:
    text, marks = node.get("value"), node.get("marks") or []
    if node.get("nodeType") != "text" or not isinstance(text, str) or not isinstance(marks, list):
        return None
    types = sorted(str(mark["type"]) for mark in marks if isinstance(mark, dict) and "type" in mark)
    return Seen(text, " ".join(types), CODE in types)


class ContentfulRichText(RichTextFormat):
    """The format `contentful`."""

    name = "contentful"
    shown = _DOCUMENT
    dialect = Dialect("nodeType", "content", _ELEMENTS, (), _inline, _seen)
