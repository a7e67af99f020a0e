"""The inline nodes of one paragraph of a tree editor, shown as one text with tags, and put back.

Promises that a text is shown as a translator wants it: whole, with a pair of tags (`<strong-1>…</strong-1>`)
for each formatted piece and each link, and one tag (`<image-2/>`) for code and what is no text; that a
translation, in which all of these may have moved, becomes copies of the same nodes with other texts; and that
nodes whose text does not change stay byte for byte. Neighbours of one format are one piece: the first of them
takes its text. Knows no editor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby, pairwise
from typing import Literal, NamedTuple

from dragoman.content.lexers.json_tokens import Spelling
from dragoman.content.spans import splice
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Edit, Span

_AMBIGUOUS = re.compile(r"&(?=(?:amp|lt|gt);)|<(?=[A-Za-z/!?])")
_ESCAPED = re.compile(r"&(amp|lt|gt);")
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">"}
_TAG = re.compile(r"<(?P<closes>/?)(?P<name>[a-z][a-z0-9-]*-\d+)\s*/?>")
_UNNAMED = re.compile(r"[^a-z0-9]+")
_NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Node:
    """One inline node. `style` tells formatted text from plain, for which it is empty."""

    kind: Literal["text", "object", "element"]
    span: Span
    name: str = ""
    style: str = ""
    text: str = ""
    value: Span = _NOWHERE
    """Of the string that holds the text, quotes included."""
    plain: tuple[tuple[Span, str], ...] = ()
    """What makes a copy of a formatted text plain."""
    key: tuple[Span, str] | None = None
    """A name that no two nodes may share, and where it stands."""
    nodes: tuple[Node, ...] = ()
    """Of an element."""


class _Piece(NamedTuple):
    """A node, or several texts of one style."""

    nodes: tuple[Node, ...]

    @property
    def text(self) -> str:
        return "".join(node.text for node in self.nodes)


class _Level(NamedTuple):
    """The paragraph, or the inside of an element: its nodes, and what is shown bare behind so many tags."""

    nodes: Sequence[Node]
    bare: dict[int, _Piece]


class _Item(NamedTuple):
    """A part of a translation: a text, or a tag with what stands in it."""

    text: str
    tag: str
    items: tuple[_Item, ...]


class Markup:
    """The nodes of one paragraph: `text` is what a translator sees of them."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._tags: dict[str, _Piece] = {}
        self._levels: dict[str, _Level] = {}
        self.text = self._shown("", nodes)

    def _shown(self, tag: str, nodes: Sequence[Node]) -> str:
        """One level: the paragraph, or the inside of the element that has this tag."""
        styles = {node.style for node in nodes if node.kind == "text" and node.text}
        base = styles.pop() if len(styles) == 1 else ""
        level = self._levels[tag] = _Level(nodes, {})
        tags = 0
        shown = []
        for _, group in groupby(enumerate(nodes), _run):
            piece = _Piece(tuple(node for _, node in group))
            node = piece.nodes[0]
            if node.kind == "text" and node.style == base:
                level.bare.setdefault(tags, piece)
                shown.append(escaped(piece.text))
            elif node.kind != "text" or piece.text:  # else it is a format of nothing
                tags += 1
                name = f"{_UNNAMED.sub('-', node.name.lower()).strip('-') or 'text'}-{len(self._tags) + 1}"
                self._tags[name] = piece
                inside = self._shown(name, node.nodes) if node.kind == "element" else escaped(piece.text)
                shown.append(f"<{name}/>" if node.kind == "object" else f"<{name}>{inside}</{name}>")
        return "".join(shown)

    def rebuilt(self, text: str, translation: str, spelling: Spelling) -> str:
        """The JSON of the nodes, commas between them, as the translation has them; `text` is the file's."""
        items = _items(translation, self._tags)
        return _Rebuilding(text, self._tags, self._levels, spelling).level("", items)


def _run(indexed: tuple[int, Node]) -> tuple[str, object]:
    """What neighbours share that are one piece: only texts do."""
    index, node = indexed
    return (node.kind, node.style if node.kind == "text" else index)


def escaped(text: str) -> str:
    """A text in which nothing can be taken for a tag."""
    return _AMBIGUOUS.sub(lambda match: "&amp;" if match[0] == "&" else "&lt;", text)


def words(markup: str) -> str:
    """What a reader sees of a markup: its text without tags."""
    return _unescaped(_TAG.sub("", markup))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _CHARACTERS[match[1]], text)


