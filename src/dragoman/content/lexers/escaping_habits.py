"""What a file always escapes although it need not: learned from its raw values by any kind of escape."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable


def habits(
    raws: Iterable[str], elsewhere: Iterable[str], escape: re.Pattern[str], read: Callable[[str], str]
) -> dict[str, str]:
    """Character → the one way in which it stands in `raws`, never plain; `escape` finds it, `read` reads it.

    What the raws do not have at all is spelled as `elsewhere`, in another file. Spaces keep no habit.
    """
    own, plain = _forms(raws, escape, read)
    others, _ = _forms(elsewhere, escape, read)
    return {char: form for char, form in others.items() if char not in plain} | own


def _forms(
    raws: Iterable[str], escape: re.Pattern[str], read: Callable[[str], str]
) -> tuple[dict[str, str], set[str]]:
    forms: dict[str, set[str]] = {}
    plain: set[str] = set()
    for raw in raws:
        plain.update(escape.sub("", raw))
        for match in escape.finditer(raw):
            forms.setdefault(read(match[0]), set()).add(match[0])
    mixed = plain | {"", " "}
    return {char: min(found) for char, found in forms.items() if len(found) == 1 and char not in mixed}, plain
