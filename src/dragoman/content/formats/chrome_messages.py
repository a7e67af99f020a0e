"""Browser extensions' `_locales/{locale}/messages.json`: entries of message, description and placeholders.

Promises that only `message` changes: what is told about it, and what its `$NAME$` stand for, stay with it.
Bare substitutions (`$1`) in a message are not told from prices.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.content.catalogues.json_dialect import JsonDialect, placeholder_notes
from dragoman.content.catalogues.json_units import Shape
from dragoman.content.lexers.json_tokens import Value
from dragoman.model.documents import Syntax

_PATH = re.compile(r"(?:^|.*/)_locales/[^/]+/messages\.json")
_SUBSTITUTED = re.compile(r'"content"\s*:\s*"\$[1-9]')


class ChromeMessages(JsonDialect):
    """The format `chrome-messages`."""

    name = "chrome-messages"

    def detect(self, path: str, head: str) -> bool:
        """By its place; elsewhere by a placeholder that stands for an argument."""
        if _PATH.fullmatch(path):
            return True
        return super().detect(path, head) and bool(_SUBSTITUTED.search(head))

    def shape(self, root: Value) -> Shape:
        """Of each entry the message."""
        return Shape(entry="message")

    def syntax(self, texts: Sequence[str]) -> Syntax:
        """None beside `$NAME$`, which is code everywhere."""
        return "none"

    def note(self, about: Value) -> str:
        """The description, and what is told of the placeholders."""
        return "\n".join(filter(None, (super().note(about), *placeholder_notes(about))))
