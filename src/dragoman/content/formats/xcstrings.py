"""Xcode's string catalogues (.xcstrings): one JSON file with the texts of all languages.

Promises that only one language's texts change (with their states and plural categories), spelled and sorted
as Xcode does it, and that a language which is new to a text goes where the file's habit wants it. A key is
the catalogue's (`~1` for a slash, `~0` for a tilde), followed by `device/mac` or `substitutions/name` for
what varies. A text without a localization in the source language is its own key; what is not to be translated
is no block. An empty translation takes a text out again. Phrases of App Shortcuts (`stringSet`) are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from dragoman.content import locales
from dragoman.content.catalogues import apple_plurals
from dragoman.content.lexers.json_tokens import Member, Value, spelling_of
from dragoman.content.lexers.string_catalogue import Catalogue, Entry, Path, Said, read, texts, value_of
from dragoman.content.lexers.string_catalogue_rereading import complain
from dragoman.content.spans import line_at, newline_of, splice
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Block, BlockState, Document, Edit, Role, Span, Text, Writing


class StringCatalogue:
    """The format `xcstrings`."""

    name = "xcstrings"
    extensions: tuple[str, ...] = (".xcstrings",)
    whole = False
    shared = True
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """By extension alone, so that a broken file is refused by its line."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """JSON is Unicode."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """As source the texts in the file's own language; as target what stands in `locale`, or nothing."""
        catalogue = read(text)
        language = catalogue.source_language
        if role == "source" and not _is_language(language, locale):
            raise DocumentError(
                f"the catalogue's source language is {language}, and {locale} was asked for", 1
            )
        file = _File(text, catalogue, locale)
        make = file.source_block if role == "source" else file.target_block
        blocks = tuple(make(one) for one in file.ones)
        return Document(self.name, text, blocks, role, locale, extras={"file": file})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Change what is said in `locale`, entry by entry.

        Where `source` is the file as it was before, in the role of a target, the language gets its place, its
        states and what it varied by back from there.
        """
        file = cast(_File, base.extras["file"])
        if file.locale != locale:
            file = _File(base.text, file.catalogue, locale)
        former = cast(_File, source.extras["file"]) if source.role == "target" else None
        writer = _Writer(file, translations, former)
        edits = sorted(writer.edits(), key=lambda edit: (edit.span.start, edit.span.end))
        known = {block.key for block in source.blocks}
        lost = tuple(block.key for block in base.blocks if block.key not in known)
        return Writing(splice(base.text, edits), tuple(edits), lost, writer.written)

    def second_opinion(self, before: Document, after: Document) -> str:
        """What the standard library reads must be our blocks, and all other languages as they were."""
        file = cast(_File, after.extras["file"])
        return complain(before.text, after.text, file.code, dict(file.said()))


@dataclass(frozen=True, slots=True)
class _One:
    """One text of the source, and where it stands in its entry."""

    key: str
    entry: Entry
    path: Path
    said: Said | None
    """What the source language says; None where the entry's key is the text."""

    def forms(self) -> Mapping[str, str]:
        """The source's text (category empty), or its plural forms."""
        return self.said.forms() if self.said else {"": self.entry.key}


class _File:
    """A catalogue, looked at for one target locale."""

    def __init__(self, text: str, catalogue: Catalogue, locale: str) -> None:
        self.text = text
        self.catalogue = catalogue
        self.locale = locale
        self.code = _code(catalogue, locale)
        self.ones = tuple(one for entry in catalogue.entries for one in _ones(entry, catalogue))
        self.leads = catalogue.leads_with_source()

    @cached_property
    def layout(self) -> _Layout:
        """How the file is laid out."""
        return _Layout(self.text, self.catalogue.root)

    def standing(self, entry: Entry) -> dict[Path, Said]:
        """What an entry says in the locale."""
        member = entry.localization(self.code)
        return dict(texts(member.value)) if member else {}

    def said(self) -> Iterator[tuple[tuple[str, Path], Mapping[str, str]]]:
        """All that is said in the locale, by entry and path."""
        for one in self.ones:
            if found := self.standing(one.entry).get(one.path):
                yield (one.entry.key, one.path), found.forms()

    def source_block(self, one: _One) -> Block:
        """A text as the source has it."""
        if one.said is None:
            key = one.entry.member
            return _block(one, one.entry.key, None, (Span(key.start + 1, key.key_end - 1),), "")
        forms = one.said.forms()
        if one.said.varies and "other" not in forms:
            line = line_at(self.text, one.said.varies.start)
            raise DocumentError(
                f"the plural of {one.entry.key!r} has no form `other`, which Apple requires", line
            )
        spans = tuple(_inner(unit) for unit in one.said.units.values())
        return _block(one, *self._value(one.said), spans, "")

    def target_block(self, one: _One) -> Block:
        """A text as it stands in the locale; empty where nothing does."""
        found = self.standing(one.entry).get(one.path)
        if found is None:
            return _block(one, "", None, (), "untranslated")
        spans = tuple(_inner(unit) for unit in found.units.values())
        return _block(one, *self._value(found), spans, _state(found))

    def _value(self, said: Said) -> tuple[str, Mapping[str, str] | None]:
        if said.varies is None:
            return said.forms()[""], None
        plural = apple_plurals.inside(said.forms(), self.locale)
        return plural.get("other") or next(iter(plural.values())), plural


