"""The header of a PO file: which language it declares, which plural rule, and how to say another.

Promises that a header is changed field by field, in place, and that a new field gets a line of its own. A
rule knows the CLDR category of each of its forms, found by sampling numbers. Knows no entry but the header.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from langcodes import Language

from dragoman.content import locales
from dragoman.content.lexers.po_entries import Entry, Form, characters, escape
from dragoman.kernel.errors import LocaleError
from dragoman.model.documents import Edit, Span

FORMS_MAX = 10
"""No language has more plural forms; a header that says so is not obeyed."""

_RULE = re.compile(r"\s*nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;]+?)\s*;?\s*")
_SCRIPTS = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva", "arabic": "Arab"}
_SAMPLE = (*range(201), 1_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Field:
    """One line of a header; `span` is the place of its value, which may be empty, even without a space."""

    name: str
    value: str
    span: Span
    lead: str


@dataclass(frozen=True, slots=True)
class PluralRule:
    """`Plural-Forms`, with the name that each form has in a plural: a CLDR category.

    Where two forms share one, the last that any number reaches has it, and the others are `=n` by the
    smallest number that they are for; a form for no number has no name.
    """

    header: str
    categories: tuple[str, ...]
    names: tuple[str, ...]

    def forms(self, plural: Mapping[str, str]) -> list[str]:
        """All forms in the file's order, out of a translation by CLDR category."""
        fallback = plural.get("other", ["", *plural.values()][-1])
        return [
            plural.get(name, plural.get(category, fallback))
            for name, category in zip(self.names, self.categories, strict=True)
        ]

    def plural(self, forms: list[str]) -> dict[str, str]:
        """The forms by name; missing ones are empty."""
        padded = forms + [""] * len(self.names)
        return {name: form for name, form in zip(self.names, padded, strict=False) if name}


def declared_rule(value: str, locale: str) -> PluralRule | None:
    """The rule that a `Plural-Forms` value spells; None where it is none (a template's, or not C)."""
    match = _RULE.fullmatch(value)
    if not match or not 0 < int(match[1]) <= FORMS_MAX:
        return None
    try:
        return _rule(value.strip(), int(match[1]), match[2], locale)
    except (ValueError, ArithmeticError):
        return None


def usual_rule(locale: str) -> PluralRule:
    """The rule that new files in this locale get."""
    usual = locales.gettext_plural(locale)
    return _rule(usual.header, usual.nplurals, usual.formula, locale)


def _rule(header: str, count: int, formula: str, locale: str) -> PluralRule:
    index_of: Callable[[int], int] = gettext.c2py(formula)
    categories = locales.gettext_categories(locale, count, formula)
    smallest: dict[int, int] = {}
    for number in _SAMPLE:
        smallest.setdefault(index_of(number), number)
    keepers: dict[str, int] = {}
    for index, category in enumerate(categories):
        if index in smallest or category not in keepers:
            keepers[category] = index
    names = [
        category
        if keepers.get(category, index) == index
        else f"={smallest[index]}"
        if index in smallest
        else ""
        for index, category in enumerate(categories)
    ]
    return PluralRule(header, categories, tuple(names))


def means(declared: str, locale: str) -> bool:
    """Whether a `Language` value (`pt_BR`, `sr@latin`, `de_DE.UTF-8`) names this locale."""
    name, _, modifier = declared.partition("@")
    tag = name.partition(".")[0].replace("_", "-")
    if script := _SCRIPTS.get(modifier):
        language, _, region = tag.partition("-")
        tag = "-".join(part for part in (language, script, region) if part)
    try:
        one, other = locales.canonical(tag), locales.canonical(locale)
    except LocaleError:
        return False
    return locales.same_language(one, other) and _region(one) == _region(other)


def _region(tag: str) -> str | None:
    return Language.get(tag).maximize().territory


class Header:
    """The fields of a header entry, and the edits that change them. Without an entry there are no fields."""

    def __init__(self, text: str, entry: Entry | None, newline: str) -> None:
        self.entry = entry
        self._newline = newline
        self.fields = _fields(text, entry.forms[0]) if entry else []

    def value(self, name: str) -> str:
        """The first field of that name; empty where there is none."""
        return next((field.value for field in self.fields if field.name.lower() == name.lower()), "")

    def put(self, values: Mapping[str, str]) -> list[Edit]:
        """Edits after which these fields have these values."""
        edits: list[Edit] = []
        fresh: list[str] = []
        for name, value in values.items():
            field = next((field for field in self.fields if field.name.lower() == name.lower()), None)
            if field is None:
                fresh.append(f'"{name}: {escape(value)}\\n"')
            elif field.value != value:
                edits.append(Edit(field.span, field.lead + escape(value), "metadata", field.name))
        if fresh and self.entry:
            form = self.entry.forms[0]
            if form.text and not form.text.endswith("\n"):
                edits.append(Edit(Span(form.last - 1, form.last - 1), "\\n", "metadata"))
            text = "".join(self._newline + line for line in fresh)
            edits.append(Edit(Span(form.last, form.last), text, "metadata"))
        return edits


def _fields(text: str, form: Form) -> list[Field]:
    """`Name: value` lines; a value's place begins behind the space that follows the colon."""
    found: list[Field] = []
    line: list[tuple[str, Span]] = []
    for char, span in [*characters(text, form), ("\n", Span(form.last - 1, form.last - 1))]:
        if char != "\n":
            line.append((char, span))
            continue
        name, colon, value = "".join(char for char, _ in line).partition(":")
        if colon:
            places = [place for _, place in line[len(name) + 1 :]] + [Span(span.start, span.start)]
            lead = len(value) - len(value.lstrip(" "))
            span = Span(places[lead].start, places[-1].start)
            found.append(Field(name.strip(), value.strip(), span, "" if lead else " "))
        line = []
    return found
