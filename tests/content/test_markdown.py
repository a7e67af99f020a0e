from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.markdown import MarkdownFormat
from dragoman.content.lexers.markdown_blocks import explicit_references
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Document
from tests.content.real_files import case, corpus

MARKDOWN = MarkdownFormat()
MDX = MarkdownFormat(mdx=True)


def opened(text: str | bytes, format: MarkdownFormat = MARKDOWN) -> Document:
    return open_document(format, "a.md", text.encode() if isinstance(text, str) else text, "source", "en")


def blocks(text: str, format: MarkdownFormat = MARKDOWN) -> dict[str, str]:
    return {block.key: block.text for block in opened(text, format).blocks}


def written(
    text: str, translations: Mapping[str, str], locale: str = "de", format: MarkdownFormat = MARKDOWN
) -> str:
    source = opened(text, format)
    complete = {**{block.key: block.text for block in source.blocks}, **translations}
    return render(format, None, source, complete, locale).data.decode()


def format_of(file: Path) -> MarkdownFormat:
    return MDX if file.suffix == ".mdx" else MARKDOWN


def code_of(data: bytes) -> list[str]:
    """The lines of code, but for the titles that stand in them."""
    lines = (re.sub(r"^(\s*:::\w+)\[.*\]", r"\1", line) for line in data.decode().splitlines())
    return [line for line in lines if line.strip().startswith(("```", ":::", "{{<", "import "))]


@pytest.mark.parametrize("locale", ["de", "ja"])
@pytest.mark.parametrize("file", corpus("md"))
def test_real_files_take_any_plausible_translation(file: Path, locale: str) -> None:
    """Words before and behind, a second paragraph, and what would begin a list, a heading or a table."""
    format, data = format_of(file), file.read_bytes()
    source = opened(data, format)
    assert render(format, None, source, {b.key: b.text for b in source.blocks}, locale).data == data
    for mark in ("«{}»", "{} \n\nWeiter # - so", "- {} #", "1. {} |", "Ein\nZeilenende: {}"):
        rendered = render(format, None, source, {b.key: mark.format(b.text) for b in source.blocks}, locale)
        assert code_of(rendered.data) == code_of(data)


def test_case_o04_shortcodes_stay_and_their_bodies_are_blocks() -> None:
    given_file, expected = case("O04", "md")
    plain = opened(given_file)
    assert [block.text for block in plain.blocks] == ["Watch:", "Back up *first*."]
    format = MarkdownFormat(shortcode_texts=("title",))
    source = opened(given_file, format)
    assert [block.key for block in source.blocks] == ["0/p1", "alert.title/1", "0/p2"]
    translations = {"0/p1": "Ansehen:", "alert.title/1": "Achtung", "0/p2": "Erst *sichern*."}
    assert render(format, None, source, translations, "de").data == expected


def test_case_o05_footnotes_keep_their_labels_and_indentation() -> None:
    given_file, expected = case("O05", "md")
    source = opened(given_file)
    assert {block.key: block.text for block in source.blocks} == {
        "0/p1": "Ref. [^abc].",
        "fn[abc]/1": "Lorem ipsum\nsecond line.",
    }
    translations = {"0/p1": "Verweis. [^abc].", "fn[abc]/1": "Fußnotentext\nzweite Zeile."}
    assert render(MARKDOWN, None, source, translations, "de").data == expected


def test_every_kind_of_block_has_a_key_by_its_place() -> None:
    text = (
        "---\ntitle: T\n---\nIntro\n\n# One\n\nText\n\n## Sub {#anchor}\n\n- item\n- [x] task\n\n"
        "> quote\n\nTerm\n: Meaning\n\n# Two #\n\n| a | b\\|c |\n|---|---|\n| x |  |\n\n"
        "Set\next\n===\n\n[^n]: Note\n"
    )
    assert blocks(text) == {
        "front/title": "T",
        "0/p1": "Intro",
        "1/h": "One",
        "1/p1": "Text",
        "1.1/h": "Sub",
        "1.1/li1": "item",
        "1.1/li2": "task",
        "1.1/q1": "quote",
        "1.1/dt1": "Term",
        "1.1/dd1": "Meaning",
        "2/h": "Two",
        "2/td1": "a",
        "2/td2": "b|c",
        "2/td3": "x",
        "3/h": "Set\next",
        "fn[n]/1": "Note",
    }


