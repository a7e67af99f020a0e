"""How a text is spelled in YAML: in the style of what stood there if that can hold it, else in quotes.

Promises that what it gives reads back as the text meant, as a string in YAML 1.1 and in 1.2, in the place
that it is for: each spelling is tried on the parser before it is given. Knows nothing of keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dragoman.content.lexers.yaml_places import Node, line_start, parse
from dragoman.kernel.errors import DocumentError

_LINE_END = re.compile(r"\r\n|\n|\r")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_ODD = re.compile(
    r"(?i:y|n|yes|no|on|off|true|false|null|~|=|<<|[-+]?\.(?:inf|nan))|[-+]?\.?\d[\d_.,:eE+-]*|0[xob][\da-fA-F_]+"
)
"""Plain scalars that YAML reads as no string, in one version or another."""
_BRACKETED = re.compile(r"[?:,#\[\]{}]")
"""What plain scalars in brackets may hold by some parsers only."""
_QUOTE = re.compile(r"""[:,\[{-][ \t]+(["'])""")
_PARENTS = re.compile(r"(?:- +| )*")
_GAP = re.compile(r"(?<=\S) (?=\S)")
_WIDTH = 80
_NAMED = {"\n": "\\n", "\t": "\\t"}


def habit_of(text: str) -> str:
    """The quotes that a file uses more often; double ones where it uses none."""
    marks = _QUOTE.findall(text)
    return "'" if marks.count("'") > marks.count('"') else '"'


def spelled(text: str, node: Node, value: str, habit: str = "'") -> str:
    """What is to stand at the span of a scalar, so that YAML reads `value` there.

    A word that YAML reads as no string (`Yes`) gets the quotes of the file's habit, as does a value that its
    style cannot hold. Raises `DocumentError` where nothing can.
    """
    raw = text[node.span.start : node.span.end]
    parents = _PARENTS.match(text, line_start(text, node.start))
    column = len(parents[0]) if parents else 0
    style = node.style or ("" if node.is_text else habit)
    return _first(raw, style, value, habit, column, node.flow)


def spelled_anew(value: str, style: str, habit: str, flow: bool = False) -> str:
    """A value on one line where none stood: in this style if that can hold it."""
    return _first("", "" if style in ("|", ">") else style, value, habit, 0, flow)


def spelled_key(name: str, habit: str) -> str:
    """A key's name: plain where every YAML reads it as a string, so `no` is quoted."""
    return spelled_anew(name, "", habit, flow=True)


def _first(raw: str, style: str, value: str, habit: str, column: int, flow: bool) -> str:
    for candidate in _spellings(raw, style, value, habit, column, flow):
        if _reads(candidate, value, column, flow):
            return candidate
    raise DocumentError(f"YAML cannot hold the text {value[:40]!r}")


def _reads(candidate: str, value: str, column: int, flow: bool) -> bool:
    """Whether YAML reads a spelling as this string, in brackets or on a line so far in, and stops there."""
    lead = " " * column
    ended = "" if candidate.endswith(("\n", "\r")) else "\n"
    written = f"{{k: {candidate}, z: z}}" if flow else f"{lead}k: {candidate}{ended}{lead}z: z\n"
    try:
        root = parse(written)
    except DocumentError:
        return False
    read = [pair.value for pair in root.pairs] if root else []
    return len(read) == 2 and read[0].is_text and read[0].text == value and read[1].value == "z"


def _spellings(raw: str, style: str, value: str, habit: str, column: int, flow: bool) -> Iterator[str]:
    """Ways to spell a value, the present style first, and the double quotes that hold anything last."""
    simple = not _UNPRINTABLE.search(value)
    tail = raw[len(raw.rstrip()) :] if style in ("|", ">") else ""
    if style == "|":
        yield _block(raw, value.split("\n"), column)
    if style == ">":
        yield _block(raw, list(_folded(value, raw)), column)
    if style == "" and simple and not _ODD.fullmatch(value) and not (flow and _BRACKETED.search(value)):
        yield value
    if simple and (style == "'" or (style == "" and _suits_single(value, habit))):
        yield "'" + value.replace("'", "''") + "'"
    yield '"' + _UNPRINTABLE.sub(_escaped, value.replace("\\", "\\\\").replace('"', '\\"')) + '"' + tail


def _suits_single(value: str, habit: str) -> bool:
    """Whether a value that needs quotes looks better in single ones."""
    return "'" not in value and (habit == "'" or '"' in value or "\\" in value)


def _block(raw: str, lines: list[str], column: int) -> str:
    """A block scalar's text under its own header, as far in as it was, with the line ends that close it."""
    head = _LINE_END.search(raw)
    if not head:
        return raw
    body = raw[head.end() :]
    first = next((line for line in _LINE_END.split(body) if line.strip()), " " * (column + 2) + ".")
    indent = first[: len(first) - len(first.lstrip(" "))]
    tail = body[len(body.rstrip()) :]
    return raw[: head.end()] + head[0].join(f"{indent}{line}" if line else "" for line in lines) + tail


def _folded(value: str, raw: str) -> Iterator[str]:
    """The lines of a folded text, broken at single spaces where they grow longer than any was before."""
    width = max(_WIDTH, *map(len, _LINE_END.split(raw)))
    for index, paragraph in enumerate(value.split("\n")):
        if index:
            yield ""
        words = _GAP.split(paragraph)
        line = words[0]
        for word in words[1:]:
            if len(line) + len(word) + 1 > width - 2:
                yield line
                line = word
            else:
                line = f"{line} {word}"
        yield line


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _NAMED.get(match[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
