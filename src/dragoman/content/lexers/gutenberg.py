"""What WordPress keeps in one value: blocks between comments, HTML, shortcodes, or lines of a classic post.

Promises for each text its exact span in the value, the spoken attributes of block comments among them; that
an attribute is written by the comment's own rule of escaping (`--`, `<`, `>`, `&`, `"` and the backslash as
`\\u00…`); and that outside of blocks each line is a text, since WordPress makes paragraphs and breaks of
lines. A comment whose attributes are no JSON is kept. Knows no posts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from dragoman.content.lexers.html_blocks import Place, filled, page
from dragoman.content.lexers.json_tokens import Value, scan
from dragoman.content.tokens import tokens
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

_COMMENT = re.compile(
    r"<!--\s+(?P<ends>/)?wp:(?P<name>[a-z][a-z0-9_-]*(?:/[a-z][a-z0-9_-]*)?)\s+(?P<attributes>\{)?"
)
_LINE = re.compile(r"[^\r\n]+")
_ESCAPES = {ord(mark): f"\\u{ord(mark):04x}" for mark in '"<>&\\' + "".join(map(chr, range(0x20)))} | {
    ord(mark): f"\\{short}" for mark, short in zip("\b\f\n\r\t", "bfnrt", strict=True)
}


@dataclass(frozen=True, slots=True)
class Piece:
    """One text of a value: a `place` of its HTML, else an attribute of a block's comment, else all of it."""

    key: str
    text: str
    span: Span
    note: str = ""
    place: Place | None = None
    in_comment: bool = False

    @property
    def is_markup(self) -> bool:
        """Whether tags may stand in it: it is no attribute."""
        return not self.in_comment and (self.place is None or self.place.attribute is None)


@dataclass(frozen=True, slots=True)
class _Comment:
    span: Span
    name: str
    attributes: Span | None
    step: int
    """How much deeper one is behind it."""


def pieces(value: str, is_text: Callable[[str, str, str], bool]) -> list[Piece]:
    """The texts of a value in order; `is_text` judges (block, name, text) of a block's attribute."""
    if not any(mark in value for mark in "<\r\n"):
        return [Piece("", value, Span(0, len(value)))] if has_words(value) else []
    comments = list(_comments(value))
    found = [*_attributes(value, comments, is_text), *_places(value, comments)]
    found.sort(key=lambda piece: piece.span.start)
    return found


def put(value: str, piece: Piece, text: str, translations: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A translation as it is to stand in the value, and by key what will then be read there."""
    if piece.place:
        return filled(value, piece.place, text, translations)
    return (_spelled(text) if piece.in_comment else text), {piece.key: text}


def has_words(text: str) -> bool:
    """Whether a letter stands in a markup outside of tags and shortcodes."""
    return any(any(map(str.isalpha, token.raw)) for token in tokens(text, "html") if token.kind == "text")


def _comments(value: str) -> Iterator[_Comment]:
    at = 0
    while match := _COMMENT.search(value, at):
        end = value.find("-->", match.end())
        if end < 0:
            return
        body = value[match.start("attributes") : end].rstrip() if match["attributes"] else ""
        alone = value[match.end() : end].rstrip().endswith("/")
        if body and alone:
            body = body[:-1].rstrip()
        start = match.start("attributes")
        attributes = Span(start, start + len(body)) if body else None
        step = -1 if match["ends"] else 0 if alone else 1
        yield _Comment(Span(match.start(), end + 3), match["name"], attributes, step)
        at = end + 3


def _attributes(
    value: str, comments: Sequence[_Comment], is_text: Callable[[str, str, str], bool]
) -> Iterator[Piece]:
    for index, comment in enumerate(comments):
        if comment.attributes is None:
            continue
        offset = comment.attributes.start
        try:
            root = scan(value[offset : comment.attributes.end])
        except DocumentError:
            continue  # no block editor wrote this
        for path, name, found in _strings(root, "", ""):
            if is_text(comment.name, name, found.text):
                span = Span(offset + found.start + 1, offset + found.end - 1)
                note = f"{comment.name} {name}"
                yield Piece(f"wp:{comment.name}[{index}]{path}", found.text, span, note, in_comment=True)


def _strings(value: Value, path: str, name: str) -> Iterator[tuple[str, str, Value]]:
    """Each string with its path and the name it has, which items have from their array."""
    for member in value.members:
        named = name if value.kind == "array" else member.name
        where = f"{path}/{member.name.replace('~', '~0').replace('/', '~1')}"
        if member.value.kind == "string":
            yield where, named, member.value
        else:
            yield from _strings(member.value, where, named)


def _places(value: str, comments: Sequence[_Comment]) -> Iterator[Piece]:
    """HTML's texts; those outside of blocks line by line, and none across the comment of a block."""
    behind = 0
    starts = [comment.span.start for comment in comments]
    depths = [0, *accumulate(comment.step for comment in comments)]
    for place in page(value).places:
        if place.span.start < behind:
            continue  # an attribute within a text that was cut
        parts = [place]
        if not (place.attribute or place.plain):
            first = bisect_left(starts, place.span.start)
            inside = comments[first : bisect_left(starts, place.span.end)]
            cuts = list(_cuts(value, place.span, inside, depths[first]))
            if len(cuts) > 1:
                parts = list(_parts(value, place, cuts))
                behind = place.span.end
        for part in parts:
            if part.attribute or has_words(part.text):
                yield Piece(part.key, part.text, part.span, part.note, part)


def _cuts(value: str, span: Span, comments: Sequence[_Comment], depth: int) -> Iterator[Span]:
    """The parts of a text between the comments of blocks in it; outside of blocks, their lines."""
    at = span.start
    for comment in (*comments, None):
        end = comment.span.start if comment else span.end
        found = [Span(at, end)]
        if depth <= 0:
            found = [Span(*match.span()) for match in _LINE.finditer(value, at, end)]
        yield from (part for part in found if value[part.start : part.end].strip())
        if comment:
            depth, at = depth + comment.step, comment.span.end


def _parts(value: str, place: Place, cuts: Collection[Span]) -> Iterator[Place]:
    for index, cut in enumerate(cuts, 1):
        for part in page(value, cut.start, cut.end).places:
            yield _renamed(part, f"{place.key}/{index}/")


def _renamed(place: Place, prefix: str) -> Place:
    held = tuple(_renamed(each, prefix) for each in place.held)
    return replace(place, key=prefix + place.key, held=held)


def _spelled(text: str) -> str:
    return text.translate(_ESCAPES).replace("--", "\\u002d\\u002d")
