"""Documents in a folder: found, read, and told where their translations go. Writing is publishing's.

Promises that no path leads out of the folder, by `..`, from the root or through a symlink, except to sources
that a person named on the command line; that what is found is a source and no translation; and that
references are NFC and `/`-separated whatever the file system does.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.content import layouts, locales
from dragoman.content.documents import HEAD_BYTES, head_of
from dragoman.kernel import limits
from dragoman.kernel.errors import CallerError, SourceError
from dragoman.kernel.identity import sha256
from dragoman.model.contracts import Format
from dragoman.model.walks import WHOLE, Contents, Listing

RENAMES: Mapping[str, str] = {".pot": ".po"}
_SKIPPED_FOLDERS = re.compile(
    "node_modules|bower_components|vendor|site-packages|venv|__pycache__|Pods|Carthage|DerivedData"
    "|build|dist|out|target|coverage|_build|_site"
)
_SKIPPED_FILES = re.compile(r"(?:package|package-lock|composer|deno|tsconfig(?:\.\w+)?|jsconfig)\.json")
_SETTINGS = (".yml", ".yaml")
"""Endings of files that mostly hold settings: unasked, they count only where a place speaks of locales."""
_REASONS_MAX = 3
_WILD: Mapping[str, str] = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True)
class Found:
    """What a command line's PATHs hold.

    `templates`: document → where its translations go, filled in but for the locale; a manifest freezes it.
    `skipped`: document → why it is no source.
    """

    templates: Mapping[str, str]
    skipped: Mapping[str, str]


class FolderSource:
    """The source `files`: a root folder, and where translations go under it.

    One step's: it looks once at each folder that a path goes through.
    """

    def __init__(
        self,
        root: Path,
        pattern: str = "",
        templates: Mapping[str, str] | None = None,
        formats: Sequence[Format] = (),
        source_locale: str = "",
        collections: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`pattern` serves documents that `templates` (see `Found`) does not name.

        Those that hold all locales, by one of the `formats`, are their own targets. `collections` are named
        by globs from the root; else each top folder is one. `source_locale` is what listing goes by.
        """
        self._root = root
        self._source_locale = source_locale
        self._named = {
            name: re.compile("|".join(map(_glob, globs))) for name, globs in (collections or {}).items()
        }
        self._asked_pattern = pattern
        self._sources: Found | None = None
        self._layouts = layouts.Layouts(self._names, source_locale)
        self._formats = formats
        self._pattern = pattern or layouts.DEFAULT_PATTERN
        self._templates = templates or {}
        self._top = root.resolve()
        self._is_inside: dict[Path, bool] = {}

    def contents(self) -> Contents:
        """The collections that globs name, the top folders that hold sources, and `files` for all of them."""
        folders = {ref.partition("/")[0] for ref in self._found.templates if "/" in ref}
        return Contents(tuple(dict.fromkeys((*self._named, *sorted(folders), WHOLE))))

    def list(self, collection: str, cursor: str, limit: int, drafts: bool) -> Listing:
        """Sources in the order of their references; the last one of a page is the cursor of the next."""
        if collection not in self.contents().collections:
            raise CallerError(f"no collection {collection}", "unsupported_collection", place=collection)
        pattern = self._named.get(collection)
        mine = [
            ref
            for ref in sorted(self._found.templates)
            if ref > cursor and (pattern.fullmatch(ref) if pattern else _is_under(collection, ref))
        ]
        page = tuple(mine[:limit])
        return Listing(page, page[-1] if len(mine) > limit else None)

    def collection_of(self, ref: str) -> str:
        """The first collection of globs that takes it, else its top folder, else `files`."""
        for name, pattern in self._named.items():
            if pattern.fullmatch(ref):
                return name
        folder, inside, _ = ref.partition("/")
        return folder if inside else WHOLE

    @property
    def _found(self) -> Found:
        """The sources of the whole tree, looked for once."""
        if self._sources is None:
            finding = _Finding(self._root, self._formats, self._asked_pattern, self._source_locale, ".")
            finding.take(self._root.absolute())
            try:
                self._sources = finding.found(())
            except CallerError as error:
                if error.code != "empty_request":
                    raise
                self._sources = Found({}, {})
        return self._sources

    def exists(self, refs: Sequence[str]) -> Mapping[str, bool]:
        """Which of these documents are files that can be reached."""
        return {ref: self._place(ref) is not None for ref in refs}

    def can_edit(self, actor: str, refs: Sequence[str]) -> Mapping[str, bool]:
        """A folder knows no actors: whoever may run this process may translate what lies in its tree."""
        return dict.fromkeys(refs, True)

    def read(self, ref: str) -> bytes:
        """A source's bytes. Raises `SourceError`, and `CallerError` document_not_found, payload_too_large."""
        place = self._place(ref)
        if place is None:
            raise CallerError(f"no document {ref}", "document_not_found", place=ref)
        return _bytes_of(place, ref)

    def fingerprint(self, ref: str) -> str:
        """The SHA-256 of a source's bytes. Raises as `read` does."""
        return sha256(self.read(ref))

    def read_target(self, ref: str, locale: str) -> bytes | None:
        """The bytes where the translation goes, None where nothing stands."""
        path = self.target_path(ref, locale)
        place = self._root / path
        return _bytes_of(place, path) if place.is_file() else None

    def target_path(self, ref: str, locale: str) -> str:
        """Where the translation goes, relative to the root. Raises `CallerError` output_outside_tree."""
        template = self._templates.get(ref) or self._template(ref)
        path = layouts.output_path(template, locale, self._spelling(template, locale))
        if not self._holds(self._root / path):
            raise CallerError(
                f"{path} leads out of the working tree through a link", "output_outside_tree", place=path
            )
        return path

    def _template(self, ref: str) -> str:
        """Where the translations of a document go that nobody looked at before."""
        place = self._place(ref) if self._formats else None
        if place is not None and _is_shared(self._formats, ref, place):
            return layouts.own_path(ref)
        own = "" if self._asked_pattern or not self._source_locale else self._layouts.template(ref, RENAMES)
        if own:
            return own
        return layouts.template(self._pattern, ref, "", RENAMES)

    def _names(self, folder: str) -> Collection[str]:
        return _names_in(self._root / folder)

    def _spelling(self, template: str, locale: str) -> str:
        """How the tree spells a locale already, in the part of the path that names it."""
        head, mark, tail = template.partition(layouts.AS_ON_DISK)
        if mark:
            named = head + mark + tail.partition("/")[0]
            for spelled in locales.spellings(locale):
                if os.path.lexists(self._root / layouts.output_path(named, locale, spelled)):
                    return spelled
        return locale

    def _holds(self, place: Path) -> bool:
        """Whether a path stays in the folder when links are followed."""
        if place.is_symlink():
            return _is_inside(place.resolve(), self._top)
        if place.parent not in self._is_inside:
            self._is_inside[place.parent] = _is_inside(place.parent.resolve(), self._top)
        return self._is_inside[place.parent]

    def _may_read(self, ref: str) -> bool:
        """Whether a document lies in the tree; one that a person named may lie elsewhere."""
        if ref in self._templates:
            return True
        return bool(ref) and not posixpath.isabs(ref) and ".." not in ref.split("/") and "\0" not in ref

    def _place(self, ref: str) -> Path | None:
        """The file behind a reference, whichever way the file system composes its letters."""
        if not self._may_read(ref):
            return None
        place = self._root / ref
        try:
            if not place.exists():
                place = _composed_otherwise(self._root, ref)
            inside = ref in self._templates or self._holds(place)
            return place if inside and place.is_file() else None
        except (OSError, ValueError):  # no file system holds such a name
            return None


