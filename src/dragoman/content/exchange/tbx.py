"""TBX, the exchange of terms: version 2 (`martif`) and 3 (`tbx`, both styles) read, TBX-Basic 3 written.

Promises memory that does not grow with the file, and that what was written is read back as it was. A category
is one thing, whether it is an element (`<min:partOfSpeech>`) or a type (`<termNote type="partOfSpeech">`).
TBX-Basic has no status for a term that must not be used at all: it is written as deprecated, with a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

from lxml import etree

from dragoman.content import locales
from dragoman.content.exchange.xml_stream import XML_LANG, children, elements, local, quoted, spelled, words
from dragoman.kernel.errors import DocumentError, LocaleError

Status = Literal["", "preferred", "admitted", "deprecated", "forbidden"]
Style = Literal["dct", "dca"]

_STATUSES: Mapping[str, Status] = {
    "preferred": "preferred",
    "preferredterm": "preferred",
    "admitted": "admitted",
    "admittedterm": "admitted",
    "standardizedterm": "preferred",
    "legalterm": "preferred",
    "regulatedterm": "preferred",
    "deprecated": "deprecated",
    "deprecatedterm": "deprecated",
    "superseded": "deprecated",
    "supersededterm": "deprecated",
    "obsolete": "deprecated",
    "forbidden": "forbidden",
    "prohibited": "forbidden",
}
_SPELLED: Mapping[Status, str] = {
    "preferred": "preferredTerm-admn-sts",
    "admitted": "admittedTerm-admn-sts",
    "deprecated": "deprecatedTerm-admn-sts",
    "forbidden": "deprecatedTerm-admn-sts",
}
_FORBIDDEN = "forbidden"
_TYPED = ("descrip", "termNote", "admin", "ref", "xref")
_SECTIONS = ("langSet", "langSec", "tig", "ntig", "termSec")
_CARRIERS: Mapping[str, tuple[str, str]] = {
    "subjectField": ("min", "descrip"),
    "definition": ("basic", "descrip"),
    "context": ("basic", "descrip"),
    "partOfSpeech": ("min", "termNote"),
    "administrativeStatus": ("min", "termNote"),
}
"""Category → the module that its element is of in style `dct`, the element that carries its type in `dca`."""
_NAMESPACES = (
    'xmlns="urn:iso:std:iso:30042:ed-2" xmlns:min="http://www.tbxinfo.net/ns/min" '
    'xmlns:basic="http://www.tbxinfo.net/ns/basic"'
)


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a concept. `definition` is the one given in its language, if there is any."""

    text: str
    locale: str
    status: Status = ""
    part_of_speech: str = ""
    definition: str = ""
    context: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Concept:
    """What terms of several languages stand for."""

    id: str
    terms: tuple[Term, ...]
    definition: str = ""
    subject: str = ""
    line: int = field(default=0, compare=False)


def read_tbx(stream: BinaryIO) -> Iterator[Concept]:
    """Every concept, in file order. Raises `DocumentError` with its line when a fault is come to."""
    for entry in elements(stream, ("martif", "tbx"), "termEntry", "conceptEntry"):
        told = _categories(entry)
        terms = tuple(term for section in children(entry, "langSet", "langSec") for term in _terms(section))
        yield Concept(
            entry.get("id", ""),
            terms,
            told.get("definition", ""),
            told.get("subjectField", ""),
            entry.sourceline or 0,
        )


def write_tbx(
    stream: BinaryIO, concepts: Iterable[Concept], locale: str = "en", style: Style = "dct", about: str = ""
) -> int:
    """Write concepts one by one as TBX-Basic of version 3, and tell how many. `locale` is the file's own.

    Raises `DocumentError` for a text that XML cannot hold, naming its concept.
    """
    source = spelled(about or "Written by Dragoman")
    stream.write(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<tbx type="TBX-Basic" style="{style}" '
        f"xml:lang={quoted(locale)} {_NAMESPACES}>\n  <tbxHeader><fileDesc><sourceDesc><p>{source}</p>"
        f"</sourceDesc></fileDesc></tbxHeader>\n  <text><body>\n".encode()
    )
    count = 0
    for concept in concepts:
        count += 1
        try:
            stream.write("\n".join(_entry(concept, count, style)).encode() + b"\n")
        except DocumentError as error:
            name = concept.id or count
            raise DocumentError(f"the concept {name!r} cannot be written: {error.message}") from error
    stream.write(b"  </body></text>\n</tbx>\n")
    return count


def _categories(element: etree._Element) -> dict[str, str]:
    """What is said of an element itself, not of sections inside: the first value of each category."""
    found: dict[str, str] = {}
    for child in element:
        name = local(child)
        if not name or name in _SECTIONS:
            continue
        if name in ("descripGrp", "adminGrp", "termNoteGrp", "termGrp"):
            inner = _categories(child)
        else:
            inner = {child.get("type", "") if name in _TYPED else name: words(child).strip()}
        found = inner | found
    return found


def _terms(section: etree._Element) -> Iterator[Term]:
    said = section.get(XML_LANG) or section.get("lang") or ""
    try:
        locale = locales.canonical(said)
    except LocaleError as error:
        raise DocumentError(f"{said!r} is no locale: write it like `de`", section.sourceline or 0) from error
    definition = _categories(section).get("definition", "")
    for holder in children(section, "tig", "ntig", "termSec"):
        told = _categories(holder)
        text = told.get("term", "")
        if not text:
            raise DocumentError("a term is wanted here, and there is none", holder.sourceline or 0)
        status = _status(told.get("administrativeStatus") or told.get("normativeAuthorization", ""))
        note = told.get("note", "")
        if status == "deprecated" and note.partition("\n")[0] == _FORBIDDEN:
            status, note = "forbidden", note.partition("\n")[2]
        yield Term(
            text,
            locale,
            status,
            told.get("partOfSpeech", ""),
            told.get("definition", definition),
            told.get("context", ""),
            note,
        )


def _status(said: str) -> Status:
    return _STATUSES.get(said.strip().lower().removesuffix("-admn-sts"), "")


def _entry(concept: Concept, number: int, style: Style) -> Iterator[str]:
    yield f"    <conceptEntry id={quoted(concept.id or f'c{number}')}>"
    yield from _said("      ", style, subjectField=concept.subject, definition=concept.definition)
    for locale in dict.fromkeys(term.locale for term in concept.terms):
        yield f"      <langSec xml:lang={quoted(locale)}>"
        for term in concept.terms:
            if term.locale == locale:
                yield from _section(term, style)
        yield "      </langSec>"
    yield "    </conceptEntry>"


def _section(term: Term, style: Style) -> Iterator[str]:
    marks = (_FORBIDDEN if term.status == "forbidden" else "", term.note)
    note = "\n".join(filter(None, marks))
    yield f"        <termSec><term>{spelled(term.text)}</term>"
    yield from _said(
        "          ",
        style,
        partOfSpeech=term.part_of_speech,
        administrativeStatus=_SPELLED.get(term.status, ""),
        definition=term.definition,
        context=term.context,
    )
    if note:
        yield f"          <note>{spelled(note)}</note>"
    yield "        </termSec>"


def _said(indent: str, style: Style, **categories: str) -> Iterator[str]:
    """What is said of a concept or a term, in one style or the other."""
    for name, value in categories.items():
        if value:
            module, carrier = _CARRIERS[name]
            if style == "dct":
                yield f"{indent}<{module}:{name}>{spelled(value)}</{module}:{name}>"
            else:
                yield f'{indent}<{carrier} type="{name}">{spelled(value)}</{carrier}>'
