"""Checks of terminology: the glossary's word for a term, words to avoid, and names that stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dragoman.content.checks.pair import Finding, Pair


def glossary(pair: Pair) -> Iterable[Finding]:
    """Each of the source's terms is translated as the glossary has it, however it is inflected."""
    return _mistranslated(pair) if pair.glossary else ()


def _mistranslated(pair: Pair) -> Iterator[Finding]:
    source, target = pair.source_words.casefold(), pair.target_words.casefold()
    choices: dict[str, list[str]] = {}
    for term, wanted in pair.glossary:
        choices.setdefault(term, []).append(wanted)
    for term, right in choices.items():
        if _stands(term.casefold(), source) and not any(_says(target, one.casefold()) for one in right):
            told = " or ".join(map(repr, right))
            yield Finding("glossary", "error", f"Translate {term!r} as {told}.", tuple(right))


def avoided_terms(pair: Pair) -> Iterable[Finding]:
    """No term is translated by a word that the glossary forbids for it."""
    return _forbidden(pair) if pair.avoided else ()


def _forbidden(pair: Pair) -> Iterator[Finding]:
    source, target = pair.source_words.casefold(), pair.target_words.casefold()
    for term, word in pair.avoided:
        if _stands(term.casefold(), source) and _stands(word.casefold(), target):
            yield Finding("avoided_terms", "error", f"Do not translate {term!r} as {word!r}.")


def kept_terms(pair: Pair) -> Iterable[Finding]:
    """Names of products and the like stand in the translation letter by letter."""
    return _renamed(pair) if pair.kept else ()


def _renamed(pair: Pair) -> Iterator[Finding]:
    for term in pair.kept:
        if _stands(term, pair.source_words) and term not in pair.target_words:
            yield Finding("kept_terms", "error", f"{term!r} is not translated: keep it as it is.", (term,))


def _stands(term: str, text: str) -> bool:
    return bool(term) and re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text) is not None


def _says(target: str, wanted: str) -> bool:
    """Whether a text uses a term; the last third of each word may be inflected."""
    return all(word[: max(3, len(word) - len(word) // 3)] in target for word in wanted.split())
