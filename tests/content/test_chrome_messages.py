"""Browser extensions' messages: entries stay whole, only what is said changes."""

from __future__ import annotations

import json

import pytest

from dragoman.content.documents import choose_format
from dragoman.content.formats.chrome_messages import ChromeMessages
from dragoman.content.protection import protect, restore
from dragoman.wiring import catalogue
from tests.content.rewriting import Rewriting, values

CHROME = Rewriting(ChromeMessages())
SOURCE = """\
{
    "hello": {
        "message": "Hello, $USER$ — $first_name$! It costs $5.",
        "description": "Greeting",
        "placeholders": { "user": { "content": "$1", "example": "Cira" }, "first_name": { "content": "$2" } }
    },
    "bye": { "message": "Bye" },
    "empty": { "description": "no message" }
}
"""


def test_messages_are_texts_with_what_is_told_of_them() -> None:
    hello, bye = CHROME.source(SOURCE).blocks
    assert (hello.key, hello.note, hello.syntax) == (
        "hello/message",
        "Greeting\nuser: for example Cira",
        "none",
    )
    assert (bye.key, bye.text, bye.note) == ("bye/message", "Bye", "")


def test_names_of_placeholders_are_code_and_the_entry_stays_as_it_is() -> None:
    hello = CHROME.source(SOURCE).blocks[0]
    shown = protect(hello.text, hello.syntax)
    assert shown.text == "Hello, ⟦1⟧ — ⟦2⟧! It costs $5."
    said = restore(shown, "Cześć, ⟦1⟧ — ⟦2⟧! Kosztuje $5.")
    found = CHROME.first(SOURCE, {"hello/message": said, "bye/message": "Pa"})
    assert found == SOURCE.replace("Hello", "Cześć").replace("It costs", "Kosztuje").replace("Bye", "Pa")


def test_an_entry_goes_and_comes_as_a_whole() -> None:
    some = CHROME.first(SOURCE, {"bye/message": "Pa"})
    assert list(json.loads(some)) == ["bye", "empty"]
    both = CHROME.again(SOURCE, some, {"hello/message": "Cześć $USER$ $first_name$ $5"})
    assert both == SOURCE.replace(
        "Hello, $USER$ — $first_name$! It costs $5.", "Cześć $USER$ $first_name$ $5"
    ).replace("Bye", "Pa")
    assert CHROME.again(SOURCE, both, values(CHROME.target(both))) == both


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("ext/_locales/en/messages.json", "{}", "chrome-messages"),
        ("_locales/pt_BR/messages.json", '{"a": {"message": "{n, plural, other {x}}"}}', "chrome-messages"),
        ("i18n/messages.json", SOURCE, "chrome-messages"),
        ("i18n/messages.json", '{"a": {"message": "x", "description": "y"}}', "json"),
    ],
)
def test_it_is_known_by_its_place_or_its_placeholders(path: str, text: str, name: str) -> None:
    assert choose_format(catalogue.formats(), path, text.encode()).name == name
