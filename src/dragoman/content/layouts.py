"""Where translated files go: output patterns, and the layouts that ecosystems have agreed on.

Promises paths only: relative, `/`-separated, inside the tree. Looks at no disk: what lies there is asked of
the function that the caller hands in. A locale in a name counts as a mark only beside evidence: `how_to.md`
is not Tongan, unless `how_en.md` or `how.md` is there.
"""

from __future__ import annotations

import posixpath
import re
import string
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from dragoman.content import locales
from dragoman.kernel import limits
from dragoman.kernel.errors import CallerError

AS_ON_DISK = "{spelled}"
"""Stands in templates of known layouts for the spelling that the tree has for a locale already."""
DEFAULT_PATTERN = "{dir}/{stem}.{locale}{ext}"
FIELDS = ("locale", "path", "dir", "stem", "ext")

_SPELLED: Mapping[str, Callable[[str], str]] = {
    "locale": str,
    "gettext": locales.gettext_spelling,
    "android": locales.android_spelling,
    "apple": locales.apple_spelling,
}
_HOLE = "\0"
_EDGE = re.compile(r"[/._-]")
_VALUES = re.compile(r"values-(?:([a-z]{2,3})(?:-r([A-Z]{2}))?|b\+([A-Za-z0-9+]+))")
_KEPT_FOR_LOCALES = re.compile("i18n|l10n|locales?|lang|langs|languages?|translations?", re.IGNORECASE)

Names = Callable[[str], Collection[str]]
"""What a folder holds, by its path from the root; nothing where there is no such folder."""


def template(pattern: str, document: str, base: str, renames: Mapping[str, str], here: str = ".") -> str:
    """An output pattern filled in for one document, all but the locale.

    `base` is the folder that the document was found under, `here` the one that the pattern starts from, both
    relative to the root; `renames` maps extensions of sources to those of their translations. Raises
    `CallerError` for a field that is none of `FIELDS`.
    """
    folder, name = posixpath.split(document)
    stem, extension = posixpath.splitext(name)
    known = {
        "path": posixpath.splitext(_from(base or ".", document))[0],
        "dir": _from(here, folder or "."),
        "stem": stem,
        "ext": renames.get(extension.lower(), extension),
    }
    filled = [] if here == "." else [_literal(f"{here}/")]
    for literal, field, _, _ in _parsed(pattern):
        filled.append(_literal(literal))
        if field is not None:
            filled.append(f"{{{field}}}" if field in _SPELLED else _literal(known[field]))
    return "".join(filled)


def own_path(document: str) -> str:
    """The template of a document that holds all locales: each translation goes into the document itself."""
    return _literal(document)


def _from(start: str, path: str) -> str:
    """A path seen from a folder; both from the root, which asks the file system nothing."""
    if start == "." and not posixpath.isabs(path):
        return posixpath.normpath(path)
    return posixpath.relpath(path, start)


def output_path(filled: str, locale: str, spelled: str = "") -> str:
    """A template's path for a locale. Raises `CallerError` output_outside_tree where it leaves the tree.

    `spelled` is how the tree spells the locale, where that is known.
    """
    raw = filled.format(
        spelled=spelled or locale, **{name: spell(locale) for name, spell in _SPELLED.items()}
    )
    path = posixpath.normpath(raw)
    if posixpath.isabs(path) or path.split("/")[0] in ("..", ".") or "\0" in path:
        raise CallerError(f"{raw} would lie outside the working tree", "output_outside_tree", place="--out")
    return path


def standing(filled: str, names: Names) -> tuple[str, ...]:
    """The locales that a template's tree has a file or folder for, sorted by name."""
    shape = posixpath.normpath(filled.format(**dict.fromkeys((*_SPELLED, "spelled"), _HOLE)))
    before, hole, behind = shape.partition(_HOLE)
    folder, _, start = before.rpartition("/")
    end = re.split(f"[/{_HOLE}]", behind)[0]
    found: list[str] = []
    for name in sorted(names(folder)) if hole else ():
        if name.startswith(start) and name.endswith(end) and len(name) > len(start) + len(end):
            spelled = name[len(start) : len(name) - len(end)]
            found.append(locales.spelled_locale(spelled) or _folder_locale(f"values-{spelled}")[0])
    return tuple(dict.fromkeys(filter(None, found)))