class _Layout:
    """How a file is laid out: Xcode's way, or that of whoever wrote it."""

    def __init__(self, text: str, root: Value) -> None:
        first = root.members[0]
        before = text[root.start + 1 : first.start]
        self._newline = newline_of(text) if "\n" in before or "\r" in before else ""
        self._unit = before.lstrip("\r\n") if self._newline else ""
        self._colon = text[first.key_end : first.value.start]
        self.quoted = spelling_of(text).quoted

    def depth(self, text: str, value: Value) -> int:
        """The depth at which the member stands whose value this is, by its closing brace."""
        before = text[: value.end - 1]
        lead = before[len(before.rstrip()) :].rpartition("\n")[2]
        return len(lead) // len(self._unit) if self._unit else 0

    def lead(self, depth: int) -> str:
        """What stands before a member at that depth."""
        return self._newline + self._unit * depth

    def named(self, name: str, value: object, depth: int) -> str:
        """A member, all that it holds included."""
        return f"{self.quoted(name)}{self._colon}{self.spelled(value, depth)}"

    def spelled(self, value: object, depth: int) -> str:
        """A value whose members stand at `depth + 1`: nested mappings of strings; raw text comes as bytes."""
        if isinstance(value, bytes):
            return value.decode()
        if not isinstance(value, Mapping):
            return self.quoted(str(value))
        inner, outer = self.lead(depth + 1), self.lead(depth)
        if not value:
            return f"{{{self._newline}{outer}}}"
        members = [self.named(name, said, depth + 1) for name, said in value.items()]
        return f"{{{inner}{f',{inner}'.join(members)}{outer}}}"


_ENTRY, _LANGUAGE = 2, 4
"""The depths at which an entry and a language stand."""

_Node = dict[str, object]
"""What is to be said in one language, as nested objects; raw text of the file as bytes."""


