"""XLIFF, both dialects: segments, states, languages, and what a target lacks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.xliff1 import Xliff1
from dragoman.content.formats.xliff2 import Xliff2
from dragoman.content.lexers.xml_edits import spelled
from dragoman.content.lexers.xml_places import unescaped
from dragoman.content.protection import protect, restore
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.contracts import Format
from dragoman.model.documents import Block, Document, Text
from tests.content.real_files import case, corpus

ONE, TWO = Xliff1(), Xliff2()
HEAD = '<xliff version="1.2"><file original="f" source-language="en"'
SEGMENTS = '<mrk mtype="seg" mid="0">A.</mrk> <mrk mtype="seg" mid="1">B.</mrk>'


def one(*units: str, language: str = "") -> str:
    """A file of XLIFF 1.2."""
    said = f' target-language="{language}"' if language else ""
    return f"{HEAD}{said}><body>{''.join(units)}</body></file></xliff>"


def unit(name: str, inner: str, said: str = "") -> str:
    return f'<trans-unit id="{name}"{said}><source>{inner}</trans-unit>'


def two(*units: str, said: str = 'trgLang="pl"') -> str:
    """A file of XLIFF 2."""
    return f'<xliff version="2.1" srcLang="en" {said}><file id="f">{"".join(units)}</file></xliff>'


def segment(inner: str, said: str = "") -> str:
    return f"<segment{said}><source>{inner}</segment>"


def source(format: Format, text: str) -> Document:
    return open_document(format, "a.xlf", text.encode(), "source", "en")


def target(format: Format, text: str, locale: str = "pl") -> Document:
    return open_document(format, "a.xlf", text.encode(), "target", locale)


def written(
    format: Format, text: str, values: Mapping[str, Text], base: str | None = None, locale: str = "pl"
) -> str:
    stands = target(format, base, locale) if base is not None else None
    return render(format, stands, source(format, text), values, locale).data.decode()


def texts(document: Document) -> dict[str, str]:
    return {block.key: block.text for block in document.blocks}


def states(document: Document) -> dict[str, str]:
    return {block.key: block.state for block in document.blocks}


def by_markers(block: Block, answer: str) -> str:
    return restore(protect(block.text, block.syntax), answer)


def test_o08_a_target_stands_behind_its_own_source() -> None:
    """[O08] Byte for byte: two segments, the ignorable kept, inline code survives, indentation is copied."""
    given, expected = case("O08", "xlf")
    document = open_document(TWO, "a.xlf", given, "source", "en")
    first, second = document.blocks
    assert protect(first.text, first.syntax).text == "Hello ⟦1⟧big⟦/1⟧ world."
    values = {
        first.key: by_markers(first, "Hallo ⟦1⟧große⟦/1⟧ Welt."),
        second.key: by_markers(second, "Tschüss ⟦1⟧"),
    }
    assert render(TWO, None, document, values, "de").data == expected


def test_o08_in_small() -> None:
    """[O08] The same shape, always run."""
    text = two(
        '<unit id="u">\n  <segment id="a">\n    <source>A <pc id="1">b</pc></source>\n  </segment>\n',
        "  <ignorable><source> </source></ignorable>\n  <segment>\n",
        '    <source xml:space="preserve">C<ph id="2"/></source>\n  </segment>\n</unit>',
        said="",
    )
    done = written(TWO, text, {"f/u/a": 'X <pc id="1">y</pc>', "f/u/1": 'Z<ph id="2"/>'})
    assert done == text.replace('"en" ', '"en" trgLang="pl" ').replace(
        "b</pc></source>", 'b</pc></source>\n    <target>X <pc id="1">y</pc></target>'
    ).replace(
        '<ph id="2"/></source>',
        '<ph id="2"/></source>\n    <target xml:space="preserve">Z<ph id="2"/></target>',
    )


def test_a_segmented_unit_has_a_block_a_segment_and_a_target_of_its_shape() -> None:
    framed = f'A. B.</source>\n<seg-source><g id="9">{SEGMENTS}</g></seg-source>\n<note>n</note>'
    text = one(unit("u", framed), language="pl")
    done = written(ONE, text, {"f/u/0": "C.", "f/u/1": "D."})
    put = (
        '</seg-source>\n<target><g id="9"><mrk mtype="seg" mid="0">C.</mrk> '
        '<mrk mtype="seg" mid="1">D.</mrk></g></target>'
    )
    assert done == text.replace("</seg-source>", put)
    part = written(ONE, text, {"f/u/1": "D."})
    assert texts(target(ONE, part)) == {"f/u/0": "", "f/u/1": "D."}
    assert states(target(ONE, part)) == {"f/u/0": "untranslated", "f/u/1": ""}
    assert written(ONE, text, {"f/u/0": "C."}, part) == done


def test_a_target_without_its_segments_gets_them() -> None:
    """What stands in an unsegmented target belongs to no segment."""
    flat = f"A. B.</source><seg-source>{SEGMENTS}</seg-source><target>C. D.</target>"
    text = one(unit("u", flat), language="pl")
    done = written(ONE, text, {"f/u/0": "E."}, text)
    assert '<target><mrk mtype="seg" mid="0">E.</mrk> <mrk mtype="seg" mid="1"></mrk></target>' in done
    assert written(ONE, text, {}, text) == text


@pytest.mark.parametrize(
    ("state", "read"),
    [
        ("new", "untranslated"),
        ("needs-translation", "untranslated"),
        ("needs-review-translation", "fuzzy"),
        ("translated", ""),
        ("signed-off", "approved"),
        ("final", "approved"),
        ("x-own", ""),
    ],
)
def test_states_are_read_and_said_anew(state: str, read: str) -> None:
    stands = f'<target state="{state}" state-qualifier="leveraged-mt">B</target>'
    text = one(unit("u", f"A</source>{stands}"), language="pl")
    assert states(target(ONE, text)) == {"f/u": read}
    assert '<target state="translated">C</target>' in written(ONE, text, {"f/u": "C"}, text)
    same = written(ONE, text, {"f/u": "B"}, text)
    assert same == text if read in ("", "approved") else '<target state="translated">B</target>' in same


def test_an_approval_does_not_speak_for_another_text() -> None:
    text = one(unit("u", "A</source><target>B</target>", " approved='yes'"), language="pl")
    assert states(target(ONE, text)) == {"f/u": "approved"}
    assert "approved='no'" in written(ONE, text, {"f/u": "C"}, text)
    assert written(ONE, text, {"f/u": "B"}, text) == text


def test_a_sub_state_goes_with_its_state() -> None:
    reviewed = segment("A</source><target>B</target>", ' id="s" state="reviewed" subState="x:y"')
    text = two(f'<unit id="u">{reviewed}</unit>')
    assert states(target(TWO, text)) == {"f/u": "approved"}
    assert '<segment id="s" state="translated"><source>' in written(TWO, text, {"f/u": "C"}, text)


def test_translations_into_another_language_count_for_nothing() -> None:
    text = one(
        unit("u", 'A</source><target xml:lang="de" state="final">B</target>'),
        unit("v", "C</source><target>D</target>"),
        language="de",
    )
    assert texts(target(ONE, text)) == {"f/u": "", "f/v": ""}
    done = written(ONE, text, {"f/v": "E"})
    assert 'target-language="pl"' in done
    assert '<target xml:lang="pl" state="new"></target>' in done
    assert "<target>E</target>" in done
    assert texts(target(ONE, text, "de")) == {"f/u": "B", "f/v": "D"}


def test_where_no_language_is_declared_a_target_is_believed_and_a_source_is_not() -> None:
    text = one(unit("u", "A</source><target>B</target>"), unit("v", "C</source>"))
    assert "<target></target>" in written(ONE, text, {"f/v": "E"})
    kept = written(ONE, text, {"f/v": "E"}, text)
    assert "<target>B</target>" in kept
    assert 'target-language="pl"' in kept
    assert written(ONE, text, {}, text) == text


def test_what_is_not_to_be_translated_is_no_block() -> None:
    text = one(
        unit("a", "A</source>", ' translate="no"'),
        f'<group translate="no">{unit("b", "B</source>")}',
        unit("c", "C</source>", ' translate="yes"'),
        '</group><bin-unit id="d"><bin-source/></bin-unit>',
    )
    assert list(texts(source(ONE, text))) == ["f/c"]
    later = two(
        f'<unit id="a" translate="no">{segment("A</source>")}</unit><group id="g" translate="no">',
        f'<unit id="b" translate="yes">{segment("B</source>")}</unit></group>',
    )
    assert list(texts(source(TWO, later))) == ["f/b"]


def test_notes_limits_and_names_come_along() -> None:
    noted = "A</source><note>One</note><note/><note>Two &amp; three</note>"
    text = one(
        unit("a/~", noted, ' resname="title" maxwidth="12" size-unit="char"'),
        unit("b", "B</source>", ' maxwidth="12"'),
    )
    first, second = source(ONE, text).blocks
    assert (first.key, first.context, first.note) == ("f/a~1~0", "title", "One\nTwo & three")
    assert (first.max_length, second.max_length) == (12, None)
    later = two(
        f'<unit id="a" s:sizeRestriction="3,60"><notes><note>N</note></notes>{segment("A</source>")}</unit>',
        said='xmlns:s="urn:oasis:names:tc:xliff:sizerestriction:2.0"',
    )
    (only,) = source(TWO, later).blocks
    assert (only.max_length, only.note) == (60, "N")


def test_comments_and_sections_inside_a_text() -> None:
    text = one(unit("a", "A <!-- b --></source>"), unit("b", "<![CDATA[x < y]]></source>"))
    first, second = source(ONE, text).blocks
    assert (first.text, first.syntax) == ("A <!-- b -->", "html")
    assert protect(first.text, first.syntax).text == "A ⟦1⟧"
    assert second.text == "x < y"
    assert "<target><![CDATA[z < ]]]]><![CDATA[>]]></target>" in written(ONE, text, {"f/b": "z < ]]>"})


def test_ids_given_twice_stay_apart() -> None:
    text = one(unit("a", "A</source>"), unit("a", "B</source>"))
    assert texts(source(ONE, text)) == {"f/a": "A", "f/a~2": "B"}


def test_new_units_and_files_stand_behind_their_neighbours() -> None:
    def file(name: str, *units: str) -> str:
        inside = "".join(
            f'\n      <trans-unit id="{unit}"><source>{unit}</source></trans-unit>' for unit in units
        )
        return f'\n  <file original="{name}" source-language="en"><body>{inside}\n    </body></file>'

    full = f'<xliff version="1.2">{file("one", "a", "b", "c")}{file("two", "d")}\n</xliff>'
    part = f'<xliff version="1.2">{file("one", "b")}\n</xliff>'
    values = {key: f"{key} ż" for key in texts(source(ONE, full))}
    everything = written(ONE, full, values)
    assert written(ONE, full, values, part) == everything
    empty = '<xliff version="1.2">\n  <file original="one"><body/></file>\n</xliff>'
    assert texts(target(ONE, written(ONE, full, {"one/b": "x"}, empty))) == {"one/b": "x"}


def test_lost_units_stay_and_are_listed() -> None:
    text = one(unit("a", "A</source>"), language="pl")
    base = one(unit("a", "A</source>"), unit("z", "Z</source><target>Y</target>"), language="pl")
    rendered = render(ONE, target(ONE, base), source(ONE, text), {"f/a": "B"}, "pl")
    assert rendered.lost == ("f/z",)
    assert b"<target>Y</target>" in rendered.data


def test_a_translation_takes_the_source_along_that_it_was_made_from() -> None:
    """Else a unit would show a translation of a text that nobody sees."""
    text = one(unit("a", 'A <x id="1"/></source>'), language="pl")
    base = one(unit("a", "Old</source><target>Stary</target>"), language="pl")
    done = written(ONE, text, {"f/a": 'B <x id="1"/>'}, base)
    assert done == text.replace("</source>", '</source><target>B <x id="1"/></target>')
    parts = segment("A</source>", ' id="s"') + segment("B</source>", ' id="t"')
    cut, uncut = (two(f'<unit id="u">{inner}</unit>') for inner in (parts, segment("A B</source>")))
    again = written(TWO, cut, {"f/u/s": "C", "f/u/t": "D"}, uncut)
    assert texts(target(TWO, again)) == {"f/u/s": "C", "f/u/t": "D"}


def test_markup_that_is_broken_is_not_written() -> None:
    text = one(unit("a", 'A <x id="1"/></source>'))
    for value in ("B <x>", 'B <x id="1"/></target><target>', 'B & <x id="1"/>', "\x01"):
        with pytest.raises(DragomanError) as refused:
            written(ONE, text, {"f/a": value})
        assert refused.value.code in ("verify_failed", "invalid_fields")


def test_bombs_and_what_lies_outside_are_refused_by_line() -> None:
    bomb = '<!DOCTYPE x [\n<!ENTITY a "ha">\n<!ENTITY b "&a;&a;">\n]>\n<xliff version="1.2">&b;</xliff>'
    outside = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n<xliff version="1.2">&a;</xliff>'
    for text, line in (
        (bomb, 3),
        (outside, 1),
        ("<xliff>" + "<group>" * 300, 1),
        ('<xliff version="3.0">', 1),
    ):
        with pytest.raises(DocumentError) as refused:
            source(ONE, text)
        assert refused.value.line == line


def test_versions_are_told_apart() -> None:
    assert TWO.detect("a.XLF", '<?xml version="1.0"?>\n<xliff xmlns="x" version="2.1">')
    assert not TWO.detect("a.xlf", '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">')
    assert ONE.detect("a.xliff", "")
    assert not ONE.detect("a.xml", '<xliff version="1.2">')


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\r\t<>&]'\"")))
def test_any_text_is_spelled_so_that_it_reads_back(text: str) -> None:
    try:
        raw = spelled(text, markup=False, like="", newline="\r\n")
    except DocumentError:
        return  # U+FFFE and its like cannot stand in XML
    assert unescaped(raw.replace("\r\n", "\n")) == text


@pytest.mark.parametrize("path", [*corpus("xliff12"), *corpus("xliff20")])
def test_real_files_are_translated_whole_and_stay_as_they_are_without(path: Path) -> None:
    """No-op identical; every unit marked and read again by us and, within `render`, by libxml2."""
    data = path.read_bytes()
    format: Format = TWO if TWO.detect(path.name, data[:4096].decode("utf-8-sig", "replace")) else ONE
    document = open_document(format, path.name, data, "source", "en")
    for locale in ("pl", "de-CH"):
        values = {block.key: f"{block.text}ż" for block in document.blocks}
        done = render(format, None, document, values, locale)
        read = open_document(format, path.name, done.data, "target", locale)
        assert texts(read) == values
        assert set(states(read).values()) <= {""}
        for nothing in ({}, values):
            assert render(format, read, document, nothing, locale).data == done.data
