"""WordPress: blocks, attributes and shortcodes stay, and each text is told apart from its code."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.wordpress_post import WordPressPost
from dragoman.content.lexers.gutenberg import pieces
from dragoman.content.lexers.json_offsets import string_offsets
from dragoman.content.lexers.json_tokens import scan
from dragoman.content.protection import protect
from dragoman.kernel.errors import DragomanError
from dragoman.model.documents import Document

FORMAT = WordPressPost()


def source(post: object, **options: Any) -> Document:
    text = post if isinstance(post, str) else json.dumps(post, **options)
    return open_document(FORMAT, "post.json", text.encode(), "source", "en")


def content(raw: str) -> Document:
    return source({"id": 1, "content": {"raw": raw, "rendered": "<p>out</p>"}})


def texts(document: Document) -> dict[str, str]:
    return {block.key: block.text for block in document.blocks}


def written(document: Document, values: dict[str, str]) -> Any:
    return json.loads(render(FORMAT, None, document, texts(document) | values, "de").data)


def test_an_attribute_keeps_the_escaping_of_block_comments() -> None:
    """As WordPress itself writes it: a comment must neither end early nor become a tag."""
    comment = '<!-- wp:acme/card {"title":"A \\u0022b\\u0022 \\u0026 c","href":"/x","n":[1]} /-->'
    document = content(comment)
    key = "content/wp:acme/card[0]/title"
    assert texts(document) == {key: 'A "b" & c'}
    result = written(document, {key: 'x\n-- "y" <b>&\\--> ü'})["content"]["raw"]
    assert result == (
        '<!-- wp:acme/card {"title":"x\\n\\u002d\\u002d \\u0022y\\u0022 \\u003cb\\u003e'
        '\\u0026\\u005c\\u002d\\u002d\\u003e ü","href":"/x","n":[1]} /-->'
    )
    assert json.loads(result[len("<!-- wp:acme/card ") : -4])["title"] == 'x\n-- "y" <b>&\\--> ü'


def test_only_the_raw_values_change_and_each_in_its_own_place() -> None:
    text = json.dumps(
        {"title": {"raw": "Hi", "rendered": "Hi"}, "content": {"raw": "<p>a</p>\n<p>b</p>"}, "x": "Hi"}
    )
    document = source(text.replace("<p>b", "\\u003cp>b"))
    rendered = render(
        FORMAT, None, document, {"title": "Hallo", "content/p": "a", "content/p[2]": "ß\n“"}, "de"
    )
    assert [(edit.kind, edit.key, edit.text) for edit in rendered.edits] == [
        ("value", "title", "Hallo"), ("value", "content/p[2]", "ß “"),
    ]  # fmt: skip
    assert rendered.data.decode() == document.text.replace('"raw": "Hi"', '"raw": "Hallo"').replace(
        "p>b", "p>ß “"
    )


@pytest.mark.parametrize(
    "post", [{"title": "Hi", "content": "<p>a</p>"}, {"title": {"raw": "Hi"}, "content": {"raw": "<p>a</p>"}}]
)
def test_plain_strings_are_read_as_raw_values_are(post: dict[str, Any]) -> None:
    assert texts(source(post)) == {"title": "Hi", "content/p": "a"}
    assert texts(source([post, post])) == {
        "0/title": "Hi", "0/content/p": "a", "1/title": "Hi", "1/content/p": "a",
    }  # fmt: skip


def test_what_is_rendered_alone_is_no_text() -> None:
    assert texts(source({"title": {"rendered": "Hi"}, "content": {"rendered": "<p>a</p>"}})) == {}


def test_lines_of_a_classic_post_are_texts_and_stay_lines() -> None:
    """WordPress makes a paragraph of each empty line and a break of each other one."""
    document = content("First <b>line</b>\nsecond line\n\nNext\n<ul>\n<li>One\nmore</li>\n</ul>\nLast")
    assert list(texts(document).values()) == [
        "First <b>line</b>",
        "second line",
        "Next",
        "One",
        "more",
        "Last",
    ]
    pseudo = {key: f"{text}×" for key, text in texts(document).items()}
    assert written(document, pseudo)["content"]["raw"] == (
        "First <b>line</b>×\nsecond line×\n\nNext×\n<ul>\n<li>One×\nmore×</li>\n</ul>\nLast×"
    )


def test_lines_without_any_tag_are_texts_too() -> None:
    document = source(
        {"content": {"raw": "One & all\r\n\r\nTwo"}, "acf": {"area": "A b\nC d"}, "title": "A & b"}
    )
    assert list(texts(document).values()) == ["One & all", "Two", "A b", "C d", "A & b"]
    result = written(document, {key: f"{text}×" for key, text in texts(document).items()})
    assert (result["content"]["raw"], result["acf"]["area"]) == ("One & all×\r\n\r\nTwo×", "A b×\nC d×")


def test_texts_do_not_cross_the_comments_of_blocks() -> None:
    raw = "Old\n<!-- wp:html -->free\ntext<!-- /wp:html -->\nafter <!--more--> it"
    assert list(texts(content(raw)).values()) == ["Old", "free text", "after <!--more--> it"]


def test_nested_blocks_and_their_tags_stay() -> None:
    inner = "<!-- wp:paragraph -->\n<p>In <strong>it</strong></p>\n<!-- /wp:paragraph -->"
    raw = f'<!-- wp:columns -->\n<div class="c">{inner}\n{inner}</div>\n<!-- /wp:columns -->'
    document = content(raw)
    result = written(document, {"content/div/p[2]": "<strong>Es</strong> drin"})["content"]["raw"]
    assert result == raw[: raw.rindex("In")] + "<strong>Es</strong> drin" + raw[raw.rindex("</p>") :]
    with pytest.raises(DragomanError, match="a tag, a block or an attribute would change: <strong"):
        written(document, {"content/div/p": "In it"})


def test_an_image_inside_a_text_keeps_its_alternative_text_translated() -> None:
    document = content('<p>See <img src="x" alt="A cat"> now</p>')
    assert texts(document) == {"content/p": 'See <img src="x" alt=""> now', "content/p/@alt": "A cat"}
    result = written(document, {"content/p": 'Sieh <img src="x" alt="">', "content/p/@alt": "Katze"})
    assert result["content"]["raw"] == '<p>Sieh <img src="x" alt="Katze"></p>'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('See [gallery ids="1,2"] and [gallery]', "See ⟦1⟧ and ⟦2⟧"),
        ('[caption id="a" width="3"]<img src="x"> Our cat[/caption]', "⟦1⟧⟦2⟧ Our cat⟦/1⟧"),
        ("[button]Buy[/button] [x", "⟦1⟧Buy⟦/1⟧ [x"),
        ("[music] [audio plays] [sic]", "[music] [audio plays] [sic]"),
        ("[my_box big]In[/my_box] [embed]https://a.example[/embed]", "⟦1⟧In⟦/1⟧ ⟦2⟧⟦3⟧⟦/2⟧"),
        ('[acme-card title="a b" n=3 /] [contact_us]', "⟦1⟧ ⟦2⟧"),
        ("%%title%% %sep% 100% %%", "⟦1⟧ ⟦2⟧ 100% %%"),
    ],
)
def test_shortcodes_and_seo_variables_are_protected(text: str, shown: str) -> None:
    assert protect(text, "html").text == shown


def test_shortcodes_alone_are_no_text() -> None:
    assert (
        texts(content('<p>[gallery ids="1"]</p>\n[embed]https://a.example[/embed]\n<p>[x_y]</p><p>—</p>'))
        == {}
    )


def test_fields_of_acf_that_people_wrote_are_texts() -> None:
    rows = [{"rich": "<p>One</p><p>Two</p>", "when": "2026-01-01"}]
    acf = {"a": "Big words", "b": "two-columns", "c": "#ff00aa", "d": "https://a.example/x", "e": 3,
           "f": True, "g": rows, "h": "field_62ab", "i": "Yes"}  # fmt: skip
    assert texts(source({"acf": acf})) == {
        "acf/a": "Big words", "acf/g/0/rich/p": "One", "acf/g/0/rich/p[2]": "Two", "acf/i": "Yes",
    }  # fmt: skip


def test_seo_values_are_texts_and_what_is_computed_is_not() -> None:
    meta = {"_yoast_wpseo_title": "T %%sep%%", "_yoast_wpseo_metadesc": ["D"], "rank_math_description": "R",
            "_yoast_wpseo_linkdex": "low", "footnotes": ""}  # fmt: skip
    post = {"meta": meta, "yoast_head_json": {"title": "out"}, "alt_text": "A cat", "caption": {"raw": "C"}}
    assert list(texts(source(post)).values()) == ["T %%sep%%", "D", "R", "A cat", "C"]


def test_blocks_of_acf_and_attributes_that_are_code_are_told_apart() -> None:
    data = '{"name":"acf/hero","data":{"intro":"Some words","_intro":"field_x y","tone":"dark","title":"Hi"}}'
    raw = f'<!-- wp:acf/hero {data} /--><!-- wp:image {{"alt":"cat","className":"is big"}} /-->'
    assert list(texts(content(raw)).values()) == ["Some words", "Hi", "cat"]


def test_a_comment_that_is_no_blocks_is_kept() -> None:
    raw = '<!-- wp:x {"title": "a} --><p>One</p><!-- wp:y {"title":"b" /--><!-- wp:z {"title":"c"}'
    document = content(raw)
    assert next(iter(texts(document).values())) == "One"
    assert written(document, {"content/p": "Eins"})["content"]["raw"] == raw.replace("One", "Eins")


def test_a_post_is_known_by_raw_values_or_blocks() -> None:
    for head in (
        '{"id":1,"title":{"raw":"x"',
        '{"content":"\\u003c!-- wp:paragraph',
        '{"content":"<!-- wp:x',
    ):
        assert FORMAT.detect("a.json", head)
        assert not FORMAT.detect("a.html", head)
    assert not FORMAT.detect("a.json", '{"title": "x", "content": "y", "raw": "z"}')


@given(st.text(st.characters(codec="utf-8")), st.booleans(), st.integers(0, 30))
def test_offsets_in_a_string_are_found_in_the_file(text: str, ascii_only: bool, cut: int) -> None:
    spelled = "  " + json.dumps(text, ensure_ascii=ascii_only).replace("/", "\\/")
    at = string_offsets(spelled, scan(spelled))
    cut = min(cut, len(text))
    assert json.loads(f'"{spelled[at(0) : at(cut)]}"') == text[:cut]
    assert json.loads(f'"{spelled[at(cut) : at(len(text))]}"') == text[cut:]


@given(
    st.lists(
        st.sampled_from(
            ["<!-- wp:a ", '{"title":"x"} ', "-->", "/-->", "<p>", "</p>", "one", "\n", '<img alt="b">']
        )
    )
)
def test_any_content_is_read_and_written_back(parts: list[str]) -> None:
    document = content("".join(parts))
    assert render(FORMAT, None, document, texts(document), "de").edits == ()


def test_a_hostile_post_costs_linear_time() -> None:
    for part in (
        "<!-- wp:a {",
        "[a b=c ",
        "[a]",
        "<!-- wp:a -->",
        "%%a",
        '<!-- wp:a {"title":"x"} -->text\n',
    ):
        pieces(part * 5_000, lambda block, name, text: True)
