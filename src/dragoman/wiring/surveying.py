"""What a working tree tells of itself, for `dragoman init`: formats, the source's locale, the targets'.

Promises to read names and beginnings only, and to change nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.content import layouts, locales
from dragoman.content.documents import HEAD_BYTES, choose_format
from dragoman.content.sources.folder import Found, find, listed
from dragoman.kernel.errors import CallerError
from dragoman.wiring import catalogue

_CANDIDATES_MAX = 8
_USUAL = "en"


@dataclass(frozen=True, slots=True)
class Survey:
    """The sources of a tree (document → where its translations go), their locale, and the targets' so far."""

    source_locale: str
    locales: tuple[str, ...]
    templates: Mapping[str, str]
    formats: Mapping[str, int]
    """How many sources there are of each format."""

    @property
    def tops(self) -> tuple[str, ...]:
        """The top folders and files that the sources lie in."""
        return tuple(sorted({document.partition("/")[0] for document in self.templates}))


def survey(root: Path, source_locale: str = "") -> Survey:
    """Look at a tree. Without a source locale the one is taken that most layouts translate from.

    Raises `CallerError` empty_request where nothing can be translated.
    """
    documents = listed(root, [root], catalogue.formats())
    looks = [_look(root, locale) for locale in ([source_locale] if source_locale else _candidates(documents))]
    seen = [look for look in looks if look.templates]
    if not seen:
        raise CallerError(f"{root} holds nothing that can be translated", "empty_request", place=str(root))
    return max(seen, key=lambda look: (len(look.locales), look.source_locale == _USUAL, len(look.templates)))


def _candidates(documents: Collection[str]) -> Sequence[str]:
    """English, and the locales that most files' places spell."""
    spelled: Counter[str] = Counter()
    for document in documents:
        spelled.update({locale for part in document.split("/") if (locale := _spelled(part))})
    return tuple(dict.fromkeys((_USUAL, *(locale for locale, _ in spelled.most_common(_CANDIDATES_MAX)))))


def _spelled(part: str) -> str:
    stem = part.partition(".")[0] or part
    return locales.spelled_locale(stem) or locales.spelled_locale(stem.rpartition("_")[2])


def _look(root: Path, source_locale: str) -> Survey:
    """The tree as it looks if that locale is its source."""

    def names(folder: str) -> Collection[str]:
        try:
            return os.listdir(root / folder)
        except OSError:
            return ()

    try:
        found = find(
            root,
            [root],
            formats=catalogue.formats(),
            pattern="",
            source_locale=source_locale,
            target_locales=(),
        )
    except CallerError:
        found = Found({}, {})
    standing = {locale for filled in found.templates.values() for locale in layouts.standing(filled, names)}
    targets = sorted(locale for locale in standing if not locales.equivalent(locale, source_locale))
    return Survey(source_locale, tuple(targets), found.templates, _formats(root, found.templates))


def _formats(root: Path, documents: Collection[str]) -> Mapping[str, int]:
    counted: Counter[str] = Counter()
    for document in documents:
        with (root / document).open("rb") as file:
            counted[choose_format(catalogue.formats(), document, file.read(HEAD_BYTES)).name] += 1
    return dict(counted.most_common())
