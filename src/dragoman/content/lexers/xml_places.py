"""XML seen as places: where each element, its tags and its content stand in the text.

Promises exact character offsets for every element, and that what expat refuses (not well formed, an entity
bomb, an entity from outside) is refused here with its line and column. Content stays raw: `unescaped` reads
it, `escaped` spells it. Knows no dialect.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

_DEPTH_MAX = 200
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z][\w.-]{0,40})["']""")
_PIECE = re.compile(
    r"<!\[CDATA\[(.*?)\]\]>|<!--.*?-->|<\?.*?\?>|(&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|\w+);)", re.S
)
_PREDEFINED = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&apos;": "'"}
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Element:
    """One element. `whole` is all of it, `inner` its raw content; for `<a/>` that is empty, before `/>`.

    `name` keeps its prefix as written; `local` is the name without it.
    """

    name: str
    attributes: Mapping[str, str]
    whole: Span
    inner: Span
    closed: bool
    """Whether it is written as one tag, `<a/>`: there is no place inside."""
    children: tuple[Element, ...] = ()

    @property
    def local(self) -> str:
        """The name without its prefix."""
        return self.name.rpartition(":")[2]

    def find(self, local: str) -> Element | None:
        """The first child of this name."""
        return next(self.each(local), None)

    def each(self, *locals: str) -> Iterator[Element]:
        """The children of these names, in order."""
        return (child for child in self.children if child.local in locals)

    def walk(self) -> Iterator[Element]:
        """The element itself and all that it holds, in file order."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))


def charset(data: bytes) -> str | None:
    """The encoding that an XML declaration names, None where it names none or the file has a UTF-16 mark."""
    declared = _DECLARED.match(data.removeprefix(b"\xef\xbb\xbf"))
    return declared[1].decode("ascii") if declared else None


def parse(text: str) -> Element:
    """The root element. Raises `DocumentError` with line and column for what is no well-formed XML."""
    return _Reading(text).root()


def unescaped(raw: str) -> str:
    """The characters of raw content without elements: entities resolved, CDATA opened, comments left out.

    An entity that the file itself declares stays as it is written.
    """
    if "<" not in raw and "&" not in raw:
        return raw

    def plain(match: re.Match[str]) -> str:
        if match[2]:
            return _PREDEFINED.get(match[2]) or (_numbered(match[2]) if match[2][1] == "#" else match[2])
        return match[1] or ""

    return _PIECE.sub(plain, raw)


def _numbered(reference: str) -> str:
    """The character of `&#8230;`: as XML counts them, not as HTML reads those from 128 to 159."""
    digits = reference[2:-1].lower()
    number = int(digits[1:], 16) if digits.startswith("x") else int(digits)
    return chr(number) if number <= sys.maxunicode else reference


def escaped(text: str, quote: str = "") -> str:
    """A text as raw content, or as the value of an attribute in this `quote`.

    Raises `DocumentError` for a character that XML cannot hold.
    """
    if illegal := _ILLEGAL.search(text):
        raise DocumentError(f"U+{ord(illegal[0]):04X} cannot stand in XML: take it out of the translation")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("]]>", "]]&gt;")
    return text.replace(quote, "&quot;" if quote == '"' else "&apos;") if quote else text


def is_cdata(raw: str) -> bool:
    """Whether raw content is one CDATA section and nothing else."""
    return raw.startswith("<![CDATA[") and raw.find("]]>") == len(raw) - 3


def cdata(text: str) -> str:
    """A text as a CDATA section; one that holds `]]>` needs two."""
    return "<![CDATA[" + text.replace("]]>", "]]]]><![CDATA[>") + "]]>"


@dataclass(slots=True)
class _Open:
    name: str
    attributes: dict[str, str]
    start: int
    inner: int
    closed: bool
    children: list[Element] = field(default_factory=list)


class _Reading:
    """One pass of expat over a text. It is fed UTF-8, whatever the file was in."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._data = text.encode("utf-8", "surrogatepass")
        self._stack: list[_Open] = []
        self._root: Element | None = None
        self._marks: tuple[list[int], list[int]] | None = None
        if len(self._data) != len(text):
            self._marks = _marks(text)
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.EntityDeclHandler = self._entity
        self._parser.ExternalEntityRefHandler = self._outside
        self._parser.StartDoctypeDeclHandler = self._doctype

    def root(self) -> Element:
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            column = error.offset + 1
            why = expat.ErrorString(error.code)
            raise DocumentError(
                f"this is not well-formed XML at column {column}: {why}", error.lineno
            ) from error
        if self._root is None:
            raise DocumentError("this XML has no element", line=1)
        return self._root

    def _here(self) -> int:
        """The character offset of what expat is at."""
        offset = self._parser.CurrentByteIndex
        if self._marks is None:
            return offset
        bytes_, characters = self._marks
        at = bisect_right(bytes_, offset) - 1
        return characters[at] + len(self._data[bytes_[at] : offset].decode("utf-8"))

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._stack) >= _DEPTH_MAX:
            self._refuse(f"more than {_DEPTH_MAX} elements lie inside each other")
        start = self._here()
        behind = _tag_end(self._text, start)
        closed = self._text[behind - 2] == "/"
        self._stack.append(_Open(name, attributes, start, behind - 2 if closed else behind, closed))

    def _end(self, name: str) -> None:
        opened = self._stack.pop()
        end = opened.inner if opened.closed else self._here()
        whole = Span(opened.start, self._text.index(">", end) + 1)
        element = Element(
            name, opened.attributes, whole, Span(opened.inner, end), opened.closed, tuple(opened.children)
        )
        if self._stack:
            self._stack[-1].children.append(element)
        else:
            self._root = element

    def _entity(
        self,
        name: str,
        parameter: int,
        value: str | None,
        base: str | None,
        system: str | None,
        *_: str | None,
    ) -> None:
        if value is None or system:
            self._refuse(f"the entity {name!r} would be read from outside of the file")
        elif parameter or "&" in value or "%" in value or "<" in value:
            self._refuse(f"the entity {name!r} holds markup or other entities; write it out")

    def _outside(self, *_: str | None) -> int:
        self._refuse("an entity would be read from outside of the file")
        return 0

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        """A document type may be named; nothing is ever fetched for it."""

    def _refuse(self, why: str) -> None:
        raise DocumentError(why, line=self._parser.CurrentLineNumber)


def _marks(text: str) -> tuple[list[int], list[int]]:
    """Byte and character offsets of the text's line starts, to count from the nearest one."""
    bytes_, characters = [0], [0]
    for match in re.finditer("\n", text):
        line = text[characters[-1] : match.end()]
        bytes_.append(bytes_[-1] + len(line.encode("utf-8", "surrogatepass")))
        characters.append(match.end())
    return bytes_, characters


def _tag_end(text: str, start: int) -> int:
    """The offset behind a tag's `>`; one inside an attribute's quotes is no end."""
    at = start
    while text[at] != ">":
        at = text.index(text[at], at + 1) + 1 if text[at] in "\"'" else at + 1
    return at + 1
