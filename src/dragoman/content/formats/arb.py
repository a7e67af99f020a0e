"""ARB, the catalogues of Flutter: ICU messages, and beside `name` its attributes `@name`.

Promises that texts change and `@@locale` with them, and nothing else under a name with an `@`; attributes go
and come with their text. Of a name that stands twice the last counts, as for Dart's reader, and both get the
translation. Whether a project escapes with apostrophes (`use-escaping`) is not in the file: ICU's rule holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from dragoman.content import locales
from dragoman.content.catalogues.json_dialect import JsonDialect, placeholder_notes
from dragoman.content.catalogues.json_units import Shape
from dragoman.content.lexers.json_tokens import Value, spelling_of
from dragoman.model.documents import Document, Edit, Span, Syntax

_LOCALE = "@@locale"


class ArbCatalogue(JsonDialect):
    """The format `arb`."""

    name = "arb"
    extensions: tuple[str, ...] = (".arb",)
    repeats = True
    metadata_keys = (_LOCALE,)

    def shape(self, root: Value) -> Shape:
        """Strings at the top whose names have no `@`."""
        return Shape(attributed=True)

    def syntax(self, texts: Sequence[str]) -> Syntax:
        """ICU, declared by the format."""
        return "icu"

    def note(self, about: Value) -> str:
        """The description, and what is told of the placeholders."""
        return "\n".join(filter(None, (super().note(about), *placeholder_notes(about))))

    def remembered(self, root: Value) -> Mapping[str, object]:
        """Where the file names its locale."""
        declared = root.member(_LOCALE)
        return {_LOCALE: declared.value} if declared else {}

    def metadata(self, base: Document, locale: str) -> Iterator[Edit]:
        """`@@locale`, where a file has one that means another: spelled as in the names of such files."""
        declared = cast("Value | None", base.extras.get(_LOCALE))
        if declared and declared.kind == "string" and not _means(declared.text, locale):
            mark = "-" if "-" in declared.text else "_"
            span = Span(declared.start, declared.end)
            yield Edit(span, spelling_of(base.text).quoted(locale.replace("-", mark)), "metadata", _LOCALE)


def _means(declared: str, locale: str) -> bool:
    """Whether a declared locale is this one, in whatever spelling."""
    return locales.spelled_locale(declared) == locale
