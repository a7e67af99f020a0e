"""A second reader of bilingual XML: libxml2 says what a written file holds, as plain texts.

Promises an opinion of its own: it shares no parser with `xml_places` and no code with `bilingual`. It refuses
what is fetched from outside, and compares element by element, so that markup lost is found as well as words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lxml import etree

from dragoman.content.lexers.xml_places import unescaped
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Block

_TAG = re.compile(r"<(/?)([A-Za-z_][\w:.-]*)(?:\"[^\"]*\"|'[^']*'|[^\"'>])*>")
_PASSIVE = re.compile(r"<!\[CDATA\[.*?\]\]>|<!--.*?-->|<\?.*?\?>", re.S)


def tree(text: str) -> etree._Element:
    """The root of a text. Raises `DragomanError` where libxml2 reads no XML."""
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        return etree.fromstring(text.encode("utf-8"), parser)
    except etree.XMLSyntaxError as error:
        raise DragomanError(f"libxml2 does not read the result: {error.msg}", "verify_failed") from error


def local(element: etree._Element) -> str:
    """An element's name without its namespace; empty for comments and what else is no element."""
    return str(etree.QName(element).localname) if isinstance(element.tag, str) else ""


def content(element: etree._Element) -> tuple[str, tuple[str, ...]]:
    """All characters of an element, and the names of the elements inside, in order."""
    names = tuple(filter(None, (local(inner) for inner in element.iterdescendants())))
    return "".join(_characters(element)), names


def plain(raw: str) -> tuple[str, tuple[str, ...]]:
    """The characters and the elements of raw markup."""
    names = tuple(
        match[2].rpartition(":")[2] for match in _TAG.finditer(_PASSIVE.sub("", raw)) if not match[1]
    )
    pieces: list[str] = []
    at = 0
    for match in _PASSIVE.finditer(raw):
        pieces += (_TAG.sub("", raw[at : match.start()]), match[0])
        at = match.end()
    return unescaped("".join([*pieces, _TAG.sub("", raw[at:])])), names


def complaint(found: Sequence[etree._Element | None], blocks: Sequence[Block]) -> str:
    """What is wrong between the elements that hold the texts, in file order, and our blocks."""
    if len(found) != len(blocks):
        return f"libxml2 finds {len(found)} texts, not {len(blocks)}"
    for element, block in zip(found, blocks, strict=True):
        text, names = content(element) if element is not None else ("", ())
        if not agrees(text, names, block, block.text):
            return f"libxml2 reads another text at {block.key!r}"
    return ""


def agrees(text: str, names: tuple[str, ...], block: Block, value: str) -> bool:
    """Whether an element's content is a value of ours: raw where the syntax, or an element, says so."""
    raw = plain(value)
    if block.syntax == "html":
        return (text, names) == raw
    return names == raw[1] if names else text in (value, raw[0])


def _characters(element: etree._Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if isinstance(child.tag, str):
            yield from _characters(child)
        elif isinstance(child, etree._Entity):
            yield child.text or ""
        yield child.tail or ""