def test_a_new_block_moves_no_key_of_another_section() -> None:
    before = blocks("# A\n\none\n\n# B\n\ntwo\n\n# C\n\nthree\n")
    after = blocks("# A\n\none\n\n# B\n\nnew\n\ntwo\n\n- list\n\n# C\n\nthree\n")
    assert {key: text for key, text in after.items() if before.get(key) != text} == {
        "2/p1": "new",
        "2/p2": "two",
        "2/li1": "list",
    }


@pytest.mark.parametrize(
    "text",
    [
        "```py\nprint('x')\n```\n",
        "~~~\ncode\n",
        "    indented\n",
        "<div>\n<code>html</code>\n</div>\n",
        "<!-- comment\ntext -->\n",
        "[label]: https://example.org\n",
        ":::note\n:::\n",
        "{{< highlight go >}}\nfunc main() {}\n{{< /highlight >}}\n",
        "{{< tabpane >}}\n{{< tab >}}\nx = 1\n{{< /tab >}}\n{{< /tabpane >}}\n",
        "{{% figure\n  src='x'\n  title='y'\n%}}\n",
        '--8<-- "file.md"\n',
        "--8<--\nfile.md\n--8<--\n",
        "$$\nE = mc^2\n$$\n",
        "{.class #id}\n",
        "{% include x %}\n",
        "+++\nslug = 'x'\n+++\n",
        "---\nweight: 1\ndate: 2020-01-01\nslug: a-title\nurl: https://example.org\nimage: x.png\n---\n",
        "---\ntitle: 2020-01-01\ndescription: https://example.org/x\n---\n",
        "---\n\n***\n",
    ],
)
def test_what_is_no_prose_is_no_block(text: str) -> None:
    assert blocks(text) == {}


@pytest.mark.parametrize(
    "text",
    [
        "import X from 'x';\nimport Y from 'y';\n",
        "export const meta = {\n  title: 'x',\n};\n",
        '<Card\n  href="x"\n  items={[1, 2].map((n) => <b>{n}</b>)}\n/>\n',
        "<Tabs>\n<TabItem value='x'>\n</TabItem>\n</Tabs>\n",
        "{/* a\ncomment, isn't it */}\n",
        "<!-- comment -->\n",
        "<>\n</>\n",
    ],
)
def test_what_is_code_in_mdx_is_no_block(text: str) -> None:
    assert blocks(text, MDX) == {}


def test_prose_between_masked_lines_is_blocks_of_its_own() -> None:
    assert list(blocks(":::tip\nOne\n:::\nTwo\n\n{{% alert %}} Three {{% /alert %}}\nFour\n").values()) == [
        "One",
        "Two",
        "Three",
        "Four",
    ]
    assert list(
        blocks('!!! note "Title"\n    Body\n    more\n\n    !!! tip\n        Deep\n\nText\n').values()
    ) == [
        "Title",
        "Body\nmore",
        "Deep",
        "Text",
    ]
    assert list(blocks("> [!NOTE]\n> One\n\n> [!TIP]- Title\n> Two\n").values()) == ["One", "Title", "Two"]
    assert list(
        blocks("<Aside>\n    Text\n</Aside>\n<li>a <b>c</b></li>\n<b>x</b> y <b>z</b>\n", MDX).values()
    ) == [
        "Text",
        "a <b>c</b>",
        "<b>x</b> y <b>z</b>",
    ]


def test_shortcodes_amid_words_stay_in_their_sentence() -> None:
    text = "{{< param x >}} is {{< kbd >}}Q{{< /kbd >}} and\n{{< kbd >}}Z{{< /kbd >}} and {{< param y >}}\n"
    assert list(blocks(text).values()) == [text.strip()]


