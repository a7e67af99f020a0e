"""Java .properties: resource bundles, and files that are written like them.

Promises that only values change, that a new key stands where the source has it, with its comments, and that
escapes keep the file's habit: what is pure ASCII stays so (`\\u00e4`, as every Java reads it), and Latin-1
escapes what it lacks. Of a key that stands twice the last counts, as in Java. Where a message has an argument
(`{0}`), it is a `MessageFormat` and its apostrophe is `''` in the file, `'` in the block; a project whose
arguments are not of that kind shows it by single apostrophes. Plural choices (`{0,choice,…}`) are left whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from dragoman.content.lexers.properties_entries import Entry, Spelling, scan
from dragoman.content.lexers.properties_rereading import reread
from dragoman.content.spans import newline_of, splice
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Span, Syntax, Text, Writing

_ARGUMENT = re.compile(r"\{\s*\d+\s*[,}]")
_SYNTAXES: tuple[tuple[Syntax, re.Pattern[str]], ...] = (
    ("i18next", re.compile(r"\{\{[^{}]+\}\}")),
    ("icu", re.compile(r"\{\s*\w[\w.-]*\s*[,}]")),
    ("printf", re.compile(r"%(?:\d+\$)?[-+0#]*\d*(?:\.\d+)?[sdiufxS@](?!\w)")),
)
_KEPT = r"(?P<kept>'[{}<#](?:[^']|'')*+'|''(?=[{}<#]))"
_DOUBLED = re.compile(rf"{_KEPT}|''")
_SINGLE = re.compile(rf"{_KEPT}|'")
_NEWLINE = re.compile(r"\r\n|\n|\r")
_WIDE_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_WIDE = re.compile(rb"[\x80-\xff]")


class PropertiesCatalogue:
    """The format `properties`. `syntax` declares how placeholders are written; else each file shows it."""

    name = "properties"
    extensions: tuple[str, ...] = (".properties",)
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def __init__(self, syntax: Syntax | None = None) -> None:
        self._syntax = syntax

    def detect(self, path: str, head: str) -> bool:
        """By extension alone."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """Latin-1 where the file is no UTF-8; one that is mostly UTF-8 is a damaged one, to be refused."""
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            wide = len(_WIDE_UTF8.findall(data))
            return "iso-8859-1" if len(_WIDE.findall(_WIDE_UTF8.sub(b"", data))) > wide else None
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """The last entry of each key as a block, in file order."""
        entries = scan(text)
        standing = {entry.key: entry for entry in entries}
        syntax = self._syntax or _syntax_of([entry.text for entry in standing.values()])
        blocks = tuple(
            Block(
                key=_spelled(entry.key),
                text=(shown := _shown(entry.text)),
                spans=(Span(entry.value, entry.end),),
                syntax=syntax,
                note=entry.note,
                state="untranslated" if role == "target" and not shown.strip() else "",
            )
            for entry in entries
            if standing[entry.key] is entry
        )
        return Document(self.name, text, blocks, role, locale, extras={"entries": entries})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Replace values; then, in a target, insert the keys it lacks; else drop what has no translation."""
        values = {key: _plain(key, value) for key, value in translations.items()}
        writer = _Writer(base, source, values)
        blocks = {block.key: block for block in base.blocks}
        edits = [
            Edit(block.spans[0], writer.value(block, values[key]), "value", key)
            for key, block in blocks.items()
            if key in values and values[key] != block.text
        ]
        removed: tuple[str, ...] = ()
        lost: tuple[str, ...] = ()
        if base.role == "source":
            bare = {block.key for block in base.blocks if block.key not in values and _has_words(block.text)}
            edits += _removals(base, bare)
            removed = tuple(key for key in blocks if key in bare)
        else:
            edits += writer.insertions()
            known = {block.key for block in source.blocks}
            lost = tuple(key for key in blocks if key not in known)
        edits.sort(key=lambda edit: (edit.span.start, edit.span.end))
        return Writing(splice(base.text, edits), tuple(edits), lost, values, removed)

    def second_opinion(self, before: Document, after: Document) -> str:
        """A second reader must find the same keys and texts."""
        found = {_spelled(key): _shown(text) for key, text in reread(after.text)}
        for block in after.blocks:
            if found.pop(block.key, None) != block.text:
                return f"a second reader of properties finds another text at {block.key!r}"
        return (
            f"a second reader of properties finds {next(iter(found))!r}, which is no block" if found else ""
        )


