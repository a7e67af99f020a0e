"""HTML's texts by place: what stands between tags of the block level, and attributes that are read out.

Promises for each text its exact span, and a key that stays while only words change: the path of block-level
elements that it stands in, from the nearest `id` on. Inline elements stay inside their text; white space that
a browser would show as one space is one. Code, scripts and what says `translate="no"` are no texts. Nothing
is refused but nesting beyond any page's. Knows nothing of files or of what follows from a locale.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape

from dragoman.content.lexers.html_tags import (
    PLAIN_TEXT,
    RAW_TEXT,
    TEMPLATE,
    Attribute,
    Mark,
    marks,
    spelled,
)
from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


INLINE = _names(
    "a abbr acronym area audio b bdi bdo big br canvas cite code data datalist del dfn em embed font i img"
    " input ins kbd map mark math meter nobr object output picture progress q rb rp rt rtc ruby s samp slot"
    " small source span strike strong sub sup svg time track tt u var video wbr script style template"
    " noscript link"
)
"""Elements that stand within a sentence; every other one bounds it."""
VOID = _names("area base br col embed hr img input link meta param source track wbr")
"""Elements without content."""

_OPAQUE = _names("code pre samp kbd var svg math template object applet")
_WORDLIKE = _names("code samp kbd var")
SPOKEN = _names(
    "alt title placeholder label summary aria-label aria-description aria-placeholder aria-roledescription"
    " aria-valuetext"
)
"""Attributes that are shown or read out, wherever they stand."""

DECLARED = frozenset(("lang", "xml:lang", "dir"))
"""Attributes of the root element that follow the language."""

_BUTTONS = frozenset(("submit", "button", "reset"))
_META = _names(
    "description keywords abstract og:title og:description og:image:alt twitter:title twitter:description"
    " twitter:image:alt"
)
_CLOSED_BY: Mapping[str, frozenset[str]] = {
    "li": frozenset(("li",)),
    "dt": frozenset(("dt", "dd")),
    "dd": frozenset(("dt", "dd")),
    "td": frozenset(("td", "th")),
    "th": frozenset(("td", "th")),
    "tr": frozenset(("tr", "td", "th")),
    "tbody": frozenset(("thead", "tbody", "tr", "td", "th")),
    "tfoot": frozenset(("thead", "tbody", "tr", "td", "th")),
    "option": frozenset(("option",)),
    "optgroup": frozenset(("option", "optgroup")),
    "body": frozenset(("head",)),
}
"""Element → those whose end may be left out before it; any block-level element ends a paragraph."""
_NOT_CLASS = re.compile(r"(?:^|\s)notranslate(?:\s|$)")
_PART = re.compile(r"\{%-?\s*(?P<end>end)?block\b\s*(?P<name>[\w.-]*)")
_NO_PROSE = re.compile(r"(?:^|[._-])(?:class|classes|css|id|js|lang|scripts?|styles?|url)(?:$|[._-])")
"""Blocks of a template that hold no words, by name."""
_SPACES = re.compile(r"[ \t\r\n\f]+")
_LINES = re.compile(r"\s*\n\s*")
_DEPTH_MAX = 200
_INDENT_MAX = 200


@dataclass(frozen=True, slots=True)
class Place:
    """One text. An `attribute` is shown unescaped; else it is raw markup, `held` the attributes within it."""

    key: str
    text: str
    span: Span
    note: str = ""
    attribute: Attribute | None = None
    plain: bool = False
    """Whether it stands where no tag is read, as in a title."""
    held: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """What was found: the texts in file order, all marks, and the attributes of the root element."""

    places: tuple[Place, ...]
    marks: tuple[Mark, ...]
    root: Mark | None


def page(text: str, start: int = 0, end: int | None = None) -> Page:
    """The texts of a document or of a fragment. Raises `DocumentError` for nesting without end."""
    found = tuple(marks(text, start, end))
    walk = _Walk(text, found)
    return Page(walk.places(), found, walk.root)


def skeleton(text: str, found: Page) -> Counter[str]:
    """What no translation may change: each tag, template and raw text, but for what is a text in it."""
    spans = {place.span for place in found.places if place.attribute}
    if found.root:
        spans |= {attribute.span for attribute in found.root.attributes if attribute.name in DECLARED}
    return Counter(
        _blanked(text, mark, spans)
        for mark in found.marks
        if mark.kind != "text" and not (mark.kind == "raw" and mark.name in PLAIN_TEXT)
    )


def filled(
    text: str, place: Place, value: str, translations: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """A translation as it is to stand at a place, and by key what will then be read there.

    The attributes within it, which the translation shows empty, get their own translations; one that has lost
    its tag is in no key.
    """
    if place.attribute:
        value = _lined(value, place)
        return spelled(value, place.attribute.quote), {place.key: value}
    if place.plain:
        shown = _SPACES.sub(" ", value.strip())
        return shown, {place.key: shown}
    waiting: defaultdict[str, list[list[Place]]] = defaultdict(list)
    for tag, places in _by_tag(text, place):
        waiting[tag].append(places)
    keys = {name: [held.key for held in place.held if _name(held) == name] for name in map(_name, place.held)}
    read: dict[str, str] = {}
    parts: list[str] = []
    for mark in marks(value):
        raw = value[mark.start : mark.end]
        if mark.kind == "text":
            raw = _SPACES.sub(" ", raw)
        if queue := waiting.get(raw):
            edits = []
            for held in queue.pop(0):
                put = _lined(translations.get(held.key, held.text), held)
                read[keys[_name(held)].pop(0)] = put
                edits.append((held, put))
            raw = _refilled(raw, edits)
        parts.append(raw)
    out = "".join(parts).strip(" \t\r\n\f")
    inner = [other for other in page(out).places if other.attribute is None]
    read[place.key] = inner[0].text if len(inner) == 1 else out
    return out, read


def _lined(value: str, place: Place) -> str:
    """An attribute's translation on one line where its source is; never with a blank line."""
    return value if value == place.text else _LINES.sub("\n" if "\n" in place.text else " ", value.strip())


