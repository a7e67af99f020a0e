"""`dragoman.lock` as text: what is written is read, merges are harmless, and a line fits only its files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content import documents, lockfile
from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.content.lockfile import Line, LockedUnit
from dragoman.content.selection import text_hash
from dragoman.kernel.errors import CallerError
from dragoman.kernel.identity import key_hash
from dragoman.model.documents import Document, Role
from dragoman.model.intents import Origin

A, B = "a" * 64, "b" * 64
names = st.text(min_size=1, max_size=20)
marks = st.sampled_from([("", ""), ("*", ""), ("3f", ""), ("3f", "1"), ("*", "*")])
lines = st.builds(lambda digest, marks: Line(digest, *marks), st.sampled_from([A, B]), marks)


@given(st.dictionaries(st.tuples(names, st.sampled_from(["fr", "zh-Hant"])), lines, max_size=6))
def test_whatever_a_document_is_called_its_line_is_read_as_it_was_written(
    made: dict[tuple[str, str], Line],
) -> None:
    several = {pair: (line,) for pair, line in made.items()}
    text = lockfile.printed(several)
    assert lockfile.read(text) == several
    assert len(text.splitlines()) == len(made) + 1, "one line a pair"


def test_lines_are_sorted_and_a_doubled_one_is_no_harm() -> None:
    """Git's union of two branches leaves both lines of a pair."""
    made = {
        ("b", "de"): (Line(A, ""),),
        ("a", "fr"): (Line(A, ""), Line(B, "*")),
        ("a", "de"): (Line(B, ""),),
    }
    told = lockfile.printed(made).splitlines()[1:]
    assert told == sorted(told)
    assert lockfile.read("\n".join(reversed(told)))["a", "fr"] == (Line(B, "*"), Line(A, ""))


@pytest.mark.parametrize("mark", ["<<<<<<< HEAD", "=======", ">>>>>>> theirs", "||||||| base"])
def test_the_marks_of_a_merge_are_named_with_their_line(mark: str) -> None:
    with pytest.raises(CallerError, match=r"dragoman\.lock:2 has the marks of a merge") as refused:
        lockfile.read(f"# head\n{mark}\na\tfr\t{A}\n")
    assert refused.value.place == "dragoman.lock:2"


@pytest.mark.parametrize("line", ["a", f"a\tfr\t{A[:-1]}", f"a\tfr\t{A}\tx", f"a\t{A}"])
def test_what_is_no_line_is_named(line: str) -> None:
    with pytest.raises(CallerError, match=r"dragoman\.lock:1 is no line"):
        lockfile.read(line)


def opened(role: Role, **texts: str) -> Document:
    form = JsonCatalogue()
    return documents.open_document(form, "a.json", json.dumps(texts).encode(), role, "en")


def units(ours: str, person: str = "", **pairs: tuple[str, str]) -> dict[str, LockedUnit]:
    made = {}
    for key, (source, target) in pairs.items():
        origin: Origin = "ours" if key in ours else "person" if key in person else "imported"
        written = "" if origin == "person" else text_hash(target)
        made[key_hash(key)] = LockedUnit(text_hash(source), written, origin)
    return made


@pytest.mark.parametrize(
    ("ours", "person"), [("ab", ""), ("a", ""), ("b", ""), ("", ""), ("a", "b"), ("", "b"), ("", "ab")]
)
def test_a_line_fits_the_files_that_it_was_made_of_and_says_whose_each_text_is(
    ours: str, person: str
) -> None:
    made = units(ours, person, a=("Hello", "Salut"), b=("Bye", "Adieu"))
    source, target = opened("source", a="Hello", b="Bye"), opened("target", a="Salut", b="Adieu")
    assert lockfile.matching([Line(B, ""), lockfile.line_of(made)], source, target, False) == made


def test_what_a_person_changes_again_leaves_its_line_as_it_is() -> None:
    """As long as the source is the same and a text stands there."""
    line = lockfile.line_of(units("a", "b", a=("Hello", "Salut"), b=("Bye", "Adieu")))
    source = opened("source", a="Hello", b="Bye")
    assert lockfile.matching([line], source, opened("target", a="Salut", b="Ciao"), False) is not None
    assert lockfile.matching([line], source, opened("target", a="Ciao", b="Ciao"), False) is None
    assert lockfile.matching([line], source, opened("target", a="Salut"), False) is None
    moved = opened("source", a="Hello", b="Bye, you")
    assert lockfile.matching([line], moved, opened("target", a="Salut", b="Ciao"), False) is None


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ({"a": "Hello!", "b": "Bye"}, {"a": "Salut", "b": "Adieu"}),
        ({"a": "Hello", "b": "Bye"}, {"a": "Salut !", "b": "Adieu"}),
        ({"a": "Hello", "b": "Bye"}, {"a": "Salut"}),
        ({"a": "Hello"}, {"a": "Salut", "b": "Adieu"}),
        ({"a": "Bye", "b": "Hello"}, {"a": "Salut", "b": "Adieu"}),
        ({"a": "Hello", "b": "Bye", "c": "New"}, {"a": "Salut", "b": "Adieu", "c": "Neuf"}),
    ],
)
def test_a_change_on_either_side_makes_a_line_stale(source: dict[str, str], target: dict[str, str]) -> None:
    line = lockfile.line_of(units("ab", a=("Hello", "Salut"), b=("Bye", "Adieu")))
    assert lockfile.matching([line], opened("source", **source), opened("target", **target), False) is None


def test_a_text_that_is_not_translated_yet_is_seen_beside_a_line_that_fits() -> None:
    line = lockfile.line_of(units("a", a=("Hello", "Salut")))
    source = opened("source", a="Hello", c="New")
    found = lockfile.matching([line], source, opened("target", a="Salut"), False)
    assert found is not None
    assert lockfile.wanted_keys(source) - set(found) == {key_hash("c")}