def find(
    root: Path,
    paths: Sequence[Path],
    *,
    formats: Sequence[Format],
    pattern: str,
    source_locale: str,
    target_locales: Sequence[str],
) -> Found:
    """The sources under PATHs, files or folders, and where their translations go.

    Folders give what one of `formats` recognises, and nothing from dependencies, builds or dot folders.
    Without a pattern each source's own layout serves, else `{dir}/{stem}.{locale}{ext}`. Raises
    `CallerError`: path_not_found, empty_request, output_outside_tree, output_conflict, and invalid_request
    for a pattern.
    """
    finding = _Finding(root, formats, pattern, source_locale)
    for path in paths:
        finding.take(path)
    return finding.found(target_locales)


def listed(root: Path, paths: Sequence[Path], formats: Sequence[Format]) -> tuple[str, ...]:
    """Every document under PATHs, source or translation. Raises `CallerError` path_not_found."""
    finding = _Finding(root, formats, "", "")
    for path in paths:
        finding.take(path)
    return tuple(finding.candidates)


class _Finding:
    """One search: the candidates in order, each with the folder that it was found under."""

    def __init__(
        self,
        root: Path,
        formats: Sequence[Format],
        pattern: str,
        source_locale: str,
        here: str = "",
    ) -> None:
        self._root = root
        self._formats = formats
        self._extensions = {extension for form in formats for extension in form.extensions}
        self._pattern = pattern
        self._here = here or self._reference(Path.cwd())
        self._renames: dict[str, str] = {}
        for form in formats:
            self._renames |= form.renames
        self._source_locale = source_locale
        self._layouts = layouts.Layouts(self._names, source_locale)
        self._bases: dict[str, str] = {}
        self._shared: set[str] = set()

    def take(self, path: Path) -> None:
        """Add what one PATH holds."""
        place = path if path.is_absolute() else Path.cwd() / path
        if place.is_dir():
            base = self._reference(place)
            for file in _walked(place):
                if self._is_document(file, reference := self._reference(file)):
                    self._bases.setdefault(reference, base)
        elif place.is_file():
            self._bases.setdefault(self._reference(place), self._reference(place.parent))
        else:
            raise CallerError(f"{path} does not exist", "path_not_found", place=str(path))

    def _is_document(self, file: Path, reference: str) -> bool:
        """Whether a file that nobody named is a catalogue or prose, by its place and beginning."""
        ending = file.suffix.lower()
        if ending not in self._extensions or _SKIPPED_FILES.fullmatch(file.name):
            return False
        if ending in _SETTINGS and not self._layouts.is_kept_for_locales(reference):
            return False
        try:
            with file.open("rb") as opened:
                head = head_of(opened.read(HEAD_BYTES))
        except OSError:
            return True  # reading it will say why it cannot be read
        return any(form.detect(reference, head) for form in self._formats)

    @property
    def candidates(self) -> Collection[str]:
        """Every file that was taken."""
        return self._bases

    def found(self, target_locales: Sequence[str]) -> Found:
        """Leave out what is a translation, and refuse outputs that would meet."""
        self._shared = {
            document for document in self._bases if _is_shared(self._formats, document, self._root / document)
        }
        templates = {document: self._template(document) for document in self._bases}
        translations = layouts.Translations(templates, self._source_locale)
        skipped: dict[str, str] = {}
        for document in self._bases:
            if source := translations.source_of(document):
                skipped[document] = f"it is where a translation of {source} goes"
            elif mark := self._layouts.foreign_mark(document):
                skipped[document] = f"its name says that it is in {mark}"
        templates = {document: filled for document, filled in templates.items() if document not in skipped}
        if not templates:
            reasons = [f"{document}: {why}" for document, why in list(skipped.items())[:_REASONS_MAX]]
            raise CallerError("; ".join(["no source was found", *reasons]), "empty_request")
        self._refuse_meetings(templates, target_locales)
        return Found(templates, skipped)

    def _refuse_meetings(self, templates: Mapping[str, str], target_locales: Sequence[str]) -> None:
        source = FolderSource(self._root, templates=templates)
        taken: dict[str, str] = dict.fromkeys(templates, "")
        for document in templates:
            for locale in target_locales:
                path = source.target_path(document, locale)
                if path == document and document in self._shared:
                    continue  # one file for all locales
                pair = f"{document} in {locale}"
                if taken.setdefault(path, pair) != pair:
                    other = f"{taken[path]} would be too" if taken[path] else "that is a source"
                    raise CallerError(f"{pair} would be written to {path}: {other}", "output_conflict", path)

    def _template(self, document: str) -> str:
        if document in self._shared:
            return layouts.own_path(document)
        if self._pattern:
            here = "." if posixpath.isabs(self._pattern) else self._here
            filled = layouts.template(self._pattern, document, self._bases[document], self._renames, here)
            root = os.path.abspath(self._root).replace(os.sep, "/")
            return filled.removeprefix(f"{root}/")
        if document.startswith("../"):
            raise CallerError(
                f"{document} lies outside the working tree: say where its translations go, "
                "such as --out 'translated/{path}.{locale}{ext}'",
                "output_outside_tree",
                document,
            )
        known = self._layouts.template(document, self._renames)
        return known or layouts.template(layouts.DEFAULT_PATTERN, document, "", self._renames)

    def _reference(self, place: Path) -> str:
        relative = os.path.relpath(os.path.abspath(place), os.path.abspath(self._root))
        reference = unicodedata.normalize("NFC", relative.replace(os.sep, "/"))
        if len(reference) > limits.DOCUMENT_REF_CHARS_MAX:
            raise CallerError(
                f"{reference[:80]}… has more than {limits.DOCUMENT_REF_CHARS_MAX} characters",
                place=reference[:80],
            )
        return reference

    def _names(self, folder: str) -> Collection[str]:
        return _names_in(self._root / folder)


