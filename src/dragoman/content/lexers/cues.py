"""Cues of subtitles: where each one's text stands, in SubRip and in WebVTT.

Promises that numbers, identifiers, times, settings and whatever is no cue are never part of a text, that an
empty cue is no text, and that a fitted translation cannot end its cue early: empty lines are taken out (they
would end it), an arrow is refused (it would begin another). Wraps no line: where a line breaks is a
translator's choice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from dragoman.content.spans import line_spans, newline_of, splice
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Block, Document, Edit, Span, Text, Writing

NOTE = (
    "subtitle: no more lines than here, each of at most 42 characters (16 in Chinese, Japanese and Korean), "
    "no empty line"
)
ARROW = "-->"

_CLOCK = r"(?:\d{1,4}:)?\d{1,2}:\d{1,2}(?:[.,:]\d{1,3})?"
_TIMES = re.compile(rf"\s*(?P<start>{_CLOCK})\s*-->\s*{_CLOCK}(?:\s.*)?", re.ASCII)
_VTT_CLOCK = r"(?:\d{2,}:)?\d\d:\d\d\.\d{3}"
_VTT_TIMES = re.compile(rf"[ \t]*(?P<start>{_VTT_CLOCK})[ \t]*-->[ \t]*{_VTT_CLOCK}(?:[ \t].*)?", re.ASCII)
_COMMENT = re.compile(r"NOTE(?:[ \t](.*))?")
_SHEET = re.compile(r"(?:STYLE|REGION)[ \t]*")
_NEWLINE = re.compile(r"\r\n|\n|\r")
_NEIGHBOUR_CHARS_MAX = 160


@dataclass(slots=True)
class Cue:
    """One cue: its number or identifier, its start time as spelled, and the place of its text."""

    name: str
    start: str
    span: Span
    note: str = ""


class _Lines:
    """The lines of a file, by index."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = line_spans(text)
        self.rows = [text[start:end] for start, end, _ in self._spans]

    def __len__(self) -> int:
        return len(self.rows)

    def span(self, first: int, last: int) -> Span:
        """Of the text of lines `first` to `last`, `last` excluded; where none is, an empty place."""
        if first < last:
            return Span(self._spans[first][0], self._spans[last - 1][1])
        at = self._spans[first][0] if first < len(self._spans) else len(self._text)
        return Span(at, at)

    def until(self, first: int, stops: Callable[[int], bool]) -> int:
        """The first line from `first` that `stops` is true of."""
        return next((index for index in range(first, len(self.rows)) if stops(index)), len(self.rows))


def subrip_cues(text: str) -> list[Cue]:
    """The cues of a SubRip file. Text behind an empty line belongs to the cue before it."""
    lines = _Lines(text)
    rows = lines.rows
    cues: list[Cue] = []
    at = 0

    def blank(index: int) -> bool:
        return not rows[index].strip()

    def begins(index: int) -> bool:
        numbered = rows[index].strip().isdecimal() and index + 1 < len(rows)
        return bool(_TIMES.fullmatch(rows[index]) or (numbered and _TIMES.fullmatch(rows[index + 1])))

    while (at := lines.until(at, lambda index: not blank(index))) < len(lines):
        times = _TIMES.fullmatch(rows[at])
        name = ""
        if not times and begins(at):
            name, times, at = rows[at].strip(), _TIMES.fullmatch(rows[at + 1]), at + 1
        end = lines.until(at + 1, lambda index: blank(index) or begins(index))
        if times:
            cues.append(Cue(name, times["start"], lines.span(at + 1, end)))
        else:
            _refuse_stray(rows[at], at + 1, bool(cues))
            last, more = cues[-1], lines.span(at, end)
            last.span = Span(last.span.start if last.span.start < last.span.end else more.start, more.end)
        at = end
    return cues


def _refuse_stray(row: str, line: int, behind_a_cue: bool) -> None:
    """What stands where a cue may begin and is none can be only the rest of the text before it."""
    if ARROW in row or row.strip().isdecimal() or not behind_a_cue:
        raise DocumentError(
            f"a cue is expected here: its number, then its time as `00:00:01,000 {ARROW} 00:00:02,000`", line
        )


