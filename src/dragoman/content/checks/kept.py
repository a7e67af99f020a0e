"""Checks of what stays as it is: placeholders, markup, addresses, numbers, and what must not be added.

Promises to name what was lost as the source spells it. Knows no language but the spelling of its figures.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import unescape

from dragoman.content import locales
from dragoman.content.checks.pair import FEW_NUMBERS, Finding, Pair, Severity, Side
from dragoman.content.figures import Written, changed_figures, written_figures
from dragoman.content.plurals import icu_gaps, is_well_formed, split_icu, target_sentences
from dragoman.content.tokens import Family, Token, keeps_order, tokens
from dragoman.model.documents import Syntax


def placeholders(pair: Pair) -> Iterator[Finding]:
    """The same ones, as often; without numbers also in the same order; an ICU message branch by branch."""
    if pair.syntax == "icu" and (gaps := icu_gaps(pair.source, pair.target, pair.target_locale)) is not None:
        if gaps:
            yield Finding("placeholders", "error", f"The message lacks {', '.join(gaps)}.", gaps)
        else:
            yield from _icu_sentences(pair)
        return
    lost, more = _compared(pair, "placeholder", _raw)
    more = _without_those_at_hand(pair, more)
    if pair.may_spell_number and len(lost) == 1 and not more:
        return
    if lost or more:
        severity: Severity = "warning" if _is_pattern(pair) else "error"
        yield Finding("placeholders", severity, _told(lost, more), lost)
    bound = [
        [token.raw for token in side if keeps_order(token, pair.syntax)]
        for side in (pair.source_tokens, pair.target_tokens)
    ]
    if bound[0] != bound[1] and Counter(bound[0]) == Counter(bound[1]):
        order = " ".join(bound[0])
        yield Finding("placeholders", "error", f"Arguments without numbers changed order: {order}.")


def _without_those_at_hand(pair: Pair, more: tuple[str, ...]) -> tuple[str, ...]:
    """Added placeholders, but for those that the framework or the plural's other forms give."""
    if not more:
        return ()
    at_hand = _AT_HAND.get(pair.syntax, frozenset())
    if pair.category:
        at_hand |= {token.raw for token in tokens(pair.other, pair.syntax) if token.family == "placeholder"}
    return tuple(raw for raw in more if raw not in at_hand)


def _is_pattern(pair: Pair) -> bool:
    """Whether the source is a date's or number's pattern (`%B %d, %Y`): each locale has its own."""
    if pair.syntax not in _PATTERN_SYNTAXES or not _DIRECTIVE.search(pair.source):
        return False
    return not any(map(str.isalpha, _DIRECTIVE.sub("", pair.source)))


def _icu_sentences(pair: Pair) -> Iterator[Finding]:
    """Placeholders of each sentence; one for few numbers (`=1`, `one`) may say its number in words."""
    source, target = split_icu(pair.source), split_icu(pair.target)
    if source is None or target is None:
        return
    wanted = target_sentences(*source, pair.target_locale)
    number = source[0].number

    def arguments(sentence: str) -> Counter[str]:
        return _raws(tokens(sentence, "icu"), "placeholder", lambda token: _as_number(token.raw, number))

    for key in [key for key in wanted if key in target[1]]:
        lost, more = _difference(arguments(wanted[key]), arguments(target[1][key]))
        if any(name.startswith("=") or name in FEW_NUMBERS for name in key.split("/")):
            lost = tuple(raw for raw in lost if raw != "#")
        if lost or more:
            yield Finding("placeholders", "error", f"In {key}: {_told(lost, more)}", lost)


def _as_number(raw: str, number: str) -> str:
    """In a plural's sentence its argument and `#` are one."""
    return "#" if raw.strip("{} ") == number else raw


