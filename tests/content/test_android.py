from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from moz.l10n.formats.android.parse import android_parse
from moz.l10n.model import Entry, Expression, PatternMessage, SelectMessage

from dragoman.content.documents import choose_format, open_document, render
from dragoman.content.formats.android import AndroidStrings
from dragoman.content.lexers.android_rereading import reread
from dragoman.content.lexers.android_values import Spelling, is_markup, shown, shown_markup
from dragoman.content.protection import protect, restore
from dragoman.kernel.errors import CallerError, DocumentError, DragomanError
from dragoman.model.documents import Document, Role, Text
from tests.content.real_files import case, corpus

FORMAT = AndroidStrings()
RAW = "ab \t\n\\\"'u0041@?"


def opened(data: bytes | str, role: Role = "source", locale: str = "de") -> Document:
    return open_document(FORMAT, "a.xml", data.encode() if isinstance(data, str) else data, role, locale)


def values(document: Document) -> dict[str, Text]:
    return {block.key: block.value for block in document.blocks}


def written(
    source: bytes | str, texts: Mapping[str, Text], base: bytes | str | None = None, locale: str = "de"
) -> str:
    standing = None if base is None else opened(base, "target", locale)
    return render(FORMAT, standing, opened(source), texts, locale).data.decode("utf-8")


def res(*entries: str) -> str:
    return "<resources>\n" + "".join(f"    {entry}\n" for entry in entries) + "</resources>\n"


def by_mozilla(data: bytes) -> dict[str, Text]:
    found: dict[str, Text] = {}
    for section in android_parse(data).sections:
        for entry in section.entries:
            if not isinstance(entry, Entry) or any(mark.key == "translatable" for mark in entry.meta):
                continue
            message, name = entry.value, "/".join(entry.id)
            if isinstance(message, PatternMessage):
                found[name] = "".join(map(_text, message.pattern))
            elif isinstance(message, SelectMessage):
                found[name] = {
                    str(getattr(key[0], "value", None) or key[0]): "".join(map(_text, pattern))
                    for key, pattern in message.variants.items()
                }
    return found


def _text(part: object) -> str:
    if isinstance(part, Expression):
        return str(part.attributes.get("source") or part.arg)
    return str(part)


@pytest.mark.parametrize("file", corpus("android"))
def test_real_resources_come_through(file: Path) -> None:
    """A no-op is identical; every text of ours, read or written, is what another library reads."""
    data = file.read_bytes()
    document = opened(data)
    same = values(document)
    assert render(FORMAT, None, document, same, "de").data == data
    assert render(FORMAT, opened(data, "target"), document, {}, "de").data == data
    mozilla = by_mozilla(data)
    assert mozilla.keys() == same.keys()
    for key, value in same.items():
        assert letters(mozilla[key]) == letters(value), key
    changed: dict[str, Text] = {
        key: f"«{value}» l'é\n“\"@"
        if isinstance(value, str)
        else {"one": f"«{value['other']}", "other": "x’"}
        for key, value in same.items()
    }
    whole = render(FORMAT, None, document, changed, "de").data
    assert values(opened(whole, "target")) == changed
    mozilla = by_mozilla(whole)
    for key, value in changed.items():
        assert letters(mozilla[key]) == letters(value), key
    for half in (list(same)[::2], list(same)[1::2], list(same)[:3], list(same)[-3:]):
        first = render(FORMAT, None, document, {key: changed[key] for key in half}, "de").data
        if half:
            assert render(FORMAT, opened(first, "target"), document, changed, "de").data == whole


def letters(value: Text) -> str:
    """Texts without white space and quotes: aapt2 drops bare quotes, the other library may not."""
    return re.sub(r"[\s\"]+", "", value if isinstance(value, str) else "|".join(value.values()))


def test_two_sections_of_cdata_beside_text_stay_so() -> None:
    """[O03] Byte for byte, through protection: each section is one pair with its link."""
    before, after = case("O03", "xml")
    document = opened(before)
    protected = protect(document.blocks[0].text, document.blocks[0].syntax)
    text = "Mit dem Fortfahren akzeptieren Sie unsere ⟦1⟧AGB⟦/1⟧ und ⟦2⟧Datenschutz⟦/2⟧"
    assert render(FORMAT, None, document, {"tos": restore(protected, text)}, "de").data == after


