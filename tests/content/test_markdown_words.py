"""Words in the code of a page: front matter in three notations, titles and attributes, HTML, and emphasis."""

from __future__ import annotations

import json
import re
import time
import tomllib
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dragoman.content.documents import choose_format, open_document, render
from dragoman.content.formats.markdown import SHORTCODE_TEXTS, MarkdownFormat
from dragoman.content.lexers.markdown_emphasis import repaired
from dragoman.content.lexers.toml_strings import read, replaced, strings
from dragoman.content.protection import protect, restore
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.contracts import Format
from dragoman.model.documents import Document
from dragoman.wiring import catalogue
from tests.content.real_files import case, corpus

MARKDOWN = MarkdownFormat(shortcode_texts=SHORTCODE_TEXTS)
MDX = MarkdownFormat(mdx=True)
GFM = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def opened(text: str | bytes, format: Format = MARKDOWN) -> Document:
    return open_document(format, "a.md", text.encode() if isinstance(text, str) else text, "source", "en")


def blocks(text: str, format: Format = MARKDOWN) -> dict[str, str]:
    return {block.key: block.text for block in opened(text, format).blocks}


def written(text: str, translations: Mapping[str, str], locale: str = "de", format: Format = MARKDOWN) -> str:
    source = opened(text, format)
    complete = {**{block.key: block.text for block in source.blocks}, **translations}
    return render(format, None, source, complete, locale).data.decode()


def test_case_o04_the_product_knows_common_parameters_by_itself() -> None:
    given_file, expected = case("O04", "md")
    format = choose_format(catalogue.formats(), "docs/a.md", given_file)
    source = opened(given_file, format)
    assert [block.text for block in source.blocks] == ["Watch:", "Heads up", "Back up *first*."]
    texts = ("Ansehen:", "Achtung", "Erst ⟦1⟧sichern⟦/1⟧.")
    translations = {
        block.key: restore(protect(block.text, block.syntax), text)
        for block, text in zip(source.blocks, texts, strict=True)
    }
    assert render(format, None, source, translations, "de").data == expected


def test_shortcodes_around_prose_stay_and_their_named_words_are_texts() -> None:
    """[O04] in our own words, with a snippet and a parameter that is no text."""
    text = (
        '{{< figure src="x.png" caption="A \\"picture\\"" width="20" >}}\n\n'
        "{{% panel title='kept' heading=\"Read on\" %}}\nBody *one*.\n{{% /panel %}}\n\n"
        '--8<-- "part.md"\n'
    )
    assert blocks(text) == {
        "figure.caption/1": 'A "picture"',
        "panel.heading/1": "Read on",
        "0/p1": "Body *one*.",
    }
    assert written(text, {"figure.caption/1": 'Ein "Bild"', "0/p1": "Text *eins*."}) == (
        text.replace('A \\"picture\\"', 'Ein \\"Bild\\"').replace("Body *one*", "Text *eins*")
    )


def test_footnotes_keep_their_labels_and_the_indentation_of_their_lines() -> None:
    """[O05] in our own words."""
    text = "See[^a-1].\n\n[^a-1]: First\n    second.\n\n    Another paragraph.\n"
    assert list(blocks(text).values()) == ["See[^a-1].", "First\nsecond.", "Another paragraph."]
    assert written(text, {"fn[a-1]/1": "Eins\nzwei."}) == text.replace("First\n    second", "Eins\n    zwei")


TOML = """\
+++
# "a comment"
title = "One \\"two\\""  # kept
date = 2026-01-01
tags = ["x", "y"]
[params]
  description = 'As it is'
  summary = \"\"\"
Several
lines\"\"\"
[[cards]]
  title = "First"
[[cards]]
  title = "Second"
  link = { title = "Go", url = "/go" }
+++
Body
"""


