"""The pre-pass over Markdown: what its parser would misread is hidden from it, line by line.

Parsers of CommonMark swallow directives, shortcodes, JSX and admonitions into the prose around them. Here
they become blank lines, and what stands between them becomes blocks of its own. Promises pieces that are
slices of the text, in order and apart, each within one line: the parser sees nothing that does not stand in
the file. Knows nothing of translation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dragoman.content.spans import line_spans
from dragoman.model.documents import Span

SHORTCODE = re.compile(r"\{\{[<%](?:(?!\{\{|\}\}).)*[>%]\}\}|\{%(?:(?!\{%|%\}).)*%\}", re.DOTALL)
"""Of Hugo (`{{< … >}}`, `{{% … %}}`), Liquid and Markdoc (`{% … %}`)."""

_OPAQUE = frozenset(("chem", "code", "comment", "highlight", "katex", "math", "mermaid", "plantuml", "raw"))
"""Shortcodes whose bodies are no prose."""

_NAME = re.compile(r"\{(?:\{[<%]\s*(?P<slash>/(?!\*))?|%-?\s*(?P<end>end|/)?)\s*(?P<name>[\w./-]*)")
_CONTAINER = re.compile(r"[ \t]*(?:>[ \t]*)*")
_FENCE = re.compile(r"(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*(?P<run>`{3,}(?=[^`]*$)|~{3,})")
_HIDDEN = re.compile(r":{3,}.*|-{2,}8<-{2,}.+|\{[.#:][^{}]*\}\s*")
_PAIRED = re.compile(r"(\$\$|-{2,}8<-{2,})\s*")
_FORMULA = re.compile(r"\$\$.+\$\$\s*")
_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]+\w|===[!+]?[ \t]+\"")
_MODULE = re.compile(r"(?:import|export)\s")
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w.:-]*|(?=>))")
_JSX_MARK = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|[{}>]")
_JSX_CHARS_MAX = 5_000
"""A tag or an expression that does not end within so many characters is none."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One line for the parser. `alone`: cut out of its line, and to stay on one."""

    start: int
    end: int
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Masked:
    """The lines as a parser may see them, and what was hidden that may hold words beside its code.

    `headers` are the lines that open directives and admonitions, `tags` the opening tags of JSX.
    """

    pieces: list[Piece]
    headers: list[Span]
    tags: list[Span]


def masked(text: str, start: int, mdx: bool) -> Masked:
    """The lines of a text from `start` on."""
    return _Masking(text, start, mdx).run()


def shortcode_name(raw: str) -> tuple[str, bool]:
    """A shortcode's name, and whether it closes one of that name."""
    match = _NAME.match(raw)
    return (match["name"], bool(match["slash"] or match["end"])) if match else ("", False)


@dataclass(slots=True)
class _Line:
    start: int
    end: int


