"""JSON seen as places: where every value stands in the text, and how the file likes to spell strings.

Promises RFC 8259 and nothing beside it (a comment, a second key of one name, a lone surrogate or anything
after the end is refused with its line), exact offsets, and that what `Spelling` writes reads back as it was
given, in the file's own way of escaping. Knows nothing of translation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, NoReturn

from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError

DEPTH_MAX = 200
"""Nesting beyond this is no catalogue."""

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"([^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*)"')
_PLAIN = re.compile(r'"([^"\\\x00-\x1f]*)"').match
_PLAIN_KEY = re.compile(r'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*').match
_PLAIN_PAIR = re.compile(
    r'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*,[ \t\n\r]*'
).match
_COMMA = re.compile(r"[ \t\n\r]*,[ \t\n\r]*").match
_OTHER = re.compile(r"(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.+-])", re.ASCII)
_ESCAPES = re.compile(r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.)")
_WIDE = re.compile(r"[^\x00-\x7f]")
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_MUST = {char: f"\\u{ord(char):04x}" for char in map(chr, range(0x20))} | {
    char: "\\" + short for short, char in _SHORT.items() if char != "/"
}


class Value(NamedTuple):
    """One value at `start` to `end`; `text` is that of a string, `members` those of an object or array."""

    kind: Literal["object", "array", "string", "other"]
    start: int
    end: int
    text: str = ""
    members: tuple[Member, ...] = ()

    def member(self, name: str) -> Member | None:
        """The member of that name, the last where several have it."""
        return next((member for member in reversed(self.members) if member.name == name), None)


class Member(NamedTuple):
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
        self._special = re.compile(f"[{re.escape(''.join(map(chr, self._table)))}]").search

    def inner(self, text: str) -> str:
        """The text as it stands between quotes."""
        spelled = text.translate(self._table) if self._special(text) else text
        return spelled if not self._ascii_only or spelled.isascii() else _WIDE.sub(self._hex, spelled)

    def quoted(self, text: str) -> str:
        """The text as a JSON string."""
        return f'"{self.inner(text)}"'

    def _hex(self, match: re.Match[str]) -> str:
        units = match[0].encode("utf-16-be").hex()
        units = units.upper() if self._upper else units
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def scan(text: str, *, repeats: bool = False) -> Value:
    """The whole text as one value. Raises `DocumentError` with the line of what is not JSON.

    `repeats` allows a name twice in one object, as readers of some dialects do: the last one counts there.
    """
    start = _space(text, 0)
    if start == len(text):
        raise DocumentError("the file is empty: JSON needs a value", line=1)
    value = _Scanner(text, repeats).value(start, 0)
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


class _Scanner:
    """One pass over a text. What is common (a plain name, a plain string) is met by one match each."""

    def __init__(self, text: str, repeats: bool) -> None:
        self._text = text
        self._repeats = repeats
        self._names: dict[str, str] = {}

    def value(self, at: int, depth: int) -> Value:
        text = self._text
        if plain := _PLAIN(text, at):
            return Value("string", at, plain.end(), plain[1])
        opening = text[at : at + 1]
        if opening == '"':
            end, inner = _string(text, at)
            return Value("string", at, end, inner)
        if opening in ("{", "["):
            if depth == DEPTH_MAX:
                _refuse(text, at, f"nested deeper than {DEPTH_MAX} levels")
            return self._object(at, depth + 1) if opening == "{" else self._array(at, depth + 1)
        match = _OTHER.match(text, at)
        if not match:
            _refuse(text, at, "a value is expected here")
        return Value("other", at, match.end())

    def _object(self, start: int, depth: int) -> Value:
        text, known = self._text, self._names
        members: list[Member] = []
        names: set[str] = set()
        at = _space(text, start + 1)
        while members or text[at : at + 1] != "}":
            value: Value | None = None
            if pair := _PLAIN_PAIR(text, at):
                name, inner = pair.groups()
                (_, following), (_, key_end), (first, last) = pair.regs
                value, key_end = Value("string", first - 1, last + 1, inner), key_end + 1
            elif key := _PLAIN_KEY(text, at):
                name, key_end, place = key[1], key.end(1) + 1, key.end()
            else:
                name, key_end, place = self._key(at)
            names.add(name)
            if len(names) == len(members) and not self._repeats:
                _refuse(text, at, f"the key {name!r} stands here a second time")
            if value is None:
                value = self.value(place, depth)
                comma = _COMMA(text, value.end)
                following = comma.end() if comma else 0
            members.append(Member(known.setdefault(name, name), at, key_end, value))
            if not following:
                at = self._closing(value.end, "}")
                break
            at = following
        return Value("object", start, at + 1, "", tuple(members))

    def _array(self, start: int, depth: int) -> Value:
        members: list[Member] = []
        at = _space(self._text, start + 1)
        while members or self._text[at : at + 1] != "]":
            members.append(Member(str(len(members)), at, at, self.value(at, depth)))
            comma = _COMMA(self._text, members[-1].value.end)
            if not comma:
                at = self._closing(members[-1].value.end, "]")
                break
            at = comma.end()
        return Value("array", start, at + 1, "", tuple(members))

    def _key(self, at: int) -> tuple[str, int, int]:
        """A name with escapes, its end, and where its value begins."""
        text = self._text
        if text[at : at + 1] != '"':
            _refuse(text, at, "a key in double quotes is expected here")
        end, name = _string(text, at)
        colon = _space(text, end)
        if text[colon : colon + 1] != ":":
            _refuse(text, colon, "a colon is expected here")
        return name, end, _space(text, colon + 1)

    def _closing(self, end: int, closing: str) -> int:
        """The offset of the bracket that must close a container behind its last member."""
        at = _space(self._text, end)
        if self._text[at : at + 1] != closing:
            _refuse(self._text, at, f"a comma or {closing!r} is expected here")
        return at


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
