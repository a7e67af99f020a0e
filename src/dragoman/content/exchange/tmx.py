"""TMX, the exchange of translation memories: read in any version up to 1.4b, written as 1.4b.

Promises memory that does not grow with the file, and that what was written is read back as it was. Inline
elements are read by one rule: a code (`bpt`, `ept`, `ph`, `it`, `ut`) is the native code that it holds, as it
stood in the text that the memory was made from; one that holds nothing is its own tag, `<ph x="1"/>`; `hi` is
the text inside. Written, code is put into `bpt`, `ept` and `ph` again, by the unit's syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import BinaryIO, cast, get_args

from langcodes import Language
from lxml import etree

from dragoman.content import locales
from dragoman.content.exchange.xml_stream import (
    XML_LANG,
    children,
    elements,
    local,
    quoted,
    spelled,
    words,
)
from dragoman.content.tokens import tokens
from dragoman.kernel.errors import DocumentError, LocaleError
from dragoman.model.documents import Syntax

_CODES = ("bpt", "ept", "ph", "it", "ut")
_KEPT = ("i", "x", "pos", "type")
_SYNTAX = "x-dragoman-syntax"
_DATE = re.compile(r"(\d{8}T\d{6})Z")
_DATES = "%Y%m%dT%H%M%S"

CLOSING = b"  </body>\n</tmx>\n"
"""What stands behind the last unit."""


@dataclass(frozen=True, slots=True)
class TmxUnit:
    """One translation, with what its memory knew about it. Instants are aware of their zone."""

    source: str
    target: str
    source_locale: str
    target_locale: str
    id: str = ""
    syntax: Syntax = "none"
    created_at: datetime | None = None
    changed_at: datetime | None = None
    used_at: datetime | None = None
    uses: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)
    """Where it stands in the file that it was read from."""


def read_tmx(stream: BinaryIO, source_locale: str, target_locale: str) -> Iterator[TmxUnit]:
    """Every unit that has both locales, in file order; a unit with two translations comes twice.

    The nearest variant of a locale is taken: its own tag, one that means the same (`en`, `en-US`), or one
    without region for one with (`de`, `de-AT`); one region never speaks for another.
    Raises `LocaleError` at once, `DocumentError` with its line when a fault is come to.
    """
    wanted = locales.canonical(source_locale), locales.canonical(target_locale)
    return _read(stream, *wanted)


def write_tmx(stream: BinaryIO, units: Iterable[TmxUnit], source_locale: str, version: str = "1") -> int:
    """Write units one by one, and tell how many. `version` is that of the tool, for the header.

    Raises `DocumentError` for a text that XML cannot hold, naming its unit.
    """
    stream.write(opening(source_locale, version))
    count = 0
    for unit in units:
        stream.write(written(unit))
        count += 1
    stream.write(CLOSING)
    return count


def opening(source_locale: str, version: str = "1") -> bytes:
    """What stands before the first unit, for a caller that writes page by page."""
    header = (
        f'<header creationtool="Dragoman" creationtoolversion={quoted(version)} segtype="block" '
        f'o-tmf="Dragoman" adminlang="en" srclang={quoted(source_locale)} datatype="plaintext"/>'
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n  {header}\n  <body>\n'.encode()


def written(unit: TmxUnit) -> bytes:
    """One unit. Raises `DocumentError` for a text that XML cannot hold, naming the unit."""
    try:
        return _unit(unit).encode()
    except DocumentError as error:
        name = unit.id or unit.source[:60]
        raise DocumentError(f"the unit {name!r} cannot be written: {error.message}") from error


def _read(stream: BinaryIO, source_locale: str, target_locale: str) -> Iterator[TmxUnit]:
    for element in elements(stream, ("tmx",), "tu"):
        variants = [
            (variant.get(XML_LANG) or variant.get("lang") or "", variant)
            for variant in children(element, "tuv")
            if _segment(variant) is not None
        ]
        sources, targets = (_nearest(variants, locale) for locale in (source_locale, target_locale))
        for target in targets if sources else ():
            if target is not sources[0]:
                yield _read_unit(element, sources[0], target, source_locale, target_locale)


def _segment(variant: etree._Element) -> etree._Element | None:
    return next(children(variant, "seg"), None)


def _nearest(variants: list[tuple[str, etree._Element]], locale: str) -> list[etree._Element]:
    """The variants that are nearest to a locale, as long as they are near enough."""
    ranked = [(rank, variant) for said, variant in variants if (rank := _distance(said, locale)) is not None]
    best = min((rank for rank, _ in ranked), default=0)
    return [variant for rank, variant in ranked if rank == best]


@lru_cache(maxsize=1024)
def _distance(said: str, locale: str) -> int | None:
    try:
        tag = locales.canonical(said)
    except LocaleError:
        return None  # `*all*` and the like are no locale that anybody asks for
    if tag == locale:
        return 0
    if locales.equivalent(tag, locale):
        return 1
    regions = Language.get(tag).territory, Language.get(locale).territory
    return 2 if locales.same_language(tag, locale) and not all(regions) else None


def _read_unit(
    element: etree._Element,
    source: etree._Element,
    target: etree._Element,
    source_locale: str,
    target_locale: str,
) -> TmxUnit:
    properties = {
        prop.get("type", ""): words(prop) for holder in (element, target) for prop in children(holder, "prop")
    }
    syntax = properties.pop(_SYNTAX, "none")
    told = [dict(target.attrib), dict(element.attrib)]  # a variant knows its own dates better than its unit
    uses = next((value for at in told if (value := str(at.get("usagecount", ""))).isdecimal()), "0")
    return TmxUnit(
        _text(_segment(source)),
        _text(_segment(target)),
        source_locale,
        target_locale,
        id=element.get("tuid", ""),
        syntax=cast(Syntax, syntax if syntax in get_args(Syntax) else "none"),
        created_at=_instant(told, "creationdate"),
        changed_at=_instant(told, "changedate"),
        used_at=_instant(told, "lastusagedate"),
        uses=int(uses[:12]),
        properties=properties,
        notes=tuple(words(note) for holder in (element, target) for note in children(holder, "note")),
        line=element.sourceline or 0,
    )


def _instant(told: Iterable[Mapping[str, str]], name: str) -> datetime | None:
    for attributes in told:
        if match := _DATE.fullmatch(str(attributes.get(name, ""))):
            try:
                return datetime.strptime(match[1], _DATES).replace(tzinfo=UTC)
            except ValueError:
                continue
    return None


def _text(element: etree._Element | None) -> str:
    """A segment as text, its codes as the native code that they hold."""
    if element is None:
        return ""
    pieces = [element.text or ""]
    for child in element:
        name = local(child)
        if not name:
            raise DocumentError("an entity stands in a segment: write it out", child.sourceline or 0)
        inside = words(child) if name in _CODES else _text(child)
        if not inside and name in _CODES:
            said = "".join(f' {key}="{child.get(key)}"' for key in _KEPT if child.get(key))
            inside = f"<{name}{said}/>"
        pieces += (inside, child.tail or "")
    return "".join(pieces)


def _unit(unit: TmxUnit) -> str:
    dates = {
        "creationdate": unit.created_at,
        "changedate": unit.changed_at,
        "lastusagedate": unit.used_at,
    }
    said = f" tuid={quoted(unit.id)}" if unit.id else ""
    said += "".join(
        f' {name}="{instant.astimezone(UTC).strftime(_DATES)}Z"' for name, instant in dates.items() if instant
    )
    said += f' usagecount="{unit.uses}"' if unit.uses else ""
    properties = dict(unit.properties) | ({_SYNTAX: unit.syntax} if unit.syntax != "none" else {})
    codes: dict[str, int] = {}
    lines = [
        *(f"<note>{spelled(note)}</note>" for note in unit.notes),
        *(f"<prop type={quoted(name)}>{spelled(value)}</prop>" for name, value in properties.items()),
        *(
            f"<tuv xml:lang={quoted(locale)}><seg>{_segment_of(text, unit.syntax, codes)}</seg></tuv>"
            for locale, text in ((unit.source_locale, unit.source), (unit.target_locale, unit.target))
        ),
    ]
    inside = "".join(f"      {line}\n" for line in lines)
    return f"    <tu{said}>\n{inside}    </tu>\n"


def _segment_of(text: str, syntax: Syntax, codes: dict[str, int]) -> str:
    """A text with its code in elements; `x` says which code of one language is which of the other."""
    pieces: list[str] = []
    pairs = 0
    opened: dict[int, int] = {}
    for index, token in enumerate(tokens(text, syntax)):
        raw = spelled(token.raw)
        if token.kind == "text":
            pieces.append(raw)
        elif token.kind == "close":
            pieces.append(f'<ept i="{opened[token.mate]}">{raw}</ept>')
        else:
            number = codes.setdefault(token.raw, len(codes) + 1)
            if token.kind == "atom":
                pieces.append(f'<ph x="{number}">{raw}</ph>')
                continue
            pairs += 1
            opened[index] = pairs
            pieces.append(f'<bpt i="{pairs}" x="{number}">{raw}</bpt>')
    return "".join(pieces)
