"""Markers as tags, for engines that keep tags and know no markers. Shared ground, no member of the room.

    ⟦1⟧…⟦/1⟧   properly nested   <w1>…</w1>        ⟦⟦   a literal bracket   ⟦
    ⟦1⟧        standing alone    <x1/>             a sign that would be taken for markup, or that no XML
    ⟦/1⟧       standing alone    <y1/>             can hold                 <c38/>

Names without attributes and spaces survive every splitter. Promises that what `to_tags` made comes back from
`from_tags` as it was. Not known: where an engine puts a tag; the checks of the texts judge that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from xml.sax.saxutils import escape

_TOKEN = re.compile(
    r"⟦⟦|⟦(?P<closes>/?)(?P<number>\d+)⟧|(?P<sign>[\0-\x08\x0b\x0c\x0d\x0e-\x1f\x7f\ufffe\uffff&<>])"
)
_TAG = re.compile(r"<(?P<closes>/?)(?P<kind>[wxyc])(?P<number>\d{1,7})\s*(?P<empty>/?)>", re.IGNORECASE)
_XML_SIGNS = "&<>"
_CODE_POINTS = 0x110000


def has_markers(text: str) -> bool:
    """Whether a prompt's text holds what must travel as a tag."""
    return "⟦" in text


def to_tags(text: str, *, xml: bool) -> str:
    """A prompt's text with tags for its markers.

    With `xml`, signs of markup are escaped; else they become tags of their own, for engines that escape and
    unescape as they like.
    """
    tokens = list(_TOKEN.finditer(text))
    paired = _paired(tokens)
    written, at = [], 0
    for place, token in enumerate(tokens):
        written += [text[at : token.start()], _tag(token, place in paired, xml)]
        at = token.end()
    return "".join(written) + text[at:]


def from_tags(text: str, *, xml: bool) -> str:
    """An engine's text with markers for our tags; tags of nobody stay as they are."""
    return "".join(_read(text, xml))


def _read(text: str, xml: bool) -> Iterator[str]:
    at = 0
    for tag in _TAG.finditer(text):
        yield _plain(text[at : tag.start()], xml)
        yield _marker(tag)
        at = tag.end()
    yield _plain(text[at:], xml)


def _plain(text: str, xml: bool) -> str:
    return (unescape(text) if xml else text).replace("⟦", "⟦⟦")


def _marker(tag: re.Match[str]) -> str:
    kind, number, closes = tag["kind"].lower(), tag["number"], bool(tag["closes"])
    if kind == "w":
        return f"⟦/{number}⟧" if closes else f"⟦{number}⟧" + (f"⟦/{number}⟧" if tag["empty"] else "")
    if closes:
        return ""  # the other half of an empty tag that a parser has spelled out
    if kind == "c":
        return chr(int(number)) if int(number) < _CODE_POINTS else ""
    return f"⟦/{number}⟧" if kind == "y" else f"⟦{number}⟧"


def _tag(token: re.Match[str], is_paired: bool, xml: bool) -> str:
    if token["sign"]:
        sign = token["sign"]
        return escape(sign) if xml and sign in _XML_SIGNS else f"<c{ord(sign)}/>"
    if not token["number"]:
        return "⟦"
    if is_paired:
        return f"<{token['closes']}w{token['number']}>"
    return f"<{'y' if token['closes'] else 'x'}{token['number']}/>"


def _paired(tokens: list[re.Match[str]]) -> set[int]:
    """The places of the markers that open and close properly, one inside the other."""
    paired: set[int] = set()
    closings: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        if token["closes"]:
            closings.setdefault(token["number"], []).append(place)
    opened: list[tuple[str, int]] = []
    for place, token in enumerate(tokens):
        if not token["number"]:
            continue
        if token["closes"]:
            if opened and opened[-1][0] == token["number"]:
                paired |= {opened.pop()[1], place}
        elif any(closing > place for closing in closings.get(token["number"], ())):
            opened.append((token["number"], place))
    return paired
