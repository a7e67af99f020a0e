"""A second look at Xcode's string catalogues, with the standard library's JSON, to check what was written.

Promises to find a language's texts on its own way, and anything beside them that differs between two files.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any


def complain(
    before: str, after: str, code: str, said: Mapping[tuple[str, tuple[str, ...]], Mapping[str, str]]
) -> str:
    """What is wrong with `after`, written over `before`; empty where nothing is.

    `said` is what it says in the language `code`, by entry and path.
    """
    earlier, later = json.loads(before), json.loads(after)
    for (key, path), forms in said.items():
        found = _forms(later["strings"][key]["localizations"][code], path)
        if found != forms:
            return f"json reads another text at {key!r}"
    if _without(earlier, code) != _without(later, code):
        return f"something beside the texts in {code} would change"
    return ""


def _forms(node: Any, path: tuple[str, ...]) -> dict[str, str]:
    for kind, name in zip(path[::2], path[1::2], strict=True):
        node = (node if kind == "substitutions" else node["variations"])[kind][name]
    if "stringUnit" in node:
        return {"": node["stringUnit"]["value"]}
    return {name: form["stringUnit"]["value"] for name, form in node["variations"]["plural"].items()}


def _without(catalogue: Any, code: str) -> Any:
    """The catalogue with nothing said in a language, and without places that are left empty by that."""
    rest = copy.deepcopy(catalogue)
    for entry in rest["strings"].values():
        localizations = entry.get("localizations", {})
        localizations.pop(code, None)
        if not localizations:
            entry.pop("localizations", None)
    return rest
