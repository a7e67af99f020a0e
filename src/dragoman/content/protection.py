"""Protection: what must survive a translation is taken out of the text, and put back afterwards.

Promises that `restore(protected, protected.text)` is the original text, byte for byte, and that a translation
whose markers are not exactly the source's is refused with the name of what it lost. An atom shows as `⟦2⟧`,
a pair as `⟦1⟧…⟦/1⟧`, a literal `⟦` as `⟦⟦`; whitespace at the ends stays outside. Entities that a translator
would rather read (`It&#39;s`) show as their character wherever that is unambiguous. Knows no format.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from dragoman.content.tokens import Token, is_plain, keeps_order, tokens
from dragoman.kernel.errors import CallerError
from dragoman.model.documents import Syntax

_LEGEND_CHARS_MAX = 120
_MARKER = re.compile(r"⟦⟦|⟦\s*(/?)\s*([0-9]{1,6})\s*⟧|⟦")


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Taken(NamedTuple):
    """What a marker stands for: an atom (`end` is empty) or the two halves of a pair."""

    start: str
    end: str = ""
    label: str = ""
    """The source's text inside `[text][]`, which is also what the link refers to."""
    bound: bool = False
    """Whether it must keep its order among the others that are bound."""


class Protected(NamedTuple):
    """A text as a translator sees it. `markers` is the legend: number → what stands there."""

    lead: str
    text: str
    tail: str
    syntax: Syntax = "none"
    taken: Mapping[str, Taken] = _NOTHING
    entities: Mapping[str, str] = _NOTHING
    """Characters shown in place of the entity that the source spells them with."""

    @property
    def markers(self) -> Mapping[str, str]:
        """Number → the code behind it, cut short where it is long; a link shows its address."""
        return {number: _legend(taken) for number, taken in self.taken.items()} if self.taken else _NOTHING


class MarkersBroken(CallerError):
    """A translation whose markers cannot be put back.

    `missing` and `added` are what the markers stand for, as the source spells it; `reason` is a sentence that
    can be shown to whoever translated.
    """

    code = "checks_failed"

    def __init__(self, missing: tuple[str, ...], added: tuple[str, ...], reason: str) -> None:
        self.missing = missing
        self.added = added
        self.reason = reason
        super().__init__(reason)


def protect(text: str, syntax: Syntax) -> Protected:
    """Take out of a text what must survive, by its declared syntax."""
    core = text.strip()
    start = text.index(core) if core else len(text)
    lead, tail = text[:start], text[start + len(core) :]
    if is_plain(core, syntax):
        return Protected(lead, core.replace("⟦", "⟦⟦"), tail, syntax, _NOTHING, _NOTHING)
    pieces = tokens(core, syntax)
    entities = _readable_entities(pieces)
    shown: list[str] = []
    taken: dict[str, Taken] = {}
    numbers: dict[int, str] = {}
    repeated: dict[str, str] = {}
    for index, token in enumerate(pieces):
        if token.kind == "text":
            shown.append(token.raw.replace("⟦", "⟦⟦"))
        elif token.family == "entity" and (character := html.unescape(token.raw)) in entities:
            shown.append(character)
        elif token.kind == "close":
            shown.append(f"⟦/{numbers[token.mate]}⟧")
        else:
            number = repeated.get(token.raw, "") if token.kind == "atom" else ""
            if not number:
                number = numbers[index] = str(len(taken) + 1)
                taken[number] = _taken(pieces, index, syntax)
                if token.kind == "atom" and not taken[number].bound:
                    repeated[token.raw] = number
            shown.append(f"⟦{number}⟧")
    return Protected(lead, "".join(shown), tail, syntax, taken, entities)


def restore(protected: Protected, translated: str) -> str:
    """Put back what `protect` took. Raises `MarkersBroken` where the markers are not the source's.

    Markers may change their order, as the target language needs it; arguments that only their position tells
    apart (`%s … %s`) may not.
    """
    if not protected.taken and not protected.entities and "⟦" not in translated:
        return protected.lead + translated.strip() + protected.tail
    answer = list(_read(translated.strip()))
    _compare(protected, list(_read(protected.text)), answer)
    out: list[str] = []
    opened: list[int] = []
    quoting = False
    for before, piece in zip(("", *answer), answer, strict=False):
        if isinstance(piece, str):
            follows = quoting and piece.startswith("'") and not piece.startswith("''")
            quoting = quoting and not follows
            out.append(_spelled(f"'{piece}" if follows else piece, protected.entities))
            continue
        taken = protected.taken[piece.number]
        if piece.closes:
            start = opened.pop()
            changed = taken.label and "".join(out[start:]) != taken.label
            out.append(f"][{' '.join(taken.label.split())}]" if changed else taken.end)
            continue
        if protected.syntax == "icu" and isinstance(before, str) and taken.start[:1] in ("{", "<", "#"):
            quoting = quoting or _quotes(before)
            out[-1:] = map(_unquoting, out[-1:])
        out.append(taken.start)
        if taken.end:
            opened.append(len(out))
    return protected.lead + "".join(out) + protected.tail