def _items(markup: str, tags: dict[str, _Piece]) -> tuple[_Item, ...]:
    """The parts of a translation. Raises `DragomanError` unless each tag stands there once, and nested."""
    stack: list[tuple[str, list[_Item]]] = [("", [])]
    missing = set(tags)
    at = 0

    def text(end: int) -> Iterator[_Item]:
        if end > at:
            yield _Item(_unescaped(markup[at:end]), "", ())

    for match in _TAG.finditer(markup):
        name = match["name"]
        if name not in tags:
            continue
        stack[-1][1].extend(text(match.start()))
        at = match.end()
        if match["closes"]:
            opened, inside = stack.pop()
            if opened != name:
                raise DragomanError(f"</{name}> closes what is not open", "verify_failed")
            stack[-1][1].append(_Item("", name, tuple(inside)))
            continue
        if name not in missing:
            raise DragomanError(f"<{name}> stands in the translation twice", "verify_failed")
        missing.remove(name)
        if tags[name].nodes[0].kind == "object":
            stack[-1][1].append(_Item("", name, ()))
        else:
            stack.append((name, []))
    stack[-1][1].extend(text(len(markup)))
    if missing or len(stack) > 1:
        lost = sorted(missing)[0] if missing else f"/{stack[-1][0]}"
        raise DragomanError(f"<{lost}> is missing in the translation", "verify_failed")
    return tuple(stack[0][1])


class _Rebuilding:
    """One translation on its way back into nodes."""

    def __init__(
        self, text: str, tags: dict[str, _Piece], levels: dict[str, _Level], spelling: Spelling
    ) -> None:
        self._text, self._tags, self._levels, self._spelling = text, tags, levels, spelling
        self._used: set[Span] = set()
        self._keys = {node.key[1] for level in levels.values() for node in level.nodes if node.key}

    def level(self, tag: str, items: Sequence[_Item]) -> str:
        """The nodes of the paragraph, or of the inside of an element."""
        level = self._levels[tag]
        return self._joined(level.nodes, list(self._emitted(level, items)))

    def _emitted(self, level: _Level, items: Sequence[_Item]) -> Iterator[str]:
        """Each item as nodes: tags, and before each and behind the last what stands bare."""
        waiting = ""
        tags = 0
        for item in items:
            if not item.tag:
                waiting += item.text
                continue
            yield from self._bare(level, tags, waiting)
            yield from self._tagged(item)
            waiting = ""
            tags += 1
        yield from self._bare(level, tags, waiting)

    def _bare(self, level: _Level, tags: int, text: str) -> Iterator[str]:
        """Bare text goes to the piece behind as many tags, else to a copy of one, else to a plain copy."""
        piece = level.bare.get(tags)
        if piece and (text or not piece.text):
            yield from self._texts(piece, text)
        elif text:
            others = [node for each in (*level.bare.values(), *self._tags.values()) for node in each.nodes]
            node = next((node for node in others if node.kind == "text"), None)
            if node is None:
                raise DragomanError(f"there is no text node to put {text[:40]!r} into", "verify_failed")
            yield self._copy(node, text, copied=True, plain=not level.bare)

    def _tagged(self, item: _Item) -> Iterator[str]:
        piece = self._tags[item.tag]
        node = piece.nodes[0]
        if node.kind == "object":
            yield self._text[node.span.start : node.span.end]
        elif node.kind == "element":
            inside = self.level(item.tag, item.items)
            first, last = node.nodes[0].span.start, node.nodes[-1].span.end
            yield self._text[node.span.start : first] + inside + self._text[last : node.span.end]
        else:
            for part in item.items:
                yield from self._tagged(part) if part.tag else self._texts(piece, part.text)

    def _texts(self, piece: _Piece, text: str) -> Iterator[str]:
        """A piece's nodes: all of them where its text is still the same, else the first with the text."""
        if text == piece.text and piece.nodes[0].span not in self._used:
            self._used.add(piece.nodes[0].span)
            yield from (self._text[node.span.start : node.span.end] for node in piece.nodes)
        else:
            yield self._copy(piece.nodes[0], text)

    def _copy(self, node: Node, text: str, copied: bool = False, plain: bool = False) -> str:
        """A node with another text, or another node like it, which needs a key of its own."""
        changes = {node.value: self._spelling.quoted(text)} if text != node.text else {}
        if plain:
            changes |= dict(node.plain)
        if not copied and node.span not in self._used:
            self._used.add(node.span)
        elif node.key:
            changes[node.key[0]] = self._spelling.quoted(self._fresh(node.key[1]))
        start = node.span.start
        edits = [
            Edit(Span(span.start - start, span.end - start), raw, "value")
            for span, raw in sorted(changes.items(), key=lambda change: change[0].start)
        ]
        return splice(self._text[start : node.span.end], edits)

    def _fresh(self, key: str) -> str:
        fresh = next(each for number in count(1) if (each := f"{key}-{number}") not in self._keys)
        self._keys.add(fresh)
        return fresh

    def _joined(self, nodes: Sequence[Node], emitted: Sequence[str]) -> str:
        """With what stands between the nodes in the file, or what stands before the only one."""
        between = [self._text[one.span.end : other.span.start] for one, other in pairwise(nodes)]
        if not between:
            start = end = nodes[0].span.start
            while self._text[start - 1] in " \t\r\n":
                start -= 1
            between = [f",{self._text[start:end]}"]
        joined = list(emitted[:1])
        for index, raw in enumerate(emitted[1:]):
            joined += (between[min(index, len(between) - 1)], raw)
        return "".join(joined)
