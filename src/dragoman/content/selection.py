"""Which fields of a document want translation, by mode; pure.

A target text is *ours* when it still is what we last wrote, a *person's* when somebody changed that since,
*imported* when it stood there before us. A person's and imported texts are replaced by mode `force` only; an
imported one whose source has moved since it was first seen counts as changed. Whether a text is ours or a
person's is told by its hash, each time it is looked at: what is on record says what it was when last seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Protocol

from dragoman.kernel.canonical import encode
from dragoman.kernel.identity import key_hash, sha256
from dragoman.model.contracts import Format
from dragoman.model.documents import Block, Document, Text
from dragoman.model.intents import Mode, Origin, Relabel, SeenText


class Authored(Protocol):
    """Whose one target text is, and the hash that tells."""

    @property
    def written_hash(self) -> str:
        """Of what we wrote, or of what stood there when it was first seen."""
        ...

    @property
    def origin(self) -> str:
        """Whose it was when last seen."""
        ...


class Known(Authored, Protocol):
    """What is on record of one target text."""

    source_hash: str
    basis: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Blocks to translate, how many stay protected, and target texts met for the first time.

    `relabeled` are texts on record as ours that a person changed since, and the other way about.
    """

    blocks: tuple[Block, ...]
    protected: int
    seen: tuple[SeenText, ...]
    relabeled: tuple[Relabel, ...] = ()


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
    return (_select_whole if whole else _select_each)(mode, blocks, target, known, basis_of)


def was_written(record: Authored) -> bool:
    """Whether we wrote a text once; its hash tells whether a person changed it since."""
    return record.origin != "imported"


def relabeled(whole: bool, target: Document, known: Mapping[str, Authored]) -> tuple[Relabel, ...]:
    """The entries of which a target shows that they are another's than is on record.

    A text that is gone is nobody's. Of a whole document a text is ours wherever it stands.
    """
    if whole:
        return _relabeled_of_whole(known, {text_hash(block.value) for block in target.blocks})
    standing = {key_hash(key): found for key, found in standing_hashes(target).items()}
    both = sorted(known.keys() & standing.keys())
    return tuple(one for key in both for one in _relabel(key, known[key], {standing[key]}))


def _relabeled_of_whole(known: Mapping[str, Authored], standing: Set[str]) -> tuple[Relabel, ...]:
    return tuple(one for key, record in known.items() for one in _relabel(key, record, standing))


def _relabel(key: str, record: Authored, standing: Set[str]) -> Iterator[Relabel]:
    """One entry, where what we wrote stands among these although it is called a person's, or the reverse."""
    origin: Origin = "ours" if record.written_hash in standing else "person"
    if was_written(record) and record.origin != origin:
        yield Relabel(key, record.written_hash, origin)


def _select_each(
    mode: Mode,
    blocks: list[Block],
    target: Document | None,
    known: Mapping[str, Known],
    basis_of: Callable[[Block], str],
) -> Selection:
    standing = standing_hashes(target)
    chosen, protected, seen, relabeled = [], 0, [], list[Relabel]()
    for block in blocks:
        key = key_hash(block.key)
        record = known.get(key)
        written = standing.get(block.key)
        if written is not None and record is None:
            seen.append(SeenText(key, text_hash(block.value), written))
        elif written is not None and record is not None:
            relabeled += _relabel(key, record, {written})
        wanted = _wants(mode, block, record, written, basis_of)
        if wanted and _is_kept(mode, block, record, written):
            protected += 1
        elif wanted:
            chosen.append(block)
    return Selection(tuple(chosen), protected, tuple(seen), tuple(relabeled))


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
    return bool(record.basis) and record.basis != basis_of(block)


def _is_kept(mode: Mode, block: Block, record: Known | None, written: str | None) -> bool:
    """Whether the text that stands there is somebody else's."""
    if mode == "force" or written is None:
        return False
    if record is None:
        return True
    if was_written(record):
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
    edited = any(was_written(record) and record.written_hash not in standing for record in known.values())
    relabeled = _relabeled_of_whole(known, standing)
    if not any(_wants_whole(mode, block, known.get(key_hash(block.key)), basis_of) for block in blocks):
        return Selection((), 0, (), relabeled)
    if edited and mode != "force":
        return Selection((), len(blocks), (), relabeled)
    return Selection(tuple(blocks), 0, (), relabeled)


def _wants_whole(mode: Mode, block: Block, record: Known | None, basis_of: Callable[[Block], str]) -> bool:
    if record is None or mode in ("all", "force"):
        return True
    return mode == "changed" and _has_moved(block, record, basis_of)


def _first_sight(block: Block) -> SeenText:
    source_hash = text_hash(block.value)
    return SeenText(key_hash(block.key), source_hash, "")