def test_front_matter_in_toml_keeps_its_quotes_and_all_else_in_it() -> None:
    assert blocks(TOML) == {
        "front/title": 'One "two"',
        "front/params/description": "As it is",
        "front/params/summary": "Several\nlines",
        "front/cards/0/title": "First",
        "front/cards/1/title": "Second",
        "front/cards/1/link/title": "Go",
        "0/p1": "Body",
    }
    result = written(
        TOML, {"front/title": 'L"un', "front/params/description": "C'est", "front/cards/1/title": "Zwei"}
    )
    assert result == (
        TOML.replace('One \\"two\\"', 'L\\"un').replace("'As it is'", '"C\'est"').replace("Second", "Zwei")
    )
    data = tomllib.loads(result.split("+++")[1])
    assert (data["title"], data["params"]["description"]) == ('L"un', "C'est")


@given(
    st.sampled_from(["title = 'a'", 'title = "a"', 'title = """a"""', "title = '''\na'''"]),
    st.text(),
)
def test_toml_reads_what_was_put_there(text: str, value: str) -> None:
    found = strings(text)[0]
    put = replaced(text, found, value)
    assert read(text[: found.span.start] + put + text[found.span.end :]) == {"title": value}


@pytest.mark.parametrize("text", ["a = ", "[a", "a = 1\na = 2", "x = '''", "a" * 50])
def test_broken_toml_is_refused_by_line(text: str) -> None:
    with pytest.raises(DocumentError, match="not TOML") as refused:
        opened(f"+++\n{text}\n+++\n")
    assert refused.value.line
    assert refused.value.line >= 2


JSON = '{\n  "title": "One \\"two\\"",\n  "weight": 5,\n  "hero": { "tagline": "Caf\\u00e9" }\n}\n\nBody\n'


def test_front_matter_in_json_keeps_its_layout() -> None:
    assert blocks(JSON) == {"front/title": 'One "two"', "front/hero/tagline": "Café", "0/p1": "Body"}
    result = written(JSON, {"front/title": 'Das "Eine"', "0/p1": "Text"})
    assert result == JSON.replace('One \\"two\\"', 'Das \\"Eine\\"').replace("Body", "Text")
    assert json.loads(result.partition("\n\n")[0])["title"] == 'Das "Eine"'


@pytest.mark.parametrize("text", ["{ not json\n", '{"a": 1} behind\n', "{{< x >}}\n", '{ "title": "x"\n'])
def test_what_only_looks_like_json_is_prose(text: str) -> None:
    assert not any(key.startswith("front") for key in blocks(text))
    assert written(text, {}) == text


@pytest.mark.parametrize(
    "text, key, translation, expected",
    [
        (
            ":::note[A *title*]{.x}\nBody\n:::\n",
            "note.title/1",
            "Ein *Titel* [x](y)",
            ":::note[Ein *Titel* [x](y)]{.x}",
        ),
        (":::note[Title]\nBody\n:::\n", "note.title/1", "a] b", ":::note[a\\] b]"),
        ("::: tip Custom title\nBody\n:::\n", "tip.title/1", "Eigener {Titel}", "::: tip Eigener (Titel)"),
        ('!!! note "Title"\n    Body\n', "note.title/1", 'Der "Titel"', "!!! note \"Der 'Titel'\""),
        ('??? tip inline "Title"\n    Body\n', "tip.title/1", "Titel", '??? tip inline "Titel"'),
        ('=== "Tab"\n\n    Body\n', "tab.label/1", "Reiter", '=== "Reiter"'),
        ('[x]: /y "It\'s"\n\nBody [a][x]\n', "ref[x]/1", 'Das "Ding"', '[x]: /y "Das \\"Ding\\""'),
        ("[x]: </y z> 'Title'\n\nBody\n", "ref[x]/1", "Titel", "[x]: </y z> 'Titel'"),
        ("[x]: /y (Title)\n\nBody\n", "ref[x]/1", "Der (Titel)", "[x]: /y (Der \\(Titel\\))"),
    ],
)
def test_titles_in_the_lines_of_directives_and_definitions_are_texts(
    text: str, key: str, translation: str, expected: str
) -> None:
    assert set(blocks(text).values()) > {blocks(text)[key]}
    result = written(text, {key: translation})
    assert result.startswith(f"{expected}\n")
    assert result.split("\n")[1:] == text.split("\n")[1:]


