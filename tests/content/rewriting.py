"""Files of one format read and written in tests, in as few words as may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dragoman.content.documents import open_document, render
from dragoman.model.contracts import Format
from dragoman.model.documents import Document, Text


@dataclass(frozen=True)
class Rewriting:
    """A format, and the locale that its files are translated to."""

    format: Format
    locale: str = "pl"
    source_locale: str = "en"

    def source(self, data: bytes | str) -> Document:
        """A file to be translated."""
        raw = data.encode() if isinstance(data, str) else data
        return open_document(self.format, "source", raw, "source", self.source_locale)

    def target(self, data: bytes | str) -> Document:
        """A file that holds translations."""
        raw = data.encode() if isinstance(data, str) else data
        return open_document(self.format, "target", raw, "target", self.locale)

    def first(self, source: bytes | str, translations: Mapping[str, Text]) -> str:
        """The file that is made of a source where no target stands."""
        return render(self.format, None, self.source(source), translations, self.locale).data.decode()

    def again(self, source: bytes | str, target: bytes | str, translations: Mapping[str, Text]) -> str:
        """The file that is made of a target that stands."""
        base = self.target(target)
        return render(self.format, base, self.source(source), translations, self.locale).data.decode()


def values(document: Document) -> dict[str, Text]:
    """What each block holds."""
    return {block.key: block.value for block in document.blocks}
