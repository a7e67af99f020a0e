"""What `dragoman check` can look at under some paths: translations beside their sources, and bilingual files.

Promises that each target is named once: held against its source where there is one, else against itself.
"""

from __future__ import annotations

import os
import posixpath
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.content import layouts, locales
from dragoman.content.declared import BILINGUAL, declared_locales
from dragoman.content.sources.folder import FolderSource, listed
from dragoman.flow.site.inspection import Inspecting
from dragoman.kernel.errors import CallerError
from dragoman.wiring import catalogue
from dragoman.wiring.services import find_sources
from dragoman.wiring.settings import Settings

_ANCESTORS_MAX = 4


@dataclass(frozen=True, slots=True)
class Checkable:
    """Pairs of document and locale: with a target of their own, and bilingual files by themselves."""

    inspecting: Inspecting
    translations: tuple[tuple[str, str], ...]
    bilingual: tuple[tuple[str, str], ...]


def find_checkable(
    settings: Settings, paths: Sequence[Path], pattern: str, source_locale: str, wanted: Sequence[str]
) -> Checkable:
    """Everything under these paths that can be checked; `wanted` are target locales, none means all.

    Raises `CallerError` path_not_found, and empty_request where there is nothing.
    """
    search = _Search(settings, pattern, source_locale, tuple(wanted))
    languages = search.declared(paths)
    own = search.templates(paths)
    named = [found for path in paths if (found := search.source_of(path, own))]
    templates = {document: own[document] for document in own if document not in languages}
    pairs = [
        (document, locale) for document in templates for locale in wanted or search.standing(own[document])
    ]
    pairs += [(document, locale) for document, _, locale in named]
    templates |= {document: template for document, template, _ in named}
    source = FolderSource(settings.root, pattern, {**dict.fromkeys(languages, ""), **templates})
    targets = {source.target_path(*pair) for pair in pairs}
    rest = [(ref, locale) for ref, found in languages.items() if ref not in targets for locale in found]
    alone = [(ref, locale) for ref, locale in rest if search.is_wanted(locale)]
    if not pairs and not alone:
        raise CallerError("no translation was found to check", "empty_request")
    inspecting = Inspecting(source, catalogue.formats(), source_locale)
    return Checkable(inspecting, tuple(dict.fromkeys(pairs)), tuple(alone))


@dataclass(frozen=True, slots=True)
class _Search:
    """What one command line looks for."""

    settings: Settings
    pattern: str
    source_locale: str
    wanted: tuple[str, ...]

    def declared(self, paths: Sequence[Path]) -> Mapping[str, tuple[str, ...]]:
        """Bilingual files → the locales that they declare beside the source's."""
        found: dict[str, tuple[str, ...]] = {}
        for ref in listed(self.settings.root, paths, catalogue.formats()):
            if posixpath.splitext(ref)[1].lower() in BILINGUAL:
                data = FolderSource(self.settings.root, templates={ref: ""}).read(ref)
                languages = tuple(filter(self._is_foreign, declared_locales(ref, _text(data))))
                found |= {ref: languages} if languages else {}
        return found

    def _is_foreign(self, locale: str) -> bool:
        return not locales.equivalent(locale, self.source_locale)

    def is_wanted(self, locale: str) -> bool:
        """Whether a locale is asked for."""
        return not self.wanted or any(locales.equivalent(locale, other) for other in self.wanted)

    def templates(self, paths: Sequence[Path]) -> Mapping[str, str]:
        """The sources under these paths, and where their translations go; none is no fault here."""
        try:
            return find_sources(self.settings, paths, self.pattern, self.source_locale, ()).templates
        except CallerError as error:
            if error.code not in ("empty_request", "output_outside_tree"):
                raise
            return {}

    def source_of(self, path: Path, known: Mapping[str, str]) -> tuple[str, str, str] | None:
        """Of a translation that was named itself: its source, its template and its locale."""
        root, place = self.settings.root.absolute(), path.absolute()
        if not place.is_file() or not place.is_relative_to(root):
            return None
        ref = unicodedata.normalize("NFC", place.relative_to(root).as_posix())
        if ref in known:
            return None
        above = [folder for folder in place.parents if folder.is_relative_to(root)]
        return next(
            (found for folder in above[:_ANCESTORS_MAX] for found in self._leading_to(ref, folder)), None
        )

    def _leading_to(self, ref: str, folder: Path) -> Iterator[tuple[str, str, str]]:
        for document, template in self.templates([folder]).items():
            source = FolderSource(self.settings.root, self.pattern, {document: template})
            for locale in self.standing(template):
                if source.target_path(document, locale) == ref:
                    yield document, template, locale

    def standing(self, template: str) -> list[str]:
        """The locales that there are translations in."""

        def names(folder: str) -> Collection[str]:
            try:
                return os.listdir(self.settings.root / folder)
            except OSError:
                return ()

        found = filter(self._is_foreign, layouts.standing(template, names))
        return [locale for locale in found if self.is_wanted(locale)]


def _text(data: bytes) -> str:
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "replace")