def icu(pair: Pair) -> Iterator[Finding]:
    """An ICU message reads as one, and no apostrophe quotes an argument away."""
    if not is_well_formed(pair.source):
        return
    if not is_well_formed(pair.target):
        yield Finding("icu", "error", "The message is not well formed: a brace or a branch is not closed.")
    present = {token.raw for token in pair.target_tokens if token.family == "placeholder"}
    for token in pair.source_tokens:
        if token.family != "placeholder" or not token.raw.startswith("{") or token.raw in present:
            continue
        if any(raw.startswith("'") and token.raw in raw for raw in present):
            said = (
                f"The argument {token.raw} is lost: apostrophes quote it. Write each apostrophe twice ('')."
            )
            yield Finding("icu", "error", said, (token.raw,))


def markup(pair: Pair) -> Iterator[Finding]:
    """Tags with their attributes, links, code, shortcodes: the same ones, as often as in the source."""
    yield from _same(pair, "markup", "tag", _tag_shape)
    yield from _same(pair, "markup", "tag", _line_break, "warning")
    yield from _links(pair)
    yield from _same(pair, "markup", "code", _raw)
    yield from _same(pair, "markup", "shortcode", _raw)
    yield from _same(pair, "markup", "entity", _escaped_markup)
    yield from _same(pair, "markup", "emphasis", _raw, "warning")
    yield from _nesting(pair)


def _links(pair: Pair) -> Iterator[Finding]:
    """Links lead where they led; `[text][]` may come back as `[translated][text]`."""
    if "link" not in pair.families:
        return
    lost, more = _difference(_raws(pair.source_tokens, "link"), _raws(pair.target_tokens, "link"))
    named = [raw for raw in more if raw.startswith("][")][: lost.count("][]")]
    lost, more = _difference(Counter(lost) - Counter({"][]": len(named)}), Counter(more) - Counter(named))
    if lost or more:
        yield Finding("markup", "error", _told(lost, more), lost)


def _nesting(pair: Pair) -> Iterator[Finding]:
    """Tags that are all there, but close where they should open."""
    if "tag" not in pair.families and "shortcode" not in pair.families:
        return
    wanted, found = (
        Counter((token.raw, token.kind) for token in side if token.family in ("tag", "shortcode"))
        for side in (pair.source_tokens, pair.target_tokens)
    )
    if wanted != found and Counter(raw for raw, _ in wanted.elements()) == Counter(
        raw for raw, _ in found.elements()
    ):
        crossed = " ".join(dict.fromkeys(raw for raw, _ in wanted - found))
        yield Finding("markup", "error", f"Tags are not nested as in the source: {crossed}.")


def addresses(pair: Pair) -> Iterator[Finding]:
    """URLs and mail addresses, letter by letter; a sample (`name@example.com`) may be made a local one."""
    lost, more = _compared(pair, "url", _raw)
    if lost or more:
        samples = bool(lost) and all(map(_SAMPLE_ADDRESS.search, lost))
        yield Finding("addresses", "warning" if samples else "error", _told(lost, more), lost)


def numbers(pair: Pair) -> Iterable[Finding]:
    """Figures are equal, each read by its own locale."""
    lost, more, sure = changed_figures(
        pair.before.fact(_figures), pair.target_words, pair.source_locale, pair.target_locale
    )
    if not (lost or more) or (pair.may_spell_number and len(lost) + len(more) == 1):
        return ()
    said = f"Numbers differ; {_told(lost, more)}"
    return (Finding("numbers", "error" if sure else "warning", said, lost),)


def _figures(side: Side) -> Written:
    return written_figures(side.words)


def controls(pair: Pair) -> Iterable[Finding]:
    """Invisible characters; a direction mark beside a Latin name is usual in a right-to-left text."""
    return () if pair.before.fact(_is_visible) and _is_visible(pair.after) else _invisible(pair)


def _is_visible(side: Side) -> bool:
    return side.text.isprintable() and _LOST not in side.text


