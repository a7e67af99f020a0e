"""Which languages a bilingual file says that it holds translations in: PO, XLIFF, Qt TS, string catalogues.

Promises a look at the file's own words, not at its name; empty where it says nothing, or cannot be read: the
format's reader will say why. Knows no format's structure.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping

from dragoman.content import locales

_QUOTED = r"""\s*=\s*["']([\w.@-]+)["']"""


def declared_locales(path: str, text: str) -> tuple[str, ...]:
    """The locales of the translations in a file, in its order; empty for a file of one language."""
    look = _LOOKS.get(posixpath.splitext(path.lower())[1])
    spelled = look(text) if look else ()
    known = (locales.spelled_locale(re.sub(r"\.[^@]*", "", name)) for name in spelled)
    return tuple(dict.fromkeys(filter(None, known)))


def _matching(pattern: str) -> Callable[[str], Iterator[str]]:
    compiled = re.compile(pattern, re.MULTILINE)

    def look(text: str) -> Iterator[str]:
        return (found[1] for found in compiled.finditer(text))

    return look


def _catalogue(text: str) -> Iterator[str]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return
    strings = read.get("strings") if isinstance(read, dict) else None
    for entry in strings.values() if isinstance(strings, dict) else ():
        found = entry.get("localizations") if isinstance(entry, dict) else None
        yield from (name for name in found or () if name != read.get("sourceLanguage"))


_XLIFF = _matching(rf"<(?:\w+:)?(?:file|xliff)\b[^>]*?\s(?:target-language|trgLang){_QUOTED}")
_LOOKS: Mapping[str, Callable[[str], Iterator[str]]] = {
    ".po": _matching(r'^"Language:\s*([\w.@-]+)\s*(?:\\n)?"'),
    ".xlf": _XLIFF,
    ".xliff": _XLIFF,
    ".ts": _matching(rf"<TS\b[^>]*?\slanguage{_QUOTED}"),
    ".xcstrings": _catalogue,
}
"""Extension → what finds the languages' names."""
BILINGUAL = frozenset(_LOOKS)
"""Extensions of files that hold source and translation."""
