"""The children of an XML root as entries of a catalogue: each with the comments and blank lines that lead it.

Promises that an entry taken out and put back gives the same text again, that a copied entry takes on the
indentation and the line ends of the file that it comes into, and that comments are told to whom they belong:
right above an entry or behind it on its line. Knows no dialect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.content.lexers.escaping_habits import habits
from dragoman.content.lexers.xml_places import Element, cdata, escaped, unescaped
from dragoman.content.spans import newline_of, splice
from dragoman.model.documents import Edit, Span

_BEHIND = re.compile(r"[ \t]*<!--(?P<note>[^\r\n]*?)-->(?=[ \t]*[\r\n])")
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_BLANK_LINE = re.compile(r"(?>\r\n|\n|\r)[ \t]*(?=\r\n|\n|\r)")
_HEADER_END = re.compile(r"-[ \t]*(?>\r\n|\n|\r)[ \t]*(?=\r\n|\n|\r)")
"""A comment at the top that a blank line follows is about the file."""
_LINE_END = re.compile(r"\r\n|\n|\r")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|lt|gt|amp|quot|apos);")


@dataclass(frozen=True, slots=True)
class Entry:
    """One child of the root. `lead` is where what stands before it begins, `end` is behind its comment."""

    element: Element
    lead: int
    end: int
    note: str


def entries(text: str, root: Element) -> list[Entry]:
    """All children of the root, in file order."""
    found: list[Entry] = []
    behind = _BEHIND.match(text, root.inner.start)
    at = behind.end() if behind else root.inner.start
    for child in root.children:
        gap = text[at : child.whole.start]
        hidden = _COMMENT.sub(lambda match: "-" * len(match[0]), gap)
        blank = max((match.end() for match in _BLANK_LINE.finditer(hidden)), default=0)
        notes = _COMMENT.findall(gap, blank)
        lead = at if found else at + max((match.end() for match in _HEADER_END.finditer(hidden)), default=0)
        behind = _BEHIND.match(text, child.whole.end)
        if behind:
            notes.append(behind["note"])
        at = behind.end() if behind else child.whole.end
        note = "\n".join(" ".join(comment.split()) for comment in notes)
        found.append(Entry(child, lead, at, note))
    return found


def removal(entry: Entry, key: str) -> Edit:
    """The edit that takes an entry out."""
    return Edit(Span(entry.lead, entry.end), "", "removal", key)


def valued(element: Element, raw: str, key: str) -> Edit:
    """The edit that makes `raw` an element's content, also where it is written as one tag."""
    if element.closed:
        return Edit(Span(element.inner.start, element.whole.end), f">{raw}</{element.name}>", "value", key)
    return Edit(element.inner, raw, "value", key)


class Insertions:
    """New entries for a base, copied from its source."""

    def __init__(self, base: str, root: Element, source: str, source_root: Element) -> None:
        self._base, self._root, self._source = base, root, source
        self._standing = entries(base, root)
        self._newline = newline_of(base)
        self._offered = entries(source, source_root)
        self._from = _indent(source, self._offered)
        self._to = _indent(base, self._standing) if self._standing else self._from
        self._texts: list[tuple[int, str, str]] = []

    def places(self) -> Iterator[tuple[Entry, int]]:
        """Each entry of the source that the base lacks, with the end of the one that precedes it there."""
        twins = {_identity(entry.element): entry.end for entry in self._standing}
        inner = self._root.inner
        at = inner.start + len(self._base[inner.start : inner.end].rstrip())
        at = self._standing[0].lead if self._standing else at
        for entry in self._offered:
            end = twins.get(_identity(entry.element))
            at = at if end is None else end
            if end is None:
                yield entry, at

    def add(self, at: int, entry: Entry, parts: Iterable[Element], edits: Iterable[Edit], key: str) -> None:
        """Copy an entry of the source to `at`. `parts` are inner elements on lines of their own."""
        moved = [
            *(edit._replace(text=self._moved(edit.text)) if edit.kind == "plural" else edit for edit in edits)
        ]
        for gap in _gaps(entry, tuple(parts)):
            if not any(edit.span.start < gap.end and gap.start < edit.span.end for edit in moved):
                moved.append(Edit(gap, self._moved(self._source[gap.start : gap.end]), "insertion"))
        moved.sort(key=lambda edit: (edit.span.start, edit.span.end))
        shift = [
            Edit(Span(edit.span.start - entry.lead, edit.span.end - entry.lead), edit.text, edit.kind)
            for edit in moved
        ]
        copied = splice(self._source[entry.lead : entry.end], shift)
        self._texts.append((at, _LINE_END.sub(self._newline, copied), key))

    def edits(self) -> Iterator[Edit]:
        """All that was added, in the order in which it stands at one place."""
        if self._root.closed and self._texts:
            span = Span(self._root.inner.start, self._root.whole.end)
            inner = "".join(text for _, text, _ in self._texts)
            yield Edit(span, f">{inner}{self._newline}</{self._root.name}>", "insertion")
            return
        for at, text, key in self._texts:
            yield Edit(Span(at, at), text, "insertion", key)

    def _moved(self, text: str) -> str:
        """White space and comments between elements, as far in as the base's are."""
        return re.sub(rf"([\r\n]){re.escape(self._from)}", rf"\g<1>{self._to}", text)


class XmlSpelling:
    """How one file spells characters that it could also write plainly (`&gt;`, `&#160;`)."""

    def __init__(self, raws: Iterable[str], elsewhere: Iterable[str], newline: str) -> None:
        own = habits(raws, elsewhere, _ENTITY, unescaped)
        self._newline = newline
        self._table = {ord(char): form for char, form in own.items() if char != "\n"}
        self._table |= {ord("\r"): "&#13;", ord("\n"): newline}

    def raw(self, text: str) -> str:
        """A text as raw content."""
        escaped(text)  # refuses what XML cannot hold
        table = {ord("&"): "&amp;", ord("<"): "&lt;"} | self._table
        return text.translate(table).replace("]]>", "]]&gt;")

    def section(self, text: str) -> str:
        """A text as a CDATA section, which cannot hold a carriage return of its own."""
        escaped(text)
        return self.raw(text) if "\r" in text else cdata(text).replace("\n", self._newline)


def _identity(element: Element) -> tuple[str | None, ...]:
    return element.name, *map(element.attributes.get, ("name", "product"))


def _gaps(entry: Entry, parts: Sequence[Element]) -> Iterator[Span]:
    yield Span(entry.lead, entry.element.whole.start)
    at = entry.element.inner.start
    for part in parts:
        yield Span(at, part.whole.start)
        at = part.whole.end
    if parts:
        yield Span(at, entry.element.inner.end)


def _indent(text: str, found: Sequence[Entry]) -> str:
    """The white space before the first entry on its line."""
    if not found:
        return ""
    line = _LINE_END.split(text[: found[0].element.whole.start])[-1]
    return line if not line.strip(" \t") else ""
