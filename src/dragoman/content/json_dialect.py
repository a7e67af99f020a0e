"""What every dialect of JSON does in which each text is a string of its own: read, write, ask `json` again.

A dialect says which strings are texts, what is told about them and how placeholders are written. Keys that
make up a plural together are not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from dragoman.content.json_growth import Put, put
from dragoman.content.json_units import Shape, Tree, Unit, disagreement, has_words
from dragoman.content.lexers.json_tokens import Value, scan
from dragoman.content.spans import splice
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Span, Syntax, Text, Writing

_CHOICE = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|selectordinal|select)\s*,")
_SYNTAXES: tuple[tuple[Syntax, re.Pattern[str]], ...] = (
    ("icu", _CHOICE),
    ("i18next", re.compile(r"\{\{[^{}]+\}\}")),
    ("icu", re.compile(r"\{\s*\w[\w.-]*\s*[,}]")),
    ("printf", re.compile(r"%(?:\d+\$)?[-+0#]*\d*(?:\.\d+)?(?:ll?|hh?|z)?[sdiufx@](?!\w)|%\(\w+\)[sd]")),
)


class JsonDialect:
    """The general behaviour; a dialect overrides what is peculiar to it."""

    name = "json"
    extensions: tuple[str, ...] = (".json",)
    whole = False
    shared = False
    renames: Mapping[str, str] = {}
    repeats = False
    """Whether readers of the dialect take a name that stands twice; the last one counts."""

    def detect(self, path: str, head: str) -> bool:
        """By extension alone: what is no JSON inside is to be refused by its line, not as unknown."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """JSON is Unicode."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Every text as a block, in file order."""
        root = scan(text, repeats=self.repeats)
        if root.kind not in ("object", "array"):
            raise DocumentError("a catalogue is an object or an array, not a single value", line=1)
        units: dict[str, list[Unit]] = {}
        for unit in self.shape(root).units(root):
            units.setdefault(unit.key, []).append(unit)
        syntax = self.syntax([same[-1].value.text for same in units.values()])
        blocks = tuple(self._block(same, syntax, role) for same in units.values())
        return Document(self.name, text, blocks, role, locale, extras={"root": root})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Replace values; then, in a target, insert the keys it lacks; else drop what has no translation."""
        values = {key: plain(key, value) for key, value in translations.items()}
        bare = {block.key for block in base.blocks if block.key not in values and has_words(block.text)}
        done = self._put(base, source, values, bare if base.role == "source" else set())
        edits = [*done.edits, *self.metadata(base, locale)]
        edits.sort(key=lambda edit: (edit.span.start, edit.span.end))
        known = {block.key for block in source.blocks}.union(done.removed)
        lost = tuple(block.key for block in base.blocks if block.key not in known)
        return Writing(splice(base.text, edits), tuple(edits), lost, done.written, done.removed)

    def second_opinion(self, before: Document, after: Document) -> str:
        """What the standard library reads must be our blocks, and all else must be as it was."""
        texts = {block.key: block.text for block in after.blocks}
        return disagreement(
            before.text, after.text, {block.key for block in before.blocks}, texts, self.metadata_keys
        )

    metadata_keys: Sequence[str] = ()
    """The keys whose values `metadata` may change."""

    def shape(self, root: Value) -> Shape:
        """Which strings of a file are texts."""
        return Shape()

    def syntax(self, texts: Sequence[str]) -> Syntax:
        """One syntax a file, by what its texts show."""
        return next((name for name, pattern in _SYNTAXES if any(map(pattern.search, texts))), "none")

    def metadata(self, base: Document, locale: str) -> Iterator[Edit]:
        """Edits that make a file one of the locale's, beside its texts."""
        yield from ()

    def note(self, about: Value) -> str:
        """What an entry or attribute tells translators."""
        described = about.member("description")
        return described.value.text if described else ""

    def context(self, about: Value) -> str:
        """Where an entry or attribute says that its text is used."""
        told = about.member("context")
        return told.value.text if told else ""

    def _block(self, same: Sequence[Unit], syntax: Syntax, role: Role) -> Block:
        key, value, about = same[-1]
        return Block(
            key=key,
            text=value.text,
            spans=tuple(Span(unit.value.start + 1, unit.value.end - 1) for unit in same),
            syntax=syntax,
            note=self.note(about) if about else "",
            context=self.context(about) if about else "",
            state="untranslated" if role == "target" and not value.text.strip() else "",
        )

    def _put(self, base: Document, source: Document, values: Mapping[str, str], doomed: set[str]) -> Put:
        trees = Tree(base.text, root_of(base)), Tree(source.text, root_of(source))
        return put(*trees, values, self.shape(trees[1].root), doomed)


def root_of(document: Document) -> Value:
    """What `JsonDialect.read` scanned."""
    return cast(Value, document.extras["root"])


def shows_choice(text: str) -> bool:
    """Whether an ICU plural or select stands in a text."""
    return bool(_CHOICE.search(text))


def placeholder_notes(about: Value) -> Iterator[str]:
    """What an entry's `placeholders` tell of each, one line a placeholder that has anything told."""
    placeholders = about.member("placeholders")
    for member in placeholders.value.members if placeholders else ():
        told = [
            detail.value.text if detail.name != "example" else f"for example {detail.value.text}"
            for detail in member.value.members
            if detail.name in ("description", "example", "type") and detail.value.text
        ]
        if told:
            yield f"{member.name}: {', '.join(told)}"


def plain(key: str, value: Text) -> str:
    """A translation of one text. Raises `DragomanError` verify_failed for plural forms."""
    if isinstance(value, str):
        return value
    raise DragomanError(f"{key!r} is one text in JSON, and its translation has plural forms", "verify_failed")
