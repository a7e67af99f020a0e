"""What a project's settings lock: by document and key, and a whole file as soon as one of its texts is."""

from __future__ import annotations

import pytest

from dragoman.content.locks import Locks
from dragoman.content.selection import Selection
from dragoman.model.documents import Block, Document

KEYS = ("brand", "brand.name", "brand[0]", "hello")
BLOCKS = tuple(Block(key, key.title(), ()) for key in KEYS)


def left(*patterns: str, document: str = "en/a.json", whole: bool = False) -> tuple[str, ...]:
    """The keys that may be translated, as selection and lock file see it alike."""
    locks = Locks(patterns)
    chosen = locks.hold_back(Selection(BLOCKS, 1, ()), document, whole)
    assert chosen.protected == 1 + len(BLOCKS) - len(chosen.blocks)
    kept = locks.unlocked(Document("json", "", BLOCKS, "source", "en"), document, whole)
    assert kept.blocks == chosen.blocks
    return tuple(block.key for block in chosen.blocks)


@pytest.mark.parametrize(
    ("pattern", "locked"),
    [
        ("en/a.json#brand", {"brand"}),
        ("en/a.json#brand.*", {"brand.name"}),
        ("en/a.json#brand[0]", {"brand[0]"}),
        ("*#brand*", {"brand", "brand.name", "brand[0]"}),
        ("en/*", set(KEYS)),
        ("en/a.json", set(KEYS)),
        ("en/axjson", set()),
        ("a.json", set()),
        ("fr/*#hello", set()),
    ],
)
def test_a_lock_is_a_document_or_a_key_of_it_and_only_the_asterisk_stands_for_more(
    pattern: str, locked: set[str]
) -> None:
    assert set(KEYS) - set(left(pattern)) == locked


def test_several_locks_hold_together_and_none_holds_nothing() -> None:
    assert left("*#hello", "en/*#brand") == ("brand.name", "brand[0]")
    assert left() == KEYS


def test_a_file_that_is_written_whole_is_locked_by_one_of_its_texts() -> None:
    """It could not be written without it."""
    assert left("en/a.json#hello", whole=True) == ()
    assert left("en/a.json#nobody", whole=True) == KEYS
