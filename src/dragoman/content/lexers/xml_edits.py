"""Edits to XML seen as places: attributes put and taken, elements filled, lines like their neighbours.

Promises that a text which `read_inner` reads is written by `spelled` so that it reads back, and that what is
put in follows the file's line ends and indentation. Line ends read as an XML parser gives them, `\\n`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from dragoman.content import locales
from dragoman.content.lexers.xml_places import Element, cdata, escaped, is_cdata, unescaped
from dragoman.kernel.errors import LocaleError
from dragoman.model.documents import Edit, EditKind, Span, Syntax

_ATTRIBUTE = re.compile(r"\s+([^\s=/>\"']+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_SECTION = re.compile(r"<!\[CDATA\[.*?\]\]>", re.S)
_MARKUP = re.compile(r"<|&(?!#|lt;|gt;|amp;|quot;|apos;)")
_SYNTAXES: tuple[tuple[Syntax, re.Pattern[str]], ...] = (
    ("i18next", re.compile(r"\{\{[^{}]+\}\}")),
    ("icu", re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal|number|date|time)\b")),
    ("python", re.compile(r"\{\w*(?::[^{}\s]+)?\}")),
    ("printf", re.compile(r"%(?:\d+\$)?[-+0#]*\d*(?:\.\d+)?(?:ll?|hh?|z)?[sdiufx@](?!\w)|%\(\w+\)[sd]")),
)


def syntax_of(texts: list[str]) -> Syntax:
    """The one syntax of a file's placeholders, by what its plain texts hold."""
    return next((name for name, pattern in _SYNTAXES if any(map(pattern.search, texts))), "none")


def has_markup(text: str, element: Element) -> bool:
    """Whether content is more than characters: elements, comments, entities of the file's own."""
    if element.children:
        return True
    return bool(_MARKUP.search(_SECTION.sub("", text[element.inner.start : element.inner.end])))


def read_inner(text: str, element: Element, markup: bool) -> str:
    """An element's content: its characters, or with `markup` as it is written."""
    raw = text[element.inner.start : element.inner.end].replace("\r\n", "\n").replace("\r", "\n")
    return raw if markup else unescaped(raw)


def spelled(value: str, markup: bool, like: str, newline: str) -> str:
    """A value as raw content in place of, or beside, the raw content `like`, whose CDATA section it keeps."""
    if markup:
        return value.replace("\n", newline)
    raw = escaped(value).replace("\r", "&#13;")
    if is_cdata(like) and "\r" not in value:
        raw = cdata(value)
    return raw.replace("\n", newline)


def fill(text: str, element: Element, raw: str, kind: EditKind, key: str) -> Edit:
    """Give an element this content; one written as a single tag gets a second."""
    if not element.closed:
        return Edit(element.inner, raw, kind, key)
    tag = text[element.whole.start : element.inner.start].rstrip()
    span = Span(element.whole.start + len(tag), element.whole.end)
    return Edit(span, f">{raw}</{element.name}>", kind, key)


def put_attribute(
    text: str, element: Element, name: str, value: str | None, key: str = "", behind: str = ""
) -> Iterator[Edit]:
    """Set an attribute, or take it away (None); a new one stands right behind the one called `behind`."""
    tag = text[element.whole.start : element.inner.start]
    places = {match[1]: match for match in _ATTRIBUTE.finditer(tag, len(element.name) + 1)}
    at = element.whole.start
    if match := places.get(name):
        if value is None:
            yield Edit(Span(at + match.start(), at + match.end()), "", "metadata", key)
        elif element.attributes.get(name) != value:
            quote = match[2][0]
            inside = Span(at + match.start(2) + 1, at + match.end(2) - 1)
            yield Edit(inside, escaped(value, quote), "metadata", key)
    elif value is not None:
        end = at + (places[behind].end() if behind in places else len(element.name) + 1)
        yield Edit(Span(end, end), f' {name}="{escaped(value, chr(34))}"', "metadata", key)


def lead_of(text: str, start: int) -> str:
    """The white space before an element, from its line's end on, or from the tag that stands before it."""
    at = start
    while at and text[at - 1] in " \t":
        at -= 1
    if text.endswith("\r\n", 0, at):
        at -= 2
    elif text.endswith(("\n", "\r"), 0, at):
        at -= 1
    elif not text.endswith(">", 0, at):
        return ""
    return text[at:start]


@lru_cache(maxsize=256)
def declares(declared: str, locale: str) -> bool:
    """Whether a language that a file declares (`pt_BR`, `zh-TW`) is this locale."""
    try:
        return locales.equivalent(locales.canonical(declared), locales.canonical(locale))
    except LocaleError:
        return False


def step(name: str) -> str:
    """A name as one step of a key."""
    return name.replace("~", "~0").replace("/", "~1")


class Names:
    """Hands out names once: a repeated one gets its number behind a `~`, which no step of a key holds."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """The name, or `name~2` where it was given before."""
        count = self._given[name] = self._given.get(name, 0) + 1
        return name if count == 1 else f"{name}~{count}"
