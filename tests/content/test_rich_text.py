"""Tree editors: a paragraph is one text whatever it is cut into, and its pieces come back as their nodes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.contentful import ContentfulRichText
from dragoman.content.formats.lexical import LexicalDocument
from dragoman.content.formats.portable_text import PortableText
from dragoman.content.protection import protect, restore
from dragoman.kernel.errors import DragomanError
from dragoman.model.contracts import Format
from dragoman.model.documents import Document
from tests.content.real_files import corpus

PORTABLE, LEXICAL, CONTENTFUL = PortableText(), LexicalDocument(), ContentfulRichText()


def source(value: object, form: Format = PORTABLE) -> Document:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return open_document(form, "a.json", text.encode(), "source", "en")


def texts(document: Document) -> dict[str, str]:
    return {block.key: block.text for block in document.blocks}


def written(document: Document, values: dict[str, str], form: Format = PORTABLE) -> Any:
    everything = texts(document) | values
    return json.loads(render(form, None, document, everything, "de").data)


def span(text: str, *marks: str, key: str = "") -> dict[str, Any]:
    return {"_type": "span", "marks": list(marks), "text": text} | ({"_key": key} if key else {})


def block(*children: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"_type": "block", "style": "normal", "children": list(children), **more}


@pytest.mark.parametrize("file", corpus("cms"))
def test_real_blocks_are_read_and_come_back(file: Path) -> None:
    """Sanity's own fixtures; the object literal is read as YAML, which it happens to be."""
    match = re.search(r"input: (.*?),\n  output", file.read_text("utf-8"), re.DOTALL)
    assert match
    value = yaml.safe_load(match[1])
    document = source(value)
    assert json.dumps(value) == json.dumps(written(document, {}))
    assert render(PORTABLE, None, document, texts(document), "de").edits == ()
    pseudo = {key: restore(shown, f"[{shown.text} ×]") for key, text in texts(document).items()
              for shown in (protect(text, "html"),)}  # fmt: skip
    result = source(written(document, pseudo))
    assert texts(result) == pseudo
    marks = [
        [each["marks"] for each in spans(found) if each["marks"]]
        for found in (value, written(document, pseudo))
    ]
    assert marks[0] == marks[1]


def spans(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [found for item in value for found in spans(item)]
    if isinstance(value, dict):
        return [value] if value.get("_type") == "span" else spans(list(value.values()))
    return []


def test_marks_are_pairs_and_inline_objects_tags() -> None:
    link = {"_key": "l", "_type": "link", "href": "https://a.example"}
    image = {"_type": "image", "_key": "i", "asset": {"_ref": "x"}}
    document = source(
        block(span("A "), span("b", "l", "em"), image, span("x()", "code"), span("."), markDefs=[link])
    )
    assert texts(document) == {"children": "A <link-em-1>b</link-em-1><image-2/><code-3/>."}
    shown = protect(document.blocks[0].text, document.blocks[0].syntax)
    assert shown.text == "A ⟦1⟧b⟦/1⟧⟦2⟧⟦3⟧."


def test_pieces_may_change_places() -> None:
    """[T8] The order of a language is its own; the nodes follow it."""
    document = source(
        block(span("Press "), span("Save", "strong"), span(" to "), span("keep", "em"), span(" it."))
    )
    result = written(
        document, {"children": "Zum <em-2>Behalten</em-2> <strong-1>Sichern</strong-1> drücken."}
    )
    assert [(each["text"], each["marks"]) for each in result["children"]] == [
        ("Zum ", []), ("Behalten", ["em"]), (" ", []), ("Sichern", ["strong"]), (" drücken.", []),
    ]  # fmt: skip


def test_a_span_that_becomes_two_gets_a_key_of_its_own() -> None:
    document = source(block(span("Save", "strong", key="s"), span(" it", key="t")))
    result = written(document, {"children": "Es <strong-1>sichern</strong-1> bitte"})
    assert [(each["_key"], each["text"], each["marks"]) for each in result["children"]] == [
        ("t-1", "Es ", []), ("s", "sichern", ["strong"]), ("t", " bitte", []),
    ]  # fmt: skip


def test_where_all_text_is_formatted_new_plain_text_is_a_plain_copy() -> None:
    document = source(block(span("One", "strong", key="a"), span("Two", "em", key="b")))
    assert texts(document) == {"children": "<strong-1>One</strong-1><em-2>Two</em-2>"}
    result = written(document, {"children": "<strong-1>Eins</strong-1> und <em-2>zwei</em-2>"})
    assert [(each["text"], each["marks"]) for each in result["children"]][1] == (" und ", [])


def test_a_pair_inside_a_pair_is_taken_apart() -> None:
    document = source(block(span("One", "strong"), span(" two", "em"), span(" three")))
    result = written(document, {"children": "<strong-1>Eins <em-2>zwei</em-2> mehr</strong-1> drei"})
    assert [(each["text"], each["marks"]) for each in result["children"]] == [
        ("Eins ", ["strong"]), ("zwei", ["em"]), (" mehr", ["strong"]), (" drei", []),
    ]  # fmt: skip


def test_text_cut_into_nodes_for_no_reason_is_one_text() -> None:
    document = source(block(span("Hel", key="a"), span("lo", key="b"), span("!", "em"), span("", "strong")))
    assert texts(document) == {"children": "Hello<em-1>!</em-1>"}
    assert [each["text"] for each in written(document, {})["children"]] == ["Hel", "lo", "!", ""]
    result = written(document, {"children": "Hallo<em-1>?</em-1>"})
    assert [each["text"] for each in result["children"]] == ["Hallo", "?"]
    assert result["children"][0]["_key"] == "a"


def test_what_looks_like_a_tag_is_text() -> None:
    plain = "a < b & <strong-1> &amp; &lt; <!-- R&D"
    document = source(block(span(plain), span("x", "em")))
    assert document.blocks[0].text == "a < b & &lt;strong-1> &amp;amp; &amp;lt; &lt;!-- R&D<em-1>x</em-1>"
    result = written(document, {"children": document.blocks[0].text.replace("R&D", "F&E")})
    assert result["children"][0]["text"] == plain.replace("R&D", "F&E")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("a <strong-1>b</strong-1>", "<em-2> is missing"),
        ("<strong-1>a<em-2>b</strong-1></em-2>", "</strong-1> closes what is not open"),
        ("<strong-1>a</strong-1><em-2>b</em-2><em-2>c</em-2>", "<em-2> stands in the translation twice"),
        ("<em-2>a</em-2><strong-1>b", "</strong-1> is missing"),
        ("<strong-1></strong-1><em-2>b</em-2>", "a format of a text would be lost"),
        ("<b-3>a</b-3><strong-1>a</strong-1><em-2>b</em-2>", "would read back as another text"),
    ],
)
def test_a_translation_whose_tags_are_not_the_sources_is_refused(value: str, reason: str) -> None:
    document = source(block(span("One", "strong"), span("two", "em")))
    with pytest.raises(DragomanError, match=reason):
        written(document, {"children": value})