@pytest.mark.parametrize(
    "text",
    [
        ":::note\n:::\n",
        "::: {.warning}\n:::\n",
        ":::note{title=x}\n:::\n",
        "!!! note\n",
        '```\n[x]: /y "Title"\n```\n',
        '[x]: /y\n[z]: /y ""\n',
        "::::\n:::::\n",
    ],
)
def test_lines_without_words_have_no_title(text: str) -> None:
    assert blocks(text) == {}


JSX = """\
import { Card } from './card';

<Card
  title="It's one"
  href="no"
  items={[1, 2].map((n) => <b title="no">{n}</b>)}
  label='Say "two"'
  open
/>

<Aside title="Watch out">
Body without blank lines, {count} times.
</Aside>

<Tab label="R&D &amp; more">Words</Tab>

{/* <Aside title="no" /> */}
"""


def test_attributes_of_jsx_that_are_read_out_are_texts() -> None:
    assert blocks(JSX, MDX) == {
        "Card.title/1": "It's one",
        "Card.label/1": 'Say "two"',
        "Aside.title/1": "Watch out",
        "0/p1": "Body without blank lines, {count} times.",
        "Tab.label/1": "R&D & more",
        "0/p2": "Words",
    }
    assert protect(blocks(JSX, MDX)["0/p1"], "markdown").text == "Body without blank lines, ⟦1⟧ times."
    result = written(
        JSX, {"Card.title/1": "Ein \"s'", "Card.label/1": "Sag 'zwei'", "Tab.label/1": "F&E &lt;"}, format=MDX
    )
    assert result == JSX.replace("It's one", "Ein &quot;s'").replace(
        "'Say \"two\"'", "'Sag &#39;zwei&#39;'"
    ).replace("R&D &amp; more", "F&amp;E &amp;lt;")


def test_only_the_attributes_asked_for_are_texts() -> None:
    format = MarkdownFormat(mdx=True, attribute_texts=("href",))
    assert blocks('<Card title="x" href="Words" />\n', format) == {"Card.href/1": "Words"}


HTML = """\
# Heading

<div align="center">
  <img src="x.png" alt="A picture"> Some <b>bold</b>
  words {{ name }}.
  <p>Another</p>
</div>

<details><summary>More</summary>

Prose *here*.

</details>

<pre>code</pre>

> <p>quoted</p>
"""


def test_blocks_of_html_give_their_texts() -> None:
    assert blocks(HTML) == {
        "1/h": "Heading",
        "1/html1/div/@alt": "A picture",
        "1/html1/div": "Some <b>bold</b> words {{ name }}.",
        "1/html1/div/p": "Another",
        "1/html2/details/summary": "More",
        "1/p1": "Prose *here*.",
    }
    result = written(
        HTML, {"1/html1/div": "Ein <b>paar</b>\n\nWorte {{ name }}.", "1/html1/div/@alt": 'Das "Bild"'}
    )
    assert result == HTML.replace("Some <b>bold</b>\n  words", "Ein <b>paar</b> Worte").replace(
        "A picture", "Das &quot;Bild&quot;"
    )
    with pytest.raises(DragomanError, match="would turn"):
        written(HTML, {"1/html1/div": "Ein <i>paar</i> Worte {{ name }}."})


