"""What every file format promises, member by member, in every encoding and with every line end."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dragoman
from dragoman.content.documents import Rendered, choose_format, explain, open_document, render
from dragoman.content.spans import splice
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.contracts import Format
from dragoman.model.documents import Document, Edit, Role, Text, Writing
from dragoman.wiring import catalogue
from tests.conformance.formats.member import Member
from tests.tidy.plugins import members
from tests.tidy.source import modules

LOCALE = "pl"
ODDITIES = (*"\r\t\"'\\{}<>&%#\0\u2028\ud800", "", "\n\n", "]]>", "<!--")
FOLDER = Path(__file__).parent / "members"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
MEMBERS: Mapping[str, Member] = {
    member.name: member
    for module in MODULES
    for member in importlib.import_module(f"tests.conformance.formats.members.{module}").MEMBERS
}
FILES: Mapping[str, tuple[str, str, bytes]] = {
    "lf": ("\n", "utf-8", b""),
    "crlf": ("\r\n", "utf-8", b""),
    "bom": ("\n", "utf-8", b"\xef\xbb\xbf"),
    "utf16": ("\r\n", "utf-16-le", b"\xff\xfe"),
    "utf16be": ("\n", "utf-16-be", b"\xfe\xff"),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    members = [
        member for member in MEMBERS.values() if member.oracle or "library" not in metafunc.function.__name__
    ]
    if "data" in metafunc.fixturenames:
        pairs = [(member, file) for member in members for file in member.files]
        ids = [f"{member.name}-{file}" for member, file in pairs]
        metafunc.parametrize(
            ("member", "data"), [(member, spelled(member, file)) for member, file in pairs], ids=ids
        )
    elif "member" in metafunc.fixturenames:
        metafunc.parametrize("member", MEMBERS.values(), ids=list(MEMBERS))


def spelled(member: Member, file: str) -> bytes:
    newline, encoding, bom = FILES[file]
    return bom + member.sample.replace("\n", newline).encode(encoding)


def plain(member: Member) -> bytes:
    return member.sample.encode()


def source_of(member: Member, data: bytes) -> Document:
    return open_document(member.format, member.path.replace("{locale}", "en"), data, "source", "en")


def target_of(member: Member, data: bytes) -> Document:
    return open_document(member.format, member.path.replace("{locale}", LOCALE), data, "target", LOCALE)


def translated(member: Member, document: Document, mark: str = "ż") -> dict[str, Text]:
    return {block.key: member.translate(block, mark) for block in document.blocks}


def forms(value: Text) -> list[str]:
    return [value] if isinstance(value, str) else list(value.values())


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
    assert {form.name for form in catalogue.formats()} == {member.format.name for member in MEMBERS.values()}


def test_a_file_is_known_by_its_name_and_beginning_as_no_other_format(member: Member, data: bytes) -> None:
    for path in (member.path, member.path.replace("{locale}", "en")):
        chosen = choose_format(catalogue.formats(), path, data)
        assert (chosen.name, chosen.extensions) == (member.format.name, member.format.extensions)


def test_blocks_have_unique_keys_and_places_in_file_order(member: Member, data: bytes) -> None:
    document = source_of(member, data)
    assert document.blocks
    assert len({block.key for block in document.blocks}) == len(document.blocks)
    spans = [span for block in document.blocks for span in block.spans]
    assert all(0 <= one.start <= one.end <= two.start for one, two in pairwise(spans))
    assert spans[-1].end <= len(document.text)


def test_a_source_and_its_copy_as_a_target_have_the_same_keys(member: Member, data: bytes) -> None:
    assert list(values(source_of(member, data))) == list(values(target_of(member, data)))


def test_a_translation_reads_back_and_its_edits_tell_the_whole_difference(
    member: Member, data: bytes
) -> None:
    source = source_of(member, data)
    rendered = render(member.format, None, source, translated(member, source), LOCALE)
    assert rendered.base == "source"
    assert applied(data, rendered) == rendered.data
    assert rendered.data.startswith(source.bom)
    read = target_of(member, rendered.data)
    for key, asked in translated(member, source).items():
        found = dict(values(read))[key]
        if isinstance(asked, str):
            assert found == asked
        else:
            assert not isinstance(found, str)
            assert set(found.values()) <= set(asked.values())
    assert all(block.state == "" for block in read.blocks)


def test_another_library_reads_what_was_written(member: Member, data: bytes) -> None:
    """The second opinion of the tests is not the one that the product asks before each write."""
    assert member.oracle
    source = source_of(member, data)
    rendered = render(member.format, None, source, translated(member, source), LOCALE)
    expected = Counter(
        form for value in values(target_of(member, rendered.data)).values() for form in forms(value)
    )
    assert not expected - Counter(member.oracle(rendered.data))


def test_one_edit_changes_nothing_but_its_place(member: Member, data: bytes) -> None:
    """Beside the one text only what must follow it changes: the target's language, the forms of a plural."""
    source = source_of(member, data)
    full = render(member.format, None, source, translated(member, source), LOCALE).data
    target = target_of(member, full)
    base = source_of(member, full) if member.format.whole else source
    for block in base.blocks:
        asked = dict(values(target)) | {block.key: member.translate(block, "źź")}
        if not member.format.whole:
            asked = {block.key: asked[block.key]}
        rendered = render(member.format, target, base, asked, LOCALE)
        assert {edit.key for edit in rendered.edits} <= {block.key}
        assert applied(full, rendered) == rendered.data != full
        after = values(target_of(member, rendered.data))
        before = values(target)
        assert {key for key in after if after[key] != before[key]} == {block.key}


