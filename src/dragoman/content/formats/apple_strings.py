"""Apple's .strings (Localizable, InfoPlist): one `key = value;` a string, with comments for translators.

Promises that comments, blank lines and quotes stay, that a comment on the line of an entry belongs to that
entry, and that a new entry comes with its comments to where the source has it. A key is the file's, `~1` for
a slash and `~0` for a tilde inside it. Files in XML or binary are not read.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from typing import cast

from dragoman.content.lexers.strings_entries import Entry, escaped, scan, spells_ascii
from dragoman.content.lexers.strings_rereading import reread
from dragoman.content.spans import newline_of, splice
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Span, Text, Writing

_BLANK = re.compile(r"[ \t]*[\r\n]")
_LINE_END = re.compile(r"\r\n?|\n")


class AppleStrings:
    """The format `strings`."""

    name = "strings"
    extensions: tuple[str, ...] = (".strings",)
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """By extension alone, so that a broken file is refused by its line."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """UTF-8, or UTF-16 with its mark."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Every entry as a block, in file order."""
        entries = scan(text)
        blocks = tuple(
            Block(
                key=_key(entry),
                text=entry.text,
                spans=(_inner(entry, text),),
                syntax="printf",
                note="\n".join(entry.notes),
                state="untranslated" if role == "target" and not entry.text.strip() else "",
            )
            for entry in entries
        )
        return Document(self.name, text, blocks, role, locale, extras={"entries": entries})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Replace values; then, in a target, insert the entries that it lacks; else drop what has none."""
        values = {key: _plain(key, value) for key, value in translations.items()}
        ascii_only = spells_ascii(base.text)
        standing = {_key(entry): entry for entry in _entries(base)}
        edits = [
            Edit(entry.value, _spelled(entry, base.text, values[key], ascii_only), "value", key)
            for key, entry in standing.items()
            if key in values and values[key] != entry.text
        ]
        written = dict(values)
        removed: list[str] = []
        if base.role == "source":
            bare = {block.key for block in base.blocks if block.key not in values and _has_words(block.text)}
            edits += _removals(base, bare)
            removed += [block.key for block in base.blocks if block.key in bare]
        else:
            edits += _insertions(base, source, values, ascii_only)
        edits.sort(key=lambda edit: (edit.span.start, edit.span.end))
        known = {block.key for block in source.blocks}
        lost = tuple(key for key in standing if key not in known)
        return Writing(splice(base.text, edits), tuple(edits), lost, written, tuple(removed))

    def second_opinion(self, before: Document, after: Document) -> str:
        """A simpler reader must find the same keys and texts."""
        found = reread(after.text)
        expected = {entry.key: entry.text for entry in _entries(after)}
        if found != expected:
            key = next(key for key in {**found, **expected} if found.get(key) != expected.get(key))
            return f"a second reader of .strings finds another text at {key!r}"
        return ""


def _removals(base: Document, bare: Collection[str]) -> Iterator[Edit]:
    """Take entries out with their own comments; sections keep their headings, and one blank line between."""
    entries = _entries(base)
    following: Entry | None = None
    run: list[Entry] = []
    for entry in (*reversed(entries), None):
        if entry is not None and _key(entry) in bare:
            run.append(entry)
            continue
        for gone in run:
            heading = base.text[gone.start : gone.core]
            parts = gone is run[-1] and following is not None and not _begins_blank(base.text, following)
            start = gone.core if heading.strip() or parts else gone.start
            yield Edit(Span(start, gone.end), "", "removal", _key(gone))
        following, run = entry, []


def _insertions(
    base: Document, source: Document, values: Mapping[str, str], ascii_only: bool
) -> Iterator[Edit]:
    """The entries that a target lacks, each behind the one that precedes it in the source.

    A heading (what stands above an entry and is not its own) which the target has too is not repeated: the
    entry goes below it.
    """
    entries, text, newline = _entries(base), base.text, newline_of(base.text)
    standing = {_key(entry): entry for entry in entries}
    starts = [entry.start for entry in entries]
    parted = _parted(source, standing, values)
    low, top = 0, _top(source, base, newline)
    for entry in _entries(source):
        key = _key(entry)
        if key in standing:
            low = standing[key].end
        elif key in values:
            following = bisect_left(starts, low)
            edge = _edge(text, entries[following]) if following < len(entries) else len(text)
            heading = _lines(source.text[entry.start : entry.core], newline)
            found = text.find(heading, low, edge) if heading.strip() else -1
            if heading.isspace() and key not in parted and text.startswith(heading, low):
                found = low
            if found >= 0:
                low = found + len(heading)
            at = low or top
            if found >= 0 or entry.start == 0:
                heading = ""
            core = _lines(_block(entry, source.text, values[key], ascii_only), newline)
            yield Edit(Span(at, at), _whole_lines(heading + core, text, at, newline), "insertion", key)


def _edge(text: str, entry: Entry) -> int:
    """Where something new may go at the latest before an entry: below its heading, above blank lines."""
    return entry.core if text[entry.start : entry.core].strip() else entry.start


def _top(source: Document, base: Document, newline: str) -> int:
    """Where an entry goes that comes before all of the target's: below its header, above the next heading."""
    entries, text = _entries(base), base.text
    edge = _edge(text, entries[0]) if entries else len(text)
    headings = [_lines(source.text[entry.start : entry.core], newline) for entry in _entries(source)[1:]]
    places = [text.find(heading, 0, edge) for heading in headings if heading.strip()]
    return min([edge, *(place for place in places if place >= 0)])