class Translations:
    """Recognises the translations of documents by their templates, in whatever locale they are."""

    def __init__(self, templates: Mapping[str, str], source_locale: str) -> None:
        self._source = source_locale
        hole = dict.fromkeys((*_SPELLED, "spelled"), _HOLE)
        self._shapes = {
            posixpath.normpath(filled.format(**hole)): document for document, filled in templates.items()
        }

    def source_of(self, path: str) -> str:
        """The document that a path is a translation of; empty where it is none's."""
        edges = [0, *(found.end() for found in _EDGE.finditer(path))]
        ends = [*(found.start() for found in _EDGE.finditer(path)), len(path)]
        for start in edges:
            for end in (end for end in ends if start < end <= start + limits.LOCALE_CHARS_MAX):
                shape = path[:start] + _HOLE + path[end:]
                if shape in self._shapes and self._is_foreign(path[start:end]):
                    return self._shapes[shape]
        return ""

    def _is_foreign(self, name: str) -> bool:
        locale = locales.spelled_locale(name) or _folder_locale(f"values-{name}")[0]
        return bool(locale) and not locales.equivalent(locale, self._source)


class Layouts:
    """The layouts that a tree shows for one source locale. Remembers each folder that it has looked into."""

    def __init__(self, names: Names, source_locale: str) -> None:
        self._names = names
        self._source = source_locale
        self._known: dict[str, _Folder] = {}

    def template(self, document: str, renames: Mapping[str, str]) -> str:
        """The template of the layout that a source belongs to; empty where it belongs to no known one."""
        folder, name = posixpath.split(document)
        stem, extension = posixpath.splitext(name)
        ending = renames.get(extension.lower(), extension)
        parts = document.split("/")
        for at in range(len(parts) - 2, -1, -1):
            if field := self._folder_field(parts, at):
                behind = "/".join((*parts[at + 1 : -1], stem + ending))
                return _literal("".join(f"{part}/" for part in parts[:at])) + f"{field}/" + _literal(behind)
        place = _literal(f"{folder}/" if folder else "")
        if self._is_source(stem):
            return place + ("{gettext}" if ending == ".po" else AS_ON_DISK) + _literal(ending)
        for before, mark in _suffixes(stem):
            if self._is_source(mark):
                return place + _literal(before) + AS_ON_DISK + _literal(ending)
        if extension == ".pot":
            return self._of_pot(folder, place, stem)
        return self._mirror(parts, stem + ending)

    def is_kept_for_locales(self, document: str) -> bool:
        """Whether a file's place or name says that it holds texts: `locales/app.yml`, `app.en.yml`."""
        *folders, name = document.split("/")
        stem = posixpath.splitext(name)[0]
        if any(_KEPT_FOR_LOCALES.fullmatch(folder) for folder in folders):
            return True
        return self._is_source(stem) or any(self._is_source(mark) for _, mark in _suffixes(stem))

    def foreign_mark(self, document: str) -> str:
        """The locale other than the source's that a file's place or name says it is in; empty without one."""
        parts = document.split("/")
        for at, part in enumerate(parts[:-1]):
            locale, sure = _folder_locale(part)
            if not locale or locales.equivalent(locale, self._source):
                continue
            beside = self._folder("/".join(parts[:at]))
            sure = sure or parts[at + 1] == "LC_MESSAGES" or beside.names_source
            if sure or parts[at + 1] in beside.names:
                return locale
        return self._name_mark(posixpath.dirname(document), parts[-1])

    def _name_mark(self, folder: str, name: str) -> str:
        stem, extension = posixpath.splitext(name)
        beside = self._folder(folder)
        stems = beside.stems.get(extension, frozenset()) | beside.stems.get(".pot", frozenset())
        locale = locales.spelled_locale(stem)
        if locale and not locales.equivalent(locale, self._source):
            template_beside = extension == ".po" and ".pot" in beside.stems
            if template_beside or any(self._is_source(other) for other in beside.locale_stems):
                return locale
        for before, mark in _suffixes(stem):
            if self._is_source(mark):
                return ""
            if before[:-1] in stems or any(before + own in stems for own in beside.source_marks):
                return locales.spelled_locale(mark)
        return ""

    def _of_pot(self, folder: str, place: str, stem: str) -> str:
        """`po/de/LC_MESSAGES/app.po` or `po/de.po` where such files are there already, nothing else."""
        beside = self._folder(folder)
        for name in beside.locale_names:
            if "LC_MESSAGES" in self._folder(posixpath.join(folder, name)).names:
                return f"{place}{{gettext}}/LC_MESSAGES/{_literal(stem)}.po"
        if any(f"{name}.po" in beside.names for name in beside.locale_stems):
            return f"{place}{{gettext}}.po"
        return ""

    def _mirror(self, parts: list[str], name: str) -> str:
        """`docs/{locale}/guide/a.md` for `docs/guide/a.md`, where `docs/fr` repeats names of `docs`."""
        for at in range(len(parts) - 1, -1, -1):
            folder = "/".join(parts[:at])
            beside = self._folder(folder)
            for other in beside.locale_names:
                if beside.names & self._folder(posixpath.join(folder, other)).names:
                    place = _literal(f"{folder}/" if folder else "")
                    return place + AS_ON_DISK + _literal("/" + "/".join((*parts[at:-1], name)))
        return ""

    def _folder_field(self, parts: list[str], at: int) -> str:
        """What stands in a template for a folder that names the source's locale."""
        name = parts[at]
        if name == "values" and parts[-1].endswith(".xml"):
            return "values-{android}"
        if name.endswith(".lproj") and (name == "Base.lproj" or self._is_source(name[:-6])):
            return "{apple}.lproj"
        if self._is_source(name):
            return "{gettext}" if parts[at + 1] == "LC_MESSAGES" else AS_ON_DISK
        return ""

    def _is_source(self, name: str) -> bool:
        spelled = locales.spelled_locale(name)
        return bool(spelled) and locales.equivalent(spelled, self._source)

    def _folder(self, path: str) -> _Folder:
        if path not in self._known:
            self._known[path] = self._looked_into(path)
        return self._known[path]

    def _looked_into(self, path: str) -> _Folder:
        names = frozenset(self._names(path))
        stems: dict[str, set[str]] = {}
        for name in names:
            stem, extension = posixpath.splitext(name)
            stems.setdefault(extension, set()).add(stem)
        every = {stem for found in stems.values() for stem in found}
        return _Folder(
            names,
            {extension: frozenset(found) for extension, found in stems.items()},
            tuple(sorted(name for name in names if locales.spelled_locale(name))),
            tuple(sorted(stem for stem in every if locales.spelled_locale(stem))),
            any(self._is_source(name) for name in names),
            frozenset(mark for stem in every for _, mark in _suffixes(stem) if self._is_source(mark)),
        )