def _by_tag(text: str, place: Place) -> Iterator[tuple[str, list[Place]]]:
    """Each tag within a place that holds attributes of its own, as the place's text shows it."""
    spans = {held.span: held for held in place.held}
    for mark in marks(text, place.span.start, place.span.end):
        places = [spans[attribute.span] for attribute in mark.attributes if attribute.span in spans]
        if mark.kind == "open" and places:
            yield _blanked(text, mark, set(spans)), places


def _refilled(raw: str, edits: Sequence[tuple[Place, str]]) -> str:
    tag = next(marks(raw))
    for held, put in reversed(edits):
        attribute = tag.attribute(_name(held))
        if attribute:
            raw = raw[: attribute.span.start] + spelled(put, attribute.quote) + raw[attribute.span.end :]
    return raw


def _name(place: Place) -> str:
    return place.attribute.name if place.attribute else ""


def _blanked(text: str, mark: Mark, spans: set[Span]) -> str:
    """A mark's raw text without the values at these spans."""
    parts: list[str] = []
    at = mark.start
    for attribute in mark.attributes:
        if attribute.span in spans:
            parts += (text[at : attribute.span.start], "" if attribute.quote else '""')
            at = attribute.span.end
    return "".join((*parts, text[at : mark.end]))


@dataclass(slots=True)
class _Open:
    """An open element of the block level: its path, and how many of each name it holds so far."""

    name: str
    path: str
    counts: Counter[str] = field(default_factory=Counter)


