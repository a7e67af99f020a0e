"""HTML seen as marks: every tag, attribute, comment, template and run of text at its exact place.

Promises that the marks cover the text without a gap, whatever the text is: HTML has no errors, and what never
ends goes to the end of the file, as in a browser. Templates of Jinja, Django, Liquid, ERB, PHP, mustache and
`${…}` are marks of their own, also with `>` or quotes in them, inside tags too. Linear. Knows nothing of
which elements are blocks, nor of translation. (The standard library's parser knows no templates, and where it
ends comments and scripts has changed between its patch releases.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Literal

from dragoman.model.documents import Span

MarkKind = Literal["text", "open", "close", "comment", "expression", "statement", "raw"]

RAW_TEXT = frozenset(("script", "style", "xmp", "iframe", "noembed", "noframes"))
"""Elements whose content is no markup."""
PLAIN_TEXT = frozenset(("title", "textarea"))
"""Elements whose content is text and entities, and no tags."""

_IN_TAG = r"\{\{[^{}]{0,500}\}\}|\{%[^%]{0,500}%\}|<%[^%]{0,500}%>|<\?[^?]{0,500}\?>|\$\{[^{}]{0,500}\}"
TEMPLATE = re.compile(_IN_TAG)
"""A template inside a tag, where no other of its kind is nested."""
_BEGIN = re.compile(r"<(?:!--|[!?%]|/?[A-Za-z]|/)|\{[{%#]|\$\{")
_NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")
_GAP = re.compile(rf"(?:[\s/]|{_IN_TAG})*+")
_ATTRIBUTE = re.compile(
    rf"(?P<name>(?:{_IN_TAG}|[^\s/>=])(?:{_IN_TAG}|[^\s/>=])*+)"
    rf"(?P<value>\s*+=\s*+(?:\"(?P<double>(?:{_IN_TAG}|[^\"])*+)\"|'(?P<single>(?:{_IN_TAG}|[^'])*+)'"
    rf"|(?P<bare>(?![\"'])(?:{_IN_TAG}|[^\s>])++)|(?=>)))?+"
)
_TEMPLATES: dict[str, tuple[str, MarkKind]] = {
    "{{": ("}}", "expression"),
    "{%": ("%}", "statement"),
    "{#": ("#}", "statement"),
    "<%": ("%>", "statement"),
    "<?": ("?>", "statement"),
    "${": ("}", "expression"),
}
_PRINTS = ("<%=", "<%-", "<?=")
_UNCLOSED = re.compile(r"\s*=\s*[\"']")
_EXPRESSION_CHARS_MAX = 1_000
"""Braces that are not closed within so many characters are text."""
_COMMENT_END = re.compile(r"--!?>")


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute with a value; `span` is the value's, without its quotes."""

    name: str
    raw: str
    span: Span
    quote: str

    @property
    def text(self) -> str:
        """The value, its entities resolved, templates as they are."""
        return _apart(self.raw, unescape)


@dataclass(frozen=True, slots=True)
class Mark:
    """One piece of the text. `name` is a tag's, in lower case; raw text has the name of its element."""

    kind: MarkKind
    start: int
    end: int
    name: str = ""
    attributes: tuple[Attribute, ...] = ()

    def attribute(self, name: str) -> Attribute | None:
        """The first attribute of that name, which is the one that counts."""
        return next((attribute for attribute in self.attributes if attribute.name == name), None)


def marks(text: str, start: int = 0, end: int | None = None) -> Iterator[Mark]:
    """All marks from `start` to `end`, without a gap."""
    return _Scanner(text, len(text) if end is None else end).run(start)


def spelled(value: str, quote: str) -> str:
    """An attribute's value as it stands between its quotes; with them where there were none before."""

    def escaped(plain: str) -> str:
        plain = plain.replace("&", "&amp;")
        return plain.replace("'", "&#39;") if quote == "'" else plain.replace('"', "&quot;")

    raw = _apart(value, escaped)
    return raw if quote else f'"{raw}"'


