"""Edits to XML: attributes, content, leads, and the characters that XML counts."""

from __future__ import annotations

import pytest

from dragoman.content.lexers.xml_edits import declares, fill, has_markup, lead_of, put_attribute
from dragoman.content.lexers.xml_places import parse, unescaped
from dragoman.content.spans import splice


@pytest.mark.parametrize(
    ("text", "name", "value", "behind", "after"),
    [
        ('<a b="1"/>', "b", "2", "", '<a b="2"/>'),
        ("<a b = '1' c='2'>x</a>", "b", 'it\'s "&"', "", "<a b = 'it&apos;s \"&amp;\"' c='2'>x</a>"),
        ('<a b="1" c="2"/>', "b", None, "", '<a c="2"/>'),
        ('<a c=\'d="3"\' d="4"/>', "d", "5", "", '<a c=\'d="3"\' d="5"/>'),
        ('<a b="1" c="2"/>', "d", "3", "b", '<a b="1" d="3" c="2"/>'),
        ("<a>x</a>", "d", '"', "b", '<a d="&quot;">x</a>'),
        ('<a b="1"/>', "c", None, "", '<a b="1"/>'),
        ('<a b="1&#10;"/>', "b", "1\n", "", '<a b="1&#10;"/>'),
    ],
)
def test_an_attribute_is_set_or_taken_and_nothing_else(
    text: str, name: str, value: str | None, behind: str, after: str
) -> None:
    assert splice(text, put_attribute(text, parse(text), name, value, behind=behind)) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("<a></a>", "<a>x</a>"),
        ("<a b='/'  />", "<a b='/'>x</a>"),
        ("<p:a/>", "<p:a>x</p:a>"),
        ("<a>y</a>", "<a>x</a>"),
    ],
)
def test_an_element_is_filled(text: str, after: str) -> None:
    assert splice(text, [fill(text, parse(text), "x", "value", "")]) == after


@pytest.mark.parametrize(
    ("before", "lead"),
    [
        ("<a>", ""),
        ("<a>\n  ", "\n  "),
        ("<a>\r\n\t", "\r\n\t"),
        ("<a>\n\n ", "\n "),
        ("<a>  ", "  "),
        ("<a>x ", ""),
    ],
)
def test_what_is_put_in_begins_as_its_neighbour(before: str, lead: str) -> None:
    assert lead_of(before + "<b/>", len(before)) == lead


@pytest.mark.parametrize(
    ("inner", "marked"),
    [
        ("a &amp; &#8230; b", False),
        ("a <![CDATA[<b>&x;]]>", False),
        ("a <b/>", True),
        ("a <!-- b -->", True),
        ("a &own;", True),
    ],
)
def test_content_is_markup_only_for_what_is_more_than_characters(inner: str, marked: bool) -> None:
    text = f'<!DOCTYPE a [<!ENTITY own "x">]><a>{inner}</a>'
    assert has_markup(text, parse(text)) is marked


def test_characters_have_the_numbers_of_xml_not_of_html() -> None:
    assert unescaped("&#150;&#x9C;&#8230;") == "\x96\x9c…"


def test_languages_are_declared_in_many_spellings() -> None:
    assert declares("pt_BR", "pt-BR")
    assert declares("zh-TW", "zh-Hant")
    assert not declares("de-CH", "de")
    assert not declares("templates", "de")
