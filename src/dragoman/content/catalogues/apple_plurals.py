"""Plural forms as Apple's files name them, and as CLDR does.

Promises that a form for zero which a language's plurals do not have (Apple looks it up all the same, for
exactly 0) is `=0` inside and `zero` on disk, and that forms which Apple does not know are left out there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from dragoman.content import locales
from dragoman.model.documents import Text

CATEGORIES = ("zero", "one", "two", "few", "many", "other")
"""In CLDR's order."""

_Form = TypeVar("_Form")


def inside(forms: Mapping[str, _Form], locale: str) -> dict[str, _Form]:
    """The forms of a file, by the names that they have in a document."""
    exact = "zero" not in locales.plural_categories(locale)
    return {"=0" if exact and name == "zero" else name: form for name, form in forms.items()}


def on_disk(value: Text, locale: str) -> dict[str, str]:
    """The forms of a text, by the names that they have in a file; a text without forms is `other`."""
    forms = {"other": value} if isinstance(value, str) else dict(value)
    if "=0" in forms and "zero" not in locales.plural_categories(locale):
        forms["zero"] = forms["=0"]
    return {name: forms[name] for name in CATEGORIES if name in forms}
