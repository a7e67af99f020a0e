from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.resx import ResxCatalogue
from dragoman.content.protection import protect, restore
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Document, Role
from tests.content.real_files import case, corpus

FORMAT = ResxCatalogue()


def opened(data: bytes | str, role: Role = "source") -> Document:
    return open_document(FORMAT, "a.resx", data.encode() if isinstance(data, str) else data, role, "de")


def texts(document: Document) -> dict[str, str]:
    return {block.key: block.text for block in document.blocks}


def written(source: bytes | str, values: Mapping[str, str], base: bytes | str | None = None) -> str:
    data = render(FORMAT, None if base is None else opened(base, "target"), opened(source), values, "de").data
    return data.decode("utf-8")


def by_the_standard_library(data: bytes) -> dict[str, str]:
    entries = ElementTree.fromstring(data).iterfind("data")  # noqa: S314
    return {entry.attrib["name"]: entry.findtext("value") or "" for entry in entries}


@pytest.mark.parametrize("file", corpus("resx"))
def test_real_resources_come_through(file: Path) -> None:
    """A no-op is identical, byte order mark and all, and another library reads what we read and write."""
    data = file.read_bytes()
    document = opened(data)
    same = texts(document)
    assert same == by_the_standard_library(data)
    assert render(FORMAT, None, document, same, "de").data == data
    assert render(FORMAT, opened(data, "target"), document, {}, "de").data == data
    values = {key: f"«{text}» & <é>\n" for key, text in same.items()}
    whole = render(FORMAT, None, document, values, "de").data
    assert values == by_the_standard_library(whole) == texts(opened(whole, "target"))
    for half in (list(values)[::2], list(values)[1::2], list(values)[:3], list(values)[-3:]):
        first = render(FORMAT, None, document, {key: values[key] for key in half}, "de").data
        assert render(FORMAT, opened(first, "target"), document, values, "de").data == whole


def test_cdata_attributes_line_ends_and_data_that_is_no_text_are_kept() -> None:
    """[S02] Byte for byte: unknown attributes, CDATA, CRLF and the missing line end at the file's end."""
    before, after = case("S02", "resx")
    assert render(FORMAT, None, opened(before), {"A": "<p>Plantermin:</p>"}, "de").data == after


def test_the_same_on_an_example_of_our_own() -> None:
    source = (
        '\ufeff<root>\r\n\t<data name="T" x="1"><value><![CDATA[<b>One</b>]]></value></data>\r\n'
        '\t<data name="B" mimetype="x/y"><value>AAEC</value></data>\r\n</root>'
    )
    assert texts(opened(source)) == {"T": "<b>One</b>"}
    out = written(source, {"T": "<b>Eins</b>\nA & B ]]>"})
    assert out == source.replace("<b>One</b>", "<b>Eins</b>\r\nA & B ]]]]><![CDATA[>")
    assert texts(opened(out, "target")) == {"T": "<b>Eins</b>\nA & B ]]>"}


def test_a_new_entry_stands_behind_its_neighbour_as_far_in_as_that() -> None:
    source = """<root>
  <data name="A"><value>a</value></data>

  <!-- About B -->
  <data name="B">
    <value>b</value>
    <comment>about</comment>
  </data>
  <data name="C"><value>c</value></data>
</root>
"""
    assert [block.note for block in opened(source).blocks] == ["", "About B\nabout", ""]
    base = '<root>\r\n\t<data name="A"><value>x</value></data>\r\n\t<data name="O"><value/></data>\r\n</root>'
    assert written(source, {"B": "y", "C": "z"}, base) == (
        '<root>\r\n\t<data name="A"><value>x</value></data>\r\n\r\n\t<!-- About B -->\r\n'
        '\t<data name="B">\r\n'
        "\t  <value>y</value>\r\n\t  <comment>about</comment>\r\n\t</data>\r\n"
        '\t<data name="C"><value>z</value></data>\r\n\t<data name="O"><value/></data>\r\n</root>'
    )
    assert (
        written(source, {"A": "x"}, "<root/>") == '<root>\n  <data name="A"><value>x</value></data>\n</root>'
    )
    rendered = render(FORMAT, opened(base, "target"), opened(source), {}, "de")
    assert (rendered.lost, rendered.edits) == (("O",), ())


def test_an_empty_value_written_as_one_tag_is_opened() -> None:
    source = '<root><data name="A"><value>a</value></data></root>'
    base = '<root><data name="A"><value /></data></root>'
    assert written(source, {"A": "x"}, base) == '<root><data name="A"><value >x</value></data></root>'


def test_only_strings_that_are_meant_to_be_translated_are_blocks() -> None:
    names = ("", 'type="System.String"', 'type="System.Int32"', 'mimetype="a/b"')
    entries = [f'<data name="n{i}" {kind}><value>v</value></data>' for i, kind in enumerate(names)]
    more = (
        '<data name="&gt;&gt;a.Name"><value>v</value></data><metadata name="m"><value>v</value></metadata>'
        '<data name="l"><value>v</value><comment>{Locked}</comment></data>'
        '<data name="p"><value>v</value><comment>{Locked="v"}</comment></data>'
        '<data name="n0"><value>w</value></data>'
    )
    assert list(texts(opened(f"<root>{''.join(entries)}{more}</root>"))) == ["n0", "n1", "p"]


def test_composite_formats_are_protected_where_a_file_has_them() -> None:
    block = opened('<root><data name="A"><value>{0,-10:N2} of {1}: 100%</value></data></root>').blocks[0]
    assert block.syntax == "python"
    protected = protect(block.text, block.syntax)
    assert protected.text == "⟦1⟧ of ⟦2⟧: 100%"
    assert restore(protected, "⟦2⟧: ⟦1⟧ %") == "{1}: {0,-10:N2} %"


def test_characters_are_spelled_as_the_file_spells_them() -> None:
    source = '<root><data name="A"><value>a &gt; &#160;b "c"</value></data></root>'
    assert written(source, {"A": '"x"\xa0> <'}) == (
        '<root><data name="A"><value>"x"&#160;&gt; &lt;</value></data></root>'
    )


@given(
    st.text(
        st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
        | st.sampled_from("\n\r\t<&>]")
    )
)
def test_any_text_comes_back(text: str) -> None:
    if not text.strip():
        return
    for raw in ("a", "<![CDATA[a]]>"):
        source = f'<root><data name="A"><value>{raw}</value></data></root>'
        assert texts(opened(written(source, {"A": text}), "target")) == {"A": text}


def test_a_character_that_xml_cannot_hold_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"U\+0001 cannot stand in XML"):
        written('<root><data name="A"><value>a</value></data></root>', {"A": "x\x01"})


def test_entities_from_outside_and_bombs_are_refused() -> None:
    for declared in ('<!ENTITY a SYSTEM "file:///etc/passwd">', '<!ENTITY a "b"><!ENTITY c "&a;&a;">'):
        with pytest.raises(DocumentError):
            opened(f"<!DOCTYPE root [{declared}]><root/>")


def test_a_plural_has_no_place() -> None:
    source = opened('<root><data name="A"><value>a</value></data></root>')
    with pytest.raises(DragomanError, match="plural forms"):
        render(FORMAT, None, source, {"A": {"one": "x", "other": "y"}}, "de")
