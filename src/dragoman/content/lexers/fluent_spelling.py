"""How a text is spelled in Fluent: what its place in a line would make code of is put in quotes.

Promises that `shown` of what `spelled` writes is the text again. At the beginning of a line `[`, `.` and `*`
are quoted, at the ends of a pattern blanks are; both read as themselves. Other placeables stay as they are
written, those of braces (`{ "{" }`) among them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from fluent.syntax import FluentParser, ast

from dragoman.kernel.errors import DragomanError

_CODE = "[.*"
"""What would be no text at the beginning of a line."""
_BRACE = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|[{}]")
_BREAK = re.compile(r"(?<! ) *(?:\r\n|\n)[ \r\n]*")
_STRING = re.compile(r"\{\s*\"([^\"\\]*)\"\s*\}")
_STRING_LAST = re.compile(r"\{[^\S\n]?\"([^\"\\]*)\"[^\S\n]?\}\Z")
_PARSER = FluentParser(with_spans=False)

Element = ast.TextElement | ast.Placeable


def shown(
    text: str, elements: Sequence[Element], *, block: bool, markers: dict[int, str] | None = None
) -> str:
    """The text of a pattern's elements; `block` where the pattern begins on a line of its own.

    `markers` stand for selects, by where they begin.
    """
    out: list[str] = []
    at_line = block
    for index, element in enumerate(elements):
        if isinstance(element, ast.TextElement):
            out.append(element.value)
            at_line = element.value.endswith("\n")
            continue
        start, end = span_of(element)
        quoted = element.expression.value if isinstance(element.expression, ast.StringLiteral) else None
        if quoted is not None and _is_read(quoted, at_line, index in (0, len(elements) - 1)):
            out.append(quoted)
        else:
            out.append((markers or {}).get(start) or _BREAK.sub(" ", text[start:end]))
        at_line = False
    return "".join(out)


def spelled(
    value: str,
    *,
    block: bool,
    indent: str,
    newline: str,
    ends: tuple[str, str] = ("", ""),
    known: Collection[str] = (),
) -> str:
    """A text as the source of a pattern. `ends` are blanks that the pattern has in quotes at its ends,
    `known` placeables that need no proof.

    Raises `DragomanError` for a brace that belongs to no placeable.
    """
    _refuse_braces(value, known)
    lines = value.split("\n")
    last = len(lines) - 1
    if last and not block and all(line.startswith(" ") for line in lines[1:] if line.strip(" ")):
        anchored = next((index for index, line in enumerate(lines) if index and line.strip(" ")), 0)
    else:
        anchored = 0
    spelled_lines = [
        _line(
            line,
            at_line=block or index > 0,
            opens=index == 0,
            closes=index == last,
            anchored=bool(index) and index == anchored,
            ends=ends,
        )
        for index, line in enumerate(lines)
    ]
    head, *rest = spelled_lines
    return head + "".join(newline + (indent + line if line else "") for line in rest)


def blank_ends(elements: Sequence[Element]) -> tuple[str, str]:
    """The blanks in quotes at the beginning and at the end of a pattern."""

    def blanks(element: Element) -> str:
        expression = element.expression if isinstance(element, ast.Placeable) else None
        value = expression.value if isinstance(expression, ast.StringLiteral) else ""
        return value if not value.strip(" ") else ""

    return (blanks(elements[0]), blanks(elements[-1])) if len(elements) > 1 else ("", "")


def span_of(node: ast.SyntaxNode) -> tuple[int, int]:
    """Where a node stands."""
    return (node.span.start, node.span.end) if node.span else (0, 0)


def one_line(raw: str) -> str:
    """Code without its line breaks."""
    return _BREAK.sub(" ", raw).strip(" ")


def _is_read(quoted: str, at_line: bool, at_end: bool) -> bool:
    """Whether quotes are there for their place alone, so that what they hold is text."""
    return (at_line and bool(quoted) and quoted in _CODE) or ((at_line or at_end) and not quoted.strip(" "))


def _quoted(value: str) -> str:
    return f'{{ "{value}" }}'


def _line(
    line: str, *, at_line: bool, opens: bool, closes: bool, anchored: bool, ends: tuple[str, str]
) -> str:
    """One line: `opens` and `closes` tell whether it is the first and the last."""
    if not line.strip(" "):
        return _quoted(line) if line or opens or closes else ""
    head = tail = ""
    first, last = _STRING.match(line), _STRING_LAST.search(line) if closes else None
    if first and _is_read(first[1], at_line, opens):
        head = _quoted("")
    elif at_line and line[0] in _CODE:
        head, line = _quoted(line[0]), line[1:]
    elif opens and ends[0] and line.startswith(ends[0]) and not line[len(ends[0]) :].startswith(" "):
        head, line = _quoted(ends[0]), line[len(ends[0]) :]
    elif (opens and line[0] == " ") or anchored:
        head = _quoted("")
    if closes and ends[1] and line.endswith(ends[1]) and not line[: -len(ends[1])].endswith(" "):
        tail, line = _quoted(ends[1]), line[: -len(ends[1])]
    elif (closes and line.endswith(" ")) or (last and _is_read(last[1], False, True)):
        tail = _quoted("")
    return head + line + tail


def _refuse_braces(value: str, known: Collection[str]) -> None:
    for raw in _braced(value):
        if raw not in known and not _is_placeable(raw):
            raise DragomanError(
                f'{raw[:40]!r} is no placeable of Fluent: a brace in a text is written {{ "{{" }}',
                "verify_failed",
            )


def _braced(value: str) -> Iterator[str]:
    """What stands in braces, braces included; a brace without its mate by itself."""
    depth = start = at = 0
    while match := _BRACE.search(value, at):
        at = match.end()
        if match[0] == "{":
            start = match.start() if not depth else start
            depth += 1
        elif match[0] == "}":
            if depth <= 1:
                yield value[start:at] if depth else "}"
            depth = max(0, depth - 1)
        elif not depth:
            at = match.start() + 1
    if depth:
        yield value[start:]


@lru_cache(maxsize=1024)
def _is_placeable(raw: str) -> bool:
    try:
        entry = _PARSER.parse_entry(f"k = {raw}\n")
    except RecursionError:
        return False
    if not isinstance(entry, ast.Message) or entry.value is None or entry.attributes:
        return False
    elements = entry.value.elements
    return len(elements) == 1 and isinstance(elements[0], ast.Placeable) and not _chooses(elements[0])


def _chooses(element: ast.Placeable) -> bool:
    return isinstance(element.expression, ast.SelectExpression)
