from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.content.lexers.json_tokens import scan, spelling_of
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Document
from tests.content.real_files import case, corpus

FORMAT = JsonCatalogue()
STRINGS = st.text(st.characters(codec="utf-8"))
NAMES = st.text(max_size=4)
CATALOGUES = st.recursive(
    STRINGS | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=15,
).filter(lambda value: isinstance(value, dict | list))


def source(data: bytes | str) -> Document:
    return open_document(FORMAT, "a.json", data.encode() if isinstance(data, str) else data, "source", "en")


def target(data: bytes | str) -> Document:
    return open_document(FORMAT, "a.json", data.encode() if isinstance(data, str) else data, "target", "de")


def texts(document: Document) -> dict[str, str]:
    return {block.key: block.text for block in document.blocks}


def translated(document: Document, base: Document | None, values: Mapping[str, str]) -> str:
    return render(FORMAT, base, document, values, "de").data.decode()


@pytest.mark.parametrize("file", corpus("json"))
def test_real_catalogues_written_with_their_own_texts_are_themselves(file: Path) -> None:
    data = file.read_bytes()
    document = source(data)
    assert render(FORMAT, None, document, texts(document), "de").data == data
    assert render(FORMAT, target(data), document, texts(document), "de").edits == ()
    assert render(FORMAT, target(data), document, {}, "de").data == data


@pytest.mark.parametrize("file", corpus("json"))
def test_real_catalogues_grow_back_to_what_a_whole_translation_gives(file: Path) -> None:
    """Half a translation leaves the other half out; filling it in later restores every line in its place."""
    document = source(file.read_bytes())
    values = {block.key: f"«{block.text}»" for block in document.blocks}
    whole = render(FORMAT, None, document, values, "de")
    for half in (list(values)[::2], list(values)[1::2], list(values)[:3], list(values)[-3:]):
        first = render(FORMAT, None, document, {key: values[key] for key in half}, "de")
        standing = target(first.data)
        assert texts(standing) == {key: value for key, value in values.items() if key in half}
        assert render(FORMAT, standing, document, values, "de").data == whole.data


@given(CATALOGUES, st.sampled_from([None, 1, 2, 4, "\t"]), st.booleans())
def test_any_json_is_read_as_the_standard_library_reads_it(
    value: object, indent: int | str | None, ascii_only: bool
) -> None:
    written = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    document = source(written)
    assert [json.loads(f'"{written[b.spans[0].start : b.spans[0].end]}"') for b in document.blocks] == [
        block.text for block in document.blocks
    ]
    assert translated(document, None, texts(document)) == written


@given(CATALOGUES, st.sampled_from([None, 2, "\t"]), st.data())
def test_any_part_of_any_catalogue_can_be_missing_and_come_later(
    value: object, indent: int | str | None, data: st.DataObject
) -> None:
    document = source(json.dumps(value, indent=indent))
    values = {key: text + "!" for key, text in texts(document).items() if text.strip()}
    some = {key: text for key, text in values.items() if data.draw(st.booleans())}
    partial = translated(document, None, some)
    complete = translated(document, target(partial), values)
    assert {key: text for key, text in texts(target(complete)).items() if key in values} == values


@given(STRINGS, st.booleans())
def test_what_is_written_in_a_files_habit_reads_back(text: str, ascii_only: bool) -> None:
    habit = spelling_of(json.dumps(["é", "/", text], ensure_ascii=ascii_only))
    assert json.loads(habit.quoted(text)) == text
    assert scan(habit.quoted(text)).text == text
    assert not ascii_only or habit.quoted(text).isascii()


@pytest.mark.parametrize(
    "written, value, expected",
    [
        (r'{"a": "caf\u00e9"}', "añb😀", r'{"a": "a\u00f1b\ud83d\ude00"}'),
        (r'{"a": "caf\u00E9"}', "ñ", r'{"a": "\u00F1"}'),
        (r'{"a": "café"}', "ñ", r'{"a": "ñ"}'),
        (r'{"a": "a\/b"}', "c/d", r'{"a": "c\/d"}'),
        (r'{"a": "a\/b", "b": "c/d"}', "e/f", r'{"a": "e/f", "b": "c/d"}'),
        (r'{"a": "\u003cb\u003e"}', "<i>", r'{"a": "\u003ci\u003e"}'),
        (r'{"a": "x\u00a0y é"}', "ü\u00a0z", r'{"a": "ü\u00a0z"}'),
        (r'{"a": "x"}', 'tab\t "q" \\ \x01\n', r'{"a": "tab\t \"q\" \\ \u0001\n"}'),
    ],
)
def test_escapes_keep_the_files_habit(written: str, value: str, expected: str) -> None:
    document = source(written)
    assert translated(document, None, texts(document) | {"a": value}) == expected


