"""Which of a project's terms a text uses, and what they ask of its translation. Knows no store."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dragoman.kernel.limits import TERMS_PER_ITEM
from dragoman.model.memories import Term

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Terms:
    """What the terms in a text ask for, as checks and prompts take it.

    `wanted` pairs a term with a translation that is right (one of several, where a term comes again),
    `avoided` a term with a word that its translation must not use; `kept` are not translated, spelled as the
    text has them.
    """

    wanted: tuple[tuple[str, str], ...] = ()
    avoided: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """All of it, in order, for a hash."""
        pairs = (part for pair in (*self.wanted, ("\0", "avoided"), *self.avoided) for part in pair)
        return (*pairs, "\0", *self.kept)

    @property
    def told(self) -> tuple[tuple[str, str], ...]:
        """Pairs of term and translation for a prompt; what is kept is its own translation."""
        return (*self.wanted, *((term, term) for term in self.kept))


NO_TERMS = Terms()


class Glossary:
    """The terms of one locale pair, ready to be found in texts."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self._by_word: dict[str, list[tuple[re.Pattern[str], Term]]] = {}
        for term in sorted(terms, key=lambda one: (-len(one.source), one.source, one.status, one.target)):
            first = _WORD.search(term.source)
            if first is None:
                continue
            flags = re.NOFLAG if term.case_sensitive else re.IGNORECASE
            pattern = re.compile(rf"(?<!\w){re.escape(term.source)}(?!\w)", flags)
            self._by_word.setdefault(first[0].casefold(), []).append((pattern, term))

    def __bool__(self) -> bool:
        return bool(self._by_word)

    def used(self, text: str) -> Terms:
        """What the terms in a text ask for; the longest first, and a bounded number of them."""
        found = self._found(text)
        if not found:
            return NO_TERMS
        return Terms(
            wanted=tuple((term.source, term.target) for term, _ in found if term.status == "preferred"),
            avoided=tuple((term.source, term.target) for term, _ in found if term.status == "forbidden"),
            kept=tuple(dict.fromkeys(spelled for term, spelled in found if term.status == "kept")),
        )

    def entries(self, text: str) -> tuple[Term, ...]:
        """The entries that stand behind `used`."""
        return tuple(term for term, _ in self._found(text))

    def _found(self, text: str) -> list[tuple[Term, str]]:
        """The terms in a text, each as it is spelled there."""
        if not self._by_word:
            return []
        words = dict.fromkeys(word.casefold() for word in _WORD.findall(text))
        found = [
            (term, match[0])
            for word in words
            for pattern, term in self._by_word.get(word, ())
            if (match := pattern.search(text)) is not None
        ]
        found.sort(key=lambda one: (-len(one[0].source), one[0].source, one[0].status, one[0].target))
        return found[:TERMS_PER_ITEM]
