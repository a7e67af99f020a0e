"""YAML seen as a tree of places: where each key and value stands, and which lines are a pair's own.

Promises exact spans without anchors and tags, keys by their raw text (`yes:` is the key `yes`), aliases as
aliases: what they stand for is located once, where it is anchored. Reading is linear and never recurses into
an alias, so that there is no bomb. Knows nothing of translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

STRING_TAG = "tag:yaml.org,2002:str"
BOOLEAN_TAG = "tag:yaml.org,2002:bool"
NULL_TAG = "tag:yaml.org,2002:null"

_DEPTH_MAX = 100
_PROPERTY = re.compile(
    r"(?:&[^\s,\[\]{}]+|![^\s,\[\]{}]*)(?:[ \t]+|[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n|\r)[ \t]*)?"
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_COMMENT = re.compile(r"[ \t]*#([^\r\n]*)")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER: Any = yaml.resolver.Resolver()

Kind = Literal["scalar", "mapping", "sequence", "alias"]


@dataclass(slots=True)
class Node:
    """A value. `span` is its text without properties; of a mapping or sequence, from first to last."""

    kind: Kind
    span: Span
    start: int
    """Where its anchor and tag begin, if it has any."""
    tag: str = ""
    value: str = ""
    """Of a scalar what it reads as, of an alias the name."""
    style: str = ""
    """How a scalar is spelled: `'`, `"`, `|`, `>`, or empty for plain."""
    flow: bool = False
    """Whether a mapping or sequence is written in brackets."""
    """Of a scalar: whether it stands in such brackets."""
    anchor: str = ""
    pairs: list[Pair] = field(default_factory=list)
    keyed: bool = False
    """Whether a sequence's items go by names of their own, and not by their places; also of such an item."""

    @property
    def is_text(self) -> bool:
        """Whether YAML reads it as a string."""
        return self.kind == "scalar" and self.tag == STRING_TAG

    @property
    def text(self) -> str:
        """A scalar's value without the line ends that close a block scalar."""
        return self.value.rstrip("\n") if self.style in ("|", ">") else self.value

    @property
    def is_entry(self) -> bool:
        """Whether it is an item that goes by a name."""
        return self.keyed and self.kind == "mapping"

    def get(self, name: str) -> Pair | None:
        """The pair of this name."""
        return next((pair for pair in self.pairs if pair.name == name), None)

    def walk(self) -> Iterator[Node]:
        """The node itself and all below it."""
        yield self
        for pair in self.pairs:
            yield from pair.value.walk()


@dataclass(slots=True)
class Pair:
    """A key and its value; in a sequence the name is the index, and there is no key."""

    name: str
    key: Node | None
    value: Node
    before: int
    """Where the content that precedes it ends."""

    @property
    def start(self) -> int:
        """Where its key begins; in a sequence its value."""
        return self.key.start if self.key else self.value.start


def parse(text: str, first_line: int = 1) -> Node | None:
    """The root of the only document in a text; None where there is nothing but comments.

    Raises `DocumentError`, its line counted from `first_line`, for what is not YAML, a second document, a key
    that stands twice, an alias inside of its own anchor, and too deep nesting.
    """
    try:
        return _Reading(text).root()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        problem = str(error.problem or error.context)
        deep = "nesting depth" in problem  # libyaml's own bound
        why = "this YAML is nested too deeply" if deep else f"this is not YAML: {problem}"
        raise DocumentError(why, first_line + line) from error
    except yaml.reader.ReaderError as error:
        line = line_at(text, min(error.position, len(text))) - 1
        raise DocumentError(f"this is not YAML: {error.reason}", first_line + line) from error
    except UnicodeEncodeError as error:
        line = line_at(text, error.start) - 1
        raise DocumentError("half of a surrogate pair is no character", first_line + line) from error
    except _Refused as error:
        raise DocumentError(error.told, first_line + line_at(text, error.at) - 1) from error


def region(text: str, pair: Pair) -> Span | None:
    """The lines that are a pair's own, with the comments right above and the blank lines above those.

    None where another pair shares its first line, as in brackets or behind a dash. The regions of neighbours
    touch or leave detached comments between them.
    """
    line = line_start(text, pair.start)
    own = text[line : pair.start].strip(" \t")
    if own.strip("?- \t") or (pair.key and "-" in own) or pair.before > line:
        return None
    start = line
    for above in _lines_above(text, pair.before, line):
        if not _COMMENT.match(text, above):
            break
        start = above
    for above in _lines_above(text, pair.before, start):
        if text[above:start].strip():
            break
        start = above
    return Span(start, line_end(text, pair.value.span.end))


def notes(text: str, pair: Pair) -> str:
    """The comments right above a pair and at the end of its first line."""
    line = line_start(text, pair.start)
    found: list[str] = []
    for above in _lines_above(text, pair.before, line):
        comment = _COMMENT.match(text, above)
        if not comment:
            break
        found.append(comment[1].strip())
    found.reverse()
    value = pair.value
    if value.style in ("|", ">"):
        behind = re.compile(r"[|>][-+\d]*(?=[ \t])").match(text, value.span.start)
        at = behind.end() if behind else -1
    else:
        at = value.span.end if value.kind == "scalar" else -1
    if at >= 0 and text[at : at + 1] in (" ", "\t") and (comment := _COMMENT.match(text, at)):
        found.append(comment[1].strip())
    return "\n".join(found).strip()


