"""YAML seen as texts: which of a file's values are to be translated, and under which key.

Promises that a key is the path of its value, joined by `/` (`~1` for a slash and `~0` for a tilde inside a
name), that numbers, dates, nulls and what aliases stand for are no texts, and that a mapping of CLDR
categories is one text with its forms. Changes nothing (`yaml_growth`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import yaml

from dragoman.content import locales
from dragoman.content.lexers.yaml_places import BOOLEAN_TAG, Node, Pair, notes
from dragoman.content.lexers.yaml_spelling import habit_of
from dragoman.content.spans import newline_of
from dragoman.model.documents import Block, Document, Role, Span, Syntax, Text

CATEGORIES = ("zero", "one", "two", "few", "many", "other")
BOOLEAN_NOTE = "boolean in YAML 1.1: written in quotes, so that it is read as text"
_BOOLEAN_WORDS = frozenset(("yes", "no", "on", "off"))
_SLOW_CHARS_MAX = 200_000
"""Up to this length the second reader is PyYAML's own, which is slower than libyaml and shares no code."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One text, or the forms of one plural by the category that stands on disk."""

    key: str
    pair: Pair
    forms: Mapping[str, Pair] = field(default_factory=dict)

    @property
    def texts(self) -> list[Node]:
        """The scalars that hold it, in file order."""
        return [pair.value for pair in self.forms.values()] or [self.pair.value]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a dialect says of YAML.

    `lone_other`: whether a mapping of nothing but `other` is a plural, too; else it is a plain text.
    `about`: names that may stand among a plural's categories and are no text.
    `small_words`: whether `yes` and `on` are meant as words; else only `Yes` and `On` are.
    """

    lone_other: bool = False
    about: frozenset[str] = frozenset()
    small_words: bool = False

    def units(self, node: Node, path: str | None = None) -> Iterator[Unit]:
        """The texts below a node, in file order."""
        for pair in node.pairs:
            key = joined(path, pair.name)
            if pair.name == "<<" or (node.is_entry and pair.name != "translation"):
                continue
            if self.is_text(pair.value):
                yield Unit(key, pair)
            elif forms := self._forms(pair.value):
                yield Unit(key, pair, forms)
            else:
                yield from self.units(pair.value, key)

    def is_text(self, node: Node) -> bool:
        """Whether a value is to be translated: a string, or a word that only YAML 1.1 takes for no word."""
        return node.is_text or self._is_word(node)

    def _is_word(self, node: Node) -> bool:
        word = node.value
        small = not self.small_words and word[:1].islower()
        return node.tag == BOOLEAN_TAG and not small and word.lower() in _BOOLEAN_WORDS

    def _forms(self, node: Node) -> dict[str, Pair]:
        """The forms of a plural; none where a mapping is not one."""
        forms = {pair.name: pair for pair in node.pairs if pair.name in CATEGORIES}
        rest = [pair.name for pair in node.pairs if pair.name not in forms]
        fits = node.kind == "mapping" and "other" in forms and self.about.issuperset(rest)
        return forms if fits and all(self.is_text(pair.value) for pair in forms.values()) else {}

    def value(self, unit: Unit, locale: str) -> Text:
        """What a unit holds, named for a locale: `zero` is `=0` where CLDR has no such category."""
        return self.named(
            {name: pair.value.text for name, pair in unit.forms.items()} or unit.texts[0].text, locale
        )

    def named(self, value: Text, locale: str) -> Text:
        """Forms by the names on disk as a block has them."""
        if isinstance(value, str):
            return value
        if len(value) == 1 and not self.lone_other:
            return value["other"]
        zero = "zero" if "zero" in locales.plural_categories(locale) else "=0"
        return {zero if name == "zero" else name: text for name, text in value.items()}

    def block(self, text: str, unit: Unit, role: Role, locale: str, syntax: Syntax) -> Block:
        """The block of a unit."""
        value = self.value(unit, locale)
        pairs = (unit.pair, *unit.forms.values())
        told = dict.fromkeys(note for pair in pairs if (note := notes(text, pair)))
        told |= {pair.value.text: None for pair in unit.pair.value.pairs if pair.name == "description"}
        if any(map(self._is_word, unit.texts)):
            told[BOOLEAN_NOTE] = None
        plural = None if isinstance(value, str) else value
        bare = not all(node.text.strip() for node in unit.texts)
        return Block(
            key=unit.key,
            text=value if isinstance(value, str) else value["other"],
            spans=tuple(node.span for node in unit.texts),
            plural=plural,
            syntax=syntax,
            note="\n".join(told),
            state="untranslated" if role == "target" and bare else "",
        )


@dataclass(frozen=True, slots=True)
class Tree:
    """A YAML text and the texts found below `root`; None where nothing stands yet."""

    text: str
    root: Node | None
    shape: Shape
    units: Mapping[str, Unit]
    hole: Span
    """What stands for a root without pairs, and goes for the first one; new lines begin behind it."""
    anchors: frozenset[str]
    """Those that an alias needs."""
    habit: str
    """The quotes that the file prefers."""
    newline: str

    @classmethod
    def of(cls, text: str, root: Node | None, shape: Shape, hole: Span) -> Tree:
        """The tree below a root."""
        root = root if root and root.pairs else None
        found = list(shape.units(root)) if root else []
        nodes = list(root.walk()) if root else []
        used = frozenset(node.value for node in nodes if node.kind == "alias")
        return cls(
            text,
            root,
            shape,
            {unit.key: unit for unit in found},
            hole,
            used,
            habit_of(text),
            newline_of(text),
        )

    def fate(self, pair: Pair, key: str, doomed: Collection[str]) -> tuple[str, ...] | None:
        """The keys that go when a pair goes with the doomed texts; None where something in it stays."""
        if pair.value.kind == "alias" or pair.value.anchor in self.anchors:
            return None
        if key in self.units:
            anchored = any(node.anchor in self.anchors for node in pair.value.walk())
            return (key,) if key in doomed and not anchored else None
        if pair.value.kind == "scalar":
            return None
        fates = [
            self.fate(inner, joined(key, inner.name), doomed)
            for inner in pair.value.pairs
            if not pair.value.is_entry or inner.name == "translation"
        ]
        if not fates or None in fates:
            return None
        return tuple(gone for fate in fates for gone in fate or ())

    def within(self, pair: Pair, key: str) -> Iterator[Unit]:
        """The units at a pair and below it."""
        if key in self.units:
            yield self.units[key]
            return
        for inner in pair.value.pairs:
            yield from self.within(inner, joined(key, inner.name))


def tree_of(document: Document) -> Tree:
    """The tree that a document was read as."""
    return cast(Tree, document.extras["tree"])


def joined(path: str | None, name: str) -> str:
    """A key: the path of a name below another path."""
    spelled = name.replace("~", "~0").replace("/", "~1")
    return spelled if path is None else f"{path}/{spelled}"


def disagreement(before: Tree, after: Tree, whole: Node | None) -> str:
    """What a second parser holds against a text: another tree, or a value changed that is no text."""
    try:
        theirs = _reread(after.text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return f"PyYAML cannot read the result: {str(error).splitlines()[0]}"
    if whole is not None and (key := _difference(whole, theirs, None)) is not None:
        return f"PyYAML reads another value at {key!r}"
    earlier = dict(_others(before, before.root, None)) if before.root else {}
    later = dict(_others(after, after.root, None)) if after.root else {}
    changed = next((key for key, leaf in later.items() if earlier.get(key, leaf) != leaf), None)
    return "" if changed is None else f"the value at {changed!r} would change, which is no text"


def _others(tree: Tree, node: Node, path: str | None) -> Iterator[tuple[str, tuple[str, str]]]:
    """The values that are no texts, by key."""
    for pair in node.pairs:
        key = joined(path, pair.name)
        if key in tree.units:
            continue
        if pair.value.pairs:
            yield from _others(tree, pair.value, key)
        else:
            yield key, (pair.value.tag, pair.value.value)


def _difference(mine: Node, theirs: object, path: str | None) -> str | None:
    """The key where two readings differ; aliases are theirs to expand."""
    if mine.kind == "alias":
        return None
    if mine.kind == "scalar":
        return None if theirs == (mine.tag, mine.value) else path or ""
    names: list[str]
    values: list[object]
    if isinstance(theirs, dict):
        names, values = list(theirs), list(theirs.values())
    elif isinstance(theirs, list):
        names, values = [pair.name for pair in mine.pairs], theirs
    else:
        return path or ""
    if names != [pair.name for pair in mine.pairs] or len(values) != len(mine.pairs):
        return path or ""
    for pair, value in zip(mine.pairs, values, strict=True):
        found = _difference(pair.value, value, joined(path, pair.name))
        if found is not None:
            return found
    return None


def _built(loader: Any, node: yaml.Node) -> object:
    """Scalars by their tag and raw value, keys by their raw value: nothing is interpreted."""
    if isinstance(node, yaml.ScalarNode):
        return node.tag, node.value
    if isinstance(node, yaml.SequenceNode):
        return [loader.construct_object(item, deep=True) for item in node.value]
    return {key.value: loader.construct_object(value, deep=True) for key, value in node.value}


class _Plain(yaml.SafeLoader):
    """PyYAML's own parser."""

    yaml_constructors: ClassVar[dict[Any, Any]] = {None: _built}


class _Fast(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """libyaml, for texts that PyYAML would take seconds for."""

    yaml_constructors: ClassVar[dict[Any, Any]] = {None: _built}


def _reread(text: str) -> object:
    return yaml.load(text, Loader=_Plain if len(text) <= _SLOW_CHARS_MAX else _Fast)  # noqa: S506
