"""Apple's .stringsdict: a property list of texts that vary by number, width or device.

Promises that only texts change and the plural categories of a variable, which are those of the target's
language in CLDR's order, indented like their neighbours. A key is the path of names in the list (`~1` for a
slash, `~0` for a tilde). A format string (`%#@files@ in %@`) is a text where it holds words. An entry of
which nothing is translated is left out of a new target; of one that is translated in part the rest stays.
"""

from __future__ import annotations

import plistlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, cast

from dragoman.content.catalogues import apple_plurals
from dragoman.content.lexers import xml_places
from dragoman.content.lexers.xml_edits import fill, lead_of, read_inner, spelled, step
from dragoman.content.lexers.xml_places import Element
from dragoman.content.spans import line_at, newline_of, splice
from dragoman.content.tokens import tokens
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Span, Text, Writing

_FORMAT = "NSStringLocalizedFormatKey"
_SPECIFICATION = "NSStringFormatSpecTypeKey"
_RULES = ("NSStringVariableWidthRuleType", "NSStringDeviceSpecificRuleType")
"""Below these every string is a text: for a width, for a device."""
_DECLARATION = re.compile(r"\s*<\?xml.*?\?>", re.DOTALL)
_LINE_END = re.compile(r"\r\n?|\n")


class StringsDict:
    """The format `stringsdict`."""

    name = "stringsdict"
    extensions: tuple[str, ...] = (".stringsdict",)
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """By extension alone, so that a broken file is refused by its line."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """What the XML declaration says."""
        return xml_places.charset(data)

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Every variable's plural as a block, and every text."""
        file = _File(text, locale)
        blocks = tuple(file.block(unit, role) for unit in file.units.values())
        return Document(self.name, text, blocks, role, locale, extras={"file": file})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Replace texts and forms; then, in a target, insert what it lacks; else drop what has none."""
        file, original = _File(base.text, locale), cast(_File, source.extras["file"])
        edits, written, removed = _changes(file, translations), _said(file, translations), list[str]()
        if base.role == "source":
            for entry in file.entries:
                keys = [key for key, unit in file.units.items() if unit.chain[0] is entry]
                if any(map(file.has_words, keys)) and not any(key in translations for key in keys):
                    edits.append(Edit(file.place(entry), "", "removal", keys[0]))
                    removed += keys
        else:
            for edit, fresh in _insertions(file, original, translations):
                edits.append(edit)
                written |= _said(_File(source.text, locale), translations, fresh)
        edits.sort(key=lambda edit: (edit.span.start, edit.span.end))
        lost = tuple(key for key in file.units if key not in {block.key for block in source.blocks})
        return Writing(splice(base.text, edits), tuple(edits), lost, written, tuple(removed))

    def second_opinion(self, before: Document, after: Document) -> str:
        """What plistlib reads must be our blocks, and all else must be as it was."""
        earlier, later = _leaves(before.text), _leaves(after.text)
        places = cast(_File, before.extras["file"]).paths() | cast(_File, after.extras["file"]).paths()
        for path, text in cast(_File, after.extras["file"]).paths().items():
            if later.get(path) != text:
                return f"plistlib reads another text at {'/'.join(path)!r}"
        entries = {path[0] for path in later if path}
        for path, leaf in earlier.items():
            if path not in places and path[0] in entries and later.get(path) != leaf:
                return f"plistlib reads another value at {'/'.join(path)!r}, which is no text"
        return ""


@dataclass(frozen=True, slots=True)
class _Pair:
    """A key of a dict and its value; `path` names both."""

    path: tuple[str, ...]
    key: Element
    value: Element
    pairs: tuple[_Pair, ...] = ()
    """What a dict holds."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """A text, or a plural with its forms as the file names them."""

    chain: tuple[_Pair, ...]
    """The pairs from the entry down to the unit's own."""
    forms: Mapping[str, _Pair] | None

    @property
    def own(self) -> _Pair:
        return self.chain[-1]