class _Writer:
    """How values are spelled in one base, and what it lacks of its source."""

    def __init__(self, base: Document, source: Document, values: Mapping[str, str]) -> None:
        text = base.text if _entries(base) else source.text
        self._base, self._source, self._values = base, source, values
        self._spelling = Spelling(_raws(base), _raws(source), base.encoding, ascii_only=text.isascii())
        self._doubled = _doubles([entry.text for one in (base, source) for entry in _entries(one)])
        self._newline = newline_of(text)

    def value(self, block: Block, text: str) -> str:
        """A text as the raw value that takes the place of the block's in the base."""
        span = block.spans[0]
        return self._like(self._base.text[span.start : span.end], text)

    def _like(self, old: str, text: str) -> str:
        return self._spelling.like(old, _message(text) if self._doubled else text, self._newline)

    def insertions(self) -> Iterator[Edit]:
        """The keys that the base lacks, each behind the one that precedes it in the source."""
        standing = {_spelled(entry.key): entry for entry in _entries(self._base)}
        last = {_spelled(entry.key): entry for entry in _entries(self._source)}
        first = next(iter(_entries(self._base)), None)
        at = first.lead if first else len(self._base.text)
        for entry in _entries(self._source):
            key = _spelled(entry.key)
            if key in standing:
                at = standing[key].next
            elif key in self._values and last[key] is entry:
                yield Edit(Span(at, at), self._inserted(entry, at), "insertion", key)

    def _inserted(self, entry: Entry, at: int) -> str:
        text = self._source.text
        head = text[entry.lead : entry.value]
        if at == 0 or not self._base.text:
            head = head.lstrip("\r\n")
        head = _NEWLINE.sub(self._newline, head)
        value = self._like(text[entry.value : entry.end], self._values[_spelled(entry.key)])
        ended = at == 0 or self._base.text.endswith(("\n", "\r"), 0, at)
        return f"{head}{value}{self._newline}" if ended else f"{self._newline}{head}{value}"


def _removals(base: Document, bare: set[str]) -> Iterator[Edit]:
    """Edits that take entries out, with their comments and the blank lines before them."""
    for entry in _entries(base):
        if (key := _spelled(entry.key)) in bare:
            yield Edit(Span(entry.lead, entry.next), "", "removal", key)


def _syntax_of(texts: list[str]) -> Syntax:
    return next((name for name, pattern in _SYNTAXES if any(map(pattern.search, texts))), "none")


def _shown(message: str) -> str:
    """A message as its reader sees it: with an argument, `''` is an apostrophe. Quoted code stays quoted."""
    if "''" not in message or not _ARGUMENT.search(message):
        return message
    return _DOUBLED.sub(lambda match: match["kept"] or "'", message)


def _message(shown: str) -> str:
    """The other way."""
    return _SINGLE.sub(lambda match: match["kept"] or "''", shown) if _ARGUMENT.search(shown) else shown


def _doubles(messages: Iterable[str]) -> bool:
    """Whether a file's arguments are of `MessageFormat`: all but single apostrophes alone say so."""
    found = [message for message in messages if "'" in message and _ARGUMENT.search(message)]
    return not found or any("''" in message for message in found)


def _spelled(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _plain(key: str, value: Text) -> str:
    if isinstance(value, str):
        return value
    raise DragomanError(
        f"{key!r} is one text in properties, and its translation has plural forms", "verify_failed"
    )


def _has_words(text: str) -> bool:
    return any(map(str.isalpha, text))


def _raws(document: Document) -> Iterator[str]:
    return (document.text[entry.value : entry.end] for entry in _entries(document))


def _entries(document: Document) -> list[Entry]:
    return cast(list[Entry], document.extras["entries"])
