"""Large XML read element by element in bounded memory, and what it takes to write it.

Promises that no entity is expanded, that nothing is fetched from outside, that what was read is let go, and
that every refusal names its line. Knows no dialect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from lxml import etree

from dragoman.content.lexers.xml_places import escaped
from dragoman.kernel.errors import DocumentError

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def elements(stream: BinaryIO, roots: tuple[str, ...], *names: str) -> Iterator[etree._Element]:
    """Each element of these names, complete; it is emptied when the next one is asked for.

    Raises `DocumentError` for what is not XML, has another root or declares entities, when it comes to it.
    """
    parsing = etree.iterparse(
        stream,
        events=("end",),
        tag=[f"{{*}}{name}" for name in names],
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )
    checked = False
    try:
        for _, element in parsing:
            if not checked:
                _check(element.getroottree().getroot(), roots)
                checked = True
            yield element
            _let_go(element)
    except etree.XMLSyntaxError as error:
        raise DocumentError(f"this is not well-formed XML: {error.msg}", error.lineno or 1) from error
    if not checked and parsing.root is not None:
        _check(parsing.root, roots)


def local(element: etree._Element) -> str:
    """The name without its namespace; empty for what is no element."""
    tag: object = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def children(element: etree._Element, *names: str) -> Iterator[etree._Element]:
    """The child elements of these names, whatever their namespace."""
    return (child for child in element if local(child) in names)


def words(element: etree._Element) -> str:
    """All characters of an element. Raises `DocumentError` for an entity that the file does not hold."""
    return "".join(_characters(element))


def quoted(text: str) -> str:
    """A text as the value of an attribute, in double quotes."""
    value = spelled(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
    return f'"{value}"'


def spelled(text: str) -> str:
    """A text as content. Raises `DocumentError` for a character that XML cannot hold."""
    return escaped(text).replace("\r", "&#13;")


def _characters(element: etree._Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if not isinstance(child.tag, str):
            raise DocumentError("an entity stands in a text: write it out", child.sourceline or 0)
        yield from _characters(child)
        yield child.tail or ""


def _check(root: etree._Element, roots: tuple[str, ...]) -> None:
    kind = root.getroottree().docinfo.internalDTD
    if kind is not None and any(True for _ in kind.iterentities()):
        raise DocumentError("the file declares entities: write them out", line=1)
    if local(root) not in roots:
        wanted = " or ".join(f"<{name}>" for name in roots)
        raise DocumentError(f"the root is <{local(root)}>, and {wanted} is wanted", root.sourceline or 1)


def _let_go(element: etree._Element) -> None:
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]
