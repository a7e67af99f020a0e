"""CSV seen as places: the cells of each row where they stand, as RFC 4180 has them, by any delimiter.

Promises that a cell's place holds its quotes and nothing else, that a cell written by `spelled` reads back as
it was given, and that what does not close or goes on behind its closing quote is refused by its line. A quote
inside a cell that does not begin with one is a character. Knows no columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dragoman.content.spans import line_at
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Span

DELIMITERS = (",", ";", "\t", "|")

_NEWLINE = re.compile(r"\r\n|\n|\r")
_SEPARATOR_LINE = re.compile(r"sep=.(?:\r\n|\n|\r)", re.IGNORECASE)
"""Excel's own first line."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; its place includes its quotes."""

    span: Span
    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One row that is not empty; `end` is where its line end begins."""

    cells: tuple[Cell, ...]
    end: int

    def text(self, index: int | None) -> str:
        """Of the cell in that column; empty where the row is shorter or there is no such column."""
        return self.cells[index].text if index is not None and index < len(self.cells) else ""


def scan(text: str, delimiter: str, rows: int | None = None) -> list[Row]:
    """All rows that are not empty, or the first ones. Raises `DocumentError` with the line of a quote."""
    plain = re.compile(rf"[^{re.escape(delimiter)}\r\n]*")
    found: list[Row] = []
    cells: list[Cell] = []
    at = start_of(text)
    while at < len(text) or cells:
        cell = _quoted(text, at) if text.startswith('"', at) else _plain(text, at, plain)
        cells.append(cell)
        at = cell.span.end
        if text.startswith(delimiter, at):
            at += 1
            if at < len(text):
                continue
            cells.append(Cell(Span(at, at), "", False))
        newline = _NEWLINE.match(text, at)
        if not newline and at < len(text):
            raise DocumentError("behind the closing quote of a cell comes the next cell", line_at(text, at))
        if len(cells) > 1 or cells[0].span.start < cells[0].span.end:
            found.append(Row(tuple(cells), at))
            if len(found) == rows:
                break
        cells = []
        at = newline.end() if newline else at
    return found


def start_of(text: str) -> int:
    """Where the first row begins: behind a line `sep=;`."""
    line = _SEPARATOR_LINE.match(text)
    return line.end() if line else 0


def spelled(text: str, delimiter: str, quoted: bool = False) -> str:
    """A text as a cell: in quotes where it must be, or where its place had them."""
    special = any(mark in text for mark in (delimiter, '"', "\r", "\n"))
    if quoted or special or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def _plain(text: str, at: int, pattern: re.Pattern[str]) -> Cell:
    match = pattern.match(text, at)
    end = match.end() if match else at
    return Cell(Span(at, end), text[at:end], quoted=False)


def _quoted(text: str, start: int) -> Cell:
    at = start + 1
    while (at := text.find('"', at)) >= 0:
        if not text.startswith('"', at + 1):
            return Cell(Span(start, at + 1), text[start + 1 : at].replace('""', '"'), quoted=True)
        at += 2
    raise DocumentError("the quote that opens this cell is never closed", line_at(text, start))
