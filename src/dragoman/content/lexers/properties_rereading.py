"""Java properties read once more, character by character, as `java.util.Properties` describes it.

A second opinion on what `properties_entries` finds: no pattern and no code is shared. Knows no places.
"""

from __future__ import annotations

from collections.abc import Iterator


def reread(text: str) -> list[tuple[str, str]]:
    """Key and value of each entry, in file order."""
    return [_halves(line) for line in _logical(text.replace("\r\n", "\n").replace("\r", "\n"))]


def _logical(text: str) -> Iterator[str]:
    """Lines joined where a backslash continues them, without comments and blank lines."""
    joined = ""
    for line in text.split("\n"):
        bare = line.lstrip(" \t\f")
        if not joined and (bare in ("", "\\") or bare[0] in "#!"):
            continue
        slashes = len(bare) - len(bare.rstrip("\\"))
        if slashes % 2:
            joined += bare[:-1] + "\0"
            continue
        yield (joined + bare).replace("\0", "")
        joined = ""
    if joined:
        yield joined.replace("\0", "")


def _halves(line: str) -> tuple[str, str]:
    at = 0
    while at < len(line) and line[at] not in "=: \t\f":
        at += 2 if line[at] == "\\" else 1
    rest = line[at:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return _plain(line[:at]), _plain(rest)


def _plain(raw: str) -> str:
    out: list[str] = []
    characters = iter(raw)
    for character in characters:
        if character != "\\":
            out.append(character)
            continue
        escaped = next(characters, "")
        if escaped == "u":
            escaped = chr(int("".join(next(characters, "") for _ in range(4)), 16))
        else:
            escaped = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}.get(escaped, escaped)
        out.append(escaped)
    return "".join(out).encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
