"""What worlds have to translate: shelves of documents, and what somebody edits in them.

A *shared* document is its own target and holds all locales. It is read here with the standard library alone,
so that what stands in it is told by nobody who wrote it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

Shelf = Literal["usual", "formats", "shared"]

LOCALES = ("de", "fr")
_SOURCE_LOCALE = "en"

Texts = Mapping[str, str]
"""Key → text, of one locale."""


def _string_catalogue(**entries: str) -> bytes:
    strings = {
        key: {"comment": f"Of {key}", "localizations": {_SOURCE_LOCALE: _said(text)}}
        for key, text in entries.items()
    }
    return _laid_out({"sourceLanguage": _SOURCE_LOCALE, "strings": strings, "version": "1.0"})


def _said(text: str) -> Mapping[str, Any]:
    return {"stringUnit": {"state": "translated", "value": text}}


def _laid_out(catalogue: Mapping[str, Any]) -> bytes:
    return (json.dumps(catalogue, ensure_ascii=False, indent=2) + "\n").encode()


_CATALOGUE = _string_catalogue(empty="Your cart is empty", pay="Pay %@ now")
SHELVES: Mapping[Shelf, Mapping[str, bytes]] = {
    "usual": {
        "shop.json": (
            b'{\n  "title": "A small shop",\n'
            b'  "cart": {"empty": "Your cart is empty", "pay": "Pay {amount} now"},\n'
            b'  "hello": "Hello, {name}!"\n}\n'
        ),
        "guide.md": (
            b"---\ntitle: First steps\n---\n\n# Begin here\n\n"
            b"Open the box and read **every** word of the manual.\n\n"
            b"Then call `start()` twice.\n"
        ),
        "app.po": (
            b'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: en\\n"\n\n'
            b'msgid "Save"\nmsgstr ""\n\nmsgid "Delete the %s?"\nmsgstr ""\n\n'
            b'msgid "One file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
        ),
    },
    "formats": {
        "shop.json": (
            b'{\n  "title": "A small shop",\n'
            b'  "cart_one": "{{count}} thing",\n  "cart_other": "{{count}} things"\n}\n'
        ),
        "strings.xml": (
            b'<?xml version="1.0" encoding="utf-8"?>\n<resources>\n'
            b'    <!-- On a button -->\n    <string name="save">Don\\\'t save &amp; close</string>\n'
            b'    <plurals name="files">\n        <item quantity="one">%d file</item>\n'
            b'        <item quantity="other">%d files</item>\n    </plurals>\n</resources>\n'
        ),
        "Shop.xcstrings": _CATALOGUE,
        "words.csv": b'key,note,en\nopen,On a button,Open the box\ncount,"Who, then","Hello, {name}"\n',
    },
    "shared": {"Shop.xcstrings": _CATALOGUE},
}
EDITS: Mapping[str, tuple[bytes, bytes]] = {
    "shop.json": (b"A small shop", b"A shop of no small size"),
    "guide.md": (b"Then call", b"Afterwards call"),
    "Shop.xcstrings": (b'"Your cart is empty"', b'"There is nothing here"'),
    "words.csv": (b",Open the box", b",Open each box"),
}
"""What somebody edits in which source, as it then stands there: words, and others in their place."""


def edited(documents: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The documents as they are once somebody has edited them."""
    return {name: data.replace(*EDITS.get(name, (b"", b""))) for name, data in documents.items()}


def target_of(document: str, locale: str, by_run: bool) -> str:
    """Where a document's translation goes; a run of convergence puts it beside its source."""
    stem, _, ending = document.rpartition(".")
    return f"{stem}.{locale}.{ending}" if by_run else f"{locale}/{document}"


class Shared(NamedTuple):
    """How a kind of shared document is read and written by hand."""

    read: Callable[[bytes], tuple[Any, Mapping[str, Texts]]]
    """Everything beside the translations, and what stands in each locale."""
    write: Callable[[bytes, str, str, str], bytes]
    """The file with this text at this key in this locale."""
    key: str
    """The text that somebody writes by hand."""


def _read_catalogue(data: bytes) -> tuple[Any, Mapping[str, Texts]]:
    catalogue, said = json.loads(data), {locale: dict[str, str]() for locale in LOCALES}
    for key, entry in catalogue["strings"].items():
        for locale in LOCALES:
            if unit := entry["localizations"].pop(locale, None):
                said[locale][key] = unit["stringUnit"]["value"]
    return catalogue, said


def _write_catalogue(data: bytes, locale: str, key: str, text: str) -> bytes:
    catalogue = json.loads(data)
    catalogue["strings"][key]["localizations"][locale] = _said(text)
    return _laid_out(catalogue)


def _read_table(data: bytes) -> tuple[Any, Mapping[str, Texts]]:
    """A cell that holds nothing is none."""
    rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    said = {locale: {row["key"]: row[locale] for row in rows if row.get(locale)} for locale in LOCALES}
    return [{name: cell for name, cell in row.items() if name not in LOCALES} for row in rows], said


def _write_table(data: bytes, locale: str, key: str, text: str) -> bytes:
    head, *rows = csv.reader(io.StringIO(data.decode(), newline=""))
    if locale not in head:
        head, rows = [*head, locale], [[*row, ""] for row in rows]
    column = head.index(locale)
    for row in rows:
        if row[0] == key:
            row[column] = text
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([head, *rows])
    return out.getvalue().encode()


SHARED: Mapping[str, Shared] = {
    "Shop.xcstrings": Shared(_read_catalogue, _write_catalogue, "pay"),
    "words.csv": Shared(_read_table, _write_table, "open"),
}
SOURCES_ALONE = frozenset(name for shelf in SHELVES.values() for name in shelf) - SHARED.keys()
"""Documents that are no target of anything."""
