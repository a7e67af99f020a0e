"""Checks of what a reader sees: nothing empty or left over, the right size, signs and spaces in place.

Promises to ask of each language only what its own typography asks. Knows no vocabulary.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from operator import eq

from dragoman.content import locales
from dragoman.content.checks.pair import BRACKET_SIGNS, GAP, Finding, Pair, Severity, Side, language
from dragoman.content.tokens import Family


def empty(pair: Pair) -> Iterator[Finding]:
    """Something for something, nothing for nothing."""
    if pair.source.strip() and not pair.target.strip():
        severity: Severity = "error" if any(map(str.isalnum, pair.source)) else "warning"
        yield Finding("empty", severity, "The translation is empty.")
    elif not pair.source.strip() and pair.target != pair.source:
        severity = "error" if pair.target.strip() else "warning"
        yield Finding("empty", severity, "The source is blank, and must stay as it is.")


def untranslated(pair: Pair) -> Iterable[Finding]:
    """The source came back.

    Names, acronyms and code are equal in every language. Up to three other words, or a line of capitalised
    ones, may be a title or loan words (a warning); longer prose may not (an error).
    """
    if not pair.is_echo or locales.same_language(pair.source_locale, pair.target_locale):
        return ()
    words = [word for word in _WORD.findall(pair.source_words) if not _IDENTITY.fullmatch(word)]
    if not words:
        return ()
    uncased = sum(map(len, words)) if words[0].upper() == words[0].lower() else 0
    prose = len(words) > 3 and sum(word[0].islower() for word in words) >= 2
    severity: Severity = "error" if prose or uncased > 12 else "warning"
    return (Finding("untranslated", severity, "The translation is the source text."),)


def length(pair: Pair) -> Iterable[Finding]:
    """No longer than the place allows; not a quarter of the source, nor four times it."""
    if pair.max_length is None and pair.before.fact(source_width) < _MEASURED_MIN:
        return ()
    return _sizes(pair)


def _sizes(pair: Pair) -> Iterator[Finding]:
    if pair.max_length is not None and len(pair.target) > pair.max_length:
        said = f"{len(pair.target)} characters, and no more than {pair.max_length} are allowed."
        yield Finding("length", "error", said)
    source = pair.before.fact(source_width)
    if source >= _MEASURED_MIN and not source / 4 <= width(pair.target_words) <= source * 4:
        yield Finding("length", "warning", "The translation is far shorter or longer than its source.")


def width(words: str) -> int:
    """Letters, an East Asian one counted as three."""
    if words.isascii():
        return len("".join(words.split()))
    return sum(3 if unicodedata.east_asian_width(c) in "WF" else 1 for c in words if not c.isspace())


def source_width(side: Side) -> int:
    """The width of a source's words."""
    return width(side.words)


def punctuation(pair: Pair) -> Iterable[Finding]:
    """The last sign: `.` may be `。`, a Greek `?` is `;`, Thai ends with nothing; Spanish opens `¿`."""
    source = pair.before.fact(_source_ending)
    target = ending(pair.after.phrases, pair.spoken)
    if source == target and (pair.spoken != "es" or target not in ("?", "!")):
        return ()
    return _endings(pair, source, target)


def _endings(pair: Pair, source: str, target: str) -> Iterator[Finding]:
    free = _FREE_ENDINGS.get(pair.spoken, frozenset())
    if source != target and not {source, target} <= free | {""}:
        shown = " and ".join(repr(sign) if sign else "no sign" for sign in (source, target))
        yield Finding("punctuation", "warning", f"Source and translation end with {shown}.")
    if pair.spoken == "es":
        for opens, closes in (("¿", "?"), ("¡", "!")):
            if target == closes and opens not in pair.target_words:
                said = f"A Spanish sentence that ends with {closes} begins with {opens}."
                yield Finding("punctuation", "warning", said)


def _source_ending(side: Side) -> str:
    return ending(side.phrases, language(side.locale))


def ending(words: str, spoken: str) -> str:
    """The class of a text's last sign, empty where it is none; looks through closing quotes and brackets."""
    last = words[-1:]
    if spoken != "hy" and last.isalnum() and last.isascii():
        return ""  # nothing composes with a sign of ASCII before it: it is the last by NFKC as well
    plain = words if words.isascii() else unicodedata.normalize("NFKC", words)
    at = len(plain)
    while at and (plain[at - 1] in "\"' \n" or unicodedata.category(plain[at - 1]) in ("Pe", "Pf", "Zs")):
        at -= 1
    if plain.endswith("...", 0, at):
        return "…"
    last = plain[at - 1 : at]
    if spoken == "hy" and (sign := _SAID_WITHIN.search(plain, 0, at)):
        return _ENDINGS[sign[0]]
    own = _OWN_ENDINGS.get(spoken, {})
    return own.get(last, _ENDINGS.get(last, last if last in (".", "?", "!", ":", "…") else ""))


def brackets(pair: Pair) -> Iterable[Finding]:
    """What pairs up in the source pairs up in the translation."""
    if pair.families.isdisjoint(_SPELLED) and pair.before.is_quiet and pair.after.is_quiet:
        return ()
    if not _BRACKET.search(pair.source_words) and not _BRACKET.search(pair.target_words):
        return ()
    return _unpaired(pair)


def _unpaired(pair: Pair) -> Iterator[Finding]:
    source = unicodedata.normalize("NFKC", pair.source_words)
    target = unicodedata.normalize("NFKC", pair.target_words)
    for opens, closes in _BRACKETS:
        if source.count(opens) == source.count(closes) and target.count(opens) != target.count(closes):
            yield Finding("brackets", "warning", f"{opens} and {closes} do not pair up.")