class _Writer:
    """Collects the edits of one write."""

    def __init__(self, file: _File, translations: Mapping[str, Text], former: _File | None) -> None:
        self._file = file
        self._former = former
        self._entries = {one.entry.key: one.entry for one in former.ones} if former else {}
        self._layout = file.layout
        self._values = translations
        self.written: dict[str, Text] = {}

    def edits(self) -> Iterator[Edit]:
        """The changes of all entries that have translations."""
        groups: dict[str, list[_One]] = {}
        for one in self._file.ones:
            groups.setdefault(one.entry.key, []).append(one)
        for ones in groups.values():
            if any(one.key in self._values for one in ones):
                yield from self._entry(ones)

    def _entry(self, ones: list[_One]) -> Iterator[Edit]:
        """In place where all of the entry's texts have one, else the language as a whole."""
        entry = ones[0].entry
        standing = self._file.standing(entry)
        asked = {one.path: self._asked(one) for one in ones if one.key in self._values}
        member = entry.localization(self._file.code)
        if self._former and asked.keys() >= standing.keys():
            yield from self._as_before(self._former, entry, member, ones)
            return
        if not any(any(forms.values()) for forms in asked.values()) and asked.keys() >= standing.keys():
            if member:
                yield self._without(entry, member, ones[0].key)
            return
        if all(path in standing and _fits(standing[path], forms) for path, forms in asked.items()):
            for one in ones:
                if one.path in asked:
                    yield from self._in_place(one.key, standing[one.path], asked[one.path])
            return
        node: _Node = {}
        for one in ones:
            forms = asked.get(one.path, {})
            if any(forms.values()):
                self._put(node, one, forms, "translated")
            elif one.path in standing and one.path not in asked:
                self._put(node, one, standing[one.path].forms(), _raw_state(standing[one.path]))
            else:
                self._put(node, one, one.forms(), "new")
                self.written[one.key] = self._file.source_block(one).value
        yield self._language(entry, member, _sorted(node), ones[0].key)

    def _as_before(
        self, former: _File, entry: Entry, member: Member | None, ones: list[_One]
    ) -> Iterator[Edit]:
        """A language as it was said in a former state of the file, letter by letter."""
        before = self._entries.get(entry.key)
        then = before.localization(former.code) if before else None
        if then:
            raw = former.text[then.value.start : then.value.end]
            yield self._language(entry, member, raw.encode(), ones[0].key)
        elif member:
            yield self._without(entry, member, ones[0].key)
        for one in ones:
            block = former.target_block(replace(one, entry=before)) if before else None
            self.written[one.key] = block.value if block else ""

    def _asked(self, one: _One) -> dict[str, str]:
        """The forms that a text is to have, as the file names them; puts on record what will be read."""
        value = self._values[one.key]
        plural = one.said is not None and one.said.varies is not None
        if isinstance(value, str) and not plural:
            self.written[one.key] = value
            return {"": value}
        forms = apple_plurals.on_disk(value, self._file.locale)
        if not any(forms.values()):
            self.written[one.key] = ""
            return {"": ""}
        self.written[one.key] = apple_plurals.inside(forms, self._file.locale)
        return dict(sorted(forms.items()))

    def _in_place(self, key: str, said: Said, forms: Mapping[str, str]) -> Iterator[Edit]:
        """New values and states; a plural whose categories change is written anew."""
        if said.varies and said.units.keys() != forms.keys():
            depth = self._layout.depth(self._file.text, said.varies)
            spelled = self._layout.spelled(_plural(forms, "translated"), depth)
            yield Edit(Span(said.varies.start, said.varies.end), spelled, "plural", key)
            return
        for name, unit in said.units.items():
            value, state = value_of(unit), unit.member("state")
            if value.text != forms[name]:
                yield Edit(_place(value), self._layout.quoted(forms[name]), "value", key)
            if state and state.value.text != "translated":
                yield Edit(_place(state.value), self._layout.quoted("translated"), "metadata", key)

    def _put(self, node: _Node, one: _One, forms: Mapping[str, str], state: str) -> None:
        """One text into a language's node, below what it varies by."""
        at = node
        path = list(one.path)
        while path:
            kind, name, *path = path
            branch = at if kind == "substitutions" else _child(at, "variations")
            at = _child(_child(branch, kind), name)
            if kind == "substitutions":
                at |= self._about(one.entry, name)
        if "" in forms:
            at["stringUnit"] = {"state": state, "value": forms[""]}
        else:
            _child(at, "variations")["plural"] = _plural(forms, state)

    def _about(self, entry: Entry, name: str) -> _Node:
        """What a substitution says of its argument, as it stands in the source language."""
        member = entry.localization(self._file.catalogue.source_language)
        there = member.value.member("substitutions") if member else None
        named = there.value.member(name) if there else None
        return {
            about.name: self._file.text[about.value.start : about.value.end].encode()
            for about in (named.value.members if named else ())
            if about.value.kind in ("string", "other")
        }

    def _language(self, entry: Entry, member: Member | None, node: object, key: str) -> Edit:
        """The edit that makes a node what the entry says in the locale."""
        layout, code = self._layout, self._file.code
        if member:
            return Edit(_place(member.value), layout.spelled(node, _LANGUAGE), "value", key)
        if entry.localizations and entry.localizations.value.members:
            others = entry.localizations.value
            index = _index([other.name for other in others.members], code, self._first())
            return self._inserted(others, index, layout.named(code, node, _LANGUAGE), _LANGUAGE, key)
        if entry.localizations:
            span = _place(entry.localizations.value)
            return Edit(span, layout.spelled({code: node}, _LANGUAGE - 1), "insertion", key)
        if not entry.member.value.members:
            spelled = layout.spelled({"localizations": {code: node}}, _ENTRY)
            return Edit(_place(entry.member.value), spelled, "insertion", key)
        names = [other.name for other in entry.member.value.members]
        item = layout.named("localizations", {code: node}, _ENTRY + 1)
        index = _index(names, "localizations", "")
        return self._inserted(entry.member.value, index, item, _ENTRY + 1, key)

    def _inserted(self, into: Value, index: int, item: str, depth: int, key: str) -> Edit:
        """A new member before the one of that index, or behind the last."""
        lead = self._layout.lead(depth)
        if index:
            at, text = into.members[index - 1].value.end, f",{lead}{item}"
        else:
            at, text = into.members[0].start, f"{item},{lead}"
        return Edit(Span(at, at), text, "insertion", key)

    def _without(self, entry: Entry, member: Member, key: str) -> Edit:
        """Take a language out; with the last one goes all that held it."""
        holder, gone, depth = entry.member.value, entry.localizations, _ENTRY
        if gone and len(gone.value.members) > 1:
            holder, gone, depth = gone.value, member, _LANGUAGE - 1
        if len(holder.members) == 1 or gone is None:
            return Edit(_place(holder), self._layout.spelled({}, depth), "removal", key)
        index = holder.members.index(gone)
        if index:
            return Edit(Span(holder.members[index - 1].value.end, gone.value.end), "", "removal", key)
        return Edit(Span(gone.start, holder.members[1].start), "", "removal", key)

    def _first(self) -> str:
        """The language that stands before all others whatever its name, where the file has it so."""
        return self._file.catalogue.source_language if self._file.leads else ""


