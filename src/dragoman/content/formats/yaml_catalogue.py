"""YAML catalogues: mappings of strings at any depth, and the message files of Hugo and go-i18n.

Promises that only strings change, that a new key is the source's own lines behind its neighbour, and that
comments, anchors, order and quoting stay. A mapping of CLDR categories is one plural, one of nothing but
`other` a plain text; `description` beside them is a note. A list of `id` and `translation` goes by its ids.
Other lists go by their places, so nothing is taken out of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.content.catalogues.yaml_growth import written_over
from dragoman.content.catalogues.yaml_units import Shape, Tree, disagreement, tree_of
from dragoman.content.lexers.yaml_places import Node, Pair, line_end, parse
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Document, Role, Span, Syntax, Text, Writing

_SHAPE = Shape(about=frozenset(("description", "hash", "id", "leftDelim", "rightDelim")))
_SYNTAXES: tuple[tuple[Syntax, re.Pattern[str]], ...] = (
    ("ruby", re.compile(r"%\{\w+\}")),
    ("none", re.compile(r"\{\{-?\s*[.$]|\{\{-?\s*\w+\s+")),
    ("i18next", re.compile(r"\{\{[^{}]+\}\}")),
    ("icu", re.compile(r"\{\s*\w[\w.-]*\s*[,}]")),
    ("printf", re.compile(r"%(?:\d++\$)?[-+0#]*+\d*+(?:\.\d++)?(?:ll?|hh?|z)?[sdiufx@](?!\w)|%\(\w+\)[sd]")),
)
"""How a file's placeholders are told; Go's templates (`{{ .Count }}`) are protected in every syntax."""


class YamlCatalogue:
    """The format `yaml`. `syntax` declares how placeholders are written; without it each file shows it."""

    name = "yaml"
    extensions: tuple[str, ...] = (".yml", ".yaml")
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def __init__(self, syntax: Syntax | None = None) -> None:
        self._syntax = syntax

    def detect(self, path: str, head: str) -> bool:
        """By the ending: what is no YAML inside is to be refused by its line."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """YAML is Unicode."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Every string and plural, in file order."""
        root = _named(text, parse(text))
        hole = Span(root.span.start, line_end(text, root.span.end)) if root else Span(len(text), len(text))
        tree = Tree.of(text, root, _SHAPE, hole)
        syntax = self._syntax or _syntax_of(tree)
        blocks = tuple(_SHAPE.block(text, unit, role, locale, syntax) for unit in tree.units.values())
        return Document(self.name, text, blocks, role, locale, extras={"tree": tree})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Replace texts; then insert what a target lacks, or drop what has no translation."""
        return written_over(base, source, translations, locale)

    def second_opinion(self, before: Document, after: Document) -> str:
        """PyYAML must read the same tree, and what is no text must be as it was."""
        return disagreement(tree_of(before), tree_of(after), parse(after.text))


def _named(text: str, root: Node | None) -> Node | None:
    """The root; a list of messages gets its ids for names. Raises `DocumentError` for a single value."""
    if root is None or root.kind == "mapping":
        return root
    if root.kind != "sequence":
        line = line_at(text, root.start)
        raise DocumentError("a catalogue is a mapping or a list, not a single value", line)
    ids = [pair.value.get("id") for pair in root.pairs]
    named = [one for one in ids if one and one.value.kind == "scalar"]
    if len(named) < len(root.pairs) or not all(pair.value.get("translation") for pair in root.pairs):
        return root
    known: set[str] = set()
    for pair, one in zip(root.pairs, named, strict=True):
        pair.name, pair.value.keyed = one.value.value, True
        _refuse_second(text, known, one)
    root.keyed = True
    return root


def _refuse_second(text: str, known: set[str], one: Pair) -> None:
    if one.value.value in known:
        told = f"the id {one.value.value!r} stands here a second time"
        raise DocumentError(told, line_at(text, one.start))
    known.add(one.value.value)


def _syntax_of(tree: Tree) -> Syntax:
    texts = [node.text for unit in tree.units.values() for node in unit.texts]
    return next((name for name, pattern in _SYNTAXES if any(map(pattern.search, texts))), "none")
