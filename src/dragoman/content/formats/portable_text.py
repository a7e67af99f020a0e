"""Portable Text, Sanity's block content as JSON, alone or inside a document.

Promises one text for each block, with marks (decorators and what `markDefs` define) as pairs and inline
objects as tags; that translated pieces are copies of the spans that they came from, under keys of their own
where one span became two; and that nothing else changes. Code is kept. Is written whole, and rebuilt from its
source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dragoman.content.catalogues.rich_text import CODE, Dialect, RichTextFormat, Seen
from dragoman.content.lexers.inline_nodes import Node
from dragoman.content.lexers.json_tokens import Value
from dragoman.model.documents import Span

_BLOCK = re.compile(r'"_type"\s*:\s*"(?:block|span)"')


def _inline(text: str, value: Value, parent: Value) -> Node | None:
    kind, words = value.member("_type"), value.member("text")
    if kind is None or value.member("children"):
        return None
    span, held, named = Span(value.start, value.end), value.member("marks"), value.member("_key")
    key = (Span(named.value.start, named.value.end), named.value.text) if named else None
    if kind.value.text != "span" or not words or words.value.kind != "string":
        return Node("object", span, kind.value.text, key=key)
    marks = [member.value.text for member in held.value.members] if held else []
    if CODE in marks:
        return Node("object", span, CODE, key=key)
    names = _defined(parent)
    place = words.value
    return Node(
        "text",
        span,
        "-".join(names.get(mark, mark) for mark in marks),
        " ".join(sorted(marks)),
        place.text,
        Span(place.start, place.end),
        ((Span(held.value.start, held.value.end), "[]"),) if held else (),
        key,
    )


def _defined(block: Value) -> dict[str, str]:
    """What a block's `markDefs` define: key → kind."""
    found = block.member("markDefs")
    items = found.value.members if found else ()
    named = [(item.value.member("_key"), item.value.member("_type")) for item in items]
    return {key.value.text: kind.value.text for key, kind in named if key and kind}


def _seen(node: Mapping[str, Any]) -> Seen | None:
    text, marks = node.get("text"), node.get("marks") or []
    if node.get("_type") != "span" or not isinstance(text, str) or not isinstance(marks, list):
        return None
    return Seen(text, " ".join(sorted(map(str, marks))), CODE in marks)


class PortableText(RichTextFormat):
    """The format `portable-text`."""

    name = "portable-text"
    shown = _BLOCK
    dialect = Dialect("_type", "children", (), (CODE,), _inline, _seen, key="_key")
