"""GNU gettext: PO files, and the templates (POT) that become one.

Promises that only translations change, and what must change with them: `Language` and `Plural-Forms` of a
file that declared another language, the forms of a plural, the marks of a guess (`fuzzy`, `#|`). Translations
that stand in a file count only where it declares the target's language; else they are blanked first. A key is
that of MO files: context, U+0004, msgid. Obsolete entries stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from dragoman.content import locales
from dragoman.content.lexers.po_entries import Entry, Form, entries, escape, joined, messages
from dragoman.content.lexers.po_header import Header, PluralRule, declared_rule, means, usual_rule
from dragoman.content.lexers.po_rereading import obsolete_lines, reread
from dragoman.content.spans import by_place, line_spans, newline_of, splice
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Span, Syntax, Text, Writing

_CHARSET = re.compile(rb'^"Content-Type:[^"\n]*?charset=([\w.:-]+)', re.MULTILINE | re.IGNORECASE)
_PLACEHOLDERS = ("", "CHARSET", "ASCII", "US-ASCII")
_PIECE = re.compile(r"[^\n]*\n|[^\n]+")
_WORD = re.compile(r"[^ ]* +|[^ ]+")
_WRAPPED = re.compile(
    r'^[^#\r\n"]*"(?:[^"\\\r\n]|\\.)*(?:[^"\\\r\n]|\\[^n])"[ \t]*(?:\r\n|\n|\r)[ \t]*"', re.MULTILINE
)
"""A string that ends within a line of its text, and goes on on the next: the file breaks long lines."""
_COLUMNS = 79
_SYNTAXES: Mapping[str, Syntax] = {
    "python-format": "python",
    "python-brace-format": "python",
    "csharp-format": "python",
    "java-format": "icu",
    "ruby-format": "ruby",
}
"""Flags whose placeholders are not like C's; every other `…-format` is."""


@dataclass(frozen=True, slots=True)
class _File:
    """What a document remembers of its PO file: of most entries no more than their blocks do."""

    header: Header
    names: tuple[str, ...]
    """Of a plural's forms, as the blocks have them."""
    start: int
    """Where the first entry begins; the text's end where there is none."""
    marked: Mapping[str, Entry]
    """Entries with flags, former msgids or a plural, by key."""


class GettextCatalogue:
    """The format `gettext`."""

    name = "gettext"
    extensions: tuple[str, ...] = (".po", ".pot")
    whole = False
    shared = False
    renames: Mapping[str, str] = {".pot": ".po"}

    def detect(self, path: str, head: str) -> bool:
        """By extension alone, so that a broken file is refused by its line."""
        return path.lower().endswith(self.extensions)

    def charset(self, data: bytes) -> str | None:
        """What `Content-Type` says; a template's placeholder is UTF-8."""
        match = _CHARSET.search(data)
        named = match[1].decode("ascii", "replace") if match else ""
        return None if named.upper() in _PLACEHOLDERS else named

    def read(self, text: str, role: Role, locale: str) -> Document:
        """As source the msgids; as target the msgstrs, which are empty in a file of another language."""
        header = Header(
            text, next((entry for entry in entries(text) if not entry.key), None), newline_of(text)
        )
        counts = means(header.value("Language"), locale)
        rule = (counts and declared_rule(header.value("Plural-Forms"), locale)) or usual_rule(locale)
        blocks: list[Block] = []
        marked: dict[str, Entry] = {}
        for entry in messages(text):
            blocks.append(_source_block(entry) if role == "source" else _target_block(entry, rule, counts))
            if entry.flags or entry.previous or entry.plural is not None:
                marked[entry.key] = entry
        first = next(entries(text), None)
        file = _File(header, rule.names, first.start if first else len(text), marked)
        return Document(self.name, text, tuple(blocks), role, locale, extras={"file": file})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Fill msgstrs; in a target also insert the messages that it lacks."""
        writer = _Writer(base, translations, locale)
        edits = [*writer.header_edits(), *writer.entry_edits()]
        if base is not source:
            edits += writer.insertions(source)
        edits.sort(key=by_place)
        known = {block.key for block in source.blocks}
        lost = tuple(block.key for block in base.blocks if block.key not in known)
        return Writing(splice(base.text, edits), tuple(edits), lost, writer.written)

    def second_opinion(self, before: Document, after: Document) -> str:
        """A simpler reader must find the same messages and forms, and no obsolete line may differ."""
        names = _file(after).names
        found = reread(after.text)
        found.pop("", None)
        if found.keys() != {block.key for block in after.blocks}:
            return "a second reader of PO files finds other messages"
        for block in after.blocks:
            forms = found[block.key]
            if block.plural is not None:
                named = dict(zip(names, forms, strict=False))
                forms = [named.get(name, "") for name in block.plural]
            if forms != list((block.plural or {"": block.text}).values()):
                return f"a second reader of PO files finds other forms of {block.key!r}"
        if obsolete_lines(before.text) != obsolete_lines(after.text):
            return "an obsolete entry would change"
        return ""


def _source_block(entry: Entry) -> Block:
    return Block(
        key=entry.key,
        text=entry.msgid,
        spans=_spans(entry),
        plural=None if entry.plural is None else {"one": entry.msgid, "other": entry.plural},
        syntax=_syntax(entry),
        note=entry.notes,
        context=entry.context or "",
    )


def _target_block(entry: Entry, rule: PluralRule, counts: bool) -> Block:
    forms = [form.text if counts else "" for form in entry.forms]
    plural = None if entry.plural is None else rule.plural(forms)
    empty = not all(forms if plural is None else plural.values())
    return Block(
        key=entry.key,
        text=forms[0],
        spans=_spans(entry),
        plural=plural,
        syntax=_syntax(entry),
        note=entry.notes,
        context=entry.context or "",
        state="untranslated" if empty else "fuzzy" if entry.fuzzy else "",
    )


def _spans(entry: Entry) -> tuple[Span, ...]:
    return tuple(Span(form.first, form.last) for form in entry.forms)


def _syntax(entry: Entry) -> Syntax:
    """What the entry's flags declare: `python-format` and its like."""
    for _, flags in entry.flags:
        for flag in flags:
            if flag.endswith("-format") and not flag.startswith(("no-", "impossible-")):
                return _SYNTAXES.get(flag, "printf")
    return "none"


