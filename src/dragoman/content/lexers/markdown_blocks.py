"""Markdown's blocks by place: every heading, paragraph, list item, cell, quote and footnote of prose.

Promises exact spans, one a line, without the marks of the block (quote marks, indentation, task boxes,
heading attributes, callout types), and keys that stay while only words change: the path of headings by
number, the kind of block, and its ordinal there. Blocks of HTML give the texts in them. Code and link
definitions are no blocks. Knows nothing of front matter or translation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin

from dragoman.content.lexers import html_blocks
from dragoman.content.lexers.markdown_masking import Piece
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

Kind = Literal["prose", "line", "heading", "cell"]
"""What may stand there: several lines, one line, a line behind `#`, or a cell of a table."""

_NESTING_MAX = 100
_NAMES = {
    "heading_open": "h",
    "list_item_open": "li",
    "blockquote_open": "q",
    "th_open": "td",
    "td_open": "td",
    "dt_open": "dt",
    "dd_open": "dd",
}
_NOTES = {
    "p": "",
    "h": "heading",
    "li": "list item",
    "q": "quote",
    "td": "table cell",
    "dt": "term",
    "dd": "definition",
    "fn": "footnote",
}
_LEAVES = frozenset(("inline", "fence", "code_block", "html_block", "hr"))
_TASK = re.compile(r"\[[ xX]\][ \t]+")
_CALLOUT = re.compile(r"\[![\w-]+\][-+]?[ \t]*")
_CLOSING_MARKS = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_ATTRIBUTES = re.compile(r"[ \t]+\{[#.:/][^{}]*\}[ \t]*$")
_ROW_START = re.compile(r"(?:[ \t>]|(?:[-+*]|\d{1,9}[.)])[ \t])*")
_BRACKETS = re.compile(r"\\.|(?<!`)(?P<run>`+)(?!`).*?(?<!`)(?P=run)(?!`)|<[^<>\s][^<>]*>|[\[\]]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """One block. `text` is what a translator sees; `spans` are its lines in the file."""

    key: str
    kind: Kind
    text: str
    spans: tuple[Span, ...]
    note: str
    html: html_blocks.Place | None = None
    """The same place as HTML sees it, in a block of HTML."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """All blocks in file order; the titles of link definitions by label, and the lines that may hold them."""

    places: list[Place]
    titles: Mapping[str, str] = field(default_factory=dict)
    free: frozenset[int] = frozenset()


def blocks(text: str, pieces: Sequence[Piece], mdx: bool) -> Blocks:
    """All blocks of the pieces, whose lines are indexes of pieces."""
    tokens, titles = _parsed(text, pieces, mdx, inline=False)
    rows = {row for token in tokens if token.type in _LEAVES for row in range(*_rows(token))}
    free = frozenset(range(len(pieces))) - rows
    return Blocks(list(_Walk(text, pieces, frozenset(titles)).places(tokens)), titles, free)


def explicit_references(text: str, labels: Collection[str]) -> str:
    """`[text][]` and `[text]` as `[text][text]` where the label is defined, so that the text may change."""
    opened: list[int] = []
    nesting: set[int] = set()
    label_start = -1
    parts: list[str] = []
    kept = 0
    for match in _BRACKETS.finditer(text):
        if match[0] == "[":
            nesting.update(opened[-1:])
            opened.append(match.start())
        if match[0] != "]" or not opened:
            continue
        start, end = opened.pop(), match.end()
        if start == label_start:
            continue  # this pair is the label of the one before it
        label = " ".join(text[start + 1 : match.start()].split())
        refers = start not in nesting and normalizeReference(label) in labels
        collapsed = text.startswith("[]", end)
        label_start = end if text.startswith("[", end) else -1
        if refers and (collapsed or not text.startswith(("[", "("), end)):
            parts += [text[kept : end + collapsed], label if collapsed else f"[{label}]"]
            kept = end + collapsed
    return "".join((*parts, text[kept:]))


class _Walk:
    """Down the tokens, with the containers and the headings that one stands in."""

    def __init__(self, text: str, pieces: Sequence[Piece], labels: frozenset[str]) -> None:
        self._text = text
        self._pieces = pieces
        self._labels = labels
        self._containers: list[Token] = []
        self._headings: list[tuple[int, int]] = []
        self._ordinals: Counter[str] = Counter()
        self._cell_ends: dict[int, int] = {}

    def places(self, tokens: Sequence[Token]) -> Iterator[Place]:
        """The blocks, in file order."""
        for token in tokens:
            if token.nesting > 0:
                self._containers.append(token)
                if token.type == "heading_open":
                    self._descend(int(token.tag[1:]))
            elif token.nesting < 0:
                self._containers.pop()
            elif token.type == "inline" and token.content:
                yield from self._blocks(token)
            elif token.type == "html_block":
                yield from self._html(token)

    def _html(self, token: Token) -> Iterator[Place]:
        """The texts of a block of HTML; one whose lines have marks of quotes before them stays as it is."""
        rows = range(*_rows(token))
        start, end = self._pieces[rows[0]].start, self._pieces[rows[-1]].end
        if self._text[start:end].split() != token.content.split():
            return
        stem = f"{self._section()}/html"
        self._ordinals[stem] += 1
        prefix = f"{stem}{self._ordinals[stem]}"
        for place in html_blocks.page(self._text, start, end).places:
            held = tuple(replace(inner, key=f"{prefix}/{inner.key}") for inner in place.held)
            whole = replace(place, key=f"{prefix}/{place.key}", held=held)
            yield Place(whole.key, "prose", whole.text, (whole.span,), whole.note, whole)

    def _descend(self, level: int) -> None:
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        section = f"{self._section()}/h"
        self._ordinals[section] += 1
        self._headings.append((level, self._ordinals[section]))

    def _section(self) -> str:
        return ".".join(str(ordinal) for _, ordinal in self._headings) or "0"

    def _blocks(self, token: Token) -> Iterator[Place]:
        """One block of an inline token; two where a callout's title stands above its text."""
        parent = self._containers[-1]
        kind, name = _kind_of(parent), self._name()
        spans = [self._cell(token)] if kind == "cell" else self._lines(token, parent)
        if any(self._pieces[index].alone for index in range(*_rows(token))):
            kind = "line"
        groups: list[tuple[Kind, list[Span]]] = [(kind, spans)]
        if name == "li":
            spans[0] = self._behind(_TASK, spans[0])
        elif name == "q" and _CALLOUT.match(self._text, spans[0].start, spans[0].end):
            groups = [("line", [self._behind(_CALLOUT, spans[0])]), (kind, spans[1:])]
        for group_kind, group in groups:
            lines = [span for span in group if span.start < span.end]
            if lines:
                yield self._place(group_kind, name, lines)

    def _place(self, kind: Kind, name: str, spans: list[Span]) -> Place:
        if name == "h":
            key = f"{self._section()}/h"
        else:
            stem = f"{self._section()}/{name}" if "[" not in name else f"{name}/"
            self._ordinals[stem] += 1
            key = f"{stem}{self._ordinals[stem]}"
        shown = "\n".join(self._text[span.start : span.end] for span in spans)
        if kind == "cell":
            shown = shown.replace("\\|", "|")
        note = _NOTES[name.partition("[")[0]]
        return Place(key, kind, explicit_references(shown, self._labels), tuple(spans), note)

    def _name(self) -> str:
        """What kind of block this is, by the innermost container that says so."""
        for token in reversed(self._containers):
            if token.type == "footnote_reference_open":
                return f"fn[{token.meta['label']}]"
            if token.type in _NAMES:
                return _NAMES[token.type]
        return "p"

    def _behind(self, pattern: re.Pattern[str], span: Span) -> Span:
        match = pattern.match(self._text, span.start, span.end)
        return Span(match.end(), span.end) if match else span

    def _lines(self, token: Token, parent: Token) -> list[Span]:
        """The place of each line of a token's content: the end of its piece, but for closing marks."""
        contents = token.content.split("\n")
        spans: list[Span] = []
        for row, content in enumerate(contents, start=_rows(token)[0]):
            piece = self._pieces[row]
            raw = self._text[piece.start : piece.end]
            if parent.markup.startswith("#"):
                raw = _CLOSING_MARKS.sub("", raw)
            if row + 1 == _rows(token)[0] + len(contents):
                raw = raw.rstrip()
            core = content.lstrip(" \t")
            if not raw.endswith(core):
                raise DocumentError(
                    f"this line cannot be found again: {core!r}", line_at(self._text, piece.start)
                )
            end = piece.start + len(raw)
            spans.append(Span(end - len(core), end))
        if parent.type == "heading_open":
            shown = self._text[spans[-1].start : spans[-1].end]
            spans[-1] = Span(spans[-1].start, spans[-1].start + len(_ATTRIBUTES.sub("", shown)))
        return spans

    def _cell(self, token: Token) -> Span:
        """The next cell of a row with this content; behind the one before it."""
        row = _rows(token)[0]
        piece = self._pieces[row]
        start = self._cell_ends.get(row, piece.start)
        if start == piece.start and (match := _ROW_START.match(self._text, start, piece.end)):
            start = match.end()
        raw = token.content.replace("|", "\\|")
        at = self._text.find(raw, start, piece.end)
        if at < 0:
            raise DocumentError(f"this cell cannot be found again: {raw!r}", line_at(self._text, piece.start))
        self._cell_ends[row] = at + len(raw)
        return Span(at, at + len(raw))