class _Masking:
    """Walks down the lines; `_at` is the next one that has no piece yet."""

    def __init__(self, text: str, start: int, mdx: bool) -> None:
        self._text = text
        self._mdx = mdx
        self._lines = [_Line(start + at, start + end) for at, end, _ in line_spans(text[start:])]
        self._at = 0
        self._fence = ""
        self._fence_quoted = False
        self._pieces: list[Piece] = []
        self._headers: list[Span] = []
        self._tags: list[Span] = []
        names = (shortcode_name(match[0]) for match in SHORTCODE.finditer(text, start))
        self._closed = {name for name, closes in names if closes}

    def run(self) -> Masked:
        """Every line, masked or as it is."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            content = self._content_of(line)
            if self._in_fence(line, content) or not self._masked(line, content):
                self._pieces.append(Piece(line.start, line.end))
                self._at += 1
        return Masked(self._pieces, self._headers, self._tags)

    def _content_of(self, line: _Line) -> int:
        """Where a line begins behind its indentation and the marks of block quotes."""
        match = _CONTAINER.match(self._text, line.start, line.end)
        return match.end() if match else line.start

    def _in_fence(self, line: _Line, content: int) -> bool:
        """Whether a line belongs to a fenced code block, whose content is as it is."""
        body, quoted = self._text[content : line.end].strip(), ">" in self._text[line.start : content]
        if self._fence and (quoted or not self._fence_quoted):
            if len(body) >= len(self._fence) and set(body) == {self._fence[0]}:
                self._fence = ""
            return True
        match = _FENCE.match(body)
        self._fence, self._fence_quoted = (match["run"], quoted) if match else ("", False)
        return bool(match)

    def _masked(self, line: _Line, content: int) -> bool:
        """Mask what begins on this line, and step behind it."""
        if content == line.end:
            return False
        return (
            self._shortcodes(line, content)
            or self._directives(line, content)
            or (self._mdx and (self._module(line, content) or self._jsx(line, content)))
        )

    def _hide(self, last: int) -> None:
        """Blank all lines up to the one of index `last`; in a block quote its marks stay."""
        hidden = self._lines[self._at : last + 1]
        quoted = bool(hidden) and ">" in self._text[hidden[0].start : self._content_of(hidden[0])]
        for line in hidden:
            marks = self._text[line.start : self._content_of(line)].rstrip() if quoted else ""
            self._pieces.append(Piece(line.start, line.start + len(marks)))
        self._at = last + 1

    def _cut(self, start: int, end: int, alone: bool = False) -> None:
        """A part of the present line, apart from what was before or behind it."""
        line = self._lines[self._at]
        before = (Piece(start, start),) if start > line.start else ()
        behind = (Piece(end, end),) if end < line.end else ()
        self._pieces += (*before, Piece(start, end, alone), *behind)
        self._at += 1

    def _line_of(self, offset: int) -> int:
        """The index of the line that an offset lies in, from the present one on."""
        index = self._at
        while index + 1 < len(self._lines) and self._lines[index].end < offset:
            index += 1
        return index

    def _blank_from(self, offset: int) -> bool:
        return not self._text[offset : self._lines[self._line_of(offset)].end].strip()

    def _shortcodes(self, line: _Line, content: int) -> bool:
        """Lines of nothing but shortcodes, bodies that are no prose, and tags around the prose of a line."""
        at, last = content, None
        while match := SHORTCODE.match(self._text, at):
            last = self._body_end(match) or match
            at = last.end()
            while self._text[at : at + 1] in (" ", "\t"):
                at += 1
        index = self._line_of(at)
        if last and self._blank_from(at):
            self._hide(index)
            return True
        start = (
            at
            if last and self._stands_apart(last[0], self._text[at : self._lines[index].end])
            else line.start
        )
        end = self._without_closers(start, self._lines[index].end)
        if start == line.start and end == line.end:
            return False
        self._hide(index - 1)
        self._cut(start, end)
        return True

    def _body_end(self, opening: re.Match[str]) -> re.Match[str] | None:
        """The closing shortcode where the body between is no prose."""
        name, closes = shortcode_name(opening[0])
        code = (
            name in _OPAQUE
            or "code=true" in opening[0]
            or (name == "tabpane" and "text=true" not in opening[0])
        )
        if closes or not code or name not in self._closed:
            return None
        found = SHORTCODE.finditer(self._text, opening.end())
        return next((match for match in found if shortcode_name(match[0]) == (name, True)), None)

    def _stands_apart(self, raw: str, rest: str) -> bool:
        """Whether a shortcode in front of prose encloses it, rather than being one of its words."""
        name, closes = shortcode_name(raw)
        if closes or name not in self._closed:
            return closes
        closers = [
            match.end() for match in SHORTCODE.finditer(rest) if shortcode_name(match[0]) == (name, True)
        ]
        return not closers or closers[0] == len(rest.rstrip())

    def _without_closers(self, start: int, end: int) -> int:
        """The end of a line's prose in front of shortcodes that close what an earlier line opened."""
        found = list(SHORTCODE.finditer(self._text, start, end))
        names = [shortcode_name(match[0]) for match in found]
        while found and found[-1].end() == start + len(self._text[start:end].rstrip()):
            name, closes = names.pop()
            if not closes or (name, False) in names:
                break
            end = found.pop().start()
            end = start + len(self._text[start:end].rstrip())
        return end

    def _directives(self, line: _Line, content: int) -> bool:
        """Container directives, snippets, attribute lines, formulas; admonitions, whose body moves left."""
        body = self._text[content : line.end]
        if _HIDDEN.fullmatch(body) or _FORMULA.fullmatch(body):
            if body.startswith(":"):
                self._headers.append(Span(content, line.end))
            self._hide(self._at)
            return True
        if match := _PAIRED.fullmatch(body):
            later = range(self._at + 1, len(self._lines))
            ends = (
                i for i in later if self._text[self._lines[i].start : self._lines[i].end].strip() == match[1]
            )
            self._hide(next(ends, self._at))
            return True
        if _ADMONITION.match(body):
            self._headers.append(Span(content, line.end))
            self._hide(self._at)
            self._dedent(self._text[line.start : content])
            return True
        return False

    def _dedent(self, indent: str) -> None:
        """Take the indentation of an admonition's body off all lines that follow in it."""
        for line in self._lines[self._at :]:
            raw = self._text[line.start : line.end]
            if not raw.strip():
                continue
            if not raw.startswith((f"{indent}    ", f"{indent}\t")):
                return
            line.start += 1 if raw.startswith("\t") else 4

    def _module(self, line: _Line, content: int) -> bool:
        """`import` and `export` at the start of a block, to its end."""
        begins = not self._pieces or self._pieces[-1].start == self._pieces[-1].end
        if content > line.start or not begins or not _MODULE.match(self._text, content, line.end):
            return False
        last = self._at
        while last + 1 < len(self._lines) and not self._blank_line(last + 1):
            last += 1
        self._hide(last)
        return True

    def _blank_line(self, index: int) -> bool:
        return not self._text[self._lines[index].start : self._lines[index].end].strip()

    def _jsx(self, line: _Line, content: int) -> bool:
        """Lines of nothing but tags, expressions or comments, and a tag around the prose of a line."""
        at, first = content, None
        tags: list[Span] = []
        while (end := self._jsx_end(at)) > 0:
            first = first or self._text[at:end]
            if self._text.startswith("<", at) and not self._text.startswith(("</", "<!"), at):
                tags.append(Span(at, end))
            at = end
            while self._text[at : at + 1] in (" ", "\t"):
                at += 1
        if first is None:
            return False
        if self._blank_from(at):
            self._tags += tags
            self._hide(self._line_of(at))
            return True
        match = _TAG.match(first)
        opening = content + len(first)
        closing = f"</{match['name']}>" if match and not match["end"] else ""
        prose_end = line.start + len(self._text[line.start : line.end].rstrip()) - len(closing)
        if not closing or opening > prose_end or self._text.find(closing, opening) != prose_end:
            return False
        self._tags += tags[:1]
        prose = self._text[opening:prose_end]
        self._cut(opening + len(prose) - len(prose.lstrip()), opening + len(prose.rstrip()), alone=True)
        return True

    def _jsx_end(self, at: int) -> int:
        """The offset behind the tag, expression or comment at `at`; -1 where none begins or ends."""
        for opening, closing in (("<!--", "-->"), ("{/*", "*/}")):
            if self._text.startswith(opening, at):
                end = self._text.find(closing, at)
                return end if end < 0 else end + len(closing)
        if not self._text.startswith("{", at) and not _TAG.match(self._text, at):
            return -1
        return balanced(self._text, at, min(len(self._text), at + _JSX_CHARS_MAX))


def balanced(text: str, at: int, limit: int) -> int:
    """Behind the `>` or `}` that ends what begins at `at`, past strings and braces; -1 where none does."""
    closing = "}" if text[at] == "{" else ">"
    depth = 0
    for match in _JSX_MARK.finditer(text, at, limit):
        mark = match[0]
        depth += (mark == "{") - (mark == "}")
        if depth == 0 and mark == closing:
            return match.end()
    return -1
