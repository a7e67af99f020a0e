"""`dragoman.lock`: what each translation was made from, one line a document and locale; pure.

A line is `document <TAB> locale <TAB> digest`, a fourth column where texts stand that are not ours, and a
fifth where a person changed some of ours. The digest covers the document's units: key, source text, and text
at the target, each as a hash, but for what a person changed: that text is theirs to change again. Lines are
sorted, so that two branches that translate different documents change different places. A line that a merge
left twice is no harm: whichever fits the files is true. It holds no text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dragoman.content.selection import text_hash
from dragoman.kernel.errors import CallerError
from dragoman.kernel.identity import key_hash
from dragoman.model.documents import Block, Document, Text
from dragoman.model.intents import Origin

NAME = "dragoman.lock"
_HEAD = (
    "# What each translation was made from. Written by dragoman; in a merge conflict either side will do.\n"
)
_CONFLICT = re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?: |$)")
_MARKS = r"\t(\*|[0-9a-f]+)"
_LINE = re.compile(rf"([^\t]+)\t([A-Za-z0-9-]+)\t([0-9a-f]{{64}})(?:{_MARKS}(?:{_MARKS})?)?")
_ODD = re.compile(r"[%#\x00-\x1f\x7f\x85\u2028\u2029]")
_ALL = "*"

Pair = tuple[str, str]
"""Document and locale."""


class LockedUnit(NamedTuple):
    """One field of a translation. `written_hash` is of what stands there; a person's text has none."""

    source_hash: str
    written_hash: str
    origin: Origin


class Line(NamedTuple):
    """What is locked of one pair.

    `theirs` has a bit for each unit in the order of keys, as hexadecimal, set where the text is not ours;
    `edited` likewise, set where it is not ours because a person changed it.
    """

    digest: str
    theirs: str = ""
    edited: str = ""


def read(text: str) -> dict[Pair, tuple[Line, ...]]:
    """The lines by pair. Raises `CallerError` with the line's number where a merge is unfinished."""
    found: dict[Pair, tuple[Line, ...]] = {}
    for number, written in enumerate(text.splitlines(), 1):
        if not written or written.startswith("#"):
            continue
        if _CONFLICT.match(written):
            said = f"{NAME}:{number} has the marks of a merge: keep either side, or both without the marks"
            raise CallerError(said, place=f"{NAME}:{number}")
        match = _LINE.fullmatch(written)
        if match is None:
            raise CallerError(f"{NAME}:{number} is no line of ours", place=f"{NAME}:{number}")
        pair = (_unspelled(match[1]), match[2])
        found[pair] = (*found.get(pair, ()), Line(match[3], match[4] or "", match[5] or ""))
    return found


def printed(lines: Mapping[Pair, Iterable[Line]]) -> str:
    """The whole file, sorted."""
    told = [
        "\t".join((_spelled(document), locale, *filter(None, line)))
        for (document, locale), several in sorted(lines.items())
        for line in several
    ]
    return _HEAD + "".join(f"{line}\n" for line in told)


def line_of(units: Mapping[str, LockedUnit]) -> Line:
    """The line of a pair from its units, by the hash of their key."""
    order = sorted(units)
    theirs = "".join("0" if units[key].origin == "ours" else "1" for key in order)
    edited = "".join("1" if units[key].origin == "person" else "0" for key in order)
    return Line(_digest(units), _bits(theirs), _bits(edited))


def matching(
    lines: Iterable[Line], source: Document, target: Document, whole: bool
) -> dict[str, LockedUnit] | None:
    """The units of a pair where one of its lines fits the files as they stand; else None."""
    for line in lines:
        units = _standing(line, source, target, whole)
        if units and _digest(units) == line.digest:
            return units
    return None


def wanted_keys(source: Document) -> frozenset[str]:
    """Hashes of the keys that a finished translation has."""
    return frozenset(key_hash(block.key) for block in source.blocks if _is_wanted(block))


def _standing(line: Line, source: Document, target: Document, whole: bool) -> dict[str, LockedUnit]:
    """The units as the files have them.

    On record is no text that a person changed, and of a whole document none that was met there.
    """
    there = {block.key: block.value for block in target.blocks}
    pairs = {
        key_hash(block.key): (text_hash(block.value), text_hash(there[block.key]))
        for block in source.blocks
        if _is_wanted(block) and _has_text(there.get(block.key, ""))
    }
    marks = zip(_marks(line.theirs, len(pairs)), _marks(line.edited, len(pairs)), strict=True)
    units: dict[str, LockedUnit] = {}
    for key, (is_theirs, is_edited) in zip(sorted(pairs), marks, strict=True):
        source_hash, written = pairs[key]
        if is_edited == "1":
            units[key] = LockedUnit(source_hash, "", "person")
        elif is_theirs == "1":
            units[key] = LockedUnit(source_hash, "" if whole else written, "imported")
        else:
            units[key] = LockedUnit(source_hash, written, "ours")
    return units


def _digest(units: Mapping[str, LockedUnit]) -> str:
    return key_hash(*(part for key in sorted(units) for part in (key, *units[key][:2])))


def _bits(marks: str) -> str:
    if "1" not in marks:
        return ""
    return f"{int(marks, 2):x}" if "0" in marks else _ALL


def _marks(theirs: str, units: int) -> str:
    """One mark a unit, 1 for theirs; as many as asked, also where the line is of another number of units."""
    if theirs == _ALL:
        return "1" * units
    return f"{int(theirs or '0', 16):0{units}b}"[-units:] if units else ""


def _is_wanted(block: Block) -> bool:
    return block.state != "obsolete" and _has_text(block.value)


def _has_text(value: Text) -> bool:
    return bool(value.strip()) if isinstance(value, str) else any(form.strip() for form in value.values())


def _spelled(name: str) -> str:
    """A document's name on a line: what would end it early is escaped."""
    return _ODD.sub(lambda odd: "".join(f"%{byte:02X}" for byte in odd[0].encode()), name)


def _unspelled(name: str) -> str:
    parts: Sequence[str] = re.split(r"((?:%[0-9A-F]{2})+)", name)
    return "".join(
        bytes.fromhex(part.replace("%", "")).decode("utf-8", "replace") if part.startswith("%") else part
        for part in parts
    )
