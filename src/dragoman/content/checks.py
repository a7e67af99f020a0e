"""What a translation must keep of its source: one function a check, all of them in `CHECKS`.

Promises that an `error` is a fault that no reader would accept (it blocks the result), a `warning` something
that a person should look at. Texts are whole, without markers: what `restore` gives. Knows no provider.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from typing import Literal

from dragoman.content import locales
from dragoman.content.figures import changed_figures
from dragoman.content.plurals import icu_gaps, split_icu, target_sentences
from dragoman.content.tokens import Family, Token, keeps_order, tokens
from dragoman.model.documents import Syntax

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One complaint. `message` tells a translator what to mend; `missing` names what the translation lost."""

    check: str
    severity: Severity
    message: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A source text and its translation, as the checks look at them."""

    source: str
    target: str
    syntax: Syntax
    source_locale: str
    target_locale: str
    max_length: int | None = None
    glossary: tuple[tuple[str, str], ...] = ()

    @cached_property
    def source_tokens(self) -> tuple[Token, ...]:
        """The source, cut by its syntax."""
        return tokens(self.source, self.syntax)

    @cached_property
    def target_tokens(self) -> tuple[Token, ...]:
        """The translation, cut by the same syntax."""
        return tokens(self.target, self.syntax)

    @cached_property
    def families(self) -> frozenset[Family]:
        """Every kind of code that either text holds; most texts hold none."""
        return frozenset(token.family for token in (*self.source_tokens, *self.target_tokens))

    @cached_property
    def source_words(self) -> str:
        """What a reader reads of the source: words without code, entities as their characters."""
        return _words(self.source_tokens)

    @cached_property
    def target_words(self) -> str:
        """What a reader reads of the translation."""
        return _words(self.target_tokens)


def check(
    source: str,
    target: str,
    *,
    syntax: Syntax,
    source_locale: str,
    target_locale: str,
    max_length: int | None = None,
    glossary: Sequence[tuple[str, str]] = (),
) -> tuple[Finding, ...]:
    """Everything that is wrong with a translation, errors first. `max_length` counts characters."""
    pair = Pair(source, target, syntax, source_locale, target_locale, max_length, tuple(glossary))
    blank = tuple(_empty(pair))
    if blank or not source.strip():
        return blank
    found = [finding for run in CHECKS.values() for finding in run(pair)]
    return tuple(sorted(found, key=lambda finding: finding.severity))


def _empty(pair: Pair) -> Iterator[Finding]:
    if pair.source.strip() and not pair.target.strip():
        yield Finding("empty", "error", "The translation is empty.")
    elif not pair.source.strip() and pair.target != pair.source:
        yield Finding("empty", "error", "The source is blank, and must stay as it is.")


def _untranslated(pair: Pair) -> Iterator[Finding]:
    """The source came back.

    Names, acronyms and code are equal in every language. Up to three other words, or a line of capitalised
    ones, may be a title or loan words (a warning); longer prose may not (an error).
    """
    if locales.same_language(pair.source_locale, pair.target_locale):
        return
    if " ".join(pair.source_words.split()) != " ".join(pair.target_words.split()):
        return
    words = [word for word in _WORD.findall(pair.source_words) if not _IDENTITY.fullmatch(word)]
    if not words:
        return
    uncased = sum(map(len, words)) if words[0].upper() == words[0].lower() else 0
    prose = len(words) > 3 and sum(word[0].islower() for word in words) >= 2
    severity: Severity = "error" if prose or uncased > 12 else "warning"
    yield Finding("untranslated", severity, "The translation is the source text.")


def _placeholders(pair: Pair) -> Iterator[Finding]:
    if pair.syntax == "icu" and (gaps := icu_gaps(pair.source, pair.target, pair.target_locale)) is not None:
        if gaps:
            yield Finding("placeholders", "error", f"The message lacks {', '.join(gaps)}.", gaps)
        else:
            yield from _icu_sentences(pair)
        return
    yield from _same(pair, "placeholders", "placeholder", lambda token: token.raw)
    bound = [
        [token.raw for token in side if keeps_order(token, pair.syntax)]
        for side in (pair.source_tokens, pair.target_tokens)
    ]
    if bound[0] != bound[1] and Counter(bound[0]) == Counter(bound[1]):
        yield Finding(
            "placeholders", "error", f"Arguments without numbers changed order: {' '.join(bound[0])}."
        )


def _icu_sentences(pair: Pair) -> Iterator[Finding]:
    """Placeholders of each sentence; one for few numbers (`=1`, `one`) may say its number in words."""
    source, target = split_icu(pair.source), split_icu(pair.target)
    if source is None or target is None:
        return
    wanted = target_sentences(*source, pair.target_locale)
    number = source[0].number

    def arguments(sentence: str) -> Counter[str]:
        return _raws(tokens(sentence, "icu"), "placeholder", lambda token: _as_number(token.raw, number))

    for key in wanted.keys() & target[1].keys():
        lost, more = _difference(arguments(wanted[key]), arguments(target[1][key]))
        if any(name.startswith("=") or name in _FEW_NUMBERS for name in key.split("/")):
            lost = tuple(raw for raw in lost if raw != "#")
        if lost or more:
            yield Finding("placeholders", "error", f"In {key}: {_told(lost, more)}", lost)


def _as_number(raw: str, number: str) -> str:
    """In a plural's sentence its argument and `#` are one."""
    return "#" if raw.strip("{} ") == number else raw


