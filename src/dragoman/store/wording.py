"""How a text stands in a column: as it is, or as JSON of its plural forms; a flag says which."""

from __future__ import annotations

import json

from dragoman.model.documents import Text


def written(value: Text) -> str:
    """A text, or plural forms, as a column holds it."""
    return value if isinstance(value, str) else json.dumps(dict(value), ensure_ascii=False)


def read(text: str | None, plural: bool) -> Text:
    """What a column holds; nothing is the empty text."""
    if not plural:
        return text or ""
    forms: dict[str, str] = json.loads(text or "{}")
    return forms
