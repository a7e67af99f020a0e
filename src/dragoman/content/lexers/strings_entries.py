"""Apple's .strings seen as places: where each entry, its key, its value and its comments stand.

Promises that entries, with the comments before and behind them, follow each other without a gap, that a quote
or an apostrophe inside a comment opens nothing, and that scanning is linear. `escaped` spells what `scan`
reads. Knows nothing of translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|//[^\r\n]*)
    |(?P<string>"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')
    |(?P<bare>(?:[\w$:.\-]|/(?!\*))+)
    |(?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(
    r"\\U[dD][89abAB][0-9a-fA-F]{2}\\U[dD][c-fC-F][0-9a-fA-F]{2}|\\U[0-9a-fA-F]{1,4}|\\[0-7]{1,3}|\\.",
    re.DOTALL,
)
_LINE_END = re.compile(r"\r\n?|\n")
_BLANK = re.compile(r"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)")
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SPELLED = {char: f"\\U{ord(char):04x}" for char in map(chr, (*range(0x20), 0x7F))} | {
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\\": "\\\\",
}
_WIDE = re.compile(r"[^\x00-\x7f]")
_NOTHING = "No comment provided by engineer."
"""What genstrings writes where a programmer said nothing."""
_ASCII_MAX = 0x7F


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key = value;`, or `key;` whose value is the key.

    It reaches from `start`, the end of the entry before, to `end`. `core` is where what belongs to it alone
    begins: the line of its own comments. Above that stand blank lines, and comments of a section's own.
    """

    key: str
    text: str
    start: int
    core: int
    end: int
    key_span: Span
    value: Span
    """With its quotes; empty, behind the key, where the value is the key."""
    semicolon: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    start: int
    end: int
    raw: str


def scan(text: str) -> tuple[Entry, ...]:
    """All entries in file order. Raises `DocumentError` with the line of what is none."""
    return tuple(_Reading(text).entries())


def escaped(text: str, quote: str = '"', ascii_only: bool = False) -> str:
    """A text as it stands between quotes; `ascii_only` spells all else as `\\Uxxxx`."""
    spelled = text.translate({ord(char): raw for char, raw in (_SPELLED | {quote: "\\" + quote}).items()})
    return _WIDE.sub(_hex, spelled) if ascii_only else spelled


def unescaped(raw: str) -> str:
    """What stands between quotes, as text. Raises `ValueError` for an escape that means no character."""
    if "\\" not in raw:
        return raw
    text = _ESCAPE.sub(_character, raw)
    if any("\ud800" <= char <= "\udfff" or char == "\0" for char in text):
        raise ValueError("half of a surrogate pair, or NUL")
    return text


def spells_ascii(text: str) -> bool:
    """Whether a file writes what is beyond ASCII as escapes only."""
    return text.isascii() and any(
        int(found, 16) > _ASCII_MAX for found in re.findall(r"(?<!\\)\\U([0-9a-fA-F]{4})", text)
    )


