"""Texts that a project's settings lock: nobody translates them, whatever the mode.

A lock is `document` or `document#key`, where `*` stands for any characters. A document that is written whole
is locked as soon as one of its texts is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from dragoman.content.selection import Selection
from dragoman.model.documents import Block, Document


class Locks:
    """The locks of one project."""

    def __init__(self, patterns: Sequence[str]) -> None:
        parted = [pattern.partition("#") for pattern in patterns]
        self._patterns = [(_compiled(document), _compiled(key or "*")) for document, _, key in parted]

    def hold_back(self, chosen: Selection, document: str, whole: bool) -> Selection:
        """The selection without what is locked, which counts as protected."""
        free = self._free(chosen.blocks, document, whole)
        return replace(chosen, blocks=free, protected=chosen.protected + len(chosen.blocks) - len(free))

    def unlocked(self, text: Document, document: str, whole: bool) -> Document:
        """The document without what is locked."""
        return replace(text, blocks=self._free(text.blocks, document, whole))

    def _free(self, blocks: tuple[Block, ...], document: str, whole: bool) -> tuple[Block, ...]:
        keys = [key for name, key in self._patterns if name.fullmatch(document)]
        free = tuple(block for block in blocks if not any(key.fullmatch(block.key) for key in keys))
        return () if whole and len(free) < len(blocks) else free


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