class _Writer:
    """Collects the edits of one write."""

    def __init__(self, base: Document, translations: Mapping[str, Text], locale: str) -> None:
        self._base = base
        self._text = base.text
        self._file = _file(base)
        self._locale = locale
        self._translations = translations
        self._newline = newline_of(base.text)
        self._declared = means(self._file.header.value("Language"), locale)
        kept = declared_rule(self._file.header.value("Plural-Forms"), locale) if self._declared else None
        self._rule = kept or usual_rule(locale)
        self._encoding = base.encoding
        self.written: dict[str, Text] = {}

    def header_edits(self) -> list[Edit]:
        """`Language` and `Plural-Forms` as far as they are not the target's; a charset that was left open."""
        values: dict[str, str] = {}
        if not self._declared:
            values["Language"] = locales.gettext_spelling(self._locale)
        plural = any(
            block.plural is not None for block in self._base.blocks if block.key in self._translations
        )
        if not self._declared or plural:
            values["Plural-Forms"] = self._rule.header
        header = self._file.header.entry
        if header is None:
            return self._new_header(values) if self._text.strip() or self._translations else []
        fuzzy = self._without_guess(header) if not self._declared else []
        return [*self._charset(), *self._file.header.put(values), *fuzzy]

    def _charset(self) -> Iterator[Edit]:
        """A template's placeholder is filled in; ASCII, where it is not enough, becomes UTF-8."""
        plain = self._text.isascii() and all(map(_is_ascii, self._translations.values()))
        open_names = ("CHARSET",) if plain else _PLACEHOLDERS
        for field in self._file.header.fields:
            start = field.span.start
            match = re.search(r"charset=([\w.:-]+)", self._text[start : field.span.end])
            changes = self._translations or not self._declared
            if match and changes and match[1].upper() in open_names and field.name.lower() == "content-type":
                yield Edit(
                    Span(start + match.start(1), start + match.end(1)), "UTF-8", "metadata", field.name
                )

    def _new_header(self, values: Mapping[str, str]) -> list[Edit]:
        fields = {"Content-Type": f"text/plain; charset={self._encoding.upper()}", **values}
        lines = [
            'msgid ""',
            'msgstr ""',
            *(f'"{name}: {escape(value)}\\n"' for name, value in fields.items()),
        ]
        at = self._file.start
        return [Edit(Span(at, at), self._newline.join([*lines, "", ""]), "metadata")]

    @cached_property
    def _wraps(self) -> bool:
        return bool(_WRAPPED.search(self._text))

    def entry_edits(self) -> Iterator[Edit]:
        """For each message with a translation, and for each of another language, which is blanked."""
        for block in self._base.blocks:
            forms = self._forms(block.key, block.plural is not None)
            if forms is None:
                continue
            entry = self._file.marked.get(block.key)
            yield from self._without_guess(entry) if entry else ()
            for span, new in zip(block.spans, forms, strict=False):
                if joined(self._text[span.start : span.end]) != new:
                    yield Edit(span, self._string(new, self._column(span.start)), "value", block.key)
            if entry:
                yield from self._growth(entry, forms)

    def _column(self, at: int) -> int:
        return at - max(self._text.rfind("\n", 0, at), self._text.rfind("\r", 0, at)) - 1

    def _forms(self, key: str, plural: bool) -> list[str] | None:
        """The forms that a message is to have; None where it stays as it is."""
        value = self._translations.get(key)
        if value is None:
            blank = [""] * (len(self._rule.names) if plural else 1)
            return None if self._declared else blank
        if not plural:
            if not isinstance(value, str):
                raise DragomanError(f"{key!r} has no plural, and its translation has", "verify_failed")
            self.written[key] = value
            return [value]
        forms = self._rule.forms({"other": value} if isinstance(value, str) else value)
        self.written[key] = self._rule.plural(forms)
        return forms

    def _without_guess(self, entry: Entry) -> Iterator[Edit]:
        """Take the fuzzy flag, and the former msgid that it was guessed from."""
        for line in entry.previous:
            yield Edit(Span(line.start, line.next), "", "metadata", entry.key)
        for line, flags in entry.flags:
            if rest := _flag_line(flags):
                if "fuzzy" in flags:
                    yield Edit(Span(line.start, line.end), rest, "metadata", entry.key)
            else:
                yield Edit(Span(line.start, line.next), "", "metadata", entry.key)

    def _growth(self, entry: Entry, forms: list[str]) -> Iterator[Edit]:
        """Lines for the forms that an entry has too few, or too many."""
        last = entry.forms[-1]
        if len(forms) > len(entry.forms):
            lines = [
                self._form_line(last, index, forms[index]) for index in range(len(entry.forms), len(forms))
            ]
            yield Edit(Span(last.end, last.end), self._lines_after(last.end, lines), "plural", entry.key)
        elif len(forms) < len(entry.forms):
            yield Edit(Span(entry.forms[len(forms)].start, last.end), "", "plural", entry.key)

    def _form_line(self, like: Form, index: int, text: str) -> str:
        """`msgstr[n] "…"`, as far in as the line of the form before it."""
        line = self._text[like.start : like.first]
        name = f"{line[: len(line) - len(line.lstrip())]}msgstr[{index}] "
        return name + self._string(text, len(name))

    def _lines_after(self, at: int, lines: list[str]) -> str:
        """Lines to insert at `at`, the start of a line or a file's end, which may lack its line end."""
        joined = self._newline.join(lines)
        ended = at == self._file.start or self._text.endswith(("\n", "\r"), 0, at)
        return joined + self._newline if ended else self._newline + joined

    def insertions(self, source: Document) -> Iterator[Edit]:
        """Messages that the target lacks, each behind the one that precedes it in the source."""
        ends = {entry.key: entry.end for entry in entries(self._text)}
        at = ends.get("", self._file.start)
        for entry in messages(source.text):
            if entry.key in ends:
                at = ends[entry.key]
            elif entry.key in self._translations and (
                forms := self._forms(entry.key, entry.plural is not None)
            ):
                lines = [*self._introduction(entry, source.text), *self._message(entry, forms)]
                lines = [*lines, ""] if at == self._file.start else ["", *lines]
                yield Edit(Span(at, at), self._lines_after(at, lines), "insertion", entry.key)

    def _introduction(self, entry: Entry, text: str) -> Iterator[str]:
        """The lines of a source's entry up to its msgstr, without the marks of a guess."""
        flags = {line.start: _flag_line(flags) for line, flags in entry.flags if "fuzzy" in flags}
        left_out = {line.start for line in entry.previous} | {at for at, line in flags.items() if not line}
        for start, end, _ in line_spans(text[entry.start : entry.forms[0].start]):
            at = entry.start + start
            if at not in left_out:
                yield flags.get(at, text[at : entry.start + end])

    def _message(self, entry: Entry, forms: list[str]) -> Iterator[str]:
        for index, form in enumerate(forms):
            name = "msgstr " if entry.plural is None else f"msgstr[{index}] "
            yield name + self._string(form, len(name))

    def _string(self, text: str, indent: int) -> str:
        """The text as strings: on the keyword's line if it has one line and fits, else below an empty one."""
        pieces = [escape(piece) for piece in _PIECE.findall(text)]
        if len(pieces) <= 1:
            piece = "".join(pieces)
            if indent + len(piece) + 2 <= _COLUMNS or not self._wraps:
                return f'"{piece}"'
        lines = [line for piece in pieces for line in (_filled(piece) if self._wraps else (piece,))]
        return self._newline.join(['""', *(f'"{line}"' for line in lines)])


def _filled(piece: str) -> Iterator[str]:
    """An escaped line of text in lines that fit, broken behind spaces."""
    line = ""
    for word in _WORD.findall(piece):
        if line and len(line) + len(word) + 2 > _COLUMNS:
            yield line
            line = ""
        line += word
    if line:
        yield line


def _flag_line(flags: list[str]) -> str:
    """The flags without `fuzzy`, as a line; empty where none is left."""
    rest = [flag for flag in flags if flag != "fuzzy"]
    return f"#, {', '.join(rest)}" if rest else ""


def _is_ascii(value: Text) -> bool:
    return all(map(str.isascii, (value,) if isinstance(value, str) else value.values()))


def _file(document: Document) -> _File:
    return cast(_File, document.extras["file"])
