"""FormatJS: extracted messages with `defaultMessage` and description, and flat ones with ICU plurals.

Promises that `defaultMessage` alone is text where entries have one, and that a message is one text, plural
and all, of ICU's syntax even where none of the file shows an argument. Syntax trees (`compile --ast`) are not
its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.content.catalogues.json_dialect import JsonDialect, shows_choice
from dragoman.content.catalogues.json_units import Shape
from dragoman.content.lexers.json_tokens import Value
from dragoman.model.documents import Syntax

_EXTRACTED = re.compile(r'"defaultMessage"\s*:\s*"')
_COMPILED = re.compile(r'\[\s*\{\s*(?:"type"\s*:\s*\d|"(?:offset|options|pluralType|value|children)"\s*:)')


class FormatJs(JsonDialect):
    """The format `formatjs`."""

    name = "formatjs"

    def detect(self, path: str, head: str) -> bool:
        """By its entries, or an ICU plural or select in a message."""
        shown = _EXTRACTED.search(head) or (shows_choice(head) and not _COMPILED.search(head))
        return super().detect(path, head) and bool(shown)

    def shape(self, root: Value) -> Shape:
        """Entries where any value is one."""
        extracted = any(member.value.member("defaultMessage") for member in root.members)
        return Shape(entry="defaultMessage" if extracted else "")

    def syntax(self, texts: Sequence[str]) -> Syntax:
        """ICU, declared by the format."""
        return "icu"
