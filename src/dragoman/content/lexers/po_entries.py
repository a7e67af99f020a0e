"""PO files seen as places: every entry with its comments, flags, strings and their exact offsets.

Promises GNU gettext's grammar, an entry a match of one pattern; what is not of it (a string without an end, a
msgstr without its msgid, one message twice) is refused with its line by `po_complaints`. Obsolete entries are
passed over, with the comments that belong to them. Knows nothing of headers, languages or plural rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dragoman.content.lexers.po_complaints import complain
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

_SPACE = r"[ \t\f\v]*+"
_BREAK = r"(?:\r\n|\n|\r)"
_END = rf"{_SPACE}(?:{_BREAK}|\Z)"
_STRING = r'"[^"\\\r\n]*+(?:\\[^\r\n][^"\\\r\n]*+)*+"'
_STRINGS = rf"[ \t\f\v\r\n]*+({_STRING}(?:[ \t\f\v\r\n]*+{_STRING})*+){_END}"
_LINES = rf"(?:{_SPACE}(?:\#(?!~)[^\r\n]*+)?{_BREAK})*+"
_ENTRY = re.compile(
    rf"({_LINES})(?:{_SPACE}msgctxt{_STRINGS}{_LINES})?{_SPACE}msgid{_STRINGS}{_LINES}"
    rf"(?:{_SPACE}msgid_plural{_STRINGS}{_LINES})?(?={_SPACE}msgstr)"
)
_FORM = re.compile(rf"((?:{_SPACE}{_BREAK})*+){_SPACE}msgstr(?:\[(\d{{1,3}})\])?{_STRINGS}")
_OBSOLETE = re.compile(rf"{_LINES}{_SPACE}\#~[^\r\n]*+{_END}")
_TAIL = re.compile(rf"{_LINES}{_SPACE}(?:\#[^\r\n]*+)?\Z")
_REMARK = re.compile(rf"(?<![^\r\n]){_SPACE}\#([.,|])([^\r\n]*+)(?:{_BREAK}|\Z)")
_PIECE = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"')
_ESCAPE = re.compile(r"((?:\\(?:[0-7]{1,3}|x[0-9a-fA-F]{1,2}))+)|\\(.)")
_NUMBER = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]+))")
_NAMED = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_SPELLED = {code: f"\\{code:03o}" for code in range(0x20)} | {
    ord(char): "\\" + name for name, char in _NAMED.items()
}


class Line(NamedTuple):
    """A comment line: its characters end at `end`, the next line starts at `next`."""

    start: int
    end: int
    next: int


class Form(NamedTuple):
    """A msgstr: its lines from `start` to `end`, its strings from `first` quote to behind the `last`."""

    start: int
    end: int
    first: int
    last: int
    text: str


_Remarks = tuple[str, tuple[tuple[Line, list[str]], ...], tuple[Line, ...]]
"""Notes, flags and former msgids, as an entry has them."""
_NO_REMARKS: _Remarks = ("", (), ())


class Entry(NamedTuple):
    """One message that is not obsolete, from its first comment to behind its last line.

    `body` is where its first keyword's line starts.
    """

    start: int
    body: int
    end: int
    key: str
    """As in MO files: context, U+0004 and msgid; the msgid alone where there is no context."""
    context: str | None
    msgid: str
    plural: str | None
    forms: tuple[Form, ...]
    notes: str
    flags: tuple[tuple[Line, list[str]], ...]
    previous: tuple[Line, ...]

    @property
    def fuzzy(self) -> bool:
        """Whether a flag says that the translation is a guess."""
        return any("fuzzy" in flags for _, flags in self.flags)


def messages(text: str) -> Iterator[Entry]:
    """All entries but the header, in file order.

    Raises `DocumentError` with the line of what is no entry, or stands here already.
    """
    places: dict[str, int] = {}
    for entry in entries(text):
        first = places.setdefault(entry.key, entry.body)
        if first != entry.body:
            there, here = line_at(text, first), line_at(text, entry.body)
            raise DocumentError(f"this message stands on line {there} already", here)
        if entry.key:
            yield entry


def entries(text: str) -> Iterator[Entry]:
    """The entries one by one. Raises `DocumentError` with the line of what is none."""
    at = 0
    while at < len(text):
        if match := _ENTRY.match(text, at):
            entry = _entry(text, match)
            yield entry
            at = entry.end
        elif match := _OBSOLETE.match(text, at):
            at = match.end()
        elif _TAIL.match(text, at):
            return
        else:
            complain(text, at)


def joined(raw: str) -> str:
    """The text of one or several quoted strings in a row. Raises `ValueError` for an unknown escape."""
    if "\\" not in raw and raw.count('"') == 2:
        return raw[1:-1]
    return unescape("".join(_PIECE.findall(raw)))


def unescape(raw: str) -> str:
    """A string's text; numbered escapes are bytes of UTF-8. Raises `ValueError` for an unknown escape."""
    return _ESCAPE.sub(_unescaped, raw) if "\\" in raw else raw


