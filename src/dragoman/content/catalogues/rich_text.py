"""Documents of tree editors (JSON): which of their parts are texts, how these are written back and proved.

Promises one block for each run of inline nodes, shown as one text with tags (`lexers/inline_nodes`), and one
for each string of a name that is spoken (`alt`, `caption`, `title` …); everything else stays byte for byte.
What an inline object says of itself is not seen. What a node is, each editor's dialect says.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from dragoman.content.lexers.inline_nodes import Markup, Node, words
from dragoman.content.lexers.json_tokens import Value, scan, spelling_of
from dragoman.content.spans import splice
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Span, Text, Writing

SPOKEN = frozenset(
    ("alt", "altText", "ariaLabel", "buttonText", "caption", "content", "cta", "description", "excerpt",
     "heading", "headline", "label", "linkText", "message", "metaDescription", "metaTitle", "placeholder",
     "seoDescription", "seoTitle", "subheading", "subtitle", "summary", "text", "title")
)  # fmt: skip
"""Names of members whose strings are texts, in any editor's documents."""

CODE = "code"
"""The name of a text node that is code: it is kept, and shown as one tag."""

_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*://|mailto:|tel:|/|#|\.{1,2}/)\S*|\S+@\S+\.\S+", re.IGNORECASE)


class Seen(NamedTuple):
    """What a parsed text node shows: its text, its style (empty where plain), and whether that is code."""

    text: str
    style: str
    is_code: bool


@dataclass(frozen=True)
class Dialect:
    """How one editor writes its trees, once for our scanner and once for the standard library's reader."""

    kind: str
    """The member that says what a node is."""
    children: str
    """The member that holds a node's nodes."""
    elements: Collection[str]
    """Kinds of inline nodes that hold others, such as links."""
    opaque: Collection[str]
    """Kinds of blocks without texts, such as code."""
    inline: Callable[[str, Value, Value], Node | None]
    """What a child is, of its parent, in the file's text: an inline node, or None for a block."""
    seen: Callable[[Mapping[str, Any]], Seen | None]
    """What a parsed node shows; None where it is no text node."""
    key: str = ""
    """The member that names an item of an array for good."""
    spoken: Collection[str] = SPOKEN


class RichTextFormat:
    """What the formats of tree editors share: a dialect, and what a file shows near its beginning."""

    name: str
    shown: re.Pattern[str]
    dialect: Dialect
    extensions: tuple[str, ...] = (".json",)
    whole = True
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """JSON that shows a node of the editor's."""
        return path.lower().endswith(self.extensions) and bool(self.shown.search(head))

    def charset(self, data: bytes) -> str | None:
        """JSON is Unicode."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """All texts, in file order."""
        return read(self.name, text, role, locale, self.dialect)

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """The source with its texts replaced; `base` is the source."""
        return write(base, translations, lambda text: self.read(text, "target", locale))

    def second_opinion(self, before: Document, after: Document) -> str:
        """The standard library must find our texts, all marks and everything that is no text."""
        return complaint(before, after, self.dialect)


@dataclass(frozen=True, slots=True)
class _Slot:
    block: Block
    span: Span
    markup: Markup | None = None


def read(name: str, text: str, role: Role, locale: str, dialect: Dialect) -> Document:
    """All texts of a document, in file order."""
    root = scan(text)
    slots = {slot.block.key: slot for slot in _slots(text, root, "", dialect)}
    if root.kind not in ("object", "array"):
        raise DocumentError("a document is an object or an array, not a single value", line=1)
    blocks = tuple(slot.block for slot in slots.values())
    return Document(name, text, blocks, role, locale, extras={"slots": slots})


def write(base: Document, translations: Mapping[str, Text], reread: Callable[[str], Document]) -> Writing:
    """The source with its texts replaced; tags that moved are numbered anew where it is read again."""
    spelling = spelling_of(base.text)
    edits: list[Edit] = []
    asked: dict[str, str] = {}
    slots = cast(Mapping[str, _Slot], base.extras["slots"])
    for key, slot in slots.items():
        value = translations.get(key)
        if value is None:
            continue
        if not isinstance(value, str):
            raise DragomanError(f"{key!r} is one text, and its translation has plural forms", "verify_failed")
        asked[key] = value
        if value != slot.block.text:
            markup = slot.markup
            raw = markup.rebuilt(base.text, value, spelling) if markup else spelling.inner(value)
            edits.append(Edit(slot.span, raw, "value", key))
    text = splice(base.text, edits)
    found = {block.key: block.text for block in reread(text).blocks}
    for key, value in asked.items():
        if _words(slots[key].block, found.get(key, "")) != _words(slots[key].block, value):
            raise DragomanError(f"{key!r} would read back as another text", "verify_failed")
    return Writing(text, tuple(edits), (), {key: found[key] for key in asked})


def complaint(before: Document, after: Document, dialect: Dialect) -> str:
    """What the standard library's reader holds against `after`; empty where nothing."""
    old, new = (_Facts(json.loads(document.text), dialect) for document in (before, after))
    if "".join(new.words) != "".join("".join(_words(block, block.text).split()) for block in after.blocks):
        return "json finds other texts"
    for changed in (*(old.facts - new.facts), *(new.facts - old.facts)):
        return f"something that is no text would change: {changed[:120]}"
    if old.styles - new.styles or new.styles - old.styles - {""}:
        return "a format of a text would be lost or added"
    return ""


