"""Nouns of a scope: what is walked, how far the walk came, and what a source says of itself.

A source's cursor is its own: nobody but the source reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

WHOLE = "files"
"""The collection of all sources of a tree."""
Phase = Literal["pairs", "documents", "collections", "globals", "canary", "done"]


class Contents(NamedTuple):
    """What a source holds: its collections, and documents that there is one of each (globals).

    `knows_drafts` says that a listing can leave drafts out.
    """

    collections: tuple[str, ...]
    globals: tuple[str, ...] = ()
    knows_drafts: bool = False


class Listing(NamedTuple):
    """One page of a collection: full references, the cursor of the next page, None at the end.

    `nameless` is how many documents the source listed without an id: they are ignored and counted.
    """

    documents: tuple[str, ...]
    next: str | None
    nameless: int = 0


@dataclass(frozen=True, slots=True)
class Walk:
    """A scope as it was admitted: exclusions taken off, locales canonical, without the source's own.

    `excluded` is for the check of names at admission and is not stored.
    """

    collections: tuple[str, ...]
    globals: tuple[str, ...]
    documents: tuple[str, ...]
    locales: tuple[str, ...]
    drafts: bool = True
    excluded: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As it is stored."""
        said = asdict(self)
        del said["excluded"]
        return json.dumps(said, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Walk:
        """From its stored text."""
        said: Mapping[str, Any] = json.loads(text)
        lists = {name: tuple(said[name]) for name in ("collections", "globals", "documents", "locales")}
        return cls(**lists, drafts=said["drafts"])


@dataclass(frozen=True, slots=True)
class Place:
    """How far an enumeration came: what is written of it, and nothing else, tells where it goes on.

    `collection` counts in the scope's collections, or in `names` where only some are walked again;
    `position` is the source's cursor of the page that comes next, empty for the first; `again` says that this
    last page is read a second time; `item` counts documents or globals, or is the last ordinal that was
    copied or decided. `sample` are the ordinals of a canary, once they are chosen.
    """

    phase: Phase = "pairs"
    collection: int = 0
    position: str = ""
    again: bool = False
    item: int = 0
    names: tuple[str, ...] = ()
    sample: tuple[int, ...] | None = None

    @property
    def text(self) -> str:
        """As it is stored."""
        return json.dumps({"v": 1, **asdict(self)}, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str | None) -> Place:
        """From its stored text; the beginning where there is none."""
        if not text:
            return cls()
        said = json.loads(text)
        if said.pop("v") != 1:
            raise ValueError("the cursor of an enumeration is of another release")
        sample = said.pop("sample")
        return cls(
            **{**said, "names": tuple(said["names"])}, sample=None if sample is None else tuple(sample)
        )


class Met(NamedTuple):
    """One (document, locale) that a walk met; `code` says why it cannot be worked, empty where it can."""

    document: str
    locale: str
    code: str = ""
    message: str = ""
