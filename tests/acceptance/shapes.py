"""What a translation leaves as it was, read by somebody else's reader: keys, elements, times, blocks."""

from __future__ import annotations

import io
import json
import plistlib
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import polib
import srt  # type: ignore[import-untyped]
import webvtt
from fluent.syntax import ast
from fluent.syntax import parse as parse_fluent
from lxml import etree, html
from markdown_it import MarkdownIt
from moz.l10n.formats.properties.parse import properties_parse
from ruamel.yaml import YAML

_CATEGORIES = {"zero", "one", "two", "few", "many", "other"}
_STRING = re.compile(r'^\s*"((?:[^"\\]|\\.)*)"\s*=', re.MULTILINE)


def shape(name: str, data: bytes) -> Any:
    """By the file's ending. Raises what its reader raises where it cannot read the file."""
    return _READERS[PurePath(name).suffix](data)


def _keys(data: bytes) -> Any:
    return _tree(json.loads(data))


def _tree(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _tree(value) for key, value in node.items()}
    return [_tree(value) for value in node] if isinstance(node, list) else type(node).__name__


def _string_catalogue(data: bytes) -> Any:
    """All but what stands in the languages."""
    catalogue = json.loads(data)
    for entry in catalogue["strings"].values():
        entry.pop("localizations", None)
    return catalogue


def _messages(data: bytes) -> Any:
    return [(entry.msgctxt, entry.msgid) for entry in polib.pofile(data.decode())]


def _markdown(data: bytes) -> Any:
    """The blocks of a document, without their texts; fences with them."""
    body = re.sub(r"\A---\n.*?\n---\n", "", data.decode(), flags=re.DOTALL)
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    return [(token.type, token.content if token.type == "fence" else token.tag) for token in tokens]


def _named(data: bytes) -> Any:
    """Elements below the root, by tag and name; without those that Android wants in no translation."""
    nodes = etree.fromstring(data).iterchildren("*")
    return [(node.tag, node.get("name")) for node in nodes if node.get("translatable") != "false"]


def _qt(data: bytes) -> Any:
    return [
        (context.findtext("name"), message.findtext("source"), message.findtext("comment"))
        for context in etree.fromstring(data).iter("context")
        for message in context.iter("message")
    ]


def _xliff(data: bytes) -> Any:
    """Every source, with the texts in its inline elements, and the id of what holds it."""
    return [
        (holder.get("id"), "".join(source.itertext()))
        for holder in etree.fromstring(data).iter("*")
        for source in holder.iterchildren("{*}source")
    ]


def _fluent(data: bytes) -> Any:
    entries = parse_fluent(data.decode()).body
    assert not any(isinstance(entry, ast.Junk) for entry in entries)
    return [entry.id.name for entry in entries if isinstance(entry, ast.Message | ast.Term)]


def _elements(data: bytes) -> Any:
    return [node.tag for node in html.document_fromstring(data).iter(etree.Element)]


def _yaml(data: bytes) -> Any:
    """Paths of all leaves. A root of one key is the locale's, and plurals may grow."""
    root = YAML(typ="safe").load(data)
    [only, *more] = root.items()
    return _paths(root if more or not isinstance(only[1], Mapping) else only[1])


def _paths(node: Any, *path: str) -> set[tuple[str, ...]]:
    if not isinstance(node, Mapping):
        return {path}
    if node.keys() <= _CATEGORIES:
        return {(*path, "plural")}
    return {found for key, value in node.items() for found in _paths(value, *path, str(key))}


def _captions(data: bytes) -> Any:
    return [(cue.start, cue.end) for cue in webvtt.from_buffer(io.StringIO(data.decode())).captions]


_READERS: Mapping[str, Callable[[bytes], Any]] = {
    ".json": _keys,
    ".arb": _keys,
    ".xcstrings": _string_catalogue,
    ".po": _messages,
    ".pot": _messages,
    ".md": _markdown,
    ".mdx": _markdown,
    ".xml": _named,
    ".resx": _named,
    ".ts": _qt,
    ".xlf": _xliff,
    ".xliff": _xliff,
    ".ftl": _fluent,
    ".html": _elements,
    ".yml": _yaml,
    ".yaml": _yaml,
    ".vtt": _captions,
    ".srt": lambda data: [(cue.start, cue.end) for cue in srt.parse(data.decode())],
    ".properties": lambda data: [entry.id for entry in properties_parse(data).sections[0].entries
                                 if hasattr(entry, "id")],
    ".strings": lambda data: _STRING.findall(data.decode()),
    ".stringsdict": lambda data: list(plistlib.loads(data)),
}  # fmt: skip
