"""Java properties seen as places: where each key, its separator and its value stand.

Promises what `java.util.Properties.load` reads: comments, blank lines, continued lines, the three separators
and the escapes; a `\\u` without its four digits is refused with its line. `Spelling` writes in the file's own
habit. Knows nothing of translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dragoman.content.lexers.escaping_habits import habits
from dragoman.content.spans import line_at, line_spans
from dragoman.kernel.errors import DocumentError

_BLANK = " \t\f"
_KEY = re.compile(r"(?:[^\\=: \t\f\r\n]|\\(?:(?:\r\n|\n|\r)[ \t\f]*|[^\r\n]))*+")
_GAP = r"(?:[ \t\f]|\\(?:\r\n|\n|\r))*+"
_SEPARATOR = re.compile(rf"{_GAP}(?:[=:]{_GAP})?")
_JOINED = re.compile(r"\\(?:\r\n|\n|\r)[ \t\f]*")
_ESCAPE = re.compile(r"\\(?:(?:\r\n|\n|\r)[ \t\f]*|u([0-9a-fA-F]{4})|([\s\S]))")
_BAD_UNICODE = re.compile(r"(?:[^\\]|\\[^u]|\\u[0-9a-fA-F]{4})*+\\u")
_PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_MUST = {"\\": "\\\\"} | {char: f"\\{short}" for short, char in _SHORT.items()}
_WORD = re.compile(r"(?:\\[\s\S]|[^ \\])*+ *")
_WIDTH_MIN = 40


@dataclass(frozen=True, slots=True)
class Entry:
    """One key and its value. `lead` is where its own comments and the blank lines before it begin.

    `value` and `end` bound the raw value, continued lines included; at `next` the following line begins.
    """

    key: str
    text: str
    lead: int
    start: int
    value: int
    end: int
    next: int
    note: str


def scan(text: str) -> list[Entry]:
    """Every entry, in file order. Raises `DocumentError` where Java would refuse to read on."""
    entries: list[Entry] = []
    lines = line_spans(text)
    lead, notes, index = 0, list[str](), 0
    while index < len(lines):
        start, end, behind = lines[index]
        line = text[start:end].strip(_BLANK)
        index += 1
        if text[start:end].lstrip(_BLANK) == "\\":
            continue  # continues nothing: what follows is a line of its own, and may be a comment
        if not line:
            if not entries and notes:
                lead = behind  # what stands above a blank line at the top is about the file
            notes = []
        elif line[0] in "#!":
            notes.append(line[1:].strip())
        else:
            while _continues(text, start, end) and index < len(lines):
                _, end, behind = lines[index]
                index += 1
            entries.append(_entry(text, lead, (start, end, behind), "\n".join(notes)))
            lead, notes = behind, []
    return entries


def unescape(raw: str) -> str:
    """A raw key or value as Java reads it. A surrogate without its mate stays one."""
    if "\\" not in raw:
        return raw
    return _PAIR.sub(_joined, _ESCAPE.sub(_unescaped, raw))


class Spelling:
    """How one file escapes: in which encoding, and what it always escapes although it need not."""

    def __init__(
        self, raws: Iterable[str], elsewhere: Iterable[str], encoding: str, ascii_only: bool
    ) -> None:
        """By the file's raw values; `elsewhere` are another's, for characters that this one does not have."""
        self._encoding = "ascii" if ascii_only else encoding
        self._own = habits(raws, elsewhere, _ESCAPE, unescape) | _MUST
        self._upper = any(form != form.lower() for form in self._own.values())

    def raw(self, text: str) -> str:
        """A value on one line."""
        spelled = "".join(map(self._spelled, text))
        return f"\\{spelled}" if spelled[:1] in (" ", "=", ":") else spelled

    def like(self, old: str, text: str, newline: str) -> str:
        """A value on as many lines as it needs to look like the raw value `old`."""
        raw, joins = self.raw(text), _JOINED.findall(old)
        if not joins:
            return raw
        indent = newline + joins[-1].lstrip("\\\r\n")
        rows = _JOINED.split(old)
        if any(row.endswith("\\n") for row in rows[:-1]):
            pieces = re.findall(r"(?:\\[^n]|[^\\])*+(?:\\n|\Z)", raw)
        else:
            pieces = _filled(raw, max(_WIDTH_MIN, *map(len, rows)))
        return f"\\{indent}".join(_kept_blank(piece) for piece in pieces if piece)

    def _spelled(self, char: str) -> str:
        if known := self._own.get(char):
            return known
        if char.isascii() or _fits(char, self._encoding):
            return char if char >= " " and char != "\x7f" else self._hex(char)
        return self._hex(char)

    def _hex(self, char: str) -> str:
        units = char.encode("utf-16-be", "surrogatepass").hex()
        units = units.upper() if self._upper else units
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _entry(text: str, lead: int, line: tuple[int, int, int], note: str) -> Entry:
    start, end, behind = line
    while text[start] in _BLANK:
        start += 1
    key = _KEY.match(text, start, end)
    key_end = key.end() if key else start
    separator = _SEPARATOR.match(text, key_end, end)
    value = separator.end() if separator else key_end
    raw = text[value:end]
    if bad := _BAD_UNICODE.match(text[start:end]):
        raise DocumentError(
            "`\\u` is followed by four hexadecimal digits, or written `\\\\u`",
            line_at(text, start + bad.end()),
        )
    if raw.endswith("\\") and _continues(text, value, end):
        raw = raw[:-1]  # a file that ends in the midst of a continued line
    return Entry(unescape(text[start:key_end]), unescape(raw), lead, start, value, end, behind, note)


def _continues(text: str, start: int, end: int) -> bool:
    """Whether a line ends with an odd number of backslashes."""
    at = end
    while at > start and text[at - 1] == "\\":
        at -= 1
    return (end - at) % 2 == 1


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return _SHORT.get(match[2], match[2]) if match[2] else ""


def _joined(match: re.Match[str]) -> str:
    return match[0].encode("utf-16-be", "surrogatepass").decode("utf-16-be")


def _fits(char: str, encoding: str) -> bool:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _filled(raw: str, width: int) -> list[str]:
    """A raw value cut between words, no row wider than `width` unless a word is."""
    rows = [""]
    for word in _WORD.findall(raw):
        if rows[-1] and len(rows[-1]) + len(word.rstrip(" ")) > width:
            rows.append("")
        rows[-1] += word
    return rows


def _kept_blank(row: str) -> str:
    """A continued row loses the blanks that it begins with, unless the first is escaped."""
    return f"\\{row}" if row[:1] in (" ", "\t", "\f") else row