def _ones(entry: Entry, catalogue: Catalogue) -> Iterator[_One]:
    """The texts of an entry, as far as there is something to translate."""
    if not entry.translatable:
        return
    own = entry.localization(catalogue.source_language)
    key = entry.key.replace("~", "~0").replace("/", "~1")
    found = [(path, said) for path, said in texts(own.value)] if own else []
    for path, said in found:
        if any(map(str.strip, said.forms().values())):
            rest = (part.replace("~", "~0").replace("/", "~1") for part in path)
            yield _One("/".join((key, *rest)), entry, path, said)
    if not found and entry.key.strip() and not (own and own.value.members):
        yield _One(key, entry, (), None)


def _block(
    one: _One, text: str, plural: Mapping[str, str] | None, spans: tuple[Span, ...], state: BlockState
) -> Block:
    return Block(
        key=one.key,
        text=text,
        spans=spans,
        plural=plural,
        syntax="printf",
        note=one.entry.comment,
        context=" ".join(one.path[:-1] and one.path),
        state="obsolete" if one.entry.stale else state,
    )


def _state(said: Said) -> BlockState:
    """Untranslated wins over what needs review; a unit that says nothing of its state is as good as done."""
    states = said.states()
    if "new" in states or not all(map(str.strip, said.forms().values())):
        return "untranslated"
    return "fuzzy" if states - {"translated"} else ""


def _raw_state(said: Said) -> str:
    return next(iter(said.states() - {"translated"}), "translated")


def _fits(said: Said, forms: Mapping[str, str]) -> bool:
    return (said.varies is None) == ("" in forms) and any(forms.values())


def _plural(forms: Mapping[str, str], state: str) -> _Node:
    return {name: {"stringUnit": {"state": state, "value": forms[name]}} for name in sorted(forms)}


def _child(node: _Node, name: str) -> _Node:
    return cast(_Node, node.setdefault(name, {}))


def _sorted(node: _Node) -> _Node:
    """A node with its members in Xcode's order, all the way down."""
    return {name: _sorted(said) if isinstance(said, dict) else said for name, said in sorted(node.items())}


def _index(names: list[str], name: str, first: str) -> int:
    """Where a name belongs among sorted ones, `first` standing before all."""
    return next((at for at, other in enumerate(names) if other != first and other > name), len(names))


def _inner(unit: Value) -> Span:
    value = value_of(unit)
    return Span(value.start + 1, value.end - 1)


def _place(value: Value) -> Span:
    return Span(value.start, value.end)


def _is_language(code: str, locale: str) -> bool:
    spelled = locales.spelled_locale(code)
    return not spelled or locales.same_language(spelled, locale)


def _code(catalogue: Catalogue, locale: str) -> str:
    """How the file spells a locale, or is going to."""
    spelled = locales.apple_spelling(locale)
    known = {locales.spelled_locale(code): code for code in reversed(catalogue.codes())}
    return known.get(locale) or known.get(spelled) or spelled
