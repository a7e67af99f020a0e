"""YAML seen as a list of scalars: where each stands, and how to put another in its stead.

Promises exact spans, that a replacement keeps the style of what it replaces where that style can hold it
(plain, quoted, literal `|`, folded `>`), and that it reads back as the value meant and changes no other.
Numbers, dates, booleans and nulls are no strings. Knows nothing of translation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.content.lexers.yaml_places import STRING_TAG, Node, parse
from dragoman.content.lexers.yaml_spelling import spelled
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

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
        return self.tag == STRING_TAG


def scalars(text: str, first_line: int = 1) -> list[Scalar] | None:
    """All scalar values, in order; None where the text is no mapping.

    Raises `DocumentError` for what is not YAML, its line counted from `first_line`.
    """
    root = parse(text, first_line)
    if root is None or root.kind != "mapping":
        return None
    return [Scalar(path, node.tag, node.text, node.style, node.span) for path, node in _leaves(root, ())]


def replaced(text: str, scalar: Scalar, value: str) -> str:
    """What is to stand at the scalar's span, so that YAML reads `value` there and nothing else changes."""
    root = parse(text)
    nodes = dict(_leaves(root, ())) if root else {}
    expected = {path: (node.tag, node.text) for path, node in nodes.items()}
    expected[scalar.path] = (STRING_TAG, value)
    put = spelled(text, nodes[scalar.path], value)
    read = scalars(text[: scalar.span.start] + put + text[scalar.span.end :])
    if {other.path: (other.tag, other.value) for other in read or ()} != expected:
        raise DocumentError(f"YAML cannot hold the new text of {'.'.join(scalar.path)!r}")
    return put


def _leaves(node: Node, path: Path) -> Iterator[tuple[Path, Node]]:
    if node.kind == "scalar":
        yield path, node
    for pair in node.pairs:
        yield from _leaves(pair.value, (*path, pair.name))
