"""A source that lives in memory, and counts what is asked of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


class MemorySource:
    """Documents by reference; targets by (reference, locale). `foreign` documents may not be edited."""

    def __init__(self, documents: Mapping[str, bytes]) -> None:
        self.documents = dict(documents)
        self.targets: dict[tuple[str, str], bytes] = {}
        self.foreign: set[str] = set()
        self.asked: Counter[str] = Counter()

    def exists(self, refs: Sequence[str]) -> Mapping[str, bool]:
        self.asked["exists"] += 1
        return {ref: ref in self.documents for ref in refs}

    def can_edit(self, actor: str, refs: Sequence[str]) -> Mapping[str, bool]:
        self.asked["can_edit"] += 1
        return {ref: ref not in self.foreign for ref in refs}

    def read(self, ref: str) -> bytes:
        self.asked["read"] += 1
        return self.documents[ref]

    def read_target(self, ref: str, locale: str) -> bytes | None:
        self.asked["read_target"] += 1
        return self.targets.get((ref, locale))

    def target_path(self, ref: str, locale: str) -> str:
        return f"{locale}/{ref}"
