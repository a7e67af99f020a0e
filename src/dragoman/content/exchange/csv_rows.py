"""CSV, as spreadsheets write and read it: one translation or one term a row, columns by their names.

Promises memory that does not grow with the file, and that what was written is read back as it was. Commas,
semicolons and tabs are told apart by the first row. A column may be named by what it holds (`source`,
`target`) or by its locale (`en`, `fr`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, get_args

from dragoman.content import locales
from dragoman.content.exchange.tmx import TmxUnit
from dragoman.kernel.errors import DocumentError, LocaleError
from dragoman.kernel.limits import FIELD_CHARS_MAX
from dragoman.model.documents import Syntax
from dragoman.model.memories import Term, TermStatus

PROPERTY = "x-dragoman-"
UNIT_COLUMNS = ("source", "target", "syntax", "context", "origin", "basis", "model", "prompt", "validator")
"""Behind the first three the properties of a unit, by what follows `PROPERTY`."""
TERM_COLUMNS = ("source", "target", "target_locale", "status", "case_sensitive", "note")

_SYNTAXES: Mapping[str, Syntax] = {name: name for name in get_args(Syntax)}
_STATUSES: Mapping[str, TermStatus] = {
    "": "preferred",
    "preferred": "preferred",
    "approved": "preferred",
    "admitted": "preferred",
    "forbidden": "forbidden",
    "deprecated": "forbidden",
    "kept": "kept",
    "do-not-translate": "kept",
}
_YES = frozenset({"1", "true", "yes", "y"})


def read_units(stream: BinaryIO, source_locale: str, target_locale: str) -> Iterator[TmxUnit]:
    """Every row that has both texts. Raises `DocumentError` with its line when a fault is come to."""
    for line, row in _rows(stream, {"source": source_locale, "target": target_locale}):
        if not row["source"] or not row["target"]:
            continue
        properties = {f"{PROPERTY}{name}": row[name] for name in UNIT_COLUMNS[3:] if row.get(name)}
        syntax = _SYNTAXES.get(row.get("syntax", ""), "none")
        yield TmxUnit(
            row["source"],
            row["target"],
            source_locale,
            target_locale,
            syntax=syntax,
            properties=properties,
            line=line,
        )


def unit_row(unit: TmxUnit) -> bytes:
    """One unit as a row."""
    properties = [unit.properties.get(f"{PROPERTY}{name}", "") for name in UNIT_COLUMNS[3:]]
    return row([unit.source, unit.target, unit.syntax, *properties])


def read_terms(stream: BinaryIO, source_locale: str, target_locale: str) -> Iterator[Term]:
    """Every row that has a term. Raises `DocumentError` with its line when a fault is come to."""
    for line, told in _rows(stream, {"source": source_locale, "target": target_locale}, needs=("source",)):
        status = _STATUSES.get(told.get("status", "").strip().lower())
        if status is None:
            known = ", ".join(name for name in _STATUSES if name)
            raise DocumentError(f"no status {told['status']!r}; known are {known}", line)
        source, target = told["source"].strip(), told.get("target", "").strip()
        if not source or (status != "kept" and not target):
            continue
        locale = target_locale if status != "kept" else ""
        yield Term(
            source,
            "" if status == "kept" else target,
            told.get("target_locale", "").strip() or locale,
            status,
            told.get("case_sensitive", "").strip().lower() in _YES,
            told.get("note", ""),
        )


def term_row(term: Term) -> bytes:
    """One term as a row."""
    case = "yes" if term.case_sensitive else ""
    return row([term.source, term.target, term.target_locale, term.status, case, term.note])


def row(cells: Sequence[str]) -> bytes:
    """Cells as one line of a file."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode()


def _rows(
    stream: BinaryIO, of_locales: Mapping[str, str], needs: Sequence[str] = ("source", "target")
) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and cells by name, of each row behind the first."""
    text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
    try:
        csv.field_size_limit(max(csv.field_size_limit(), 4 * FIELD_CHARS_MAX))
        head = text.readline()
        delimiter = max(",;\t", key=head.count)
        names = [_name(name, of_locales) for name in next(csv.reader([head], delimiter=delimiter), [])]
        lacking = [name for name in needs if name not in names]
        if lacking:
            wanted = of_locales.get(lacking[0], "")
            raise DocumentError(f"no column is named {lacking[0]!r} or {wanted!r}", 1)
        reader = csv.reader(text, delimiter=delimiter)
        for cells in reader:
            yield reader.line_num + 1, dict.fromkeys(names, "") | dict(zip(names, cells, strict=False))
    except UnicodeDecodeError as error:
        raise DocumentError("the file is not in UTF-8", 1) from error
    except csv.Error as error:
        raise DocumentError(f"this is no CSV: {error}", 1) from error
    finally:
        text.detach()


def _name(said: str, of_locales: Mapping[str, str]) -> str:
    """What a column holds: by its own name, or by that of a locale."""
    name = said.strip().lower().replace(" ", "_")
    for role, locale in of_locales.items():
        if name in (role, "term" if role == "source" else "translation"):
            return role
        try:
            if locales.canonical(said.strip()) == locale:
                return role
        except LocaleError:
            continue
    return name
