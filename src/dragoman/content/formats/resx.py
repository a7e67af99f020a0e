"""Resources of .NET: .resx, and .resw of Windows apps.

Promises that only values of strings change, that CDATA stays CDATA, and that a new entry stands where the
source has it. Entries with a type or a MIME type, `>>names`, metadata and what its comment calls `{Locked}`
are no texts and stay as they are. Of a name that stands twice the first counts, as in MSBuild.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from lxml import etree

from dragoman.content.lexers.xml_entries import Entry, Insertions, XmlSpelling, entries, removal, valued
from dragoman.content.lexers.xml_places import Element, charset, is_cdata, parse, unescaped
from dragoman.content.spans import line_at, newline_of, splice
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Syntax, Text, Writing

_ARGUMENT = re.compile(r"(?<!\{)\{\d{1,3}(?:,\s*-?\d+)?(?::[^{}]*)?\}")
_LINE_END = re.compile(r"\r\n|\r")


@dataclass(frozen=True, slots=True)
class _Item:
    """One entry of text."""

    key: str
    entry: Entry
    value: Element
    raw: str
    text: str
    note: str


@dataclass(frozen=True, slots=True)
class _File:
    root: Element
    items: Mapping[str, _Item]


class ResxCatalogue:
    """The format `resx`. `syntax` declares how placeholders are written; without it each file shows it."""

    name = "resx"
    extensions: tuple[str, ...] = (".resx", ".resw")
    whole = False
    shared = False
    renames: Mapping[str, str] = {}

    def __init__(self, syntax: Syntax | None = None) -> None:
        self._syntax = syntax

    def detect(self, path: str, head: str) -> bool:
        """By extension alone."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """What the XML declaration says."""
        return charset(data)

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Every string as a block, in file order."""
        root = parse(text)
        if root.name != "root":
            raise DocumentError(
                f"the root element is <{root.name}>; that of resources is <root>",
                line_at(text, root.whole.start),
            )
        items: dict[str, _Item] = {}
        for item in _items(text, root):
            items.setdefault(item.key, item)
        shows = any(_ARGUMENT.search(item.text) for item in items.values())
        syntax: Syntax = self._syntax or ("python" if shows else "none")
        blocks = tuple(
            Block(
                key=item.key,
                text=item.text,
                spans=(item.value.inner,),
                syntax=syntax,
                note=item.note,
                state="untranslated" if role == "target" and not item.text.strip() else "",
            )
            for item in items.values()
        )
        return Document(self.name, text, blocks, role, locale, extras={"file": _File(root, items)})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Replace values; then, in a target, insert the names it lacks; else drop what has no translation."""
        values = {key: _plain(key, value) for key, value in translations.items()}
        file, origin = _file(base), _file(source)
        spelling = XmlSpelling(_raws(file), _raws(origin), newline_of(base.text))
        edits = [
            valued(item.value, _spelled(spelling, item, values[key]), key)
            for key, item in file.items.items()
            if key in values and values[key] != item.text
        ]
        removed: list[str] = []
        lost: tuple[str, ...] = ()
        if base.role == "source":
            for item in _items(base.text, file.root):
                if item.key not in values and any(map(str.isalpha, file.items[item.key].text)):
                    edits.append(removal(item.entry, item.key))
                    removed.append(item.key)
        else:
            edits += _insertions(base, source, values, spelling)
            known = {block.key for block in source.blocks}
            lost = tuple(key for key in file.items if key not in known)
        edits.sort(key=lambda edit: (edit.span.start, edit.span.end))
        return Writing(splice(base.text, edits), tuple(edits), lost, values, tuple(dict.fromkeys(removed)))

    def second_opinion(self, before: Document, after: Document) -> str:
        """libxml2 must read our texts, and all that is no text must be as it was."""
        try:
            texts, rest = _reread(after)
        except etree.XMLSyntaxError as error:
            return f"libxml2 does not read the result: {error}"
        for block in after.blocks:
            if texts.get(block.key) != block.text:
                return f"libxml2 reads another text at {block.key!r}"
        if changed := rest ^ _reread(before)[1]:
            return f"something that is no text would change: {min(changed)[:80]!r}"
        return ""


def _items(text: str, root: Element) -> Iterator[_Item]:
    """The entries of text, in file order."""
    for entry in entries(text, root):
        element = entry.element
        if element.name != "data":
            continue
        name = element.attributes.get("name")
        if name is None:
            raise DocumentError("this <data> has no name", line_at(text, element.whole.start))
        value, comment = element.find("value"), element.find("comment")
        about = unescaped(text[comment.inner.start : comment.inner.end]).strip() if comment else ""
        if value is None or value.children or not _is_text(element, name, about):
            continue
        raw = text[value.inner.start : value.inner.end]
        note = "\n".join(part for part in (entry.note, about) if part)
        yield _Item(_key(name), entry, value, raw, unescaped(_LINE_END.sub("\n", raw)), note)


def _is_text(element: Element, name: str, comment: str) -> bool:
    kind = element.attributes.get("type", "System.String").split(",")[0].strip()
    binary = "mimetype" in element.attributes or kind != "System.String"
    return not binary and not name.startswith(">>") and not comment.startswith("{Locked}")


def _insertions(
    base: Document, source: Document, values: Mapping[str, str], spelling: XmlSpelling
) -> Iterator[Edit]:
    """The names that the base lacks, each behind the one that precedes it in the source."""
    file, origin = _file(base), _file(source)
    insertions = Insertions(base.text, file.root, source.text, origin.root)
    offered = {item.entry.element.whole: item for item in origin.items.values()}
    for entry, at in insertions.places():
        item = offered.get(entry.element.whole)
        if item and item.key in values:
            edit = valued(item.value, _spelled(spelling, item, values[item.key]), item.key)
            insertions.add(at, entry, entry.element.children, [edit], item.key)
    return insertions.edits()


def _spelled(spelling: XmlSpelling, item: _Item, text: str) -> str:
    """A text as the raw content that takes the place of the item's."""
    return spelling.section(text) if is_cdata(item.raw) else spelling.raw(text)


def _reread(document: Document) -> tuple[dict[str, str], set[bytes]]:
    """Texts by key as libxml2 reads them, and everything else, serialised."""
    parser = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True)
    root = etree.fromstring(document.text.encode("utf-8"), parser)
    keys = {block.key for block in document.blocks}
    texts: dict[str, str] = {}
    rest: set[bytes] = set()
    for child in root.iterchildren():
        key = _key(child.get("name") or "")
        value = child.find("value") if child.tag == "data" else None
        if key in keys and key not in texts and value is not None:
            texts[key] = str(value.xpath("string()"))
        elif isinstance(child.tag, str) and key not in keys:
            rest.add(etree.tostring(child, with_tail=False))
    return texts, rest


def _key(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _plain(key: str, value: Text) -> str:
    if isinstance(value, str):
        return value
    raise DragomanError(
        f"{key!r} is one text in .resx, and its translation has plural forms", "verify_failed"
    )


def _raws(file: _File) -> Iterator[str]:
    return (item.raw for item in file.items.values() if "<" not in item.raw)


def _file(document: Document) -> _File:
    return cast(_File, document.extras["file"])