@dataclass(frozen=True, slots=True)
class _Folder:
    """What a folder's names say."""

    names: frozenset[str]
    stems: Mapping[str, frozenset[str]]
    """By extension."""
    locale_names: tuple[str, ...]
    locale_stems: tuple[str, ...]
    names_source: bool
    """Whether one of the names is the source's locale."""
    source_marks: frozenset[str]
    """The ways in which its files' suffixes spell the source's locale."""


def _parsed(pattern: str) -> Iterator[tuple[str, str | None, str | None, str | None]]:
    try:
        found = list(string.Formatter().parse(pattern))
    except ValueError as error:
        raise CallerError(f"the output pattern {pattern!r} cannot be read: {error}", place="--out") from error
    for literal, field, form, conversion in found:
        if field is not None and (form or conversion or (field not in FIELDS and field not in _SPELLED)):
            names = " ".join(f"{{{name}}}" for name in FIELDS)
            raise CallerError(
                f"{{{field}}} is no field of an output pattern; there are {names}", place="--out"
            )
        yield literal, field, form, conversion


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _folder_locale(name: str) -> tuple[str, bool]:
    """The locale that a folder's name spells, and whether it can be nothing else."""
    if found := _VALUES.fullmatch(name):
        spelled = found[3].replace("+", "-") if found[3] else "-".join(filter(None, (found[1], found[2])))
        return locales.spelled_locale(spelled), True
    if name.endswith(".lproj"):
        return locales.spelled_locale(name[:-6]), True
    return locales.spelled_locale(name), False


def _suffixes(stem: str) -> Iterator[tuple[str, str]]:
    """Every reading of a stem as what stands before a locale (with its separator) and the locale."""
    for at, character in enumerate(stem):
        if at and character in "._-" and locales.spelled_locale(stem[at + 1 :]):
            yield stem[: at + 1], stem[at + 1 :]