def test_writing_what_stands_there_changes_no_byte(member: Member, data: bytes) -> None:
    source = source_of(member, data)
    standing = render(member.format, None, source, translated(member, source), LOCALE).data
    target = target_of(member, standing)
    base = source_of(member, standing) if member.format.whole else source
    again = render(member.format, target, base, values(target), LOCALE)
    assert again.data == standing
    assert again.edits == ()


def test_a_field_without_a_translation_is_left_untranslated_or_stops_a_whole_file(
    member: Member, data: bytes
) -> None:
    source = source_of(member, data)
    everything = translated(member, source)
    for key in everything:
        part = {other: value for other, value in everything.items() if other != key}
        if member.format.whole:
            with pytest.raises(DragomanError, match="written complete or not at all") as refused:
                render(member.format, None, source, part, LOCALE)
            assert refused.value.code == "verify_failed"
            continue
        first = render(member.format, None, source, part, LOCALE)
        states = {block.key: block.state for block in target_of(member, first.data).blocks}
        assert states.get(key, "untranslated") == ("" if member.kept(key) else "untranslated")
        assert set(part) <= {other for other, state in states.items() if state == ""}
        second = render(member.format, target_of(member, first.data), source, everything, LOCALE)
        assert second.data == render(member.format, None, source, everything, LOCALE).data
        assert applied(first.data, second) == second.data


def test_an_empty_translation_over_content_is_refused(member: Member, data: bytes) -> None:
    source = source_of(member, data)
    for block in source.blocks:
        empty: Text = " \n" if block.plural is None else {"one": "x", "few": "", "many": "x", "other": "x"}
        with pytest.raises(DragomanError) as refused:
            render(member.format, None, source, translated(member, source) | {block.key: empty}, LOCALE)
        assert refused.value.code == "would_empty"


def test_a_translation_of_no_field_is_refused(member: Member) -> None:
    source = source_of(member, plain(member))
    with pytest.raises(DragomanError, match="no field 'strange' in the source"):
        render(member.format, None, source, translated(member, source) | {"strange": "x"}, LOCALE)


def test_keys_of_the_target_that_the_source_lost_are_left_and_listed(member: Member) -> None:
    source = source_of(member, plain(member))
    full = render(member.format, None, source, translated(member, source), LOCALE).data
    if member.format.whole:
        return  # rebuilt from its source: what the source lost is gone
    target = target_of(member, full)
    for block in source.blocks:
        if member.kept(block.key):
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


def test_what_is_not_of_the_format_is_refused_by_its_line(member: Member) -> None:
    for text, line in member.malformed:
        with pytest.raises(DocumentError) as refused:
            open_document(member.format, "broken", text.encode(), "source", "en")
        assert refused.value.place == f"broken:{line}", text


@given(chance=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_damaged_file_is_read_or_refused_and_never_crashes(member: Member, chance: st.DataObject) -> None:
    """And where it is read, every block has its place, and writing it back changes nothing."""
    text = member.sample
    for _ in range(chance.draw(st.integers(1, 4))):
        start = chance.draw(st.integers(0, len(text)))
        end = chance.draw(st.integers(start, min(len(text), start + 12)))
        at = chance.draw(st.integers(0, len(text)))
        put = chance.draw(st.sampled_from([text[at : at + 9], *ODDITIES]) | st.text(max_size=4))
        text = text[:start] + put + text[end:]
    for role in ("source", "target"):
        try:
            document = member.format.read(text, role, LOCALE)
        except DocumentError:
            continue
        assert all(span.end <= len(text) for block in document.blocks for span in block.spans)
        assert len({block.key for block in document.blocks}) == len(document.blocks)


class Faulty:
    """A member that makes other edits than it should, and believes in them."""

    def __init__(self, format: Format, edits: tuple[Edit, ...]) -> None:
        self._format = format
        self._edits = edits
        self.name, self.extensions = format.name, format.extensions
        self.whole, self.shared, self.renames = format.whole, format.shared, format.renames

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
    source = source_of(member, plain(member))
    wanted = translated(member, source)
    edits = member.format.write(source, source, wanted, LOCALE).edits
    for index, edit in enumerate(edits):
        if edit.kind != "value":
            continue
        for text in (source.text[edit.span.start : edit.span.end], edit.text.replace("ż", "z"), "\x01"):
            wrong = (*edits[:index], edit._replace(text=text), *edits[index + 1 :])
            with pytest.raises(DragomanError) as refused:
                render(Faulty(member.format, wrong), None, source, wanted, LOCALE)
            assert refused.value.code == "verify_failed"
