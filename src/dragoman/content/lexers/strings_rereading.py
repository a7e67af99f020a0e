"""A second, simpler reader of Apple's .strings, to check what the first one wrote.

Promises no errors and no offsets, only what an app would look up: comments are blanked, then one pattern
finds all pairs. It shares nothing with `strings_entries`, so that they do not share their mistakes.
"""

from __future__ import annotations

import re

_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_COMMENT_OR_STRING = re.compile(rf"({_QUOTED})|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_PAIR = re.compile(rf"({_QUOTED}|[^\s=;\"']+)\s*(?:=\s*({_QUOTED}|[^\s=;\"']+)\s*)?;", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:U([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)
_NAMES = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def reread(text: str) -> dict[str, str]:
    """Every text by its key."""
    bare = _COMMENT_OR_STRING.sub(lambda found: found[1] or " ", text)
    return {_said(key): _said(value or key) for key, value in _PAIR.findall(bare)}


def _said(raw: str) -> str:
    if raw[0] not in "\"'":
        return raw
    said = _ESCAPED.sub(_meant, raw[1:-1])
    return said.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _meant(found: re.Match[str]) -> str:
    wide, octal, short = found.groups()
    if wide:
        return chr(int(wide, 16))
    return chr(int(octal, 8)) if octal else _NAMES.get(short, short)
