"""JSON seen as places: where every value stands in the text, and how the file likes to spell strings.

Promises RFC 8259 and nothing beside it (a comment, a second key of one name, a lone surrogate or anything
after the end is refused with its line), exact offsets, and that what `Spelling` writes reads back as it was
given, in the file's own way of escaping. Knows nothing of translation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn

from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError

DEPTH_MAX = 200
"""Nesting beyond this is no catalogue."""

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"([^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*)"')
_OTHER = re.compile(r"(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.+-])", re.ASCII)
_ESCAPES = re.compile(r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.)")
_WIDE = re.compile(r"[^\x00-\x7f]")
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_MUST = {char: f"\\u{ord(char):04x}" for char in map(chr, range(0x20))} | {
    char: "\\" + short for short, char in _SHORT.items() if char != "/"
}


@dataclass(frozen=True, slots=True)
class Value:
    """One value at `start` to `end`; `text` is that of a string, `members` those of an object or array."""

    kind: Literal["object", "array", "string", "other"]
    start: int
    end: int
    text: str = ""
    members: tuple[Member, ...] = ()

    def member(self, name: str) -> Member | None:
        """The member of that name."""
        return next((member for member in self.members if member.name == name), None)


@dataclass(frozen=True, slots=True)
class Member:
    """A named value. An array's names are its indexes; its `key_end` is where the value begins."""

    name: str
    start: int
    key_end: int
    value: Value


class Spelling:
    """How one file escapes. `ascii_only`: nothing beyond ASCII stands raw; `own`: what it always escapes."""

    def __init__(self, ascii_only: bool, upper: bool, own: Mapping[str, str]) -> None:
        self._ascii_only = ascii_only
        self._upper = upper
        self._table = {ord(char): raw for char, raw in (_MUST | dict(own)).items()}

    def inner(self, text: str) -> str:
        """The text as it stands between quotes."""
        spelled = text.translate(self._table)
        return spelled if not self._ascii_only or spelled.isascii() else _WIDE.sub(self._hex, spelled)

    def quoted(self, text: str) -> str:
        """The text as a JSON string."""
        return f'"{self.inner(text)}"'

    def _hex(self, match: re.Match[str]) -> str:
        units = match[0].encode("utf-16-be").hex()
        units = units.upper() if self._upper else units
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def scan(text: str) -> Value:
    """The whole text as one value. Raises `DocumentError` with the line of what is not JSON."""
    start = _space(text, 0)
    if start == len(text):
        raise DocumentError("the file is empty: JSON needs a value", line=1)
    value = _value(text, start, 0)
    end = _space(text, value.end)
    if end < len(text):
        _refuse(text, end, "nothing may follow the end of the value")
    return value


def spelling_of(text: str) -> Spelling:
    """The habit of a valid JSON text: what it escapes although it need not."""
    forms: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    upper = wide = False
    for match in _ESCAPES.finditer(text):
        raw = match[0]
        char = unescape(raw)
        forms.setdefault(char, set()).add(raw)
        counts[char] = counts.get(char, 0) + 1
        if raw[1] == "u":
            upper = upper or raw != raw.lower()
            wide = wide or ord(char[0]) > 0x7F
    own = {
        char: raw
        for char, (raw, *others) in ((char, sorted(found)) for char, found in forms.items())
        if not others and (char in _MUST or text.count(char) == (counts[char] if raw == "\\/" else 0))
    }
    return Spelling(wide and text.isascii(), upper, own)


def unescape(raw: str) -> str:
    """What stands between a string's quotes, as text; a surrogate without its mate stays one."""
    return _ESCAPES.sub(_unescaped, raw) if "\\" in raw else raw


def _unescaped(match: re.Match[str]) -> str:
    raw = match[0]
    if len(raw) == 2:
        return _SHORT[raw[1]]
    units = bytes.fromhex(raw.replace("\\u", ""))
    return units.decode("utf-16-be", "surrogatepass")


def _value(text: str, at: int, depth: int) -> Value:
    opening = text[at : at + 1]
    if opening == '"':
        end, value = _string(text, at)
        return Value("string", at, end, value)
    if opening in ("{", "["):
        if depth == DEPTH_MAX:
            _refuse(text, at, f"nested deeper than {DEPTH_MAX} levels")
        return _container(text, at, depth, opening == "{")
    match = _OTHER.match(text, at)
    if not match:
        _refuse(text, at, "a value is expected here")
    return Value("other", at, match.end())


def _container(text: str, start: int, depth: int, named: bool) -> Value:
    closing = "}" if named else "]"
    members: list[Member] = []
    names: set[str] = set()
    at = _space(text, start + 1)
    while text[at : at + 1] != closing or members:
        member = _member(text, at, depth) if named else _element(text, at, depth, len(members))
        if member.name in names:
            _refuse(text, member.start, f"the key {member.name!r} stands here a second time")
        names.add(member.name)
        members.append(member)
        at = _space(text, member.value.end)
        if text[at : at + 1] == closing:
            break
        if text[at : at + 1] != ",":
            _refuse(text, at, f"a comma or {closing!r} is expected here")
        at = _space(text, at + 1)
    return Value("object" if named else "array", start, at + 1, members=tuple(members))


def _member(text: str, at: int, depth: int) -> Member:
    if text[at : at + 1] != '"':
        _refuse(text, at, "a key in double quotes is expected here")
    key_end, name = _string(text, at)
    colon = _space(text, key_end)
    if text[colon : colon + 1] != ":":
        _refuse(text, colon, "a colon is expected here")
    return Member(name, at, key_end, _value(text, _space(text, colon + 1), depth + 1))


def _element(text: str, at: int, depth: int, index: int) -> Member:
    return Member(str(index), at, at, _value(text, at, depth + 1))


def _string(text: str, at: int) -> tuple[int, str]:
    match = _STRING.match(text, at)
    if not match:
        _refuse(text, at, "this string does not end, or holds a raw control character or an unknown escape")
    value = unescape(match[1])
    if "\\" in match[1] and any("\ud800" <= char <= "\udfff" for char in value):
        _refuse(text, at, "this string holds half of a surrogate pair")
    return match.end(), value


def _space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _refuse(text: str, at: int, reason: str) -> NoReturn:
    if text.startswith(("//", "/*"), at):
        reason = "JSON has no comments"
    raise DocumentError(reason if at < len(text) else f"the file ends, but {reason}", line_at(text, at))