def _words(block: Block, text: str) -> str:
    return words(text) if block.syntax == "html" else text


def _slots(text: str, value: Value, path: str, dialect: Dialect) -> Iterator[_Slot]:
    """The texts at and below a value."""
    if _string(value, dialect.kind) in dialect.opaque:
        return
    names = _names(value, dialect)
    for member, name in zip(value.members, names, strict=True):
        key = f"{path}/{name}" if path else name
        inside = member.value
        if inside.kind == "string":
            if value.kind == "object" and member.name in dialect.spoken and is_spoken(inside.text):
                span = Span(inside.start + 1, inside.end - 1)
                yield _Slot(Block(key, inside.text, (span,), note=member.name), span)
        elif member.name == dialect.children and inside.kind == "array" and value.kind == "object":
            yield from _runs(text, value, inside, key, dialect)
        else:
            yield from _slots(text, inside, key, dialect)


def _runs(text: str, parent: Value, children: Value, path: str, dialect: Dialect) -> Iterator[_Slot]:
    """The children of a node: runs of inline nodes are texts, and blocks among them are looked into."""
    found = [dialect.inline(text, child.value, parent) for child in children.members]
    if not any(node and (node.kind != "object" or node.name == CODE) for node in found):
        yield from _slots(text, children, path, dialect)
        return
    names = _names(children, dialect)
    run: list[Node] = []
    runs = 0
    for index, node in enumerate((*found, None)):
        if node:
            run.append(node)
            continue
        markup = Markup(run)
        if words(markup.text).strip():
            runs += 1
            span = Span(run[0].span.start, run[-1].span.end)
            key = path if runs == 1 else f"{path}#{runs}"
            yield _Slot(Block(key, markup.text, (span,), syntax="html", note=_kind(parent)), span, markup)
        run = []
        if index < len(found):
            child = children.members[index]
            yield from _slots(text, child.value, f"{path}/{names[index]}", dialect)


def _names(value: Value, dialect: Dialect) -> list[str]:
    """How a value's members are called in keys: by name, items by their own key where each has one."""
    names = [member.name.replace("~", "~0").replace("/", "~1") for member in value.members]
    if value.kind == "array" and dialect.key:
        keys = [_string(member.value, dialect.key) for member in value.members]
        if all(keys) and len(set(keys)) == len(keys):
            return [key.replace("~", "~0").replace("/", "~1") for key in keys]
    return names


def _string(value: Value, name: str) -> str:
    found = value.member(name) if value.kind == "object" else None
    return found.value.text if found else ""


def _kind(parent: Value) -> str:
    """What a translator is told of a paragraph: its kind, where it has a telling one."""
    for name in ("listItem", "style", "tag", "nodeType", "type"):
        if (found := _string(parent, name)) not in ("", "normal", "block"):
            return found
    return ""


def is_spoken(text: str) -> bool:
    """Whether a string is for people: it holds a letter and is no address."""
    return any(map(str.isalpha, text)) and not _ADDRESS.fullmatch(text.strip())


class _Facts:
    """What a parsed document holds: the words that are seen, the styles of texts, and all else as facts."""

    def __init__(self, root: Any, dialect: Dialect) -> None:
        self.words: list[str] = []
        self.styles: set[str] = set()
        self.facts: Counter[str] = Counter()
        self._dialect = dialect
        self._walk(root, "", inline=False)

    def _walk(self, value: Any, path: str, inline: bool) -> None:
        """`inline`: among texts, where only texts and what holds them are looked into."""
        if isinstance(value, list):
            inline = path.endswith(f"/{self._dialect.children}") and any(map(self._is_inline, value))
            for item in value:
                self._walk(item, f"{path}[]", inline)
        elif not isinstance(value, dict) or value.get(self._dialect.kind) in self._dialect.opaque:
            self._keep(value, path)
        elif seen := self._dialect.seen(value):
            if seen.is_code:
                self._keep(value, path)
            elif seen.text.strip():
                self.words.append("".join(seen.text.split()))
                self.styles.add(seen.style)
        else:
            silent = inline and (self._is_inline(value) or self._dialect.children not in value)
            for name, each in value.items():
                where = f"{path}/{name}"
                if silent and name != self._dialect.children:
                    self._keep(each, where)
                elif isinstance(each, str) and name in self._dialect.spoken and is_spoken(each):
                    self.words.append("".join(each.split()))
                else:
                    self._walk(each, where, inline=False)

    def _keep(self, value: Any, path: str) -> None:
        self.facts[f"{path}: {json.dumps(value, sort_keys=True)}"] += 1

    def _is_inline(self, value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        return bool(self._dialect.seen(value)) or value.get(self._dialect.kind) in self._dialect.elements