class _Walk:
    """Down the marks, with the block-level elements that one stands in and the run of inline marks so far."""

    def __init__(self, text: str, found: Sequence[Mark]) -> None:
        self.root: Mark | None = None
        self._text = text
        self._marks = found
        self._mates = _mates(found)
        self._open = [_Open("", "")]
        self._run: list[Mark] = []
        self._spoken = True
        self._places: list[Place] = []
        self._taken: set[str] = set()

    def places(self) -> tuple[Place, ...]:
        """All texts, in file order."""
        index = 0
        while index < len(self._marks):
            mark = self._marks[index]
            last = self._opaque_end(index)
            if last > index:
                self._opaque(mark, self._marks[last])
                index = last
            elif mark.kind in ("open", "close"):
                self._tag(mark)
            elif mark.kind == "raw":
                if mark.name in PLAIN_TEXT:
                    self._flush()
                    self._run = [replace(mark, kind="text")]
                    self._flush(plain=True)
            elif mark.kind == "statement":
                self._statement(mark)
            else:
                self._run.append(mark)
            index += 1
        self._flush()
        return tuple(sorted(self._places, key=lambda place: (place.span.start, -place.span.end)))

    def _opaque_end(self, index: int) -> int:
        """The index of the mark that ends an element which is no text; -1 where none begins here."""
        mark = self._marks[index]
        if mark.kind != "open" or mark.name in VOID:
            return -1
        kept = mark.attribute("translate")
        classes = mark.attribute("class")
        untouched = (kept and kept.text.strip().lower() == "no") or (
            classes and _NOT_CLASS.search(classes.raw)
        )
        if mark.name in _OPAQUE or mark.name in RAW_TEXT or untouched:
            return self._mates.get(index, -1)
        return -1

    def _opaque(self, mark: Mark, last: Mark) -> None:
        if mark.name == "html":
            self.root = mark
        if mark.name in INLINE:
            wordlike = mark.name in _WORDLIKE or mark.name not in _OPAQUE | RAW_TEXT
            self._run.append(Mark("expression" if wordlike else "comment", mark.start, last.end, mark.name))
        else:
            self._flush()
            self._enter(mark)
            self._leave(mark.name)

    def _tag(self, mark: Mark) -> None:
        if mark.name in INLINE:
            self._run.append(mark)
            return
        self._flush()
        if mark.kind == "close":
            self._leave(mark.name)
            return
        self._enter(mark)
        path = self._open[-1].path
        for attribute in mark.attributes:
            if _is_spoken(mark, attribute):
                self._attribute(f"{path}/@{attribute.name}", mark, attribute)
        if mark.name in VOID:
            self._open.pop()

    def _enter(self, mark: Mark) -> None:
        if mark.name == "html" and self.root is None:
            self.root = mark
        closed = _CLOSED_BY.get(mark.name, frozenset()) | {"p"}
        while self._open[-1].name in closed:
            self._open.pop()
        if len(self._open) > _DEPTH_MAX:
            raise DocumentError(
                f"elements are nested deeper than {_DEPTH_MAX}: close them", line_at(self._text, mark.start)
            )
        parent = self._open[-1]
        given = mark.attribute("id")
        if given and given.raw.strip() and not TEMPLATE.search(given.raw):
            named = given.text.strip().replace("~", "~0").replace("/", "~1")
            path = self._numbered(self._open[0], f"#{named}")
        else:
            step = self._numbered(parent, mark.name)
            path = f"{parent.path}/{step}" if parent.path else step
        self._open.append(_Open(mark.name, path))

    def _leave(self, name: str) -> None:
        if any(element.name == name for element in self._open[1:]):
            while self._open.pop().name != name:
                pass

    def _statement(self, mark: Mark) -> None:
        """A template's statement: alone on its line, or at the edge of a part, it bounds a text."""
        part = _PART.match(self._text, mark.start, mark.end)
        if not part and not self._alone(mark):
            self._run.append(mark)
            return
        self._flush()
        if part:
            self._spoken = bool(part["end"]) or not _NO_PROSE.search(part["name"])

    def _alone(self, mark: Mark) -> bool:
        before = self._text[max(0, mark.start - _INDENT_MAX) : mark.start]
        behind = self._text[mark.end : mark.end + _INDENT_MAX]
        return not (before.rpartition("\n")[2] + behind.partition("\n")[0]).strip()

    def _flush(self, plain: bool = False) -> None:
        """What the run holds: the attributes of its tags, and its text where it has words."""
        run, self._run = self._run, []
        if not run or not self._spoken:
            return
        path, held = self._open[-1].path, []
        for mark in run:
            for attribute in mark.attributes if mark.kind == "open" else ():
                if _is_spoken(mark, attribute):
                    name = self._numbered(self._open[-1], f"@{attribute.name}")
                    held.append(self._attribute(f"{path}/{name}" if path else name, mark, attribute))
        if not any(_has_words(self._text[mark.start : mark.end]) for mark in run if mark.kind == "text"):
            return
        kept = _core(run, self._text)
        if not any(_has_words(self._text[mark.start : mark.end]) for mark in kept if mark.kind == "text"):
            return
        start, end = kept[0].start, kept[-1].end
        inside = tuple(place for place in held if place and start <= place.span.start < end)
        spans = {place.span for place in inside}
        shown = "".join(
            _SPACES.sub(" ", self._text[mark.start : mark.end])
            if mark.kind == "text"
            else _blanked(self._text, mark, spans)
            for mark in kept
        )
        start += _leading(self._text[start : kept[0].end]) if kept[0].kind == "text" else 0
        end = start + len(self._text[start:end].rstrip(" \t\r\n\f")) if kept[-1].kind == "text" else end
        name = self._numbered(self._open[-1], "text()")
        key = path if name == "text()" and path else f"{path}/{name}" if path else name
        note = self._open[-1].name
        self._put(Place(key, shown.strip(" \t\r\n\f"), Span(start, end), note, None, plain, inside))

    def _attribute(self, key: str, mark: Mark, attribute: Attribute) -> Place | None:
        if not _has_words(TEMPLATE.sub("", attribute.raw)):
            return None
        return self._put(
            Place(key, attribute.text, attribute.span, f"{mark.name} {attribute.name}", attribute)
        )

    def _put(self, place: Place) -> Place:
        key, count = place.key, 1
        while key in self._taken:
            count += 1
            key = f"{place.key}[{count}]"
        self._taken.add(key)
        self._places.append(replace(place, key=key))
        return self._places[-1]

    def _numbered(self, within: _Open, name: str) -> str:
        within.counts[name] += 1
        return name if within.counts[name] == 1 else f"{name}[{within.counts[name]}]"


