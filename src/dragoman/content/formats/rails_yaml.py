"""YAML of Ruby on Rails: one root key that is a locale, and below it texts, lists and plurals.

Promises that only texts change, and the root key, which becomes the target's locale; that comments, order and
quoting stay; that keys such as `yes` and `no` are names and never booleans. Keys are relative to the root. A
mapping of CLDR categories is one plural; its explicit `zero` is `=0` where the locale has no such category,
and stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from dragoman.content import locales
from dragoman.content.catalogues.yaml_growth import written_over
from dragoman.content.catalogues.yaml_units import Shape, Tree, disagreement, tree_of
from dragoman.content.lexers.yaml_places import NULL_TAG, Pair, parse
from dragoman.content.lexers.yaml_spelling import habit_of, spelled_key
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Document, Edit, Role, Span, Text, Writing

_SHAPE = Shape(lone_other=True, small_words=True)
_TOP = re.compile(r"^(?![\s#%]|---|\.\.\.|- )([\"']?)([^\s:\"']+)\1[ \t]*:(.*)", re.MULTILINE)


class RailsYaml:
    """The format `rails`."""

    name = "rails"
    extensions: tuple[str, ...] = (".yml", ".yaml")
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """By the ending, and a first key at the margin that is a locale, the only one and without a value."""
        if not path.lower().endswith(self.extensions):
            return False
        top = [(match[2], match[3].partition("#")[0].strip()) for match in _TOP.finditer(head)]
        return len(top) == 1 and not top[0][1] and bool(locales.spelled_locale(top[0][0]))

    def charset(self, data: bytes) -> str | None:
        """YAML is Unicode."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Every text and plural below the root key."""
        root = _root(text)
        colon = text.index(":", root.key.span.end if root.key else 0) + 1
        tree = Tree.of(text, root.value, _SHAPE, Span(colon, max(colon, root.value.span.end)))
        blocks = tuple(_SHAPE.block(text, unit, role, locale, "ruby") for unit in tree.units.values())
        return Document(self.name, text, blocks, role, locale, extras={"root": root, "tree": tree})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Name the root for the target, replace texts; then insert what is missing, or drop what has none."""
        return written_over(base, source, translations, locale, _renamed(base, locale))

    def second_opinion(self, before: Document, after: Document) -> str:
        """PyYAML must read the same tree, and what is no text must be as it was."""
        return disagreement(tree_of(before), tree_of(after), parse(after.text))


def _root(text: str) -> Pair:
    """The one pair of the file. Raises `DocumentError` where it has others or is no mapping."""
    top = parse(text)
    if top is None or top.kind != "mapping" or not top.pairs:
        raise DocumentError("a Rails file begins with the key of its locale, such as `en:`", line=1)
    if len(top.pairs) > 1:
        line = line_at(text, top.pairs[1].start)
        raise DocumentError("a second key stands beside the locale: a Rails file has one root", line)
    pair = top.pairs[0]
    if pair.value.kind != "mapping" and pair.value.tag != NULL_TAG:
        raise DocumentError(f"below {pair.name!r} stand no keys", line_at(text, pair.start))
    return pair


def _renamed(base: Document, locale: str) -> list[Edit]:
    """The root key for this locale, in the file's own spelling of tags; none where it says so already."""
    key = cast(Pair, base.extras["root"]).key
    if key is None:
        return []
    present = locales.spelled_locale(key.value)
    if present and base.role == "target" and locales.equivalent(present, locale):
        return []
    name = locale.replace("-", "_") if "_" in key.value else locale
    spelled = spelled_key(name, habit_of(base.text))
    quote = base.text[key.span.start]
    if quote in "\"'":
        spelled = f"{quote}{name}{quote}"
    return [Edit(key.span, spelled, "metadata")] if name != key.value else []