def test_keys_are_those_that_the_editor_gives_for_good() -> None:
    body = [block(span("One"), _key="k/1"), {"_type": "image", "_key": "k2", "alt": "A cat", "title": "/x"}]
    assert texts(source({"title": "T", "body": body})) == {
        "title": "T", "body/k~11/children": "One", "body/k2/alt": "A cat",
    }  # fmt: skip


def words(text: str, bits: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, "format": bits, "version": 1, **more}


def paragraph(*children: dict[str, Any], kind: str = "paragraph", **more: Any) -> dict[str, Any]:
    return {"type": kind, "children": list(children), **more}


def test_lexicals_formats_links_and_line_breaks() -> None:
    link = paragraph(words("this "), words("page", 1), kind="link", fields={"url": "/x", "title": "Kept"})
    nodes = [
        words("See "),
        link,
        {"type": "linebreak"},
        words("x", 16),
        words("!", 3),
        words("?", style="a: b"),
    ]
    document = source({"root": paragraph(paragraph(*nodes), kind="root")}, LEXICAL)
    key = "root/children/0/children"
    assert texts(document) == {
        key: "See <link-1>this <bold-2>page</bold-2></link-1><linebreak-3/><code-4/>"
        "<bold-italic-5>!</bold-italic-5><style-6>?</style-6>"
    }
    value = ("<link-1><bold-2>Seite</bold-2> hier</link-1> ansehen<linebreak-3/><code-4/>"
             "<bold-italic-5>!</bold-italic-5><style-6>?</style-6>")  # fmt: skip
    children = written(document, {key: value}, LEXICAL)["root"]["children"][0]["children"]
    assert [(node["type"], node.get("text")) for node in children] == [
        ("link", None), ("text", " ansehen"), ("linebreak", None),
        ("text", "x"), ("text", "!"), ("text", "?"),
    ]  # fmt: skip
    assert [(node["text"], node["format"]) for node in children[0]["children"]] == [
        ("Seite", 1),
        (" hier", 0),
    ]


