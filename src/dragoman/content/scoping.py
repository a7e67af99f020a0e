"""A scope as it came over a door, read strictly: what it names, defaults written out, exclusions taken off.

A list that is absent is an empty one: no collections means that none is walked, not all of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dragoman.content import locales
from dragoman.kernel.errors import CallerError, LocaleError, SourceError
from dragoman.kernel.limits import DOCUMENT_REF_CHARS_MAX, LIST_PAGE, SCOPE_NAMES_MAX, SOURCE_NAME_CHARS_MAX
from dragoman.model.contracts import Source
from dragoman.model.walks import WHOLE, Contents, Walk

_FIELDS = frozenset(("collections", "exclude_collections", "globals", "documents", "locales", "drafts"))
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def read(asked: object, source_locale: str, pairs_max: int) -> Walk:
    """The scope that a request names; the source locale is left out of its targets.

    Raises `CallerError`: `invalid_request`, `unsupported_locale`, `empty_request`, `request_too_large`.
    """
    if not isinstance(asked, Mapping):
        raise CallerError("scope must be an object", place="scope")
    unknown = sorted(set(asked) - _FIELDS)
    if unknown:
        raise CallerError(f"unknown field {unknown[0]!r}", place=f"scope.{unknown[0]}")
    drafts = asked.get("drafts", True)
    if not isinstance(drafts, bool):
        raise CallerError("scope.drafts must be true or false", place="scope.drafts")
    collections = _names(asked, "collections", SOURCE_NAME_CHARS_MAX, SCOPE_NAMES_MAX)
    excluded = _names(asked, "exclude_collections", SOURCE_NAME_CHARS_MAX, SCOPE_NAMES_MAX)
    globals_ = _names(asked, "globals", SOURCE_NAME_CHARS_MAX, SCOPE_NAMES_MAX)
    documents = _names(asked, "documents", DOCUMENT_REF_CHARS_MAX, pairs_max)
    if not (collections or globals_ or documents):
        raise CallerError("scope names no collection, no global and no document", "empty_request", "scope")
    targets = _targets(_names(asked, "locales", SOURCE_NAME_CHARS_MAX, SCOPE_NAMES_MAX), source_locale)
    named = (len(documents) + len(globals_)) * len(targets)
    if named > pairs_max:
        raise CallerError(f"{named} pairs, at most {pairs_max}", "request_too_large", place="scope.documents")
    return Walk(
        collections=tuple(name for name in collections if name not in excluded),
        globals=globals_,
        documents=documents,
        locales=targets,
        drafts=drafts,
        excluded=excluded,
    )


def check(walk: Walk, contents: Contents) -> Walk:
    """The same scope, all of whose names the source has.

    Raises `CallerError` unsupported_collection naming the place. To exclude a global is idle, and no slip.
    """
    for field, names, known in (
        ("collections", walk.collections, contents.collections),
        ("exclude_collections", walk.excluded, (*contents.collections, *contents.globals)),
        ("globals", walk.globals, contents.globals),
    ):
        for index, name in enumerate(names):
            if name not in known:
                shown = ", ".join(known[:20]) or "none"
                raise CallerError(
                    f"the source has no {name!r} among its {field}: {shown}",
                    "unsupported_collection",
                    place=f"scope.{field}[{index}]",
                )
    if not walk.drafts and not contents.knows_drafts:
        raise CallerError("this source does not tell drafts from the rest", place="scope.drafts")
    return walk


def everything(contents: Contents, exclude: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Collections and globals that hold all that a source has, but for the collections left out.

    A tree's collection of all its files would bring back what is left out: its folders then stand for it, and
    what lies in none of them is left out too.
    """
    if WHOLE in contents.collections:
        whole = (WHOLE,) if not exclude else ()
        return whole or tuple(name for name in contents.collections if name != WHOLE), contents.globals
    return contents.collections, contents.globals


def pairs_of(source: Source, walk: Walk, pairs_max: int) -> list[tuple[str, str]]:
    """All pairs of a scope as its source lists them now, for who has no time to lose by dying in between.

    Documents that are not there are among them. Raises `CallerError` request_too_large, and what the source
    raises.
    """
    found = dict.fromkeys(name for name, _ in named(source, walk, (*walk.documents, *walk.globals)))
    for collection in () if walk.documents else walk.collections:
        cursor: str | None = ""
        while cursor is not None:
            page = source.list(collection, cursor, LIST_PAGE, walk.drafts)
            found |= dict.fromkeys(page.documents)
            if len(found) * len(walk.locales) > pairs_max:
                raise CallerError(f"more than {pairs_max} pairs", "request_too_large", place="scope")
            if page.next == cursor:
                raise SourceError(f"the source gives the same cursor again for {collection}")
            cursor = page.next
    return sorted((document, locale) for document in found for locale in walk.locales)


def named(source: Source, walk: Walk, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What is there of the documents named, by full reference or, bare, in every collection that has it.

    Gives (reference, code); the code is empty where the document is there.
    """
    there = source.exists(names)
    for name in names:
        if there.get(name):
            yield name, ""
            continue
        found: list[str] = []
        if "/" not in name and name not in walk.globals:
            asked = [f"{one}/{name}" for one in walk.collections or source.contents().collections]
            known = source.exists(asked) if asked else {}
            found = [ref for ref in asked if known.get(ref)]
        yield from ((ref, "") for ref in found)
        if not found:
            yield name, "document_not_found"


def _names(asked: Mapping[str, Any], field: str, chars_max: int, most: int) -> tuple[str, ...]:
    """A list of distinct names, in their order."""
    given = asked.get(field, [])
    if not isinstance(given, list):
        raise CallerError(f"scope.{field} must be a list", place=f"scope.{field}")
    if len(given) > most:
        raise CallerError(
            f"{len(given)} {field}, at most {most}", "request_too_large", place=f"scope.{field}"
        )
    for index, name in enumerate(given):
        if not isinstance(name, str) or not 0 < len(name) <= chars_max or _CONTROL.search(name):
            raise CallerError(
                f"this must be text of 1 to {chars_max} characters, none of them a control character",
                place=f"scope.{field}[{index}]",
            )
    return tuple(dict.fromkeys(given))


def _targets(named: tuple[str, ...], source_locale: str) -> tuple[str, ...]:
    if not named:
        raise CallerError("scope.locales is empty", "empty_request", place="scope.locales")
    targets: dict[str, None] = {}
    for index, locale in enumerate(named):
        try:
            targets[locales.canonical(locale)] = None
        except LocaleError as error:
            place = f"scope.locales[{index}]"
            raise LocaleError(f"{place}: {error.message}", place=place) from error
    targets.pop(source_locale, None)
    return tuple(targets)