class _File:
    """A property list, looked at for one locale."""

    def __init__(self, text: str, locale: str) -> None:
        self.text = text
        self.locale = locale
        plist = xml_places.parse(text)
        self.root = plist.children[0] if plist.local == "plist" and len(plist.children) == 1 else plist
        if self.root.local != "dict":
            raise DocumentError(
                "this is no property list with a dict of texts", line_at(text, plist.whole.start)
            )
        self.entries = self._pairs(self.root, ())

    @cached_property
    def units(self) -> Mapping[str, _Unit]:
        """All texts and plurals by their key, in file order."""
        found = (unit for entry in self.entries for unit in self._units((entry,), "text"))
        return {"/".join(map(step, unit.own.path)): unit for unit in found}

    @cached_property
    def pairs(self) -> Mapping[tuple[str, ...], _Pair]:
        """Every pair by its path."""
        found: dict[tuple[str, ...], _Pair] = {}
        stack = list(self.entries)
        while stack:
            pair = stack.pop()
            found[pair.path] = pair
            stack += pair.pairs
        return found

    def block(self, unit: _Unit, role: Role) -> Block:
        """A unit as a translator sees it."""
        value = self.value(unit)
        forms = (value,) if isinstance(value, str) else tuple(value.values())
        pairs = (unit.own,) if unit.forms is None else tuple(unit.forms.values())
        if unit.forms is not None and role == "source" and "other" not in unit.forms:
            line = line_at(self.text, unit.own.key.whole.start)
            raise DocumentError("a plural has no form `other`, which Apple requires", line)
        return Block(
            key="/".join(map(step, unit.own.path)),
            text=value if isinstance(value, str) else value.get("other", "".join(forms[-1:])),
            spans=tuple(pair.value.inner for pair in pairs),
            plural=None if isinstance(value, str) else value,
            syntax="printf",
            state="untranslated" if role == "target" and not all(map(str.strip, forms or ("",))) else "",
        )

    def value(self, unit: _Unit) -> Text:
        """What a unit says."""
        if unit.forms is None:
            return self.said(unit.own)
        return apple_plurals.inside({name: self.said(pair) for name, pair in unit.forms.items()}, self.locale)

    def said(self, pair: _Pair) -> str:
        """The text of a string."""
        return read_inner(self.text, pair.value, markup=False)

    def has_words(self, key: str) -> bool:
        """Whether a unit says anything that wants a translation."""
        value = self.value(self.units[key])
        return any(
            any(map(str.isalpha, form)) for form in ((value,) if isinstance(value, str) else value.values())
        )

    def paths(self) -> dict[tuple[str, ...], str]:
        """The text of every string that belongs to a unit, by its path."""
        pairs = (
            pair
            for unit in self.units.values()
            for pair in ((unit.own,) if unit.forms is None else unit.forms.values())
        )
        return {pair.path: self.said(pair) for pair in pairs}

    def lead(self, element: Element) -> str:
        """The line end and the white space before an element."""
        return lead_of(self.text, element.whole.start)

    def place(self, pair: _Pair) -> Span:
        """A pair with what leads to it."""
        return Span(pair.key.whole.start - len(self.lead(pair.key)), pair.value.whole.end)

    def _pairs(self, dictionary: Element, path: tuple[str, ...]) -> tuple[_Pair, ...]:
        children, found = dictionary.children, dict[str, _Pair]()
        for key, value in zip(children[::2], (*children[1::2], None), strict=False):
            if value is None or key.local != "key":
                self._refuse(key, "a dict holds keys and values in turn")
            name = read_inner(self.text, key, markup=False)
            if name in found:
                self._refuse(key, f"the key {name!r} stands here a second time")
            inner = self._pairs(value, (*path, name)) if value.local == "dict" else ()
            found[name] = _Pair((*path, name), key, value, inner)
        return tuple(found.values())

    def _units(self, chain: tuple[_Pair, ...], strings: str) -> Iterator[_Unit]:
        """The units of a pair. `strings` says what strings mean here: always `text`, or by their name."""
        pair = chain[-1]
        if pair.value.local == "string":
            if strings == "text" or (pair.path[-1] == _FORMAT and _speaks(self.said(pair))):
                yield _Unit(chain, None)
            return
        if any(inner.path[-1] == _SPECIFICATION for inner in pair.pairs):
            forms = {inner.path[-1]: inner for inner in pair.pairs if inner.value.local == "string"}
            yield _Unit(chain, {name: forms[name] for name in forms if name in apple_plurals.CATEGORIES})
            return
        meaning = "text" if pair.path[-1] in _RULES else "named"
        for inner in pair.pairs:
            yield from self._units((*chain, inner), meaning)

    def _refuse(self, element: Element, reason: str) -> NoReturn:
        raise DocumentError(reason, line_at(self.text, element.whole.start))


def _speaks(text: str) -> bool:
    """Whether a format string holds words beside its arguments."""
    return any(token.kind == "text" and any(map(str.isalpha, token.raw)) for token in tokens(text, "printf"))


def _changes(file: _File, translations: Mapping[str, Text]) -> list[Edit]:
    """The edits that give a file's units their translations."""
    edits: list[Edit] = []
    for key, unit in file.units.items():
        if key not in translations:
            continue
        value = translations[key]
        if unit.forms is not None:
            edits += _form_edits(file, key, unit, apple_plurals.on_disk(value, file.locale))
        elif isinstance(value, str):
            edits += _filled(file, unit.own, value, key)
        else:
            raise DragomanError(f"{key!r} is one text, and its translation has plural forms", "verify_failed")
    return edits