def _hex(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be").hex()
    return "".join(f"\\U{units[at : at + 4]}" for at in range(0, len(units), 4))


def _character(match: re.Match[str]) -> str:
    raw = match[0]
    if raw[1] == "U" and len(raw) > 2:
        return bytes.fromhex("".join(part.zfill(4) for part in raw.split("\\U")[1:])).decode(
            "utf-16-be", "surrogatepass"
        )
    if raw[1] in "01234567":
        code = int(raw[1:], 8)
        if code > _ASCII_MAX:
            raise ValueError(f"{raw} means another character to each reader")
        return chr(code)
    return _NAMED.get(raw[1], raw[1:])


class _Reading:
    """One text under the scanner."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._tokenized())
        self._at = 0

    def entries(self) -> Iterator[Entry]:
        seen: dict[str, int] = {}
        start = 0
        while (comments := self._comments()) is not None:
            entry = self._entry(start, comments)
            if entry.key in seen:
                self._refuse(entry.key_span.start, f"the key {entry.key!r} stands here a second time")
            seen[entry.key] = entry.start
            start = entry.end
            yield entry

    def _tokenized(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                self._refuse(at, _why(self._text, at))
            if match.lastgroup != "space":
                yield _Token(match.lastgroup or "", at, match.end(), match[0])
            at = match.end()

    def _comments(self) -> list[_Token] | None:
        """The comments before the next entry; None where no entry follows."""
        found: list[_Token] = []
        while self._at < len(self._tokens) and self._tokens[self._at].kind == "comment":
            found.append(self._tokens[self._at])
            self._at += 1
        return found if self._at < len(self._tokens) else None

    def _entry(self, start: int, before: list[_Token]) -> Entry:
        key = self._value("a key is expected here, in quotes or of letters and digits", within=before)
        within: list[_Token] = []
        mark = self._next("an equals sign or a semicolon is expected behind the key", within)
        value, text = Span(key.end, key.end), self._said(key)
        if mark.raw == "=":
            token = self._value("a value is expected here, in quotes or of letters and digits", within)
            value, text = Span(token.start, token.end), self._said(token)
            mark = self._next("a semicolon is expected behind the value", within)
        if mark.raw != ";":
            self._refuse(mark.start, "a semicolon is expected before this")
        behind, end = self._behind(mark.end)
        own = self._own(before, key.start)
        core = self._line_start(start, own[0].start if own else key.start)
        return Entry(
            self._said(key),
            text,
            start,
            core,
            end,
            Span(key.start, key.end),
            value,
            mark.start,
            tuple(note for token in (*own, *within, *behind) if (note := _note(token.raw))),
        )

    def _next(self, why: str, comments: list[_Token]) -> _Token:
        """The next token that is no comment; what is passed goes to `comments`."""
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token.kind != "comment":
                return token if token.kind == "mark" else self._refuse(token.start, why)
            comments.append(token)
        self._refuse(len(self._text), why)

    def _value(self, why: str, within: list[_Token]) -> _Token:
        while self._at < len(self._tokens) and self._tokens[self._at].kind == "comment":
            within.append(self._tokens[self._at])
            self._at += 1
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is None or token.kind not in ("string", "bare"):
            self._refuse(token.start if token else len(self._text), why)
        self._at += 1
        return token

    def _behind(self, end: int) -> tuple[list[_Token], int]:
        """The comments that begin on the line on which an entry ends, and where that line is over."""
        found: list[_Token] = []
        while self._at < len(self._tokens) and self._tokens[self._at].kind == "comment":
            token = self._tokens[self._at]
            if _LINE_END.search(self._text, end, token.start):
                break
            found.append(token)
            end = token.end
            self._at += 1
        following = self._tokens[self._at].start if self._at < len(self._tokens) else len(self._text)
        over = _LINE_END.search(self._text, end, following)
        return found, over.end() if over else end

    def _own(self, comments: list[_Token], key: int) -> list[_Token]:
        """The comments right above a key; a blank line parts them from those that stand for themselves."""
        edge, own = key, len(comments)
        while own and not _BLANK.search(self._text, comments[own - 1].end, edge):
            own -= 1
            edge = comments[own].start
        return comments[own:]

    def _line_start(self, start: int, at: int) -> int:
        """Where the line begins on which an entry's own comments do; not before `start`."""
        return max(start, self._text.rfind("\n", start, at) + 1, self._text.rfind("\r", start, at) + 1)

    def _said(self, token: _Token) -> str:
        try:
            return unescaped(token.raw[1:-1]) if token.kind == "string" else token.raw
        except ValueError as error:
            self._refuse(token.start, f"this string holds an escape that cannot be read: {error}")

    def _refuse(self, at: int, reason: str) -> NoReturn:
        raise DocumentError(
            reason if at < len(self._text) else f"the file ends, but {reason}", line_at(self._text, at)
        )


def _why(text: str, at: int) -> str:
    if text.startswith("/*", at):
        return "this comment does not end"
    if text[at] in "\"'":
        return "this string does not end"
    if text.startswith(("<?xml", "<!DOCTYPE", "<plist"), at):
        return "this is a property list in XML: turn it into `key = value;` lines, as translators get them"
    if text[at] in "{(<":
        return "an object, a list or data stands here: only strings are translated"
    return f"{text[at]!r} is nothing that may stand here"


def _note(raw: str) -> str:
    """What a comment says, without its marks."""
    said = raw[2:-2] if raw.startswith("/*") else raw[2:]
    lines = (line.strip().lstrip("*").strip() for line in said.splitlines())
    note = "\n".join(filter(None, lines))
    return "" if note == _NOTHING else note