def whitespace(pair: Pair) -> Iterable[Finding]:
    """The same blanks at the ends, and as many line breaks where they mean something."""
    source, target = pair.source.strip(), pair.target.strip()
    stripped = len(source) < len(pair.source) or len(target) < len(pair.target)
    if stripped or source.count("\n") != target.count("\n"):
        return _blanks(pair, source, target)
    return ()


def _blanks(pair: Pair, source: str, target: str) -> Iterator[Finding]:
    yield from _ends(pair)
    lines = [text.count("\n") for text in (source, target)]
    if lines[0] != lines[1] and pair.syntax not in ("html", "markdown"):
        said = f"The source has {lines[0]} line breaks, the translation {lines[1]}."
        yield Finding("whitespace", "warning", said)


def _ends(pair: Pair) -> Iterator[Finding]:
    for side, strip in (("begins", str.lstrip), ("ends", str.rstrip)):
        source, target = (
            text[len(strip(text)) :] if side == "ends" else text[: len(text) - len(strip(text))]
            for text in (pair.source, pair.target)
        )
        if source != target:
            said = f"The source {side} with {source!r}, the translation with {target!r}."
            yield Finding("whitespace", "warning", said)


def doubled(pair: Pair) -> Iterable[Finding]:
    """`the the`; not where a language doubles words to mean something, nor where the source does it."""
    said = pair.said
    if len(set(said)) == len(said) or not any(map(eq, said, said[1:])):
        return ()
    return () if _REDUPLICATING.fullmatch(pair.spoken) else _twice(pair)


def _twice(pair: Pair) -> Iterator[Finding]:
    usual = _DOUBLED.get(pair.spoken, frozenset())
    found = [
        word[1]
        for word in _TWICE.finditer(pair.target_phrases)
        if not (word[1].casefold() in usual or _ECHOES.fullmatch(word[1].casefold()) or _is_name(word))
    ]
    if found and len(found) > len(_TWICE.findall(pair.source_phrases)):
        yield Finding("doubled", "warning", f"A word stands twice in a row: {found[0]} {found[0]}.")


def _is_name(twice: re.Match[str]) -> bool:
    return twice[1][0].isupper() and twice[2][0].isupper()


_MEASURED_MIN = 60
_WORD = re.compile(r"[^\W\d_][\w.’'-]*", re.UNICODE)
_IDENTITY = re.compile(r"[A-Z]{1,6}s?|\w*[a-z][A-Z]\w*|\w*[\d_]\w*|\w+[.]\w+|v\d\S*", re.UNICODE)

_ENDINGS = {
    "。": ".",
    "।": ".",
    "॥": ".",
    "።": ".",
    "။": ".",
    "។": ".",
    "\N{ARABIC FULL STOP}": ".",
    "\N{ARMENIAN FULL STOP}": ".",
    "\N{ARABIC QUESTION MARK}": "?",
    "\N{ETHIOPIC QUESTION MARK}": "?",
    "\N{ARMENIAN QUESTION MARK}": "?",
    "\N{ARMENIAN EXCLAMATION MARK}": "!",
}
"""Signs for a sign of ours; full-width ones are no others by NFKC."""
_SAID_WITHIN = re.compile(r"[՞՜](?=\S*\Z)")
"""Armenian asks and calls within the last word."""
_OWN_ENDINGS = {"el": {";": "?"}, "hy": {":": "."}}
_FREE_ENDINGS = {
    **dict.fromkeys(("th", "lo"), frozenset(".?!")),
    **dict.fromkeys(("km", "my", "bo", "dz", "ja"), frozenset(".")),
}
"""Signs that a sentence of these languages may end with or not; in Japanese, `。` at an interface's text."""
_BRACKET = re.compile(f"[{BRACKET_SIGNS}]")
_SPELLED: frozenset[Family] = frozenset(("entity",))
"""Code whose readable form has other signs than its own."""
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("「", "」"), ("『", "』"), ("【", "】"), ("《", "》"))

_TWICE = re.compile(rf"(?<![\w{GAP}’'-])([^\W\d_]{{2,}})[^\S\n]*\n?[^\S\n]+(?i:(\1))(?![\w{GAP}’'-])")
_REDUPLICATING = re.compile(
    "af|az|bcl|bg|bn|bo|ceb|dz|fa|fil|gu|ha|hi|ht|hy|id|ilo|ja|jv|ka|kk|km|kn|ko|ku|ky|lo|mg|mi|ml|mn|mr|ms|my"
    "|ne|or|pa|ps|rw|sd|si|sm|sn|su|sw|ta|te|tg|th|tk|tl|to|tr|tt|ug|ur|uz|vi|yo|zh|zu"
)
"""Languages in which a word said twice is a word of its own (`kupu kupu`, `yavaş yavaş`)."""
_DOUBLED = {
    "da": frozenset(("der", "at", "det")),
    "de": frozenset(("der", "die", "das", "den", "dem", "sie", "ihr", "es")),
    "en": frozenset(("that", "had")),
    "fr": frozenset(("nous", "vous", "si")),
    "it": frozenset(("piano", "via", "poco", "man", "quasi", "mano")),
    "nl": frozenset(("die", "dat", "je", "ze", "zij", "het")),
    "sv": frozenset(("det", "att", "som")),
}
"""Words that a sentence may well hold twice in a row: `Sagen Sie, ob die die richtige ist`."""
_ECHOES = re.compile(
    "bla|blah|bye|cha|cin|ciao|haha|ha|hello|hey|hi|hmm|ho|hop|hush|ja|knock|la|long|many|no|non|ok|oh|ole|please"
    "|pst|so|sí|si|sì|tick|tsk|very|wow|yes|yo|да|нет|очень|ха"
)
"""Said twice by anybody."""
