"""What a file is made of, as seen by a translator: blocks of text with their exact place.

Formats locate; they never serialise. Offsets are character offsets in the decoded text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Role = Literal["source", "target"]
Syntax = Literal["printf", "python", "icu", "i18next", "ruby", "fluent", "html", "markdown", "none"]
EditKind = Literal["value", "metadata", "plural", "insertion", "removal"]
BlockState = Literal["", "untranslated", "fuzzy", "approved", "obsolete"]

Plural = Mapping[str, str]
"""CLDR category (`one`, `few`, … or `=0`) to text."""
Text = str | Plural
"""One field's text: a plain string, or one string a plural category."""


class Span(NamedTuple):
    """Half-open range of characters in a document's text."""

    start: int
    end: int


class Edit(NamedTuple):
    """One declared replacement: `text` is raw, already escaped for the place it goes to."""

    span: Span
    text: str
    kind: EditKind
    key: str = ""


class Block(NamedTuple):
    """One translatable text. `text` is unescaped and, by the document's role, source or translation."""

    key: str
    text: str
    spans: tuple[Span, ...]
    plural: Plural | None = None
    syntax: Syntax = "none"
    note: str = ""
    context: str = ""
    max_length: int | None = None
    state: BlockState = ""

    @property
    def value(self) -> Text:
        """The plural forms where there are any, else the text."""
        return self.text if self.plural is None else self.plural


@dataclass(frozen=True, slots=True)
class Document:
    """A decoded file and the blocks located in it, in file order; keys are unique."""

    format: str
    text: str
    blocks: tuple[Block, ...]
    role: Role
    locale: str
    encoding: str = "utf-8"
    bom: bytes = b""
    extras: Mapping[str, object] = field(default_factory=dict)
    """What the format wants to remember between read and write (header spans, plural rule …)."""


@dataclass(frozen=True, slots=True)
class Writing:
    """The outcome of a write: the new text, the edits that made it out of the base's, and what they mean.

    `written` holds every value that a reader must now find where the base had another or none, `removed` the
    keys that are gone because they have no translation, `lost` those that the source no longer has.
    """

    text: str
    edits: tuple[Edit, ...]
    lost: tuple[str, ...] = ()
    written: Mapping[str, Text] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