class _Marker(NamedTuple):
    number: str
    closes: bool

    def __str__(self) -> str:
        return f"⟦{'/' if self.closes else ''}{self.number}⟧"


def _read(text: str) -> Iterator[str | _Marker]:
    """Plain runs (undoubled) and markers, in order; never two runs in a row."""
    plain: list[str] = []
    at = 0
    for match in _MARKER.finditer(text):
        plain.append(text[at : match.start()])
        at = match.end()
        if match[2]:
            if run := "".join(plain):
                yield run
            plain = []
            yield _Marker(match[2], bool(match[1]))
        elif match[0] == "⟦⟦":
            plain.append("⟦")
        else:
            raise MarkersBroken((), ("⟦",), "A marker is cut: `⟦` must be followed by its number and `⟧`.")
    if run := "".join([*plain, text[at:]]):
        yield run


def _compare(protected: Protected, source: Sequence[str | _Marker], answer: Sequence[str | _Marker]) -> None:
    wanted = [piece for piece in source if isinstance(piece, _Marker)]
    found = [piece for piece in answer if isinstance(piece, _Marker)]
    if not wanted and not found:
        return
    lost, more = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    if lost or more:
        complaints = [
            f"{what}: {', '.join(_called(protected, marker) for marker in markers.elements())}"
            for what, markers in (("missing", lost), ("too many", more))
            if markers
        ]
        raise MarkersBroken(
            tuple(_raw(protected, marker) for marker in lost.elements()),
            tuple(_raw(protected, marker) for marker in more.elements()),
            f"The markers are not those of the source; {'; '.join(complaints)}.",
        )
    stack: list[str] = []
    for marker in found:
        if marker.closes:
            if not stack or stack.pop() != marker.number:
                raise MarkersBroken((), (), f"{marker} closes what is not open: pairs must be nested.")
        elif protected.taken[marker.number].end:
            stack.append(marker.number)
    bound = [marker for marker in wanted if protected.taken[marker.number].bound]
    if bound != [marker for marker in found if protected.taken[marker.number].bound]:
        order = " ".join(map(str, bound))
        raise MarkersBroken((), (), f"Arguments without numbers must stay in their order: {order}.")


def _raw(protected: Protected, marker: _Marker) -> str:
    """What a marker stands for; itself where the source has no such marker."""
    taken = protected.taken.get(marker.number)
    raw = (taken.end if marker.closes else taken.start) if taken else ""
    return raw or str(marker)


def _called(protected: Protected, marker: _Marker) -> str:
    """How a complaint calls a marker: `⟦2⟧ (%s)`."""
    raw = _raw(protected, marker)
    return str(marker) if raw == str(marker) else f"{marker} ({raw[:_LEGEND_CHARS_MAX]})"


def _taken(pieces: Sequence[Token], index: int, syntax: Syntax) -> Taken:
    token = pieces[index]
    if token.kind == "atom":
        return Taken(token.raw, bound=keeps_order(token, syntax))
    mate = pieces[token.mate]
    label = "".join(piece.raw for piece in pieces[index + 1 : token.mate]) if mate.raw == "][]" else ""
    return Taken(token.raw, mate.raw, label, keeps_order(token, syntax) or keeps_order(mate, syntax))


def _legend(taken: Taken) -> str:
    whole = f"{taken.start}…{taken.end}" if taken.end.startswith("]") else taken.start
    return whole if len(whole) <= _LEGEND_CHARS_MAX else whole[: _LEGEND_CHARS_MAX - 1] + "…"


def _readable_entities(pieces: Sequence[Token]) -> dict[str, str]:
    """Character → entity, for each printable character that the text spells in one way only."""
    plain = {character for token in pieces if token.kind == "text" for character in token.raw}
    spelled: dict[str, set[str]] = {}
    for token in pieces:
        if token.family == "entity":
            spelled.setdefault(html.unescape(token.raw), set()).add(token.raw)
    return {
        character: next(iter(entities))
        for character, entities in spelled.items()
        if len(character) == 1 and len(entities) == 1 and character not in plain and _is_readable(character)
    }


def _is_readable(character: str) -> bool:
    return character not in "<>⟦⟧" and unicodedata.category(character)[0] in "LNPS"


def _spelled(plain: str, entities: Mapping[str, str]) -> str:
    return "".join(entities.get(character, character) for character in plain) if entities else plain


def _unquoting(plain: str) -> str:
    """An apostrophe right before an argument would quote it (ICU): doubled, it is an apostrophe.

    So is its partner right behind the argument: `''{name}''`.
    """
    return plain + "'" if _quotes(plain) else plain


def _quotes(plain: str) -> bool:
    """Whether a lone apostrophe stands at the end."""
    return (len(plain) - len(plain.rstrip("'"))) % 2 == 1
