"""A translation made to fit the place of a Markdown block: lines, escapes, and what stands before each line.

Promises that the text stays one block of its kind: it does not end it with a blank line, nor begin a list, a
heading or a quote, nor break out of a cell. Knows nothing of how places are found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.content.lexers.markdown_blocks import Kind
from dragoman.model.documents import Span

_LINE_END = re.compile(r"\r\n|\n|\r")
_CONTAINER = re.compile(r"(?:[ \t>]|(?:[-+*]|\d{1,9}[.)])[ \t]|\[\^[^\]\s]+\]:|:[ \t])*")
_NUMBERED = re.compile(r"(\d{1,9})([.)](?:[ \t]|$))")
_BEGINS_BLOCK = re.compile(
    r"(?:[-+*:]|#{1,6})(?:[ \t]|$)|>|`{3}|~{3}|=+[ \t]*$|-+[ \t]*$|(?:[-*_][ \t]*){3,}$"
    r"|\[[^\]]+\]:|\[[ xX]\][ \t]|\[!|:{3}|\$\$|\{[.#:]|!{3}|\?{3}|-{2,}8<"
)
_CLOSING_MARKS = re.compile(r"(^|[ \t])(#+)$")
_ATTRIBUTES = re.compile(r"(^|[ \t])(\{[#.:/][^{}]*\}[ \t]*)$")
"""What would be taken for a heading's attributes at its end."""
_UNSPACED = frozenset(("zh", "yue", "wuu", "ja", "th", "lo", "km", "my"))
"""Languages without spaces between words, in which the end of a line would show as one."""


def fitted(text: str, kind: Kind, locale: str) -> str:
    """The text as it can stand in a block of this kind, without what its lines begin with in the file."""
    lines = [line.lstrip(" \t") for line in _LINE_END.split(text.strip())]
    lines = [line for line in lines if line.strip()]
    if kind == "prose":
        if locale.partition("-")[0] in _UNSPACED:
            lines = _joined(lines)
        return "\n".join(map(_guarded, lines))
    line = " ".join(line.strip() for line in lines)
    if kind == "cell":
        return line
    line = _ATTRIBUTES.sub(r"\1\\\2", line)
    return _CLOSING_MARKS.sub(r"\1\\\2", line) if kind == "heading" else _guarded(line)


def raw(fitted_text: str, kind: Kind, text: str, spans: Sequence[Span], newline: str) -> str:
    """What stands from the first span's start to the last one's end, given the file's text."""
    if kind == "cell":
        # a backslash at the end would escape the cell's own border
        return fitted_text.replace("|", "\\|") + (" " if fitted_text.endswith("\\") else "")
    first, *following = fitted_text.split("\n")
    prefixes = [text[_line_start(text, span.start) : span.start] for span in spans[1:]]
    last = (
        prefixes[-1] if prefixes else _continuation(text[_line_start(text, spans[0].start) : spans[0].start])
    )
    prefixes += [last] * (len(following) - len(prefixes))
    return "".join(
        (first, *(newline + prefix + line for prefix, line in zip(prefixes, following, strict=False)))
    )


def _joined(lines: list[str]) -> list[str]:
    """Lines joined but for hard breaks; without a space where both ends are beyond ASCII."""
    joined: list[str] = []
    for line in lines:
        if not joined or joined[-1].endswith(("  ", "\\")):
            joined.append(line)
        else:
            before = joined[-1].rstrip()
            joined[-1] = before + ("" if not before[-1:].isascii() and not line[:1].isascii() else " ") + line
    return joined


def _guarded(line: str) -> str:
    """The line, escaped where it would begin a block of another kind."""
    if match := _NUMBERED.match(line):
        return f"{match[1]}\\{line[match.end(1) :]}"
    return f"\\{line}" if _BEGINS_BLOCK.match(line) else line


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _continuation(before: str) -> str:
    """What a second line begins with, after a first that begins like this: marks become spaces."""
    match = _CONTAINER.match(before)
    marks = match[0] if match else ""
    return re.sub(r"[^> \t]", " ", re.sub(r"\[\^[^\]]+\]:[ \t]*", "    ", marks))