def _markup(pair: Pair) -> Iterator[Finding]:
    """Tags with their attributes, links, code, shortcodes: the same ones, as often as in the source."""
    yield from _same(pair, "markup", "tag", _tag_shape)
    yield from _links(pair)
    yield from _same(pair, "markup", "code", _raw)
    yield from _same(pair, "markup", "shortcode", _raw)
    yield from _same(pair, "markup", "entity", _escaped_markup)
    yield from _same(pair, "markup", "emphasis", _raw, "warning")


def _links(pair: Pair) -> Iterator[Finding]:
    """Links lead where they led; `[text][]` may come back as `[translated][text]`."""
    if "link" not in pair.families:
        return
    lost, more = _difference(_raws(pair.source_tokens, "link"), _raws(pair.target_tokens, "link"))
    named = [raw for raw in more if raw.startswith("][")][: lost.count("][]")]
    lost, more = _difference(Counter(lost) - Counter({"][]": len(named)}), Counter(more) - Counter(named))
    if lost or more:
        yield Finding("markup", "error", _told(lost, more), lost)


def _addresses(pair: Pair) -> Iterator[Finding]:
    yield from _same(pair, "addresses", "url", _raw)


def _numbers(pair: Pair) -> Iterator[Finding]:
    lost, more, sure = changed_figures(
        pair.source_words, pair.target_words, pair.source_locale, pair.target_locale
    )
    if lost or more:
        yield Finding("numbers", "error" if sure else "warning", f"Numbers differ; {_told(lost, more)}", lost)


def _length(pair: Pair) -> Iterator[Finding]:
    if pair.max_length is not None and len(pair.target) > pair.max_length:
        yield Finding(
            "length",
            "error",
            f"{len(pair.target)} characters, and no more than {pair.max_length} are allowed.",
        )
    source = _width(pair.source_words)
    if source >= 60 and not source / 4 <= _width(pair.target_words) <= source * 4:
        yield Finding("length", "warning", "The translation is far shorter or longer than its source.")


def _end(pair: Pair) -> Iterator[Finding]:
    """The last sign: `.` may be `。`, a Greek `?` is `;`, Thai and Lao sentences end with nothing."""
    source = _ending(pair.source_words, pair.source_locale)
    target = _ending(pair.target_words, pair.target_locale)
    if source != target and not (source == "." and _language(pair.target_locale) in _NO_FULL_STOP):
        shown = " and ".join(repr(sign) if sign else "no sign" for sign in (source, target))
        yield Finding("punctuation", "warning", f"Source and translation end with {shown}.")


def _brackets(pair: Pair) -> Iterator[Finding]:
    if not _BRACKET.search(pair.source_words) and not _BRACKET.search(pair.target_words):
        return
    source = unicodedata.normalize("NFKC", pair.source_words)
    target = unicodedata.normalize("NFKC", pair.target_words)
    for opens, closes in _BRACKETS:
        if source.count(opens) == source.count(closes) and target.count(opens) != target.count(closes):
            yield Finding("brackets", "warning", f"{opens} and {closes} do not pair up.")


