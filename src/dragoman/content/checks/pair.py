"""A source text and its translation, as every check looks at them; and what a check says.

Promises that a text is cut into tokens once, whichever checks look at it. Texts are whole, without markers:
what `restore` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from typing import Literal

from dragoman.content.tokens import Family, Token, tokens
from dragoman.model.documents import Syntax

Severity = Literal["error", "warning"]

GAP = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands for code in `Pair.target_phrases`, so that the words around it are no neighbours."""
FEW_NUMBERS = frozenset(("zero", "one", "two"))
"""Plural forms that may say their number in words."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One complaint. `message` tells a translator what to mend; `missing` names what the translation lost."""

    check: str
    severity: Severity
    message: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A source text and its translation.

    `category` is the plural form that they are, empty for none; `other` is then the source's form for most
    numbers, whose placeholders are at hand in every form.
    """

    source: str
    target: str
    syntax: Syntax
    source_locale: str
    target_locale: str
    max_length: int | None = None
    glossary: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()
    """Terms that are not translated."""
    avoided: tuple[tuple[str, str], ...] = ()
    """Terms, each with a word that its translation must not use."""
    category: str = ""
    other: str = ""

    @cached_property
    def source_tokens(self) -> tuple[Token, ...]:
        """The source, cut by its syntax."""
        return tokens(self.source, self.syntax)

    @cached_property
    def target_tokens(self) -> tuple[Token, ...]:
        """The translation, cut by the same syntax."""
        return tokens(self.target, self.syntax)

    @cached_property
    def families(self) -> frozenset[Family]:
        """Every kind of code that either text holds; most texts hold none."""
        return frozenset(token.family for token in (*self.source_tokens, *self.target_tokens))

    @cached_property
    def source_words(self) -> str:
        """What a reader reads of the source: words without code, entities as their characters."""
        return _words(self.source_tokens, " ")

    @cached_property
    def target_words(self) -> str:
        """What a reader reads of the translation."""
        return _words(self.target_tokens, " ")

    @cached_property
    def source_phrases(self) -> str:
        """The source's words, with a `GAP` for code that stands between them."""
        return _words(self.source_tokens, GAP)

    @cached_property
    def target_phrases(self) -> str:
        """The translation's words, with a `GAP` for code that stands between them."""
        return _words(self.target_tokens, GAP)

    @property
    def is_echo(self) -> bool:
        """Whether the translation's words are the source's."""
        return self.source_words.split() == self.target_words.split()

    @property
    def may_spell_number(self) -> bool:
        """Whether this is a plural's form for so few numbers that it may say its number in words."""
        return self.category.startswith("=") or self.category in FEW_NUMBERS


def language(locale: str) -> str:
    """The language of a tag: what stands before its first hyphen."""
    return locale.partition("-")[0]


def _words(side: Sequence[Token], gap: str) -> str:
    return "".join(_readable(token, gap) for token in side)


def _readable(token: Token, gap: str) -> str:
    """What a reader sees of a token: code is a gap, unless it only styles the words around it."""
    if token.kind == "text":
        return token.raw
    if token.family == "entity":
        return unescape(token.raw)
    return "" if token.family in ("tag", "link", "emphasis") and token.kind != "atom" else gap
