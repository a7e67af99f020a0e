"""From a field to what a translator is shown, and back: one piece for each text that goes out by itself.

A plain text is one piece, a plural one a piece for each form that the target's language has, an ICU message
one for each of its sentences. What must survive is taken out (`protection`), blank ends stay outside, and
what holds nothing to translate is never shown. Knows no provider and no call.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from dragoman.content import locales, plurals
from dragoman.content.glossary import NO_TERMS, Terms
from dragoman.content.passing import passes_through
from dragoman.content.protection import Protected, protect
from dragoman.content.tokens import tokens as tokens_of
from dragoman.kernel.limits import GROUP_TOKENS_MAX, NEIGHBOUR_CHARS
from dragoman.model.completions import PromptItem
from dragoman.model.documents import Syntax, Text
from dragoman.model.jobs import Field

VERSION = "2"
"""Of what is asked and how: a field that failed under one version is tried again under the next."""

_BYTES_PER_TOKEN = 4
_TOKENS_PER_ITEM = 12
_SAMPLES = 3
_SAMPLED = range(1, 120)


class Piece(NamedTuple):
    """One text that goes out. `category` names the form or sentence, '' for a plain text."""

    category: str
    source: str
    protected: Protected
    note: str = ""


def pieces(field: Field) -> tuple[Piece, ...]:
    """What of a field that does not pass through goes out, in order."""
    if isinstance(field.value, str) and field.syntax != "icu":
        return (Piece("", field.value, protect(field.value, field.syntax), _note(field, "")),)
    wanted = sources(field)
    return tuple(
        Piece(category, text, protect(text, field.syntax), _note(field, category))
        for category, text in wanted.items()
        if len(wanted) == 1 or not passes_through(text, field.syntax)
    )


def passes(field: Field) -> bool:
    """Whether nothing of a field goes out: then `assembled` with nothing is its translation."""
    return all(passes_through(text, field.syntax) for text in sources(field).values())


def sources(field: Field) -> Mapping[str, str]:
    """Every form or sentence that the translation needs → the source text that it is translated from."""
    if not isinstance(field.value, str):
        return plural_sources(field.value, field.target_locale)
    message = plurals.split_icu(field.value) if field.syntax == "icu" else None
    if message is None:
        return {"": field.value}
    return plurals.target_sentences(*message, field.target_locale)


def plural_sources(forms: Mapping[str, str], target_locale: str) -> Mapping[str, str]:
    """The target's plural forms → the source form of each: its namesake, else `other`; exact forms stay."""
    exact = [category for category in forms if category.startswith("=")]
    wanted = (*exact, *locales.plural_categories(target_locale))
    return {category: forms.get(category, forms["other"]) for category in wanted}


def assembled(field: Field, translated: Mapping[str, str]) -> Text:
    """The field's translation out of its pieces'; forms that were not shown stand as in the source."""
    if isinstance(field.value, str) and field.syntax != "icu":
        return translated.get("", field.value)
    whole = {category: translated.get(category, text) for category, text in sources(field).items()}
    if not isinstance(field.value, str):
        return whole
    message = plurals.split_icu(field.value) if field.syntax == "icu" else None
    if message is None:
        return whole[""]
    return plurals.join_icu(message[0], whole, field.target_locale)


@dataclass(frozen=True, slots=True)
class Help:
    """What a translator is told beside a field: terms, texts like it, neighbours that the call lacks."""

    terms: Terms = NO_TERMS
    similar: tuple[tuple[str, str], ...] = ()
    before: str = ""
    after: str = ""


NO_HELP = Help()


def prompt_item(
    field: Field, piece: Piece, name: str, complaint: str = "", help_: Help = NO_HELP
) -> PromptItem:
    """A piece as an item of a prompt, under its id in this call."""
    return PromptItem(
        id=name,
        text=piece.protected.text,
        note=piece.note,
        max_length=field.max_length,
        glossary=help_.terms.told,
        avoid=help_.terms.avoided,
        similar=help_.similar,
        before=help_.before,
        after=help_.after,
        markers=piece.protected.markers,
        complaint=complaint,
    )


def example(source: str, target: str, syntax: Syntax) -> tuple[str, str]:
    """A text and its translation as an example: code stands as markers in both, as in what is asked."""
    shown = protect(source, syntax)
    for number, taken in shown.taken.items():
        target = target.replace(taken.start, f"⟦{number}⟧")
        if taken.end:
            target = target.replace(taken.end, f"⟦/{number}⟧")
    return shown.text, target.strip()


def glimpse(text: str, syntax: Syntax) -> str:
    """A neighbour as it is shown: its beginning, without code."""
    words = " ".join(token.raw for token in tokens_of(text.strip(), syntax) if token.kind == "text")
    return " ".join(words.split())[:NEIGHBOUR_CHARS]


def groups(
    fields: Sequence[Field], size_max: int, texts_max: int = sys.maxsize
) -> Iterator[tuple[Field, ...]]:
    """Neighbours of one locale together, at most `size_max` fields and `GROUP_TOKENS_MAX` tokens a group.

    `texts_max` is the most texts of a call: a plural field has several, and is never torn apart.
    """
    by_locale: dict[str, list[Field]] = {}
    for field in fields:
        by_locale.setdefault(field.target_locale, []).append(field)
    for neighbours in by_locale.values():
        group: list[Field] = []
        size = count = 0
        for field in neighbours:
            cost, texts = _size(field)
            full = len(group) == size_max or size + cost > GROUP_TOKENS_MAX or count + texts > texts_max
            if group and full:
                yield tuple(group)
                group, size, count = [], 0, 0
            group.append(field)
            size, count = size + cost, count + texts
        yield tuple(group)


def tokens(fields: Sequence[Field]) -> int:
    """About how many tokens a call for these fields takes, the answer among them."""
    return 2 * sum([_size(field)[0] for field in fields])


def _size(field: Field) -> tuple[int, int]:
    """About how many tokens a field takes, and how many texts it has."""
    if isinstance(field.value, str) and field.syntax != "icu":
        return len(field.value.encode()) // _BYTES_PER_TOKEN + _TOKENS_PER_ITEM, 1
    texts = sources(field).values() if _branches(field.value, field.syntax) else (str(field.value),)
    return sum(len(text.encode()) // _BYTES_PER_TOKEN + _TOKENS_PER_ITEM for text in texts), len(texts)


def _branches(value: Text, syntax: Syntax) -> bool:
    return syntax == "icu" or not isinstance(value, str)


def _note(field: Field, category: str) -> str:
    if not (field.context or category):
        return field.note
    context = f"context: {field.context}" if field.context else ""
    form = _form(category, field.target_locale) if not isinstance(field.value, str) else ""
    if category and not form:
        form = f"the sentence for {category}"
    return "; ".join(part for part in (field.note, context, form) if part)


@lru_cache(maxsize=512)
def _form(category: str, locale: str) -> str:
    """What a plural form is for, with some of its numbers."""
    if category.startswith("="):
        return f"the form for exactly {category[1:]}"
    numbers = (str(n) for n in _SAMPLED if locales.plural_category(locale, n) == category)
    samples = [number for _, number in zip(range(_SAMPLES), numbers, strict=False)]
    return f"plural form `{category}`" + (f", for numbers like {', '.join(samples)}" if samples else "")
