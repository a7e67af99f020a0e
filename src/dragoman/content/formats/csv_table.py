"""Tables of texts: CSV and TSV with a column a locale (`csv`), or with a source and a target (`csv-pairs`).

Promises that only the cells of one locale change, quoted where they were or must be, that a locale without
a column gets one at the end of each row, and that delimiter, line ends, order and other columns stay. What a
column is for is said by the header, without which no file is taken for a table of texts. A translation that
begins like a spreadsheet's formula (`= + - @`) is refused unless its source begins so. A row's key is that of
the key column, else its text in the first language.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from dragoman.content import locales
from dragoman.content.lexers.csv_cells import DELIMITERS, Row, scan, spelled, start_of
from dragoman.content.spans import line_at, newline_of, splice
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Span, Syntax, Text, Writing

_NAMES: Mapping[str, tuple[str, ...]] = {
    "key": ("key", "stringkey", "translationkey", "resourcekey", "messagekey", "msgid", "id", "identifier",
            "stringid", "resourceid", "messageid", "textid"),
    "source": ("source", "sourcetext", "sourcestring", "original", "originaltext"),
    "target": ("target", "targettext", "targetstring", "translation", "translated", "translatedtext"),
    "note": ("note", "notes", "comment", "comments", "description", "developercomment", "developernote",
             "developercomments", "translatorcomments"),
    "context": ("context", "ctx", "msgctxt"),
    "max_length": ("maxlength", "maxlen", "maxchars", "characterlimit", "charlimit", "limit"),
}  # fmt: skip
"""What a column is for → the names that say so, the best first; case, spaces, `_` and `-` count nothing."""
_WORDS = re.compile("am|as|be|do|go|he|hi|id|in|is|it|kg|km|lb|me|mg|ml|mr|ms|mt|my|no|or|so|st|to|us")
"""Codes of languages that head columns of other tables, too: alone they say nothing."""
_SQUEEZED = re.compile(r"[\s_-]+")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_ARGUMENT = re.compile(r"\{\s*\w[\w.-]*\s*[,}]")


class _Unit(NamedTuple):
    key: str
    row: Row


@dataclass(frozen=True, slots=True)
class _Table:
    """What a document remembers of its file."""

    delimiter: str
    header: Row
    rows: tuple[Row, ...]
    columns: Mapping[str, int]
    locales: Mapping[str, int]
    """Columns by their locale."""

    @property
    def languages(self) -> tuple[int, ...]:
        """All columns of texts, in file order."""
        others = (self.columns.get(name) for name in ("source", "target"))
        return tuple(sorted({*self.locales.values(), *(index for index in others if index is not None)}))

    @property
    def named_by(self) -> tuple[int, ...]:
        """The columns that a key is taken from: the first of them that has a text."""
        first = self.columns.get("source", self.languages[0])
        return (self.columns["key"], first) if "key" in self.columns else (first,)

    def name(self, index: int) -> str:
        """What a column is, so that it is found again in another file."""
        return _squeezed(self.header.text(index))

    def source_column(self, locale: str) -> int:
        """Where the source's texts stand."""
        if "source" in self.columns:
            return self.columns["source"]
        alike = [index for tag, index in self.locales.items() if locales.same_language(tag, locale)]
        column = self.locale_column(locale)
        if column is None and len(alike) != 1:
            known = ", ".join(self.locales)
            raise DocumentError(f"no column is in {locale}: the header has {known}", line=1)
        return alike[0] if column is None else column

    def target_column(self, locale: str, pairs: bool) -> int | None:
        """Where a locale's translations stand, or are to stand."""
        return self.columns.get("target") if pairs else self.locale_column(locale)

    def locale_column(self, locale: str) -> int | None:
        """The column of exactly this locale, else of one that means the same."""
        wanted = locales.spelled_locale(locale) or locale
        if wanted in self.locales:
            return self.locales[wanted]
        return next((index for tag, index in self.locales.items() if locales.equivalent(tag, locale)), None)

    def units(self) -> Iterator[_Unit]:
        """The rows that hold a text in any language, by unique keys."""
        seen: Counter[str] = Counter()
        for row in self.rows:
            name = next(filter(None, map(row.text, self.named_by)), "")
            if not name.strip() or not any(row.text(index).strip() for index in self.languages):
                continue
            key = name.replace("~", "~0").replace("/", "~1")
            seen[key] += 1
            yield _Unit(key if seen[key] == 1 else f"{key}/{seen[key]}", row)


