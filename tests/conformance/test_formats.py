"""What every file format promises, member by member, in every encoding and with every line end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest

import dragoman
from dragoman.content.documents import Rendered, choose_format, explain, open_document, render
from dragoman.content.formats.gettext import GettextCatalogue
from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.content.formats.markdown import MarkdownFormat
from dragoman.content.spans import splice
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.contracts import Format
from dragoman.model.documents import Document, Edit, Role, Text, Writing
from tests.tidy.plugins import members
from tests.tidy.source import modules

LOCALE = "pl"


@dataclass(frozen=True)
class Member:
    """A format with a small file of its own that shows what is peculiar to it."""

    format: Format
    sample: str


GETTEXT = Member(
    GettextCatalogue(),
    """\
msgid ""
msgstr ""
"Language: en\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

#. A note
#: here.c:1
#, fuzzy, c-format
#| msgid "Once %s"
msgctxt "menu"
msgid "Hello %s"
msgstr "Hi %s"

msgid "One fish"
msgid_plural "Many fish"
msgstr[0] ""
msgstr[1] ""

msgid ""
"Two "
"lines\\n"
"of “text”"
msgstr ""

#~ msgid "gone"
#~ msgstr "away"
""",
)
JSON = Member(
    JsonCatalogue(),
    """\
{
  "flat.key": "Hello {name}",
  "nested": {
    "deep": "“Quoted” text",
    "number": 12,
    "list": ["one", "two"],
    "none": null
  },
  "last": "line\\nbreak"
}
""",
)
MARKDOWN = Member(
    MarkdownFormat(),
    """\
---
title: "A “title”"
date: 2026-01-01
---

# Heading {#id}

A paragraph with `code`
over two lines.

> quote
> goes on

- item one
- item two[^1]

| a | b |
| - | - |
| x | y |

```text
not this
```

[^1]: A note.
""",
)
MDX = Member(
    MarkdownFormat(mdx=True),
    """\
import { Card } from 'cards';

# Heading “one”

<Card title="kept">
    Text in a card.
</Card>

<Tab label="kept">Text in a tab</Tab>

