"""Translations that stand already are held against their sources: read, inspected, told; nothing is written.

Calls nobody, spends nothing and needs no database. A file that cannot be read is a finding like others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.content import documents, inspection
from dragoman.content.checks import Finding
from dragoman.content.inspection import Remark
from dragoman.kernel.errors import CallerError, DocumentError
from dragoman.model.contracts import Format, Source
from dragoman.model.documents import Document


@dataclass(frozen=True, slots=True)
class Inspected:
    """What was found in one target; `path` is where it lies, relative to the root."""

    path: str
    locale: str
    remarks: tuple[Remark, ...]


class Inspecting:
    """Inspects targets one by one; each source is read once in a row."""

    def __init__(self, source: Source, formats: Sequence[Format], source_locale: str) -> None:
        self._source = source
        self._formats = formats
        self._locale = source_locale
        self._last: tuple[str, Format, Document] | None = None

    def translation(self, document: str, locale: str) -> Inspected:
        """What stands where the translation of a document goes; a target that is not there lacks it all."""
        path = document
        try:
            form, source = self._opened(document)
            path = document if form.shared else self._source.target_path(document, locale)
            data = self._source.read(document) if form.shared else self._source.read_target(document, locale)
            if data is None:
                absent = Finding("missing", "warning", f"There is no translation of {document}.")
                return Inspected(path, locale, (Remark("", 1, absent),))
            target = documents.open_document(form, path, data, "target", locale)
            return Inspected(path, locale, inspection.inspect(source, target))
        except DocumentError as error:
            return Inspected(path, locale, (_unreadable(error),))

    def bilingual(self, path: str, locale: str) -> Inspected:
        """A file that holds source and translation, held against itself."""
        try:
            form, source = self._opened(path)
            target = documents.open_document(form, path, self._source.read(path), "target", locale)
            return Inspected(path, locale, inspection.inspect(source, target))
        except DocumentError as error:
            return Inspected(path, locale, (_unreadable(error),))

    def _opened(self, document: str) -> tuple[Format, Document]:
        if self._last is None or self._last[0] != document:
            data = self._source.read(document)
            form = documents.choose_format(self._formats, document, data)
            opened = documents.open_document(form, document, data, "source", self._locale)
            self._last = (document, form, opened)
        return self._last[1:]


def _unreadable(error: CallerError) -> Remark:
    line = getattr(error, "line", 0) or 1
    return Remark("", line, Finding("unreadable", "error", error.message))
