from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.content.lexers.yaml_scalars import Scalar, replaced, scalars
from dragoman.kernel.errors import DocumentError

SAMPLE = """\
plain: multi
  line # comment
single: 'it''s'   # kept
double: "a\\tb"
literal: |-
   a
     b

   c
folded: >
  one
  two

  three

flow: { inner: x, list: [y, "z"] }
deep:
  - title: t
    date: 2020-01-01
    on: yes
    count: 12
last: |
  end
"""
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\x85\u2028\u2029")
    | st.sampled_from(" \n'\"\\#:-{}[],&*!|>%@`")
)


def by_path(text: str) -> dict[str, Scalar]:
    return {".".join(scalar.path): scalar for scalar in scalars(text) or ()}


@pytest.mark.parametrize("path", list(by_path(SAMPLE)))
@settings(max_examples=20, deadline=None)  # PyYAML composes the whole text for each try
@given(st.sampled_from(["\n", "\r\n"]), TEXTS)
def test_any_text_can_stand_anywhere_and_nothing_else_changes(path: str, newline: str, value: str) -> None:
    text = SAMPLE.replace("\n", newline)
    scalar = by_path(text)[path]
    if not scalar.is_text:
        return
    spelled = replaced(text, scalar, value.rstrip("\n"))
    result = text[: scalar.span.start] + spelled + text[scalar.span.end :]
    before, after = yaml.safe_load(text), yaml.safe_load(result)
    *parents, name = path.split(".")
    for parent in parents:
        index = int(parent) if isinstance(before, list) else parent
        before, after = before[index], after[index]
    index = int(name) if isinstance(before, list) else name
    assert after[index].rstrip("\n") == value.rstrip("\n")
    assert [leaf for leaf in by_path(result).values() if ".".join(leaf.path) != path and leaf.value]
    before[index] = after[index]
    assert before == after


@pytest.mark.parametrize(
    "path, value, expected",
    [
        ("plain", "eins", "plain: eins # comment"),
        ("plain", "a: b", "plain: 'a: b' # comment"),
        ("plain", "it's: b", 'plain: "it\'s: b" # comment'),
        ("plain", "yes", "plain: 'yes' # comment"),
        ("single", "c'est", "single: 'c''est'   # kept"),
        ("double", 'say "x"', 'double: "say \\"x\\""'),
        ("literal", "x\n  y", "literal: |-\n   x\n     y\nfolded"),
        ("folded", "eins zwei\ndrei", "folded: >\n  eins zwei\n\n  drei\n\nflow"),
        ("flow.inner", "a, b", "flow: { inner: 'a, b', list"),
        ("last", "Ende", "last: |\n  Ende\n"),
    ],
)
def test_the_style_is_kept_where_it_can_hold_the_text(path: str, value: str, expected: str) -> None:
    scalar = by_path(SAMPLE)[path]
    result = SAMPLE[: scalar.span.start] + replaced(SAMPLE, scalar, value) + SAMPLE[scalar.span.end :]
    assert expected in result


def test_only_strings_are_texts() -> None:
    assert [name for name, scalar in by_path(SAMPLE).items() if not scalar.is_text] == [
        "deep.0.date",
        "deep.0.on",
        "deep.0.count",
    ]


def test_an_alias_is_not_its_anchor_again() -> None:
    assert list(by_path("a: &x text\nb: *x\n")) == ["a"]


@pytest.mark.parametrize("text", ["", "just text", "- a\n- b", "# only a comment\n"])
def test_what_is_no_mapping_has_no_scalars(text: str) -> None:
    assert scalars(text) is None


@pytest.mark.parametrize(
    "text, line, told",
    [
        ("a: b\nc: d: e\n", 11, "this is not YAML: mapping values are not allowed"),
        ("a: 1\nb: 2\na: 3\n", 12, "the key 'a' stands here a second time"),
        ("a: \x01\n", 10, "this is not YAML"),
    ],
)
def test_what_is_not_yaml_is_refused_by_line(text: str, line: int, told: str) -> None:
    with pytest.raises(DocumentError) as refused:
        scalars(text, first_line=10)
    assert refused.value.line == line
    assert told in refused.value.message
