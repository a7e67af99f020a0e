"""Words in the code of a Markdown page: titles of admonitions, attributes of JSX, parameters of shortcodes.

Promises for each its exact place, a name, and a spelling that ends neither quotes nor brackets. What is shown
to the parser of Markdown is left to it. Knows nothing of which names are spoken but what it is told.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Literal

from markdown_it.common.utils import normalizeReference

from dragoman.content.lexers.markdown_masking import SHORTCODE, Masked, Piece, balanced, shortcode_name
from dragoman.model.documents import Span

Manner = Literal["shortcode", "jsx", "brackets", "bare", "quotes", "reference"]

_DIRECTIVE = re.compile(
    r":{3,}[ \t]*(?P<name>[A-Za-z][\w-]*)"
    r"(?:\[(?P<brackets>(?:[^\[\]\\]|\\.|\[[^\[\]]*\])+)\]"
    r"|[ \t]+(?P<bare>[^ \t{\[][^ \t{]*(?:[ \t]+[^ \t{]+)*))?[ \t]*+(?:\{[^{}]*\}[ \t]*+)?"
)
_ADMONITION = re.compile(
    r"(?:!!!|\?\?\?\+?)[ \t]+(?P<name>[\w-]+)[^\"\n]*(?<=[ \t])\"(?P<quotes>[^\"\n]+)\"[ \t]*"
    r"|(?P<tab>===)[!+]?[ \t]+\"(?P<label>[^\"\n]+)\"[ \t]*"
)
_TAG_NAME = re.compile(r"<([A-Za-z][\w.:-]*)")
_JSX_ATTRIBUTE = re.compile(
    r"(?P<name>[A-Za-z_][\w:.-]*)(?:\s*=\s*(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?=\{)))?"
)
_REFERENCE = re.compile(
    r"[ \t>]*\[(?P<label>(?:[^\[\]\\]|\\.){1,999})\]:[ \t]*(?:<[^<>\n]*>|[^\s<]\S*)[ \t]+"
    r"(?:\"(?P<double>(?:[^\"\\]|\\.)+)\"|'(?P<single>(?:[^'\\]|\\.)+)'"
    r"|\((?P<round>(?:[^()\\]|\\.)+)\))[ \t]*"
)
_ESCAPABLE = re.compile(r"\\([!-/:-@\[-`{-~])")
_QUOTES = (("double", '"'), ("single", "'"), ("round", "("))
_BALANCED = re.compile(r"(?:[^\[\]\\]|\\.|\[[^\[\]]*\])+")


@dataclass(frozen=True, slots=True)
class Spoken:
    """Words that stand in code. `text` is unescaped where the code has its own escapes."""

    name: str
    text: str
    span: Span
    manner: Manner
    quote: str = '"'


class Naming:
    """Which names are spoken: of shortcodes' parameters, and of attributes of JSX."""

    def __init__(self, parameters: Collection[str], attributes: Collection[str]) -> None:
        names = "|".join(map(re.escape, sorted(parameters))) or r"(?!)"
        self.parameter = re.compile(rf'(?<![\w.-])(?P<name>{names})\s*=\s*"(?P<text>(?:[^"\\]|\\.)*)"')
        self.attributes = frozenset(attributes)


def spoken(text: str, body: int, masked: Masked, naming: Naming) -> Iterator[Spoken]:
    """All words in what the parser of Markdown does not see, each kind in file order."""
    yield from _parameters(text, body, masked.pieces, naming)
    for header in masked.headers:
        yield from _title(text, header)
    for tag in masked.tags:
        yield from _attributes(text, tag, naming)


def references(
    text: str, pieces: Sequence[Piece], free: Collection[int], titles: Mapping[str, str]
) -> Iterator[Spoken]:
    """Titles of link definitions, given their values by label, on the lines that belong to no block."""
    for row in sorted(free):
        match = _REFERENCE.fullmatch(text, pieces[row].start, pieces[row].end)
        label = normalizeReference(match["label"]) if match else ""
        if match and titles.get(label):
            group, quote = next(pair for pair in _QUOTES if match[pair[0]] is not None)
            shown = _ESCAPABLE.sub(r"\1", match[group])
            yield Spoken(f"ref[{label.lower()}]", shown, Span(*match.span(group)), "reference", quote)


def fitted(value: str, words: Spoken) -> tuple[str, str]:
    """A translation as it will be read back, and as it stands in the code."""
    line = " ".join(value.split("\n")) if words.manner == "shortcode" else " ".join(value.split())
    quote = words.quote
    if words.manner == "shortcode":
        return line, line.replace('"', '\\"')
    if words.manner == "jsx":
        raw = line.replace("&", "&amp;") if unescape(line) != line else line
        return line, raw.replace(quote, "&#39;" if quote == "'" else "&quot;")
    if words.manner == "reference":
        raw = line.replace("\\", "\\\\")
        return line, "".join(
            f"\\{sign}" if sign in ("()" if quote == "(" else quote) else sign for sign in raw
        )
    if words.manner == "quotes":
        line = line.replace('"', "'")  # these quotes know no escape
    elif words.manner == "bare":
        line = line.replace("{", "(").replace("}", ")").lstrip("[ ")
    elif not _BALANCED.fullmatch(line):
        line = re.sub(r"\\*([\[\]])", r"\\\1", line).rstrip("\\")
    return line, line


def _parameters(text: str, body: int, pieces: Sequence[Piece], naming: Naming) -> Iterator[Spoken]:
    """Named parameters of the shortcodes that stand on lines of their own."""
    shown = [piece for piece in pieces if piece.start < piece.end]
    starts = [piece.start for piece in shown]
    for shortcode in SHORTCODE.finditer(text, body):
        index = bisect_right(starts, shortcode.start()) - 1
        if index >= 0 and shortcode.start() < shown[index].end:
            continue
        for match in naming.parameter.finditer(text, *shortcode.span()):
            name = f"{shortcode_name(shortcode[0])[0]}.{match['name']}"
            yield Spoken(name, match["text"].replace('\\"', '"'), Span(*match.span("text")), "shortcode")


def _title(text: str, header: Span) -> Iterator[Spoken]:
    if match := _DIRECTIVE.fullmatch(text, header.start, header.end):
        manners: tuple[Manner, ...] = ("brackets", "bare")
        for manner in manners:
            if match[manner]:
                yield Spoken(f"{match['name']}.title", match[manner], Span(*match.span(manner)), manner)
    elif match := _ADMONITION.fullmatch(text, header.start, header.end):
        group = "label" if match["tab"] else "quotes"
        name = "tab.label" if match["tab"] else f"{match['name']}.title"
        yield Spoken(name, match[group], Span(*match.span(group)), "quotes")


def _attributes(text: str, tag: Span, naming: Naming) -> Iterator[Spoken]:
    """The quoted attributes of a JSX tag that are spoken; past expressions in braces."""
    named = _TAG_NAME.match(text, tag.start, tag.end)
    at = named.end() if named else tag.end
    while at < tag.end:
        if text[at] == "{":
            at = balanced(text, at, tag.end)
            if at < 0:
                return
            continue
        match = _JSX_ATTRIBUTE.match(text, at, tag.end)
        if not match:
            at += 1
            continue
        for group, quote in (("double", '"'), ("single", "'")):
            if match[group] is not None and match["name"] in naming.attributes and named:
                shown = unescape(match[group])
                yield Spoken(f"{named[1]}.{match['name']}", shown, Span(*match.span(group)), "jsx", quote)
        at = match.end()
