"""FormatJS: extracted and flat messages; what ICU reads of them."""

from __future__ import annotations

import json

import pytest

from dragoman.content import prompting
from dragoman.content.documents import choose_format
from dragoman.content.formats.formatjs import FormatJs
from dragoman.content.protection import restore
from dragoman.model.jobs import Field
from dragoman.wiring import catalogue
from tests.content.rewriting import Rewriting, values
from tests.doubles.icu import icu

FORMATJS = Rewriting(FormatJs())
PLURAL = "{n, plural, =0 {No files} one {{n} file} other {{n} files}}"
EXTRACTED: dict[str, dict[str, object]] = {
    "a1": {
        "defaultMessage": "Hello <b>{name}</b>",
        "description": "Greeting",
        "file": "src/a.tsx",
        "start": 7,
    },
    "a2": {"defaultMessage": PLURAL, "description": {"text": "x"}},
}


def test_of_an_extracted_message_the_default_is_text_and_the_description_its_note() -> None:
    blocks = FORMATJS.source(json.dumps(EXTRACTED)).blocks
    assert [(block.key, block.text, block.note, block.syntax) for block in blocks] == [
        ("a1/defaultMessage", "Hello <b>{name}</b>", "Greeting", "icu"),
        ("a2/defaultMessage", PLURAL, "", "icu"),
    ]
    found = FORMATJS.first(json.dumps(EXTRACTED, indent=4), {"a1/defaultMessage": "Cześć <b>{name}</b>"})
    assert json.loads(found) == {"a1": {**EXTRACTED["a1"], "defaultMessage": "Cześć <b>{name}</b>"}}
    whole = FORMATJS.again(
        json.dumps(EXTRACTED, indent=4), found, {"a2/defaultMessage": "{n, plural, other {x}}"}
    )
    assert list(json.loads(whole)["a2"]) == ["defaultMessage", "description"]


def test_flat_messages_are_one_text_each_plural_and_all() -> None:
    """`{{n}}` at the edge of a branch is an argument, not another library's interpolation."""
    flat = json.dumps({"a": "plain", "b": PLURAL, "c": "{n, plural, one {{n}} other {{n}}}"})
    document = FORMATJS.source(flat)
    assert [(block.key, block.syntax, block.plural) for block in document.blocks] == [
        (key, "icu", None) for key in ("a", "b", "c")
    ]
    assert FORMATJS.first(flat, values(document)) == flat


@pytest.mark.parametrize("locale", ["ar", "pl", "fr", "ja"])
@pytest.mark.parametrize(
    "message",
    [
        PLURAL,
        "{g, select, female {her {n, plural, one {# file} other {# files}}} other {their files}}",
        "You''re {n, selectordinal, one {#st} two {#nd} few {#rd} other {#th}} of {total, number}",
        "{n, plural, offset:1 =0 {Nobody} one {{who} and # other} other {{who} and # others}}",
    ],
)
def test_icu_reads_what_is_rebuilt_with_the_sources_arguments(message: str, locale: str) -> None:
    field = Field(0, locale, message, "icu", "", "", None, "", "")
    said = {
        piece.category: restore(piece.protected, f"d'{piece.protected.text}'")
        for piece in prompting.pieces(field)
    }
    built = str(prompting.assembled(field, said))
    assert icu().arguments(built, locale) == icu().arguments(message)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (json.dumps(EXTRACTED), "formatjs"),
        (json.dumps({"b": PLURAL}), "formatjs"),
        ('{"a": "{name} is plain ICU"}', "json"),
        ('{"a": [{"type": 0, "value": "{n, plural, other {x}}"}]}', "json"),
    ],
)
def test_it_is_known_by_what_it_holds(text: str, name: str) -> None:
    assert choose_format(catalogue.formats(), "lang/en.json", text.encode()).name == name
