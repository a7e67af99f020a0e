"""What counts as code inside a text, by declared syntax: one table of patterns a syntax.

Promises only where such things *may* begin and end; `tokens` pairs and judges them. Some spellings are
unmistakable (`{{name}}`, `%1$s`, URLs, HTML tags) and are in every table; ambiguous ones (`{name}`, `%i`,
`*`) only where the file's syntax says so. `100% done` and `5 % de` hold no placeholder in any of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.model.documents import Syntax

_URL_CHARACTER = r"(?:[A-Za-z0-9\-._~:/?#@!$&'*+,;=%{}]|\((?:[A-Za-z0-9\-._~:/?#@!$&'*+,;=%{}])*\))"
_URL = (
    r"\b(?:(?:https?|ftp|wss?)://|mailto:|www\.(?=[\w-]+\.))"
    rf"(?:(?!&(?:quot|apos|lt|gt|nbsp|\#39);){_URL_CHARACTER})*"
    r"(?:[A-Za-z0-9\-/#=+$&%@]|\([A-Za-z0-9\-._~:/?\#@!$&'*+,;=%{}]*\))"
)
_EMAIL = (
    r"(?<![A-Za-z0-9.+_-])[A-Za-z0-9.+_-]{1,64}+@[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}+)*\.[A-Za-z]{2,}"
)

_SIZE = r"(?:[-+0\#]|'[^A-Za-z\s]|')*+(?:\d+|\*)?+(?:\.(?:\d+|\*))?+(?:hh|ll|[hlLqjzt])?"
_PRINTF = rf"(?:(?:\d{{1,2}}\$)?{_SIZE}(?:[diouxXeEfFgGaAcCsSpn@b]|<PRI\w+>))"
_PERCENT = r"%%"
_SURE_PRINTF = rf"%\d{{1,2}}\${_SIZE}[A-Za-z@]|(?<![\w%])%(?:[sdiu@]|ll?[du]|\.\d+f)(?!\w)"
_NAMED_PERCENT = rf"%\([^()\s%]+\){_SIZE}[diouxXeEfFgGcrsa]|%\{{[^{{}}\n]+\}}"
_TEMPLATE = (
    r"\{\{\{[^{}\n]*\}\}\}|\{\{(?!\{)[^{}\n]*\}\}|\{%(?:[^%\n]|%(?!\}))*+%\}|<%(?:[^%\n]|%(?!>))*+%>"
    r"|\$\{[^{}\n]*\}|\$[A-Za-z][A-Za-z0-9_@]*\$"
)
_QUOTED = r"\"[^\"]*\"|'[^']*'"
_TAG = (
    r"</?[A-Za-z][A-Za-z0-9:._-]*+"
    rf"(?:\s++(?:\{{[^{{}}\n]*\}}|[^\s\"'<>/=]++(?:\s*+=\s*+(?:{_QUOTED}|\{{[^{{}}\n]*\}}|[^\s\"'=<>`]++))?))*+"
    r"\s*+/?>"
)
_NUMBERED_TAG = r"</?\d{1,3}\s?/?>|<>|</>"
_COMMENT = r"<!--|<\?|<!\[CDATA\[|<![A-Za-z]"
_ENTITY = (
    r"&lt;(?=[A-Za-z/!])(?:[^&<>\n]|&(?![lg]t;)){1,200}+&gt;"
    r"|&(?:\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
)

_WORDPRESS = (
    r"\[(?P<code_known>gallery|playlist|[a-z][a-z0-9]*_\w+(?:[\s/][^\[\]<>]*)?)\]"
    rf"|\[(?P<code_full>[a-z][\w-]*)(?:\s+[\w-]+=(?:{_QUOTED}|[^\s\"'<>\[\]]+))++\s*/?\]"
    r"|\[(?P<code_bare>[a-z][\w-]*)\](?=[^\[\]]{0,400}\[/(?P=code_bare)\])|\[/(?P<code_last>[a-z][\w-]*)\]"
)
"""Shortcodes: with attributes or an end, of a name with `_`, two of WordPress'. `[loud music]` is a text."""
_SEO_VARIABLE = r"%%[a-z_]+%%|(?<![\w%])%[a-z_]{3,}%(?![\w%])"
_SUBTITLE = r"\{\\[A-Za-z][^{}\n]*\}|<(?:\d{2,}:)?\d\d:\d\d\.\d{3}>"
"""`{\\an8}` places a subtitle, `<00:19.000>` times its words."""
_CUE_SPAN = r"<(?P<cue_tag>v)(?:\.[\w.-]+)?[ \t][^<>&\n]+>|<(?P<classed>[bciuv]|rt|ruby)\.[\w.-]+>"
"""Spans of WebVTT that are no tags of HTML: a voice with its name, and classes behind a dot."""

_EVERYWHERE = (
    ("url", _URL),
    ("email", _EMAIL),
    ("comment", _COMMENT),
    ("tag", _TAG),
    ("entity", _ENTITY),
    ("placeholder", rf"{_NAMED_PERCENT}|{_TEMPLATE}|{_SURE_PRINTF}"),
)

