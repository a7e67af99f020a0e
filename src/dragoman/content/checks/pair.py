"""A source text and its translation, as every check looks at them; and what a check says.

Promises that a text is cut into tokens once, whichever checks look at it. Texts are whole, without markers:
what `restore` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from typing import Literal, get_args

from dragoman.content.tokens import Family, Token, tokens
from dragoman.content.vocabulary import words_of
from dragoman.kernel.limits import SOURCE_KEPT_CHARS, SOURCES_KEPT
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


class Side:
    """One of the two texts: its `tokens`, cut by its syntax, and their `families`, the kinds of code in it.

    `words` is what a reader reads: without code, entities as their characters. `phrases` has a `GAP` for code
    that stands between them.
    """

    __slots__ = ("families", "phrases", "tokens", "words")

    def __init__(self, text: str, syntax: Syntax) -> None:
        self.tokens = tokens(text, syntax)
        if len(self.tokens) == 1 and self.tokens[0].kind == "text":
            self.families, self.words, self.phrases = _WORDS_ALONE, text, text
            return
        self.families = frozenset([token.family for token in self.tokens])
        self.words = _words(self.tokens, " ")
        self.phrases = _words(self.tokens, GAP)


CODE: frozenset[Family] = frozenset(get_args(Family)) - {"text"}
"""Every kind of code."""
_WORDS_ALONE: frozenset[Family] = frozenset(("text",))
_source_side = lru_cache(maxsize=SOURCES_KEPT)(Side)
"""A source is looked at once for each of its locales."""


@dataclass(slots=True, eq=False)
class Pair:
    """A source text and its translation; they are not changed.

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
    families: frozenset[Family] = field(init=False)
    """Every kind of code that either text holds; most texts hold none."""
    is_echo: bool = field(init=False)
    """Whether the translation's words are the source's."""
    said: list[str] = field(init=False)
    """The translation's words in lower case."""
    _source: Side = field(init=False)
    _target: Side = field(init=False)

    def __post_init__(self) -> None:
        is_short = len(self.source) <= SOURCE_KEPT_CHARS
        self._source = (_source_side if is_short else Side)(self.source, self.syntax)
        self._target = Side(self.target, self.syntax)
        self.families = self._source.families | self._target.families
        self.said = words_of(self._target.words)
        self.is_echo = self._source.words.split() == self._target.words.split()

    @property
    def source_tokens(self) -> tuple[Token, ...]:
        """The source, cut by its syntax."""
        return self._source.tokens

    @property
    def target_tokens(self) -> tuple[Token, ...]:
        """The translation, cut by the same syntax."""
        return self._target.tokens

    @property
    def source_words(self) -> str:
        """What a reader reads of the source: words without code, entities as their characters."""
        return self._source.words

    @property
    def target_words(self) -> str:
        """What a reader reads of the translation."""
        return self._target.words

    @property
    def source_phrases(self) -> str:
        """The source's words, with a `GAP` for code that stands between them."""
        return self._source.phrases

    @property
    def target_phrases(self) -> str:
        """The translation's words, with a `GAP` for code that stands between them."""
        return self._target.phrases

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
