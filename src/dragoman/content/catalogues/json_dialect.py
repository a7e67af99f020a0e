"""What every dialect of JSON does in which each text is a string of its own: read, write, ask `json` again.

A dialect says which strings are texts, what is told about them and how placeholders are written. Keys that
make up a plural together are not known here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from dragoman.content.catalogues.json_growth import Trees, put
from dragoman.content.catalogues.json_units import Shape, Tree, Unit, disagreement, has_words
from dragoman.content.lexers.json_tokens import Value, scan
from dragoman.content.spans import by_place, splice
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Block, BlockState, Document, Edit, Role, Span, Syntax, Text, Writing

_CHOICE = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|selectordinal|select)\s*,")
_SYNTAXES: tuple[tuple[Syntax, re.Pattern[str]], ...] = (
    ("icu", _CHOICE),
    ("i18next", re.compile(r"\{\{[^{}]+\}\}")),
    ("icu", re.compile(r"\{\s*\w[\w.-]*\s*[,}]")),
    ("printf", re.compile(r"%(?:\d+\$)?[-+0#]*+\d*+(?:\.\d++)?(?:ll?|hh?|z)?[sdiufx@](?!\w)|%\(\w+\)[sd]")),
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
        shape = self.shape(root)
        units = list(shape.units(root))
        syntax = self.syntax([unit.value.text for unit in units])
        blocks = [self._block(unit, syntax, role) for unit in units]
        if self.repeats:
            blocks = list(_merged(blocks))
        return Document(self.name, text, tuple(blocks), role, locale, extras=self.remembered(root))

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Replace values; then, in a target, insert the keys it lacks; else drop what has no translation."""
        values = {key: plain(key, value) for key, value in translations.items()}
        doomed = _bare(base, values) if base.role == "source" else ()
        done = put(base.text, base.blocks, values, lambda: self.trees(base, source), doomed)
        edits = [*done.edits, *self.metadata(base, locale)]
        edits.sort(key=by_place)
        lost = () if base is source else lost_keys(base, source, done.removed)
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
        telling = [text for text in texts if "{" in text or "%" in text]
        return next((name for name, pattern in _SYNTAXES if any(map(pattern.search, telling))), "none")

    def remembered(self, root: Value) -> Mapping[str, object]:
        """What a document keeps of a file for its writing. The tree is not: it is larger than all else."""
        return {}

    def trees(self, base: Document, source: Document) -> Trees:
        """Both files scanned again."""
        first = Tree(base.text, scan(base.text, repeats=self.repeats))
        second = first if base is source else Tree(source.text, scan(source.text, repeats=self.repeats))
        return Trees(first, second, self.shape(second.root))

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

    def _block(self, unit: Unit, syntax: Syntax, role: Role) -> Block:
        key, (_, start, end, text, _), about = unit
        note, context = (self.note(about), self.context(about)) if about else ("", "")
        state: BlockState = "untranslated" if role == "target" and not text.strip() else ""
        return Block(key, text, (Span(start + 1, end - 1),), None, syntax, note, context, None, state)


def _bare(base: Document, values: Mapping[str, str]) -> set[str]:
    """The texts that want a translation and have none."""
    return {block.key for block in base.blocks if block.key not in values and has_words(block.text)}


def lost_keys(base: Document, source: Document, removed: Collection[str]) -> tuple[str, ...]:
    """What a target has and its source has not any more, beside what was removed."""
    known = {block.key for block in source.blocks}.union(removed)
    return tuple(block.key for block in base.blocks if block.key not in known)


def _merged(blocks: Sequence[Block]) -> Iterator[Block]:
    """One block for each key: the last, with the places of all."""
    last = {block.key: block for block in blocks}
    if len(last) == len(blocks):
        yield from blocks
        return
    places: dict[str, tuple[Span, ...]] = {}
    for block in blocks:
        places[block.key] = places.get(block.key, ()) + block.spans
    yield from (block._replace(spans=places[key]) for key, block in last.items())


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
