"""i18next (JSON v4): plurals as sibling keys with suffixes, contexts, nesting, interpolation by `{{…}}`.

Promises that `name_one` and its like are one plural exactly where `name_other` stands beside them (or alone,
with a `{{count}}` in it), under the key of `name_other`; that a plural gets the categories of its locale,
each behind the one before it; and that `name_zero`, which i18next asks for the number 0 in every locale, is
kept. Any other suffix is a context, or part of a name. An ordinal takes what the translation has of its
categories, else its `other`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from dragoman.content import locales
from dragoman.content.catalogues.json_dialect import JsonDialect, lost_keys, plain, shows_choice
from dragoman.content.catalogues.json_growth import Put, Standing, Trees, put
from dragoman.content.catalogues.json_units import disagreement, has_words, joined
from dragoman.content.lexers.json_tokens import Member, Value
from dragoman.content.spans import splice
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Block, Document, Edit, Plural, Role, Span, Syntax, Text, Writing

_CATEGORIES = ("zero", "one", "two", "few", "many", "other")
_ORDINAL = "_ordinal"
_COUNT = re.compile(r"\{\{-?\s*count\b")
_INTERPOLATED = re.compile(r"\{\{[^{}\"\n]+\}\}|\$t\(")
_SUFFIXED = re.compile(r'"([^"\\\n]{1,200})_(zero|one|two|few|many|other)"\s*:\s*"')
_ENTRY = re.compile(r'\{\s*"message"\s*:\s*"(?:[^"\\]|\\.)*+"\s*,\s*"description"')
_SAMPLE = range(1, 201)


@dataclass(frozen=True, slots=True)
class Group:
    """The keys of one plural: that of a form is `stem`, `_` and its category; `key` is that of `other`."""

    stem: str
    forms: Mapping[str, Value]

    @property
    def key(self) -> str:
        """The block's key: a name that stands in every file that has the plural."""
        return self.path("other")

    @property
    def ordinal(self) -> bool:
        """Whether it counts places (1st, 2nd), not things."""
        return self.stem.endswith(_ORDINAL)

    def path(self, category: str) -> str:
        """The key of one form."""
        return f"{self.stem}_{category}"

    def categories(self, locale: str) -> tuple[str, ...]:
        """Those that CLDR has for a locale."""
        return locales.ordinal_categories(locale) if self.ordinal else locales.plural_categories(locale)

    def read(self, forms: Mapping[str, str], role: Role, locale: str) -> Text:
        """The forms as a block has them; a lone `other` without a count cannot be told from a plain text.

        `_zero` is the exact number 0 where the locale has no form of its own for it.
        """
        if forms.keys() == {"other"} and not _COUNT.search(forms["other"]):
            return forms["other"]
        zero = "zero"
        if not self.ordinal and not (_has_zero(locale) and (role == "target" or _is_wide(locale))):
            zero = "=0"
        return {zero if category == "zero" else category: text for category, text in forms.items()}

    def spelled(self, key: str, value: Text, locale: str, standing: Collection[str]) -> dict[str, str]:
        """The forms to write, by category: the locale's, `_zero`, and what stands in the file beside them."""
        plural: Plural = {"other": value} if isinstance(value, str) else value
        if "other" not in plural:
            raise DragomanError(f"the translation of {key!r} has no form `other`", "verify_failed")
        forms = {category: plural.get(category, plural["other"]) for category in self.categories(locale)}
        if not self.ordinal and not (_has_zero(locale) and _is_wide(locale)):
            of_none = plural.get("zero", plural.get(locales.plural_category(locale, 0), plural["other"]))
            if "=0" in plural or "zero" in {*standing, *self.forms}:
                forms["zero"] = plural.get("=0", of_none)
        forms |= {category: plural["other"] for category in standing if category not in forms}
        return {category: forms[category] for category in _CATEGORIES if category in forms}