def _invisible(pair: Pair) -> Iterator[Finding]:
    wanted, found = _CONTROL.findall(pair.source), _CONTROL.findall(pair.target)
    if pair.spoken in _BROKEN_BY_ZERO_WIDTH_SPACE:
        found = [character for character in found if character != "\u200b"]
    if wanted == found:
        return
    lost, more = _difference(Counter(wanted), Counter(found))
    if more:
        usual = locales.direction(pair.target_locale) == "rtl" and set(more) <= _USUAL_DIRECTIONS
        severity: Severity = "warning" if usual else "error"
        yield Finding("controls", severity, f"Control or direction characters were added: {_named(more)}.")
    elif lost:
        yield Finding(
            "controls", "warning", f"Control or direction characters were lost: {_named(lost)}.", lost
        )


def _named(characters: Sequence[str]) -> str:
    return ", ".join(f"U+{ord(character):04X}" for character in dict.fromkeys(characters))


_SHOWN_CHARS_MAX = 80
_LOST = "\N{REPLACEMENT CHARACTER}"
"""The only sign of these that Unicode calls printable."""
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffd\ufffe\uffff]"
    "|[\ud800-\udfff]"
)
_USUAL_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069")
"""Marks, embeddings and isolates; an override (U+202D, U+202E) is none."""
_AT_HAND: Mapping[Syntax, frozenset[str]] = {
    "ruby": frozenset(("%{attribute}", "%{model}", "%{value}", "%{count}")),
}
"""Placeholders that a framework fills in wherever they stand: Rails does in its messages of errors."""
_PATTERN_SYNTAXES: frozenset[Syntax] = frozenset(("ruby", "none"))
_DIRECTIVE = re.compile(r"%[-0^#:]?[A-Za-z]")
_SAMPLE_ADDRESS = re.compile(r"[@/.]example\.(?:com|org|net)\b|\.example\b", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<(?:br|wbr)\s*/?>", re.IGNORECASE)
_BROKEN_BY_ZERO_WIDTH_SPACE = frozenset(("th", "lo", "km", "my", "bo", "dz"))
"""Languages without spaces between words, whose lines break at U+200B."""
_SPOKEN_ATTRIBUTES = re.compile(
    r"""(\s(?:alt|title|aria-label|placeholder|label|summary)\s*=\s*)(?:"[^"]*"|'[^']*')""", re.IGNORECASE
)


def _raw(token: Token) -> str:
    return token.raw


def _line_break(token: Token) -> str:
    return token.raw if _LINE_BREAK.fullmatch(token.raw) else ""


def _tag_shape(token: Token) -> str:
    """What must be equal of a tag; a line break is a matter of layout."""
    if _LINE_BREAK.fullmatch(token.raw):
        return ""
    return _SPOKEN_ATTRIBUTES.sub(r"\1…", token.raw)


def _escaped_markup(token: Token) -> str:
    return token.raw if "<" in unescape(token.raw) or ">" in unescape(token.raw) else ""


def _raws(side: Sequence[Token], family: Family, shape: Callable[[Token], str] = _raw) -> Counter[str]:
    return Counter(shown for token in side if token.family == family and (shown := shape(token)))


def _difference(wanted: Counter[str], found: Counter[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple((wanted - found).elements()), tuple((found - wanted).elements())


def _compared(
    pair: Pair, family: Family, shape: Callable[[Token], str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What of a family the translation lacks, and what it has too many."""
    if family not in pair.families:
        return (), ()
    return _difference(_raws(pair.source_tokens, family, shape), _raws(pair.target_tokens, family, shape))


def _same(
    pair: Pair, name: str, family: Family, shape: Callable[[Token], str], severity: Severity = "error"
) -> Iterator[Finding]:
    lost, more = _compared(pair, family, shape)
    if lost or more:
        yield Finding(name, severity, _told(lost, more), lost)


def _told(lost: Sequence[str], more: Sequence[str]) -> str:
    shown = {
        what: " ".join(raw[:_SHOWN_CHARS_MAX] for raw in raws)
        for what, raws in (("missing", lost), ("too many", more))
        if raws
    }
    return "; ".join(f"{what}: {raws}" for what, raws in shown.items())