def _whitespace(pair: Pair) -> Iterator[Finding]:
    for side, strip in (("begins", str.lstrip), ("ends", str.rstrip)):
        source, target = (
            text[len(strip(text)) :] if side == "ends" else text[: len(text) - len(strip(text))]
            for text in (pair.source, pair.target)
        )
        if source != target:
            yield Finding(
                "whitespace",
                "warning",
                f"The source {side} with {source!r}, the translation with {target!r}.",
            )
    lines = [text.strip().count("\n") for text in (pair.source, pair.target)]
    if lines[0] != lines[1] and pair.syntax not in ("html", "markdown"):
        yield Finding(
            "whitespace", "warning", f"The source has {lines[0]} line breaks, the translation {lines[1]}."
        )


def _controls(pair: Pair) -> Iterator[Finding]:
    """Invisible characters; a direction mark beside a Latin name is usual in a right-to-left text."""
    wanted, found = _CONTROL.findall(pair.source), _CONTROL.findall(pair.target)
    if wanted == found:
        return
    lost, more = _difference(Counter(wanted), Counter(found))
    names = ", ".join(f"U+{ord(character):04X}" for character in dict.fromkeys(more))
    if more:
        usual = locales.direction(pair.target_locale) == "rtl" and set(more) <= _DIRECTION_MARKS
        severity: Severity = "warning" if usual else "error"
        yield Finding("controls", severity, f"Control or direction characters were added: {names}.")
    elif lost:
        names = ", ".join(f"U+{ord(character):04X}" for character in dict.fromkeys(lost))
        yield Finding("controls", "warning", f"Control or direction characters were lost: {names}.", lost)


def _leaks(pair: Pair) -> Iterator[Finding]:
    """Our own signs, or the answer's envelope, in the text."""
    if any(pair.target.count(sign) > pair.source.count(sign) for sign in "⟦⟧"):
        yield Finding("leaks", "error", "A marker (⟦…⟧) is left in the translation.")
    if _ENVELOPE.search(pair.target) and not _ENVELOPE.search(pair.source):
        yield Finding("leaks", "error", "The translation holds JSON of the request or the answer.")
    if _REFUSAL.search(pair.target) and not _REFUSAL.search(pair.source):
        yield Finding("leaks", "error", "The answer speaks about itself instead of translating.")


def _terms(pair: Pair) -> Iterator[Finding]:
    source, target = pair.source_words.casefold(), pair.target_words.casefold()
    for term, wanted in pair.glossary:
        if re.search(rf"(?<!\w){re.escape(term.casefold())}(?!\w)", source) and not _says(
            target, wanted.casefold()
        ):
            yield Finding("glossary", "error", f"Translate {term!r} as {wanted!r}.", (wanted,))


CHECKS: Mapping[str, Callable[[Pair], Iterator[Finding]]] = {
    "untranslated": _untranslated,
    "placeholders": _placeholders,
    "markup": _markup,
    "addresses": _addresses,
    "numbers": _numbers,
    "length": _length,
    "punctuation": _end,
    "brackets": _brackets,
    "whitespace": _whitespace,
    "controls": _controls,
    "leaks": _leaks,
    "glossary": _terms,
}
"""Name → check. `empty` stands before all of them."""

