"""SubRip subtitles (`.srt`).

Promises that numbers, times and empty cues stay as they are and that only the texts of cues change. A text
that an empty line cuts in two is one text, and its translation is written without that line. A file is
always rebuilt from its source, so that times which moved there move here. Knows no styling beyond tags and
`{\\an8}`.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.content.lexers import cues
from dragoman.model.documents import Document, Role, Text, Writing


class SubRip:
    """The format `subrip`."""

    name = "subrip"
    extensions: tuple[str, ...] = (".srt",)
    whole = True
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """By extension alone."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """Nothing in such a file declares one: UTF-8."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """The texts of all cues, in file order."""
        return Document(self.name, text, tuple(cues.blocks(text, cues.subrip_cues(text))), role, locale)

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """The source with its cues' texts replaced; `base` is the source."""
        return cues.write(base, translations)

    def second_opinion(self, before: Document, after: Document) -> str:
        """A reader by arrows alone must find the same times and numbers, and our texts."""
        return cues.complaint(before, after, ends_at_blank=False)