@pytest.mark.parametrize(
    "text, key, translation, expected",
    [
        ("> one\n> two\n", "0/q1", "eins\nzwei\ndrei", "> eins\n> zwei\n> drei\n"),
        ("- one\n  two\n", "0/li1", "eins", "- eins\n"),
        ("1. one\n", "0/li1", "eins\nzwei", "1. eins\n   zwei\n"),
        ("> - one\n", "0/li1", "eins\nzwei", "> - eins\n>   zwei\n"),
        ("- [ ] one\n", "0/li1", "eins\nzwei", "- [ ] eins\n  zwei\n"),
        ("one  \ntwo\n", "0/p1", "eins  \nzwei", "eins  \nzwei\n"),
        ("one\r\ntwo\r\n", "0/p1", "eins\nzwei\ndrei", "eins\r\nzwei\r\ndrei\r\n"),
        ("one\n", "0/p1", "eins\n\nzwei\n", "eins\nzwei\n"),
        ("# one {#x}\n", "1/h", "eins\nzwei", "# eins zwei {#x}\n"),
        ("# one #\n", "1/h", "eins #", "# eins \\# #\n"),
        ("one\n===\n", "1/h", "- eins", "\\- eins\n===\n"),
        ("|a|\n|-|\n", "0/td1", "x|y\\", "|x\\|y\\ |\n|-|\n"),
        ("one\n", "0/p1", "1. eins\n# zwei\n> drei\n---", "1\\. eins\n\\# zwei\n\\> drei\n\\---\n"),
        ("one\n", "0/p1", "[x]: eins\n+ zwei\n```", "\\[x]: eins\n\\+ zwei\n\\```\n"),
        ("one\n", "0/p1", "*eins* **zwei**", "*eins* **zwei**\n"),
        ("\tone\n", "0/p1", "x", "\tone\n"),
    ],
)
def test_a_translation_is_fitted_to_its_place(text: str, key: str, translation: str, expected: str) -> None:
    if key in blocks(text):
        assert written(text, {key: translation}) == expected
    else:
        assert blocks(text) == {}


@pytest.mark.parametrize(
    "locale, translation, expected",
    [
        ("ja", "これは\n一つ", "これは一つ"),
        ("zh-Hant", "用 Dragoman\n翻譯", "用 Dragoman 翻譯"),
        ("th", "หนึ่ง  \nสอง", "หนึ่ง  \nสอง"),
        ("de", "eins\nzwei", "eins\nzwei"),
    ],
)
def test_lines_of_languages_without_spaces_are_joined(locale: str, translation: str, expected: str) -> None:
    assert written("one\ntwo\n", {"0/p1": translation}, locale) == f"{expected}\n"


def test_links_by_their_own_text_are_made_explicit() -> None:
    text = "See [One][], [two] and `[two]`, [three](x) or ![two].\n\n[one]: /1\n[Two]: /2\n[three]: /3\n"
    assert blocks(text)["0/p1"] == ("See [One][One], [two][two] and `[two]`, [three](x) or ![two][two].")
    german = "Siehe [Eins][One], [zwei][two] und `[two]`, [drei](x) oder ![zwei][two]."
    assert written(text, {"0/p1": german}).startswith(german)
    with pytest.raises(DragomanError, match="would change"):
        written(text, {"0/p1": german.replace("[two]", "[zwei]")})


@pytest.mark.parametrize(
    "text, expected",
    [
        ("[a][b] [b]", "[a][b] [b][b]"),
        ("[a\nlong][]", "[a\nlong][a long]"),
        ("[![b]](x)", "[![b][b]](x)"),
        ("[x [b] y][]", "[x [b][b] y][]"),
        (r"\[b] and [b\]", r"\[b] and [b\]"),
        ("[b]: not", "[b][b]: not"),
        ("<a [b]> [^b]", "<a [b]> [^b]"),
        ("`` ` [b] `` [b]", "`` ` [b] `` [b][b]"),
    ],
)
def test_only_defined_labels_outside_code_are_links(text: str, expected: str) -> None:
    once = explicit_references(text, {"B", "A LONG"})
    assert once == expected
    assert explicit_references(once, {"B", "A LONG"}) == expected