def _kind_of(parent: Token) -> Kind:
    if parent.type in ("th_open", "td_open"):
        return "cell"
    if parent.type == "heading_open":
        return "heading" if parent.markup.startswith("#") else "line"
    return "line" if parent.type == "dt_open" else "prose"


def _rows(token: Token) -> tuple[int, int]:
    """The pieces that a token covers; a definition list's terms forget their end."""
    start, end = token.map or (0, 0)
    return start, max(end, start + 1)


def shape(text: str, pieces: Sequence[Piece], mdx: bool) -> tuple[list[str], Counter[str]]:
    """What no translation may change: the blocks in their order, and what stands in them beside words."""
    blocks: list[str] = []
    inlines: Counter[str] = Counter()
    for token in _parsed(text, pieces, mdx, inline=True)[0]:
        if token.type == "inline":
            inlines.update(_beside_words(token.children or ()))
        else:
            code = token.content if token.type in ("fence", "code_block") else ""
            if token.type == "html_block":
                code = _html_shape(token.content)
            blocks.append(
                " ".join((token.type, token.tag, token.markup, token.info, f"{token.attrs or ''}", code))
            )
    return blocks, inlines


def _html_shape(content: str) -> str:
    """A block of HTML without its words."""
    return str(sorted(html_blocks.skeleton(content, html_blocks.page(content)).items()))


