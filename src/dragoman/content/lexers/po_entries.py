"""PO files seen as places: every entry with its comments, flags, strings and their exact offsets.

Promises GNU gettext's grammar line by line; what is not of it (a string without an end, a msgstr without its
msgid, one message twice) is refused with its line. Obsolete entries are passed over, with the comments that
belong to them. Knows nothing of headers, languages or plural rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from dragoman.content.spans import line_spans
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d{1,3})\])?(?![\w\[])[ \t]*")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"[ \t\f\v]*')
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


@dataclass(slots=True)
class Quoted:
    """A keyword and its strings, from the start of its line to behind its last one.

    `first` to `last` reaches from the first quote to behind the last; `pieces` are the strings as written,
    without quotes, each with its offset.
    """

    keyword: str
    line: int
    start: int
    end: int
    first: int = -1
    last: int = -1
    pieces: list[tuple[int, str]] = field(default_factory=list)
    text: str = ""


@dataclass(slots=True)
class Entry:
    """One message that is not obsolete; `line` is that of its first keyword."""

    start: int = -1
    end: int = -1
    line: int = 0
    context: str | None = None
    msgid: str = ""
    plural: str | None = None
    forms: list[Quoted] = field(default_factory=list)
    strings: list[Quoted] = field(default_factory=list)
    """All keywords in their order, the forms among them."""
    notes: list[str] = field(default_factory=list)
    flags: list[tuple[Line, list[str]]] = field(default_factory=list)
    previous: list[Line] = field(default_factory=list)

    @property
    def key(self) -> str:
        """As in MO files: context, U+0004 and msgid; the msgid alone where there is no context."""
        return self.msgid if self.context is None else f"{self.context}\4{self.msgid}"

    @property
    def fuzzy(self) -> bool:
        """Whether a flag says that the translation is a guess."""
        return any("fuzzy" in flags for _, flags in self.flags)


def scan(text: str) -> list[Entry]:
    """All entries in file order, the header among them. Raises `DocumentError` with the line at fault."""
    found: dict[str, Entry] = {}
    for entry in _Scanner(text).entries():
        first = found.setdefault(entry.key, entry)
        if first is not entry:
            raise DocumentError(f"this message stands on line {first.line} already", entry.line)
    return list(found.values())


def unescape(raw: str) -> str:
    """A string's text; numbered escapes are bytes of UTF-8. Raises `ValueError` for an unknown escape."""
    return _ESCAPE.sub(_unescaped, raw) if "\\" in raw else raw


def escape(text: str) -> str:
    """The text as it stands between quotes, on one line."""
    return text.translate(_SPELLED)


def characters(quoted: Quoted) -> Iterator[tuple[str, Span]]:
    """Every character of the text with the place of its spelling in the file."""
    for start, raw in quoted.pieces:
        at = 0
        while at < len(raw):
            match = _ESCAPE.match(raw, at)
            spelled = match[0] if match else raw[at]
            for char in unescape(spelled):
                yield char, Span(start + at, start + at + len(spelled))
            at += len(spelled)


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        codes = (int(octal or code, 8 if octal else 16) for code, octal in _NUMBER.findall(match[1]))
        return bytes(codes).decode()
    if match[2] not in _NAMED:
        raise ValueError(f"{match[0]} is no escape that gettext knows")
    return _NAMED[match[2]]


class _Scanner:
    """Reads line by line; an entry is given out when the next one, or a comment, begins."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 0
        self._entry = Entry()
        self._seen: set[str] = set()
        self._open: Quoted | None = None

    def entries(self) -> Iterator[Entry]:
        """The entries, in file order."""
        for start, end, following in line_spans(self._text):
            self._line += 1
            line = self._text[start:end].strip(" \t\f\v")
            keyword = _KEYWORD.match(line)
            starts = keyword and keyword[1] in ("msgctxt", "msgid")
            if (
                self._seen
                and (starts or line.startswith("#"))
                and ("msgstr" in self._seen or line[:2] == "#~")
            ):
                yield self._taken()
            if line.startswith("#"):
                self._comment(line, Line(start, end, following))
            elif line:
                self._strings(line, keyword, start, following)
        if self._seen:
            yield self._taken()

    def _taken(self) -> Entry:
        self._close()
        entry = self._entry
        if not entry.forms:
            self._refuse("this entry has no msgstr", entry.line)
        entry.end = entry.forms[-1].end
        self._entry, self._seen = Entry(), set()
        return entry

    def _comment(self, line: str, place: Line) -> None:
        entry = self._entry
        entry.start = place.start if entry.start < 0 else entry.start
        if line.startswith("#~"):
            self._entry = Entry()  # comments in front of an obsolete entry are its own
        elif line.startswith("#,"):
            entry.flags.append((place, [flag.strip() for flag in line[2:].split(",")]))
        elif line.startswith("#|"):
            entry.previous.append(place)
        elif line.startswith("#."):
            entry.notes.append(line[2:].strip())

    def _strings(self, line: str, keyword: re.Match[str] | None, start: int, following: int) -> None:
        """A keyword, or the strings that go on with the last one."""
        at = 0
        if keyword:
            self._close()
            self._begin(keyword, start, following)
            at = keyword.end()
        if self._open is None:
            self._refuse("a comment or a keyword (msgid, msgstr …) is expected here")
        quoted, offset = self._open, self._text.index(line, start)
        while at < len(line):
            string = _STRING.match(line, at)
            if not string:
                self._refuse("a string in double quotes that ends on its line is expected here")
            quoted.first = offset + at if quoted.first < 0 else quoted.first
            quoted.last = offset + string.end(1) + 1
            quoted.pieces.append((offset + string.start(1), string[1]))
            at = string.end()
        quoted.end = following

    def _begin(self, keyword: re.Match[str], start: int, following: int) -> None:
        entry, name = self._entry, keyword[1]
        index = int(keyword[2]) if keyword[2] else None
        count = len(entry.forms)
        allowed = {
            "msgctxt": not self._seen,
            "msgid": "msgid" not in self._seen,
            "msgid_plural": "msgid" in self._seen and "msgid_plural" not in self._seen and not count,
            "msgstr": "msgid" in self._seen
            and (index == count if "msgid_plural" in self._seen else not count),
        }[name]
        numbered = name == "msgstr" and "msgid_plural" in self._seen
        if not allowed or numbered != (index is not None):
            self._refuse(f"{keyword[0].strip()} is not expected here")
        if not self._seen:
            entry.line = self._line
            entry.start = start if entry.start < 0 else entry.start
        self._seen.add(name)
        self._open = Quoted(name, self._line, start, following)

    def _close(self) -> None:
        """Take over the strings of the keyword that was open."""
        quoted, entry = self._open, self._entry
        self._open = None
        if quoted is None:
            return
        if not quoted.pieces:
            self._refuse(f"this {quoted.keyword} has no string", quoted.line)
        try:
            quoted.text = unescape("".join(raw for _, raw in quoted.pieces))
        except ValueError as error:
            self._refuse(f"in this {quoted.keyword}: {error}", quoted.line)
        entry.strings.append(quoted)
        if quoted.keyword == "msgctxt":
            entry.context = quoted.text
        elif quoted.keyword == "msgid":
            entry.msgid = quoted.text
        elif quoted.keyword == "msgid_plural":
            entry.plural = quoted.text
        else:
            entry.forms.append(quoted)

    def _refuse(self, reason: str, line: int = 0) -> NoReturn:
        raise DocumentError(reason, line or self._line)
