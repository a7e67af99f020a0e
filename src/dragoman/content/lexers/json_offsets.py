"""Where each character of a JSON string stands in the file: for texts that are a part of a string."""

from __future__ import annotations

import re
from collections.abc import Callable

from dragoman.content.lexers.json_tokens import Value

_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL
)


def string_offsets(text: str, value: Value) -> Callable[[int], int]:
    """The offset in the file's text of each offset in a string's own text, its end included."""
    first = value.start + 1
    raw = text[first : value.end - 1]
    if "\\" not in raw:
        return lambda offset: first + offset
    places: list[int] = []
    at = 0
    for match in _ESCAPE.finditer(raw):
        places += (*range(at, match.start()), match.start())
        at = match.end()
    places += range(at, len(raw) + 1)
    return lambda offset: first + places[offset]
