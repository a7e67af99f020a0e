"""Every check by name: what it says of itself, and for which syntaxes and languages it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dragoman.content.checks import conversation, kept, reading, terms, wording
from dragoman.content.checks.pair import CODE, Finding, Pair
from dragoman.content.tokens import Family
from dragoman.model.documents import Syntax

Run = Callable[[Pair], Iterable[Finding]]
"""A check at work; it answers `()` at once where a look at the pair is enough."""
Gravity = Literal["error", "warning", "by certainty"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `about` is a rule for translators; no `syntaxes` means that it holds in all of them.

    `families` are the kinds of code that it is about: it has nothing to say where neither text has any.
    """

    run: Run
    severity: Gravity
    about: str
    syntaxes: frozenset[Syntax] = frozenset()
    families: frozenset[Family] = frozenset()
    locales: str = "all"
    """In words, where a check asks different things of different languages."""

    def __call__(self, pair: Pair) -> Iterator[Finding]:
        """What it has to say of a pair."""
        return iter(self.run(pair)) if self.holds(pair.syntax, pair.families) else iter(())

    def holds(self, syntax: Syntax, families: frozenset[Family]) -> bool:
        """Whether it can have something to say of two texts of this syntax that hold such code."""
        known = not self.syntaxes or syntax in self.syntaxes
        return known and not (self.families and self.families.isdisjoint(families))


CHECKS: Mapping[str, Check] = {
    "untranslated": Check(
        reading.untranslated,
        "by certainty",
        "The text is translated; names, acronyms and code may stay as they are.",
        locales="all but two locales of one language and script",
    ),
    "placeholders": Check(
        kept.placeholders,
        "error",
        "Every placeholder of the source stands in the translation, as often, and in order where only its "
        "position tells it from others; plural forms for few numbers may say the number in words.",
        families=CODE,
        locales="plural branches by CLDR",
    ),
    "icu": Check(
        kept.icu,
        "error",
        "An ICU message is well formed, and no apostrophe quotes an argument away.",
        frozenset(("icu",)),
    ),
    "markup": Check(
        kept.markup,
        "by certainty",
        "Tags and their attributes, links and their targets, code, fences and shortcodes are those of the "
        "source; only what a reader is told (alt, title, label) is translated.",
        families=CODE,
    ),
    "addresses": Check(
        kept.addresses,
        "error",
        "URLs and mail addresses stay letter by letter.",
        families=frozenset(("url",)),
    ),
    "numbers": Check(
        kept.numbers,
        "by certainty",
        "Figures are equal; how they are written is the locale's.",
        locales="decimal marks and digits by CLDR",
    ),
    "length": Check(
        reading.length,
        "by certainty",
        "The text fits where it goes, and has the size of its source.",
        locales="an East Asian letter counts as three where sizes are compared",
    ),
    "punctuation": Check(
        reading.punctuation,
        "warning",
        "The last sign is the source's, as the language writes it.",
        locales="own signs in ar, el, hi, hy, ja, zh and others; none needed in th, lo; es opens by ¿ or ¡",
    ),
    "brackets": Check(reading.brackets, "warning", "Brackets that open close."),
    "whitespace": Check(
        reading.whitespace,
        "warning",
        "Blanks at the ends are those of the source; so are line breaks, but in HTML and Markdown.",
    ),
    "doubled": Check(
        reading.doubled,
        "warning",
        "No word stands twice in a row by mistake.",
        locales="not where a doubled word is a word of its own (id, ms, tr, zh and others)",
    ),
    "controls": Check(
        kept.controls,
        "by certainty",
        "No control or direction character is added or lost.",
        locales="direction marks are usual in right-to-left texts, U+200B in th, lo, km and my",
    ),
    "script": Check(
        wording.script,
        "by certainty",
        "The text is written in the letters of its locale.",
        locales="scripts by CLDR; simplified and traditional Chinese by telling characters",
    ),
    "language": Check(
        wording.wrong_language,
        "warning",
        "The text is in the language of its locale (20 letters and more).",
        locales="those of the table of function words",
    ),
    "leaks": Check(
        conversation.leaks,
        "error",
        "Nothing of the conversation with a model is left: markers, JSON, refusals.",
        locales="refusals in 14 languages",
    ),
    "answered": Check(
        conversation.answered,
        "by certainty",
        "A question or an order is translated, and not answered or obeyed.",
    ),
    "glossary": Check(terms.glossary, "error", "Terms are translated as the glossary has them."),
    "avoided_terms": Check(
        terms.avoided_terms, "error", "No term is translated by a word that the glossary forbids for it."
    ),
    "kept_terms": Check(terms.kept_terms, "error", "Names that are not translated stay as they are."),
}
"""Name → check. `empty` stands before all of them: nothing else is asked of a blank text."""
