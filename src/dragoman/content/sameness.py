"""When two texts are the same text: the keys of the memory, and how a remembered text is fitted in again.

Texts are compared in NFC, without blanks at their ends; in HTML any run of blanks is one. Case is kept, and
so are blanks inside of other texts: they may be meant. Plural forms are one text, whatever their order. Knows
no store.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from dragoman.kernel.identity import key_hash, sha256
from dragoman.model.documents import Syntax, Text

_BLANKS = re.compile(r"\s+")


def normal(text: str, syntax: Syntax = "none") -> str:
    """A text as it is compared."""
    text = unicodedata.normalize("NFC", text).strip()
    return _BLANKS.sub(" ", text) if syntax == "html" else text


def source_hash(value: Text, syntax: Syntax = "none") -> str:
    """The key of a source text, or of all its plural forms together."""
    if isinstance(value, Mapping):
        parts = [part for category in sorted(value) for part in (category, normal(value[category], syntax))]
        return key_hash("plural", *parts)
    return sha256(normal(value, syntax))


def context_hash(syntax: Syntax, context: str, note: str) -> str:
    """The key of what stands around a text: another context or note may want another translation."""
    return key_hash(syntax, unicodedata.normalize("NFC", context), unicodedata.normalize("NFC", note))


@lru_cache(maxsize=32)
def plain_contexts(syntax: Syntax) -> tuple[str, ...]:
    """Keys of the same text without context: in its syntax, and in none, as files from elsewhere say."""
    return tuple(dict.fromkeys((context_hash(syntax, "", ""), context_hash("none", "", ""))))


def verbatim(value: Text) -> tuple[str, ...]:
    """What makes two texts of a job one text, blanks at the ends included."""
    if isinstance(value, Mapping):
        return tuple(part for category in sorted(value) for part in (category, _composed(value[category])))
    return (_composed(value),)


def refitted(source: Text, remembered: Text) -> Text:
    """A remembered translation with the blanks at the ends that this source has."""
    if isinstance(source, str) and isinstance(remembered, str):
        return _between(source, remembered)
    if isinstance(source, str) or isinstance(remembered, str):
        return remembered
    return {
        category: _between(source.get(category, source["other"]), text)
        for category, text in remembered.items()
    }


def _between(source: str, text: str) -> str:
    core = source.strip()
    start = source.index(core) if core else len(source)
    return source[:start] + text.strip() + source[start + len(core) :]


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)