def _parted(source: Document, standing: Collection[str], wanted: Collection[str]) -> set[str]:
    """The keys that need a blank line of their own above them: the target has none for them."""
    found: set[str] = set()
    below = True
    for entry in reversed(_entries(source)):
        key = _key(entry)
        if key in standing:
            below = _begins_blank(source.text, entry)
        elif key in wanted:
            if below:
                found.add(key)
            below = below or _begins_blank(source.text, entry)
    return found


def _begins_blank(text: str, entry: Entry) -> bool:
    return _BLANK.match(text, entry.start, entry.core) is not None


def _whole_lines(inserted: str, text: str, at: int, newline: str) -> str:
    """What is inserted, with a line end behind it; before it where the file's last line has none."""
    bare = inserted.removesuffix(newline)
    ended = at == 0 or text.endswith(("\n", "\r"), 0, at)
    return bare + newline if ended else newline + bare


def _block(entry: Entry, text: str, value: str, ascii_only: bool) -> str:
    """A source's entry with its own comments and another value."""
    before, behind = text[entry.core : entry.value.start], text[entry.value.end : entry.end]
    return f"{before}{_spelled(entry, text, value, ascii_only)}{behind}"


def _spelled(entry: Entry, text: str, value: str, ascii_only: bool) -> str:
    """A value in the quotes of the one that it replaces."""
    quote = "'" if text.startswith("'", entry.value.start) else '"'
    spelled = f"{quote}{escaped(value, quote, ascii_only)}{quote}"
    return spelled if entry.value.start < entry.value.end else f" = {spelled}"


def _inner(entry: Entry, text: str) -> Span:
    quoted = text.startswith(("'", '"'), entry.value.start) and entry.value.start < entry.value.end
    return Span(entry.value.start + quoted, entry.value.end - quoted)


def _lines(text: str, newline: str) -> str:
    return _LINE_END.sub(lambda _: newline, text)


def _key(entry: Entry) -> str:
    return entry.key.replace("~", "~0").replace("/", "~1")


def _has_words(text: str) -> bool:
    return any(map(str.isalpha, text))


def _plain(key: str, value: Text) -> str:
    if isinstance(value, str):
        return value
    raise DragomanError(
        f"{key!r} is one text in .strings, and its translation has plural forms", "verify_failed"
    )


def _entries(document: Document) -> tuple[Entry, ...]:
    return cast(tuple[Entry, ...], document.extras["entries"])
