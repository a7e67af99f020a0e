"""Texts that are never sent to anybody: their translation is themselves."""

from __future__ import annotations

import re

from dragoman.content.tokens import tokens
from dragoman.model.documents import Syntax

_BASE64 = re.compile(r"(?=[^\s]*\d)(?=[^\s]*[a-z])(?=[^\s]*[A-Z])[A-Za-z0-9+/_-]{24,}={0,2}", re.ASCII)
_DATA_URI = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w=.+-]+)*,\S*", re.ASCII)
_HEX = re.compile(r"(?:0x)?(?=[^\s]*\d)[0-9a-f-]{16,}|#[0-9A-Fa-f]{3,8}", re.ASCII)

_OBJECT_ID = re.compile(r"[A-Za-z0-9]{3}-[A-Za-z0-9]{2}-[A-Za-z0-9]{3}\.\w+", re.ASCII)


def is_object_id(text: str) -> bool:
    """Whether a text is Interface Builder's name of an object (`46P-cB-AYj.title`): no text at all."""
    return _OBJECT_ID.fullmatch(text) is not None


def passes_through(text: str, syntax: Syntax = "none") -> bool:
    """Whether a text holds nothing to translate: blank, numbers, addresses, placeholders or encoded data."""
    core = text.strip()
    if any(pattern.fullmatch(core) for pattern in (_BASE64, _DATA_URI, _HEX, _OBJECT_ID)):
        return True
    return not any(
        character.isalpha()
        for token in tokens(core, syntax)
        if token.kind == "text"
        for character in token.raw
    )