class I18next(JsonDialect):
    """The format `i18next`."""

    name = "i18next"

    def detect(self, path: str, head: str) -> bool:
        """By interpolation, nesting, or two forms of one plural; ICU messages and entries are others'."""
        if not super().detect(path, head) or shows_choice(head) or _ENTRY.search(head):
            return False
        seen: defaultdict[str, set[str]] = defaultdict(set)
        for stem, category in _SUFFIXED.findall(head):
            seen[stem].add(category)
        pairs = any(len(found) > 1 and "other" in found for found in seen.values())
        return pairs or bool(_INTERPOLATED.search(head))

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Every plain text and every plural as a block, in file order."""
        document = super().read(text, role, locale)
        groups = _groups_of(document)
        owners = {group.path(category): group for group in groups.values() for category in group.forms}
        blocks: dict[str, Block] = {}
        for block in document.blocks:
            group = owners.get(block.key)
            if group is None:
                blocks[block.key] = block
            elif group.key not in blocks:
                blocks[group.key] = _block(block, group, role, locale)
        return replace(document, blocks=tuple(blocks.values()))

    def remembered(self, root: Value) -> Mapping[str, object]:
        """The plurals, by the keys of their blocks."""
        return {"groups": {group.key: group for group in _groups(root, None)}}

    def syntax(self, texts: Sequence[str]) -> Syntax:
        """i18next's, declared by the format."""
        return "i18next"

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Replace texts and forms, add the forms of the locale, take out what has no translation."""
        fresh = base.role == "source"
        groups, standing = _groups_of(source), _groups_of(base)
        values: dict[str, str] = {}
        forms: dict[str, dict[str, str]] = {}
        for key, value in translations.items():
            if group := groups.get(key):
                there = set(standing[key].forms) if key in standing and not fresh else set[str]()
                forms[key] = group.spelled(key, value, locale, there)
                values |= {group.path(category): text for category, text in forms[key].items()}
            else:
                values[key] = plain(key, value)

        def trees() -> Trees:
            wanted = {groups[key].stem: form for key, form in forms.items()}
            given = self.trees(base, source)
            return given._replace(source=given.source._replace(root=_grown(given.source.root, None, wanted)))

        doomed = set(_doomed(base, standing, values)) if fresh else ()
        done = put(base.text, _places(base), values, trees, doomed)
        owners = {
            group.path(category): group
            for group in (*standing.values(), *groups.values())
            for category in _CATEGORIES
            if category in group.forms or category in forms.get(group.key, ())
        }
        return _writing(base, source, done, owners, forms, locale)

    def second_opinion(self, before: Document, after: Document) -> str:
        """What the standard library reads must be our forms, and all else must be as it was."""
        old, new = ({place.key: place.text for place in _places(document)} for document in (before, after))
        return disagreement(before.text, after.text, old.keys(), new)


def _has_zero(locale: str) -> bool:
    return "zero" in locales.plural_categories(locale)


@lru_cache(maxsize=256)
def _is_wide(locale: str) -> bool:
    """Whether a locale's form for zero is that of other numbers, too (Latvian: 10, 20), so stays theirs."""
    return any(locales.plural_category(locale, number) == "zero" for number in _SAMPLE)


def _suffixed(members: Sequence[Member]) -> dict[str, dict[str, Value]]:
    """The strings of an object whose names end in a category: stem → category → value."""
    found: dict[str, dict[str, Value]] = {}
    for member in members:
        stem, _, category = member.name.rpartition("_")
        if stem and category in _CATEGORIES and member.value.kind == "string":
            found.setdefault(stem, {})[category] = member.value
    return found


def _groups(value: Value, path: str | None) -> Iterator[Group]:
    """All plurals below a value."""
    if value.kind == "object":
        for stem, forms in _suffixed(value.members).items():
            other = forms.get("other")
            if other and (len(forms) > 1 or _COUNT.search(other.text)):
                yield Group(joined(path, stem), forms)
    for member in value.members:
        if member.value.members:
            yield from _groups(member.value, joined(path, member.name))


def _groups_of(document: Document) -> Mapping[str, Group]:
    return cast(Mapping[str, Group], document.extras["groups"])