def escape(text: str) -> str:
    """The text as it stands between quotes, on one line."""
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return text if plain else text.translate(_SPELLED)


def characters(text: str, form: Form) -> Iterator[tuple[str, Span]]:
    """Every character of a form with the place of its spelling in the file."""
    for piece in _PIECE.finditer(text, form.first, form.last):
        at, end = piece.span(1)
        while at < end:
            match = _ESCAPE.match(text, at, end)
            spelled = match[0] if match else text[at]
            for char in unescape(spelled):
                yield char, Span(at, at + len(spelled))
            at += len(spelled)


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        codes = (int(octal or code, 8 if octal else 16) for code, octal in _NUMBER.findall(match[1]))
        return bytes(codes).decode()
    if match[2] not in _NAMED:
        raise ValueError(f"{match[0]} is no escape that gettext knows")
    return _NAMED[match[2]]


def _entry(text: str, match: re.Match[str]) -> Entry:
    context, plural = match[2], match[4]
    try:
        name = None if context is None else joined(context)
        msgid = joined(match[3])
        other = None if plural is None else joined(plural)
        forms = _forms(text, match.end(), plural is not None)
    except ValueError:
        complain(text, match.start())
    body = match.end(1)
    start, remarks = body, _NO_REMARKS
    if (comment := text.find("#", match.start(), body)) >= 0:
        start = max(
            match.start(), text.rfind("\n", 0, comment) + 1, text.rfind("\r", match.start(), comment) + 1
        )
        remarks = _remarks(text, start, body)
    key = msgid if name is None else f"{name}\4{msgid}"
    return Entry(start, body, forms[-1].end, key, name, msgid, other, forms, *remarks)


def _forms(text: str, at: int, numbered: bool) -> tuple[Form, ...]:
    """The msgstrs from `at` on: one, or as many as a plural has, numbered from 0. Raises `ValueError`."""
    forms: list[Form] = []
    while match := _FORM.match(text, at):
        if match[2] != (str(len(forms)) if numbered else None):
            raise ValueError
        first, last = match.span(3)
        at = match.end()
        forms.append(Form(match.end(1), at, first, last, joined(match[3])))
        if not numbered:
            break
    if not forms:
        raise ValueError
    return tuple(forms)


def _remarks(text: str, start: int, end: int) -> _Remarks:
    """Notes, flags and former msgids out of the comments between two places."""
    notes: list[str] = []
    flags: list[tuple[Line, list[str]]] = []
    previous: list[Line] = []
    for match in _REMARK.finditer(text, start, end):
        if match[1] == ".":
            notes.append(match[2].strip())
            continue
        line = Line(match.start(), match.end(2), match.end())
        if match[1] == ",":
            flags.append((line, [flag.strip() for flag in match[2].split(",")]))
        else:
            previous.append(line)
    return "\n".join(notes), tuple(flags), tuple(previous)
