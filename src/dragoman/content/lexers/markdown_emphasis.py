"""Emphasis that would not show: repaired where a language without spaces takes its marks from them.

CommonMark lets `**` open or close only by what stands beside it: in `これは**「重要」**です` it does neither,
since a letter stands outside and a bracket inside. Promises to change a text only where it shows less
emphasis than its source, by the fewest signs (a zero-width space inside the marks, `*` for `_`), and only
where that helps. Emphasis within emphasis is left as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from markdown_it import MarkdownIt

_ZERO_WIDTH = "\u200b"
_PAIR = re.compile(
    r"(?<![\\*_~])(?P<run>\*{1,3}|_{1,3}|~~)(?![\s*_~])(?P<inner>[^*_~`]+?)(?<![\s\\])(?P=run)"
)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|\]\([^()\s]*\)|<[^<>]*>", re.DOTALL)
_REPAIRS_MAX = 40
_CHARS_MAX = 20_000
_PARSER = MarkdownIt("commonmark").enable("strikethrough")


def repaired(text: str, source: str) -> str:
    """The text with the emphasis of its source, as far as its own marks can show it."""
    wanted = _shown(source)
    if len(text) > _CHARS_MAX or wanted <= _shown(text):
        return text
    at = 0
    for _ in range(_REPAIRS_MAX):
        match = _PAIR.search(text, at)
        if not match:
            break
        at = match.start() + 1
        if any(code.start() < match.start() < code.end() for code in _CODE.finditer(text)):
            continue
        before = _shown(text)
        for spelled in _spellings(match["run"], match["inner"]):
            candidate = text[: match.start()] + spelled + text[match.end() :]
            after = _shown(candidate)
            if after.total() > before.total() and after <= wanted | before:
                text, at = candidate, match.start() + len(spelled)
                break
    return text


def _spellings(run: str, inner: str) -> Iterator[str]:
    """Ways to write emphasis, the smallest change first."""
    for marks in dict.fromkeys((run, run.replace("_", "*"))):
        if marks != run:
            yield f"{marks}{inner}{marks}"
        yield f"{marks}{_ZERO_WIDTH}{inner}{marks}"
        yield f"{marks}{inner}{_ZERO_WIDTH}{marks}"
        yield f"{marks}{_ZERO_WIDTH}{inner}{_ZERO_WIDTH}{marks}"


def _shown(text: str) -> Counter[str]:
    """How much emphasis of each kind a reader sees."""
    children = _PARSER.parseInline(text)[0].children or ()
    return Counter(child.type for child in children if child.type in ("strong_open", "em_open", "s_open"))