def test_a_new_key_stands_behind_its_neighbour_and_looks_like_it() -> None:
    document = source('{"one": "1a", "two": {"deep": "2a", "n": 7}, "list": ["x", "y"], "last": "z"}')
    base = target(
        '{\r\n\t"one" : "eins",\r\n\r\n\t"list" : [\r\n\t\t"ix"\r\n\t],\r\n\t"old" : "alt"\r\n}\r\n'
    )
    values = {"one": "EINS", "two/deep": "zwei", "list/0": "IX", "list/1": "YPS", "last": "ZETT"}
    rendered = render(FORMAT, base, document, values, "de")
    assert rendered.data.decode() == (
        '{\r\n\t"one" : "EINS",\r\n\t"two" : {\r\n\t\t"deep" : "zwei",\r\n\t\t"n" : 7\r\n\t},\r\n\r\n'
        '\t"list" : [\r\n\t\t"IX",\r\n\t\t"YPS"\r\n\t],\r\n\t"last" : "ZETT",\r\n\t"old" : "alt"\r\n}\r\n'
    )
    assert rendered.lost == ("old",)


@pytest.mark.parametrize(
    "base, expected",
    [
        ("{}", '{\n  "a": "A",\n  "b": {\n    "c": "C"\n  }\n}'),
        ('{"b":{"c":"c"}}', '{"a":"A","b":{"c":"C"}}'),
        ('{"x": "y", "z": "z"}', '{"a": "A", "b": {"c": "C"}, "x": "y", "z": "z"}'),
        ('{\n    "b": {}\n}', '{\n    "a": "A",\n    "b": {\n        "c": "C"\n    }\n}'),
        ('{"a": null, "b": "flat"}', '{"a": "A", "b": {"c": "C"}}'),
    ],
)
def test_keys_grow_into_any_shape_of_target(base: str, expected: str) -> None:
    document = source('{"a": "a", "b": {"c": "c"}}')
    assert translated(document, target(base), {"a": "A", "b/c": "C"}) == expected


@pytest.mark.parametrize(
    "written, some, expected",
    [
        ('{"a": "x", "b": "y", "c": "z"}', {"b": "Y"}, '{"b": "Y"}'),
        ('{"a": "x", "b": "y", "c": "z"}', {"a": "X", "c": "Z"}, '{"a": "X", "c": "Z"}'),
        ('{"a": "x", "b": {"c": "y", "d": "z"}, "n": 1}', {"a": "X"}, '{"a": "X", "n": 1}'),
        ('{"a": "x", "l": ["p", "q"], "dash": "—", "e": ""}', {"a": "X"}, '{"a": "X", "dash": "—", "e": ""}'),
        ('{"l": ["p", "q"]}', {"l/1": "Q"}, '{"l": ["p", "Q"]}'),
        ('{"a": "x", "b": "y"}', {}, "{}"),
    ],
)
def test_a_key_without_a_translation_is_absent_from_a_new_target(
    written: str, some: Mapping[str, str], expected: str
) -> None:
    assert translated(source(written), None, some) == expected


def test_of_entries_only_the_message_is_text_and_the_description_is_its_note() -> None:
    document = source('{"a.b": {"message": "Hi", "description": "Greeting"}, "c": {"message": "Bye"}}')
    assert [(block.key, block.text, block.note) for block in document.blocks] == [
        ("a.b/message", "Hi", "Greeting"),
        ("c/message", "Bye", ""),
    ]
    written = translated(document, None, {"c/message": "Tschüss"})
    assert written == '{"c": {"message": "Tschüss"}}'
    assert translated(document, target(written), {"a.b/message": "Hallo"}) == (
        '{"a.b": {"message": "Hallo", "description": "Greeting"}, "c": {"message": "Tschüss"}}'
    )


