"""Nouns of a project's memory and glossary: what was translated before, by whom, and how words are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dragoman.kernel.limits import MEMORY_THRESHOLD
from dragoman.model.documents import Syntax, Text

Origin = Literal["ai", "person", "imported"]
TermStatus = Literal["preferred", "forbidden", "kept"]


class Shelf(NamedTuple):
    """One project's texts of one source locale."""

    project: str
    source_locale: str


class Place(NamedTuple):
    """One project's translations of one locale pair."""

    project: str
    source_locale: str
    target_locale: str

    @property
    def shelf(self) -> Shelf:
        """Where its source texts stand."""
        return Shelf(self.project, self.source_locale)


@dataclass(frozen=True, slots=True)
class Making:
    """What a translation by AI was made with."""

    model: str
    prompt_version: str
    validator_version: str


class Remembered(NamedTuple):
    """One translation in the memory. `basis` is the key of what AI made it from, '' for all others."""

    source_hash: str
    context_hash: str
    source: Text
    text: Text
    syntax: Syntax
    origin: Origin
    basis: str = ""
    job_id: str = ""
    model: str = ""
    prompt_version: str = ""
    validator_version: str = ""
    created_at: int = 0
    updated_at: int = 0


class Known(NamedTuple):
    """What a look-up gives of a translation."""

    context_hash: str
    text: Text
    origin: str
    basis: str


class Query(NamedTuple):
    """A text that others like it are looked for. `key` is the caller's name for it."""

    key: int
    grams: tuple[int, ...]
    chars_min: int
    chars_max: int


class Segment(NamedTuple):
    """A source text as the index has it, with its sample of grams."""

    segment: int
    source_hash: str
    source: str
    grams: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """How a word is to be translated, or not. An empty target locale stands for all of them."""

    source: str
    target: str
    target_locale: str
    status: TermStatus = "preferred"
    case_sensitive: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Manner:
    """What a project asks of its translations: from which score a match fills a field, and its style note."""

    threshold: int = MEMORY_THRESHOLD
    style: str = ""


@dataclass(frozen=True, slots=True)
class Library:
    """All that a job takes along of its project: its manner, and its terms by target locale ('' for all)."""

    manner: Manner
    terms: Mapping[str, tuple[Term, ...]]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many entries were read, kept, known before, and left out because a check failed."""

    read: int = 0
    kept: int = 0
    known: int = 0
    refused: int = 0
    passed_over: int = 0

    def plus(self, other: Tally) -> Tally:
        """The sum of both."""
        return Tally(
            self.read + other.read,
            self.kept + other.kept,
            self.known + other.known,
            self.refused + other.refused,
            self.passed_over + other.passed_over,
        )