def test_lexicals_nested_lists_tables_and_uploads_are_looked_into_and_code_is_not() -> None:
    inner = paragraph(paragraph(words("Inner"), kind="listitem"), kind="list", tag="ul")
    items = paragraph(paragraph(words("Outer"), inner, words("after"), kind="listitem"), kind="list")
    cell = paragraph(paragraph(paragraph(words("Cell")), kind="tablecell"), kind="tablerow")
    code = paragraph({"type": "code-highlight", "text": "let x"}, kind="code", title="No")
    upload = {
        "type": "upload",
        "fields": {"alt": "A cat", "caption": {"root": paragraph(paragraph(words("Cap")))}},
    }
    mention = paragraph({"type": "mention", "label": "Kept"}, words("@you", mode="token"), words(" hi"))
    document = source({"root": paragraph(items, cell, code, upload, mention)}, LEXICAL)
    assert list(texts(document).values()) == [
        "Outer", "Inner", "after", "Cell", "A cat", "Cap", "<mention-1/><code-2/> hi",
    ]  # fmt: skip
    pseudo = {key: f"{text}×" for key, text in texts(document).items()}
    assert texts(source(written(document, pseudo, LEXICAL), LEXICAL)) == pseudo


def test_contentfuls_marks_hyperlinks_and_inline_entries() -> None:
    def text(value: str, *marks: str) -> dict[str, Any]:
        return {"nodeType": "text", "value": value, "marks": [{"type": mark} for mark in marks], "data": {}}

    link = {"nodeType": "hyperlink", "data": {"uri": "u"}, "content": [text("page")]}
    entry = {"nodeType": "embedded-entry-inline", "data": {"target": {}}, "content": []}
    body = [
        {
            "nodeType": "paragraph",
            "data": {},
            "content": [text("See "), link, text(""), entry, text("x", "bold")],
        }
    ]
    document = source({"nodeType": "document", "data": {}, "content": body}, CONTENTFUL)
    key = "content/0/content"
    assert texts(document) == {
        key: "See <hyperlink-1>page</hyperlink-1><embedded-entry-inline-2/><bold-3>x</bold-3>"
    }
    value = "<bold-3>x</bold-3><embedded-entry-inline-2/> siehe <hyperlink-1>Seite</hyperlink-1>"
    content = written(document, {key: value}, CONTENTFUL)["content"][0]["content"]
    assert [(node["nodeType"], node.get("value")) for node in content] == [
        ("text", "x"), ("text", ""), ("embedded-entry-inline", None),
        ("text", " siehe "), ("hyperlink", None),
    ]  # fmt: skip


def test_each_editor_is_known_by_what_a_file_begins_with() -> None:
    heads = {
        '{"title": "x", "root": {"children": [], "type": "root"}}': LEXICAL,
        '{"content": {"root": {"type": "root", "format": ""': LEXICAL,
        '[{"_key": "a", "_type": "block"': PORTABLE,
        '{"data": {}, "nodeType": "document"': CONTENTFUL,
        '{"root": "x", "children": [1]}': None,
        '{"type": "root", "block": 1}': None,
    }
    for head, expected in heads.items():
        found = [form for form in (LEXICAL, PORTABLE, CONTENTFUL) if form.detect("x.json", head)]
        assert found == ([expected] if expected else []), head
        assert not any(form.detect("x.yml", head) for form in (LEXICAL, PORTABLE, CONTENTFUL))


PIECES = st.lists(
    st.builds(
        span, st.text(st.sampled_from('ab &<>/;-1lt\n"\\é'), max_size=6), st.sampled_from(["em", "strong"])
    )
    | st.builds(span, st.text(max_size=5))
    | st.just({"_type": "image", "alt": "Kept"}),
    min_size=1,
    max_size=6,
)


@given(PIECES, st.data())
def test_any_nodes_come_back_whatever_the_order_of_their_pieces(
    pieces: list[dict[str, Any]], data: st.DataObject
) -> None:
    document = source(block(*pieces))
    assert render(PORTABLE, None, document, texts(document), "de").edits == ()
    for each in document.blocks:
        if each.key != "children":
            continue
        cut = [match[0] for match in re.finditer(r"<([a-z-]+-\d+)>(?:.|\n)*?</\1>|<[a-z-]+-\d+/>", each.text)]
        moved = "x".join(["", *data.draw(st.permutations(cut)), ""])
        result = written(document, {"children": moved})
        assert sum(child["_type"] == "image" for child in result["children"]) == sum(
            child["_type"] == "image" for child in pieces
        )


def test_copies_stand_as_the_file_sets_its_nodes_apart() -> None:
    """Compact files stay compact, and a key that a copy would take may be taken."""
    text = '[{"_type":"block","children":[{"_type":"span","_key":"a","text":"Hi","marks":["em"]}]}]'
    document = source(text.replace("}]}]", '},{"_type":"image","_key":"a-1"}]}]'))
    value = {"0/children": "Hallo <image-1/> du"}
    result = render(PORTABLE, None, document, value, "de").data.decode()
    assert [child["_key"] for child in json.loads(result)[0]["children"]] == ["a", "a-1", "a-2"]
    assert ", " not in result
    spread = source([block(span("One", "em"))])
    key = spread.blocks[0].key
    assert written(spread, {key: "Eins"})[0]["children"][0]["text"] == "Eins"
