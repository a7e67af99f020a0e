"""JSON catalogues: flat or nested objects of strings, and Docusaurus' entries of message and description.

Promises that only string values change, that a new key stands where the source has it and looks like its
neighbours, and that escapes keep the file's habit. A key is the path of its value, joined by `/` (`~1` for a
slash and `~0` for a tilde inside a name, as in JSON Pointer). Numbers, booleans and nulls are left alone, as
are plural suffixes (`_one`, `_other`): each is a key like any other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, cast

from dragoman.content.lexers.json_tokens import Member, Spelling, Value, scan, spelling_of
from dragoman.content.spans import newline_of, splice
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Span, Syntax, Text, Writing

_SYNTAXES: tuple[tuple[Syntax, re.Pattern[str]], ...] = (
    ("i18next", re.compile(r"\{\{[^{}]+\}\}")),
    ("icu", re.compile(r"\{\s*\w[\w.-]*\s*[,}]")),
    ("printf", re.compile(r"%(?:\d+\$)?[-+0#]*\d*(?:\.\d+)?(?:ll?|hh?|z)?[sdiufx@](?!\w)|%\(\w+\)[sd]")),
)


class JsonCatalogue:
    """The format `json`. `syntax` declares how placeholders are written; without it each file shows it."""

    name = "json"
    extensions: tuple[str, ...] = (".json",)
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def __init__(self, syntax: Syntax | None = None) -> None:
        self._syntax = syntax

    def detect(self, path: str, head: str) -> bool:
        """By extension alone: what is no JSON inside is to be refused by its line, not as unknown."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """JSON is Unicode."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Every string value as a block, in file order; `message` alone where entries have one."""
        root = scan(text)
        if root.kind not in ("object", "array"):
            raise DocumentError("a catalogue is an object or an array, not a single value", line=1)
        leaves = list(_leaves(root, None, _has_entries(root)))
        syntax = self._syntax or _syntax_of([leaf.value.text for leaf in leaves])
        blocks = tuple(
            Block(
                key=leaf.key,
                text=leaf.value.text,
                spans=(Span(leaf.value.start + 1, leaf.value.end - 1),),
                syntax=syntax,
                note=leaf.note,
                state="untranslated" if role == "target" and not leaf.value.text.strip() else "",
            )
            for leaf in leaves
        )
        return Document(self.name, text, blocks, role, locale, extras={"root": root})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Replace values; then, in a target, insert the keys it lacks; else drop what has no translation."""
        values = {key: _plain(key, value) for key, value in translations.items()}
        spelling = spelling_of(base.text)
        standing = {block.key: block for block in base.blocks}
        written = {key: values[key] for key in standing if key in values}
        edits = [
            Edit(standing[key].spans[0], spelling.inner(value), "value", key)
            for key, value in written.items()
            if value != standing[key].text
        ]
        removed: list[str] = []
        if base.role == "source":
            bare = {block.key for block in base.blocks if block.key not in values and _has_words(block.text)}
            root = _root(base)
            for edit, gone in _removals(root, bare, None, _has_entries(root)):
                edits.append(edit)
                removed += gone
        else:
            growth = _Growth(base, source, values, spelling)
            edits += growth.edits()
            written |= growth.written
            removed += growth.replaced
        known = {block.key for block in source.blocks}.union(removed)
        lost = tuple(key for key in standing if key not in known)
        edits.sort(key=lambda edit: (edit.span.start, edit.span.end))
        return Writing(splice(base.text, edits), tuple(edits), lost, written, tuple(removed))

    def second_opinion(self, before: Document, after: Document) -> str:
        """What the standard library reads must be our blocks, and all else must be as it was."""
        found = dict(_flat(json.loads(after.text), None))
        for block in after.blocks:
            if found.pop(block.key, None) != block.text:
                return f"json reads another text at {block.key!r}"
        texts = {block.key for block in before.blocks}
        earlier = {key: leaf for key, leaf in _flat(json.loads(before.text), None) if key not in texts}
        changed = next((key for key, leaf in found.items() if earlier.get(key, leaf) != leaf), None)
        return "" if changed is None else f"json reads another value at {changed!r}, which is no text"


class _Leaf(NamedTuple):
    key: str
    value: Value
    note: str


def _leaves(value: Value, path: str | None, entries: bool) -> Iterator[_Leaf]:
    """The strings to translate below a value, in file order."""
    for member in value.members:
        key = _join(path, member.name)
        if entries:
            message, about = member.value.member("message"), member.value.member("description")
            if message:
                yield _Leaf(_join(key, "message"), message.value, about.value.text if about else "")
        elif member.value.kind == "string":
            yield _Leaf(key, member.value, "")
        else:
            yield from _leaves(member.value, key, entries)


def _has_entries(root: Value) -> bool:
    """Whether all top-level values are entries: then `message` is the text, and the rest is about it."""
    messages = [member.value.member("message") for member in root.members]
    return bool(messages) and all(message and message.value.kind == "string" for message in messages)


def _syntax_of(texts: list[str]) -> Syntax:
    """One syntax a file: `{{x}}` anywhere is i18next, else `{x}` is ICU, else `%s` is printf."""
    return next((name for name, pattern in _SYNTAXES if any(map(pattern.search, texts))), "none")


def _removals(
    value: Value, untranslated: set[str], path: str | None, entries: bool
) -> Iterator[tuple[Edit, list[str]]]:
    """Edits that take what has no translation out of objects, commas and all, with the keys that go.

    An array keeps its untranslated strings as they are, since its positions mean something.
    """
    kept = False
    for index, member in enumerate(value.members):
        key = _join(path, member.name)
        gone = _doomed(member.value, untranslated, key, entries) if value.kind == "object" else []
        if not gone:
            kept = True
            if not entries:
                yield from _removals(member.value, untranslated, key, entries)
            continue
        last = index + 1 == len(value.members)
        start = value.members[index - 1].value.end if kept else member.start
        end = member.value.end if kept or last else value.members[index + 1].start
        yield Edit(Span(start, end), "", "removal", key), gone


def _doomed(value: Value, untranslated: set[str], key: str, entries: bool) -> list[str]:
    """The keys that go with a value; none where anything in it stays."""
    if value.kind == "string" or entries:
        own = _join(key, "message") if entries else key
        return [own] if own in untranslated else []
    gone: list[str] = []
    for member in value.members:
        inner = _doomed(member.value, untranslated, _join(key, member.name), entries)
        if not inner:
            return []
        gone += inner
    return gone


class _Growth:
    """Insertions into an existing target: the keys that it lacks, each behind the source's preceding one."""

    def __init__(
        self, base: Document, source: Document, values: Mapping[str, str], spelling: Spelling
    ) -> None:
        standing = {block.key for block in base.blocks}
        self._base, self._source = base.text, source.text
        self._roots = _root(source), _root(base)
        self._spelling = spelling
        self._values = {key: value for key, value in values.items() if key not in standing}
        self._wanted = _prefixes(self._values)
        self._texts = _prefixes(block.key for block in source.blocks)
        self._newline = newline_of(base.text)
        self._colon, self._unit = ": ", "  "
        for first in self._roots[1].members[:1]:
            self._colon = self._base[first.key_end : first.value.start] or ": "
            self._unit = self._lead_of(first).lstrip("\r\n") or "  "
        self.written: dict[str, str] = {}
        self.replaced: list[str] = []

    def edits(self) -> list[Edit]:
        """All insertions, in the order in which they stand at one place."""
        return list(self._grow(*self._roots, None, self._newline)) if self._values else []

    def _grow(self, source: Value, base: Value, path: str | None, outer: str) -> Iterator[Edit]:
        """Into one object or array whose own line begins with `outer`."""
        here = {member.name: member for member in base.members}
        lead = f"{outer}{self._unit}" if "\n" in outer else ""
        if base.members:
            lead = self._lead_of(base.members[0])
        fresh: list[tuple[Member | None, Member]] = []
        neighbour: Member | None = None
        for index, member in enumerate(source.members):
            key = _join(path, member.name)
            twin = here.get(member.name)
            if twin is None:
                rest = source.members[index:] if source.kind == "array" else (member,)
                if any(_join(path, other.name) in self._wanted for other in rest):
                    fresh.append((neighbour, member))
                continue
            neighbour = twin
            if twin.value.kind == member.value.kind:
                yield from self._grow(member.value, twin.value, key, lead)
            elif key in self._wanted:
                self.replaced += [leaf.key for leaf in _leaves_at(twin.value, key)]
                text = self._rendered(member.value, key, lead, inside_array=False)
                yield Edit(Span(twin.value.start, twin.value.end), text, "insertion", key)
        yield from self._inserted(fresh, base, path, lead, outer)

    def _inserted(
        self, fresh: list[tuple[Member | None, Member]], base: Value, path: str | None, lead: str, outer: str
    ) -> Iterator[Edit]:
        """New members of one object or array, each behind its neighbour, or before the first."""
        between = lead
        if "\n" not in lead and base.members:
            between = self._lead_of(base.members[1]) if len(base.members) > 1 else self._colon[1:]
        array = base.kind == "array"
        for index, (neighbour, member) in enumerate(fresh):
            key = _join(path, member.name)
            name = "" if array else self._spelling.quoted(member.name) + self._colon
            item = name + self._rendered(member.value, key, lead, inside_array=array)
            if neighbour:
                span, text = Span(neighbour.value.end, neighbour.value.end), f",{between}{item}"
            elif base.members:
                span, text = Span(base.members[0].start, base.members[0].start), f"{item},{between}"
            else:
                span = Span(base.end - 1 if index else base.start + 1, base.end - 1)
                text = f"{',' if index else ''}{lead}{item}{outer if index + 1 == len(fresh) else ''}"
            yield Edit(span, text, "insertion", key)

    def _rendered(self, value: Value, key: str, lead: str, inside_array: bool) -> str:
        """A value of the source with its translations, on a line that begins with `lead`."""
        if value.kind == "other":
            return self._source[value.start : value.end]
        if value.kind == "string":
            if key in self._texts:
                self.written[key] = self._values.get(key, value.text)
            return self._spelling.quoted(self._values.get(key, value.text))
        array = value.kind == "array"
        inner = f"{lead}{self._unit}"
        items = [
            ("" if array else self._spelling.quoted(member.name) + self._colon)
            + self._rendered(member.value, inner_key, inner, array)
            for member in value.members
            for inner_key in (_join(key, member.name),)
            if array or inner_key in self._wanted or inner_key not in self._texts
        ]
        opening, closing = "[]" if array else "{}"
        if not items or "\n" not in lead:
            return opening + ", ".join(items) + closing
        return opening + inner + f",{inner}".join(items) + lead + closing

    def _lead_of(self, member: Member) -> str:
        """The white space before a member, from the last line end on."""
        at = member.start
        while self._base[at - 1] in " \t\r\n":
            at -= 1
        lead = self._base[at : member.start]
        return self._newline + lead.rpartition("\n")[2] if "\n" in lead else lead