class CsvTable:
    """The format `csv`, a column a locale; with `pairs` the format `csv-pairs`, a file a locale.

    `syntax` declares how placeholders are written; without it `{name}` anywhere in the texts says ICU.
    """

    extensions: tuple[str, ...] = (".csv", ".tsv")
    whole = False
    renames: Mapping[str, str] = {}

    def __init__(self, pairs: bool = False, syntax: Syntax | None = None) -> None:
        self.name = "csv-pairs" if pairs else "csv"
        self.shared = not pairs
        self._pairs = pairs
        self._syntax = syntax

    def detect(self, path: str, head: str) -> bool:
        """By extension and header: a table of other things is none of texts."""
        return path.lower().endswith(self.extensions) and _header(head, self._pairs) is not None

    def charset(self, data: bytes) -> str | None:
        """Nothing in such a file declares one: UTF-8, or UTF-16 with its mark."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """A block for each row with a text in the source's column; as target those of the locale's column."""
        table = _table(text, self._pairs)
        units = tuple(table.units())
        if role == "source":
            column: int | None = table.source_column(locale)
            units = tuple(unit for unit in units if unit.row.text(column).strip())
        else:
            column = table.target_column(locale, self._pairs)
        texts = [unit.row.text(index) for unit in units for index in table.languages]
        syntax = self._syntax or ("icu" if any(map(_ARGUMENT.search, texts)) else "none")
        blocks = tuple(_block(table, unit, column, role, syntax) for unit in units)
        return Document(self.name, text, blocks, role, locale, extras={"table": table, "units": units})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Fill the locale's cells; in a target also insert the rows that it lacks."""
        writer = _Writer(base, source, translations, locale, self._pairs)
        edits = sorted([*writer.cells(), *writer.rows()], key=lambda edit: (edit.span.start, edit.span.end))
        known = {block.key for block in source.blocks}
        lost = tuple(block.key for block in base.blocks if block.key not in known)
        return Writing(splice(base.text, edits), tuple(edits), lost, writer.written)

    def second_opinion(self, before: Document, after: Document) -> str:
        """The standard library must find our texts, and in every other column what was there."""
        table, locale = _of(after), after.locale
        target = table.target_column(locale, self._pairs)
        known = {unit.key for unit in _units(before)}
        try:
            old, new = _reread(before), _reread(after)
        except csv.Error as error:
            return f"csv cannot read the result: {error}"
        if len(new) != 1 + len(table.rows):
            return "csv finds another number of rows"
        rows = dict(zip((unit.row for unit in table.units()), after.blocks, strict=True))
        width = len(table.header.cells)
        kept = []
        for row, cells in zip((table.header, *table.rows), new, strict=True):
            cells += [""] * (width - len(cells))
            block = rows.get(row)
            if target is not None and block and cells[target] != block.text:
                return f"csv reads another text at {block.key!r}"
            if block is None or block.key in known:
                kept.append([cell for index, cell in enumerate(cells) if index != target and cell])
        others = _of(before).target_column(locale, self._pairs)
        if kept != [[cell for index, cell in enumerate(cells) if index != others and cell] for cells in old]:
            return "csv reads another text in a column of another language"
        return ""


def _block(table: _Table, unit: _Unit, column: int | None, role: Role, syntax: Syntax) -> Block:
    row, about = unit.row, table.columns
    inside = column is not None and column < len(row.cells)
    text = row.text(column)
    limit = row.text(about.get("max_length")).strip()
    return Block(
        key=unit.key,
        text=text,
        spans=(row.cells[column].span if column is not None and inside else Span(row.end, row.end),),
        syntax=syntax,
        note=row.text(about.get("note")),
        context=row.text(about.get("context")),
        max_length=int(limit) if limit.isascii() and limit.isdigit() and 0 < len(limit) < 7 else None,
        state="untranslated" if role == "target" and not text.strip() else "",
    )


