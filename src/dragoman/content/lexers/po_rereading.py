"""A second, simpler reader of PO files, to check what the first one wrote.

Promises no errors and no offsets, only what a program would look up: all strings, found by one pattern over
the whole text. It shares nothing with `po_entries`, so that they do not share their mistakes.
"""

from __future__ import annotations

import re

_STRINGS = r'(?:"(?:[^"\\\n]|\\.)*"\s*)+'
_MESSAGE = re.compile(
    rf"(?:^[ \t]*msgctxt\s*(?P<context>{_STRINGS}))?"
    rf"^[ \t]*msgid\s*(?P<msgid>{_STRINGS})"
    rf"(?:^[ \t]*msgid_plural\s*{_STRINGS})?"
    rf"(?P<forms>(?:^[ \t]*msgstr(?:\[\d+\])?\s*{_STRINGS})+)",
    re.MULTILINE,
)
_COMMENT = re.compile(r"^[ \t]*(?:#.*)?(?:\n|\Z)", re.MULTILINE)
_LINE_END = re.compile(r"\r\n?")
_FORM = re.compile(rf"^[ \t]*msgstr(?:\[\d+\])?\s*({_STRINGS})", re.MULTILINE)
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_OBSOLETE = re.compile(r"^[ \t]*#~.*", re.MULTILINE)


def reread(text: str) -> dict[str, list[str]]:
    """All forms of every message by its MO key; the header's key is empty."""
    bare = _COMMENT.sub("", _LINE_END.sub("\n", text))
    found: dict[str, list[str]] = {}
    for message in _MESSAGE.finditer(bare):
        context, msgid = message["context"], _joined(message["msgid"])
        key = msgid if context is None else f"{_joined(context)}\4{msgid}"
        found[key] = [_joined(form[1]) for form in _FORM.finditer(message["forms"])]
    return found


def obsolete_lines(text: str) -> list[str]:
    """Every line of an obsolete entry, as it stands."""
    return _OBSOLETE.findall(_LINE_END.sub("\n", text))


def _joined(strings: str) -> str:
    raw = "".join(_STRING.findall(strings))
    return raw.encode().decode("unicode_escape").encode("latin-1").decode() if "\\" in raw else raw