_SHOWN_CHARS_MAX = 80
_FEW_NUMBERS = frozenset(("zero", "one", "two"))
_WORD = re.compile(r"[^\W\d_][\w.’'-]*", re.UNICODE)
_IDENTITY = re.compile(r"[A-Z]{1,6}s?|\w*[a-z][A-Z]\w*|\w*[\d_]\w*|\w+[.]\w+|v\d\S*", re.UNICODE)
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffd\ufffe\uffff]"
    "|[\ud800-\udfff]"
)
_DIRECTION_MARKS = frozenset("\u061c\u200e\u200f")
_ENVELOPE = re.compile(r"\{\s*\"(?:id|items|text|source_locale|target_locale)\"\s*:")
_REFUSAL = re.compile(
    r"\bas an ai (?:language )?(?:model|assistant)\b"
    r"|\bi['’]?m sorry, (?:but )?i (?:can['’]?t|cannot|am unable)\b"
    r"|\bi (?:cannot|can['’]t) (?:assist|help) with\b"
    r"|\bhere(?:['’]s| is) the translation\b",
    re.IGNORECASE,
)
_ENDINGS = {
    "。": ".",
    "।": ".",
    "።": ".",
    "\N{ARABIC FULL STOP}": ".",
    "\N{ARMENIAN FULL STOP}": ".",
    "\N{ARABIC QUESTION MARK}": "?",
}
"""Signs for a sign of ours; full-width ones are no others by NFKC."""
_NO_FULL_STOP = frozenset(("th", "lo", "km", "my"))
_BRACKET = re.compile(r"[^\w\s.,:;!?'’-]")
"""What may be a bracket, in any of its forms."""
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("「", "」"), ("【", "】"), ("《", "》"))
_SPOKEN_ATTRIBUTES = re.compile(
    r"""(\s(?:alt|title|aria-label|placeholder|label|summary)\s*=\s*)(?:"[^"]*"|'[^']*')""", re.IGNORECASE
)


def _words(side: Sequence[Token]) -> str:
    return "".join(map(_readable, side))


def _readable(token: Token) -> str:
    """What a reader sees of a token: code is a gap, unless it only styles the words around it."""
    if token.kind == "text":
        return token.raw
    if token.family == "entity":
        return unescape(token.raw)
    return "" if token.family in ("tag", "link", "emphasis") and token.kind != "atom" else " "


def _raw(token: Token) -> str:
    return token.raw


def _tag_shape(token: Token) -> str:
    return _SPOKEN_ATTRIBUTES.sub(r"\1…", token.raw)


def _escaped_markup(token: Token) -> str:
    return token.raw if "<" in unescape(token.raw) or ">" in unescape(token.raw) else ""


def _raws(side: Sequence[Token], family: Family, shape: Callable[[Token], str] = _raw) -> Counter[str]:
    return Counter(shown for token in side if token.family == family and (shown := shape(token)))


def _difference(wanted: Counter[str], found: Counter[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple((wanted - found).elements()), tuple((found - wanted).elements())


def _same(
    pair: Pair, name: str, family: Family, shape: Callable[[Token], str], severity: Severity = "error"
) -> Iterator[Finding]:
    if family not in pair.families:
        return
    lost, more = _difference(
        _raws(pair.source_tokens, family, shape), _raws(pair.target_tokens, family, shape)
    )
    if lost or more:
        yield Finding(name, severity, _told(lost, more), lost)


def _told(lost: Sequence[str], more: Sequence[str]) -> str:
    shown = {
        what: " ".join(raw[:_SHOWN_CHARS_MAX] for raw in raws)
        for what, raws in (("missing", lost), ("too many", more))
        if raws
    }
    return "; ".join(f"{what}: {raws}" for what, raws in shown.items())


def _ending(words: str, locale: str) -> str:
    """The class of a text's last sign, empty where it is none; looks through closing quotes and brackets."""
    plain = unicodedata.normalize("NFKC", words)
    at = len(plain)
    while at and (plain[at - 1] in "\"' \n" or unicodedata.category(plain[at - 1]) in ("Pe", "Pf", "Zs")):
        at -= 1
    if plain.endswith("...", 0, at):
        return "…"
    last = plain[at - 1 : at]
    if last == ";" and _language(locale) == "el":
        return "?"
    return _ENDINGS.get(last, last if last in (".", "?", "!", ":") else "")


def _language(locale: str) -> str:
    return locale.partition("-")[0]


def _width(words: str) -> int:
    """Letters, an East Asian one counted as three."""
    if words.isascii():
        return len("".join(words.split()))
    return sum(3 if unicodedata.east_asian_width(c) in "WF" else 1 for c in words if not c.isspace())


def _says(target: str, wanted: str) -> bool:
    """Whether a text uses a term; the last third of each word may be inflected."""
    return all(word[: max(3, len(word) - len(word) // 3)] in target for word in wanted.split())
