"""A source text and its translation, as every check looks at them; and what a check says.

Promises that a text is cut into tokens once, whichever checks look at it. Texts are whole, without markers:
what `restore` gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from typing import Any, Literal, TypeVar, get_args

from dragoman.content.tokens import Family, Token, is_plain, tokens
from dragoman.content.vocabulary import is_latin, words_of
from dragoman.kernel.limits import SOURCE_KEPT_CHARS, SOURCES_KEPT
from dragoman.model.documents import Syntax

Severity = Literal["error", "warning"]
T = TypeVar("T")

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
    """One of the two texts in its `locale`, and `families`, the kinds of code in it.

    `words` is what a reader reads: without code, entities as their characters. `phrases` has a `GAP` for code
    that stands between them. `is_quiet` says that it holds no bracket and no sign of code or of ours.
    """

    __slots__ = ("_found", "_syntax", "_tokens", "families", "is_quiet", "locale", "phrases", "text", "words")

    def __init__(self, text: str, syntax: Syntax, locale: str) -> None:
        self.text, self.locale = text, locale
        self._syntax = syntax
        self._tokens: tuple[Token, ...] | None = None
        self._found: dict[Callable[[Side], Any], Any] = {}
        self.is_quiet = _LOUD.search(text) is None
        if text and is_plain(text, syntax):
            self.families, self.words, self.phrases = _WORDS_ALONE, text, text
            return
        self._tokens = cut = tokens(text, syntax)
        self.families = frozenset([token.family for token in cut])
        self.words = _words(cut, " ")
        self.phrases = _words(cut, GAP)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The text, cut by its syntax."""
        if self._tokens is None:
            self._tokens = tokens(self.text, self._syntax)
        return self._tokens

    def fact(self, find: Callable[[Side], T]) -> T:
        """What `find` says of this side, found out once: a source comes again with each of its locales."""
        if find not in self._found:
            self._found[find] = find(self)
        found: T = self._found[find]
        return found


CODE: frozenset[Family] = frozenset(get_args(Family)) - {"text"}
"""Every kind of code."""
BRACKET_SIGNS = (
    "()\\[\\]{}《-】\u207d\u207e\u208d\u208e\u2474-\u2487\u249c-\u24b5\u3200-\u3243"
    "\ufe35-\ufe48\ufe59-\ufe5c（）［］｛｝｢｣\U0001f110-\U0001f129"
)
"""Everything that is a bracket or holds one by NFKC (`⑴`), as a class of a pattern has it."""
_LOUD = re.compile(f"[%&$<@⟦⟧{BRACKET_SIGNS}]")
_WORDS_ALONE: frozenset[Family] = frozenset(("text",))
_source_side = lru_cache(maxsize=SOURCES_KEPT)(Side)


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
    spoken: str = field(init=False)
    """The language of the translation."""
    before: Side = field(init=False)
    """The source, as far as it is known already from other locales."""
    after: Side = field(init=False)
    """The translation."""
    source_words: str = field(init=False)
    """What a reader reads of the source: words without code, entities as their characters."""
    target_words: str = field(init=False)
    """What a reader reads of the translation."""
    _said: list[str] | None = field(init=False, default=None)
    _is_latin: bool | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        is_short = len(self.source) <= SOURCE_KEPT_CHARS
        before = (_source_side if is_short else Side)(self.source, self.syntax, self.source_locale)
        after = Side(self.target, self.syntax, self.target_locale)
        self.before, self.after = before, after
        self.families = (
            before.families if before.families is after.families else before.families | after.families
        )
        self.source_words, self.target_words = before.words, after.words
        self.spoken = language(self.target_locale)
        self.is_echo = _same_words(before.words, after.words)

    @property
    def said(self) -> list[str]:
        """The translation's words in lower case."""
        if self._said is None:
            self._said = words_of(self.target_words)
        return self._said

    @property
    def is_latin(self) -> bool:
        """Whether all letters of the translation's words are Latin."""
        if self._is_latin is None:
            self._is_latin = is_latin(self.target_words)
        return self._is_latin

    @property
    def source_tokens(self) -> tuple[Token, ...]:
        """The source, cut by its syntax."""
        return self.before.tokens

    @property
    def target_tokens(self) -> tuple[Token, ...]:
        """The translation, cut by the same syntax."""
        return self.after.tokens

    @property
    def source_phrases(self) -> str:
        """The source's words, with a `GAP` for code that stands between them."""
        return self.before.phrases

    @property
    def target_phrases(self) -> str:
        """The translation's words, with a `GAP` for code that stands between them."""
        return self.after.phrases

    @property
    def may_spell_number(self) -> bool:
        """Whether this is a plural's form for so few numbers that it may say its number in words."""
        return self.category.startswith("=") or self.category in FEW_NUMBERS


def language(locale: str) -> str:
    """The language of a tag: what stands before its first hyphen."""
    return locale.partition("-")[0]


def _same_words(one: str, other: str) -> bool:
    """Whether two texts differ in blanks alone; most differ in their first or last sign already."""
    starts = one.lstrip()[:1] == other.lstrip()[:1]
    return starts and one.rstrip()[-1:] == other.rstrip()[-1:] and one.split() == other.split()


def _words(side: Sequence[Token], gap: str) -> str:
    return "".join(_readable(token, gap) for token in side)


def _readable(token: Token, gap: str) -> str:
    """What a reader sees of a token: code is a gap, unless it only styles the words around it."""
    if token.kind == "text":
        return token.raw
    if token.family == "entity":
        return unescape(token.raw)
    return "" if token.family in ("tag", "link", "emphasis") and token.kind != "atom" else gap