def _names_in(folder: Path) -> Collection[str]:
    try:
        return [unicodedata.normalize("NFC", name) for name in os.listdir(folder)]
    except OSError:
        return ()


def _is_under(collection: str, ref: str) -> bool:
    return collection == WHOLE or ref.startswith(f"{collection}/")


def _glob(pattern: str) -> str:
    """A glob as an expression: `*` and `?` stay in one folder, `**` crosses them."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return "".join(_WILD.get(part, re.escape(part)) for part in parts)


def _is_shared(formats: Sequence[Format], reference: str, place: Path) -> bool:
    """Whether a file holds all locales, by its name and beginning."""
    ending = posixpath.splitext(reference)[1].lower()
    if not any(form.shared and ending in form.extensions for form in formats):
        return False
    try:
        with place.open("rb") as opened:
            head = head_of(opened.read(HEAD_BYTES))
    except OSError:
        head = ""
    return next((form.shared for form in formats if form.detect(reference, head)), False)


def _walked(folder: Path) -> Iterator[Path]:
    """The files under a folder, sorted; symlinks are followed only where they stay below it."""
    top = folder.resolve()
    for here, names, files in os.walk(folder):
        names[:] = sorted(
            name for name in names if not name.startswith(".") and not _SKIPPED_FOLDERS.fullmatch(name)
        )
        for file in sorted(files):
            place = Path(here, file)
            if not file.startswith(".") and _is_inside(place.resolve(), top) and place.is_file():
                yield place


def _is_inside(place: Path, top: Path) -> bool:
    return place.is_relative_to(top)


def _composed_otherwise(root: Path, ref: str) -> Path:
    """The path whose names are canonically equal to the reference's; the plain one where there is none."""
    place = root
    for part in ref.split("/"):
        straight = place / part
        if not straight.exists() and place.is_dir():
            same = (name for name in os.listdir(place) if unicodedata.normalize("NFC", name) == part)
            straight = place / next(same, part)
        place = straight
    return place


def _bytes_of(place: Path, shown: str) -> bytes:
    try:
        if place.stat().st_size > limits.DOCUMENT_BYTES_MAX:
            raise CallerError(
                f"{shown} has more than {limits.DOCUMENT_BYTES_MAX} bytes", "payload_too_large", place=shown
            )
        return place.read_bytes()
    except OSError as error:
        raise SourceError(f"{shown} cannot be read: {error.strerror}", place=shown) from error
