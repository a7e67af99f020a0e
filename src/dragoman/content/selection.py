"""Which fields of a document want translation, by mode; pure.

A target text is *ours* when it still is what we last wrote, *edited* when a person changed that since,
*imported* when it stood there before us. Edited and imported texts are replaced by mode `force` only; an
imported one whose source has moved since it was first seen counts as changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from dragoman.kernel.canonical import encode
from dragoman.kernel.identity import key_hash, sha256
from dragoman.model.contracts import Format
from dragoman.model.documents import Block, Document, Text
from dragoman.model.intents import Mode, SeenText


class Known(Protocol):
    """What is on record of one target text."""

    source_hash: str
    written_hash: str
    origin: str
    basis: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Blocks to translate, how many stay protected, and target texts met for the first time."""

    blocks: tuple[Block, ...]
    protected: int
    seen: tuple[SeenText, ...]


def text_hash(value: Text) -> str:
    """SHA-256 of a text as it reads (plain, or the canonical JSON of its plural forms)."""
    return sha256(value if isinstance(value, str) else encode(dict(value)))


def rule_of(form: Format, collection: str) -> str:
    """The fingerprint of what decides which texts of a collection's documents are fields."""
    return key_hash(collection, form.name, str(form.whole), str(form.shared))


def select(
    mode: Mode,
    whole: bool,
    source: Document,
    target: Document | None,
    known: Mapping[str, Known],
    basis_of: Callable[[Block], str] = lambda _: "",
) -> Selection:
    """Choose by mode among the source's blocks; `known` is keyed by the hash of the block key.

    `basis_of` gives what a translation would be made from now, beside the text: another basis is a change.
    A whole document is written complete or not at all: one field that wants work takes all of them along,
    and one that a person edited protects them all.
    """
    blocks = [block for block in source.blocks if block.state != "obsolete"]
    if whole:
        return _select_whole(mode, blocks, target, known, basis_of)
    standing = standing_hashes(target)
    chosen, protected, seen = [], 0, []
    for block in blocks:
        record = known.get(key_hash(block.key))
        written = standing.get(block.key)
        if written is not None and record is None:
            seen.append(SeenText(key_hash(block.key), text_hash(block.value), written))
        wanted = _wants(mode, block, record, written, basis_of)
        if wanted and _is_kept(mode, block, record, written):
            protected += 1
        elif wanted:
            chosen.append(block)
    return Selection(tuple(chosen), protected, tuple(seen))


def standing_hashes(target: Document | None) -> dict[str, str]:
    """Hashes of the finished texts at the target, by block key."""
    if target is None:
        return {}
    return {
        block.key: text_hash(block.value)
        for block in target.blocks
        if block.state not in ("untranslated", "fuzzy", "obsolete") and _has_text(block.value)
    }


def _has_text(value: Text) -> bool:
    return bool(value) if isinstance(value, str) else any(value.values())


def _wants(
    mode: Mode,
    block: Block,
    record: Known | None,
    written: str | None,
    basis_of: Callable[[Block], str],
) -> bool:
    if written is None or mode in ("all", "force"):
        return True
    return mode == "changed" and record is not None and _has_moved(block, record, basis_of)


def _has_moved(block: Block, record: Known, basis_of: Callable[[Block], str]) -> bool:
    """Whether a text, or what our translation of it was made from, is another now."""
    if record.source_hash != text_hash(block.value):
        return True
    return record.origin == "ours" and bool(record.basis) and record.basis != basis_of(block)


def _is_kept(mode: Mode, block: Block, record: Known | None, written: str | None) -> bool:
    """Whether the text that stands there is somebody else's."""
    if mode == "force" or written is None:
        return False
    if record is None:
        return True
    if record.origin == "ours":
        return record.written_hash != written
    return record.source_hash == text_hash(block.value)


def _select_whole(
    mode: Mode,
    blocks: list[Block],
    target: Document | None,
    known: Mapping[str, Known],
    basis_of: Callable[[Block], str],
) -> Selection:
    if target is None:
        return Selection(tuple(blocks), 0, ())
    if not known:
        kept = mode == "all"
        seen = () if mode == "force" else tuple(_first_sight(block) for block in blocks)
        return Selection(tuple(blocks) if mode == "force" else (), len(blocks) if kept else 0, seen)
    standing = {text_hash(block.value) for block in target.blocks}
    edited = any(record.origin == "ours" and record.written_hash not in standing for record in known.values())
    if not any(_wants_whole(mode, block, known.get(key_hash(block.key)), basis_of) for block in blocks):
        return Selection((), 0, ())
    if edited and mode != "force":
        return Selection((), len(blocks), ())
    return Selection(tuple(blocks), 0, ())


def _wants_whole(mode: Mode, block: Block, record: Known | None, basis_of: Callable[[Block], str]) -> bool:
    if record is None or mode in ("all", "force"):
        return True
    return mode == "changed" and _has_moved(block, record, basis_of)


def _first_sight(block: Block) -> SeenText:
    source_hash = text_hash(block.value)
    return SeenText(key_hash(block.key), source_hash, "")