class _Writer:
    """Collects the edits of one write."""

    def __init__(
        self,
        base: Document,
        source: Document,
        translations: Mapping[str, Text],
        locale: str,
        pairs: bool,
    ) -> None:
        self._base, self._source, self._locale, self._pairs = base, source, locale, pairs
        self._table = _of(base)
        self._texts = {block.key: block.text for block in source.blocks}
        self._values = {key: self._checked(key, value) for key, value in translations.items()}
        self._index = self._table.target_column(locale, pairs)
        if self._index is not None and self._index == self._source_column():
            raise DragomanError(f"the column of {locale} is the source's own", "verify_failed")
        self.written: dict[str, Text] = {}

    def _source_column(self) -> int | None:
        return (
            self._table.source_column(self._source.locale) if self._base.text == self._source.text else None
        )

    def _checked(self, key: str, value: Text) -> str:
        if not isinstance(value, str):
            raise DragomanError(f"{key!r} is one text, and its translation has plural forms", "verify_failed")
        if value.startswith(_FORMULA) and not self._texts.get(key, "").startswith(_FORMULA):
            raise DragomanError(
                f"the translation of {key!r} begins with {value[0]!r}: a spreadsheet would run it",
                "verify_failed",
            )
        return value

    def cells(self) -> Iterator[Edit]:
        """The locale's cells of all rows, and the new column where there is none."""
        units = {unit.row: unit.key for unit in self._table.units()}
        index, fresh = self._index, self._index is None
        if index is None:
            if not self._values:
                return
            self._index = index = len(self._table.header.cells)
            yield self._cell(self._table.header, index, self._column_name(), "")
        blank = self._pairs and self._base.role == "source"
        for row in self._table.rows:
            key = units.get(row, "")
            value = self._values.get(key, "" if blank and key else None)
            if value is not None:
                self.written[key] = value
            if fresh or (value is not None and value != row.text(index)):
                yield self._cell(row, index, value or "", key)

    def _cell(self, row: Row, index: int, value: str, key: str) -> Edit:
        delimiter = self._table.delimiter
        if index < len(row.cells):
            cell = row.cells[index]
            return Edit(cell.span, spelled(value, delimiter, cell.quoted), "value", key)
        lead = delimiter * (index - len(row.cells) + 1)
        return Edit(Span(row.end, row.end), lead + spelled(value, delimiter), "insertion", key)

    def _column_name(self) -> str:
        """As the header spells its other locales."""
        if self._pairs:
            return "target"
        names = "".join(self._table.header.text(index) for index in self._table.locales.values())
        return self._locale.replace("-", "_") if "_" in names and "-" not in names else self._locale

    def rows(self) -> Iterator[Edit]:
        """Rows that the target lacks, each behind the one that precedes it in the source."""
        standing = {unit.key: unit.row for unit in self._table.units()}
        end = self._table.header.end
        newline = newline_of(self._base.text)
        for unit in _units(self._source):
            if unit.key in standing:
                end = standing[unit.key].end
            elif unit.key in self._values:
                self.written[unit.key] = self._values[unit.key]
                yield Edit(Span(end, end), newline + self._copied(unit), "insertion", unit.key)

    def _copied(self, unit: _Unit) -> str:
        """A row of the source in the columns of the target."""
        theirs = _of(self._source)
        named = {theirs.name(index): cell.text for index, cell in enumerate(unit.row.cells)}
        width = max(len(self._table.header.cells), (self._index or 0) + 1)
        cells = [named.get(self._table.name(index), "") for index in range(width)]
        if self._index is not None:
            cells[self._index] = self._values[unit.key]
        return self._table.delimiter.join(spelled(cell, self._table.delimiter) for cell in cells)


def _table(text: str, pairs: bool) -> _Table:
    table = _header(text, pairs)
    if table is None:
        columns = "`source` and `key` or `target`" if pairs else "`key` and locales such as `en`"
        raise DocumentError(f"the first row is no header of a table of texts: it needs {columns}", line=1)
    _, *rows = scan(text, table.delimiter)
    width = len(table.header.cells)
    for row in rows:
        if any(cell.text.strip() for cell in row.cells[width:]):
            raise DocumentError(
                f"this row has {len(row.cells)} cells and the header {width}: a cell that holds "
                f"{table.delimiter!r} stands in quotes",
                line_at(text, row.cells[0].span.start),
            )
    return replace(table, rows=tuple(rows))


def _header(text: str, pairs: bool) -> _Table | None:
    """The header by the delimiter that shows most of its columns; None where it is of no such table."""
    found = [table for table in (_columns(text, mark) for mark in DELIMITERS) if table]
    fit = [table for table in found if _fits(table, pairs)]
    return max(fit, key=lambda table: len(table.columns) + len(table.locales), default=None)


def _fits(table: _Table, pairs: bool) -> bool:
    named = table.columns
    telling = any(not _WORDS.fullmatch(table.name(index)) for index in table.locales.values())
    if pairs:
        return "source" in named and not table.locales and ("key" in named or "target" in named)
    return telling and ("key" in named or "source" in named or len(table.locales) > 1)


def _columns(text: str, delimiter: str) -> _Table | None:
    try:
        header = next(iter(scan(text, delimiter, 1)), None)
    except DocumentError:
        return None
    if header is None:
        return None
    names = [_squeezed(cell.text) for cell in header.cells]
    columns = {
        purpose: names.index(chosen)
        for purpose, known in _NAMES.items()
        if (chosen := next((name for name in known if name in names), None))
    }
    tags: dict[str, int] = {}
    for index, cell in enumerate(header.cells):
        tag = locales.spelled_locale(cell.text.strip())
        # `id` is Indonesian only among other languages
        if tag and index not in columns.values() and tag not in tags and (tags or names[index] != "id"):
            tags[tag] = index
    return _Table(delimiter, header, (), columns, tags)


def _squeezed(name: str) -> str:
    return _SQUEEZED.sub("", name).lower()


def _reread(document: Document) -> list[list[str]]:
    text = document.text[start_of(document.text) :]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=_of(document).delimiter, strict=True)
    return [row for row in rows if row]


def _of(document: Document) -> _Table:
    return cast(_Table, document.extras["table"])


def _units(document: Document) -> tuple[_Unit, ...]:
    return cast(tuple[_Unit, ...], document.extras["units"])
