from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from dragoman.content.documents import open_document, render
from dragoman.content.formats.yaml_catalogue import YamlCatalogue
from dragoman.content.lexers.yaml_spelling import spelled_anew, spelled_key
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Document, Text
from tests.content.real_files import corpus

FORMAT = YamlCatalogue()
SAMPLE = """\
%YAML 1.1
---
# Labels
plain: multi
  line # comment
single: 'it''s'
double: "a\\tb"
tagged: !!str 12
anchored: &a text
literal: |-
   a
     b

flow: { inner: x, list: [y, "z"], more: 'm' }
deep:
- title: t
  date: 2020-01-01
- - nested
folded: >+
  one
  two

last: |
  end
"""
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\x85\u2028\u2029")
    | st.sampled_from(" \n'\"\\#:-{}[],&*!|>%@`~=?")
)


def source(text: str | bytes) -> Document:
    return open_document(FORMAT, "a.yml", text if isinstance(text, bytes) else text.encode(), "source", "en")


def target(text: str | bytes) -> Document:
    return open_document(FORMAT, "a.yml", text if isinstance(text, bytes) else text.encode(), "target", "pl")


def values(document: Document) -> dict[str, Text]:
    return {block.key: block.value for block in document.blocks}


def written(text: str, translations: Mapping[str, Text], standing: str | None = None) -> str:
    base = None if standing is None else target(standing)
    return render(FORMAT, base, source(text), translations, "pl").data.decode()


def real() -> list[object]:
    """The files of the corpus whose root is no locale."""
    return [one for one in corpus("yaml") if "rails" not in str(getattr(one, "id", ""))]


@pytest.mark.parametrize("file", real())
def test_real_files_written_with_their_own_texts_are_themselves(file: Path) -> None:
    data = file.read_bytes()
    document = source(data)
    assert render(FORMAT, target(data), document, values(document), "pl").edits == ()
    assert render(FORMAT, target(data), document, {}, "pl").data == data


@pytest.mark.parametrize("file", real())
def test_real_files_translated_are_read_alike_by_ruamel(file: Path) -> None:
    document = source(file.read_bytes())
    wanted = {
        key: f"«{value}»" if isinstance(value, str) else {name: f"«{text}»" for name, text in value.items()}
        for key, value in values(document).items()
    }
    data = render(FORMAT, None, document, wanted, "pl").data
    assert values(target(data)) == wanted
    found = str(YAML(typ="safe", pure=True).load(data.decode()))
    assert found.count("«") == sum(1 if isinstance(value, str) else len(value) for value in wanted.values())
    half = {key: wanted[key] for key in list(wanted)[::2]}
    first = render(FORMAT, None, document, half, "pl").data
    assert render(FORMAT, target(first), document, wanted, "pl").data == data


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(values(source(SAMPLE)))), st.sampled_from(["\n", "\r\n"]), TEXTS)
def test_any_text_can_stand_anywhere_and_is_read_by_ruamel_as_well(key: str, newline: str, text: str) -> None:
    if not text.strip():
        return
    given = SAMPLE.replace("\n", newline)
    result = written(given, {key: text}, given)
    assert values(target(result)) == values(source(given)) | {key: text}
    if key == "folded" or text.isprintable():
        read = YAML(typ="safe", pure=True).load(result)
        for name in key.split("/"):
            read = read[int(name) if isinstance(read, list) else name]
        assert read.rstrip("\n") == text.rstrip("\n")


@given(TEXTS, st.sampled_from(["", "'", '"', "|"]), st.sampled_from(["'", '"']), st.booleans())
def test_a_new_value_is_a_string_for_every_yaml(text: str, style: str, habit: str, flow: bool) -> None:
    spelled = spelled_anew(text, style, habit, flow)
    line = f"{{k: {spelled}, z: 1}}" if flow else f"k: {spelled}\nz: 1\n"
    read = YAML(typ="safe", pure=True)
    assert read.load(line) == {"k": text, "z": 1}


@pytest.mark.parametrize(
    "name", ["no", "y", "On", "true", "null", "~", "1", "1.5", "1e3", "0x1f", "0o17", "12:30", "=", "<<", ""]
)
def test_what_some_yaml_takes_for_no_string_is_quoted(name: str) -> None:
    assert spelled_key(name, "'") == f"'{name}'"
    assert spelled_anew(name, "", '"') == f'"{name}"'