def test_a_message_beside_other_texts_is_a_text_like_them() -> None:
    document = source('{"error": {"message": "No", "description": "Why"}, "ok": "Yes"}')
    assert list(texts(document)) == ["error/message", "error/description", "ok"]


@pytest.mark.parametrize(
    "written, syntax",
    [
        ('{"a": "{{n}} of {m}"}', "i18next"),
        ('{"a": "plain", "b": "{name}"}', "icu"),
        ('{"a": "{n, plural, one {x} other {y}}"}', "icu"),
        ('{"a": "%1$s and %d"}', "printf"),
        ('{"a": "100% done", "b": "50% of {} users"}', "none"),
    ],
)
def test_the_syntax_is_the_files_and_the_same_for_all_its_blocks(written: str, syntax: str) -> None:
    assert {block.syntax for block in source(written).blocks} == {syntax}
    assert {block.syntax for block in JsonCatalogue("python").read(written, "source", "en").blocks} == {
        "python"
    }


@pytest.mark.parametrize(
    "written, line, told",
    [
        ("", 1, "the file is empty"),
        (" \n\t", 1, "the file is empty"),
        ('"text"', 1, "not a single value"),
        ('{"a": "x",\n "b": "y"\n "c": 1}', 3, "a comma or '}' is expected"),
        ('{\n  // note\n  "a": "x"}', 2, "JSON has no comments"),
        ('{"a": 1 /* note */}', 1, "JSON has no comments"),
        ('{"a": "x",\n}', 2, "a key in double quotes"),
        ("[1,\n2,]", 2, "a value is expected"),
        ('{"a": "x"}\n{}', 2, "nothing may follow"),
        ('{"a": "x",\n"b": {"c": 1,\n"c": 2}}', 3, "the key 'c' stands here a second time"),
        ('{"a": "x\ny"}', 1, "this string does not end"),
        (r'{"a": "\x41"}', 1, "this string does not end, or holds"),
        ('{"a": "x"\n', 2, "the file ends, but a comma"),
        ('\n\n{"a" "x"}', 3, "a colon is expected"),
        ('{"a": NaN}', 1, "a value is expected"),
        ('{"a": 01}', 1, "a value is expected"),
        (r'{"a": "\ud800"}', 1, "half of a surrogate pair"),
        ("[" * 201 + "]" * 201, 1, "nested deeper than 200 levels"),
    ],
)
def test_what_is_not_json_is_refused_by_line(written: str, line: int, told: str) -> None:
    with pytest.raises(DocumentError) as refused:
        source(written)
    assert (refused.value.line, refused.value.place) == (line, f"a.json:{line}")
    assert told in refused.value.message


def test_where_a_dialect_allows_it_the_last_of_equal_names_counts() -> None:
    with pytest.raises(DocumentError, match="line 2: the key 'a' stands here a second time"):
        scan('{"a": "x",\n"a": "y"}')
    root = scan('{"a": "x",\n"a": "y"}', repeats=True)
    assert [member.value.text for member in root.members] == ["x", "y"]
    last = root.member("a")
    assert last
    assert last.value.text == "y"


def test_plural_forms_for_one_text_are_refused() -> None:
    with pytest.raises(DragomanError, match="one text in JSON"):
        render(FORMAT, None, source('{"a": "x"}'), {"a": {"one": "x", "other": "y"}}, "de")


def test_case_o06_doubled_apostrophes_are_written_as_given() -> None:
    given_file, expected = case("O06", "json")
    document = source(given_file)
    assert document.blocks[0].syntax == "icu"
    assert translated(document, None, {"tip": "Kies een naam zoals ''{example}''."}) == expected.decode()


def test_case_o07_suffixed_keys_are_kept_each_for_itself() -> None:
    """`_zero`, a context and a suffix without a sibling are keys; what both files hold is equal."""
    given_file, expected = case("O07", "json")
    wanted = json.loads(expected)
    document = source(given_file)
    written = translated(document, None, {key: wanted[key] for key in texts(document)})
    assert written.splitlines() == [
        line for line in expected.decode().splitlines() if "tags_few" not in line and "tags_many" not in line
    ]