def _mates(found: Sequence[Mark]) -> dict[int, int]:
    """Index of each open tag → that of the tag which closes it, by name alone."""
    stacks: defaultdict[str, list[int]] = defaultdict(list)
    mates: dict[int, int] = {}
    for index, mark in enumerate(found):
        if mark.kind == "open" and mark.name not in VOID:
            stacks[mark.name].append(index)
        elif mark.kind == "close" and stacks[mark.name]:
            mates[stacks[mark.name].pop()] = index
    return mates


def _core(run: Sequence[Mark], text: str) -> Sequence[Mark]:
    """A run from its first words to its last, with the inline elements that hold some of them."""
    solid = [
        index
        for index, mark in enumerate(run)
        if mark.kind == "expression"
        or (mark.kind == "text" and text[mark.start : mark.end].strip(" \t\r\n\f"))
    ]
    first, last = solid[0], solid[-1]
    low, high = first, last
    for start, end in _mates(run).items():
        if start < first <= end or start <= last < end:
            low, high = min(low, start), max(high, end)
    return run[low : high + 1]


def _is_spoken(mark: Mark, attribute: Attribute) -> bool:
    if attribute is not mark.attribute(attribute.name):
        return False
    if attribute.name == "value":
        kind = mark.attribute("type")
        return mark.name == "input" and kind is not None and kind.text.strip().lower() in _BUTTONS
    if attribute.name == "content" and mark.name == "meta":
        named = mark.attribute("name") or mark.attribute("property")
        return named is not None and named.text.strip().lower() in _META
    return attribute.name in SPOKEN and mark.name not in ("meta", "link", "param")


def _has_words(raw: str) -> bool:
    return any(map(str.isalpha, unescape(raw) if "&" in raw else raw))


def _leading(raw: str) -> int:
    return len(raw) - len(raw.lstrip(" \t\r\n\f"))