@pytest.mark.parametrize(
    "key, text, expected",
    [
        ("plain", "eins", "plain: eins # comment\n"),
        ("plain", "a: b", 'plain: "a: b" # comment\n'),
        ("plain", "Sûr\xa0?", "plain: Sûr\xa0? # comment\n"),
        ("double", "Sûr\xa0?\x85", 'double: "Sûr\xa0?\\x85"\n'),
        ("tagged", "x: y", 'tagged: !!str "x: y"\n'),
        ("anchored", "słowo", "anchored: &a słowo\n"),
        ("literal", "x\n  y", "literal: |-\n   x\n     y\n\nflow"),
        ("flow/inner", "a, b", 'flow: { inner: "a, b", list'),
        ("flow/list/1", 'q"', 'list: [y, "q\\""]'),
        ("deep/0/title", "tytuł", "- title: tytuł\n"),
        ("folded", "eins zwei\ndrei", "folded: >+\n  eins zwei\n\n  drei\n\nlast"),
        ("folded", "lang " * 30 + "Ende", "folded: >+\n  " + ("lang " * 15).strip() + "\n  lang"),
        ("last", "Ende", "last: |\n  Ende\n"),
    ],
)
def test_styles_tags_and_anchors_are_kept(key: str, text: str, expected: str) -> None:
    assert expected in written(SAMPLE, {key: text}, SAMPLE)


CATALOGUES = st.dictionaries(
    st.text("abc no~/:", min_size=1, max_size=4),
    st.recursive(
        st.text("ab: '\"\n#", max_size=8) | st.none() | st.booleans() | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=4)
        ),
        max_leaves=12,
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(CATALOGUES, st.sampled_from([None, True, False]), st.sampled_from([2, 4]), st.data())
def test_any_part_of_any_catalogue_can_be_missing_and_come_later(
    catalogue: object, flow: bool | None, indent: int, data: st.DataObject
) -> None:
    text = yaml.safe_dump(catalogue, default_flow_style=flow, indent=indent, sort_keys=False)
    wanted = {key: f"{value}!" for key, value in values(source(text)).items() if str(value).strip()}
    some = {key: value for key, value in wanted.items() if data.draw(st.booleans())}
    if not some:
        return
    partial = written(text, some)
    complete = written(text, wanted, partial)
    assert {key: value for key, value in values(target(complete)).items() if key in wanted} == wanted


def test_messages_of_hugo_are_plurals_texts_and_notes() -> None:
    text = (
        "readingTime:\n  description: Shown above\n  one: One minute\n  other: '{{ .Count }} minutes'\n"
        "readMore:\n  other: Read more # short\nhome: Home\n"
    )
    document = source(text)
    assert values(document) == {
        "readingTime": {"one": "One minute", "other": "{{ .Count }} minutes"},
        "readMore": "Read more",
        "home": "Home",
    }
    assert [block.note for block in document.blocks] == ["Shown above", "short", ""]
    assert [block.syntax for block in document.blocks] == ["none"] * 3
    forms = {"one": "Minuta", "few": "{{ .Count }} minuty", "many": "{{ .Count }} minut", "other": "x"}
    assert written(text, {"readingTime": forms, "readMore": "Więcej", "home": "Dom"}) == (
        "readingTime:\n  description: Shown above\n  one: Minuta\n  few: '{{ .Count }} minuty'\n"
        "  many: '{{ .Count }} minut'\n  other: 'x'\nreadMore:\n  other: Więcej # short\nhome: Dom\n"
    )


def test_a_list_of_messages_goes_by_its_ids() -> None:
    text = (
        "- id: home\n  translation: Home\n\n# counted\n"
        "- id: items\n  translation:\n    one: One\n    other: Many\n"
        "- id: last\n  translation: Last\n"
    )
    assert values(source(text)) == {
        "home/translation": "Home",
        "items/translation": {"one": "One", "other": "Many"},
        "last/translation": "Last",
    }
    assert written(text, {"last/translation": "Ostatni"}) == "- id: last\n  translation: Ostatni\n"
    forms = {"one": "1", "few": "2", "many": "5", "other": "x"}
    standing = "- id: last\n  translation: Ostatni\n- id: home\n  translation: Dom\n"
    assert written(text, {"items/translation": forms}, standing) == (
        "- id: last\n  translation: Ostatni\n- id: home\n  translation: Dom\n\n# counted\n- id: items\n"
        '  translation:\n    one: "1"\n    few: "2"\n    many: "5"\n    other: x\n'
    )


