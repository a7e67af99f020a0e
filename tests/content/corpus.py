"""Real files of the shared corpus, for tests; they are read where they lie and never committed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polib
import pytest

from dragoman.model.documents import Syntax
from tests.content.real_files import SHARED


def corpus(kind: str) -> list[Path]:
    """The files of one folder of the corpus; skips the test where there is no corpus."""
    folder = SHARED / "corpus" / kind
    if not folder.is_dir():
        pytest.skip("the shared corpus is not here: set DRAGOMANSHARED to the folder that holds it")
    return sorted(folder.iterdir())


def strings() -> Iterator[tuple[str, Syntax]]:
    """Every translatable-looking text of the JSON, ARB, PO, Markdown and HTML files with its syntax."""
    for kind, syntax in (("json", "i18next"), ("arb", "icu")):
        for path in corpus(kind):
            for text in _leaves(json.loads(path.read_text("utf-8"))):
                yield text, syntax  # type: ignore[misc]
    for path in corpus("po"):
        for entry in polib.pofile(str(path)):
            for text in filter(None, (entry.msgid, entry.msgid_plural, entry.msgstr)):
                yield text, "python" if "python-format" in entry.flags else "printf"
    for path in corpus("md"):
        yield from ((block, "markdown") for block in path.read_text("utf-8").split("\n\n"))
    for path in corpus("html"):
        yield from ((block, "html") for block in path.read_text("utf-8").split("\n\n"))


def translations() -> Iterator[tuple[str, str, str, Syntax]]:
    """Source, translation, target locale and syntax of what people translated in the PO files."""
    people = {"allauth_zh_Hant": "zh-Hant", "django_adminjs_ar": "ar", "django_conf_de": "de",
              "django_humanize_ru": "ru", "sphinx_pl": "pl"}  # fmt: skip
    for path in corpus("po"):
        for entry in polib.pofile(str(path)) if path.stem in people else ():
            if entry.msgstr and not entry.obsolete and not entry.fuzzy:
                syntax: Syntax = "python" if "python-format" in entry.flags else "printf"
                yield entry.msgid, entry.msgstr, people[path.stem], syntax


def _leaves(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _leaves(value)
    elif isinstance(node, list):
        for value in node:
            yield from _leaves(value)
