"""JSON catalogues of no particular dialect: flat or nested strings, Docusaurus' entries of message and note.

Promises that only string values change, that a new key stands where the source has it and looks like its
neighbours, and that escapes keep the file's habit. Numbers, booleans and nulls are left alone, as are plural
suffixes (`_one`, `_other`): each is a key like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.content.catalogues.json_dialect import JsonDialect
from dragoman.content.catalogues.json_units import Shape
from dragoman.content.lexers.json_tokens import Member, Value
from dragoman.model.documents import Syntax


class JsonCatalogue(JsonDialect):
    """The format `json`. `syntax` declares how placeholders are written; without it each file shows it."""

    def __init__(self, syntax: Syntax | None = None) -> None:
        self._declared = syntax

    def syntax(self, texts: Sequence[str]) -> Syntax:
        """What was declared, else what the file shows."""
        return self._declared or super().syntax(texts)

    def shape(self, root: Value) -> Shape:
        """Where all top-level values are entries, `message` is the text, and the rest is about it."""

        def has_message(member: Member) -> bool:
            message = member.value.member("message")
            return message is not None and message.value.kind == "string"

        entries = bool(root.members) and all(map(has_message, root.members))
        return Shape(entry="message" if entries else "")
