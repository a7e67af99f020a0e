"""JSON seen as texts: which of a file's strings are to be translated, and under which key.

Promises the same keys for the same shape of file in every dialect: the path of a value, joined by `/` (`~1`
for a slash and `~0` for a tilde inside a name, as in JSON Pointer). Changes nothing (`json_growth`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.content.lexers.json_tokens import Member, Value


class Tree(NamedTuple):
    """A JSON text, and what was scanned in it."""

    text: str
    root: Value


class Unit(NamedTuple):
    """One text to translate; `about` is the object that tells of it, where there is one."""

    key: str
    value: Value
    about: Value | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """Which strings of a dialect are texts; without any setting all are.

    `entry`: of the objects at the top only the member of this name is a text, the rest is about it.
    `attributed`: texts stand at the top, and `@name` is about `name`.
    """

    entry: str = ""
    attributed: bool = False

    def units(self, root: Value) -> Iterator[Unit]:
        """The texts of a file, in file order; a name that stands twice gives two of one key."""
        if self.attributed:
            named = {member.name: member.value for member in root.members}
            for member in root.members:
                if member.value.kind == "string" and not member.name.startswith("@"):
                    yield Unit(joined(None, member.name), member.value, named.get(f"@{member.name}"))
        elif self.entry:
            yield from self._entries(root)
        else:
            yield from strings(root, None)

    def _entries(self, root: Value) -> Iterator[Unit]:
        for member in root.members:
            key, text = joined(None, member.name), member.value.member(self.entry)
            if member.value.kind == "string":
                yield Unit(key, member.value)
            elif text and text.value.kind == "string":
                yield Unit(joined(key, self.entry), text.value, member.value)

    def fate(self, member: Member, path: str | None, doomed: Collection[str]) -> tuple[str, ...] | None:
        """The keys that go when a member goes with the doomed texts; None where something in it stays."""
        key = joined(path, member.name)
        if self.attributed and path is None and member.name.startswith("@"):
            return () if joined(None, member.name[1:]) in doomed else None
        if self.entry and path is None and member.value.kind == "object":
            key = joined(key, self.entry)
            return (key,) if key in doomed else None
        if member.value.kind == "string":
            return (key,) if key in doomed else None
        fates = [self.fate(inner, key, doomed) for inner in member.value.members]
        if not fates or None in fates:
            return None
        return tuple(gone for fate in fates for gone in fate or ())

    def followers(self, keys: Iterable[str], base: Value) -> Iterator[str]:
        """What is put beside new texts: their attributes, unless a file has texts without any."""
        names = [member.name for member in base.members if not member.name.startswith("@@")]
        if self.attributed and (not names or any(name.startswith("@") for name in names)):
            yield from (f"@{key}" for key in keys)


def strings(value: Value, path: str | None) -> Iterator[Unit]:
    """Every string below a value, in file order."""
    for member in value.members:
        value = member.value
        if value.kind == "string":
            yield Unit(joined(path, member.name), value)
        elif value.members:
            yield from strings(value, joined(path, member.name))


def joined(path: str | None, name: str) -> str:
    """The key of a name below a path."""
    if "~" in name or "/" in name:
        name = name.replace("~", "~0").replace("/", "~1")
    return name if path is None else f"{path}/{name}"


def prefixes(keys: Iterable[str]) -> set[str]:
    """The keys themselves, and the paths of everything that holds them."""
    found: set[str] = set()
    for key in keys:
        while key not in found:
            found.add(key)
            key = key.rpartition("/")[0] if "/" in key else key
    return found


def has_words(text: str) -> bool:
    """Whether a text holds a letter: without one it needs no translation."""
    return any(map(str.isalpha, text))


def disagreement(
    before: str, after: str, old: Collection[str], new: Mapping[str, str], free: Collection[str] = ()
) -> str:
    """What the standard library's reader holds against a written file; empty where nothing.

    It must find the `new` texts by their keys, and all else as it was before, where `old` were the keys of
    texts; `free` may have changed.
    """
    found = dict(_leaves(json.loads(after), None))
    for key, text in new.items():
        if found.pop(key, None) != text:
            return f"json reads another text at {key!r}"
    earlier = {key: leaf for key, leaf in _leaves(json.loads(before), None) if key not in old}
    changed = (key for key, leaf in found.items() if key not in free and earlier.get(key, leaf) != leaf)
    strange = next(changed, None)
    return "" if strange is None else f"json reads another value at {strange!r}, which is no text"


def _leaves(value: object, path: str | None) -> Iterator[tuple[str, object]]:
    """Every leaf of a parsed value, by the same keys as ours."""
    if isinstance(value, dict):
        members: Mapping[str, object] = value
    elif isinstance(value, list):
        members = {str(index): item for index, item in enumerate(value)}
    else:
        yield path or "", value
        return
    for name, item in members.items():
        yield from _leaves(item, joined(path, name))
