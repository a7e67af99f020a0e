"""Xcode's string catalogue seen as places: entries, their localizations, and what varies inside of these.

Promises that what it yields is well formed so far that a writer need not look again: objects are objects, and
a text has a value. What Xcode adds beside is left to itself. Knows nothing of translation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from dragoman.content.lexers.json_tokens import Member, Value, scan
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError

Path = tuple[str, ...]
"""Where in a localization a text stands: nothing, or pairs such as `device`, `mac`."""


@dataclass(frozen=True, slots=True)
class Said:
    """A text, or the forms of a plural: category (empty for a text) → the object of value and state."""

    units: Mapping[str, Value]
    varies: Value | None
    """The object that holds a plural's forms; None for a text."""

    def forms(self) -> dict[str, str]:
        """Category → text."""
        return {name: value_of(unit).text for name, unit in self.units.items()}

    def states(self) -> set[str]:
        """The states that its units are in."""
        return {state.value.text for unit in self.units.values() if (state := unit.member("state"))}


@dataclass(frozen=True, slots=True)
class Entry:
    """One string: its key in the file, and what the file says about it."""

    key: str
    member: Member
    comment: str
    stale: bool
    translatable: bool
    localizations: Member | None

    def localization(self, code: str) -> Member | None:
        """What is said in one language."""
        return self.localizations.value.member(code) if self.localizations else None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A whole file."""

    root: Value
    strings: Value
    source_language: str
    entries: tuple[Entry, ...]

    def codes(self) -> tuple[str, ...]:
        """The languages that any entry is localized in, as the file spells them."""
        return tuple(
            dict.fromkeys(
                member.name
                for entry in self.entries
                if entry.localizations
                for member in entry.localizations.value.members
            )
        )

    def leads_with_source(self) -> bool:
        """Whether the source language stands before all others, wherever there are others."""
        for entry in self.entries:
            names = (
                [member.name for member in entry.localizations.value.members] if entry.localizations else []
            )
            if self.source_language in names[1:]:
                return False
        return True


def read(text: str) -> Catalogue:
    """The catalogue in a text. Raises `DocumentError` with the line of what is none."""
    root = scan(text)
    strings, language = root.member("strings"), root.member("sourceLanguage")
    if root.kind != "object" or strings is None or strings.value.kind != "object":
        _refuse(text, root, "this is no string catalogue: it has no object `strings`")
    if language is None or language.value.kind != "string" or not language.value.text:
        _refuse(text, root, "a string catalogue names its `sourceLanguage`")
    entries = tuple(_entry(text, member) for member in strings.value.members)
    return Catalogue(root, strings.value, language.value.text, entries)


def texts(node: Value, path: Path = ()) -> Iterator[tuple[Path, Said]]:
    """Everything that is said in a localization, in file order."""
    for member in node.members:
        if member.name == "stringUnit":
            if value_of(member.value).kind == "string":
                yield path, Said({"": member.value}, None)
        elif member.name == "substitutions":
            for named in member.value.members:
                yield from texts(named.value, (*path, "substitutions", named.name))
        elif member.name == "variations":
            for kind in member.value.members:
                if kind.name == "plural" and (forms := _forms(kind.value)):
                    yield path, Said(forms, kind.value)
                elif kind.name != "plural":
                    for named in kind.value.members:
                        yield from texts(named.value, (*path, kind.name, named.name))


def value_of(unit: Value) -> Value:
    """The value of a unit; something without text where it has none."""
    found = unit.member("value")
    return found.value if found else Value("other", unit.start, unit.start)


def _entry(text: str, member: Member) -> Entry:
    value = member.value
    if value.kind != "object":
        _refuse(text, value, f"the entry {member.name!r} is no object")
    comment, state = value.member("comment"), value.member("extractionState")
    wanted, localizations = value.member("shouldTranslate"), value.member("localizations")
    if localizations and localizations.value.kind != "object":
        _refuse(text, localizations.value, f"the localizations of {member.name!r} are no object")
    for localization in localizations.value.members if localizations else ():
        if localization.value.kind != "object":
            _refuse(text, localization.value, f"{localization.name!r} of {member.name!r} is no object")
    return Entry(
        member.name,
        member,
        comment.value.text if comment else "",
        state is not None and state.value.text == "stale",
        wanted is None or text[wanted.value.start : wanted.value.end] != "false",
        localizations,
    )


def _forms(plural: Value) -> dict[str, Value]:
    """The units of a plural; none where anything else stands in one of its places."""
    found: dict[str, Value] = {}
    for form in plural.members:
        unit = form.value.member("stringUnit")
        if unit is None or value_of(unit.value).kind != "string":
            return {}
        found[form.name] = unit.value
    return found


def _refuse(text: str, value: Value, reason: str) -> NoReturn:
    raise DocumentError(reason, line_at(text, value.start))