def test_the_same_on_an_example_of_our_own() -> None:
    source = res('<string name="t">See <![CDATA[<a href="%1$s">this</a>]]>, it\\\'s <b>new</b></string>')
    block = opened(source).blocks[0]
    assert block.syntax == "html"
    protected = protect(block.text, block.syntax)
    assert protected.text == "See ⟦1⟧this⟦/1⟧, it's ⟦2⟧new⟦/2⟧"
    out = written(source, {"t": restore(protected, "C'est ⟦2⟧neuf⟦/2⟧ : ⟦1⟧l'un & deux⟦/1⟧ & «» < 3")})
    assert out == res(
        '<string name="t">C\\\'est <b>neuf</b> : <![CDATA[<a href="%1$s">l\'un & deux</a>]]>'
        " &amp; «» &lt; 3</string>"
    )


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('It\\\'s \\"it\\" \\@ \\? \\u0041\\n', 'It\'s "it" @ ? A\n'),
        ('"  two  "', "  two  "),
        ("  a \n   b  ", "a b"),
        ('"it\'s"', "it's"),
        ("\\u0020a", " a"),
        ("\\uD83D\\uDE00", "😀"),
        ("&lt;b&gt;x&lt;/b&gt; &amp; &#160;", "<b>x</b> & \xa0"),
        ("<![CDATA[<a href=\"x\">it\\'s  'b'</a>]]>", "<a href=\"x\">it's  'b'</a>"),
        ("&amp;amp; &amp;lt; x", "&amp; &lt; x"),
        ("&lt;a  b&gt;", "<a b>"),
        ("100% \\\\ C:\\\\", "100% \\ C:\\"),
    ],
)
def test_a_text_is_what_the_app_shows(raw: str, text: str) -> None:
    assert shown(raw) == text
    assert values(opened(res(f'<string name="a">{raw}</string>')))["a"] == text


@given(st.text(st.sampled_from(RAW)))
def test_any_raw_value_is_read_alike_by_two_readers(raw: str) -> None:
    assert shown(raw) == reread(raw)


@given(
    st.text(st.characters(codec="utf-8") | st.sampled_from(f"{RAW}<&>]\0\r")),
    st.sampled_from(["x", '"x"', '"it\'s"', "<![CDATA[x]]>", "<![CDATA[x'\"\n]]>"]),
)
def test_any_text_can_be_written_in_any_style(text: str, like: str) -> None:
    assert shown(Spelling([], [], "\n").plain(text, like)) == text
    assume(text.strip())
    assert (
        values(opened(written(res(f'<string name="a">{like}</string>'), {"a": text}), "target"))["a"] == text
    )


@given(
    st.lists(st.sampled_from(["<b>", "</b>", *RAW, "<![CDATA[ 'x' ]]>", "&", "&lt;b", "< ", "<3", "  "])).map(
        "".join
    )
)
def test_any_words_between_markup_read_back(text: str) -> None:
    assume(is_markup(text))
    assert shown_markup(Spelling([], [], "\n").markup(text)) == text


def test_escapes_keep_the_files_habit() -> None:
    source = res(
        '<string name="a">A\\u00A0B \\u2026 &gt;</string>',
        '<string name="b">"don\'t"</string>',
        '<string name="c">x</string>',
    )
    out = written(source, {"a": "B\xa0A … > '", "b": "l'«x»\n", "c": "  @ "})
    assert out == res(
        '<string name="a">B\\u00A0A \\u2026 &gt; \\\'</string>',
        '<string name="b">"l\'«x»\\n"</string>',
        '<string name="c">"  @ "</string>',
    )
    assert written(source, {"a": "@x", "b": "?", "c": "?y"}) == res(
        '<string name="a">\\@x</string>', '<string name="b">"?"</string>', '<string name="c">\\?y</string>'
    )


