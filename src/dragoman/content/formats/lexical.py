"""Lexical's editor state as JSON, alone or inside a document (Payload).

Promises one text for each paragraph, heading, list item and table cell, whatever nodes it is cut into, with
formats and links as pairs and line breaks as tags; that translated pieces are copies of the nodes that they
came from; and that nothing else changes. Code is kept. Is written whole, and rebuilt from its source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dragoman.content.catalogues.rich_text import CODE, Dialect, RichTextFormat, Seen
from dragoman.content.lexers.inline_nodes import Node
from dragoman.content.lexers.json_tokens import Value
from dragoman.model.documents import Span

_ROOT = re.compile(r'"root"\s*:\s*\{(?=[^{}\[\]]*"(?:type"\s*:\s*"root"|children"\s*:\s*\[))')
_FORMATS = (
    "bold",
    "italic",
    "strike",
    "underline",
    CODE,
    "sub",
    "super",
    "highlight",
    "lower",
    "upper",
    "title",
)
"""What the bits of a text's format mean, from the lowest on."""
_CODE_BIT = 1 << _FORMATS.index(CODE)
_ELEMENTS = ("link", "autolink")
_BLOCKS = (
    "paragraph", "heading", "quote", "list", "listitem", "table", "tablerow", "tablecell", CODE, "upload",
    "block", "horizontalrule", "relationship", "layout-container", "layout-item",
)  # fmt: skip


def _inline(text: str, value: Value, parent: Value) -> Node | None:
    kind = value.member("type")
    if kind is None:
        return None
    name, span = kind.value.text, Span(value.start, value.end)
    words, children = value.member("text"), value.member("children")
    if name in _ELEMENTS and children:
        inside = [_inline(text, child.value, value) for child in children.value.members]
        nodes = tuple(node for node in inside if node)
        return (
            Node("element", span, name, nodes=nodes) if nodes and all(inside) else Node("object", span, name)
        )
    if words and words.value.kind == "string":
        return _text(text, value, words.value, span)
    return None if children or name in _BLOCKS else Node("object", span, name)


def _text(text: str, value: Value, words: Value, span: Span) -> Node:
    held = value.member("format")
    raw = text[held.value.start : held.value.end] if held else "0"
    bits = int(raw) if raw.isdigit() else 0
    css, mode = value.member("style"), value.member("mode")
    if bits & _CODE_BIT or (mode and mode.value.text == "token"):
        return Node("object", span, CODE)
    names = [name for index, name in enumerate(_FORMATS) if bits >> index & 1]
    look = css.value.text if css else ""
    plain = [(held, "0"), (css, '""')]
    return Node(
        "text",
        span,
        "-".join(names) or ("style" if look else ""),
        _style(bits, look),
        words.text,
        Span(words.start, words.end),
        tuple((Span(member.value.start, member.value.end), raw) for member, raw in plain if member),
    )


def _style(bits: int, look: str) -> str:
    return f"{bits} {look}" if bits or look else ""


def _seen(node: Mapping[str, Any]) -> Seen | None:
    text, bits, look = node.get("text"), node.get("format", 0), node.get("style", "")
    if not isinstance(text, str) or not isinstance(node.get("type"), str):
        return None
    bits = bits if isinstance(bits, int) else 0
    return Seen(text, _style(bits, look), bool(bits & _CODE_BIT) or node.get("mode") == "token")


class LexicalDocument(RichTextFormat):
    """The format `lexical`."""

    name = "lexical"
    shown = _ROOT
    dialect = Dialect("type", "children", _ELEMENTS, (CODE,), _inline, _seen)