_DESTINATION = (
    r"\(\s*(?:<[^<>\n]*>|(?>\{\{[^}\n]*\}\}|\{%[^%\n]*%\}|\\.|\((?:[^\s()\\]|\\.)*+\)|[^\s()\\])*+)"
    r"(?:\s+(?:\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\)))?\s*\)"
)
_MARKDOWN = (
    ("break", r"(?: {2,}|\\)\r?\n\s*"),
    ("literal", r"\\[!-/:-@\[-`{-~]"),
    ("fence", r"`+"),
    ("shortcode", r"\{\{[<%]-?\s*(?P<end>/?)\s*(?P<short>[\w./-]+)(?P<rest>[^\n]*?)[>%]\}\}"),
    ("autolink", rf"<(?:[A-Za-z][A-Za-z0-9+.-]{{1,31}}:[^\s<>]*|{_EMAIL})>"),
    ("footnote", r"\[\^[^\]\s]+\]|\[![A-Z]{3,12}\]"),
    ("link_end", rf"\]{_DESTINATION}|\]\[[^\]\[\n]*\]"),
    ("bracket", r"!?\[|\]"),
    ("edge", r"\*+|_+|~~"),
    ("emoji", r"(?<![\w:]):[a-z][a-z0-9_+-]*:(?![\w:])"),
    ("brace", r"\{(?!\{)"),
)

_TABLES: Mapping[Syntax, tuple[tuple[str, str], ...]] = {
    "none": _EVERYWHERE,
    "html": (
        ("wordpress", _WORDPRESS),
        ("seo", _SEO_VARIABLE),
        ("subtitle", _SUBTITLE),
        ("cue_span", _CUE_SPAN),
        ("wrapped_tag", rf"<!\[CDATA\[{_TAG}\]\]>"),
        ("section_end", r"\]\]>"),
        *_EVERYWHERE,
        ("named", r"\{(?:[A-Za-z_][\w.]*|\d{1,2})\}"),
    ),
    "printf": (
        ("percent", _PERCENT),
        ("apple", r"%(?:\d{1,2}\$)?(?:#@\w+@|arg(?![A-Za-z]))"),
        ("printf", rf"(?<!\d)%{_PRINTF}|(?<=\d)%{_PRINTF}(?![A-Za-z])"),
        ("qt", r"(?<!\d)%L?[1-9]\d?(?![\d$%])"),
        *_EVERYWHERE,
    ),
    "python": (
        ("percent", _PERCENT),
        ("template", _TEMPLATE),
        ("printf", rf"(?<!\d)%{_SIZE}[diouxXeEfFgGcrsa]|(?<=\d)%{_SIZE}[diouxXeEfFgGcrsa](?![A-Za-z])"),
        (
            "field",
            r"\{(?:[A-Za-z_]\w*|\d+)?(?:\.\w+|\[[^\[\]{}]*\])*+(?:![rsa])?(?:,\s*-?\d{1,4})?"  # .NET aligns
            r"(?::(?:[^{}]|\{\w*\})*+)?\}|\{\{|\}\}",
        ),
        *_EVERYWHERE,
    ),
    "icu": (
        ("quote", r"''|'[{}<#](?:[^']|'')*+(?:'|\Z)"),
        ("argument", r"\{(?=\s*\w)"),
        ("number", r"(?<!&)\#"),
        ("numbered", _NUMBERED_TAG),
        *_EVERYWHERE,
    ),
    "i18next": (("nesting", r"\$t\((?:[^()]|\([^()]*\))*+\)"), ("numbered", _NUMBERED_TAG), *_EVERYWHERE),
    "ruby": (
        ("percent", _PERCENT),
        ("ruby", r"%\{[^{}\n]+\}|%<\w+>[-+0\# ]*\d*(?:\.\d+)?[A-Za-z]"),
        *_EVERYWHERE,
    ),
    "fluent": (("argument", r"\{"), *_EVERYWHERE),
    "markdown": (*_MARKDOWN, ("fragment", r"<>|</>"), *_EVERYWHERE),
}

PATTERNS: Mapping[Syntax, re.Pattern[str]] = {
    syntax: re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in table), re.ASCII | re.DOTALL)
    for syntax, table in _TABLES.items()
}

_SIGNS_EVERYWHERE = "%&$<{@"
_SIGNS: Mapping[Syntax, str] = {
    "html": r"\[",
    "python": r"}",
    "icu": r"'#",
    "markdown": r"\[\]\n\\`*_~:",
}
_OPENINGS_EVERYWHERE = ("://", "mailto:", "www.")

SIGNS: Mapping[Syntax, re.Pattern[str]] = {
    syntax: re.compile(f"[{_SIGNS_EVERYWHERE}{_SIGNS.get(syntax, '')}]") for syntax in _TABLES
}
OPENINGS: Mapping[Syntax, tuple[str, ...]] = {
    syntax: (*_OPENINGS_EVERYWHERE, "]]>") if syntax == "html" else _OPENINGS_EVERYWHERE for syntax in _TABLES
}
"""What every piece of code has something of: a text without these signs and without these openings is nothing
but words. A class of signs alone is looked for ten times as fast as a choice of words.
"""