@given(st.text(st.sampled_from("[]ab`\\!(^ <>\n"), max_size=30))
def test_making_links_explicit_is_done_once(text: str) -> None:
    once = explicit_references(text, {"A", "B", "AB"})
    assert explicit_references(once, {"A", "B", "AB"}) == once


def test_front_matter_keeps_its_style_and_all_else_in_it() -> None:
    text = (
        "---\n# a comment\ntitle: 'One'   # kept\ndate: 2020-01-01\nsidebar: { label: x, order: 2 }\n"
        "hero:\n  tagline: >\n    Folded\n    text\n  actions:\n    - title: Go\n      link: /go\n"
        "---\n\nBody\n"
    )
    assert list(blocks(text)) == ["front/title", "front/hero/tagline", "front/hero/actions/0/title", "0/p1"]
    assert written(text, {"front/title": "L'un", "front/hero/tagline": "Gefaltet"}) == (
        text.replace("'One'", "'L''un'").replace("    Folded\n    text\n", "    Gefaltet\n")
    )


def test_only_the_front_matter_keys_asked_for_are_texts() -> None:
    format = MarkdownFormat(front_matter_texts=("label",))
    assert blocks("---\ntitle: One\nsidebar: { label: x }\n---\n", format) == {"front/sidebar/label": "x"}


@pytest.mark.parametrize(
    "text, line", [("---\na: b\nc: d: e\n---\n", 3), ("---\r\ntitle: x\r\ntitle: y\r\n---\r\n", 3)]
)
def test_broken_front_matter_is_refused_by_line(text: str, line: int) -> None:
    with pytest.raises(DocumentError) as refused:
        opened(text)
    assert (refused.value.line, refused.value.place) == (line, f"a.md:{line}")


BEGINNINGS = (
    "- ",
    "* ",
    "+ ",
    "1. ",
    "12) ",
    "# ",
    "> ",
    ": ",
    "~~~",
    "---",
    "=",
    "***",
    ":::",
    "!!! x",
    "$$",
)
MARKS = (
    "|",
    "#",
    "\\",
    "**b**",
    "_i_",
    "[x]",
    "[a]: b",
    "[ ] ",
    "[!TIP] ",
    "{#x}",
    "&amp;",
    "--8<--",
    '"',
    "'",
)
WORDS = ("Wort", "ü.", "中。", "import x", " ", "\t", "\n", "  \n", "\n\n", "\r", "\u3000", "\u2028")
ATOMS = st.sampled_from((*BEGINNINGS, *MARKS, *WORDS))
SAMPLE = """\
---
title: One
description: >-
  Two
---

# Three {#id}

Four
goes on

Five
====

> six
> six
>
> - seven
>   more

> [!NOTE] eight
> nine

1. ten

   deep
   - [ ] eleven

| a | b |
|---|:-:|
| c | d|

Term
: meaning

[^n]: note
    more
"""


@settings(deadline=None)
@example("2/h", ["- ", "{#x}"], "de")
@example("1/h", ["word ", "{#x}"], "de")
@given(
    st.sampled_from(sorted(blocks(SAMPLE))),
    st.lists(ATOMS, min_size=1, max_size=6),
    st.sampled_from(["de", "ja"]),
)
def test_no_translation_can_break_out_of_its_place(key: str, atoms: list[str], locale: str) -> None:
    """Whatever words and marks a translation holds, the file stays what it was, or nothing is written."""
    text = "".join(atoms)
    if not text.strip():
        return
    result = blocks(written(SAMPLE, {key: text}, locale))
    original = blocks(SAMPLE)
    assert result.keys() == original.keys()
    assert {other for other in result if result[other] != original[other]} <= {key}