def test_escaped_tags_stay_escaped_and_an_xliff_g_is_one_placeholder() -> None:
    source = (
        '<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">\n'
        '  <string name="a">&lt;b>%1$s&lt;/b></string>\n'
        '  <string name="b"><xliff:g id="n" example="3">%1$s</xliff:g> files</string>\n</resources>'
    )
    document = opened(source)
    assert document.blocks[0].text == "<b>%1$s</b>"
    protected = protect(document.blocks[1].text, document.blocks[1].syntax)
    assert protected.text == "⟦1⟧ files"
    out = written(source, {"a": "<b>%1$s</b>!", "b": restore(protected, "Dateien: ⟦1⟧")})
    assert out == source.replace("/b></string>", "/b>!</string>").replace(
        '<xliff:g id="n" example="3">%1$s</xliff:g> files',
        'Dateien: <xliff:g id="n" example="3">%1$s</xliff:g>',
    )
    base = '<resources>\n  <string name="a">x</string>\n</resources>'
    assert written(source, {"b": document.blocks[1].text}, base) == (
        '<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">\n  <string name="a">x</string>\n'
        '  <string name="b"><xliff:g id="n" example="3">%1$s</xliff:g> files</string>\n</resources>'
    )


def test_a_plural_gets_the_categories_of_its_locale() -> None:
    source = res(
        '<plurals name="n">',
        '    <item quantity="one">%d day</item>',
        '    <item quantity="other">%d days</item>',
        "</plurals>",
    )
    assert values(opened(source)) == {"n": {"one": "%d day", "other": "%d days"}}
    polish = {"one": "%d dzień", "few": "%d dni", "many": "%d dni", "other": "%d dnia"}
    out = written(source, {"n": polish}, locale="pl")
    assert out == res(
        '<plurals name="n">',
        *(f'    <item quantity="{name}">{text}</item>' for name, text in polish.items()),
        "</plurals>",
    )
    assert written(source, {"n": {"other": "%d日"}}, locale="ja") == res(
        '<plurals name="n">', '    <item quantity="other">%d日</item>', "</plurals>"
    )
    assert written(source, {"n": {**polish, "zero": "0"}}, out, "pl").count("<item") == 5
    base = "<resources>\r\n\t<string name='x'>X</string>\r\n</resources>"
    assert written(source, {"n": polish}, base, "pl") == (
        "<resources>\r\n\t<string name='x'>X</string>\r\n</resources>".replace(
            "<resources>\r\n",
            '<resources>\r\n\t<plurals name="n">\r\n'
            + "".join(f'\t    <item quantity="{name}">{text}</item>\r\n' for name, text in polish.items())
            + "\t</plurals>\r\n",
        )
    )


def test_arrays_keep_their_positions() -> None:
    items = ("One", "@string/x", "Two", "Three")
    source = res(
        '<string-array name="a">', *(f"    <item>{item}</item>" for item in items), "</string-array>"
    )
    assert list(values(opened(source))) == ["a/0", "a/2", "a/3"]
    assert written(source, {"a/2": "Zwei"}) == source.replace("Two", "Zwei")
    short = res('<string-array name="a">', "    <item>Eins</item>", "</string-array>")
    assert written(source, {"a/2": "Zwei"}, short) == res(
        '<string-array name="a">',
        "    <item>Eins</item>",
        "    <item>@string/x</item>",
        "    <item>Zwei</item>",
        "</string-array>",
    )
    assert written(source, {"a/2": "Zwei"}, res()) == source.replace("Two", "Zwei")


def test_what_is_not_for_translators_is_no_block_and_not_in_a_new_target() -> None:
    source = res(
        '<string name="id" translatable="false">x</string>',
        '<string name="l" tools:ignore="MissingTranslation">x</string>',
        '<string name="r">@string/other</string>',
        '<string name="t">?attr/title</string>',
        "<eat-comment/>",
        '<string name="q">? Really</string>',
        '<item type="string" name="i">Item</item>',
        '<item type="id" name="k"/>',
    ).replace("<resources>", '<resources xmlns:tools="http://schemas.android.com/tools" tools:locale="en">')
    assert values(opened(source)) == {"q": "? Really", "i": "Item"}
    assert written(source, {"q": "? Echt", "i": "Ding"}) == res(
        '<string name="r">@string/other</string>',
        '<string name="t">?attr/title</string>',
        "<eat-comment/>",
        '<string name="q">\\? Echt</string>',
        '<item type="string" name="i">Ding</item>',
        '<item type="id" name="k"/>',
    ).replace("<resources>", '<resources xmlns:tools="http://schemas.android.com/tools" tools:locale="de">')
    assert values(opened(written(source, values(opened(source))))) == values(opened(source))