def _apart(text: str, change: Callable[[str], str]) -> str:
    """A text with all but its templates changed."""
    parts: list[str] = []
    at = 0
    for match in TEMPLATE.finditer(text):
        parts += (change(text[at : match.start()]), match[0])
        at = match.end()
    return "".join((*parts, change(text[at:])))


class _Scanner:
    """Walks down the text; remembers which endings do not come any more, so that a scan stays linear."""

    def __init__(self, text: str, end: int) -> None:
        self._text = text
        self._end = end
        self._absent: set[str] = set()

    def run(self, at: int) -> Iterator[Mark]:
        plain = at
        while match := _BEGIN.search(self._text, at, self._end):
            mark = self._mark(match)
            if mark is None:
                at = match.end()
                continue
            if plain < mark.start:
                yield Mark("text", plain, mark.start)
            yield mark
            plain = at = mark.end
            if mark.kind == "open" and (mark.name in RAW_TEXT or mark.name in PLAIN_TEXT):
                at = self._raw_end(mark.name, mark.end)
                if plain < at:
                    yield Mark("raw", plain, at, mark.name)
                plain = at
        if plain < self._end:
            yield Mark("text", plain, self._end)

    def _mark(self, match: re.Match[str]) -> Mark | None:
        begin, start = match[0], match.start()
        if begin in _TEMPLATES:
            closing, kind = _TEMPLATES[begin]
            if kind == "expression":
                end = self._near(closing, match.end())
            else:
                end = self._after(closing, match.end())
            if end > 0:
                printed = self._text.startswith(_PRINTS, start)
                return Mark("expression" if printed else kind, start, end)
            if begin != "<?":
                return None
        if begin == "<!--":
            return Mark("comment", start, self._comment_end(match.end()))
        if begin in ("<!", "<?", "</"):
            return Mark("comment", start, self._after(">", match.end(), self._end))
        return self._tag(start)

    def _tag(self, start: int) -> Mark:
        """A tag with its attributes; one that does not end is a comment, as no browser shows it."""
        named = _NAME.match(self._text, start, self._end)
        if named is None:
            return Mark("text", start, start + 1)
        attributes: list[Attribute] = []
        at = self._gap(named.end())
        while at < self._end and self._text[at] != ">":
            match = _ATTRIBUTE.match(self._text, at, self._end)
            if match is None or match.end() == at:
                at += 1  # an equals sign without a name
                continue
            for group, quote in (("double", '"'), ("single", "'"), ("bare", "")):
                if match[group] is not None:
                    span = Span(*match.span(group))
                    attributes.append(Attribute(match["name"].lower(), match[group], span, quote))
            if match["value"] is None and _UNCLOSED.match(self._text, match.end(), self._end):
                return Mark("comment", start, self._end)  # a quote that does not end
            at = self._gap(match.end())
        if at >= self._end:
            return Mark("comment", start, self._end)
        kind: MarkKind = "close" if self._text.startswith("</", start) else "open"
        return Mark(kind, start, at + 1, named[1].lower(), tuple(attributes))

    def _gap(self, at: int) -> int:
        match = _GAP.match(self._text, at, self._end)
        return match.end() if match else at

    def _comment_end(self, at: int) -> int:
        for short in (">", "->"):
            if self._text.startswith(short, at):
                return at + len(short)
        match = _COMMENT_END.search(self._text, at, self._end)
        return match.end() if match else self._end

    def _raw_end(self, name: str, at: int) -> int:
        closing = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
        match = closing.search(self._text, at, self._end)
        return match.start() if match else self._end

    def _near(self, ending: str, at: int) -> int:
        found = self._text.find(ending, at, min(self._end, at + _EXPRESSION_CHARS_MAX))
        return found + len(ending) if found >= 0 else -1

    def _after(self, ending: str, at: int, otherwise: int = -1) -> int:
        """Behind the next `ending`, or `otherwise` where none comes."""
        if ending in self._absent:
            return otherwise
        found = self._text.find(ending, at, self._end)
        if found < 0:
            self._absent.add(ending)
            return otherwise
        return found + len(ending)