def webvtt_cues(text: str) -> list[Cue]:
    """The cues of a WebVTT file, as its specification finds them; `NOTE` comments go to the cue behind."""
    lines = _Lines(text)
    rows = lines.rows
    if not rows or not re.fullmatch(r"WEBVTT(?:[ \t].*)?", rows[0]):
        raise DocumentError("a WebVTT file begins with the line `WEBVTT`", line=1)
    cues: list[Cue] = []
    notes: list[str] = []

    def ends(index: int) -> bool:
        return not rows[index] or ARROW in rows[index]

    at = lines.until(1, ends)
    while (at := lines.until(at, lambda index: bool(rows[index]))) < len(lines):
        name = ""
        if ARROW not in rows[at]:
            end = lines.until(at, ends)
            if comment := _COMMENT.fullmatch(rows[at]):
                end = lines.until(at, lambda index: not rows[index])
                notes.append(" ".join([comment[1] or "", *rows[at + 1 : end]]).strip())
            if (
                comment
                or _SHEET.fullmatch(rows[at])
                or end != at + 1
                or not rows[end : end + 1]
                or not rows[end]
            ):
                at = end  # nothing that a player shows
                continue
            name, at = rows[at], end
        times = _VTT_TIMES.fullmatch(rows[at])
        if not times:
            raise DocumentError(f"a time is written `00:01.000 {ARROW} 00:02.000`", line=at + 1)
        end = lines.until(at + 1, ends)
        cues.append(Cue(name, times["start"], lines.span(at + 1, end), "\n".join(filter(None, notes))))
        notes.clear()
        at = end
    return cues


def blocks(text: str, cues: Iterable[Cue]) -> Iterator[Block]:
    """A block for each cue with a text; its key is the identifier or, since numbers move, the start time."""
    shown = [(cue, _NEWLINE.sub("\n", text[cue.span.start : cue.span.end])) for cue in cues]
    shown = [(cue, words) for cue, words in shown if words.strip()]
    seen: Counter[str] = Counter()
    for index, (cue, words) in enumerate(shown):
        named = "" if cue.name.strip().isdecimal() else cue.name.strip().replace("~", "~0").replace("/", "~1")
        name = named or cue.start
        seen[name] += 1
        before = f"before: {_short(shown[index - 1][1])}" if index else ""
        after = f"after: {_short(shown[index + 1][1])}" if index + 1 < len(shown) else ""
        yield Block(
            key=name if seen[name] == 1 else f"{name}/{seen[name]}",
            text=words,
            spans=(cue.span,),
            syntax="html",
            note="\n".join(filter(None, (cue.note, NOTE))),
            context="\n".join(filter(None, (before, after))),
        )


def write(base: Document, translations: Mapping[str, Text]) -> Writing:
    """The source's file with the texts of its cues replaced."""
    newline = newline_of(base.text)
    edits: list[Edit] = []
    written: dict[str, Text] = {}
    for block in base.blocks:
        if block.key in translations:
            written[block.key] = fitted = _fitted(block, translations[block.key])
            if fitted != block.text:
                edits.append(Edit(block.spans[0], fitted.replace("\n", newline), "value", block.key))
    return Writing(splice(base.text, edits), tuple(edits), (), written)


def _fitted(block: Block, value: Text) -> str:
    """A translation as it can stand in its cue; the text that stands there already may stay as it is."""
    if not isinstance(value, str):
        raise DragomanError(
            f"the cue {block.key!r} is one text, and its translation has plural forms", "verify_failed"
        )
    if value == block.text:
        return value
    if ARROW in value:
        raise DragomanError(
            f"the cue {block.key!r} cannot hold `{ARROW}`, which would begin another", "verify_failed"
        )
    return "\n".join(filter(str.strip, _NEWLINE.split(value)))


def complaint(before: Document, after: Document, ends_at_blank: bool) -> str:
    """What a reader that knows nothing but arrows holds against `after`; empty where nothing."""
    old, new = (_by_arrows(document.text, ends_at_blank) for document in (before, after))
    if [rest for rest, _ in old] != [rest for rest, _ in new]:
        return "a time, an identifier or something beside the cues would change"
    shown = [words for _, words in new if "".join(words).strip()]
    if shown != [list(filter(str.strip, block.text.split("\n"))) for block in after.blocks]:
        return "a second reader of subtitles finds other texts"
    return ""


def _by_arrows(text: str, ends_at_blank: bool) -> list[tuple[list[str], list[str]]]:
    """For each line with an arrow: itself and what belongs to no text up to the next one, and its text."""
    rows = _NEWLINE.split(text)
    arrows = [index for index, row in enumerate(rows) if ARROW in row]
    found: list[tuple[list[str], list[str]]] = [(rows[: arrows[0]] if arrows else rows, [])]
    for start, end in zip(arrows, [*arrows[1:], len(rows)], strict=True):
        body = rows[start + 1 : end]
        if ends_at_blank:
            cut = body.index("") if "" in body else len(body)
            rest = body[cut:]
            body = body[:cut]
        else:
            numbered = end < len(rows) and bool(body) and body[-1].strip().isdecimal()
            rest = [body.pop()] if numbered else []
        found.append(([rows[start], *rest], list(filter(str.strip, body))))
    return found


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _NEIGHBOUR_CHARS_MAX else line[: _NEIGHBOUR_CHARS_MAX - 1] + "…"
