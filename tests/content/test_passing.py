"""What holds no words is never sent."""

from __future__ import annotations

import pytest

from dragoman.content.passing import passes_through
from dragoman.model.documents import Syntax


def test_t3_blanks_pass_through() -> None:
    items = ["Hello", "", "  ", "\n", "Bye"]
    assert [passes_through(item) for item in items] == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("1,234.50 €", "none"),
        ("٣٤", "none"),
        ("— … 👍", "none"),
        ("https://a.example/path?q=words", "none"),
        (" a.person@mail.example\n", "none"),
        ("%s", "printf"),
        ("%1$s / %2$s", "printf"),
        ("{name}: {count, number}", "icu"),
        ("{{value}}", "none"),
        ("<br>&nbsp;", "html"),
        ("`code`", "markdown"),
        ("aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IQ==", "none"),
        ("data:image/png;base64,iVBORw0KGgo=", "none"),
        ("0f4c3b2a1d9e8f7a6b5c4d3e2f1a0b9c", "none"),
        ("018f3c1a-7b7e-7cc3-98c4-dc0c0c07398f", "none"),
        ("#ff8800", "none"),
    ],
)
def test_a_text_without_words_passes_through(text: str, syntax: Syntax) -> None:
    assert passes_through(text, syntax)


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("OK", "none"),
        ("5 km", "none"),
        ("価格", "none"),
        ("{name}", "printf"),
        ("See https://a.example", "none"),
        ("Internationalization-Settings", "none"),
        ("[words](https://a.example)", "markdown"),
        ("<b>Bold</b>", "html"),
        ("{n, plural, one {x} other {y}}", "none"),
        ("%s files", "printf"),
        ("facade-decade-beef", "none"),
    ],
)
def test_a_text_with_words_is_sent(text: str, syntax: Syntax) -> None:
    assert not passes_through(text, syntax)