Last words.
""",
)
MEMBERS: Mapping[str, Member] = {"gettext": GETTEXT, "json": JSON, "markdown": MARKDOWN, "mdx": MDX}
MODULES = {"gettext", "json_catalogue", "markdown"}
FILES: Mapping[str, tuple[str, str, bytes]] = {
    "lf": ("\n", "utf-8", b""),
    "crlf": ("\r\n", "utf-8", b""),
    "bom": ("\n", "utf-8", b"\xef\xbb\xbf"),
    "utf16": ("\r\n", "utf-16-le", b"\xff\xfe"),
    "utf16be": ("\n", "utf-16-be", b"\xfe\xff"),
}


@pytest.fixture(params=sorted(MEMBERS))
def member(request: pytest.FixtureRequest) -> Member:
    return MEMBERS[request.param]


@pytest.fixture(params=sorted(FILES))
def data(request: pytest.FixtureRequest, member: Member) -> bytes:
    newline, encoding, bom = FILES[request.param]
    return bom + member.sample.replace("\n", newline).encode(encoding)


def source_of(member: Member, data: bytes) -> Document:
    return open_document(member.format, f"a{member.format.extensions[0]}", data, "source", "en")


def target_of(member: Member, data: bytes) -> Document:
    return open_document(member.format, f"b{member.format.extensions[0]}", data, "target", LOCALE)


def translated(document: Document, mark: str = "ż") -> dict[str, Text]:
    """Each text with a mark behind it, and for a plural all categories of Polish."""
    return {
        block.key: f"{block.text}{mark}"
        if block.plural is None
        else {category: f"{block.text} {category}{mark}" for category in ("one", "few", "many", "other")}
        for block in document.blocks
    }


def values(document: Document) -> dict[str, Text]:
    return {block.key: block.value for block in document.blocks}


def applied(base: bytes, rendered: Rendered) -> bytes:
    """What a stranger makes of the base with nothing but the explained edits."""
    out, at = b"", 0
    for edit in explain(rendered.edits):
        start, end, text, encoding = (edit[name] for name in ("start", "end", "text", "encoding"))
        assert isinstance(start, int)
        assert isinstance(end, int)
        out += base[at:start] + str(text).encode(str(encoding))
        at = end
    return out + base[at:]


def test_no_member_escapes_this_suite() -> None:
    house = modules(Path(dragoman.__file__).parent)
    found = {name for name in members(house) if name.startswith("content.formats.")}
    assert found == {f"content.formats.{name}" for name in MODULES}
    assert {member.format.name for member in MEMBERS.values()} == set(MEMBERS)


def test_a_file_is_known_by_its_name_and_by_no_other_member(member: Member) -> None:
    formats = [other.format for other in MEMBERS.values()]
    for extension in member.format.extensions:
        for path in (f"docs/a{extension}", f"docs/A{extension.upper()}"):
            assert [found.name for found in formats if found.detect(path, "")] == [member.format.name]
            assert choose_format(formats, path) is member.format


def test_blocks_have_unique_keys_and_places_in_file_order(member: Member, data: bytes) -> None:
    document = source_of(member, data)
    assert document.blocks
    assert len({block.key for block in document.blocks}) == len(document.blocks)
    spans = [span for block in document.blocks for span in block.spans]
    assert all(0 <= one.start <= one.end <= two.start for one, two in pairwise(spans))
    assert spans[-1].end <= len(document.text)
    assert {block.syntax for block in document.blocks} <= {"printf", "none", "icu", "markdown"}


def test_a_source_and_its_copy_as_a_target_have_the_same_keys(member: Member, data: bytes) -> None:
    assert list(values(source_of(member, data))) == list(values(target_of(member, data)))


def test_a_translation_reads_back_and_its_edits_tell_the_whole_difference(
    member: Member, data: bytes
) -> None:
    source = source_of(member, data)
    rendered = render(member.format, None, source, translated(source), LOCALE)
    assert rendered.base == "source"
    assert applied(data, rendered) == rendered.data
    assert rendered.data.startswith(source.bom)
    read = target_of(member, rendered.data)
    for key, asked in translated(source).items():
        found = dict(values(read))[key]
        if isinstance(asked, str):
            assert found == asked
        else:
            assert not isinstance(found, str)
            assert set(found.values()) <= set(asked.values())
    assert all(block.state == "" for block in read.blocks)


def test_writing_what_stands_there_changes_no_byte(member: Member, data: bytes) -> None:
    source = source_of(member, data)
    standing = render(member.format, None, source, translated(source), LOCALE).data
    target = target_of(member, standing)
    base = source_of(member, standing) if member.format.whole else source
    again = render(member.format, target, base, values(target), LOCALE)
    assert again.data == standing
    assert again.edits == ()


def test_a_field_without_a_translation_is_left_untranslated_or_stops_a_whole_file(
    member: Member, data: bytes
) -> None:
    source = source_of(member, data)
    everything = translated(source)
    for key in everything:
        part = {other: value for other, value in everything.items() if other != key}
        if member.format.whole:
            with pytest.raises(DragomanError, match="written complete or not at all") as refused:
                render(member.format, None, source, part, LOCALE)
            assert refused.value.code == "verify_failed"
            continue
        first = render(member.format, None, source, part, LOCALE)
        states = {block.key: block.state for block in target_of(member, first.data).blocks}
        in_an_array = "list/" in key
        assert states.get(key, "untranslated") == ("" if in_an_array else "untranslated")
        assert set(part) <= {other for other, state in states.items() if state == ""}
        second = render(member.format, target_of(member, first.data), source, everything, LOCALE)
        assert second.data == render(member.format, None, source, everything, LOCALE).data
        assert applied(first.data, second) == second.data


def test_an_empty_translation_over_content_is_refused(member: Member, data: bytes) -> None:
    source = source_of(member, data)
    for block in source.blocks:
        empty: Text = " \n" if block.plural is None else {"one": "x", "few": "", "many": "x", "other": "x"}
        with pytest.raises(DragomanError) as refused:
            render(member.format, None, source, translated(source) | {block.key: empty}, LOCALE)
        assert refused.value.code == "would_empty"


def test_a_translation_of_no_field_is_refused(member: Member) -> None:
    source = source_of(member, member.sample.encode())
    with pytest.raises(DragomanError, match="no field 'strange' in the source"):
        render(member.format, None, source, translated(source) | {"strange": "x"}, LOCALE)


def test_keys_of_the_target_that_the_source_lost_are_left_and_listed(member: Member) -> None:
    source = source_of(member, member.sample.encode())
    full = render(member.format, None, source, translated(source), LOCALE).data
    if member.format.whole:
        return  # rebuilt from its source: what the source lost is gone
    target = target_of(member, full)
    for block in source.blocks:
        if "list/" in block.key:
            continue
        lesser = replace(source, blocks=tuple(other for other in source.blocks if other.key != block.key))
        rendered = render(member.format, target, lesser, {}, LOCALE)
        assert (rendered.data, rendered.lost) == (full, (block.key,))


def test_bytes_that_are_no_text_are_refused_by_line(member: Member) -> None:
    broken = member.sample.encode() + b"\n\xff\n"
    with pytest.raises(DocumentError) as refused:
        open_document(member.format, "broken", broken, "source", "en")
    assert refused.value.place == f"broken:{member.sample.count(chr(10)) + 2}"
    assert "0xff" in refused.value.message


class Faulty:
    """A member that makes other edits than it should, and believes in them."""

    def __init__(self, format: Format, edits: tuple[Edit, ...]) -> None:
        self._format = format
        self._edits = edits
        self.name, self.extensions = format.name, format.extensions
        self.whole, self.renames = format.whole, format.renames

    def detect(self, path: str, head: str) -> bool:
        return self._format.detect(path, head)

    def charset(self, data: bytes) -> str | None:
        return self._format.charset(data)

    def read(self, text: str, role: Role, locale: str) -> Document:
        return self._format.read(text, role, locale)

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        writing = self._format.write(base, source, translations, locale)
        return replace(writing, text=splice(base.text, self._edits), edits=self._edits)

    def second_opinion(self, before: Document, after: Document) -> str:
        return self._format.second_opinion(before, after)


def test_a_member_that_writes_wrongly_is_found_out(member: Member) -> None:
    """Whichever text is left out, altered or written to another place: nothing is given out."""
    source = source_of(member, member.sample.encode())
    wanted = translated(source)
    edits = member.format.write(source, source, wanted, LOCALE).edits
    for index, edit in enumerate(edits):
        if edit.kind != "value":
            continue
        for text in (source.text[edit.span.start : edit.span.end], edit.text.replace("ż", "z"), "\x01"):
            wrong = (*edits[:index], replace(edit, text=text), *edits[index + 1 :])
            with pytest.raises(DragomanError) as refused:
                render(Faulty(member.format, wrong), None, source, wanted, LOCALE)
            assert refused.value.code == "verify_failed"
