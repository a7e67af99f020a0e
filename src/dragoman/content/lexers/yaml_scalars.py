"""YAML seen as places: where each string stands, and how to put another in its stead.

Promises exact spans, that a replacement keeps the style of what it replaces where that style can hold it
(plain, quoted, literal `|`, folded `>`), and that it reads back as the value meant and changes no other.
Numbers, dates, booleans and nulls are no strings. Knows nothing of translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

_STRING_TAG = "tag:yaml.org,2002:str"
_LINE_END = re.compile(r"\r\n|\n|\r")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value below the top mapping. `value` is without the line ends that close a block scalar."""

    path: Path
    tag: str
    value: str
    style: str
    span: Span

    @property
    def is_text(self) -> bool:
        """Whether YAML reads it as a string."""
        return self.tag == _STRING_TAG


def scalars(text: str, first_line: int = 1) -> list[Scalar] | None:
    """All scalar values, in order; None where the text is no mapping.

    Raises `DocumentError` for what is not YAML, its line counted from `first_line`.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise DocumentError(f"this is not YAML: {error.problem}", first_line + line) from error
    except RecursionError:
        raise DocumentError("this YAML is nested too deeply", first_line) from None
    except yaml.YAMLError as error:
        raise DocumentError(f"this is not YAML: {error}", first_line) from error
    if not isinstance(root, yaml.MappingNode):
        return None
    found: dict[Path, Scalar] = {}
    for scalar, line in _walk(root, (), set()):
        if scalar.path in found:
            raise DocumentError(f"the key {scalar.path[-1]!r} stands here a second time", first_line + line)
        found[scalar.path] = scalar
    return list(found.values())


def replaced(text: str, scalar: Scalar, value: str) -> str:
    """What is to stand at the scalar's span, so that YAML reads `value` there and nothing else changes."""
    start, end = scalar.span.start, scalar.span.end
    expected = {other.path: (other.tag, other.value) for other in scalars(text) or ()}
    expected[scalar.path] = (_STRING_TAG, value)
    for spelled in _spellings(text[start:end], scalar.style, value):
        try:
            read = scalars(text[:start] + spelled + text[end:])
        except DocumentError:
            continue
        if {other.path: (other.tag, other.value) for other in read or ()} == expected:
            return spelled
    raise DocumentError(f"YAML cannot hold the new text of {'.'.join(scalar.path)!r}")


def _walk(node: yaml.Node, path: Path, seen: set[int]) -> Iterator[tuple[Scalar, int]]:
    if id(node) in seen:
        return  # an alias of what stands elsewhere
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _walk(value, (*path, str(key.value)), seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _walk(value, (*path, str(index)), seen)
    elif isinstance(node, yaml.ScalarNode):
        value = node.value.rstrip("\n") if node.style in ("|", ">") else node.value
        span = Span(node.start_mark.index, node.end_mark.index)
        yield Scalar(path, node.tag, value, node.style or "", span), node.start_mark.line


def _spellings(raw: str, style: str, value: str) -> Iterator[str]:
    """Ways to spell a value, the present style first, and the double quotes that hold anything last."""
    plain = "\n" not in value and not _UNPRINTABLE.search(value)
    if style in ("|", ">"):
        yield _block(raw, value.split("\n") if style == "|" else value.replace("\n", "\n\n").split("\n"))
    if style == "" and plain:
        yield value
    if style in ("", "'") and plain and (style or "'" not in value):
        yield "'" + value.replace("'", "''") + "'"
    tail = raw[len(raw.rstrip()) :] if style in ("|", ">") else ""
    yield '"' + _UNPRINTABLE.sub(_escaped, value.replace("\\", "\\\\").replace('"', '\\"')) + '"' + tail


def _block(raw: str, lines: list[str]) -> str:
    """A block scalar's text under its own header, as far in as it was, with the line ends that close it."""
    head = _LINE_END.search(raw)
    if not head:
        return raw
    newline, body = head[0], raw[head.end() :]
    first = next((line for line in _LINE_END.split(body) if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip(" "))]
    tail = body[len(body.rstrip()) :]
    return raw[: head.end()] + newline.join(f"{indent}{line}" if line else "" for line in lines) + tail


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return {"\n": "\\n", "\t": "\\t"}.get(match[0], f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