def test_what_a_target_has_in_another_shape_becomes_the_sources() -> None:
    text = "a:\n  b: x\n  c: 1\nd: y\ne: {f: g}\nl: [p, q, r]\n"
    standing = "a: text\nd:\n  z: old\ne: {}\nl: [P]\n"
    result = render(
        FORMAT, target(standing), source(text), {"a/b": "X", "d": "Y", "e/f": "G", "l/1": "Q"}, "pl"
    )
    assert result.data.decode() == 'a:\n  b: X\n  c: 1\nd: "Y"\ne: {f: G}\nl: [P, Q]\n'


def test_new_pairs_in_brackets_stand_in_brackets() -> None:
    text = "f:\n  a: x\n  b:\n    'no': y\n    n: 1\n  d:\n    one: z\n    other: zz\ng: { h: i, j: k }\n"
    standing = "f: { a: X }\ng:\n  h: I\n"
    forms = {"one": "1", "few": "a: b", "many": "m", "other": "o"}
    assert written(text, {"f/b/no": "Ż, ó", "f/d": forms, "g/j": "K"}, standing) == (
        """f: { a: X, b: {'no': "Ż, ó", n: 1}, d: {one: "1", few: "a: b", many: m, other: o} }\n"""
        "g:\n  h: I\n  j: K\n"
    )


@pytest.mark.parametrize("standing", ["", "{}\n", "---\n", "# later\n"])
def test_a_target_without_pairs_is_filled(standing: str) -> None:
    result = render(FORMAT, target(standing), source("# c\na: x\nb: y\n"), {"a": "X", "b": "ż"}, "pl")
    assert values(target(result.data)) == {"a": "X", "b": "ż"}


@pytest.mark.parametrize(
    "texts, syntax",
    [
        (["Hi %{name}"], "ruby"),
        (["{{ .Count }} x"], "none"),
        (["Hi {{name}}"], "i18next"),
        (["Hi {name}", "%d"], "icu"),
        (["Hi %s"], "printf"),
        (["100% done"], "none"),
    ],
)
def test_the_syntax_is_told_by_the_file(texts: list[str], syntax: str) -> None:
    document = source("".join(f"k{index}: '{text}'\n" for index, text in enumerate(texts)))
    assert {block.syntax for block in document.blocks} == {syntax}


def test_small_words_are_booleans_and_capitals_are_words() -> None:
    found = source("a: yes\nb: Yes\nc: true\nd: OFF\ne: on\n").blocks
    assert [block.key for block in found] == ["b", "d"]
    assert all("boolean in YAML 1.1" in block.note for block in found)


def test_comments_in_blocks_are_text_and_others_are_notes() -> None:
    text = "a: |\n  x\n  # text\nb: 'c # d' # e\n# f\n#g\nh: i#j\n\n# away\n\nk: l\n# m\nn: | # o\n  p\n"
    assert {block.key: block.note for block in source(text).blocks} == {
        "a": "",
        "b": "e",
        "h": "f\ng",
        "k": "",
        "n": "m\no",
    }


@pytest.mark.parametrize(
    "text, line, told",
    [
        ("just a text\n", 1, "not a single value"),
        ("a: b\n...\n---\nc: d\n", 3, "a second document begins here"),
        ("a:\n\tb: c\n", 2, "this is not YAML"),
        ("a: b\n\ud800: c\n".encode("utf-8", "replace").decode() + "x: \x01\n", 3, "this is not YAML"),
        ("a: 'b\n", 2, "this is not YAML"),
        ("a: *x\n", 1, "nothing before is anchored as &x"),
    ],
)
def test_what_is_not_yaml_is_refused_by_line(text: str, line: int, told: str) -> None:
    with pytest.raises(DocumentError) as refused:
        source(text)
    assert refused.value.place == f"a.yml:{line}"
    assert told in refused.value.message


@pytest.mark.parametrize(
    "text",
    [
        "a: b #" + " " * 200_000 + "x\n",
        "\n" * 100_000 + "a: b\n",
        "# x\n" * 100_000 + "a: b\n",
        "a: '%" + "0" * 200_000 + "'\n",
        "a: " + "[{" * 5_000,
        "a: &x " + " " * 200_000 + "b\n",
    ],
    ids=["blanks", "lines", "comments", "zeros", "brackets", "anchor"],
)
@pytest.mark.timeout(20)
def test_reading_takes_linear_time(text: str) -> None:
    try:
        document = source(text)
    except DocumentError:
        return
    render(FORMAT, target(text), document, {"a": "c"}, "pl")