def _beside_words(children: Sequence[Token]) -> Iterator[str]:
    for child in children:
        if child.type in ("link_open", "image"):
            yield f"link to {child.attrGet('href') or child.attrGet('src')}"
        elif child.type in ("code_inline", "html_inline"):
            yield child.content
        elif child.type == "footnote_ref":
            yield f"footnote {child.meta['label']}"


def _parser(mdx: bool, inline: bool) -> MarkdownIt:
    """CommonMark with GFM's tables, footnotes, definition lists; MDX has no indented code and no HTML."""
    markdown = MarkdownIt("commonmark", {"maxNesting": _NESTING_MAX}).enable(["table", "strikethrough"])
    markdown.use(footnote_plugin, inline=False, move_to_end=False).use(deflist_plugin)
    if mdx:
        markdown.disable(["code", "html_block"])
    if not inline:
        markdown.core.ruler.disable("inline")
    return markdown


def _parsed(
    text: str, pieces: Sequence[Piece], mdx: bool, inline: bool
) -> tuple[list[Token], dict[str, str]]:
    """The tokens of the pieces, and the links that the file defines: label to title, often an empty one."""
    env: dict[str, dict[str, dict[str, str]]] = {}
    tokens = _parser(mdx, inline).parse("\n".join(text[piece.start : piece.end] for piece in pieces), env)
    return tokens, {label: link.get("title", "") for label, link in env.get("references", {}).items()}