def _leaves_at(value: Value, key: str) -> list[_Leaf]:
    return [_Leaf(key, value, "")] if value.kind == "string" else list(_leaves(value, key, entries=False))


def _flat(value: object, path: str | None) -> Iterator[tuple[str, object]]:
    """Every leaf of a parsed value, by the same keys as ours."""
    members: Mapping[str, object]
    if isinstance(value, dict):
        members = value
    elif isinstance(value, list):
        members = {str(index): item for index, item in enumerate(value)}
    else:
        yield path or "", value
        return
    for name, member in members.items():
        yield from _flat(member, _join(path, name))


def _join(path: str | None, name: str) -> str:
    spelled = name.replace("~", "~0").replace("/", "~1")
    return spelled if path is None else f"{path}/{spelled}"


def _prefixes(keys: Iterable[str]) -> set[str]:
    """The keys and all paths above them."""
    found: set[str] = set()
    for key in keys:
        while key not in found:
            found.add(key)
            key = key.rpartition("/")[0] if "/" in key else key
    return found


def _plain(key: str, value: Text) -> str:
    if isinstance(value, str):
        return value
    raise DragomanError(f"{key!r} is one text in JSON, and its translation has plural forms", "verify_failed")


def _has_words(text: str) -> bool:
    return any(map(str.isalpha, text))


def _root(document: Document) -> Value:
    return cast(Value, document.extras["root"])