def column(text: str, node: Node) -> int:
    """How far in the pairs of a block stand; of a sequence, their dashes."""
    if not node.pairs:
        return 0
    pair = node.pairs[0]
    line = line_start(text, pair.start)
    lead = text[line : pair.start]
    return len(lead) if pair.key else len(lead) - len(lead.lstrip(" "))


def line_start(text: str, at: int) -> int:
    """The start of the line that an offset is in."""
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def line_end(text: str, at: int) -> int:
    """The start of the next line; the offset itself where a line starts there already."""
    if at and text[at - 1] in "\r\n":
        return at
    match = _LINE.match(text, at)
    return match.end() if match else len(text)


def _lines_above(text: str, floor: int, line: int) -> Iterator[int]:
    """The starts of the lines above one, upwards, as far as nothing else stands there."""
    floor = line_end(text, floor) if floor else 0
    while line > floor:
        at = line - 2 if text.startswith("\r\n", line - 2) else line - 1
        line = line_start(text, at)
        if line >= floor:
            yield line


class _Refused(Exception):
    def __init__(self, told: str, at: int) -> None:
        self.told = told
        self.at = at


@dataclass(slots=True)
class _Open:
    """A mapping or sequence that has not ended."""

    node: Node
    before: int
    names: set[str] = field(default_factory=set)
    key: tuple[Node, int] | None = None
    """The key that waits for its value, and where the content before it ends."""


class _Reading:
    """One text under the parser's events."""

    def __init__(self, text: str) -> None:
        if text.startswith("\ufeff"):
            raise _Refused("a second byte order mark stands at the beginning", 0)
        self._text = text
        self._last = 0
        """Where the content read so far ends."""
        self._stack: list[_Open] = []
        self._anchors: set[str] = set()
        self._root: Node | None = None

    def root(self) -> Node | None:
        documents = 0
        events: Iterator[Any] = yaml.parse(self._text, Loader=_LOADER)
        for event in events:
            if getattr(event, "anchor", None) and not isinstance(event, yaml.AliasEvent):
                self._anchors.add(event.anchor)
            start, end = event.start_mark.index, event.end_mark.index
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _Refused("a second document begins here: a file may hold one", start)
                self._last = end if event.explicit else self._last
            elif isinstance(event, yaml.ScalarEvent):
                self._place(self._scalar(event), self._last, end)
            elif isinstance(event, yaml.AliasEvent):
                self._place(self._alias(event), self._last, end)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end(end)
        root = self._root
        return None if root is None or root.tag == NULL_TAG else root

    def _scalar(self, event: Any) -> Node:
        start, end = event.start_mark.index, event.end_mark.index
        tag = event.tag
        if tag is None or tag == "!":
            tag = _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
        flow = bool(self._stack) and self._stack[-1].node.flow
        span = Span(self._behind_properties(event, end), end)
        return Node("scalar", span, start, tag, event.value, event.style or "", flow, event.anchor or "")

    def _alias(self, event: Any) -> Node:
        start = event.start_mark.index
        if any(opened.node.anchor == event.anchor for opened in self._stack):
            raise _Refused(f"the alias *{event.anchor} stands inside of its own anchor", start)
        if event.anchor not in self._anchors:
            raise _Refused(f"nothing before is anchored as &{event.anchor}", start)
        return Node("alias", Span(start, event.end_mark.index), start, value=event.anchor)

    def _behind_properties(self, event: Any, end: int) -> int:
        at: int = event.start_mark.index
        for _ in filter(None, (event.anchor, event.tag)):
            found = _PROPERTY.match(self._text, at, end)
            at = found.end() if found else at
        return at

    def _begin(self, event: Any) -> None:
        start = event.start_mark.index
        if len(self._stack) >= _DEPTH_MAX:
            raise _Refused(f"this is nested more than {_DEPTH_MAX} deep", start)
        own = self._behind_properties(event, len(self._text))
        kind: Kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence"
        node = Node(kind, Span(own, own), start, flow=bool(event.flow_style), anchor=event.anchor or "")
        self._stack.append(_Open(node, self._last))

    def _end(self, end: int) -> None:
        opened = self._stack.pop()
        node = opened.node
        # the end of a block, as the parser tells it, is where the next thing begins
        node.span = Span(node.span.start, end if node.flow else max(self._last, node.span.start))
        self._place(node, opened.before, node.span.end)

    def _place(self, node: Node, before: int, end: int) -> None:
        """Put a finished node where it belongs: the root, an item, a key, or a key's value."""
        self._last = max(self._last, end)
        if not self._stack:
            self._root = node
            return
        parent = self._stack[-1]
        if parent.node.kind == "sequence":
            parent.node.pairs.append(Pair(str(len(parent.node.pairs)), None, node, before))
        elif parent.key is None:
            if node.kind != "scalar":
                raise _Refused("a key must be a single text", node.start)
            if node.value in parent.names:
                raise _Refused(f"the key {node.value!r} stands here a second time", node.start)
            parent.names.add(node.value)
            parent.key = node, before
        else:
            key, before = parent.key
            parent.key = None
            parent.node.pairs.append(Pair(key.value, key, node, before))
