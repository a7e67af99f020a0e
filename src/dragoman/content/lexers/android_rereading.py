"""Android's values read once more, by cutting them at their quotes. A second opinion on `android_values`.

Knows no places and no markup; shares no code with what it judges.
"""

from __future__ import annotations

import re

_PARTS = re.compile(r'"((?:[^"\\]|\\[\s\S]|\\\Z)*)(?:"|\Z)|((?:[^"\\]|\\[\s\S]|\\\Z)+)')
_SPACES = re.compile(r"\\u[0-9a-fA-F]{4}|\\[\s\S]|[ \t\r\n]+|[^\\ \t\r\n]+|\\")
_ESCAPES = re.compile(r"\\(u[0-9a-fA-F]{4}|[\s\S]|\Z)")
_NO_LETTERS = re.compile(r"[\s\"'\\]+")


def reread(text: str) -> str:
    """What an app shows of a value's characters, entities resolved."""
    found: list[str] = []
    for quoted, plain in _PARTS.findall(text):
        found += [" " if part[0] in " \t\r\n" else part for part in _SPACES.findall(plain)]
        if quoted:
            found.append(f"\0{quoted}")
    runs = [part for at, part in enumerate(found) if part != " " or found[at - 1 : at] not in ([], [" "])]
    if runs[-1:] == [" "]:
        runs.pop()
    return _paired("".join(_ESCAPES.sub(_plain, part.removeprefix("\0")) for part in runs))


def reread_section(text: str) -> str:
    """What an app shows of a CDATA section's characters."""
    return _paired(_ESCAPES.sub(_plain, text))


def letters(text: str) -> str:
    """The characters that white space and quotes do not touch, to compare values with markup."""
    return _NO_LETTERS.sub("", text)


def _paired(text: str) -> str:
    """Halves of surrogate pairs as one character."""
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def _plain(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else {"n": "\n", "t": "\t"}.get(code, code)