def _filled(file: _File, pair: _Pair, value: str, key: str) -> Iterator[Edit]:
    if file.said(pair) != value:
        inner = pair.value.inner
        raw = spelled(value, False, file.text[inner.start : inner.end], newline_of(file.text))
        yield fill(file.text, pair.value, raw, "value", key)


def _form_edits(file: _File, key: str, unit: _Unit, forms: Mapping[str, str]) -> Iterator[Edit]:
    """Forms in place; categories that the language does not have go, new ones come in CLDR's order."""
    standing = unit.forms or {}
    for name, pair in standing.items():
        if name in forms:
            yield from _filled(file, pair, forms[name], key)
        else:
            yield Edit(file.place(pair), "", "plural", key)
    pairs = list(standing.values()) or list(unit.own.pairs)
    newline = newline_of(file.text)
    for name in (name for name in forms if name not in standing):
        order = apple_plurals.CATEGORIES.index
        before = [pair for other, pair in standing.items() if order(other) < order(name)]
        like = before[-1] if before else pairs[0] if standing else pairs[-1]
        at = like.value.whole.end if before or not standing else file.place(like).start
        lead, gap = file.lead(like.key), file.lead(like.value)
        text = f"{lead}<key>{name}</key>{gap}<string>{spelled(forms[name], False, '', newline)}</string>"
        yield Edit(Span(at, at), text, "plural", key)


def _said(file: _File, translations: Mapping[str, Text], keys: tuple[str, ...] = ()) -> dict[str, Text]:
    """What units will read as: those with translations, or all of `keys`."""
    found: dict[str, Text] = {}
    for key in keys or tuple(key for key in file.units if key in translations):
        unit = file.units[key]
        value = translations.get(key)
        if value is None:
            found[key] = file.value(unit)
        elif unit.forms is None:
            found[key] = value
        else:
            found[key] = apple_plurals.inside(apple_plurals.on_disk(value, file.locale), file.locale)
    return found


def _insertions(
    base: _File, source: _File, translations: Mapping[str, Text]
) -> Iterator[tuple[Edit, tuple[str, ...]]]:
    """What a target lacks of the source, behind the pair that precedes it there, with its units' keys."""
    original = _File(source.text, base.locale)
    changes = _changes(original, translations)
    lacking: dict[tuple[str, ...], _Pair] = {}
    for key, unit in original.units.items():
        if key in translations:
            for pair in (pair for pair in unit.chain if pair.path not in base.pairs):
                lacking[pair.path] = pair
                break
    for path, pair in lacking.items():
        start, end = pair.key.whole.start, pair.value.whole.end
        inside = [
            Edit(Span(edit.span.start - start, edit.span.end - start), edit.text, edit.kind)
            for edit in sorted(changes, key=lambda edit: (edit.span.start, edit.span.end))
            if start <= edit.span.start and edit.span.end <= end
        ]
        item = _LINE_END.sub(newline_of(base.text), splice(original.text[start:end], inside))
        keys = tuple(key for key, unit in original.units.items() if pair in unit.chain)
        yield _placed(base, original, path, item, keys[0]), keys


def _placed(base: _File, source: _File, path: tuple[str, ...], item: str, key: str) -> Edit:
    """The edit that puts a pair where the source has it."""
    parent = base.pairs.get(path[:-1])
    siblings = parent.pairs if parent else base.entries
    model = source.pairs[path[:-1]].pairs if parent else source.entries
    known = {pair.path: pair for pair in siblings}
    before: _Pair | None = None
    for pair in model:
        if pair.path == path:
            break
        before = known.get(pair.path, before)
    if before:
        at = before.value.whole.end
        return Edit(Span(at, at), base.lead(before.key) + item, "insertion", key)
    if siblings:
        at = base.place(siblings[0]).start
        return Edit(Span(at, at), base.lead(siblings[0].key) + item, "insertion", key)
    holder = parent.value if parent else base.root
    lead = _LINE_END.sub(newline_of(base.text), source.lead(source.pairs[path].key))
    return fill(base.text, holder, lead + item + base.lead(holder), "insertion", key)


def _leaves(text: str) -> dict[tuple[str, ...], object]:
    """Every value that is no dict, by its path, as plistlib reads it."""
    try:
        root = plistlib.loads(_DECLARATION.sub("", text, count=1).encode(), fmt=plistlib.FMT_XML)
    except Exception as error:  # it raises whatever it stumbles over
        raise DragomanError(f"plistlib cannot read this property list: {error}", "verify_failed") from error
    found: dict[tuple[str, ...], object] = {}
    stack: list[tuple[tuple[str, ...], object]] = [((), root)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack += [((*path, str(name)), inner) for name, inner in value.items()]
        else:
            found[path] = value
    return found
