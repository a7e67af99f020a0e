"""TOML seen as places: where each string stands, and how to put another in its stead.

Promises exact spans for the strings that `tomllib` reads, in tables, arrays and inline tables alike, and that
a replacement keeps its quotes where these can hold it, reads back as the value meant and changes no other.
Where this scanner and `tomllib` disagree, the string counts for nothing. Knows nothing of translation.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

Path = tuple[str, ...]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}|\'\'\'(?:[^\']|\'{1,2}(?!\'))*+\'{3,5}'
    r'|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*\'',
    re.DOTALL,
)
_KEY = re.compile(r"[ \t]*(?P<part>[\w-]+|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*')[ \t]*(?P<dot>\.?)", re.ASCII)
_OTHER = re.compile(r"[^\s,\]}#]+(?: \d[^\s,\]}#]*)?")
_LINE = re.compile(r"\(at line (\d+)")
_ESCAPED = re.compile(r'[\x00-\x08\x0a-\x1f\x7f"\\]')
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_DEPTH_MAX = 50


@dataclass(frozen=True, slots=True)
class TomlString:
    """One string; `span` covers its quotes. Indexes of arrays are parts of the path."""

    path: Path
    value: str
    span: Span


def strings(text: str, first_line: int = 1) -> list[TomlString]:
    """All strings, in order. Raises `DocumentError` for what is not TOML, lines counted from `first_line`."""
    meant = read(text, first_line)
    return [string for string in _Scanner(text).run() if _at(meant, string.path) == string.value]


def read(text: str, first_line: int = 1) -> dict[str, object]:
    """The whole of it as `tomllib` reads it."""
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        line = int(found[1]) - 1 if found else 0
        raise DocumentError(f"this is not TOML: {error}", first_line + line) from error
    except RecursionError:
        raise DocumentError("this TOML is nested too deeply", first_line) from None


def replaced(text: str, string: TomlString, value: str) -> str:
    """What is to stand at the string's span, so that TOML reads `value` there and nothing else changes."""
    start, end = string.span.start, string.span.end
    expected = dict(leaves(text)) | {string.path: repr(value)}
    for spelled in _spellings(text[start:end], value):
        try:
            if dict(leaves(text[:start] + spelled + text[end:])) == expected:
                return spelled
        except DocumentError:
            continue
    raise DocumentError(f"TOML cannot hold the new text of {'.'.join(string.path)!r}")


def leaves(text: str) -> Iterator[tuple[Path, str]]:
    """Every value with its path, spelled as Python shows it."""
    return ((path, repr(value)) for path, value in _leaves(read(text), ()))


def _leaves(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*path, str(index)))
    else:
        yield path, value


def _at(value: object, path: Path) -> object:
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


class _Scanner:
    """Walks down valid TOML; gives up at what it does not know, since `tomllib` has the last word."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counts: Counter[Path] = Counter()

    def run(self) -> Iterator[TomlString]:
        table: Path = ()
        while self._spaced() < len(self._text):
            if self._text.startswith("[", self._at):
                listed = self._text.startswith("[[", self._at)
                self._at += 1 + listed
                table = self._resolved(self._key(), listed)
                line_end = self._text.find("\n", self._at)
                self._at = line_end if line_end >= 0 else len(self._text)
                continue
            key = self._key()
            if not key or not self._taken("="):
                return
            yield from self._value((*table, *key), 0)

    def _resolved(self, key: Path, listed: bool) -> Path:
        """A table's path with the index of each array of tables on the way."""
        path: Path = ()
        for index, part in enumerate(key):
            path = (*path, part)
            if listed and index + 1 == len(key):
                self._counts[path] += 1
            if self._counts[path]:
                path = (*path, str(self._counts[path] - 1))
        return path

    def _value(self, path: Path, depth: int) -> Iterator[TomlString]:
        self._spaced()
        if match := _STRING.match(self._text, self._at):
            self._at = match.end()
            yield TomlString(path, str(_at(read(f"x = {match[0]}"), ("x",))), Span(*match.span()))
        elif depth > _DEPTH_MAX:
            self._at = len(self._text)
        elif self._taken("["):
            index = 0
            while self._spaced() < len(self._text) and not self._taken("]"):
                yield from self._value((*path, str(index)), depth + 1)
                self._spaced()
                index += 1
                if not self._taken(",") and not self._text.startswith("]", self._at):
                    return
        elif self._taken("{"):
            while self._spaced() < len(self._text) and not self._taken("}"):
                key = self._key()
                if not key or not self._taken("="):
                    return
                yield from self._value((*path, *key), depth + 1)
                self._spaced()
                self._taken(",")
        elif match := _OTHER.match(self._text, self._at):
            self._at = match.end()
        else:
            self._at = len(self._text)

    def _key(self) -> Path:
        parts: list[str] = []
        while match := _KEY.match(self._text, self._at):
            part = match["part"]
            parts.append(str(_at(read(f"x = {part}"), ("x",))) if part[0] in "\"'" else part)
            self._at = match.end()
            if not match["dot"]:
                break
        return tuple(parts)

    def _taken(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def _spaced(self) -> int:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._at


def _spellings(raw: str, value: str) -> Iterator[str]:
    """Ways to spell a value, the present quotes first, and those that hold anything last."""
    quotes = raw[:3] if raw.startswith(('"""', "'''")) else raw[:1]
    head = raw[3 : len(raw) - len(raw[3:].lstrip("\r\n"))] if len(quotes) == 3 else ""
    if quotes in ("'", "'''"):
        yield f"{quotes}{head}{value}{quotes}"
    if quotes == '"""':
        kept = "\n".join(_ESCAPED.sub(_escape, line) for line in value.split("\n"))
        yield f'"""{head}{kept}"""'
    yield f'"{_ESCAPED.sub(_escape, value)}"'


def _escape(match: re.Match[str]) -> str:
    return _SHORT.get(match[0], f"\\u{ord(match[0]):04x}")