def _block(first: Block, group: Group, role: Role, locale: str) -> Block:
    texts = {category: form.text for category, form in group.forms.items()}
    value = group.read(texts, role, locale)
    places = sorted((form.start + 1, form.end - 1) for form in group.forms.values())
    empty = role == "target" and not all(map(str.strip, texts.values()))
    return first._replace(
        key=group.key,
        text=texts["other"],
        plural=None if isinstance(value, str) else value,
        spans=tuple(Span(*place) for place in places),
        state="untranslated" if empty else "",
    )


def _places(document: Document) -> Iterator[Standing]:
    """Where every string of a document's blocks stands, each under its own key."""
    groups = _groups_of(document)
    for block in document.blocks:
        if group := groups.get(block.key):
            for category, form in group.forms.items():
                yield Standing(group.path(category), form.text, (Span(form.start + 1, form.end - 1),))
        else:
            yield Standing(block.key, block.text, block.spans)


def _grown(value: Value, path: str | None, wanted: Mapping[str, Mapping[str, str]]) -> Value:
    """A source's tree with members for the forms that it lacks: stem → the forms that are wanted."""
    if not value.members or not wanted:
        return value
    members = [
        member._replace(value=_grown(member.value, joined(path, member.name), wanted))
        for member in value.members
    ]
    for stem in _suffixed(value.members) if value.kind == "object" else ():
        for category in wanted.get(joined(path, stem), ()):
            _add(members, stem, category)
    return value._replace(members=tuple(members))


def _add(members: list[Member], stem: str, category: str) -> None:
    """Put a form behind those that precede it by category, else before those that follow it."""
    places = {member.name: index for index, member in enumerate(members)}
    if f"{stem}_{category}" in places:
        return
    rank = _CATEGORIES.index(category)
    earlier = [places[name] for other in _CATEGORIES[:rank] if (name := f"{stem}_{other}") in places]
    later = [places[name] for other in _CATEGORIES[rank:] if (name := f"{stem}_{other}") in places]
    at = earlier[-1] + 1 if earlier else min(later)
    model = members[places[f"{stem}_other"]]
    members.insert(at, model._replace(name=f"{stem}_{category}"))


def _doomed(base: Document, groups: Mapping[str, Group], values: Mapping[str, str]) -> Iterator[str]:
    """Of a new target: the forms that its locale has not, and whatever has words but no translation."""
    for block in base.blocks:
        group = groups.get(block.key)
        if group is None:
            if block.key not in values and has_words(block.text):
                yield block.key
        elif block.key in values or any(has_words(form.text) for form in group.forms.values()):
            yield from (path for path in map(group.path, group.forms) if path not in values)


def _writing(
    base: Document,
    source: Document,
    done: Put,
    owners: Mapping[str, Group],
    forms: Mapping[str, Mapping[str, str]],
    locale: str,
) -> Writing:
    """What was done to single keys, told of blocks."""
    stood = {block.key for block in base.blocks}

    def told(edit: Edit) -> Edit:
        group = owners.get(edit.key)
        if group is None:
            return edit
        grown = edit.kind != "value" and group.key in stood and group.key in forms
        return edit._replace(key=group.key, kind="plural" if grown else edit.kind)

    written: dict[str, Text] = {}
    grouped: dict[str, dict[str, str]] = {}
    for path, text in done.written.items():
        if group := owners.get(path):
            grouped.setdefault(group.key, {})[path.rpartition("_")[2]] = text
        else:
            written[path] = text
    for key, texts in grouped.items():
        written[key] = owners[key].read(texts, "target", locale)
    gone = [owners[path].key if path in owners else path for path in done.removed]
    swallowed = [key for key in stood if key in owners and owners[key].key in grouped and key not in written]
    removed = tuple(key for key in dict.fromkeys((*gone, *swallowed)) if key not in written)
    edits = tuple(map(told, done.edits))
    lost = () if base is source else lost_keys(base, source, removed)
    return Writing(splice(base.text, edits), edits, lost, written, removed)
