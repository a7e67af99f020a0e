"""WebVTT captions, subtitles and chapters (`.vtt`).

Promises that the header, styles, regions, comments, identifiers, times as they are spelled and settings stay
byte for byte, and that only the texts of cues change. A comment is told to whoever translates the cue behind
it. A file is always rebuilt from its source, so that times which moved there move here. What no player shows
(text behind an empty line) is no text.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.content.lexers import cues
from dragoman.model.documents import Document, Role, Text, Writing


class WebVtt:
    """The format `webvtt`."""

    name = "webvtt"
    extensions: tuple[str, ...] = (".vtt",)
    whole = True
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """By extension alone."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """WebVTT is UTF-8."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """The texts of all cues, in file order."""
        return Document(self.name, text, tuple(cues.blocks(text, cues.webvtt_cues(text))), role, locale)

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """The source with its cues' texts replaced; `base` is the source."""
        return cues.write(base, translations)

    def second_opinion(self, before: Document, after: Document) -> str:
        """A reader by arrows alone must find the same times, identifiers and comments, and our texts."""
        return cues.complaint(before, after, ends_at_blank=True)
