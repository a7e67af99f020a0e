"""Front matter: the data before a page's prose, in YAML (`---`), TOML (`+++`) or JSON (`{`).

Promises where each string in it stands, and that another can be put there so that the data's own parser reads
it and nothing else differs. Knows nothing of Markdown, nor which strings are texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dragoman.content.lexers import json_tokens, toml_strings, yaml_scalars
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

_OPENING = re.compile(r"(?P<mark>---|\+\+\+)[ \t]*(?:\r\n|\n|\r)|\{\s*\"")
_CLOSING = {
    "---": re.compile(r"(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)"),
    "+++": re.compile(r"(?<=[\r\n])\+\+\+[ \t]*(?:\r\n|\n|\r|\Z)"),
}
_JSON_END = re.compile(r"[ \t]*(?:\r\n|\n|\r|\Z)")


@dataclass(frozen=True, slots=True)
class Matter:
    """What stands where, and where the page's body begins; an empty span where there is none."""

    kind: Literal["yaml", "toml", "json"]
    span: Span
    body: int


@dataclass(frozen=True, slots=True)
class Value:
    """One value; `is_text` where its data format calls it a string. The span is that in the file."""

    path: tuple[str, ...]
    text: str
    span: Span
    is_text: bool


def located(text: str) -> Matter:
    """The front matter of a file. What only looks like it, such as a rule between lines, is prose."""
    none = Matter("yaml", Span(0, 0), 0)
    opening = _OPENING.match(text)
    if not opening:
        return none
    if opening["mark"] is None:
        return _json(text) or none
    closing = _CLOSING[opening["mark"]].search(text, opening.end())
    if not closing:
        return none
    span = Span(opening.end(), closing.start())
    if opening["mark"] == "+++":
        return Matter("toml", span, closing.end())
    if yaml_scalars.scalars(text[span.start : span.end], 2) is None:
        return none
    return Matter("yaml", span, closing.end())


def values(text: str, matter: Matter) -> Iterator[Value]:
    """All strings, and of YAML and JSON all other values too. Raises `DocumentError` by the file's line."""
    inner, line = text[matter.span.start : matter.span.end], line_at(text, matter.span.start)
    start = matter.span.start
    if matter.kind == "yaml":
        for scalar in yaml_scalars.scalars(inner, line) or ():
            span = Span(start + scalar.span.start, start + scalar.span.end)
            yield Value(scalar.path, scalar.value, span, scalar.is_text)
    elif matter.kind == "toml":
        for string in toml_strings.strings(inner, line):
            span = Span(start + string.span.start, start + string.span.end)
            yield Value(string.path, string.value, span, True)
    else:
        yield from _members(inner, json_tokens.scan(inner), (), start)


def spelled(text: str, matter: Matter, value: Value, put: str) -> str:
    """What is to stand at a value's span, so that `put` is read there."""
    inner = text[matter.span.start : matter.span.end]
    if matter.kind == "yaml":
        scalar = next(other for other in yaml_scalars.scalars(inner) or () if other.path == value.path)
        return yaml_scalars.replaced(inner, scalar, put)
    if matter.kind == "toml":
        string = next(other for other in toml_strings.strings(inner) if other.path == value.path)
        return toml_strings.replaced(inner, string, put)
    return json_tokens.spelling_of(inner).quoted(put)


def everything(text: str, matter: Matter) -> list[tuple[tuple[str, ...], str]]:
    """Each value's path and spelling, as the data's own parser reads them: for a second opinion."""
    inner = text[matter.span.start : matter.span.end]
    if matter.kind == "toml":
        return list(toml_strings.leaves(inner))
    if matter.kind == "json":
        return list(_flat(json.loads(inner), ()))
    return [(scalar.path, scalar.value) for scalar in yaml_scalars.scalars(inner) or ()]


def _json(text: str) -> Matter | None:
    try:
        end = json.JSONDecoder().raw_decode(text)[1]
        json_tokens.scan(text[:end])
    except (ValueError, RecursionError, DocumentError):
        return None
    behind = _JSON_END.match(text, end)
    return Matter("json", Span(0, end), behind.end()) if behind else None


def _members(text: str, value: json_tokens.Value, path: tuple[str, ...], start: int) -> Iterator[Value]:
    for member in value.members:
        inner, here = member.value, (*path, member.name)
        if inner.kind in ("object", "array"):
            yield from _members(text, inner, here, start)
        else:
            shown = inner.text if inner.kind == "string" else text[inner.start : inner.end]
            yield Value(here, shown, Span(start + inner.start, start + inner.end), inner.kind == "string")


def _flat(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if inner is None:
        yield path, repr(value)
        return
    for key, item in inner:
        yield from _flat(item, (*path, str(key)))