def test_comments_and_descriptions_are_notes() -> None:
    source = res(
        "<!-- Licence -->",
        "",
        "<!-- one\n two -->",
        "<!-- three -->",
        '<string name="a">A</string> <!-- four -->',
        "<!-- far -->",
        "",
        '<string name="b" description="five">B</string>',
    )
    assert [block.note for block in opened(source).blocks] == ["one two\nthree\nfour", "five"]
    assert written(source, {"b": "Be"}).startswith("<resources>\n    <!-- Licence -->\n")
    assert "four" not in written(source, {"b": "Be"})


def test_new_strings_stand_behind_their_neighbours_and_lost_ones_stay() -> None:
    source = res(*(f'<string name="{name}">{name}</string>' for name in "abc"))
    base = '<resources>\n  <string name="b">x</string>\n  <string name="old">y</string>\n</resources>\n'
    rendered = render(FORMAT, opened(base, "target"), opened(source), {"a": "1", "c": "3"}, "de")
    assert rendered.lost == ("old",)
    assert rendered.data.decode() == (
        '<resources>\n  <string name="a">1</string>\n  <string name="b">x</string>\n'
        '  <string name="c">3</string>\n  <string name="old">y</string>\n</resources>\n'
    )
    assert (
        written(source, {"a": "1"}, "<resources/>")
        == '<resources>\n    <string name="a">1</string>\n</resources>'
    )
    assert written(source, {"a": "1"}, '<resources><string name="a"/></resources>') == (
        '<resources><string name="a">1</string></resources>'
    )


def test_products_and_a_string_named_like_a_plural_have_keys_of_their_own() -> None:
    source = res(
        '<string name="a">A</string>',
        '<string name="a" product="tablet">T</string>',
        '<plurals name="a"><item quantity="other">P</item></plurals>',
    )
    assert values(opened(source)) == {"a": "A", "a/tablet": "T", "plurals/a": {"other": "P"}}


@pytest.mark.parametrize(
    ("path", "head", "ours"),
    [
        ("res/values/strings.xml", "", True),
        ("res/values/extra.xml", "<?xml version='1.0'?>\n<!-- x -->\n<resources>", True),
        ("res/values/donottranslate.xml", "<resources>", False),
        ("res/values-de/donottranslate_more.xml", "<resources>", False),
        ("res/layout/main.xml", "<LinearLayout>", False),
        ("pom.xml", "<project><resources>", False),
        ("a.xml", "<!-- x -->" * 300 + "<project>", False),
        ("a.xml", "<!-- x -->" * 300 + '<!DOCTYPE r [<!ENTITY a "b">]>\n<resources>', True),
    ],
)
def test_a_file_is_known_by_its_root(path: str, head: str, ours: bool) -> None:
    assert FORMAT.detect(path, head) is ours
    if not ours:
        with pytest.raises(CallerError, match="no known format"):
            choose_format([FORMAT], path, head.encode())


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ('<resources>\n<plurals name="a"><item quantity="some">x</item></plurals></resources>', 2, "'some'"),
        ("<resources>\n<string/></resources>", 2, "no name"),
        ('<!DOCTYPE r [<!ENTITY a "b"><!ENTITY c "&a;">]>\n<resources/>', 1, "other entities"),
        (f"<resources>{'<a>' * 300}", 1, "inside each other"),
    ],
)
def test_what_aapt_refuses_is_refused_by_line(text: str, line: int, why: str) -> None:
    with pytest.raises(DocumentError, match=why) as refused:
        opened(text)
    assert refused.value.line == line


def test_a_string_has_no_plural() -> None:
    with pytest.raises(DragomanError, match="has no plural"):
        written(res('<string name="a">x</string>'), {"a": {"one": "x", "other": "y"}})


def test_an_entity_of_the_file_stays_one() -> None:
    source = '<!DOCTYPE resources [<!ENTITY app "Foo">]>\n' + res('<string name="a">To &app;</string>')
    assert written(source, {"a": "Jetzt &app; & Co. öffnen"}).endswith(
        ">Jetzt &app; &amp; Co. öffnen</string>\n</resources>\n"
    )
