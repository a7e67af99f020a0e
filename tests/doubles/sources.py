"""A source that lives in memory, and counts what is asked of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dragoman.kernel.identity import sha256
from dragoman.model.walks import Contents, Listing


class MemorySource:
    """Documents by reference; targets by (reference, locale). `foreign` documents may not be edited.

    What has a folder is of the collection of that name, the rest are globals. `trouble` is raised by the next
    listings, `away` by the next readings, one each; every page says that `nameless` documents have no id.
    """

    def __init__(self, documents: Mapping[str, bytes]) -> None:
        self.documents = dict(documents)
        self.targets: dict[tuple[str, str], bytes] = {}
        self.foreign: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.trouble: list[Exception] = []
        self.away: list[Exception] = []
        self.nameless = 0

    def contents(self) -> Contents:
        self.asked["contents"] += 1
        folders = {ref.partition("/")[0] for ref in self.documents if "/" in ref}
        return Contents(tuple(sorted(folders)), tuple(sorted(set(self.documents) - self._in_folders)), True)

    def list(self, collection: str, cursor: str, limit: int, drafts: bool) -> Listing:
        self.asked["list"] += 1
        if self.trouble:
            raise self.trouble.pop(0)
        mine = [ref for ref in sorted(self._in_folders) if ref.startswith(f"{collection}/") and ref > cursor]
        if not drafts:
            mine = [ref for ref in mine if "draft" not in ref]
        page = tuple(mine[:limit])
        return Listing(page, page[-1] if len(mine) > limit else None, self.nameless)

    def collection_of(self, ref: str) -> str:
        return ref.partition("/")[0]

    @property
    def _in_folders(self) -> set[str]:
        return {ref for ref in self.documents if "/" in ref}

    def exists(self, refs: Sequence[str]) -> Mapping[str, bool]:
        self.asked["exists"] += 1
        return {ref: ref in self.documents for ref in refs}

    def can_edit(self, actor: str, refs: Sequence[str]) -> Mapping[str, bool]:
        self.asked["can_edit"] += 1
        return {ref: ref not in self.foreign for ref in refs}

    def read(self, ref: str) -> bytes:
        self.asked["read"] += 1
        if self.away:
            raise self.away.pop(0)
        return self.documents[ref]

    def read_target(self, ref: str, locale: str) -> bytes | None:
        self.asked["read_target"] += 1
        return self.targets.get((ref, locale))

    def fingerprint(self, ref: str) -> str:
        self.asked["fingerprint"] += 1
        return sha256(self.documents[ref])

    def target_path(self, ref: str, locale: str) -> str:
        return f"{locale}/{ref}"