@pytest.mark.parametrize(
    "translation, source, expected",
    [
        ("これは**「重要」**です", "This is **important**.", "これは**\u200b「重要」\u200b**です"),
        ("**주의:**이것", "**Note:** this", "**주의:\u200b**이것"),
        ("これは_重要_です", "This is _important_.", "これは*重要*です"),
        ("~~（古）~~新", "~~old~~ new", "~~（古）\u200b~~新"),
        ("これは**重要**です", "This is **important**.", "これは**重要**です"),
        ("`は**「a」**で` は**「重要」**で", "`x` **y**", "`は**「a」**で` は**\u200b「重要」\u200b**で"),
        ("は**「a」**で", "no emphasis", "は**「a」**で"),
        ("ohne", "**with**", "ohne"),
    ],
)
def test_emphasis_that_would_not_show_is_repaired(translation: str, source: str, expected: str) -> None:
    """[M4] the fewest signs that make it show, and none where nothing is amiss."""
    assert repaired(translation, source) == expected
    assert repaired(expected, source) == expected


def test_emphasis_is_repaired_in_the_file_and_read_back() -> None:
    text = "This is **important**.\n"
    result = written(text, {"0/p1": "これは**「重要」**です。"}, "ja")
    assert "<strong>" in GFM.render(result)
    assert blocks(result) == {"0/p1": "これは**\u200b「重要」\u200b**です。"}


class Tags(HTMLParser):
    """The tags of a page, in order, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(f"{tag} {[value for name, value in attrs if name in ('href', 'src', 'class')]}")


@pytest.mark.parametrize("file", [file for file in corpus("md") if ".mdx" not in str(file)])
def test_a_browser_would_see_the_same_elements(file: Path) -> None:
    """The shape of what another door of the parser renders, directives and all."""
    data = file.read_bytes()
    source = opened(data)
    translations = {
        block.key: restore(shown := protect(block.text, block.syntax), f"Ja {shown.text} nein")
        for block in source.blocks
    }
    result = render(MARKDOWN, None, source, translations, "de").data.decode()
    body, was = (re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S) for text in (result, data.decode()))
    assert Tags(GFM.render(body)).found == Tags(GFM.render(was)).found
    before, after = (yaml.safe_load(text.split("---\n")[1]) for text in (data.decode(), result))
    assert before.keys() == after.keys()
    assert after["title"] == f"Ja {before['title']} nein"


SAMPLE = """\
+++
title = "One"
+++
:::note[Two]
Three
:::

!!! tip "Four"
    Five

{{< alert title="Six" >}}
Seven
{{< /alert >}}

<div title="Eight">Nine <img src=x alt="Ten"> words</div>

See [eleven][x].

[x]: /y "Twelve"
"""
ATOMS = st.sampled_from(
    ('"', "'", "]", "[", "{", "}", ")", "(", "\\", "&", "&amp;", "<", ">", "|", "#", ":::", ">}}", "%}", "\n",
     " ", "\t", "`", "**", "Wort", "中", "\u3000", "+++", "---", "-->", "</div>", "!!!")
)  # fmt: skip


@settings(deadline=None)
@given(st.sampled_from(sorted(blocks(SAMPLE))), st.lists(ATOMS, max_size=6))
def test_no_words_can_break_out_of_their_place(key: str, atoms: list[str]) -> None:
    """Whatever a translation holds, the file stays what it was, or nothing is written."""
    text = "W " + "".join(atoms)
    try:
        result = blocks(written(SAMPLE, {key: text}))
    except DragomanError:
        return
    original = blocks(SAMPLE)
    assert result.keys() == original.keys()
    assert {other for other in result if result[other] != original[other]} <= {key}


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "**「",
        "<A b='",
        ":::a[",
        ":::a b  ",
        "!!! a  ",
        "::: ",
        '"\\',
        "{{< a ",
        "[x]: y (",
        "+++\n",
        "<p>",
        "`",
    ],
)
def test_reading_and_repairing_take_time_by_length_alone(piece: str) -> None:
    begun = time.process_time()
    for text in (piece * 3_000, f"{piece}\n" * 1_000, f"{piece}{' ' * 3_000}{{"):
        opened(text, MDX)
        repaired(text, "**x**")
    assert time.process_time() - begun < 10
