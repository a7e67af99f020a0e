"""A text cut into tokens: words to translate, and the code between them.

Promises that the tokens' raw texts, joined, are the text again, and that opens and closes are paired and
nested. Knows nothing of markers (`protection`) or of what may change (`checks`).
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

from dragoman.content.grammar import OPENINGS, PATTERNS, SIGNS
from dragoman.model.documents import Syntax

Kind = Literal["text", "atom", "open", "close", "edge"]
Family = Literal[
    "text", "placeholder", "url", "entity", "code", "tag", "link", "emphasis", "break", "shortcode"
]

_VOID = re.compile("area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr")
_OPAQUE = re.compile("code|pre|samp|kbd|script|style|svg|math|xliff:g")
_KNOWN = re.compile(
    "a|abbr|address|article|aside|audio|b|bdi|bdo|big|blockquote|body|button|caption|center|cite|dd|del|details|dfn"
    "|div|dl|dt|em|fieldset|figcaption|figure|font|footer|form|h[1-6]|head|header|html|i|iframe|ins|label|legend"
    "|li|main|mark|nav|ol|option|p|picture|q|s|section|select|small|span|strike|strong|sub|summary|sup|table"
    "|tbody|td|textarea|tfoot|th|thead|time|title|tr|tt|u|ul|var|video"
)
_ANY_TAG: frozenset[Syntax] = frozenset(("html", "markdown", "icu", "i18next"))
_ENDS = {"<!--": "-->", "<?": "?>", "<![CDATA[": "]]>"}
_SECTION = "<![CDATA["
_TAG_NAME = re.compile(r"</?([A-Za-z0-9][\w:.-]*)?")
_NATIVE_CODE = re.compile(r"<(?:bpt|bx|ec|ept|ex|it|ph|sc|x)\s")
"""Elements of XLIFF that stand for code, and hold it: they have at least an id, unlike a component `<x>`."""
_NO_TRANSLATE = re.compile(
    r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*["'][^"']*\bnotranslate\b|\smtype\s*=\s*["']protected""",
    re.IGNORECASE,
)
_BARE_BRACE = re.compile(r"[{}]")
_BRACES: Mapping[Syntax, re.Pattern[str]] = {
    "icu": re.compile(r"''|'[{}](?:[^']|'')*+(?:'|\Z)|[{}]"),
    "fluent": re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|[{}]"),
}
"""Braces, and what may quote them."""
_UNNUMBERED = re.compile(
    r"%(?!\d+\$|[%({<])[-+0#' ]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|ll|[hlLqjzt])?[diouxXeEfFgGaAcCsSpn@bra]"
)
_UNNUMBERED_FIELD = re.compile(r"(?<!\{)\{(?:![rsa])?(?::[^{}]*)?\}(?!\})")
_TEXTS_KEPT = 64
"""A text is looked at several times in a row: to pass it by, to protect it, to check it."""
_URL_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a text. `mate` is the index of the other half of a pair, -1 elsewhere."""

    kind: Kind
    raw: str
    family: Family = "text"
    name: str = ""
    lone: Literal["text", "atom"] = "atom"
    """What an open or close is that found no mate."""
    mate: int = -1


def tokens(text: str, syntax: Syntax) -> tuple[Token, ...]:
    """Cut a text by its declared syntax. `"".join(token.raw …) == text`, always."""
    if is_plain(text, syntax):
        return (Token("text", text),) if text else ()
    return _cut(text, syntax)


def is_plain(text: str, syntax: Syntax) -> bool:
    """Whether a text surely holds words alone; one that does not may do so all the same."""
    return SIGNS[syntax].search(text) is None and not any(map(text.__contains__, OPENINGS[syntax]))


@lru_cache(maxsize=_TEXTS_KEPT)
def _cut(text: str, syntax: Syntax) -> tuple[Token, ...]:
    return _merged(_fused(_paired(list(_scanned(text, syntax)))))


def keeps_order(token: Token, syntax: Syntax) -> bool:
    """Whether code holds an argument that only its position tells from others (`%s`, Python's `{}`)."""
    if token.kind == "text":
        return False
    raw = token.raw if token.family == "placeholder" else _URL_ENCODED.sub("", token.raw)
    return bool(_UNNUMBERED.search(raw) or (syntax == "python" and _UNNUMBERED_FIELD.search(raw)))


class _Text:
    """A text under the scanner. Remembers which endings do not come any more, so that a scan stays linear."""

    def __init__(self, text: str, syntax: Syntax) -> None:
        self.text = text
        self.syntax = syntax
        self._absent: set[str] = set()

    def after(self, ending: str, start: int) -> int:
        """The offset behind the next `ending` from `start`; -1 where there is none."""
        if ending in self._absent:
            return -1
        found = self.text.find(ending, start)
        if found < 0:
            self._absent.add(ending)
            return -1
        return found + len(ending)

    @cached_property
    def braces(self) -> Mapping[int, int]:
        """Offset of each opening brace that is closed → offset behind its end; quoted braces are text."""
        ends: dict[int, int] = {}
        stack: list[int] = []
        pattern, at = _BRACES.get(self.syntax, _BARE_BRACE), 0
        while match := pattern.search(self.text, at):
            at = match.end()
            if match[0] == "{":
                stack.append(match.start())
            elif match[0] == "}" and stack:
                ends[stack.pop()] = at
            elif match[0][0] == '"' and not stack:
                at = match.start() + 1  # between placeables a quotation mark is only a sign
        return ends


_Found = Token | None
_Reader = Callable[[re.Match[str], _Text], _Found]


def _scanned(text: str, syntax: Syntax) -> Iterator[Token]:
    pattern, source = PATTERNS[syntax], _Text(text, syntax)
    plain = at = 0
    while match := pattern.search(text, at):
        read = _READERS.get(match.lastgroup or "", _placeholder)
        token = read(match, source)
        if token is None:
            at = match.start() + 1
            continue
        if match.start() > plain:
            yield Token("text", text[plain : match.start()])
        yield token
        plain = at = match.start() + len(token.raw)
    if plain < len(text):
        yield Token("text", text[plain:])


def _placeholder(match: re.Match[str], source: _Text) -> _Found:
    return Token("atom", match[0], "placeholder")


def _plain(match: re.Match[str], source: _Text) -> _Found:
    return Token("text", match[0])


def _address(match: re.Match[str], source: _Text) -> _Found:
    return Token("atom", match[0], "url")


def _code(match: re.Match[str], source: _Text) -> _Found:
    return Token("atom", match[0], "code")


def _line_break(match: re.Match[str], source: _Text) -> _Found:
    return Token("atom", match[0], "break")


def _entity(match: re.Match[str], source: _Text) -> _Found:
    return Token("atom", match[0], "entity") if html.unescape(match[0]) != match[0] else None


def _comment(match: re.Match[str], source: _Text) -> _Found:
    if match[0] == _SECTION and source.syntax == "html":
        return Token("open", _SECTION, "tag", _SECTION)
    end = source.after(_ENDS.get(match[0], ">"), match.end())
    return Token("atom", source.text[match.start() : end], "tag") if end > 0 else None


def _section_end(match: re.Match[str], source: _Text) -> _Found:
    return Token("close", match[0], "tag", _SECTION, "text")


def _wrapped_tag(match: re.Match[str], source: _Text) -> _Found:
    """A tag that fills a CDATA section of its own: `<![CDATA[<b>]]>` opens, `<![CDATA[</b>]]>` closes."""
    tag = match[0][len(_SECTION) : -len("]]>")]
    named = _TAG_NAME.match(tag)
    name = ((named[1] if named else "") or "").lower()
    alone = tag.endswith("/>") or _VOID.fullmatch(name)
    kind: Kind = "close" if tag.startswith("</") else "atom" if alone else "open"
    return Token(kind, match[0], "tag", "" if kind == "atom" else f"<{name}")


def _tag(match: re.Match[str], source: _Text) -> _Found:
    raw = match[0]
    named = _TAG_NAME.match(raw)
    name = (named[1] if named else "") or ""
    plain = name.lower()
    if raw.startswith("</"):
        return Token("close", raw, "tag", f"<{plain}", _alone(plain, source))
    if raw.endswith("/>") or _VOID.fullmatch(plain):
        return Token("atom", raw, "tag")
    native = source.syntax == "html" and _NATIVE_CODE.match(raw)
    if native or _OPAQUE.fullmatch(plain) or _NO_TRANSLATE.search(raw):
        end = source.after(f"</{name}>", match.end())
        if end > 0:
            return Token("atom", source.text[match.start() : end], "code")
    return Token("open", raw, "tag", f"<{plain}", _alone(plain, source))


def _wordpress(match: re.Match[str], source: _Text) -> _Found:
    name = match["code_known"] or match["code_full"] or match["code_bare"] or match["code_last"]
    kind: Kind = "close" if match["code_last"] else "atom" if match[0].endswith("/]") else "open"
    return Token(kind, match[0], "shortcode", f"[{name.split()[0]}")


def _cue_span(match: re.Match[str], source: _Text) -> _Found:
    return Token("open", match[0], "tag", f"<{match['cue_tag'] or match['classed']}")


def _alone(name: str, source: _Text) -> Literal["text", "atom"]:
    known = source.syntax in _ANY_TAG or any(names.fullmatch(name) for names in (_KNOWN, _OPAQUE))
    return "atom" if known else "text"


def _argument(match: re.Match[str], source: _Text) -> _Found:
    """An argument with balanced braces; also a whole ICU plural that nobody has split before."""
    end = source.braces.get(match.start())
    return Token("atom", source.text[match.start() : end], "placeholder") if end else None


def _quote(match: re.Match[str], source: _Text) -> _Found:
    return Token("text", match[0]) if match[0] == "''" else Token("atom", match[0], "placeholder")


def _fence(match: re.Match[str], source: _Text) -> _Found:
    """A code span: closed by a run of exactly as many backticks."""
    run, at = match[0], match.end()
    while (at := source.after(run, at)) > 0:
        behind = at
        while source.text.startswith("`", behind):
            behind += 1
        if behind == at and source.text[at - len(run) - 1] != "`":
            return Token("atom", source.text[match.start() : at], "code")
        at = behind
    return Token("text", run)


def _shortcode(match: re.Match[str], source: _Text) -> _Found:
    name = f"{{{{{match['short']}"
    if match["end"]:
        return Token("close", match[0], "shortcode", name)
    kind: Kind = "atom" if match["rest"].rstrip().endswith("/") else "open"
    return Token(kind, match[0], "shortcode", name)


def _link_end(match: re.Match[str], source: _Text) -> _Found:
    return Token("close", match[0], "link", "[", "text")


def _bracket(match: re.Match[str], source: _Text) -> _Found:
    if match[0] == "]":
        return Token("close", "]", "text", "[", "text")
    return Token("open", match[0], "link", "[", "text")


def _edge(match: re.Match[str], source: _Text) -> _Found:
    """A run of emphasis marks, able to open or close by CommonMark's flanking rules."""
    text, run = source.text, match[0]
    before = text[match.start() - 1] if match.start() else " "
    behind = text[match.end()] if match.end() < len(text) else " "
    left = _flanks(before, behind)
    right = _flanks(behind, before)
    if run[0] == "_":
        left, right = left and (not right or _is_mark(before)), right and (not left or _is_mark(behind))
    if not left and not right:
        return Token("text", run)
    kind: Kind = "edge" if left and right else "open" if left else "close"
    return Token(kind, run, "emphasis", run, "text")


def _flanks(outside: str, inside: str) -> bool:
    return not inside.isspace() and (not _is_mark(inside) or outside.isspace() or _is_mark(outside))


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


_READERS: Mapping[str, _Reader] = {
    "url": _address,
    "email": _address,
    "autolink": _address,
    "comment": _comment,
    "wrapped_tag": _wrapped_tag,
    "section_end": _section_end,
    "tag": _tag,
    "cue_span": _cue_span,
    "wordpress": _wordpress,
    "numbered": _tag,
    "fragment": _tag,
    "entity": _entity,
    "argument": _argument,
    "brace": _argument,
    "quote": _quote,
    "fence": _fence,
    "shortcode": _shortcode,
    "link_end": _link_end,
    "bracket": _bracket,
    "edge": _edge,
    "literal": _plain,
    "break": _line_break,
    "footnote": _code,
    "emoji": _code,
}


def _paired(found: list[Token]) -> list[Token]:
    """Give opens and closes their mates; what stays alone becomes text or an atom."""
    stack: list[int] = []
    waiting: Counter[str] = Counter()

    def drop() -> int:
        index = stack.pop()
        waiting[found[index].name] -= 1
        return index

    for index, token in enumerate(found):
        if token.kind in ("close", "edge") and waiting[token.name] and _reaches(found, stack, token):
            while found[stack[-1]].name != token.name:
                drop()
            mate = drop()
            if token.family == "text":
                continue  # brackets of prose: both halves stay text
            found[mate] = replace(found[mate], kind="open", mate=index)
            found[index] = replace(token, kind="close", mate=mate)
        elif token.kind in ("open", "edge"):
            stack.append(index)
            waiting[token.name] += 1
    return [
        Token(token.lone, token.raw, "text" if token.lone == "text" else token.family)
        if token.kind in ("open", "close", "edge") and token.mate < 0
        else token
        for token in found
    ]


def _reaches(found: list[Token], stack: list[int], token: Token) -> bool:
    """Whether a closing token sees its open: emphasis does not close across a link or a tag."""
    if token.family != "emphasis":
        return True
    for index in reversed(stack):
        if found[index].name == token.name:
            return True
        if found[index].family != "emphasis":
            return False
    return False


def _fused(found: list[Token]) -> list[Token]:
    """A CDATA section and the one element that fills it are one pair: `<![CDATA[<a>` and `</a>]]>`."""
    for index, token in enumerate(found):
        end = token.mate
        if token.kind == "open" and token.name == _SECTION and found[index + 1].mate == end - 1 > index + 1:
            found[index + 1] = replace(found[index + 1], raw=token.raw + found[index + 1].raw)
            found[end - 1] = replace(found[end - 1], raw=found[end - 1].raw + found[end].raw)
            found[index] = found[end] = Token("text", "")
    return found


def _merged(found: list[Token]) -> tuple[Token, ...]:
    """Join neighbouring texts, leave out empty ones, and mend the mates' indexes."""
    merged: list[Token] = []
    place: dict[int, int] = {}
    for index, token in enumerate(found):
        if not token.raw:
            continue
        if token.kind == "text" and merged and merged[-1].kind == "text":
            merged[-1] = replace(merged[-1], raw=merged[-1].raw + token.raw)
        else:
            merged.append(token)
        place[index] = len(merged) - 1
    return tuple(replace(token, mate=place[token.mate]) if token.mate >= 0 else token for token in merged)
