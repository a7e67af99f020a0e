"""What HTML promises: [T5] entities stay text, templates and tags stay, what is read out is a text."""

from __future__ import annotations

import time
from collections.abc import Mapping
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import lxml.html
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.html_document import HtmlDocument
from dragoman.content.lexers.html_tags import marks, spelled
from dragoman.content.protection import protect, restore
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Document
from tests.content.real_files import corpus

HTML = HtmlDocument()


def opened(text: str | bytes) -> Document:
    return open_document(HTML, "a.html", text.encode() if isinstance(text, str) else text, "source", "en")


def blocks(text: str) -> dict[str, str]:
    return {block.key: block.text for block in opened(text).blocks}


def written(text: str, translations: Mapping[str, str], locale: str = "de") -> str:
    source = opened(text)
    complete = {**{block.key: block.text for block in source.blocks}, **translations}
    return render(HTML, None, source, complete, locale).data.decode()


def tree(text: str) -> list[str]:
    return [str(element.tag) for element in lxml.html.document_fromstring(text).iter()]


class Positions(HTMLParser):
    """Where the standard library sees tags begin."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self.found: list[tuple[int, str]] = []
        self.feed(text)

    def _put(self, tag: str) -> None:
        line, column = self.getpos()
        self.found.append((self._starts[line - 1] + column, tag))

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._put(tag)

    def handle_endtag(self, tag: str) -> None:
        self._put(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._put(tag)


@pytest.mark.parametrize("locale", ["de", "ja", "ar"])
@pytest.mark.parametrize("file", corpus("html"))
def test_real_pages_take_any_translation_and_nothing_else_changes(file: Path, locale: str) -> None:
    data = file.read_bytes()
    source = opened(data)
    assert source.blocks
    assert render(HTML, None, source, {b.key: b.text for b in source.blocks}, "en").data == data
    for mark in ("«{}»", "\u2020{}\n weiter", '& {} "so" ', "重要 {}"):
        translations = {
            b.key: restore(p := protect(b.text, b.syntax), mark.format(p.text)) for b in source.blocks
        }
        rendered = render(HTML, None, source, translations, locale)
        again = open_document(HTML, "a.html", rendered.data, "target", locale)
        assert [b.key for b in again.blocks] == [b.key for b in source.blocks]
        assert tree(rendered.data.decode()) == tree(data.decode())
        words = "".join(lxml.html.document_fromstring(rendered.data.decode()).itertext())
        assert words.count(mark[0]) >= sum(b.syntax == "html" for b in source.blocks)


@pytest.mark.parametrize("file", corpus("html"))
def test_tags_stand_where_the_standard_library_sees_them(file: Path) -> None:
    text = file.read_text()
    found = [(mark.start, mark.name) for mark in marks(text) if mark.kind in ("open", "close")]
    assert found == Positions(text).found


T5 = "<p>To disable it, write &lt;script&gt; in the template. It&#39;s &quot;safe&quot;.</p>"


def test_case_t5_entities_stay_text() -> None:
    protected = protect(blocks(T5)["p"], "html")
    assert protected.text == 'To disable it, write ⟦1⟧ in the template. It\'s "safe".'
    answer = restore(protected, 'Zum Abschalten ⟦1⟧ in die Vorlage schreiben. Es ist "sicher".')
    result = written(T5, {"p": answer})
    assert result == (
        "<p>Zum Abschalten &lt;script&gt; in die Vorlage schreiben. Es ist &quot;sicher&quot;.</p>"
    )
    assert tree(result) == tree(T5)
    with pytest.raises(DragomanError, match="would change"):
        written(T5, {"p": answer.replace("&lt;", "<").replace("&gt;", ">")})


def test_keys_are_paths_from_the_nearest_id_on() -> None:
    text = (
        "<html><head><title>T</title></head><body><h1>H</h1><div id=main><p>One<p>Two <b>bold</b></div>"
        "<ul><li>a<li>b<ul><li>c</ul></ul><table><tr><td>x<td>y</table>text<div>in</div>behind</body></html>"
    )
    assert blocks(text) == {
        "html/head/title": "T",
        "html/body/h1": "H",
        "#main/p": "One",
        "#main/p[2]": "Two <b>bold</b>",
        "html/body/ul/li": "a",
        "html/body/ul/li[2]": "b",
        "html/body/ul/li[2]/ul/li": "c",
        "html/body/table/tr/td": "x",
        "html/body/table/tr/td[2]": "y",
        "html/body": "text",
        "html/body/div": "in",
        "html/body/text()[2]": "behind",
    }


@pytest.mark.parametrize(
    "text",
    [
        "<script>let a = '<p>no</p>';</script><style>p { x: 'y' }</style>",
        "<pre>code\nhere</pre><p><code>x y</code></p>",
        "<template><p>no</p></template><svg><title>no</title><text>no</text></svg>",
        "<!-- <p>no</p> --><!doctype html><?php echo 'no' ?>",
        '<div translate="no"><p>no</p><div>no</div>no</div><p class="a notranslate">no</p>',
        "<p>{{ name }} – 5 &nbsp; ©</p><p>{% if a > b %}{% endif %}</p><p><%= name %></p><p>${name}</p>",
        "{% block body_class %}dark wide{% endblock %}",
        '<input value="typed"><meta name="author" content="X"><a href="no" data-title="no"></a><img alt="">',
        "<p",
        '<p title="no',
        "<!-- no",
    ],
)
def test_what_is_no_prose_is_no_block(text: str) -> None:
    assert blocks(text) == {}
    assert written(text, {}) == text


def test_attributes_that_are_read_out_are_blocks_unescaped() -> None:
    text = (
        '<meta property="og:title" content="A &amp; B"><img src=x alt=Alt title=\'It&#39;s\'><p>Text</p>'
        '<input type="Submit" value="Send"><input placeholder="Name {{ n }}" aria-label="Your name">'
        '<table summary="Sum"></table><select><optgroup label="Group"><option>One</select>'
    )
    assert blocks(text) == {
        "meta/@content": "A & B",
        "@alt": "Alt",
        "@title": "It's",
        "p": "Text",
        "@value": "Send",
        "@placeholder": "Name {{ n }}",
        "@aria-label": "Your name",
        "table/@summary": "Sum",
        "select/optgroup/@label": "Group",
        "select/optgroup/option": "One",
    }
    result = written(text, {"@alt": 'x "y"', "@title": "C'est <b>", "@placeholder": '"{{ n }}" & so'})
    assert "<img src=x alt=\"x &quot;y&quot;\" title='C&#39;est <b>'>" in result
    assert 'placeholder="&quot;{{ n }}&quot; &amp; so"' in result


def test_attributes_within_a_sentence_go_where_their_tags_go() -> None:
    text = '<p>Click <img src=a alt="One"> or <img src=b alt="Two"> now</p>'
    assert blocks(text) == {
        "p": 'Click <img src=a alt=""> or <img src=b alt=""> now',
        "p/@alt": "One",
        "p/@alt[2]": "Two",
    }
    turned = {
        "p": 'Jetzt <img src=b alt=""> oder <img src=a alt="">',
        "p/@alt": "Eins",
        "p/@alt[2]": "Zwei",
    }
    assert written(text, turned) == ('<p>Jetzt <img src=b alt="Zwei"> oder <img src=a alt="Eins"></p>')
    assert written(text, {"p/@alt": "Eins"}) == text.replace("One", "Eins")
    with pytest.raises(DragomanError, match="lost its tag"):
        written(text, {"p": 'Jetzt <img src=b alt="">'})


def test_white_space_is_one_space_and_an_untouched_text_keeps_its_lines() -> None:
    text = "<p>\n  one\n  two <a\n   href='x'>three\n four</a>\n</p>\n<p>five</p>"
    assert blocks(text)["p"] == "one two <a\n   href='x'>three four</a>"
    assert written(text, {"p[2]": "fünf"}) == text.replace("five", "fünf")
    assert written(text, {"p": "eins\nzwei <a\n   href='x'>drei</a>"}) == (
        "<p>\n  eins zwei <a\n   href='x'>drei</a>\n</p>\n<p>five</p>"
    )


@pytest.mark.parametrize(
    "text, locale, expected",
    [
        ('<html lang="en"><p>x</p></html>', "de", '<html lang="de"><p>x</p></html>'),
        ('<html lang=en dir="ltr"></html>', "ar", '<html lang=ar dir="rtl"></html>'),
        ("<html xml:lang='en' lang='en'></html>", "pt-BR", "<html xml:lang='pt-BR' lang='pt-BR'></html>"),
        ('<html lang="{{ lang }}"></html>', "he", '<html lang="{{ lang }}"></html>'),
        ("<html><p lang=en>x</p></html>", "he", "<html><p lang=en>x</p></html>"),
        ('<html lang="en" translate="no"></html>', "de", '<html lang="de" translate="no"></html>'),
    ],
)
def test_the_roots_language_follows_where_it_is_declared(text: str, locale: str, expected: str) -> None:
    assert written(text, {}, locale) == expected


@pytest.mark.parametrize(
    "text",
    [
        "<p>Hi {{ user.name }}, {% if n > 1 %}you have{% else %}no{% endif %} <%= count %> and ${total}</p>",
        '<p>See <a href="{% url "a>b" x=1 %}" {% if y > 2 %}class="z"{% endif %}>it</a> or {# > #} there</p>',
        "<p>Price <?php echo $a > $b ? '<p>' : ''; ?> now</p>",
    ],
)
def test_templates_stay_also_where_they_hold_angle_brackets(text: str) -> None:
    shown = blocks(text)
    assert list(shown) == ["p"]
    assert shown["p"] == text[3:-4]
    assert written(text, {"p": f"«{shown['p']}»"}) == f"<p>«{shown['p']}»</p>"
    with pytest.raises(DragomanError, match="would change"):
        written(text, {"p": "nichts"})


@pytest.mark.parametrize(
    "translation", ["a</p><p>b", "a <b>c</b>", "a<!-- x", "a <script>x</script>", "<h1>a</h1>", "a {{ x }}"]
)
def test_a_translation_that_changes_the_page_is_not_written(translation: str) -> None:
    with pytest.raises(DragomanError) as refused:
        written("<div><p>One</p><p>Two</p></div>", {"div/p": translation})
    assert refused.value.code == "verify_failed"


def test_a_title_is_no_markup() -> None:
    assert blocks("<title>a <b> c</title>") == {"title": "a <b> c"}
    assert written("<title>a <b> c</title>", {"title": "x <b> y & z"}) == "<title>x <b> y & z</title>"
    with pytest.raises(DragomanError):
        written("<title>a</title><p>b</p>", {"title": "x</title>"})


@pytest.mark.parametrize(
    "declared, codec",
    [
        ('<meta charset="iso-8859-1">', "windows-1252"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">', "windows-1251"),
        ('<?xml version="1.0" encoding="shift_jis"?>', "shift_jis"),
        ("<meta charset=utf-16>", "utf-8"),
        ("", "utf-8"),
    ],
)
def test_the_encoding_that_a_page_declares_is_kept_and_never_too_small(declared: str, codec: str) -> None:
    data = f'{declared}<p title="One">Two</p>'.encode(codec)
    source = opened(data)
    translations = {"p/@title": "Ж “ü” 中", "p": "<b>Ж</b> “ü” 中"}
    with pytest.raises(DragomanError):
        render(HTML, None, source, translations, "ru")  # a tag too many
    translations["p"] = "Ж “ü” 中"
    rendered = render(HTML, None, source, translations, "ru").data
    assert rendered.startswith(declared.encode(codec))
    assert unescape(rendered.decode(codec)) == f'{declared}<p title="Ж “ü” 中">Ж “ü” 中</p>'
    again = open_document(HTML, "a.html", rendered, "target", "ru")
    assert render(HTML, again, again, {b.key: b.text for b in again.blocks}, "ru").data == rendered


def test_an_encoding_that_nobody_knows_is_refused() -> None:
    with pytest.raises(DocumentError, match="charset 'x-nobody' is unknown"):
        opened("<meta charset=x-nobody>")


def test_nesting_beyond_any_page_is_refused_with_its_line() -> None:
    with pytest.raises(DocumentError, match="deeper than") as refused:
        opened("\n" + "<div>" * 5_000)
    assert refused.value.line == 2


@pytest.mark.parametrize(
    "piece",
    [
        "<b>",
        "<code>",
        "{{",
        "{%",
        "<a b='",
        "<p title={{",
        "<!--",
        "</",
        "<a {{",
        "&lt;",
        "<p>a",
        "<td>",
        '"{%',
        "${",
    ],
)
def test_reading_takes_time_by_length_alone(piece: str) -> None:
    begun = time.process_time()
    opened(piece * 20_000)
    assert time.process_time() - begun < 5


PIECES = """\
<p> </p> <b> </b> <br> <img_alt='x'> <ul> <li> <title> </title> <script> </script> {{ }} {% %} <% %> ${ } <!--
--> &amp; &lt; < > " ' word Wort\n <a_title=" <code> </code> = <td> <div_id=x> </div> <?php ?> x_translate=no>
"""
MARKUP = st.lists(st.sampled_from(PIECES.split()), max_size=25).map(
    lambda parts: " ".join(parts).replace("_", " ")
)


@settings(deadline=None, max_examples=300)
@given(MARKUP)
def test_no_text_loses_a_byte(text: str) -> None:
    """Marks cover all, and writing what is there gives the same bytes."""
    found = list(marks(text))
    assert "".join(text[mark.start : mark.end] for mark in found) == text
    source = opened(text)
    values = {block.key: block.text for block in source.blocks}
    assert HTML.write(source, source, values, "en").text == text
    assert len(values) == len(source.blocks)


@given(st.text(), st.sampled_from(["'", '"', ""]))
def test_attributes_read_back_as_they_were_written(value: str, quote: str) -> None:
    raw = spelled(value, quote)
    tag = next(marks(f"<p title={quote}{raw}{quote}>"))
    attribute = tag.attribute("title")
    assert attribute
    assert attribute.text == value
